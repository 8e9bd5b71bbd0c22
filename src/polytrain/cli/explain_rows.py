"""``polytrain explain --row``: why rows of a table have their scores."""

from __future__ import annotations

import argparse
import math
from typing import Any

from polytrain.cli.common import CommandError, say, show, show_json
from polytrain.cli.table_arguments import open_model_table
from polytrain.explain.local import number_format
from polytrain.tables import TableModel
from polytrain.tables.row_explanations import ExplainedRows, explain_table_rows, knows_columns

__all__ = ["add_row_arguments", "check_row_arguments", "run_rows"]

_DISTRIBUTIONS = {"training": "as in training", "data": "as in DATA"}


def add_row_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that explain rows."""
    group = parser.add_argument_group("explaining rows")
    group.add_argument(
        "--row",
        dest="rows",
        nargs="+",
        action="extend",
        type=int,
        metavar="N",
        help="explain these rows of DATA, the first row of data being 0: what each column brings to the score",
    )
    group.add_argument(
        "--background",
        choices=tuple(_DISTRIBUTIONS),
        help="how columns are distributed where a row's own value is left out (default: training)",
    )


def check_row_arguments(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if arguments.rows is None:
        if arguments.background is not None:
            raise CommandError("--background belongs to --row. Name a row, or leave the option out.")
        return
    if arguments.data is None:
        raise CommandError("--row: there is no table with rows. Give DATA after MODEL.")
    if arguments.units is not None:
        raise CommandError("--units does not go with --row, which has no coefficients. Leave one of them out.")
    if min(arguments.rows) < 0:
        raise CommandError(f"--row {min(arguments.rows)}: rows of data are counted from 0. Give 0 or more.")


def run_rows(model: TableModel, train: int | None, arguments: argparse.Namespace) -> int:
    """Explain rows; ``train`` is the score that is shown, None for the largest of each row."""
    background = arguments.background or "training"
    if background == "training" and not knows_columns(model):
        raise CommandError(
            "this model does not know how its columns were distributed in training. Say --background data, with a "
            "table that is like the training's."
        )
    with open_model_table(model, arguments) as table:
        try:
            found = explain_table_rows(
                model,
                table,
                arguments.rows,
                as_in_table=background == "data",
                decimal=arguments.decimal,
                say=say,
            )
        except ValueError as error:
            raise CommandError(str(error)) from error
    largest = found.explanations.scores.argmax(axis=1).tolist()
    shown = [(row, score if train is None else train) for row, score in enumerate(largest)]
    if arguments.json:
        show_json({"background": background, "rows": [_describe(found, row, score) for row, score in shown]})
        return 0
    show(f"what columns bring, taken as independent and distributed {_DISTRIBUTIONS[background]}")
    for row, score in shown:
        _print(_describe(found, row, score), found.explanations.score_label(score), arguments.terms)
    return 0


def _describe(found: ExplainedRows, row: int, score: int) -> dict[str, Any]:
    explained = found.explanations
    return {
        "row": explained.row_names[row],
        "place": found.places[row],
        "score_of": explained.score_names[score],
        "scale": explained.scale,
        "score": float(explained.scores[row, score]),
        "mean": float(explained.base[score]),
        "columns": [
            {"column": name, "value": cell, "contribution": value} for name, cell, value in explained.ranked(row, score)
        ],
    }


def _print(content: dict[str, Any], label: str, most: int) -> None:
    """Show a sum: the mean, what columns bring, and the score below."""
    columns, total = content["columns"], content["score"]
    written = number_format([total, content["mean"], *(column["contribution"] for column in columns)])
    added = [(column["contribution"], f"{column['column']} = {column['value']}") for column in columns[:most]]
    if columns[most:]:
        rest = math.fsum(column["contribution"] for column in columns[most:])
        added.append((rest, f"{len(columns[most:])} other columns"))
    lines = [
        (written(content["mean"]), "mean"),
        *((written(value) if value < 0 else f"+{written(value)}", name) for value, name in added),
        (written(total), label),
    ]
    width = max(len(number) for number, _ in lines)
    title = f"row {content['row']}"
    show()
    show(title if content["place"] == title else f"{title} ({content['place']})")
    for number, name in lines:
        show(f"  {number:>{width}}  {name}")
