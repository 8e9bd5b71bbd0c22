"""From scores of any size to probabilities: a logistic regression of labels on scores of rows that were held out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp, softmax

__all__ = ["fit_log_odds", "fit_softmax"]

_MOST_STEPS, _LEAST_SLOPE, _LARGEST_SLOPE = 100, 1e-3, 1e6
# Scores that hardly differ say nothing: their spread counts as at least this, and a prior worth this many rows holds
# back their slope.
_LEAST_SPREAD, _PRIOR = 0.05, 0.1
# A score s of the squared loss, for targets -1 and 1, says (1 + s) / 2: log-odds of about 2 s.
_USUAL_FACTOR = 2.0


def fit_log_odds(
    scores: NDArray, positive: NDArray, negative: NDArray, factor: float | None = None
) -> tuple[float, float]:
    """Find factor and shift that turn the scores (N,) of a two-class problem into log-odds, on held-out rows.

    Rows weigh ``positive`` (N,) in one class and ``negative`` (N,) in the other, in units of a row. Labels count as a
    little less than certain, as if one more row of each class had been seen: scores that separate the classes perfectly
    would otherwise mean certainty (Platt's rule). A given factor is kept, and only the shift is found. Rows of one
    class say nothing about the factor: it is 2 for them, which suits scores of the squared loss. Without any row, the
    scores stay as they are.

    >>> scores = np.array([-1.0, -0.5, 0.1, -0.1, 0.4, 0.9])
    >>> positive = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    >>> factor, shift = fit_log_odds(scores, positive, 1.0 - positive)
    >>> bool(factor > 1 and abs(shift) < 0.5)
    True
    """
    n_positive, n_negative = positive.sum(), negative.sum()
    sure, unsure = (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0)
    total = positive + negative
    if not total.any():
        return 1.0, 0.0
    wanted = positive * sure + negative * unsure  # weight that speaks for the positive class
    centre = float(np.average(scores, weights=total))
    size = max(float(np.sqrt(np.average(np.square(scores - centre), weights=total))), _LEAST_SPREAD)
    x = np.stack([(scores - centre) / size, np.ones(len(scores))], axis=1)
    prior = np.array([_PRIOR, 0.0])
    if factor is None and not (n_positive > 0 and n_negative > 0):
        factor = _USUAL_FACTOR

    def cost(theta: NDArray) -> float:
        z = x @ theta
        likely = float(wanted @ log_expit(z) + (total - wanted) @ log_expit(-z))
        return float(prior @ np.square(theta)) / 2.0 - likely

    theta = np.array([1.0 if factor is None else factor * size, np.log((n_positive + 1.0) / (n_negative + 1.0))])
    now = cost(theta)
    for _ in range(_MOST_STEPS):
        chance = expit(x @ theta)
        slope = x.T @ (total * chance - wanted) + prior * theta
        curvature = (x.T * (total * chance * (1.0 - chance))) @ x + np.diag(prior) + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, slope) if factor is None else np.array([0.0, slope[1] / curvature[1, 1]])
        length = 1.0
        while (following := cost(theta - length * step)) > now and length > 1e-6:
            length /= 2
        if not following < now * (1.0 - 1e-12):
            break
        theta, now = theta - length * step, following
    if factor is None:
        factor = max(float(theta[0]), _LEAST_SLOPE) / size
    return factor, float(theta[1]) - factor * centre


def fit_softmax(scores: NDArray, weights: NDArray, factor: float | None = None) -> tuple[NDArray, NDArray]:
    """Find factor and shifts that turn scores (N, m) into logarithms of probabilities, up to a constant.

    The weights (N, m) are those of every held-out row at its label, in units of a row. All classes share one factor:
    few rows say too little about several; it is returned once per class, (m,), beside the shifts, (m,). Labels count as
    a little less than certain, as if one more row had been seen that speaks for all classes alike. A given factor is
    kept. Rows of one class say nothing about it: it is m / 2 for them, which suits scores of the squared loss.

    >>> scores = np.array([[1.0, -1.0, -1.0], [-1.0, 0.5, -0.5], [-1.0, -1.0, 1.0], [0.1, 0.0, -1.0]])
    >>> factor, shift = fit_softmax(scores, np.eye(3)[[0, 1, 2, 1]])
    >>> bool(factor[0] > 1 and np.ptp(factor) == 0)
    True
    """
    n_classes, count = scores.shape[1], weights.sum()
    totals = weights.sum(axis=1)
    if not count > 0:
        return np.ones(n_classes), np.zeros(n_classes)
    wanted = (weights * count + totals[:, None] / n_classes) / (count + 1.0)
    centre = np.average(scores, axis=0, weights=totals)
    spread = float(np.sqrt(np.average(np.square(scores - centre).mean(axis=1), weights=totals)))
    size = max(spread, _LEAST_SPREAD)
    x = (scores - centre) / size
    if factor is None and np.count_nonzero(weights.sum(axis=0)) < 2:
        factor = _USUAL_FACTOR * n_classes / 4.0  # (1 + s) / 2 near 1 / m has a logarithm of slope m / 2

    def cost(theta: NDArray) -> tuple[float, NDArray]:
        stretch, shift = np.exp(theta[0]), theta[1:]
        z = stretch * x + shift
        chances = softmax(z, axis=1)
        value = float(totals @ logsumexp(z, axis=1) - np.sum(wanted * z)) + _PRIOR / 2.0 * float(shift @ shift)
        slopes = totals[:, None] * chances - wanted
        slope = np.concatenate([[stretch * np.sum(slopes * x)], slopes.sum(axis=0) + _PRIOR * shift])
        return value / count, slope / count

    def curvature(theta: NDArray) -> NDArray:
        stretch = np.exp(theta[0])
        chances = softmax(stretch * x + theta[1:], axis=1)
        moved = totals[:, None] * chances * stretch * (x - np.sum(chances * x, axis=1, keepdims=True))
        matrix = np.empty((1 + n_classes, 1 + n_classes))
        matrix[0, 0] = stretch * np.sum(moved * x + (totals[:, None] * chances - wanted) * x)
        matrix[0, 1:] = matrix[1:, 0] = moved.sum(axis=0)
        matrix[1:, 1:] = np.diag(totals @ chances + _PRIOR) - (totals[:, None] * chances).T @ chances
        return matrix / count

    start, ends = np.zeros(1 + n_classes), (np.log(_LEAST_SLOPE), np.log(_LARGEST_SLOPE))
    if factor is not None:
        start[0] = np.log(factor * size)
        ends = start[0], start[0]
    bounds = [ends, *[(-np.inf, np.inf)] * n_classes]
    options: Any = {"maxiter": _MOST_STEPS, "ftol": 1e-14, "gtol": 1e-10}
    found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    # Costs tell parameters apart to half of the digits only; with Newton's steps, fits that differ by rounding agree.
    free = slice(0 if ends[0] < found[0] < ends[1] else 1, None)
    for _ in range(2):
        # Scores may all be the same: no factor is the best then.
        step = np.linalg.lstsq(curvature(found)[free, free], cost(found)[1][free], rcond=1e-12)[0]
        if not np.abs(step).max() < 1e-3:
            break
        found[free] -= step
    if factor is None:
        factor = float(np.exp(found[0])) / size
    return np.full(n_classes, factor), found[1:] - factor * centre
