"""The best of several alphas for a kernel, and of several models, by errors on rows that were left out.

Over alpha, the error nearly always is one valley. So few alphas tell where its minimum is, if the first of them is
near. Very smooth kernels may have two: where a few of the rows show that, all alphas are tried.
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

#: Errors that differ by no more than this part are the same: rounding must not decide.
_SAME = 1e-3


@dataclass(frozen=True, eq=False)
class Evidence:
    """Squared errors, or other losses, of one model on rows that it has not learned from.

    Attributes
    ----------
    squares : ndarray of shape (N,)
        Squared error or loss of every row, summed over the targets.
    weights : ndarray of shape (N,)
        Weights of the rows, which sum to 1.
    """

    squares: NDArray
    weights: NDArray

    @property
    def error(self) -> float:
        """Weighted mean of the squared errors."""
        return float(self.weights @ self.squares)

    def worse_than(self, other: Evidence) -> tuple[float, float]:
        """How much larger the error is than that of another model on the same rows, and the standard error of that."""
        difference = self.squares - other.squares
        mean = float(self.weights @ difference)
        return mean, float(np.linalg.norm(self.weights * (difference - mean)))


def simplest(found: Sequence[Evidence], standard_errors: float = 1.0) -> int:
    """Index of the first of these models, the simplest one first, that is not clearly worse than the best.

    A difference is clear if it is larger than ``standard_errors`` times its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.choice.alphas import Evidence, simplest
    >>> squares = [[1.0, 1.1, 0.9, 1.0], [0.7, 1.3, 1.2, 0.7], [0.5, 0.6, 0.4, 0.5]]
    >>> found = [Evidence(np.array(row), np.full(4, 0.25)) for row in squares]
    >>> simplest(found[:2]), simplest(found)
    (0, 2)
    """
    best = found[int(np.argmin([evidence.error for evidence in found]))]
    for index, evidence in enumerate(found):
        mean, error = evidence.worse_than(best)
        if mean <= standard_errors * error + _SAME * best.error:
            return index
    raise AssertionError("the best one is never worse than itself")  # pragma: no cover


def strongest(errors: Sequence[float]) -> int:
    """Index of the first error that is as good as the least."""
    return int(np.argmax(np.array(errors) <= (1.0 + _SAME) * min(errors)))


# With at most this many rows all alphas are tried; with more, a guess from this many rows says where to begin.
_GUIDE_ROWS = 128
# An eigendecomposition, which serves all alphas, takes as long as trying this many of them.
_MOST_STEPS = 8
# Error, relative, that falls by no more than this from alpha to alpha and ever less has reached the ground.
_FLAT = 1e-4
# A second minimum is worth a look if it is at most this many times the first and the hill between is that high.
_DEEP, _HILL = 4.0, 1.02
# A rival is out of reach if it is more than this many steps away, and this part of its error.
_STEPS_TO_GO, _FAR = 8, 0.01


class AlphaTrial(NamedTuple):
    """What leaving rows out says about an alpha.

    Attributes
    ----------
    alpha : float
    evidence : Evidence
    residuals : ndarray of shape (N, q)
        Targets minus scores that were learned from all other rows.
    """

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
    """Find the strongest alpha whose error is as good as the least.

    Parameters
    ----------
    kernel : ndarray of shape (N, N)
        Only the part on and above the diagonal is read.
    targets : ndarray of shape (N, q)
    weights : ndarray of shape (N,)
        They sum to 1.
    alphas : sequence of float
        The strongest first.
    near : float, optional
        Where to begin. Without it, a few of the rows say where.
    rival : float, optional
        The error of another kernel. If this one cannot come near it, any alpha will do that shows so.
    work : ndarray of shape (N, N), optional
        Room to work in.

    Returns
    -------
    AlphaTrial

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.choice.alphas import find_alpha
    >>> x = np.linspace(-1, 1, 9)
    >>> trial = find_alpha(1 + np.outer(x, x), (2 * x)[:, None], np.full(9, 1 / 9), [1.0, 1e-2, 1e-4])
    >>> trial.alpha, bool(np.abs(trial.residuals).max() < 1e-3)
    (0.0001, True)
    """
    try:
        found = _walk(kernel, targets, weights, alphas, near, rival, work)
    except np.linalg.LinAlgError:
        found = None
    if found is None:
        every = leave_one_out(kernel, targets, weights, alphas)
        found = [_trial(alpha, residuals, weights) for alpha, residuals in zip(alphas, every, strict=True)]
    return found[strongest([trial.evidence.error for trial in found])]


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
    """Alphas around the ground of the valley, the strongest first; None where it is quicker to try all."""
    if 1 < len(alphas) <= _MOST_STEPS or (len(alphas) > 1 and len(kernel) <= _GUIDE_ROWS):
        return None
    start = _start(kernel, targets, weights, alphas, near)
    if start is None:
        return None
    left_out = LeftOut(kernel, targets, weights, work)

    def tried(index: int) -> AlphaTrial:
        return _trial(alphas[index], left_out(alphas[index]), weights)

    first = last = start
    found = deque([tried(first)])
    while len(found) < _MOST_STEPS:
        errors = [trial.evidence.error for trial in found]
        if rival is not None and _is_out_of_reach(errors, rival):
            break
        # Stronger ones first: if one of them is better, those that are weaker need not be tried.
        if first > 0 and strongest(errors) == 0:
            first -= 1
            found.appendleft(tried(first))
        elif last < len(alphas) - 1 and _falls(errors):
            last += 1
            found.append(tried(last))
        else:
            break
    else:
        return None
    return list(found)


def _is_out_of_reach(errors: Sequence[float], rival: float) -> bool:
    """Whether steps like those at the ends lead nowhere near a rival; towards the ground they become shorter."""
    if len(errors) < 2:
        return False
    step = min(abs(errors[1] - errors[0]), abs(errors[-1] - errors[-2]))
    return min(errors) - rival > max(_STEPS_TO_GO * step, _FAR * rival)


def _falls(errors: Sequence[float]) -> bool:
    """Whether the last error is the least, and more is to be gained beyond it."""
    if min(errors) < errors[-1]:
        return False
    if len(errors) < 3:
        return True
    before, now = errors[-3] - errors[-2], errors[-2] - errors[-1]
    return now > before or now > _FLAT * errors[-1]


def _start(
    kernel: NDArray, targets: NDArray, weights: NDArray, alphas: Sequence[float], near: float | None
) -> int | None:
    """Index of the alpha to begin with; None if there seem to be two valleys."""
    if len(alphas) == 1:
        return 0
    some = slice(_GUIDE_ROWS)
    few = weights[some] / weights[some].sum()
    # Noise does not shrink with fewer rows: alpha is larger as they are fewer.
    larger = [alpha * len(kernel) / len(few) for alpha in alphas]
    every = np.stack(list(leave_one_out(kernel[some, some], targets[some], few, larger)))
    errors = np.einsum("akq,akq,k->a", every, every, few).tolist()
    if _has_two_minima(errors):
        return None
    if near is not None:
        return int(np.argmin(np.abs(np.log(alphas) - np.log(near))))
    # The next weaker one: from there, the two that are likely take the fewest steps.
    return min(strongest(errors) + 1, len(alphas) - 1)


def _has_two_minima(errors: Sequence[float]) -> bool:
    """Whether the error falls again behind a hill, to less than some times the least."""
    least = int(np.argmin(errors))
    for side in (np.array(errors[least:]), np.array(errors[least::-1])):
        falls = _HILL * side < np.maximum.accumulate(side)
        if (falls & (side < _DEEP * side[0])).any():
            return True
    return False
