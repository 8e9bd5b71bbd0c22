"""MNIST without a network: deskewed, 40 principal components; error and time against other learners.

    python -m benchmarks.mnist [--quick] [--only NAME ...]

Settings are chosen by validation on training rows only: each model's few candidates are fitted on a part of the
training rows and judged on another part, then the best one is fitted on all training rows. The test set is looked at
once per model. Trains run on all cores; rivals run as they are (SVC on one core; the others use BLAS or OpenMP threads
where they can). The train that is set beside the polynomial SVC has the least rank that is no worse on the held-out
training rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.digits_data import Split, mnist_features, run_with_data
from benchmarks.peers.boosting import Boosting
from benchmarks.peers.mlp import NeuralNetwork
from benchmarks.peers.nystroem import NystroemRidge
from benchmarks.peers.polynomial_logistic import PolynomialLogistic
from benchmarks.peers.polynomial_ridge import PolynomialRidge
from benchmarks.peers.svc_poly import PolynomialSVC
from benchmarks.peers.svc_rbf import GaussianSVC
from benchmarks.peers.train import Train
from benchmarks.plots import have_matplotlib, plot_error_time
from benchmarks.report import Report, make_parser
from benchmarks.timing import best_of, seconds

RIVALS = {
    "svc_poly": PolynomialSVC,
    "svc_rbf": GaussianSVC,
    "polynomial_ridge": PolynomialRidge,
    "polynomial_logistic": PolynomialLogistic,
    "nystroem": NystroemRidge,
    "boosting": Boosting,
    "mlp": NeuralNetwork,
}
QUICK_RIVALS = ("svc_poly", "polynomial_ridge")


@dataclass(frozen=True)
class Sizes:
    """How large a run is."""

    train_rows: int
    choose_rows: int
    validation_rows: int
    ranks: tuple[int, ...]
    headline_ranks: tuple[int, ...]


QUICK = Sizes(10_000, 3_000, 3_000, (4, 8, 16), (8, 16))
FULL = Sizes(60_000, 50_000, 10_000, (4, 8, 12, 16, 20, 24, 32), (12, 16, 20, 24, 32))


def error(model: object, X: NDArray, y: NDArray) -> float:
    """Per cent of wrong labels."""
    return 100 * float(np.mean(model.predict(X) != y))


def validate(make: Callable, candidates: list[dict], X: NDArray, y: NDArray, sizes: Sizes) -> list[float]:
    """Validation error of every candidate; only training rows are seen."""
    order = np.random.default_rng(0).permutation(len(X))
    fitted, judged = order[: sizes.choose_rows], order[-sizes.validation_rows :]
    return [error(make(**settings).fit(X[fitted], y[fitted]), X[judged], y[judged]) for settings in candidates]


def choose(make: Callable, candidates: list[dict], X: NDArray, y: NDArray, sizes: Sizes) -> tuple[dict, float]:
    """The candidate with the least validation error, and that error; only training rows are seen."""
    if len(candidates) == 1:
        return candidates[0], float("nan")
    errors = validate(make, candidates, X, y, sizes)
    best = int(np.argmin(errors))
    return candidates[best], errors[best]


def measure(model: object, data: Split, **extra: object) -> dict:
    """Fit once on all training rows, predict the test rows three times."""
    X_train, y_train, X_test, y_test = data
    fit = seconds(lambda: model.fit(X_train, y_train))
    predict = best_of({"predict": lambda: model.predict(X_test)}, 3, threads=None, warm=False)["predict"]
    return {
        "model": model.name,
        **extra,
        "test error %": error(model, X_test, y_test),
        "fit s": fit,
        "predict s": predict,
    }


def measure_trains(data: Split, sizes: Sizes, report: Report) -> tuple[list[dict], dict[int, float]]:
    """The curve over ranks with all cores, and the validation errors of some ranks."""
    X, y = data[:2]
    jobs = os.cpu_count()
    # Two stages, regularisation at a middle rank and then the rank: a full grid would bring little and take long.
    middle = {"rank": 16, "n_jobs": jobs}
    best, _ = choose(Train, [{**settings, **middle} for settings in Train.candidates()], X, y, sizes)
    ranked = validate(Train, [{**best, "rank": rank} for rank in sizes.headline_ranks], X, y, sizes)
    validation = dict(zip(sizes.headline_ranks, ranked, strict=True))
    listed = ", ".join(f"{rank}: {found:.2f} %" for rank, found in validation.items())
    report.note(f"trains: chosen alpha={best['alpha']:g}; validation errors of ranks {listed}")
    curve = [
        {
            "rank": rank,
            **measure(
                Train(rank, best["alpha"], n_jobs=jobs), data, settings=f"alpha={best['alpha']:g}, {jobs} processes"
            ),
        }
        for rank in sizes.ranks
    ]
    report.table(f"trains over ranks, {jobs} processes, {len(X)} rows", curve)
    return curve, validation


def measure_rival(name: str, data: Split, sizes: Sizes, report: Report) -> dict:
    rival = RIVALS[name]
    settings, validation = choose(rival, rival.candidates(), *data[:2], sizes)
    report.note(f"{name}: chosen {settings}, validation error {validation:.2f} %")
    found = measure(rival(**settings), data, settings=", ".join(f"{key}={value:g}" for key, value in settings.items()))
    return {**found, "validation": validation}


def judge(report: Report, curve: list[dict], validation: dict[int, float], svc: dict) -> None:
    """The least rank that is as good as the SVC with the polynomial kernel on held-out training rows, beside it."""
    equal = [rank for rank, found in validation.items() if found <= svc["validation"]]
    rank = equal[0] if equal else max(validation)
    ours = next(row for row in curve if row["rank"] == rank)
    report.figure(f"test error, rank {rank}", ours["test error %"], "%", at_most=svc["test error %"])
    report.figure(f"fit time / SVC poly, rank {rank}, all cores", ours["fit s"] / svc["fit s"], "x", at_most=1.0)
    report.figure(f"SVC poly / rank {rank}, prediction time", svc["predict s"] / ours["predict s"], "x", at_least=25.0)


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(RIVALS), help="rivals to run")
    arguments = parser.parse_args(argv)
    X_train, y_train, X_test, y_test = mnist_features()
    report = Report("mnist", arguments.quick)
    sizes = QUICK if arguments.quick else FULL
    rows = np.random.default_rng(0).permutation(len(X_train))[: sizes.train_rows]
    data = X_train[rows], y_train[rows], X_test, y_test

    curve, validation = measure_trains(data, sizes, report)
    names = arguments.only or (QUICK_RIVALS if arguments.quick else tuple(RIVALS))
    rivals = {name: measure_rival(name, data, sizes, report) for name in names}
    listed = [next(row for row in curve if row["rank"] == rank) for rank in validation]
    columns = [key for key in listed[0] if key != "rank"]
    report.table(
        f"{len(rows)} training and {len(X_test)} test rows",
        [{key: row[key] for key in columns} for row in (*listed, *rivals.values())],
    )
    if "svc_poly" in rivals:
        judge(report, curve, validation, rivals["svc_poly"])
    if have_matplotlib():
        title = f"MNIST, deskewed, 40 principal components, {len(rows)} rows"
        plot_error_time(report.plot_path(), curve, list(rivals.values()), title)
    report.finish()


if __name__ == "__main__":
    run_with_data(main)
