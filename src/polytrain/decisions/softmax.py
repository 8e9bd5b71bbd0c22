"""One train per class, learned together: their exponentials, divided by the sum, are the probabilities."""

from __future__ import annotations

from numpy.typing import NDArray

from polytrain.decisions.decision import normalised
from polytrain.decisions.one_vs_rest import OneVsRest
from polytrain.writing import CWriter, GraphWriter

__all__ = ["Softmax"]


class Softmax(OneVsRest):
    """One train per class, whose scores are logarithms of probabilities up to a constant; the largest score wins.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.decisions import Softmax
    >>> Softmax().probabilities(np.log([[1.0], [2.0], [1.0]]), 3)
    array([[0.25, 0.5 , 0.25]])
    """

    name = "softmax"

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """The scores, less what makes their exponentials sum to 1."""
        return normalised(scores.T)

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """The scores."""
        return scores

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        """The scores."""
        return "    for (int c = 0; c < NAME_N_CLASSES; c++) probabilities[c] = values[c];"
