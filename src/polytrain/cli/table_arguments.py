"""Arguments that the commands on tables share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from polytrain.cli.common import CommandError, say
from polytrain.tables import ReadOptions, TableFile, TableModel

__all__ = [
    "DATA",
    "add_model",
    "add_reading",
    "add_table",
    "open_model_table",
    "read_options",
]

DATA = (
    "CSV, TSV, JSON (packed by gzip, zstd, ... or not), Parquet, Feather, Excel, .npy or .npz file; - is standard input"
)
DELIMITERS = {"tab": "\t", "\\t": "\t"}


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the argument MODEL."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="model file, from fit or from model.save in Python")


def add_table(parser: argparse.ArgumentParser, **data: Any) -> None:
    """Add the argument DATA, and how it is to be read."""
    parser.add_argument("data", metavar="DATA", help=DATA, **data)
    group = parser.add_argument_group("reading the table")
    add_reading(group, ("yes", "no"), "as in training")


def add_reading(group: Any, headers: tuple[str, ...], usual: str) -> None:
    """Add the options that say how a file is read."""
    group.add_argument(
        "--header",
        choices=headers,
        help=f"whether the first row of a text file holds the columns' names (default: {usual})",
    )
    group.add_argument(
        "--delimiter",
        metavar="CHAR",
        help="what separates cells of a text file, such as ';' or tab (default: detected)",
    )
    group.add_argument(
        "--decimal", choices=(".", ","), help="what separates fractions of numbers in text (default: detected)"
    )
    group.add_argument("--encoding", metavar="NAME", help="of a text file, such as latin1 (default: detected)")
    group.add_argument(
        "--keep-index", action="store_true", help="keep a first column without a name, which is taken for an index"
    )


def read_options(arguments: argparse.Namespace, header: str) -> ReadOptions:
    """Return how DATA is to be read."""
    return ReadOptions(
        header=arguments.header or header,
        delimiter=_check_delimiter(arguments.delimiter),
        encoding=arguments.encoding,
        keep_index=arguments.keep_index,
    )


def _check_delimiter(given: str | None) -> str | None:
    """Return the character, or None to find out."""
    if given is None:
        return None
    delimiter = DELIMITERS.get(given, given)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise CommandError(f"--delimiter must be one character, or the word tab, got {given!r}.")
    return delimiter


def open_model_table(model: TableModel, arguments: argparse.Namespace) -> TableFile:
    """Open DATA as the model wants it, and say what was understood."""
    table = model.open(arguments.data, read_options(arguments, model.header))
    for note in table.notes:
        say(f"note: {note}")
    return table
