"""``polytrain export``: a model as ONNX or C."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from polytrain.atomic_file import write_atomically
from polytrain.cli.common import CommandError, add_command, check_output, say, shows_beside
from polytrain.cli.table_arguments import add_model
from polytrain.columns import DateColumn
from polytrain.columns.scalars import text_of
from polytrain.export import to_c, to_onnx
from polytrain.tables import TableModel, load_table_model

__all__ = ["add_parser"]

DESCRIPTION = """\
Write the model in a form that runs without polytrain: an ONNX graph, or C99 source without dependencies.

The exported model takes one number per feature: a number as it is, a category by its number, NaN for a missing cell.
The C file says so in a comment, with the number of each category. The ONNX file has it in its metadata, as JSON: the
names of the columns as "polytrain.features"; the categories of columns, from number 0 on, as "polytrain.categories".

A date is several numbers: the days since the start of 1970, and those of month, weekday and hour that varied."""

EXAMPLES = """\
  polytrain export adult.polytrain --to onnx --out adult.onnx
  polytrain export adult.polytrain --to c --name adult --out adult.c"""


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = add_command(subparsers, "export", run, description=DESCRIPTION, examples=EXAMPLES)
    add_model(parser)
    parser.add_argument("--to", required=True, choices=("onnx", "c"), help="form to write")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="file to write")
    parser.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        help="type of the numbers in and out (default: float32 for ONNX, float64 for C)",
    )
    parser.add_argument("--name", default="model", help="what the functions of the C file begin with (default: model)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    model = load_table_model(arguments.model)
    check_output(arguments.out, arguments.model)
    try:
        if arguments.to == "c":
            source = to_c(replace(model.fitted, columns=None), arguments.name, dtype=arguments.dtype or "float64")
            content = (_comment(model) + source).encode()
        else:
            content = _onnx(model, arguments.dtype or "float32")
    except (ValueError, ImportError) as error:
        raise CommandError(str(error)) from error
    write_atomically(arguments.out, [content])
    say(f"{arguments.out}: {len(content)} bytes, {model.fitted.n_features} features")
    shows_beside(arguments.out)(str(arguments.out))
    return 0


def _inputs(model: TableModel) -> list[list[str]]:
    """Say what the model takes for every feature: some lines each."""
    lines: list[list[str]] = []
    for k, name in enumerate(model.view.feature_names):
        category = model.view.category(k)
        if category is not None:
            numbers = [f"{j}: {text_of(level)}" for j, level in enumerate(category.levels)]
            lines.append([f"{name}: number of a category, -1 for any other, NaN if missing", *numbers])
        else:
            lines.append([f"{name}: {_number(model, k)}"])
    return lines


def _number(model: TableModel, feature: int) -> str:
    """What a feature takes that is no category."""
    columns = model.fitted.columns
    if columns is not None:
        k = int(columns.sources[feature])
        column, first = columns.columns[k], int(np.argmax(columns.sources == k))
        if isinstance(column, DateColumn):
            return _PARTS[column.parts[feature - first]]
    return "number; NaN if missing" if model.fitted.maps[feature].takes_missing else "number"


_PARTS = {
    "time": "days since the start of 1970, in UTC, with a fraction; NaN if missing",
    "month": "1 to 12; NaN if missing",
    "weekday": "0 for Monday to 6; NaN if missing",
    "hour": "0 to 24, with a fraction; NaN if missing",
}


def _comment(model: TableModel) -> str:
    lines = ["/* The features that the functions below take; true and false are 1 and 0:"]
    for k, (first, *others) in enumerate(_inputs(model)):
        lines += [f"   x[{k}]  {_in_comment(first)}", *(f"         {_in_comment(other)}" for other in others)]
    return "\n".join([*lines, "*/", ""])


def _in_comment(line: str) -> str:
    """Write a line with names from the table: nothing in them may end the comment or join lines."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in line)
    return plain.replace("*/", "* /").replace("/*", "/ *") + " "


def _onnx(model: TableModel, dtype: str) -> bytes:
    graph = to_onnx(replace(model.fitted, columns=None), dtype=dtype)
    names = list(model.view.feature_names)
    found = ((name, model.view.category(k)) for k, name in enumerate(names))
    categories = {name: [text_of(level) for level in category.levels] for name, category in found if category}
    for name, value in (("features", names), ("categories", categories)):
        entry = graph.metadata_props.add()
        entry.key, entry.value = f"polytrain.{name}", json.dumps(value)
    return graph.SerializeToString()
