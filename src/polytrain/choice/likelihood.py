"""The logistic loss at the end of a fit: it refines scores learned with squares where left-out rows favour it.

The squared loss is fast and separates classes well; maximising the likelihood gives better probabilities.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polytrain.choice.alphas import Evidence, simplest
from polytrain.choice.calibration import calibrate, class_factors, held_out_losses, held_out_shift
from polytrain.choice.task import HeldOut, Task
from polytrain.learning.dual_logistic import LogisticSolution, solve_logistic, solve_multinomial

__all__ = ["ALPHA_SHARES", "exact_logistic", "finish_reason", "is_better", "likelihood"]

#: Alphas in units of that of the squared loss, whose curvature is eight times that of the logistic one at a score of 0.
ALPHA_SHARES = 1.0 / 2.0, 1.0 / 8.0, 1.0 / 32.0
# An increase of the errors within sampling noise does not count.
_ROUNDING = 1e-9
# Operations of all exact solutions with one alpha: a second or so.
_MOST_WORK = 1.5e10


def likelihood(task: Task, held_out: HeldOut, loss: str = "squared") -> tuple[Evidence, Evidence]:
    """Return log losses and errors of left-out rows after calibration, given their scores; equal rows count as one."""
    weights = held_out.label_weights * class_factors(task.targets, held_out.label_weights.shape[1])
    weights *= held_out.n_distinct / weights.sum()
    losses, errors = held_out_losses(held_out.scores, weights)
    _, place = np.unique(held_out.hashes, return_inverse=True)
    totals = np.bincount(place, weights.sum(axis=1))
    means = [np.bincount(place, each) / np.where(totals > 0, totals, 1.0) for each in (losses, errors)]
    means[0] += held_out_shift(held_out.scores, weights, loss)
    return Evidence(means[0], totals / totals.sum()), Evidence(means[1], totals / totals.sum())


def is_better(before: tuple[Evidence, Evidence], after: tuple[Evidence, Evidence]) -> bool:
    """Whether a model has a lower log loss than another, and no more errors."""
    return simplest([before[0], after[0]], 0.0) == 1 and after[1].error <= (1.0 + _ROUNDING) * before[1].error


def finish_reason(before: tuple[Evidence, Evidence], after: tuple[Evidence, Evidence]) -> str:
    """Return the reason why the logistic loss follows the squared one."""
    return f"the logistic loss lowers the log loss of left-out rows from {before[0].error:.4g} to {after[0].error:.4g}"


def exact_logistic(
    task: Task, kernel: NDArray, alpha: float, coefficients: NDArray, held_out: HeldOut
) -> tuple[float, LogisticSolution, HeldOut] | None:
    """Return the alpha and the exact solution of the logistic loss, with its scores of left-out rows, if it is better.

    It starts from the solution of the squared loss, coefficients (N, n_trains), with that alpha and these scores.
    """
    rows, is_open = task.choice_rows, task.may_finish and task.settings.alpha == "auto"
    if not is_open or len(task.targets) * float(len(kernel)) ** 3 > _MOST_WORK:
        return None
    labels, n_rows = held_out.label_weights, held_out.n_distinct
    size, _ = calibrate(held_out.scores, labels, n_rows, task.targets, task.is_joint)
    before = best = likelihood(task, held_out)
    chosen = None
    for share in ALPHA_SHARES:
        start = size * coefficients
        if task.is_joint:
            solution = solve_multinomial(kernel, rows.targets, rows.weights, share * alpha, start)
        else:
            solution = solve_logistic(kernel, rows.targets[:, 0], rows.weights, share * alpha, start[:, 0])
        scored = held_out._replace(scores=solution.left_out)
        if np.isfinite(solution.left_out).all() and is_better(best, tried := likelihood(task, scored, "logistic")):
            best, chosen = tried, (share * alpha, solution, scored)
    if chosen is not None:
        task.reasons.append(finish_reason(before, best))
    return chosen
