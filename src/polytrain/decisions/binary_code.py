"""ceil(log2 m) trains, one per bit of the class index; the nearest code word wins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polytrain.decisions.decision import Decision, add_squashed, c_votes, normalised, squash
from polytrain.writing import CWriter, GraphWriter

__all__ = ["BinaryCode"]


class BinaryCode(Decision):
    """ceil(log2 m) trains, one per bit of the class index; the nearest code word wins, ties go to the larger margin.

    Examples
    --------
    >>> from polytrain.decisions import BinaryCode
    >>> BinaryCode().code(5)
    array([[-1.,  1., -1.,  1., -1.],
           [-1., -1.,  1.,  1., -1.],
           [-1., -1., -1., -1.,  1.]])
    """

    name = "binary-code"

    def code(self, n_classes: int) -> NDArray:
        """Bits of the class index, the lowest first."""
        bits = (np.arange(n_classes) >> np.arange(self.n_trains(n_classes))[:, None]) & 1
        return 2.0 * bits - 1.0

    def n_trains(self, n_classes: int) -> int:
        """As many as bits."""
        return int(n_classes - 1).bit_length()

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """Minus the Hamming distance, with ties broken by the margin: the sum of the scores in the code's direction."""
        code = self.code(n_classes)
        agreement = np.where(scores > 0, 1.0, -1.0).T @ code  # n_bits - 2 * distance
        return (agreement - len(code)) / 2.0 + squash(scores.T @ code)

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Bits taken as independent, normalised over the code words in use."""
        code = self.code(n_classes)
        agree, differ = -np.logaddexp(0.0, -scores.T), -np.logaddexp(0.0, scores.T)
        return normalised(agree @ (code > 0) + differ @ (code < 0))

    def add_decision(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """(agreement - n_bits) / 2 with agreement = (2 positive - 1) @ code."""
        code = self.code(n_classes)
        positive = graph.cast(graph.add("Greater", scores, graph.constant(0.0)), np.float64)
        agreement = graph.add("MatMul", positive, graph.constant(code, np.float64))
        votes = graph.add("Sub", agreement, graph.constant((code.sum(axis=0) + len(code)) / 2, np.float64))
        return add_squashed(graph, votes, scores, code)

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Sum the bits' log-probabilities."""
        code = self.code(n_classes)
        agree, differ = graph.log_sigmoid(scores), graph.log_sigmoid(graph.add("Neg", scores))
        return graph.add(
            "Add",
            graph.add("MatMul", agree, graph.constant(code > 0, np.float64)),
            graph.add("MatMul", differ, graph.constant(code < 0, np.float64)),
        )

    def c_decision(self, writer: CWriter, n_classes: int) -> str:
        """A bit that differs counts -1."""
        return c_votes(writer, self.code(n_classes), "if (sign != (values[t] > 0 ? 1 : -1)) votes -= 1;")

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        """Sum the bits' log-probabilities."""
        return """    for (int c = 0; c < NAME_N_CLASSES; c++) {
        probabilities[c] = 0;
        for (int t = 0; t < N_TRAINS; t++)
            probabilities[c] += log_sigmoid((REAL)code[t * NAME_N_CLASSES + c] * values[t]);
    }"""
