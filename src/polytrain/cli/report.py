"""``polytrain report``: a page about a model and its errors."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.atomic_file import write_atomically
from polytrain.cli.common import CommandError, add_command, check_output, shows_beside
from polytrain.cli.evaluate import add_target, count_errors
from polytrain.cli.table_arguments import add_model, add_table, load_model
from polytrain.reporting import MOST_ROWS, ScoredRows, Subject, build_report
from polytrain.tables import TableModel
from polytrain.tables.row_sample import RowSample

__all__ = ["add_parser"]

DESCRIPTION = """\
Write one HTML page about a model and its errors on a table with a target: the error beside that of simple models,
curves, calibration, what matters and how, three rows explained, what was tried, and settings. The page needs no network
and no script."""

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
        help="training rows, for the linear model that is compared with to learn from (default: it is cross-validated "
        "on DATA)",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="HTML file to write")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    model = load_model(arguments.model)
    inputs = [arguments.model, arguments.data, *([] if arguments.train is None else [arguments.train])]
    check_output(arguments.out, *inputs)
    if not model.fitted.one_output:
        raise CommandError(
            f"the model predicts {model.fitted.n_trains} numbers per row, and a report is about one. Fit a model per "
            "target."
        )
    sample = _Sample(model)
    started = time.perf_counter()
    counted = count_errors(model, arguments, sample)
    seconds = time.perf_counter() - started
    train = None
    if arguments.train is not None:
        learned = _Sample(model)
        count_errors(model, argparse.Namespace(**{**vars(arguments), "data": arguments.train}), learned)
        train = learned.rows[:2]
    data_name = "standard input" if arguments.data == "-" else Path(arguments.data).name
    try:
        page = build_report(
            counted,
            ScoredRows(_subject(model), *sample.rows),
            title=f"{arguments.model.name} on {data_name}",
            data_name=data_name,
            train=train,
            file_bytes=arguments.model.stat().st_size,
            seconds=seconds,
        )
    except ValueError as error:
        raise CommandError(str(error)) from error
    write_atomically(arguments.out, [page.encode("utf-8", "replace")])
    shows_beside(arguments.out)(str(arguments.out))
    return 0


def _subject(model: TableModel) -> Subject:
    targets = model.layout.targets
    return Subject.of(model.view, targets[0].name if targets else None, model.training)


class _Sample:
    """An even sample of rows with their targets and places, counted from 0 among the rows that have a target."""

    def __init__(self, model: TableModel) -> None:
        self._sample, self._n, self._is_classifier = RowSample(MOST_ROWS), 0, model.is_classifier

    def __call__(self, X: NDArray, y: NDArray) -> None:
        places = np.arange(self._n, self._n + len(X))
        self._sample(np.column_stack([X, y, places]))
        self._n += len(X)

    @property
    def rows(self) -> tuple[NDArray, NDArray, NDArray]:
        """Features, targets and places."""
        rows = self._sample.rows
        X, y = np.ascontiguousarray(rows[:, :-2]), rows[:, -2]
        return X, y.astype(np.intp) if self._is_classifier else y, rows[:, -1].astype(np.intp)
