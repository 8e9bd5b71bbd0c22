"""``polytrain export``: a model as ONNX or C."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from polytrain.atomic_file import write_atomically
from polytrain.cli.common import CommandError, add_command, check_output, say, show
from polytrain.cli.table_arguments import add_model, load_model
from polytrain.export import to_c, to_onnx
from polytrain.tables import CategoryColumn, Preparation

__all__ = ["add_parser"]

DESCRIPTION = """\
Write the model in a form that runs without polytrain: an ONNX graph, or C99 source without dependencies.

The exported model takes the features, not the cells of the table: numbers with missing values replaced, and 0 or 1 for
every category. The C file lists them in a comment; the ONNX file has them in its metadata, under
"polytrain.features"."""

EXAMPLES = """\
  polytrain export adult.polytrain --to onnx --out adult.onnx
  polytrain export adult.polytrain --to c --name adult --out adult.c"""


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = add_command(
        subparsers, "export", run, summary="write a model as ONNX or C", description=DESCRIPTION, examples=EXAMPLES
    )
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
    model = load_model(arguments.model)
    check_output(arguments.out, arguments.model)
    try:
        if arguments.to == "c":
            source = to_c(model.estimator, arguments.name, dtype=arguments.dtype or "float64")
            content = (_comment(model.preparation) + source).encode()
        else:
            content = _onnx(model.estimator, model.preparation, arguments.dtype or "float32")
    except (ValueError, ImportError) as error:
        raise CommandError(str(error)) from error
    write_atomically(arguments.out, [content])
    say(f"{arguments.out}: {len(content)} bytes, {len(model.preparation.feature_names)} features")
    show(str(arguments.out))
    return 0


def _inputs(preparation: Preparation) -> list[str]:
    """Say what every feature is."""
    lines = []
    for column in preparation.columns:
        is_category = isinstance(column, CategoryColumn)
        for k, name in enumerate(column.feature_names):
            if is_category or k:
                lines.append(f"{name}: 1 or 0")
            else:
                lines.append(f"{name}: number; {column.fill!r} if missing")  # type: ignore[union-attr]
    return lines


def _comment(preparation: Preparation) -> str:
    lines = [f"   x[{k}]  {line}" for k, line in enumerate(_inputs(preparation))]
    # Names come from the table: nothing in them may end the comment or join lines.
    safe = [
        "".join(letter if letter.isprintable() else "?" for letter in line).replace("*/", "* /").replace("/*", "/ *")
        for line in lines
    ]
    return "\n".join(["/* The features that the functions below take:", *(f"{line} " for line in safe), "*/", ""])


def _onnx(estimator: Any, preparation: Preparation, dtype: str) -> bytes:
    graph = to_onnx(estimator, dtype=dtype)
    entry = graph.metadata_props.add()
    entry.key, entry.value = "polytrain.features", json.dumps(preparation.feature_names)
    return graph.SerializeToString()
