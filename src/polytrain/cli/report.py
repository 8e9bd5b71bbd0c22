"""``polytrain report``: a page about a model and its errors."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from polytrain.cli.common import CommandError, add_command, check_output, say, shows_beside
from polytrain.cli.evaluate import add_target
from polytrain.cli.table_arguments import add_model, add_table, read_options
from polytrain.reporting import report_table
from polytrain.tables import TableError, load_table_model

__all__ = ["add_parser"]

DESCRIPTION = """\
Write one HTML page about a model and its errors on a table with a target: the error beside that of simple models,
curves, calibration, effects of columns, three rows explained, training and settings. The page needs no network
and no script; making it needs the extra "report" (matplotlib and Jinja)."""

EXAMPLES = """\
  polytrain report adult.polytrain adult-test.csv --out adult.html
  polytrain report adult.polytrain adult-test.csv --train adult-train.csv --out adult.html"""


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "report",
        run,
        description=DESCRIPTION,
        examples=EXAMPLES,
    )
    add_model(parser)
    add_table(parser)
    add_target(parser)
    parser.add_argument(
        "--train",
        metavar="FILE",
        help="training rows, for a linear model to learn from, which is then compared with on DATA (default: only with "
        "that in the folds of the fit)",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="HTML file to write")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    model = load_table_model(arguments.model)
    inputs = [arguments.model, arguments.data, *([] if arguments.train is None else [arguments.train])]
    check_output(arguments.out, *inputs)
    data_name = "standard input" if arguments.data == "-" else Path(arguments.data).name
    try:
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
    except TableError:
        raise
    except (ValueError, ImportError) as error:
        raise CommandError(str(error)) from error
    page.save(arguments.out)
    shows_beside(arguments.out)(str(arguments.out))
    return 0
