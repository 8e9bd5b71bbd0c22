"""The default models against their rivals: error, log loss and time on small tables and Adult.

    POLYTRAIN_DATA=FOLDER python -m benchmarks.tables
    python -m benchmarks.tables --only iris wine --models polytrain linear --out FILE

Five shuffled folds, stratified for classes; Adult has its official split. polytrain runs with its defaults, the rivals
are defined in `benchmarks.table_models`. Everything is a mean over the folds, the root mean squared error too: it is
the mean of the folds' RMSE. Models run one after another, because their time is measured.

Rivals do not change, so their rows are kept in a file (`--rivals`) and only missing ones are computed; delete it after
changing a rival or the version of scikit-learn. polytrain is always computed anew.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline

from benchmarks import tabular
from benchmarks.report import RESULTS, describe_machine
from benchmarks.table_models import MAX_GP_ROWS, MODELS, RIVALS, make_model
from benchmarks.timing import seconds

#: Rivals whose probabilities are compared.
PROBABILITY_RIVALS = ("boosting", "forest", "linear")
#: Per cent added to both error rates of a ratio, so that a table that is solved perfectly does not decide alone.
SHIFT = 0.5


@dataclass(frozen=True)
class Table:
    """A table by name; `source` is its name in `benchmarks.tabular`, `components` asks for a PCA within the folds."""

    name: str
    kind: str
    dev: bool = False
    source: str = ""
    components: int | None = None

    @property
    def available(self) -> bool:
        return (self.source or self.name) in tabular.BUNDLED or tabular.data_folder() is not None

    def folds(self) -> Iterator[tuple[Any, np.ndarray, Any, np.ndarray]]:
        """Training rows, their labels or targets, test rows and theirs, fold by fold."""
        if self.name == "adult":
            yield tabular.adult_frames()
            return
        X, y = tabular.load(self.source or self.name)
        family = StratifiedKFold if self.kind == "classes" else KFold
        for train, test in family(5, shuffle=True, random_state=0).split(X, y):
            yield X[train], y[train], X[test], y[test]


#: The quick ones first. Development looked at those marked `dev`.
TABLES = (
    Table("iris", "classes"),
    Table("wine", "classes", dev=True),
    Table("sonar", "classes", dev=True),
    Table("breast-cancer", "classes", dev=True, source="breast cancer"),
    Table("pima", "classes", dev=True, source="pima-indians-diabetes"),
    Table("yacht", "numbers", dev=True),
    Table("diabetes", "numbers", dev=True),
    Table("concrete", "numbers", dev=True),
    Table("airfoil", "numbers", dev=True),
    Table("digits", "classes"),
    Table("digits-pca30", "classes", source="digits", components=30),
    Table("spambase", "classes", dev=True),
    Table("banana", "classes", dev=True),
    Table("phoneme", "classes", dev=True),
    Table("adult", "classes"),
)


def build(table: Table, name: str, X: Any, jobs: int) -> Any:
    """A model for a table, behind a PCA where the table asks for one; None where the model does not apply."""
    if not table.components:
        return make_model(name, table.kind, X, jobs)
    model = make_model(name, table.kind, X[:, : table.components], jobs)
    return None if model is None else make_pipeline(PCA(table.components, random_state=0), model)


def measure(table: Table, model: Any, fold: tuple) -> dict[str, Any]:
    """Fit on one fold and measure on its test part; where the model fails, say why."""
    X, y, X_test, y_test = fold
    row: dict[str, Any] = dict.fromkeys(("error", "log_loss", "fit_seconds", "predict_seconds"))
    predictions: list[np.ndarray] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            row["fit_seconds"] = seconds(lambda: model.fit(X, y))
        row["predict_seconds"] = seconds(lambda: predictions.append(model.predict(X_test)))
        if table.kind == "numbers":
            row["error"] = float(root_mean_squared_error(y_test, predictions[0]))
        else:
            row["error"] = 100 * float(np.mean(predictions[0] != y_test))
            if hasattr(model, "predict_proba"):
                probabilities = np.asarray(model.predict_proba(X_test), float)
                row["log_loss"] = float(log_loss(y_test, probabilities, labels=model.classes_))
    except (ValueError, TypeError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
        row["failure"] = f"{type(error).__name__}: {error}"
    return row


def warm_up(name: str, jobs: int) -> None:
    """A first fit that no time is taken of: it imports modules and starts worker processes."""
    X, y = tabular.load("iris")
    make_model(name, "numbers" if name == "gp" else "classes", X, jobs).fit(X[::3], y[::3])


def read_rows(path: Path) -> dict[tuple, dict]:
    """Kept rows by table, model and fold; none where the file does not exist."""
    if not path.exists():
        return {}
    rows = json.loads(path.read_text())["rows"]
    return {(row["table"], row["model"], row["fold"]): row for row in rows}


def write_json(path: Path, content: dict) -> None:
    """Write a file in one step, so that an interrupted run leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    draft.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(draft, path)


def run(tables: Iterable[Table], models: Sequence[str], rivals: Path, jobs: int) -> list[dict]:
    """Rows of all tables, models and folds; rivals' rows are read from their file or added to it."""
    kept = read_rows(rivals)
    machine = describe_machine()
    rows, warm = [], set()
    for table in tables:
        for number, fold in enumerate(table.folds()):
            for name in models:
                key = (table.name, name, number)
                row = kept.get(key) if name in RIVALS else None
                if row is None:
                    model = build(table, name, fold[0], jobs)
                    if model is None:
                        continue
                    if name not in warm:
                        warm_up(name, jobs)
                        warm.add(name)
                    row = dict(zip(("table", "model", "fold"), key, strict=True)) | measure(table, model, fold)
                    tell(row)
                    if name in RIVALS and "failure" not in row:
                        kept[key] = row
                        write_json(rivals, {"machine": machine, "rows": list(kept.values())})
                rows.append(row)
    return rows


def tell(row: dict) -> None:
    """One line on a fold that was just measured."""
    what = row.get("failure") or f"error {row['error']:.3f}, fit {row['fit_seconds']:.2f} s"
    print(f"{row['table']}, {row['model']}, fold {row['fold']}: {what}", file=sys.stderr, flush=True)


def fold_means(rows: list[dict], measure: str) -> dict[str, dict[str, float]]:
    """Mean over the folds by table and model; left out where a fold has no value."""
    values: dict[str, dict[str, list]] = {}
    for row in rows:
        values.setdefault(row["table"], {}).setdefault(row["model"], []).append(row[measure])
    return {
        table: {model: float(np.mean(folds)) for model, folds in by_model.items() if None not in folds}
        for table, by_model in values.items()
    }


def ratios(
    means: dict[str, dict[str, float]], tables: Iterable[str], reference: Sequence[str], shift: float
) -> dict[str, list[float]]:
    """Each model's values divided by the best of the reference models on the same table."""
    found: dict[str, list[float]] = {}
    for table in tables:
        best = min((means[table][model] for model in reference if model in means[table]), default=None)
        if best is not None:
            for model, value in means[table].items():
                found.setdefault(model, []).append((value + shift) / (best + shift))
    return found


def summarise(rows: list[dict], tables: Sequence[Table], models: Sequence[str]) -> list[dict]:
    """Geometric means of the ratios over the tables, with the number of tables that each model has."""
    errors, losses = fold_means(rows, "error"), fold_means(rows, "log_loss")
    dev = {
        kind: [table.name for table in tables if table.kind == kind and table.dev] for kind in ("classes", "numbers")
    }
    every = {kind: [table.name for table in tables if table.kind == kind] for kind in dev}
    parts = [
        ("error %, dev tables", errors, dev["classes"], models, SHIFT),
        ("RMSE, dev tables", errors, dev["numbers"], models, 0),
        ("log loss, dev tables", losses, dev["classes"], PROBABILITY_RIVALS, 0),
        ("error %, all tables", errors, every["classes"], models, SHIFT),
        ("RMSE, all tables", errors, every["numbers"], models, 0),
    ]
    return [
        {
            "measure": title,
            "tables": len(names),
            "means": {
                model: {"ratio": float(np.exp(np.mean(np.log(values)))), "tables": len(values)}
                for model, values in ratios(means, names, reference, shift).items()
            },
        }
        for title, means, names, reference, shift in parts
        if names
    ]


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    cells = [list(head), *map(list, lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    padded = [
        [line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]  # names to the left, numbers to the right
        for line in cells
    ]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in [padded[0], rule, *padded[1:]])


def print_measure(
    title: str, rows: list[dict], measure: str, tables: Sequence[Table], models: Sequence[str], mark: bool = True
) -> None:
    """One measure of all tables; the best model of each is in bold."""
    means = fold_means(rows, measure)
    failed = {(row["table"], row["model"]) for row in rows if "failure" in row}
    lines = []
    for table in tables:
        line = [table.name if table.dev else f"{table.name} *"]
        values = means.get(table.name, {})
        for model in models:
            if model in values:
                word = f"{values[model]:.3g}" if values[model] < 1 else f"{values[model]:.2f}"
                line.append(f"**{word}**" if mark and values[model] == min(values.values()) else word)
            else:
                line.append("failed" if (table.name, model) in failed else "-")
        lines.append(line)
    if lines:
        print(f"\n### {title}\n\n{markdown(('table', *models), lines)}")


def print_summary(summary: list[dict], models: Sequence[str]) -> None:
    """The geometric means; in square brackets the number of tables where a model lacks some."""
    lines = []
    for part in summary:
        line = [f"{part['measure']} ({part['tables']})"]
        for model in models:
            found = part["means"].get(model)
            lacks = f" [{found['tables']}]" if found and found["tables"] < part["tables"] else ""
            line.append(f"{found['ratio']:.3f}{lacks}" if found else "-")
        lines.append(line)
    print(f"\n### Ratio to the best model of a table, geometric mean\n\n{markdown(('measure', *models), lines)}")
    print(
        f"\nBest of the models shown; {SHIFT} points are added to both error rates. "
        f"Log loss: best of {', '.join(PROBABILITY_RIVALS)}.\n"
        "In square brackets: over so many tables only, not comparable with the others. * not a dev table.\n"
        f"RMSE is the mean of the folds' RMSE. gp up to {MAX_GP_ROWS} training rows; svm and gp not on Adult."
    )


def print_all(rows: list[dict], summary: list[dict], tables: Sequence[Table], models: Sequence[str]) -> None:
    classes = [table for table in tables if table.kind == "classes"]
    numbers = [table for table in tables if table.kind == "numbers"]
    print_measure("Classes: error %", rows, "error", classes, [model for model in models if model != "gp"])
    print_measure("Numbers: RMSE", rows, "error", numbers, models)
    with_probabilities = [model for model in models if model not in ("svm", "gp")]
    print_measure("Classes: log loss", rows, "log_loss", classes, with_probabilities)
    print_measure("Seconds of fit", rows, "fit_seconds", tables, models, mark=False)
    print_measure("Seconds of predict", rows, "predict_seconds", tables, models, mark=False)
    print_summary(summary, models)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=[table.name for table in TABLES], help="names of tables")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, help="names of models")
    parser.add_argument("--out", type=Path, help="write all rows and the summary to this JSON file")
    parser.add_argument("--rivals", type=Path, default=RESULTS / "rivals.json", help="file that keeps the rivals' rows")
    parser.add_argument("--jobs", type=int, default=2, help="n_jobs of polytrain, the forest and the SVM's search")
    arguments = parser.parse_args(argv)
    tables = [table for table in TABLES if not arguments.only or table.name in arguments.only]
    missing = [table.name for table in tables if not table.available]
    if missing:
        print(f"left out, POLYTRAIN_DATA is not set: {', '.join(missing)}", file=sys.stderr)
        tables = [table for table in tables if table.available]
    models = [name for name in MODELS if name in arguments.models]
    rows = run(tables, models, arguments.rivals, arguments.jobs)
    summary = summarise(rows, tables, models)
    print_all(rows, summary, tables, models)
    if arguments.out:
        write_json(arguments.out, {"machine": describe_machine(), "rows": rows, "summary": summary})
    return 1 if any("failure" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
