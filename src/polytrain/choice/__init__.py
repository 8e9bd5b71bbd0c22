"""The choice of maps, bandwidth, alpha and rank that the user leaves open, and the calibration of scores to log-odds.

`choose` compares kinds of maps on some rows (``map_search.py``), then goes one of two ways: ``few_rows.py`` or
``many_rows.py``.
"""

from polytrain.choice.calibration import calibrate, class_factors
from polytrain.choice.choose import choose
from polytrain.choice.chosen import Chosen, Tried
from polytrain.choice.map_search import MapMaker
from polytrain.choice.task import LITTLE, Choice, HeldOut, Settings, Task

__all__ = [
    "LITTLE",
    "Choice",
    "Chosen",
    "HeldOut",
    "MapMaker",
    "Settings",
    "Task",
    "Tried",
    "calibrate",
    "choose",
    "class_factors",
]
