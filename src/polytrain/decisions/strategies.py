"""The decisions that come with polytrain. Their methods are described once, in `Decision`.

Two of them vote: votes are integers, and the scores break ties. In C and ONNX as here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from polytrain.decisions.decision import Decision
from polytrain.writing import CWriter, GraphWriter

__all__ = ["BinaryCode", "OneVsOne", "OneVsRest", "Softmax", "TwoClasses"]

_C_COPY = """static void decide(const REAL *values, REAL *scores)
{
    for (int t = 0; t < N_TRAINS; t++) scores[t] = values[t];
}
"""


def _normalised(logs: NDArray) -> NDArray:
    """Log-probabilities (N, m) up to a constant per row -> log-probabilities whose exponentials sum to 1."""
    # The largest one first: next to 1e18 the logarithm of a sum vanishes.
    logs = logs - logs.max(axis=1, keepdims=True)
    return logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))


def _squash(sums: NDArray) -> NDArray:
    """Map any number into (-1/3, 1/3), keeping the order: breaks ties between integers and changes nothing else."""
    return sums / (3.0 * (np.abs(sums) + 1.0))


def _add_squashed(graph: GraphWriter, votes: str, scores: str, code: NDArray) -> str:
    """Add the squashed sums of the scores in the code's direction to votes, in ONNX."""
    sums = graph.add("MatMul", scores, graph.constant(code, np.float64))
    size = graph.add("Add", graph.add("Abs", sums), graph.constant(1.0))
    return graph.add("Add", votes, graph.add("Div", sums, graph.add("Mul", size, graph.constant(3.0))))


def _add_signs(graph: GraphWriter, scores: str, code: NDArray) -> str:
    """Multiply the code with 1 for positive scores and 0 for others, in ONNX."""
    positive = graph.cast(graph.add("Greater", scores, graph.constant(0.0)), np.float64)
    return graph.add("MatMul", positive, graph.constant(code, np.float64))


def _c_votes(writer: CWriter, code: NDArray, vote: str) -> str:
    """Write a vote over trains in C; ``vote`` is the statement that counts one of them."""
    return f"""/* What train t says about class c: 1 for, -1 against, 0 nothing. */
{writer.integers("code", code.astype(int))}

static void decide(const REAL *values, REAL *scores)
{{
    for (int c = 0; c < NAME_N_CLASSES; c++) {{
        REAL votes = 0, sum = 0;
        for (int t = 0; t < N_TRAINS; t++) {{
            const int sign = code[t * NAME_N_CLASSES + c];
            if (sign == 0) continue;
            {vote}
            sum += (REAL)sign * values[t];
        }}
        scores[c] = votes + sum / (3 * ((sum < 0 ? -sum : sum) + 1));
    }}
}}
"""


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
        return np.array([[-1.0, 1.0]])

    def n_trains(self, n_classes: int) -> int:
        return 1

    def n_decided(self, n_classes: int) -> int:
        return 1

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return the score itself, shape (N,)."""
        return scores[0]

    def choose(self, decided: NDArray) -> NDArray:
        return (decided > 0).astype(np.intp)

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        return -np.logaddexp(0.0, np.stack([scores[0], -scores[0]], axis=1))

    def probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return probabilities that sum to 1 to the last bit."""
        positive = expit(scores[0])
        return np.stack([1.0 - positive, positive], axis=1)

    def train_names(self, names: Sequence[str]) -> tuple[str, ...]:
        return (names[1],)

    def add_decision(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        return scores

    def add_choice(self, graph: GraphWriter, decided: str) -> str:
        positive = graph.cast(graph.add("Greater", decided, graph.constant(0.0)), np.int64)
        return graph.add("Reshape", positive, graph.constant([-1], np.int64))

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        return graph.log_sigmoid(graph.add("Concat", graph.add("Neg", scores), scores, axis=1))

    def add_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        return graph.add("Exp", self.add_log_probabilities(graph, scores, n_classes))

    def c_decision(self, writer: CWriter, n_classes: int) -> str:
        return _C_COPY

    def c_choice(self) -> str:
        return "    return scores[0] > 0;"

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        return """    probabilities[0] = log_sigmoid(-values[0]);
    probabilities[1] = log_sigmoid(values[0]);"""


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
        return 2.0 * np.eye(n_classes) - 1.0

    def n_trains(self, n_classes: int) -> int:
        return n_classes

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        return scores.T

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return the log-probability of each class on its own, normalised over the classes."""
        return _normalised(-np.logaddexp(0.0, -scores.T))

    def train_names(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(names)

    def add_decision(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        return scores

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        return graph.log_sigmoid(scores)

    def c_decision(self, writer: CWriter, n_classes: int) -> str:
        return _C_COPY

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        return "    for (int c = 0; c < NAME_N_CLASSES; c++) probabilities[c] = log_sigmoid(values[c]);"


class Softmax(OneVsRest):
    """One train per class, learned together; their scores are log-probabilities up to a constant.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.decisions import Softmax
    >>> Softmax().probabilities(np.log([[1.0], [2.0], [1.0]]), 3)
    array([[0.25, 0.5 , 0.25]])
    """

    name = "softmax"

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        return _normalised(scores.T)

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        return scores

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        return "    for (int c = 0; c < NAME_N_CLASSES; c++) probabilities[c] = values[c];"


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
        """Return one row per pair of classes, in lexicographic order; the first of the two is the positive one."""
        pairs = list(combinations(range(n_classes), 2))
        code = np.zeros((len(pairs), n_classes))
        for row, (i, j) in zip(code, pairs, strict=True):
            row[i], row[j] = 1.0, -1.0
        return code

    def n_trains(self, n_classes: int) -> int:
        return n_classes * (n_classes - 1) // 2

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return votes, with ties broken by the sum of the scores in favour of a class."""
        votes, sums = (np.zeros((n_classes, scores.shape[1])) for _ in range(2))
        for i, against in _by_first(scores, n_classes):
            won = against > 0
            votes[i] += won.sum(axis=0)
            votes[i + 1 :] += ~won
            sums[i] += against.sum(axis=0)
            sums[i + 1 :] -= against
        return np.ascontiguousarray((votes + _squash(sums)).T)

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        top = np.zeros((n_classes, scores.shape[1]))  # the largest exponent, taken out of the sum
        for i, score in _by_first(scores, n_classes):
            np.maximum(top[i], -score.min(axis=0), out=top[i])
            np.maximum(top[i + 1 :], score, out=top[i + 1 :])
        total = np.exp(-top)
        for i, score in _by_first(scores, n_classes):
            total[i] += np.exp(-score - top[i]).sum(axis=0)
            total[i + 1 :] += np.exp(score - top[i + 1 :])
        return _normalised(-(top + np.log(total)).T)

    def train_names(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(" vs ".join(pair) for pair in combinations(names, 2))

    def add_decision(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Write votes: positive @ (code > 0) + (1 - positive) @ (code < 0)."""
        code = self.code(n_classes)
        won = _add_signs(graph, scores, code)
        votes = graph.add("Add", won, graph.constant((code < 0).sum(axis=0), np.float64))
        return _add_squashed(graph, votes, scores, code)

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Write -log(1 + sum over j of exp(-s_ij)), from the scores of all pairs."""
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
        return _c_votes(writer, self.code(n_classes), "if (sign == (values[t] > 0 ? 1 : -1)) votes += 1;")

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        """Write -log(1 + sum of exp(-s)), with the largest exponent taken out."""
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
    """Yield every class but the last with the scores of its pairs with all later ones, which lie together."""
    start = 0
    for i in range(n_classes - 1):
        stop = start + n_classes - 1 - i
        yield i, scores[start:stop]
        start = stop


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
        """Return the bits of the class index, the lowest first."""
        bits = (np.arange(n_classes) >> np.arange(self.n_trains(n_classes))[:, None]) & 1
        return 2.0 * bits - 1.0

    def n_trains(self, n_classes: int) -> int:
        return int(n_classes - 1).bit_length()

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return minus the Hamming distance, with ties broken by the sum of the scores in the code's direction."""
        code = self.code(n_classes)
        agreement = np.where(scores > 0, 1.0, -1.0).T @ code  # n_bits - 2 * distance
        return (agreement - len(code)) / 2.0 + _squash(scores.T @ code)

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Take bits as independent, and normalise over the code words in use."""
        code = self.code(n_classes)
        agree, differ = -np.logaddexp(0.0, -scores.T), -np.logaddexp(0.0, scores.T)
        return _normalised(agree @ (code > 0) + differ @ (code < 0))

    def add_decision(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Write (agreement - n_bits) / 2 with agreement = (2 positive - 1) @ code."""
        code = self.code(n_classes)
        agreement = _add_signs(graph, scores, code)
        votes = graph.add("Sub", agreement, graph.constant((code.sum(axis=0) + len(code)) / 2, np.float64))
        return _add_squashed(graph, votes, scores, code)

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        code = self.code(n_classes)
        agree, differ = graph.log_sigmoid(scores), graph.log_sigmoid(graph.add("Neg", scores))
        return graph.add(
            "Add",
            graph.add("MatMul", agree, graph.constant(code > 0, np.float64)),
            graph.add("MatMul", differ, graph.constant(code < 0, np.float64)),
        )

    def c_decision(self, writer: CWriter, n_classes: int) -> str:
        return _c_votes(writer, self.code(n_classes), "if (sign != (values[t] > 0 ? 1 : -1)) votes -= 1;")

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        return """    for (int c = 0; c < NAME_N_CLASSES; c++) {
        probabilities[c] = 0;
        for (int t = 0; t < N_TRAINS; t++)
            probabilities[c] += log_sigmoid((REAL)code[t * NAME_N_CLASSES + c] * values[t]);
    }"""
