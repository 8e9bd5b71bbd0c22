"""``polytrain evaluate`` and ``polytrain report``: errors of a model on a table, as figures or as a page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from polytrain.cli.common import (
    CommandError,
    add_command,
    check_output,
    open_model_table,
    read_options,
    say,
    show,
    show_json,
    shows_beside,
    user_errors,
)
from polytrain.tables import load_table_model
from polytrain.texts import printable

__all__ = ["add_evaluate", "add_report"]


def add_evaluate(subparsers: Any) -> None:
    """Add the command evaluate."""
    parser = add_command(subparsers, evaluate, "MODEL", "DATA", "--target", "--json")
    parser.add_argument("--metric", metavar="NAME", help="print this figure alone")


def evaluate(arguments: argparse.Namespace) -> int:
    """Compare predictions with the target in a table. Rows whose target is missing are left out.

    For classifiers: n, error, auc (of the probabilities; of several classes the mean over each against the rest),
    accuracy, balanced_accuracy (mean over the classes), log_loss where the model has probabilities, and the confusion
    matrix. For regressors: n, rmse, mae, deviance (of the model's loss: Poisson, gamma, pinball, or else the mean
    squared error), r2 and largest_error. --metric prints one of these alone.

    Labels are compared as they are written. One exception: a label that the model knows only without the dot at its
    end, as in the test file of the Adult data (">50K."), is taken without it, and a note says so.

      polytrain evaluate adult.polytrain adult-test.csv
      polytrain evaluate adult.polytrain adult-test.csv --metric auc
      polytrain evaluate adult.polytrain adult-test.csv --json | jq .error
    """
    model = load_table_model(arguments.model)
    with open_model_table(model, arguments) as table:
        answers = model.answers(table, target=arguments.target, decimal=arguments.decimal, say=say)
    figures, metric = answers.summary(), arguments.metric
    if metric is not None:
        known = [name for name in figures if name not in ("n", "classes", "confusion")]
        if metric not in known:
            names = ", ".join(known)
            raise CommandError(f"--metric {metric}: there is no such figure of this model. Name one of {names}.")
        figures = {metric: figures[metric]}
    if arguments.json:
        show_json(figures)
        return 0
    for line in describe(figures):
        show(line)
    return 0


def describe(figures: dict[str, Any]) -> list[str]:
    """Return the figures as lines of text."""
    lines = []
    for name, value in figures.items():
        if name in ("classes", "confusion", "balanced_error"):
            continue
        if name.endswith(("error", "accuracy")) and name != "largest_error":
            lines.append(f"{name:<18}{100 * value:.2f} %")
        else:
            lines.append(f"{name:<18}{'-' if value is None else value if isinstance(value, int) else f'{value:.5g}'}")
    if "confusion" in figures and len(figures["classes"]) <= 30:
        labels = [printable(label) for label in figures["classes"]]
        width = max(max(map(len, labels)), len(str(figures["n"]))) + 2
        lines += ["", "confusion matrix (rows: true class, columns: predicted class)"]
        lines.append(" " * width + "".join(f"{label:>{width}}" for label in labels))
        for label, row in zip(labels, figures["confusion"], strict=True):
            lines.append(f"{label:<{width}}" + "".join(f"{count:>{width}}" for count in row))
    return lines


def add_report(subparsers: Any) -> None:
    """Add the command report."""
    parser = add_command(subparsers, report, "MODEL", "DATA", "--target")
    parser.add_argument(
        "--train",
        metavar="FILE",
        help="training rows, for a linear model to learn from, which is then compared with on DATA (default: only with "
        "that in the folds of the fit)",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="HTML file to write")


def report(arguments: argparse.Namespace) -> int:
    """Write one HTML page about a model and its errors on a table with a target.

    It has the error beside that of simple models, curves, calibration, effects of columns, three rows explained,
    training and settings. The page needs no network and no script; making it needs the extra "report" (matplotlib and
    Jinja).

      polytrain report adult.polytrain adult-test.csv --out adult.html
      polytrain report adult.polytrain adult-test.csv --train adult-train.csv --out adult.html
    """
    from polytrain.reporting import report_table

    model = load_table_model(arguments.model)
    inputs = [arguments.model, arguments.data, *([] if arguments.train is None else [arguments.train])]
    check_output(arguments.out, *inputs)
    data_name = "standard input" if arguments.data == "-" else Path(arguments.data).name
    with user_errors():
        page = report_table(
            model,
            arguments.data,
            train=arguments.train,
            title=f"{arguments.model.name} on {data_name}",
            reading=read_options(arguments, model.header),
            file_bytes=arguments.model.stat().st_size,
            target=arguments.target,
            decimal=arguments.decimal,
            say=say,
        )
    page.save(arguments.out)
    shows_beside(arguments.out)(str(arguments.out))
    return 0
