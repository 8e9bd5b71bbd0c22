"""Initial trains: right-orthogonal cores with given ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polytrain.arrays import Array
from polytrain.learning.core_solvers import solve_linear
from polytrain.learning.dual import dual_train
from polytrain.learning.engines.engine import Engine
from polytrain.learning.gauge import fit_ranks
from polytrain.maps import MapList

#: Distinct rows that the kernel problem is solved for: its cost grows with their cube.
FEW_ROWS = 1300


def linear_cores(bias: float, coefficients: Sequence[Array]) -> list[Array]:
    """Write bias + the sum over all columns of coefficients times functions as a train of rank 2, exactly.

    ``coefficients`` holds those of all functions of a column but the constant. Reading from the right, the two channels
    behind core k carry 1 and the sum over the columns l > k.
    """
    cores = []
    for own in coefficients:
        core = np.zeros((2, 1 + len(own), 2))
        core[0, 0, 0] = core[1, 0, 1] = 1.0
        core[1, 1:, 0] = own
        cores.append(core)
    cores[0] = cores[0][1:]
    cores[0][0, 0, 0] = bias
    cores[-1] = cores[-1][:, :, :1]
    return cores


def linear_start(
    engine: Engine,
    maps: MapList,
    ranks: Sequence[int],
    alpha: float,
    quadratic: bool,
    rng: np.random.Generator,
    gram: Array | None = None,
) -> list[Array]:
    """Start from the regularised linear model, solved to rounding.

    The represented function is the linear model itself (for ranks of at least 2); the remaining rank slots hold random
    directions that it does not use. ``gram`` is the linear model's Gram matrix, if it was computed before.
    """
    sizes = maps.linear_sizes()
    model = solve_linear(engine.linear(gram), sum(sizes), alpha, quadratic).ravel()
    parts = np.split(model[1:], np.cumsum(sizes)[:-1])
    # The linear model may lack some of the last functions of a column.
    weights = [np.pad(own, (0, n - 1 - len(own))) for own, n in zip(parts, maps.dims, strict=True)]
    return fit_ranks(linear_cores(float(model[0]), weights), ranks, rng)


def dual_start(
    engine: Engine, maps: MapList, ranks: Sequence[int], alpha: float, seed: int, rng: np.random.Generator
) -> list[Array]:
    """Start from the exact solution of the kernel problem on about `FEW_ROWS` distinct rows, cut to these ranks.

    From more rows a sample is taken, with a larger alpha, since noise does not shrink with the sample. Equal rows are
    one row with all of their weight, which has the same solution.
    """
    n_distinct = min(engine.n_distinct, engine.n_rows)  # with many rows, the former is only a bound
    rows = engine.gather(min(1.0, FEW_ROWS / n_distinct), seed).merged()
    fraction = min(1.0, rows.n_rows / n_distinct)
    values = [
        feature_map.values(column.astype(np.float64)) for feature_map, column in zip(maps, rows.columns, strict=True)
    ]
    return fit_ranks(dual_train(values, rows.target, rows.weights, alpha / fraction, ranks), ranks, rng)


def random_start(dims: Sequence[int], ranks: Sequence[int], rng: np.random.Generator) -> list[Array]:
    """Start as the paper does: random cores of Frobenius norm one, then right-orthogonal."""
    cores = [rng.standard_normal((ranks[k], n, ranks[k + 1])) for k, n in enumerate(dims)]
    return fit_ranks([core / np.linalg.norm(core) for core in cores], ranks, rng)
