"""How large errors are where the train has not learned, and how far its doubts are to be trusted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit_noise"]

# How much doubts may be stretched: by nothing unless rows that were left out speak clearly for another factor.
_STRETCHES = (1.0, 1 / 16, 1 / 4, 4.0, 16.0, 64.0)
# It is clear if the gain is larger than so many of its standard errors.
_CLEARLY = 2.0


def fit_noise(errors: NDArray, leverages: NDArray, weights: NDArray) -> tuple[float, float]:
    """Find the variance of the noise, and a factor of the leverages, under which left-out errors are likely.

    An error is taken to be normal with the variance ``noise * (1 + stretch * leverage)``.

    Parameters
    ----------
    errors : ndarray of shape (N,)
        Of different rows that the train has not learned from.
    leverages : ndarray of shape (N,)
    weights : ndarray of shape (N,)

    Returns
    -------
    noise, stretch : float

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> leverages = rng.uniform(0, 9, 2000)
    >>> noise, stretch = fit_noise(2 * np.sqrt(1 + leverages) * rng.normal(size=2000), leverages, np.ones(2000))
    >>> round(noise, 1), stretch
    (4.0, 1.0)
    """
    weights = weights / weights.sum()
    size = float(np.abs(errors).max(initial=0.0))
    if not size > 0.0:
        return 0.0, 1.0
    squares = np.square(errors / size)
    found = []
    for stretch in _STRETCHES:
        factors = 1.0 + stretch * leverages
        noise = max(float(weights @ (squares / factors)), float(np.finfo(float).tiny))
        found.append((np.log(noise * factors) + squares / (noise * factors), noise, stretch))
    costs = [float(weights @ cost) for cost, _, _ in found]
    least = int(np.argmin(costs))
    gain = found[0][0] - found[least][0]
    mean = float(weights @ gain)
    chosen = found[least if mean > _CLEARLY * float(np.linalg.norm(weights * (gain - mean))) else 0]
    return chosen[1] * size * size, chosen[2]
