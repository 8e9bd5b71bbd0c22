"""One train per pair of classes; the majority vote wins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from polytrain.decisions.decision import Decision, add_squashed, c_votes, normalised, squash
from polytrain.writing import CWriter, GraphWriter

__all__ = ["OneVsOne"]


class OneVsOne(Decision):
    """One train per pair of classes; the majority vote wins, ties go to the larger sum of scores.

    Probabilities couple the pairs as p_i ~ 1 / (1 + sum over j of exp(-s_ij)), which is exact when the pairwise
    log-odds s_ij are consistent (Price, Knerr, Personnaz and Dreyfus, 1994).

    Examples
    --------
    >>> from polytrain.decisions import OneVsOne
    >>> OneVsOne().code(3)
    array([[ 1., -1.,  0.],
           [ 1.,  0., -1.],
           [ 0.,  1., -1.]])
    """

    name = "one-vs-one"

    def code(self, n_classes: int) -> NDArray:
        """Every pair of classes, in lexicographic order; the first of the two is the positive one."""
        pairs = list(combinations(range(n_classes), 2))
        code = np.zeros((len(pairs), n_classes))
        for row, (i, j) in zip(code, pairs, strict=True):
            row[i], row[j] = 1.0, -1.0
        return code

    def n_trains(self, n_classes: int) -> int:
        """As many as pairs."""
        return n_classes * (n_classes - 1) // 2

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """Votes, with ties broken by the sum of the scores in favour of a class."""
        votes, sums = (np.zeros((n_classes, scores.shape[1])) for _ in range(2))
        for i, against in _by_first(scores, n_classes):
            won = against > 0
            votes[i] += won.sum(axis=0)
            votes[i + 1 :] += ~won
            sums[i] += against.sum(axis=0)
            sums[i + 1 :] -= against
        return np.ascontiguousarray((votes + squash(sums)).T)

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Pairwise coupling."""
        top = np.zeros((n_classes, scores.shape[1]))  # the largest exponent, taken out of the sum
        for i, score in _by_first(scores, n_classes):
            np.maximum(top[i], -score.min(axis=0), out=top[i])
            np.maximum(top[i + 1 :], score, out=top[i + 1 :])
        total = np.exp(-top)
        for i, score in _by_first(scores, n_classes):
            total[i] += np.exp(-score - top[i]).sum(axis=0)
            total[i + 1 :] += np.exp(score - top[i + 1 :])
        return normalised(-(top + np.log(total)).T)

    def train_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Both classes of every pair."""
        return tuple(" vs ".join(pair) for pair in combinations(names, 2))

    def add_decision(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Count votes: positive @ (code > 0) + (1 - positive) @ (code < 0)."""
        code = self.code(n_classes)
        positive = graph.cast(graph.add("Greater", scores, graph.constant(0.0)), np.float64)
        won = graph.add("MatMul", positive, graph.constant(code, np.float64))
        votes = graph.add("Add", won, graph.constant((code < 0).sum(axis=0), np.float64))
        return add_squashed(graph, votes, scores, code)

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """-log(1 + sum over j of exp(-s_ij)), from the scores of all pairs."""
        n_pairs = self.n_trains(n_classes)
        against = np.zeros((n_classes, n_classes), dtype=np.int64)  # column 0 stays: it points to the constant 0
        filled = [1] * n_classes
        for pair, (i, j) in enumerate(combinations(range(n_classes), 2)):
            against[i, filled[i]], against[j, filled[j]] = 1 + n_pairs + pair, 1 + pair
            filled[i] += 1
            filled[j] += 1
        first = graph.add("Gather", scores, graph.constant([0], np.int64), axis=1)
        nothing = graph.add("Mul", first, graph.constant(0.0))
        signed = graph.add("Concat", nothing, scores, graph.add("Neg", scores), axis=1)
        table = graph.add("Gather", signed, graph.constant(against), axis=1)  # (N, m, m)
        # The log-softmax of the entry that is 0 is minus the log of the sum.
        return graph.add("Gather", graph.add("LogSoftmax", table, axis=2), graph.constant(0, np.int64), axis=2)

    def c_decision(self, writer: CWriter, n_classes: int) -> str:
        """A vote for a class counts 1."""
        return c_votes(writer, self.code(n_classes), "if (sign == (values[t] > 0 ? 1 : -1)) votes += 1;")

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        """-log(1 + sum of exp(-s)), with the largest exponent taken out."""
        exp, log = f"exp{writer.suffix}", f"log{writer.suffix}"
        return f"""    for (int c = 0; c < NAME_N_CLASSES; c++) {{
        REAL top = 0, sum_against;
        for (int t = 0; t < N_TRAINS; t++) {{
            const REAL against = -(REAL)code[t * NAME_N_CLASSES + c] * values[t];
            if (against > top) top = against;
        }}
        sum_against = {exp}(-top);
        for (int t = 0; t < N_TRAINS; t++)
            if (code[t * NAME_N_CLASSES + c] != 0)
                sum_against += {exp}(-(REAL)code[t * NAME_N_CLASSES + c] * values[t] - top);
        probabilities[c] = -top - {log}(sum_against);
    }}"""


def _by_first(scores: NDArray, n_classes: int) -> Iterator[tuple[int, NDArray]]:
    """Every class but the last, and the scores of its pairs with all later ones: pairs of one class lie together."""
    start = 0
    for i in range(n_classes - 1):
        stop = start + n_classes - 1 - i
        yield i, scores[start:stop]
        start = stop
