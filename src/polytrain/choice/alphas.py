"""Choose the best of several alphas for a kernel, or of several models, by their errors on left-out rows.

Over alpha, the error nearly always has one minimum, so a few alphas near a good start find it. Very smooth kernels may
have two: where a small part of the rows shows that, all alphas are tried.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.dual import LeftOut, leave_one_out

__all__ = ["AlphaTrial", "Evidence", "find_alpha", "simplest", "strongest"]

# Errors that differ by no more than this fraction count as equal, so that rounding does not decide.
_SAME = 1e-3


@dataclass(frozen=True, eq=False)
class Evidence:
    """Squared errors, or other losses, (N,) of one model on rows left out of it, and weights (N,) that sum to 1."""

    squares: NDArray
    weights: NDArray

    @property
    def error(self) -> float:
        """Weighted mean of the squared errors."""
        return float(self.weights @ self.squares)

    def worse_than(self, other: Evidence) -> tuple[float, float]:
        """Return the excess of the error over that of another model on the same rows, and its standard error."""
        difference = self.squares - other.squares
        mean = float(self.weights @ difference)
        return mean, float(np.linalg.norm(self.weights * (difference - mean)))


def simplest(models: Sequence[Evidence], standard_errors: float = 1.0) -> int:
    """Return the index of the first model, given the simplest first, that is not clearly worse than the best.

    A difference is clear if it is larger than ``standard_errors`` times its standard error.

    >>> squares = [[1.0, 1.1, 0.9, 1.0], [0.7, 1.3, 1.2, 0.7], [0.5, 0.6, 0.4, 0.5]]
    >>> models = [Evidence(np.array(row), np.full(4, 0.25)) for row in squares]
    >>> simplest(models[:2]), simplest(models)
    (0, 2)
    """
    best = min(models, key=lambda evidence: evidence.error)
    for index, evidence in enumerate(models):
        mean, error = evidence.worse_than(best)
        if mean <= standard_errors * error + _SAME * best.error:
            return index
    raise AssertionError("the best one is never worse than itself")  # pragma: no cover


def strongest(errors: Sequence[float]) -> int:
    """Return the index of the first error that is as low as the lowest."""
    return int(np.argmax(np.array(errors) <= (1.0 + _SAME) * min(errors)))


# With at most this many rows all alphas are tried; with more, this many rows say where to begin.
_GUIDE_ROWS = 128
# An eigendecomposition, which serves all alphas, takes as long as trying this many of them.
_MOST_STEPS = 8
# With more rows than these, an eigendecomposition takes too long, whatever its gain.
_MANY_ROWS = 1500
# The search stops once the relative decrease of the error per step is at most this, and shrinking.
_FLAT = 1e-4
# A second minimum counts if it is at most this many times the first and the hill between is that high.
_DEEP, _HILL = 4.0, 1.02
# A competitor is out of reach if it is more than this many steps away, and this fraction of its error.
_STEPS_TO_GO, _FAR = 8, 0.01


class AlphaTrial(NamedTuple):
    """Leave-one-out residuals (N, q) with an alpha: targets minus scores learned from all other rows."""

    alpha: float
    evidence: Evidence
    residuals: NDArray


def find_alpha(
    kernel: NDArray,
    targets: NDArray,
    weights: NDArray,
    alphas: Sequence[float],
    near: float | None = None,
    rival: float | None = None,
    work: NDArray | None = None,
) -> AlphaTrial:
    """Find the strongest alpha whose error is as low as the lowest; only the upper triangle of the kernel is read.

    Shapes: kernel (N, N), targets (N, q), weights (N,) that sum to 1, work (N, N). The strongest alpha comes first. The
    search begins ``near`` one of them, or where a subset of the rows suggests. If this kernel cannot get close to the
    error of a ``rival``, any alpha that shows this is returned.

    >>> x = np.linspace(-1, 1, 9)
    >>> trial = find_alpha(1 + np.outer(x, x), (2 * x)[:, None], np.full(9, 1 / 9), [1.0, 1e-2, 1e-4])
    >>> trial.alpha, bool(np.abs(trial.residuals).max() < 1e-3)
    (0.0001, True)
    """
    try:
        trials = _walk(kernel, targets, weights, alphas, near, rival, work)
    except np.linalg.LinAlgError:
        trials = None
    if trials is None:
        every = leave_one_out(kernel, targets, weights, alphas)
        trials = [_trial(alpha, residuals, weights) for alpha, residuals in zip(alphas, every, strict=True)]
    return trials[strongest([trial.evidence.error for trial in trials])]


def _trial(alpha: float, residuals: NDArray, weights: NDArray) -> AlphaTrial:
    return AlphaTrial(alpha, Evidence(np.square(residuals).sum(axis=1), weights), residuals)


def _walk(
    kernel: NDArray,
    targets: NDArray,
    weights: NDArray,
    alphas: Sequence[float],
    near: float | None,
    rival: float | None,
    work: NDArray | None,
) -> list[AlphaTrial] | None:
    """Try alphas around the minimum, and return them, the strongest first; None where it is quicker to try all."""
    if len(alphas) > 1 and (len(alphas) <= _MOST_STEPS or len(kernel) <= _GUIDE_ROWS):
        return None
    start = _start(kernel, targets, weights, alphas, near)
    if start is None:
        return None
    left_out = LeftOut(kernel, targets, weights, work)

    def tried(index: int) -> AlphaTrial:
        return _trial(alphas[index], left_out(alphas[index]), weights)

    first = last = start
    trials = deque([tried(start)])
    while len(trials) < _MOST_STEPS:
        errors = [trial.evidence.error for trial in trials]
        if rival is not None and _is_out_of_reach(errors, rival):
            break
        # Stronger ones first: if one of them is better, those that are weaker need not be tried.
        if first > 0 and strongest(errors) == 0:
            first -= 1
            trials.appendleft(tried(first))
        elif last < len(alphas) - 1 and _falls(errors):
            last += 1
            trials.append(tried(last))
        else:
            break
    else:
        if len(kernel) <= _MANY_ROWS:
            return None
    return list(trials)


def _is_out_of_reach(errors: Sequence[float], rival: float) -> bool:
    """Whether steps as long as those at the ends do not reach a rival; they become shorter towards the minimum."""
    if len(errors) < 2:
        return False
    step = min(abs(errors[1] - errors[0]), abs(errors[-1] - errors[-2]))
    return min(errors) - rival > max(_STEPS_TO_GO * step, _FAR * rival)


def _falls(errors: Sequence[float]) -> bool:
    """Whether the last error is the lowest so far and still falling noticeably."""
    if min(errors) < errors[-1]:
        return False
    if len(errors) < 3:
        return True
    before, now = errors[-3] - errors[-2], errors[-2] - errors[-1]
    return now > before or now > _FLAT * errors[-1]


def _start(
    kernel: NDArray, targets: NDArray, weights: NDArray, alphas: Sequence[float], near: float | None
) -> int | None:
    """Return the index of the alpha to begin with; None if there seem to be two minima."""
    if len(alphas) == 1:
        return 0
    if near is not None and len(kernel) > _MANY_ROWS:
        return _nearest(alphas, near)
    some = slice(_GUIDE_ROWS)
    few = weights[some] / weights[some].sum()
    # Noise does not shrink with fewer rows, so alpha is larger.
    larger = [alpha * len(kernel) / len(few) for alpha in alphas]
    every = np.stack(list(leave_one_out(kernel[some, some], targets[some], few, larger)))
    errors = np.einsum("akq,akq,k->a", every, every, few).tolist()
    if _has_two_minima(errors):
        return None
    if near is not None:
        return _nearest(alphas, near)
    # The next weaker one: from there, the two that are likely take the fewest steps.
    return min(strongest(errors) + 1, len(alphas) - 1)


def _nearest(alphas: Sequence[float], near: float) -> int:
    return int(np.argmin(np.abs(np.log(alphas) - np.log(near))))


def _has_two_minima(errors: Sequence[float]) -> bool:
    least = int(np.argmin(errors))
    for side in (np.array(errors[least:]), np.array(errors[least::-1])):
        falls = _HILL * side < np.maximum.accumulate(side)
        if (falls & (side < _DEEP * side[0])).any():
            return True
    return False
