"""From scores of any size to log-odds: a logistic regression of the labels on scores of rows that were held out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

__all__ = ["fit_log_odds"]

_MOST_STEPS, _LEAST_SLOPE = 100, 1e-3
# Scores that hardly differ say nothing: their spread counts as this, and their slope is held back as by so many rows.
_LEAST_SPREAD, _PRIOR = 0.05, 0.1


def fit_log_odds(scores: NDArray, positive: NDArray, negative: NDArray) -> tuple[float, float]:
    """Find factor and shift that turn the scores of a two-class problem into log-odds.

    Labels count as a little less than certain, as if one more row of each class had been seen: scores that tell the
    classes apart without a fault would otherwise mean certainty (Platt's rule).

    Parameters
    ----------
    scores : ndarray of shape (N,)
        Scores of rows that the train has not learned from.
    positive, negative : ndarray of shape (N,)
        Weight of every row in either class, in units of a row.

    Returns
    -------
    factor, shift : float
        The factor is positive. Without any row, the scores stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.choice.calibration import fit_log_odds
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

    def cost(theta: NDArray) -> float:
        z = x @ theta
        likely = float(wanted @ log_expit(z) + (total - wanted) @ log_expit(-z))
        return float(prior @ np.square(theta)) / 2.0 - likely

    theta = np.array([1.0, np.log((n_positive + 1.0) / (n_negative + 1.0))])
    now = cost(theta)
    for _ in range(_MOST_STEPS):
        chance = expit(x @ theta)
        slope = x.T @ (total * chance - wanted) + prior * theta
        curvature = (x.T * (total * chance * (1.0 - chance))) @ x + np.diag(prior) + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, slope)
        length = 1.0
        while (following := cost(theta - length * step)) > now and length > 1e-6:
            length /= 2
        if not following < now * (1.0 - 1e-12):
            break
        theta, now = theta - length * step, following
    factor = max(float(theta[0]), _LEAST_SLOPE) / size
    return factor, float(theta[1]) - factor * centre
