"""The paper's convergence figure: the objective of one train after every core update."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.core_solvers import CoreSolver
from polytrain.learning.engines import Engine, LocalEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.problem import ProblemRows
from polytrain.learning.start import linear_start, random_start
from polytrain.learning.sweep import sweep_train
from polytrain.learning.threads import one_blas_thread
from polytrain.maps import MapList, PolynomialMap
from polytrain.tensor import clip_ranks

__all__ = ["objective_per_update"]


def objective_per_update(
    X: NDArray,
    positive: NDArray,
    *,
    loss: str,
    degree: int,
    rank: int,
    alpha: float,
    init: str,
    n_sweeps: int,
    seed: int = 0,
) -> list[float]:
    """Learn one train and return its regularised objective at the start and after each core update.

    Parameters
    ----------
    X : ndarray of shape (N, d)
        Features, scaled to [-1, 1] as the estimators do.
    positive : ndarray of bool, shape (N,)
        Rows of the class that the train tells from the rest.
    loss, degree, rank, alpha, init
        As in `TensorTrainClassifier`.
    n_sweeps : int
        Number of one-way sweeps, d - 1 updates each.
    seed : int
        Seed of the start.

    Returns
    -------
    list of float
        1 + n_sweeps * (d - 1) objectives.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain_paper.experiments.convergence import objective_per_update
    >>> X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    >>> settings = {"loss": "squared", "degree": 1, "rank": 2, "alpha": 1e-3, "init": "random", "n_sweeps": 2}
    >>> objectives = objective_per_update(X, X[:, 0] * X[:, 1] > 0, **settings)
    >>> len(objectives), bool(np.all(np.diff(objectives) <= 1e-12))
    (5, True)
    """
    rng = np.random.default_rng(seed)
    kind = get_loss(loss)
    with one_blas_thread():
        # float64: the curve is there to show that no update raises the objective; float32 would blur it by rounding.
        X = np.asarray(X, dtype=np.float64)
        ranges = zip(X.min(axis=0), X.max(axis=0), strict=True)
        maps = MapList([PolynomialMap("power", degree + 1, *ends) for ends in ranges])
        ranks = clip_ranks(maps.dims, rank)
        rows = ProblemRows.make(maps.place(X), np.where(positive, 1.0, -1.0), np.ones(len(X)))
        engine = LocalEngine(rows, kind, maps)
        if init == "random":
            cores = random_start(maps.dims, ranks, rng)
        else:
            cores = linear_start(engine, maps, ranks, alpha, kind.quadratic, rng)
        solver = _RecordingSolver("auto", kind.quadratic, [])
        states = sweep_train(engine, cores, alpha=alpha, solver=solver, max_sweeps=n_sweeps, tol=0.0, rng=rng)
        start, *_ = states
        return [start.objective, *solver.objectives]


@dataclass(frozen=True)
class _RecordingSolver(CoreSolver):
    """A solver that records the objective after each update."""

    objectives: list[float]

    def update(self, rows: Engine, core: NDArray, alpha: float) -> NDArray:
        core = super().update(rows, core, alpha)
        self.objectives.append(rows.mean_loss() + 0.5 * alpha * float(np.vdot(core, core)))
        return core
