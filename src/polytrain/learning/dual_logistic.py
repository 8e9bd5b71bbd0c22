"""The kernel view of a train with the logistic loss: Newton's method, and scores that are learned from all other rows.

Each step is ridge regression, see `polytrain.learning.dual`. With probabilities p, the curvature of row j is
b_j = w_j p_j (1 - p_j), its working target u_j = z_j + (t_j - p_j) / (p_j (1 - p_j)), and the coefficients c of the
next scores z = K c solve (K + alpha diag(1 / b)) c = u. At the minimum, the same formula as for ridge regression tells
what the score of a row would be without it, to first order: u_j - c_j / H_jj with H the inverse of that matrix, or
z_j - c_j (1 / H_jj - alpha / b_j).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, logsumexp, softmax

from polytrain.arrays import Array
from polytrain.learning.dual import inverse_kernel, solve_dual

__all__ = ["LogisticSolution", "solve_logistic", "solve_multinomial"]

# Newton steps of a solution, and halvings of a step that does not lower the objective. The steps end where the
# objective falls by less than this part of it.
_MOST_STEPS, _MOST_HALVINGS, _ENOUGH = 20, 10, 1e-6
# Rounds over all classes, a step each; they end when scores change by less than this on average.
_MOST_TURNS, _STILL = 16, 1e-2
# Least curvature of a row of weight 1: rows with certain labels hardly count.
_FLAT = 1e-6


class LogisticSolution(NamedTuple):
    """Coefficients of the rows, and the score of each row as learned from all others, both (N, q)."""

    coefficients: Array
    left_out: Array


def solve_logistic(kernel: Array, targets: Array, weights: Array, alpha: float, start: Array) -> LogisticSolution:
    """Minimise the weighted mean of the logistic losses plus alpha / 2 <A, A>, from some coefficients.

    Shapes: kernel (N, N), targets (N,) in [-1, 1], weights (N,) that sum to 1, start (N,). A target between the ends
    is that of several equal rows.
    """
    zero = np.zeros(len(targets))
    coefficients = _newton(kernel, targets, weights, alpha, start, zero, _MOST_STEPS)
    _, curvature = _working(targets, weights, kernel @ coefficients, zero)
    left_out = _left_out(kernel, curvature, alpha, coefficients)
    return LogisticSolution(coefficients[:, None], left_out[:, None])


def solve_multinomial(kernel: Array, targets: Array, weights: Array, alpha: float, start: Array) -> LogisticSolution:
    """Do the same for the softmax of q scores, with targets and start (N, q): one class after another, in rounds."""
    coefficients = start.copy()
    scores = kernel @ coefficients
    for _ in range(_MOST_TURNS):
        before = scores.copy()
        for index, target in enumerate(targets.T):
            own = _newton(kernel, target, weights, alpha, coefficients[:, index], _offset(scores, index), 1)
            coefficients[:, index], scores[:, index] = own, kernel @ own
        if np.abs(scores - before).mean() < _STILL:
            break
    left_out = np.empty_like(scores)
    for index, target in enumerate(targets.T):
        _, curvature = _working(target, weights, scores[:, index], _offset(scores, index))
        # The other scores of a row would change, too: its curvature is larger the fewer classes it may belong to.
        others = softmax(np.delete(scores, index, axis=1), axis=1)
        curvature *= 1.0 + np.square(others).sum(axis=1)
        left_out[:, index] = _left_out(kernel, curvature, alpha, coefficients[:, index])
    return LogisticSolution(coefficients, left_out)


def _offset(scores: Array, index: int) -> Array:
    """The contribution of the other classes' scores to the log-odds of a class."""
    offset: Array = -logsumexp(np.delete(scores, index, axis=1), axis=1)
    return offset


def _newton(
    kernel: Array, targets: Array, weights: Array, alpha: float, start: Array, offset: Array, most: int
) -> Array:
    coefficients, scores = start, kernel @ start

    def objective(scores: Array, coefficients: Array) -> float:
        z, share = scores + offset, (1.0 + targets) / 2.0
        return float(-weights @ (share * log_expit(z) + (1.0 - share) * log_expit(-z))) + (
            alpha / 2.0 * float(coefficients @ scores)
        )

    now = objective(scores, coefficients)
    for _ in range(most):
        working, curvature = _working(targets, weights, scores, offset)
        # The squared loss has twice the curvature of its weight.
        step = solve_dual(kernel, working, curvature, 2.0 * alpha) - coefficients
        change = kernel @ step
        for _ in range(_MOST_HALVINGS):
            following = objective(scores + change, coefficients + step)
            if following <= now:
                break
            step, change = step / 2.0, change / 2.0
        else:
            break
        coefficients, scores, before, now = coefficients + step, scores + change, now, following
        if before - now <= _ENOUGH * before:
            break
    return coefficients


def _left_out(kernel: Array, curvature: Array, alpha: float, coefficients: Array) -> Array:
    """Scores (N,) of the rows, each without its own influence."""
    diagonal = np.diagonal(inverse_kernel(kernel, curvature, 2.0 * alpha))
    influence = np.divide(1.0, diagonal, out=np.zeros(len(kernel)), where=diagonal > 0) - alpha / curvature
    left_out: Array = kernel @ coefficients - np.maximum(influence, 0.0) * coefficients
    return left_out


def _working(targets: Array, weights: Array, scores: Array, offset: Array) -> tuple[Array, Array]:
    """Targets and curvatures of the ridge regression whose solution is a Newton step from these scores."""
    chance = expit(scores + offset)
    flat = np.maximum(chance * (1.0 - chance), _FLAT)
    working: Array = scores + ((1.0 + targets) / 2.0 - chance) / flat
    return working, weights * flat
