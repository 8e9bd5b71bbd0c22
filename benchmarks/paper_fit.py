"""A full fit against a plain transcription of the paper: same start, same updates, same regularisation.

    python -m benchmarks.paper_fit [--quick] [--solver exact] [--start random]

USPS, 20 principal components in [-1, 1], degree 1, rank 8, ten classes one against the rest, four one-way sweeps
without a stopping rule. First class by class, one process and one thread on both sides; then whole fits of all classes
through the estimator, in float64 and float32, on one core and on all. polytrain makes the start itself and pays for
it; the paper's formulas get the same cores for nothing.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from benchmarks.digits_data import run_with_data, scaled_columns, usps_features
from benchmarks.peers import paper
from benchmarks.report import Report, make_parser
from benchmarks.timing import best_of
from polytrain import TensorTrainClassifier
from polytrain.learning.core_solvers import SOLVERS
from polytrain.learning.engines import LocalEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.problem import ProblemRows
from polytrain.learning.settings import Settings, Start
from polytrain.learning.start import linear_start, random_start
from polytrain.learning.trainer import learn_train
from polytrain.maps import MapList, PolynomialMap
from polytrain.tensor import clip_ranks

N_FEATURES, N_BASIS, RANK, N_SWEEPS = 20, 2, 8, 4
#: loss -> the paper's name and the target of the ratio of times.
METHODS = {"squared": ("TTLS", 10.0), "logistic": ("TTLR", 20.0)}


def make_start(plan: Settings, maps: MapList, columns: NDArray, target: NDArray, seed: int) -> list[NDArray]:
    """The cores that polytrain begins with: right-orthogonal, random as in the paper or the linear model."""
    rng = np.random.default_rng(seed)
    if plan.init == "random":
        return random_start(maps.dims, plan.ranks, rng)
    loss = get_loss(plan.loss)
    engine = LocalEngine(ProblemRows.make(columns, target, np.ones(len(target))), loss, maps)
    return linear_start(engine, maps, plan.ranks, plan.alpha, loss.quadratic, rng)


def compare(plan: Settings, maps: MapList, columns: NDArray, target: NDArray, seed: int, repeats: int) -> dict:
    """Both fits of one class: seconds and final objectives."""
    rows, weights = np.ascontiguousarray(columns.T), np.ones(len(target))
    start = make_start(plan, maps, columns, target, seed)
    learned: dict[str, list[NDArray]] = {}

    def by_paper() -> None:
        learned["paper"] = paper.learn(rows, target, start, plan.loss, plan.alpha, plan.max_sweeps)

    def by_polytrain() -> None:
        problem = ProblemRows.make(columns, target, weights)
        learned["polytrain"] = list(learn_train(plan, maps, problem, Start(seed)).cores)

    times = best_of({"paper": by_paper, "polytrain": by_polytrain}, repeats, warm=False)
    objectives = {name: paper.objective(cores, rows, target, plan.loss, plan.alpha) for name, cores in learned.items()}
    return {
        "paper s": times["paper"],
        "polytrain s": times["polytrain"],
        "ratio": times["paper"] / times["polytrain"],
        "paper objective": objectives["paper"],
        "polytrain objective": objectives["polytrain"],
    }


def whole_fits(plan: Settings, X: NDArray, y: NDArray, repeats: int) -> dict[str, tuple]:
    """Seconds and mean objective of estimator fits of all classes."""
    models: dict[str, TensorTrainClassifier] = {}

    def fit(name: str, rows: NDArray, n_jobs: int) -> None:
        model = TensorTrainClassifier(
            loss=plan.loss,
            basis="power-unscaled",
            degree=N_BASIS - 1,
            rank=RANK,
            alpha=plan.alpha,
            bandwidth=None,
            init=plan.init,
            solver=plan.solver,
            max_sweeps=plan.max_sweeps,
            tol=plan.tol,
            random_state=0,
            n_jobs=n_jobs,
        )
        models[name] = model.fit(rows, y)

    cores, small = os.cpu_count() or 1, X.astype(np.float32)
    rivals = {
        "float64, one core": lambda: fit("float64, one core", X, 1),
        "float32, one core": lambda: fit("float32, one core", small, 1),
        f"float64, {cores} cores": lambda: fit(f"float64, {cores} cores", X, cores),
        f"float32, {cores} cores": lambda: fit(f"float32, {cores} cores", small, cores),
    }
    times = best_of(rivals, repeats)
    objectives = {}
    for name, model in models.items():
        targets = [np.where(y == label, 1.0, -1.0) for label in model.classes_]
        reached = [
            paper.objective(train.cores, X, target, plan.loss, plan.alpha)
            for train, target in zip(model.trains_, targets, strict=True)
        ]
        objectives[name] = float(np.mean(reached))
    return {name: (times[name], objectives[name]) for name in rivals}


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--alpha", type=float, default=1e-3)
    parser.add_argument("--solver", choices=SOLVERS, default="auto", help="polytrain's way to solve a core problem")
    parser.add_argument("--start", choices=("random", "linear"), default="linear", help="start of both sides")
    arguments = parser.parse_args(argv)
    X, y, _, _ = usps_features(N_FEATURES)
    report = Report("paper_fit", arguments.quick)
    columns = scaled_columns(X)
    maps = MapList([PolynomialMap("power", N_BASIS)] * N_FEATURES)
    for loss, (name, target_ratio) in METHODS.items():
        plan = Settings(
            loss=loss,
            rank=clip_ranks(maps.dims, RANK),
            alpha=arguments.alpha,
            init=arguments.start,
            solver=arguments.solver,
            max_sweeps=N_SWEEPS,
            tol=0.0,
        )
        rows, repeats = [], 1 if arguments.quick else 3
        for digit in range(10):
            target = np.where(y == digit, 1.0, -1.0)
            rows.append({"digit": digit, **compare(plan, maps, columns, target, digit, repeats)})
        report.table(
            f"{name}: {len(y)} rows, solver {arguments.solver}, {arguments.start} start, alpha {arguments.alpha:g}",
            rows,
        )
        ours, theirs = (np.array([row[f"{side} objective"] for row in rows]) for side in ("polytrain", "paper"))
        times = [sum(row[f"{side} s"] for row in rows) for side in ("paper", "polytrain")]
        report.figure(f"{name}: fit time, paper / polytrain", times[0] / times[1], "x", at_least=target_ratio)
        whole = whole_fits(plan, np.ascontiguousarray(columns.T), y, repeats)
        report.table(
            f"{name}: all ten classes by the estimator; the paper's formulas take {times[0]:.3g} s",
            [
                {"fit": kind, "s": spent, "ratio": times[0] / spent, "objective / paper": reached / theirs.mean()}
                for kind, (spent, reached) in whole.items()
            ],
        )
        for kind, (spent, _) in whole.items():
            report.figure(f"{name}: fit time, paper / {kind}", times[0] / spent, "x", at_least=target_ratio)
        report.figure(f"{name}: mean objective, polytrain / paper", ours.mean() / theirs.mean(), "x", at_most=1.0)
        report.figure(f"{name}: worst class's objective, polytrain / paper", (ours / theirs).max(), "x", at_most=1.0)
    report.finish()


if __name__ == "__main__":
    run_with_data(main)
