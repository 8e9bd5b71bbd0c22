"""What an average of models gains, and what rounding it costs: errors of single models, their mean, and the merge.

    POLYTRAIN_DATA=FOLDER python -m benchmarks.averaging [--quick]
    python -m benchmarks.averaging --only airfoil

Two ways to several models with equal maps, both with the defaults of `polytrain`:

- ``parts``: the training rows lie in four places and stay there. A default model is fitted to the first part; the
  other places go on from a copy of it (``warm_start=True``), each with its own rows.
- ``bags``: a default model is fitted to all training rows, and eight copies of it go on with bootstrap samples, given
  as weights.

Five shuffled folds, stratified for classes. Errors are root mean squared errors of numbers and per cent of classes,
each a mean over the folds: of the default model of all rows (``all rows``), of single models (``single``, mean over
them), of the plain mean of their scores (``mean``), of `polytrain.average` with its default tolerance (``merged``), and
of merges with a limit on the rank. ``cut off`` is the part of the coefficients that rounding took, ``merge s`` are the
seconds of `polytrain.average`. The errors by rank are written as ``results/averaging-curves.json``, which
``scripts/draw_averaging.py`` draws.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import root_mean_squared_error

from benchmarks.report import RESULTS, Report, make_parser
from benchmarks.tables import write_json
from benchmarks.tabular import TABLES, Table
from polytrain import TensorTrainClassifier, TensorTrainRegressor, average

NAMES = ("diabetes", "concrete", "airfoil", "pima", "banana", "phoneme")
QUICK = ("diabetes",)
WAYS = ("parts", "bags")
N_PARTS, N_BAGS = 4, 8
RANKS = (2, 4, 8, 16, 32, 64)


def continued(model: Any, *rows: Any) -> Any:
    """A copy of a model that goes on with other rows."""
    return deepcopy(model).set_params(warm_start=True).fit(*rows)


def fit_parts(new: Any, whole: Any, X: NDArray, y: NDArray, rng: np.random.Generator) -> list[Any]:
    """One model per part of the rows; the first one chooses for all."""
    first, *others = np.array_split(rng.permutation(len(X)), N_PARTS)
    model = new.fit(X[first], y[first])
    return [model, *(continued(model, X[part], y[part]) for part in others)]


def fit_bags(new: Any, whole: Any, X: NDArray, y: NDArray, rng: np.random.Generator) -> list[Any]:
    """One model per bootstrap sample."""
    samples = (rng.integers(len(X), size=len(X)) for _ in range(N_BAGS))
    return [continued(whole, X, y, np.bincount(sample, minlength=len(X)).astype(float)) for sample in samples]


def scores(model: Any, X: NDArray) -> NDArray:
    """What is averaged; all tables here have one train."""
    return model.predict(X) if isinstance(model, TensorTrainRegressor) else model.decision_function(X)


def error(model: Any, y: NDArray, found: NDArray) -> float:
    """RMSE, or error in per cent, of scores."""
    if isinstance(model, TensorTrainRegressor):
        return float(root_mean_squared_error(y, found))
    return 100 * float(np.mean(model.classes_[(found > 0).astype(int)] != y))


def measure_fold(way: str, kind: str, fold: tuple, number: int) -> dict[str, Any]:
    """Errors, ranks and seconds of one fold."""
    X, y, X_test, y_test = fold
    new = (TensorTrainClassifier if kind == "classes" else TensorTrainRegressor)(random_state=0)
    whole = deepcopy(new).fit(X, y)
    learn = {"parts": fit_parts, "bags": fit_bags}[way]
    models = learn(new, whole, X, y, np.random.default_rng(number))
    found = [scores(model, X_test) for model in models]
    started = time.perf_counter()
    merged = average(models)
    seconds = time.perf_counter() - started
    row = {
        "all rows": error(whole, y_test, scores(whole, X_test)),
        "single": float(np.mean([error(whole, y_test, one) for one in found])),
        "mean": error(whole, y_test, np.mean(found, axis=0)),
        "merged": error(whole, y_test, scores(merged, X_test)),
        "rank of one": max(models[0].plan_.ranks),
        "added": max(merged.merge_.added_ranks),
        "rank": max(merged.merge_.ranks),
        "merge s": seconds,
    }
    for rank in RANKS:
        cut = average(models, tolerance=0.0, max_rank=rank)
        row[f"rank {rank}"] = error(whole, y_test, scores(cut, X_test))
        row[f"cut off % at {rank}"] = 100 * cut.merge_.error
    return row


def measure(table: Table, way: str, n_folds: int) -> dict[str, Any]:
    """Means over the folds."""
    folds = list(table.folds())[:n_folds]
    found = [measure_fold(way, table.kind, fold, number) for number, fold in enumerate(folds)]
    return {"table": table.name, **{name: float(np.mean([row[name] for row in found])) for name in found[0]}}


def chosen(rows: Sequence[dict], names: Sequence[str]) -> list[dict]:
    """Some columns of all rows."""
    return [{name: row[name] for name in ("table", *names)} for row in rows]


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, help="names of tables")
    parser.add_argument("--folds", type=int, default=5, help="how many of the five folds; quick: 2")
    arguments = parser.parse_args(argv)
    wanted = arguments.only or (QUICK if arguments.quick else NAMES)
    report = Report("averaging", arguments.quick)
    curves: dict[str, list[dict]] = {}
    for way in WAYS:
        rows = curves[way] = []
        for table in TABLES:
            if table.name in wanted and not table.available:
                report.note(f"{table.name}: left out, POLYTRAIN_DATA is not set")
            elif table.name in wanted:
                rows.append(measure(table, way, 2 if arguments.quick else arguments.folds))
        errors = ("all rows", "single", "mean", "merged", *(f"rank {rank}" for rank in RANKS))
        sizes = ("rank of one", "added", "rank", *(f"cut off % at {rank}" for rank in RANKS), "merge s")
        report.table(f"{way}: errors", chosen(rows, errors), markdown=True)
        report.table(f"{way}: ranks, what was cut off, and seconds", chosen(rows, sizes), markdown=True)
        for row in rows:
            report.figure(f"{way}, {row['table']}: mean / single", row["mean"] / row["single"], "x")
    write_json(RESULTS / f"{report.file_stem}-curves.json", {"ranks": RANKS, **curves})
    report.finish()


if __name__ == "__main__":
    main()
