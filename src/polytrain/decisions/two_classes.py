"""Two classes: one train, positive for the second class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from polytrain.decisions.decision import C_COPY, Decision
from polytrain.writing import CWriter, GraphWriter

__all__ = ["TwoClasses"]


class TwoClasses(Decision):
    """One train that tells the second class from the first.

    Examples
    --------
    >>> from polytrain.decisions import TwoClasses
    >>> TwoClasses().code(2)
    array([[-1.,  1.]])
    """

    name = "two-classes"

    def code(self, n_classes: int) -> NDArray:
        """The second class is the positive one."""
        return np.array([[-1.0, 1.0]])

    def n_trains(self, n_classes: int) -> int:
        """One."""
        return 1

    def n_decided(self, n_classes: int) -> int:
        """One number per row."""
        return 1

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """The score itself, shape (N,)."""
        return scores[0]

    def choose(self, decided: NDArray) -> NDArray:
        """The second class where the score is positive."""
        return (decided > 0).astype(np.intp)

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Log of the logistic function of minus and plus the score."""
        return -np.logaddexp(0.0, np.stack([scores[0], -scores[0]], axis=1))

    def probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Probabilities that sum to 1 to the last bit."""
        positive = expit(scores[0])
        return np.stack([1.0 - positive, positive], axis=1)

    def train_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """The second class."""
        return (names[1],)

    def add_decision(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """The score itself."""
        return scores

    def add_choice(self, graph: GraphWriter, decided: str) -> str:
        """Compare with zero."""
        positive = graph.cast(graph.add("Greater", decided, graph.constant(0.0)), np.int64)
        return graph.add("Reshape", positive, graph.constant([-1], np.int64))

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Both signs of the score."""
        return graph.log_sigmoid(graph.add("Concat", graph.add("Neg", scores), scores, axis=1))

    def add_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """They are normalised as they come."""
        return graph.add("Exp", self.add_log_probabilities(graph, scores, n_classes))

    def c_decision(self, writer: CWriter, n_classes: int) -> str:
        """The score itself."""
        return C_COPY

    def c_choice(self) -> str:
        """Compare with zero."""
        return "    return scores[0] > 0;"

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        """Both signs of the score."""
        return """    probabilities[0] = log_sigmoid(-values[0]);
    probabilities[1] = log_sigmoid(values[0]);"""
