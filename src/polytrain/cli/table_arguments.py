"""Arguments that the commands on tables share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from polytrain.cli.common import CommandError
from polytrain.tables import Table, TableModel, load_table_model

__all__ = ["add_model", "add_table", "load_model", "open_model_table"]

DELIMITERS = {"tab": "\t", "\\t": "\t"}


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the argument MODEL."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="model file, from fit or from model.save in Python")


def add_table(parser: argparse.ArgumentParser, **data: Any) -> None:
    """Add the argument DATA, and how it is to be read."""
    parser.add_argument(
        "data", metavar="DATA", help="CSV, TSV, Parquet, .npy or .npz file; - is CSV from standard input", **data
    )
    group = parser.add_argument_group("reading the table")
    group.add_argument(
        "--header",
        choices=("yes", "no"),
        help="whether the first row of a text file holds the columns' names (default: as in training)",
    )
    group.add_argument(
        "--delimiter",
        metavar="CHAR",
        help="what separates cells of a text file, such as ';' or tab (default: found out)",
    )
    group.add_argument(
        "--new-categories",
        choices=("error", "ignore"),
        default="error",
        help="what to do with a category that the training did not have; ignored, it is like the mean of all rows "
        "(default: error)",
    )


def check_delimiter(given: str | None) -> str | None:
    """Return the character, or None to find out."""
    if given is None:
        return None
    delimiter = DELIMITERS.get(given, given)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise CommandError(f"--delimiter must be one character, or the word tab, got {given!r}.")
    return delimiter


def load_model(path: Path) -> TableModel:
    """Read the model file."""
    return load_table_model(path)


def open_model_table(model: TableModel, arguments: argparse.Namespace) -> Table:
    """Open DATA as the model wants it."""
    return model.open(arguments.data, header=arguments.header, delimiter=check_delimiter(arguments.delimiter))
