"""One train per class; the largest score wins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polytrain.decisions.decision import C_COPY, Decision, normalised
from polytrain.writing import CWriter, GraphWriter

__all__ = ["OneVsRest"]


class OneVsRest(Decision):
    """One train per class; the largest score wins.

    Examples
    --------
    >>> from polytrain.decisions import OneVsRest
    >>> OneVsRest().code(3)
    array([[ 1., -1., -1.],
           [-1.,  1., -1.],
           [-1., -1.,  1.]])
    """

    name = "one-vs-rest"

    def code(self, n_classes: int) -> NDArray:
        """One class against all others, each in turn."""
        return 2.0 * np.eye(n_classes) - 1.0

    def n_trains(self, n_classes: int) -> int:
        """As many as classes."""
        return n_classes

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """The scores themselves."""
        return scores.T

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Each class's own probability, normalised over the classes."""
        return normalised(-np.logaddexp(0.0, -scores.T))

    def train_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """The classes."""
        return tuple(names)

    def add_decision(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """The scores themselves."""
        return scores

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Each class's own."""
        return graph.log_sigmoid(scores)

    def c_decision(self, writer: CWriter, n_classes: int) -> str:
        """The scores themselves."""
        return C_COPY

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        """Each class's own."""
        return "    for (int c = 0; c < NAME_N_CLASSES; c++) probabilities[c] = log_sigmoid(values[c]);"
