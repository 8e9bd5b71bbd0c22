"""The interface of decisions: m classes -> binary problems, and the scores of their trains -> classes.

Conventions
-----------
``classes`` are indices 0 .. m-1. A decision is a code matrix of shape (n_trains, m) with entries -1, 0, 1: train t
learns to tell the classes with code 1 from those with code -1 and never sees those with code 0. Train scores have
shape (n_trains, N); decisions and log-probabilities have shape (N, m) and a larger value means more likely.

A decision also writes itself in ONNX and in C, so that a new one is one class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polytrain.writing import CWriter, GraphWriter

__all__ = ["Decision"]


class Decision(ABC):
    """A way to reduce m classes to binary problems and back. Decisions have no state."""

    name: str

    @abstractmethod
    def code(self, n_classes: int) -> NDArray:
        """Return the code matrix of shape (n_trains, m)."""

    @abstractmethod
    def n_trains(self, n_classes: int) -> int:
        """Return the number of trains without forming the code matrix."""

    @abstractmethod
    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return a number per row and class whose largest entry is the decision."""

    @abstractmethod
    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return log-probabilities, given scores that are log-odds."""

    def choose(self, decided: NDArray) -> NDArray:
        """Return the index of the class of every row, given what `decide` returned."""
        return decided.argmax(axis=1)

    def probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return probabilities, given scores that are log-odds."""
        return np.exp(self.log_probabilities(scores, n_classes))

    def train_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return what a high score of each train speaks for, given the names of the classes."""
        sides = [
            ["/".join(name for name, sign in zip(names, row, strict=True) if sign == side) for side in (1, -1)]
            for row in self.code(len(names))
        ]
        return tuple(" vs ".join(pair) for pair in sides)

    def n_decided(self, n_classes: int) -> int:
        """Return the number of entries per row that `decide` returns."""
        return n_classes

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    # --- exports ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def add_decision(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Write `decide` into an ONNX graph. Shapes: scores (N, n_trains) -> (N, `n_decided`)."""

    def add_choice(self, graph: GraphWriter, decided: str) -> str:
        """Write `choose` into an ONNX graph. Shapes: decided (N, `n_decided`) -> (N,), int64."""
        return graph.add("ArgMax", decided, axis=1, keepdims=0)

    @abstractmethod
    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Write log-probabilities up to a constant per row. Shapes: scores (N, n_trains) -> (N, m)."""

    def add_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Write `probabilities` into an ONNX graph. Shapes: scores (N, n_trains) -> (N, m)."""
        return graph.add("Softmax", self.add_log_probabilities(graph, scores, n_classes), axis=1)

    @abstractmethod
    def c_decision(self, writer: CWriter, n_classes: int) -> str:
        """Write `decide` in C: ``static void decide(const REAL *values, REAL *scores)`` and the tables it reads."""

    def c_choice(self) -> str:
        """Write `choose` in C: the body of a function that has ``scores`` and returns the index."""
        return """    int best = 0;
    for (int c = 1; c < NAME_N_CLASSES; c++)
        if (scores[c] > scores[best]) best = c;
    return best;"""

    @abstractmethod
    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        """Write statements that put log-probabilities, up to a constant, of ``values`` into ``probabilities``.

        They may call ``log_sigmoid(z)``, and read ``code`` if `c_decision` has written it.
        """
