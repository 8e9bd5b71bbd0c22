"""Four ways to probabilities: log loss, error and calibration of each on the same folds.

    POLYTRAIN_DATA=FOLDER python -m benchmarks.probabilities [--quick]
    python -m benchmarks.probabilities --only iris wine

All ways share the maps, alpha and ranks that the default estimator has chosen on the training rows:

- ``a squared``: the default, squared loss, scores turned into log-odds by those of rows that were left out;
- ``b then logistic``: from there (the shift of the log-odds is an offset) two one-way sweeps with the logistic loss;
- ``c logistic``: the logistic loss from its linear model on, six one-way sweeps;
- ``d multinomial``: more than two classes only, class after class in two rounds of two one-way sweeps each. With the
  scores of the others fixed, the multinomial loss in the score of one class is the logistic loss with the offset
  -log sum exp(other scores). It begins at a (``d from a``) or at b (``d from b``).

The logistic loss has an eighth of the curvature of the squared one at a score of 0, so it gets alpha / 8. Where the
default is the linear model, c is the logistic linear model and the sweeps of b and d may leave the linear ones.

Five shuffled, stratified folds, a PCA within the folds; Adult has its official split. The test rows of all folds are
put together before anything is measured. The calibration error (ECE) is a mean over the classes c of

    sum over 10 bins of |bin| / N * | mean of p_c in the bin - share of class c in the bin |,

with the rows sorted by p_c and cut into bins of equal size. Log losses take the natural logarithm.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from sklearn.decomposition import PCA
from sklearn.metrics import log_loss

from benchmarks import tables
from benchmarks.report import Report, make_parser
from polytrain import TensorTrainClassifier
from polytrain.learning.problem import ProblemRows
from polytrain.learning.trainer import TrainJob, TrainPlan, learn_train
from polytrain.models import FittedModel

NAMES = (
    "iris",
    "wine",
    "sonar",
    "breast-cancer",
    "pima",
    "banana",
    "phoneme",
    "spambase",
    "digits-pca30",
    "adult",
)
QUICK = ("iris", "wine")
WAYS = ("a squared", "b then logistic", "c logistic", "d from a", "d from b")
#: Curvature of the squared loss in units of that of the logistic loss at a score of 0.
CURVATURE = 8.0
N_BINS = 10
#: One-way sweeps.
AFTER_SWEEPS, LOGISTIC_SWEEPS, ROUNDS, CLASS_SWEEPS = 2, 6, 2, 2


@dataclass(frozen=True)
class Trains:
    """Trains by their cores, with what is added to their values."""

    cores: Sequence[Sequence[NDArray]]
    shift: NDArray


@dataclass(frozen=True)
class Problem:
    """Training rows of one fold as the default estimator has placed them.

    `columns` is (d, N), `targets` (n_trains, N) with entries -1 and 1.
    """

    model: FittedModel
    plan: TrainPlan
    is_linear: bool
    columns: NDArray
    targets: NDArray

    @classmethod
    def of(cls, estimator: TensorTrainClassifier, X: Any, y: NDArray) -> Problem:
        model, plan = estimator.model_, estimator.plan_
        code = model.decision.code(len(model.classes))
        targets = code[:, np.searchsorted(model.classes, y)]
        is_linear = plan.init == "linear" and plan.max_sweeps == 0
        settings = {"loss": "logistic", "alpha": plan.alpha / CURVATURE, "tol": 0.0, "sampling": None}
        logistic = TrainPlan(**{**vars(plan), **settings})
        return cls(model, logistic, is_linear, model.maps.place(numbers(model, X)), targets)

    def learn(self, index: int, n_sweeps: int, start: Sequence[NDArray] | None, offset: NDArray | None) -> tuple:
        """Cores of one train after so many sweeps from a start, or from the linear model."""
        init = "linear" if start is None else "given"
        plan = TrainPlan(**{**vars(self.plan), "init": init, "max_sweeps": n_sweeps})
        target = self.targets[index]
        rows = ProblemRows.make(self.columns, target, np.ones(len(target)), offset)
        return learn_train(plan, self.model.maps, rows, TrainJob(index, start)).cores

    def scores(self, trains: Trains, columns: NDArray) -> NDArray:
        """Log-odds (n_trains, N) of rows that are placed."""
        return placed_scores(self.model, trains, columns)


def numbers(model: FittedModel, X: Any) -> NDArray:
    """Rows as the maps take them."""
    return np.asarray(X if model.columns is None else model.columns.encode(X), dtype=np.float64)


def placed_scores(model: FittedModel, trains: Trains, columns: NDArray) -> NDArray:
    """Values of all trains with their shifts, shape (n_trains, N)."""
    lefts = [np.ones((1, columns.shape[1]))] * len(trains.cores)
    for k, (feature_map, column) in enumerate(zip(model.maps, columns, strict=True)):
        values = feature_map.values(column)
        for index, cores in enumerate(trains.cores):
            a, n, b = cores[k].shape
            spread = (lefts[index][:, None, :] * values).reshape(a * n, -1)
            lefts[index] = cores[k].reshape(a * n, b).T @ spread
    return np.concatenate(lefts) + trains.shift[:, None]


def calibrated_trains(model: FittedModel) -> Trains:
    """The default's trains as they give log-odds."""
    sizes = model.size.tolist()
    scaled = [[size * cores[0], *cores[1:]] for size, cores in zip(sizes, model.cores, strict=True)]
    return Trains(scaled, model.shift)


def then_logistic(problem: Problem, start: Trains) -> Trains:
    """Way b."""
    n_rows = problem.columns.shape[1]
    learned = [
        problem.learn(index, AFTER_SWEEPS, cores, np.full(n_rows, shift))
        for index, (cores, shift) in enumerate(zip(start.cores, start.shift.tolist(), strict=True))
    ]
    return Trains(learned, start.shift)


def all_logistic(problem: Problem) -> Trains:
    """Way c."""
    n_sweeps = 0 if problem.is_linear else LOGISTIC_SWEEPS
    learned = [problem.learn(index, n_sweeps, None, None) for index in range(len(problem.targets))]
    return Trains(learned, np.zeros(len(learned)))


def multinomial(problem: Problem, start: Trains) -> Trains:
    """Way d."""
    cores, shift = list(start.cores), start.shift
    scores = problem.scores(start, problem.columns)
    for _ in range(ROUNDS):
        for index in range(len(cores)):
            others = logsumexp(np.delete(scores, index, axis=0), axis=0)
            cores[index] = problem.learn(index, CLASS_SWEEPS, cores[index], shift[index] - others)
            one = Trains([cores[index]], shift[index : index + 1])
            scores[index] = problem.scores(one, problem.columns)[0]
    return Trains(cores, shift)


def fold_probabilities(X: Any, y: NDArray, X_test: Any) -> tuple[TensorTrainClassifier, dict, dict]:
    """The default estimator, and for every way the probabilities (N, m) of the test rows and seconds from its start."""
    started = time.perf_counter()
    estimator = TensorTrainClassifier(random_state=0).fit(X, y)
    seconds = {"a squared": time.perf_counter() - started}
    found = {"a squared": estimator.predict_proba(X_test)}
    model, problem = estimator.model_, Problem.of(estimator, X, y)
    test_columns = model.maps.place(numbers(model, X_test))
    first = calibrated_trains(model)
    learners = {"b then logistic": lambda: then_logistic(problem, first), "c logistic": lambda: all_logistic(problem)}
    if len(model.classes) > 2:
        learners["d from a"] = lambda: multinomial(problem, first)
        learners["d from b"] = lambda: multinomial(problem, learned["b then logistic"])
    learned: dict[str, Trains] = {}
    for way, learn in learners.items():
        started = time.perf_counter()
        learned[way] = learn()
        seconds[way] = time.perf_counter() - started
        scores = problem.scores(learned[way], test_columns)
        if way.startswith("d"):
            found[way] = np.exp(log_softmax(scores.T, axis=1))
        else:
            found[way] = model.decision.probabilities(scores, len(model.classes))
    return estimator, found, seconds


def calibration_error(labels: NDArray, probabilities: NDArray) -> float:
    """Mean over the classes of the calibration error in bins of equal size; labels are indices of classes."""
    errors = []
    for index, chances in enumerate(probabilities.T):
        order = np.argsort(chances, kind="stable")
        gaps = np.array_split(chances[order] - (labels[order] == index), min(N_BINS, len(order)))
        errors.append(sum(abs(gap.sum()) for gap in gaps) / len(order))
    return float(np.mean(errors))


def measure(table: tables.Table, n_folds: int) -> list[dict]:
    """One row per way, over the test rows of all folds."""
    found: dict[str, list[NDArray]] = {}
    seconds: dict[str, float] = {}
    labels, chosen = [], []
    folds = list(table.folds())[:n_folds]
    for X, y, X_test, y_test in folds:
        if table.components:
            pca = PCA(table.components, random_state=0).fit(X)
            X, X_test = pca.transform(X), pca.transform(X_test)
        estimator, probabilities, times = fold_probabilities(X, y, X_test)
        labels.append(np.searchsorted(estimator.classes_, y_test))
        linear = estimator.plan_.init == "linear" and estimator.plan_.max_sweeps == 0
        chosen.append("linear" if linear else str(estimator.choice_.rank))
        for way, chances in probabilities.items():
            found.setdefault(way, []).append(chances)
            seconds[way] = seconds.get(way, 0.0) + times[way]
    y_all = np.concatenate(labels)
    rows = []
    for way, parts in found.items():
        chances = np.concatenate(parts)
        rows.append(
            {
                "table": table.name,
                "folds": len(folds),
                "ranks": " ".join(chosen),
                "way": way,
                "log loss": float(log_loss(y_all, chances, labels=np.arange(chances.shape[1]))),
                "error %": 100 * float(np.mean(chances.argmax(axis=1) != y_all)),
                "ECE %": 100 * calibration_error(y_all, chances),
                "seconds": seconds[way] / len(folds),
            }
        )
    return rows


def summarise(rows: Sequence[dict]) -> list[dict]:
    """Geometric means over the tables of log losses and calibration errors relative to a."""
    by_table: dict[str, dict[str, dict]] = {}
    for row in rows:
        by_table.setdefault(row["table"], {})[row["way"]] = row
    groups = {
        "two classes": [ways for ways in by_table.values() if "d from a" not in ways],
        "more classes": [ways for ways in by_table.values() if "d from a" in ways],
        "all": list(by_table.values()),
    }
    lines = []
    for way in WAYS:
        line: dict[str, Any] = {"way": way}
        for group, members in groups.items():
            for name in ("log loss", "ECE %"):
                ratios = [ways[way][name] / ways[WAYS[0]][name] for ways in members if way in ways]
                known = ratios and len(ratios) == len(members)
                line[f"{name.removesuffix(' %')}, {group}"] = float(np.exp(np.mean(np.log(ratios)))) if known else None
        lines.append(line)
    return lines


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, help="names of tables")
    parser.add_argument("--folds", type=int, default=5, help="how many of the five folds; quick: 2")
    arguments = parser.parse_args(argv)
    wanted = arguments.only or (QUICK if arguments.quick else NAMES)
    report = Report("probabilities", arguments.quick)
    by_name = {table.name: table for table in tables.TABLES}
    rows: list[dict] = []
    for name in wanted:
        if not by_name[name].available:
            report.note(f"{name}: left out, POLYTRAIN_DATA is not set")
            continue
        found = measure(by_name[name], 2 if arguments.quick else arguments.folds)
        report.table(name, found, markdown=True)
        rows += found
    summary = summarise(rows)
    report.table("geometric means over the tables, relative to a", summary, markdown=True)
    for line in summary[1:]:
        group = "more classes" if line["way"].startswith("d") else "all"
        if line[f"log loss, {group}"] is not None:
            report.figure(f"log loss, {line['way']} / a, {group}", line[f"log loss, {group}"], "x")
    report.finish()


if __name__ == "__main__":
    main()
