"""``polytrain predict``: a table in, a CSV file of predictions out, block by block."""

from __future__ import annotations

import argparse
import csv
import io
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from polytrain.atomic_file import replace_file
from polytrain.cli.common import CommandError, add_command, check_output, say
from polytrain.cli.table_arguments import add_model, add_table, load_model, open_model_table
from polytrain.tables import PreparedBlock, TableModel
from polytrain.tables.preparation import find_column

__all__ = ["add_parser"]

DESCRIPTION = """\
Predict every row of a table. The output is CSV with the column "prediction", in the order of the rows.

Rows are read and written block by block, so that a table of any size takes the same memory. Nothing is written if a row
is wrong: the output appears when all rows are done. Only where the rows come from standard input and go to standard
output, they go out as they come in."""

EXAMPLES = """\
  polytrain predict adult.polytrain adult-test.csv --out predictions.csv
  polytrain predict adult.polytrain adult-test.csv --probabilities | head
  generate-rows | polytrain predict price.polytrain - | consume-predictions"""

_SPOOL_BYTES = 1 << 24


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = add_command(
        subparsers, "predict", run, summary="predict the rows of a table", description=DESCRIPTION, examples=EXAMPLES
    )
    add_model(parser)
    add_table(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="CSV file to write (default: standard output)")
    parser.add_argument(
        "--probabilities",
        action="store_true",
        help="add one column per class with its probability; for classifiers with any loss but squared",
    )
    parser.add_argument(
        "--keep", nargs="+", metavar="COLUMN", default=[], help="columns of the table to copy, such as an identifier"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    model = load_model(arguments.model)
    if arguments.out is not None:
        check_output(arguments.out, arguments.data, arguments.model)
    if arguments.probabilities and not hasattr(model.estimator, "predict_proba"):
        raise CommandError(
            "--probabilities: this model has none. Fit a classifier with --loss auto, or leave the option out."
        )
    n_rows = 0
    with open_model_table(model, arguments) as table:
        kept = [find_column(name, table.names, table.n_columns, table.label) for name in arguments.keep]
        titles = [arguments.keep[k] if table.names is None else table.names[index] for k, index in enumerate(kept)]
        with _output(arguments) as stream:
            _write_rows(stream, [[*titles, *_titles(model, arguments.probabilities)]])
            for block in model.blocks(table, new_categories=arguments.new_categories):
                copied = [_plain(block.block.columns[index]) for index in kept]
                _write_rows(stream, zip(*copied, *_predict(model, block, arguments.probabilities), strict=True))
                n_rows += len(block.X)
    say(f"predicted {n_rows} rows")
    return 0


def _write_rows(stream: BinaryIO, rows: Iterable[Sequence[Any]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    stream.write(text.getvalue().encode())
    stream.flush()


def _titles(model: TableModel, probabilities: bool) -> list[str]:
    labels = model.estimator.classes_ if probabilities else ()
    fitted = model.estimator.model_
    names = ["prediction"] if fitted.one_output else [f"prediction of {name}" for name in fitted.train_names]
    return [*names, *(f"probability {label}" for label in labels)]


def _predict(model: TableModel, block: PreparedBlock, probabilities: bool) -> list[list[Any]]:
    predicted = model.estimator.predict(block.X)
    columns = [predicted.tolist()] if predicted.ndim == 1 else predicted.T.tolist()
    if probabilities:
        columns += model.estimator.predict_proba(block.X).T.tolist()
    return columns


def _plain(cells: Any) -> list[Any]:
    """Cells as they go into CSV: numbers in their shortest form, missing ones empty."""
    if not isinstance(cells, np.ndarray):
        return list(cells)
    return ["" if value != value else int(value) if value.is_integer() else value for value in cells.tolist()]


@contextmanager
def _output(arguments: argparse.Namespace) -> Iterator[BinaryIO]:
    """Where predictions go: a file that appears when it is whole, or stdout once all rows are right."""
    if arguments.out is not None:
        with replace_file(arguments.out) as stream:
            yield stream
        return
    sys.stdout.flush()
    if arguments.data == "-":
        yield sys.stdout.buffer
        return
    with tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as waiting:
        yield waiting  # type: ignore[misc]
        waiting.seek(0)
        shutil.copyfileobj(waiting, sys.stdout.buffer)
        sys.stdout.flush()
