"""How sure predictions of numbers are: standard deviations and intervals.

``laplace.py`` says where a train knows little, ``noise.py`` how large errors on rows that it has not learned from are,
and ``conformal.py`` which of these errors an interval must hold.
"""

from polytrain.uncertainty.conformal import LeftOutErrors
from polytrain.uncertainty.train import TrainUncertainty, Uncertainty

__all__ = ["LeftOutErrors", "TrainUncertainty", "Uncertainty"]
