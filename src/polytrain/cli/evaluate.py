"""``polytrain evaluate``: errors of a model on a table."""

from __future__ import annotations

import argparse
from typing import Any

from polytrain.cli.common import CommandError, add_command, say, show, show_json
from polytrain.cli.table_arguments import add_model, add_table, open_model_table
from polytrain.tables import load_table_model
from polytrain.tables.evaluation import count_errors
from polytrain.texts import printable

__all__ = ["add_parser", "add_target"]

DESCRIPTION = """\
Compare predictions with the target in a table. Rows whose target is missing are left out.

For classifiers: n, error, auc (of the probabilities; of several classes the mean over each against the rest), accuracy,
balanced_accuracy (mean over the classes), log_loss where the model has probabilities, and the confusion matrix. For
regressors: n, rmse, mae, deviance (of the model's loss: Poisson, gamma, pinball, or else the mean squared error), r2
and largest_error. --metric prints one of these alone.

Labels are compared as they are written. One exception: a label that the model knows only without the dot at its end, as
in the test file of the Adult data (">50K."), is taken without it, and a note says so."""

EXAMPLES = """\
  polytrain evaluate adult.polytrain adult-test.csv
  polytrain evaluate adult.polytrain adult-test.csv --metric auc
  polytrain evaluate adult.polytrain adult-test.csv --json | jq .error"""


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "evaluate",
        run,
        description=DESCRIPTION,
        examples=EXAMPLES,
    )
    add_model(parser)
    add_table(parser)
    add_target(parser)
    parser.add_argument("--metric", metavar="NAME", help="print this figure alone")
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the target."""
    parser.add_argument(
        "--target",
        nargs="+",
        action="extend",
        metavar="COLUMN",
        help="name or position of the target, 0 for the first column, -1 for the last (default: as in training)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    model = load_table_model(arguments.model)
    with open_model_table(model, arguments) as table:
        errors = count_errors(model, table, target=arguments.target, decimal=arguments.decimal, say=say)
    figures = errors.summary()
    if arguments.metric is not None:
        figures = _one_figure(figures, arguments.metric)
    if arguments.json:
        show_json(figures)
        return 0
    for line in describe(figures):
        show(line)
    return 0


def _one_figure(figures: dict[str, Any], metric: str) -> dict[str, Any]:
    known = [name for name in figures if name not in ("n", "classes", "confusion")]
    if metric not in known:
        raise CommandError(f"--metric {metric}: there is no such figure of this model. Name one of {', '.join(known)}.")
    return {metric: figures[metric]}


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
