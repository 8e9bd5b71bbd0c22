"""``polytrain report``: a page about a model and its errors."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from polytrain.atomic_file import write_atomically
from polytrain.cli.common import CommandError, add_command, check_output, shows_beside
from polytrain.cli.evaluate import add_target, count_errors
from polytrain.cli.info import model_facts
from polytrain.cli.table_arguments import add_model, add_table, load_model
from polytrain.report import build_report
from polytrain.tables.explaining import RowSample

__all__ = ["add_parser"]

DESCRIPTION = """\
Write one HTML page about a model and its errors on a table with a target: data and model card, errors, confusion
matrix, calibration, convergence, importances, strongest terms, cost. The page needs no network and no script."""

EXAMPLES = """\
  polytrain report adult.polytrain adult-test.csv --out adult.html"""


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "report",
        run,
        summary="write an HTML page about a model",
        description=DESCRIPTION,
        examples=EXAMPLES,
    )
    add_model(parser)
    add_table(parser)
    add_target(parser)
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="HTML file to write")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    model = load_model(arguments.model)
    check_output(arguments.out, arguments.model, arguments.data)
    sample = RowSample()
    started = time.perf_counter()
    counted = count_errors(model, arguments, sample)
    seconds = time.perf_counter() - started
    try:
        page = build_report(
            model,
            counted,
            sample.rows,
            facts=model_facts(model),
            model_name=arguments.model.name,
            data_name="standard input" if arguments.data == "-" else Path(arguments.data).name,
            file_bytes=arguments.model.stat().st_size,
            seconds=seconds,
        )
    except ValueError as error:
        raise CommandError(str(error)) from error
    write_atomically(arguments.out, [page.encode("utf-8", "replace")])
    shows_beside(arguments.out)(str(arguments.out))
    return 0
