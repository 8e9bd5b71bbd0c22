"""Calibrate scores as probabilities: a logistic regression of the labels on the scores of held-out rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax

from polytrain.learning.targets import NumberTarget, Target

__all__ = ["calibrate", "class_factors", "fit_log_odds", "fit_softmax", "held_out_losses", "held_out_shift"]

# Least and largest number of Newton steps.
_CLOSE, _DONE = 1e-6, 1e-14
_MOST_STEPS, _LEAST_SLOPE, _LARGEST_SLOPE = 100, 1e-3, 1e6
# Scores that hardly differ say nothing: their spread counts as at least this, and a prior worth this many rows holds
# back their slope.
_LEAST_SPREAD, _PRIOR = 0.05, 0.1
# A score s of the squared loss, for targets -1 and 1, says (1 + s) / 2: log-odds of about 2 s.
_USUAL_FACTOR = 2.0


def calibrate(
    scores: NDArray,
    labels: NDArray,
    n_rows: float,
    targets: Sequence[Target],
    is_joint: bool,
    sizes: NDArray | None = None,
) -> tuple[NDArray, NDArray]:
    """Return factors and shifts (n_trains,) that turn scores (N, n_trains) of held-out rows into log-odds.

    ``labels`` (N, m) are the weights of every row at its label, or (N, m + 1) at any number of labels and in all, and
    ``n_rows`` is how many rows they count as together. Joint scores become logarithms of probabilities, up to a
    constant. Given ``sizes`` are kept, and only the shifts are estimated.
    """
    weights = labels * class_factors(targets, labels.shape[1])  # as in the fit: a class may lack held-out rows
    is_each = isinstance(targets[0], NumberTarget)
    weights *= n_rows / (weights[:, -1] if is_each else weights).sum()
    if is_joint:
        return fit_softmax(scores, weights, None if sizes is None else float(sizes[0]))
    fitted = []
    kept = [None] * len(targets) if sizes is None else sizes.tolist()
    for target, column, factor in zip(targets, scores.T, kept, strict=True):
        if isinstance(target, NumberTarget):
            positive, negative = weights[:, target.output], weights[:, -1] - weights[:, target.output]
        else:
            code = target.wanted(np.arange(labels.shape[1]))[0]
            positive, negative = (weights[:, code == sign].sum(axis=1) for sign in (1.0, -1.0))
        used = positive + negative > 0
        fitted.append(fit_log_odds(column[used], positive[used], negative[used], factor))
    size, shift = np.array(fitted).T
    return size, shift


def class_factors(targets: Sequence[Target], n_classes: int) -> NDArray:
    """Weights of the classes in the fit, (m,)."""
    return np.max([target.wanted(np.arange(n_classes))[1] for target in targets], axis=0)


def fit_log_odds(
    scores: NDArray, positive: NDArray, negative: NDArray, factor: float | None = None
) -> tuple[float, float]:
    """Find factor and shift that turn the scores (N,) of a two-class problem into log-odds, on held-out rows.

    Rows weigh ``positive`` (N,) in one class and ``negative`` (N,) in the other, in units of a row. Labels count as
    slightly uncertain, as if one more row of each class had been seen (Platt's rule): otherwise, scores that separate
    the classes perfectly would give probabilities of 0 and 1. A given factor is kept, and only the shift is estimated.
    Rows of a single class do not determine the factor: it is then 2, which suits scores of the squared loss. Without
    any rows, the scores stay as they are.

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
    a few rows cannot determine several; it is returned once per class, (m,), beside the shifts, (m,). Labels count as
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

    def cost(theta: NDArray) -> float:
        z = theta[0] * x + theta[1:]
        likely = float(totals @ logsumexp(z, axis=1) - np.sum(wanted * z))
        return (likely + _PRIOR / 2.0 * float(theta[1:] @ theta[1:])) / count

    theta = np.zeros(1 + n_classes)
    theta[0] = 1.0 if factor is None else factor * size
    free, now = slice(0 if factor is None else 1, None), cost(theta)
    for _ in range(_MOST_STEPS):
        chances = softmax(theta[0] * x + theta[1:], axis=1)
        slopes = totals[:, None] * chances - wanted
        slope = np.concatenate([[np.sum(slopes * x)], slopes.sum(axis=0) + _PRIOR * theta[1:]]) / count
        spread = totals[:, None] * chances * (x - np.sum(chances * x, axis=1, keepdims=True))
        curvature = np.empty((1 + n_classes, 1 + n_classes))
        curvature[0, 0] = np.sum(spread * x)
        curvature[0, 1:] = curvature[1:, 0] = spread.sum(axis=0)
        curvature[1:, 1:] = np.diag(totals @ chances + _PRIOR) - (totals[:, None] * chances).T @ chances
        # All scores may be equal; then no factor is best.
        step = np.zeros(1 + n_classes)
        step[free] = np.linalg.lstsq(curvature[free, free] / count, slope[free], rcond=1e-12)[0]
        largest = np.abs(step).max()
        # Near the minimum, costs determine the parameters to half of the digits only.
        while largest > _CLOSE and not cost(theta - step) <= now:
            step, largest = step / 2.0, largest / 2.0
        theta = theta - step
        if factor is None and not _LEAST_SLOPE <= theta[0] <= _LARGEST_SLOPE:
            theta[0], free = np.clip(theta[0], _LEAST_SLOPE, _LARGEST_SLOPE), slice(1, None)
        elif largest <= _DONE:
            break
        now = cost(theta)
    if factor is None:
        factor = float(theta[0]) / size
    return np.full(n_classes, factor), theta[1:] - factor * centre


def held_out_losses(scores: NDArray, labels: NDArray) -> tuple[NDArray, NDArray]:
    """Return log losses of held-out rows, and whether the most likely class is wrong, (N,) each, in units of a weight.

    Scores (N, 1) tell the second class from the first, and scores (N, m) are those of the classes; ``labels`` are as
    for `calibrate`, times the weights of the classes in the fit. They are calibrated on the same rows.
    """
    if scores.shape[1] == 1:
        factor, shift = fit_log_odds(scores[:, 0], labels[:, 1], labels[:, 0])
        likely = np.array([-0.5, 0.5]) * (factor * scores + shift)
    else:
        factors, shifts = fit_softmax(scores, labels)
        likely = factors * scores + shifts
    losses = -np.sum(labels * log_softmax(likely, axis=1), axis=1)
    right = np.take_along_axis(labels, likely.argmax(axis=1)[:, None], axis=1)[:, 0]
    return losses, labels.sum(axis=1) - right


def held_out_shift(scores: NDArray, labels: NDArray, loss: str) -> float:
    """Return the squared distance of mean probabilities from the shares of the labels, in units of their variance.

    Calibration would hide it: scores of held-out rows alone may be shifted, or all scores shrink if alpha is large.
    Shapes are those of `held_out_losses`; the scores were learned with this loss.
    """
    totals, shares = labels.sum(axis=1), labels.sum(axis=0) / labels.sum()
    if scores.shape[1] == 1:
        shares = shares[1:]
    if loss == "squared":
        chances = (1.0 + scores) / 2.0
    else:
        chances = expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1)
    shift = np.square(totals @ chances / totals.sum() - shares).sum()
    return float(shift / max(float(shares @ (1.0 - shares)), np.finfo(float).eps))
