"""Where a train begins before the first sweep: right-orthogonal cores with the ranks asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.core_solvers import solve_linear
from polytrain.learning.engines.protocol import Engine
from polytrain.learning.gauge import fit_ranks

__all__ = ["linear_cores", "linear_start", "random_start"]


def linear_cores(bias: float, weights: NDArray, dims: Sequence[int]) -> list[NDArray]:
    """Write bias + weights . x as a train of rank 2, exactly.

    Reading from the right, the two channels behind core k carry 1 and the sum over l > k of weights[l] x_l.
    """
    d = len(dims)
    cores = []
    for k, n in enumerate(dims):
        core = np.zeros((2, n, 2))
        core[0, 0, 0] = 1.0
        core[1, 1, 0] = weights[k]
        core[1, 0, 1] = 1.0
        if k == d - 1:
            core = core[:, :, :1]
        if k == 0:
            core = core[1:]
            core[0, 0, 0] = bias
        cores.append(core)
    return cores


def linear_start(
    engine: Engine, dims: Sequence[int], ranks: Sequence[int], alpha: float, quadratic: bool, rng: np.random.Generator
) -> list[NDArray]:
    """Start from the regularised linear model, solved to rounding.

    The represented function is the linear model itself (for ranks of at least 2); the remaining rank slots hold random
    directions that it does not use.
    """
    with engine.linear() as rows:
        model = solve_linear(rows, len(dims), alpha, quadratic).ravel()
    return fit_ranks(linear_cores(model[0], model[1:], dims), ranks, rng)


def random_start(dims: Sequence[int], ranks: Sequence[int], rng: np.random.Generator) -> list[NDArray]:
    """Start as the paper does: random cores of Frobenius norm one, then right-orthogonal."""
    cores = [rng.standard_normal((ranks[k], n, ranks[k + 1])) for k, n in enumerate(dims)]
    return fit_ranks([core / np.linalg.norm(core) for core in cores], ranks, rng)
