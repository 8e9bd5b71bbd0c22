"""Binary trains -> classes: which binary problems to learn, and how their scores become a decision.

Conventions
-----------
``classes`` are indices 0 .. m-1. A strategy is a code matrix of shape (n_trains, m) with entries -1, 0, 1: train t
learns to tell the classes with code 1 from those with code -1 and never sees those with code 0. Train scores have
shape (n_trains, N); decisions and log-probabilities have shape (N, m) and a larger value means more likely.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

__all__ = ["DECISIONS", "BinaryCode", "Decision", "OneVsOne", "OneVsRest", "get_decision"]


class Decision:
    """A way to reduce m classes to binary problems and back."""

    name: str

    def code(self, n_classes: int) -> NDArray:
        """Return the code matrix of shape (n_trains, m)."""
        raise NotImplementedError

    def n_trains(self, n_classes: int) -> int:
        """Return the number of trains without forming the code matrix. Two classes need one train only."""
        raise NotImplementedError

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return a number per row and class whose largest entry is the decision."""
        raise NotImplementedError

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Return log-probabilities, given scores that are log-odds."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _normalised(logs: NDArray) -> NDArray:
    return logs - logsumexp(logs, axis=1, keepdims=True)


def _squash(sums: NDArray) -> NDArray:
    """Map any number into (-1/3, 1/3), keeping the order: breaks ties between integers and changes nothing else."""
    return sums / (3.0 * (np.abs(sums) + 1.0))


class OneVsRest(Decision):
    """One train per class; the largest score wins.

    Examples
    --------
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
        return n_classes if n_classes > 2 else 1

    def decide(self, scores: NDArray, n_classes: int) -> NDArray:
        """The scores themselves."""
        return scores.T

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Each class's own probability, normalised over the classes."""
        return _normalised(-np.logaddexp(0.0, -scores.T))


class OneVsOne(Decision):
    """One train per pair of classes; the majority vote wins, ties go to the larger sum of scores.

    Probabilities couple the pairs as p_i ~ 1 / (1 + sum over j of exp(-s_ij)), which is exact when the pairwise
    log-odds s_ij are consistent (Price, Knerr, Personnaz and Dreyfus, 1994).

    Examples
    --------
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
        code = self.code(n_classes)
        votes = np.where(scores > 0, 1.0, 0.0).T @ (code > 0) + np.where(scores > 0, 0.0, 1.0).T @ (code < 0)
        return votes + _squash(scores.T @ code)

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Pairwise coupling."""
        against = np.full((scores.shape[1], n_classes, n_classes), -np.inf)
        against[:, range(n_classes), range(n_classes)] = 0.0
        for score, (i, j) in zip(scores, combinations(range(n_classes), 2), strict=True):
            against[:, i, j] = -score
            against[:, j, i] = score
        return _normalised(-logsumexp(against, axis=2))


class BinaryCode(Decision):
    """ceil(log2 m) trains, one per bit of the class index; the nearest code word wins, ties go to the larger margin.

    Examples
    --------
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
        return (agreement - len(code)) / 2.0 + _squash(scores.T @ code)

    def log_probabilities(self, scores: NDArray, n_classes: int) -> NDArray:
        """Bits taken as independent, normalised over the code words in use."""
        code = self.code(n_classes)
        agree, differ = -np.logaddexp(0.0, -scores.T), -np.logaddexp(0.0, scores.T)
        return _normalised(agree @ (code > 0) + differ @ (code < 0))


_DECISIONS: dict[str, Decision] = {decision.name: decision for decision in (OneVsRest(), OneVsOne(), BinaryCode())}
DECISIONS = tuple(_DECISIONS)


def get_decision(name: str) -> Decision:
    """Return the decision strategy of that name.

    Examples
    --------
    >>> get_decision("one-vs-one")
    OneVsOne()
    """
    if name not in _DECISIONS:
        raise ValueError(f"decision must be one of {sorted(_DECISIONS)}, got {name!r}.")
    return _DECISIONS[name]
