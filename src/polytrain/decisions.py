"""Decisions: the reduction of classes to binary problems, and of their scores to classes.

A new decision is one subclass of `Decision`, and one entry in ``_DECISIONS`` at the end.

Conventions
-----------
``classes`` are indices 0 .. m-1. A decision is a code matrix of shape (n_trains, m) with entries -1, 0, 1: train t
learns to separate the classes with code 1 from those with code -1, without rows of those with code 0. Train scores have
shape (n_trains, N); decisions and log-probabilities have shape (N, m) and a larger value means more likely.

A decision also writes itself in ONNX and in C.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import log_expit, log_softmax

from polytrain.export_writers import CWriter, GraphWriter

__all__ = [
    *("BinaryCode", "Decision", "EachLabel", "OneVsOne", "OneVsRest", "Softmax", "TwoClasses"),
    *("decision_names", "get_decision"),
]


class Decision(ABC):
    """A way to reduce m classes to binary problems and back. Decisions have no state.

    By default, the scores of the trains are those of the classes, and the largest one wins. The probability of a class
    is that of all binary answers in its code, normalised over the classes.
    """

    name: str

    @abstractmethod
    def code(self, n_classes: int) -> NDArray:
        """Return the code matrix of shape (n_trains, m)."""

    def n_trains(self, n_classes: int) -> int:
        """Return the number of trains, without forming the code matrix where that may be large."""
        return len(self.code(n_classes))

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return a number per row and class whose largest entry is the decision."""
        return scores.T

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return log-probabilities, given scores that are log-odds."""
        code = self.code(n_classes)
        logs = log_expit(scores.T) @ (code > 0) + log_expit(-scores.T) @ (code < 0)
        return log_softmax(logs, axis=1)

    def choose(self, decided: NDArray) -> NDArray:
        """Return the index of the class of every row, given what `decide` returned."""
        return decided.argmax(axis=1)

    def probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return probabilities, given scores that are log-odds."""
        return np.exp(self.log_probabilities(scores, n_classes))

    def train_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the meaning of a high score of each train, given the names of the classes."""
        array = np.array(names, dtype=object)
        sides = [("/".join(array[row > 0]), "/".join(array[row < 0])) for row in self.code(len(array))]
        return tuple(" vs ".join(pair) for pair in sides)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    # --- exports ------------------------------------------------------------------------------------------------------

    def add_decision(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Write `decide` into an ONNX graph. Shapes: scores (N, n_trains) -> (N, m), or (N, 1) for two classes."""
        return scores

    def add_choice(self, graph: GraphWriter, decided: str) -> str:
        """Write `choose` into an ONNX graph. Shapes: (N, m) or (N, 1) -> (N,), int64."""
        return graph.add("ArgMax", decided, axis=1, keepdims=0)

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Write log-probabilities up to a constant per row. Shapes: scores (N, n_trains) -> (N, m)."""
        code = self.code(n_classes)
        agree, differ = graph.log_sigmoid(scores), graph.log_sigmoid(graph.add("Neg", scores))
        likely = graph.add("MatMul", agree, graph.constant(code > 0, np.float64))
        return graph.add("Add", likely, graph.add("MatMul", differ, graph.constant(code < 0, np.float64)))

    def add_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Write `probabilities` into an ONNX graph. Shapes: scores (N, n_trains) -> (N, m)."""
        return graph.add("Softmax", self.add_log_probabilities(graph, scores, n_classes), axis=1)

    def c_decision(self, writer: CWriter, n_classes: int) -> str:
        """Write `decide` in C: ``static void decide(const REAL *values, REAL *scores)`` and the tables it reads."""
        return """static void decide(const REAL *values, REAL *scores)
{
    for (int t = 0; t < N_TRAINS; t++) scores[t] = values[t];
}
"""

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


class TwoClasses(Decision):
    """One train that separates the second class from the first.

    Examples
    --------
    >>> from polytrain.decisions import TwoClasses
    >>> TwoClasses().code(2)
    array([[-1.,  1.]])
    """

    name = "two-classes"

    def code(self, n_classes: int) -> NDArray:
        return np.array([[-1.0, 1.0]])

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return the score itself, shape (N,)."""
        return scores[0]

    def choose(self, decided: NDArray) -> NDArray:
        return (decided > 0).astype(np.intp)

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        return log_expit(np.stack([-scores[0], scores[0]], axis=1))

    def train_names(self, names: Sequence[str]) -> tuple[str, ...]:
        return (names[1],)

    def add_choice(self, graph: GraphWriter, decided: str) -> str:
        positive = graph.cast(graph.add("Greater", decided, graph.constant(0.0)), np.int64)
        return graph.add("Reshape", positive, graph.constant([-1], np.int64))

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        return graph.log_sigmoid(graph.add("Concat", graph.add("Neg", scores), scores, axis=1))

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

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return the log-probability of each class on its own, normalised over the classes."""
        return log_softmax(log_expit(scores.T), axis=1)

    def train_names(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(names)

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        return graph.log_sigmoid(scores)

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
        return log_softmax(scores.T, axis=1)

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        return scores

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        return "    for (int c = 0; c < NAME_N_CLASSES; c++) probabilities[c] = values[c];"


class EachLabel(OneVsRest):
    """One train per label, of which a row may have any number: those whose scores are positive.

    Classes are the numbers of the labels, from 0, and what is chosen is 0 or 1 for each of them, (N, m).

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.decisions import EachLabel
    >>> EachLabel().choose(np.array([[0.5, -1.0, 2.0]]))
    array([[1, 0, 1]])
    """

    name = "each-label"

    def choose(self, decided: NDArray) -> NDArray:
        return (decided > 0).astype(np.intp)

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        return log_expit(scores.T)

    def train_names(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"label {name}" for name in names)

    def add_choice(self, graph: GraphWriter, decided: str) -> str:
        return graph.cast(graph.add("Greater", decided, graph.constant(0.0)), np.int64)

    def add_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        return graph.add("Sigmoid", scores)


class _Vote(Decision):
    """Trains vote for classes; the sum of their scores in the code's direction breaks ties.

    The sum is squashed into (-1/3, 1/3), which keeps the order and never outweighs a vote.
    """

    @abstractmethod
    def _signs(self, n_classes: int) -> csr_array:
        """Return the transposed code matrix (m, n_trains); of many pairs, almost all entries are zero."""

    def code(self, n_classes: int) -> NDArray:
        return self._signs(n_classes).T.toarray()

    def _no_votes(self, n_classes: int) -> int:
        """Return the entry of a class that no train votes for."""
        return 0

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        signs = self._signs(n_classes)
        sums, n_against = signs @ scores, (signs < 0).sum(axis=1)
        votes = signs @ (scores > 0) + (n_against + self._no_votes(n_classes))[:, None]
        return np.ascontiguousarray((votes + sums / (3.0 * (np.abs(sums) + 1.0))).T)

    def add_decision(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Write votes as (scores > 0) @ code + number of trains against the class."""
        code = self.code(n_classes)
        table = graph.constant(code, np.float64)
        positive = graph.cast(graph.add("Greater", scores, graph.constant(0.0)), np.float64)
        against = (code < 0).sum(axis=0) + self._no_votes(n_classes)
        votes = graph.add("Add", graph.add("MatMul", positive, table), graph.constant(against, np.float64))
        sums = graph.add("MatMul", scores, table)
        size = graph.add("Add", graph.add("Abs", sums), graph.constant(1.0))
        return graph.add("Add", votes, graph.add("Div", sums, graph.add("Mul", size, graph.constant(3.0))))

    def c_decision(self, writer: CWriter, n_classes: int) -> str:
        return f"""/* What train t says about class c: 1 for, -1 against, 0 nothing. */
{writer.integers("code", self.code(n_classes).astype(int))}

static void decide(const REAL *values, REAL *scores)
{{
    for (int c = 0; c < NAME_N_CLASSES; c++) {{
        REAL votes = {self._no_votes(n_classes)}, sum = 0;
        for (int t = 0; t < N_TRAINS; t++) {{
            const int sign = code[t * NAME_N_CLASSES + c];
            if (sign == (values[t] > 0 ? 1 : -1)) votes += 1;
            if (sign != 0) sum += (REAL)sign * values[t];
        }}
        scores[c] = votes + sum / (3 * ((sum < 0 ? -sum : sum) + 1));
    }}
}}
"""


class OneVsOne(_Vote):
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

    def _signs(self, n_classes: int) -> csr_array:
        """Return one column per pair of classes, in lexicographic order; the first of the two is the positive one."""
        pairs = np.column_stack(np.triu_indices(n_classes, 1))
        places = pairs.ravel(), np.repeat(np.arange(len(pairs)), 2)
        return csr_array((np.tile([1.0, -1.0], len(pairs)), places), (n_classes, len(pairs)))

    def n_trains(self, n_classes: int) -> int:
        return n_classes * (n_classes - 1) // 2

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        signs, logs = self._signs(n_classes), np.empty((scores.shape[1], n_classes))
        for c in range(n_classes):
            pairs = slice(signs.indptr[c], signs.indptr[c + 1])
            against = -signs.data[pairs, None] * scores[signs.indices[pairs]]
            logs[:, c] = -np.logaddexp.reduce(against, axis=0, initial=0.0)
        return log_softmax(logs, axis=1)

    def add_log_probabilities(self, graph: GraphWriter, scores: str, n_classes: int) -> str:
        """Write -log(1 + sum over j of exp(-s_ij)), from the scores of all pairs."""
        i, j = np.triu_indices(n_classes, 1)
        pair = np.arange(1, 1 + len(i))
        against = np.zeros((n_classes, n_classes), dtype=np.int64)  # indices into 0, scores and -scores
        against[i, j - i], against[j, i - j] = len(i) + pair, pair
        first = graph.add("Gather", scores, graph.constant([0], np.int64), axis=1)
        nothing = graph.add("Mul", first, graph.constant(0.0))
        signed = graph.add("Concat", nothing, scores, graph.add("Neg", scores), axis=1)
        table = graph.add("Gather", signed, graph.constant(against), axis=1)  # (N, m, m)
        # The log-softmax of the entry that is 0, in column 0, is minus the log of the sum.
        return graph.add("Gather", graph.add("LogSoftmax", table, axis=2), graph.constant(0, np.int64), axis=2)

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        """Add up -log(1 + sum of exp(-s)): one more s turns p into p - log(1 + exp(p - s))."""
        return """    for (int c = 0; c < NAME_N_CLASSES; c++) {
        probabilities[c] = 0;
        for (int t = 0; t < N_TRAINS; t++)
            if (code[t * NAME_N_CLASSES + c] != 0)
                probabilities[c] += log_sigmoid((REAL)code[t * NAME_N_CLASSES + c] * values[t] - probabilities[c]);
    }"""


class BinaryCode(_Vote):
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

    def _signs(self, n_classes: int) -> csr_array:
        """Return the bits of the class index, the lowest first."""
        bits = (np.arange(n_classes)[:, None] >> np.arange(self.n_trains(n_classes))) & 1
        return csr_array(2.0 * bits - 1.0)

    def n_trains(self, n_classes: int) -> int:
        return int(n_classes - 1).bit_length()

    def _no_votes(self, n_classes: int) -> int:
        return -self.n_trains(n_classes)  # so that votes are minus the Hamming distance

    def c_log_probabilities(self, writer: CWriter, n_classes: int) -> str:
        return """    for (int c = 0; c < NAME_N_CLASSES; c++) {
        probabilities[c] = 0;
        for (int t = 0; t < N_TRAINS; t++)
            probabilities[c] += log_sigmoid((REAL)code[t * NAME_N_CLASSES + c] * values[t]);
    }"""


_DECISIONS: dict[str, Decision] = {decision.name: decision for decision in (OneVsRest(), OneVsOne(), BinaryCode())}


def decision_names() -> list[str]:
    """Return the names that an estimator's ``decision`` may have.

    Examples
    --------
    >>> from polytrain.decisions import decision_names
    >>> decision_names()
    ['one-vs-rest', 'one-vs-one', 'binary-code']
    """
    return list(_DECISIONS)


def get_decision(name: str, n_classes: int) -> Decision:
    """Return the decision of this name for ``n_classes`` classes. Between two classes there is only one.

    Examples
    --------
    >>> from polytrain.decisions import get_decision
    >>> get_decision("one-vs-one", 3), get_decision("one-vs-one", 2)
    (OneVsOne(), TwoClasses())
    """
    if name == EachLabel.name:  # chosen by the targets, not by name
        return EachLabel()
    decisions = _DECISIONS | {Softmax.name: Softmax()}  # chosen by the loss
    if n_classes == 2 and name in (*decisions, TwoClasses.name):
        return TwoClasses()
    if name not in decisions:
        raise ValueError(f"decision must be one of {list(_DECISIONS)}, got {name!r}.")
    return decisions[name]
