"""``polytrain explain``: what a model has learned, read off its polynomials."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.cli.common import CommandError, add_command, show, show_json
from polytrain.cli.table_arguments import add_model, add_table, load_model, open_model_table
from polytrain.explain import top_terms
from polytrain.explain._view import read_model
from polytrain.tables import TableModel
from polytrain.tables.explaining import column_importances

__all__ = ["RowSample", "add_parser"]

DESCRIPTION = """\
Show the importances of the columns, the strongest interactions and the largest terms of the polynomials.

Importances are shares of the variance that a column takes part in (total Sobol indices, summed over the column's
features). With DATA, each feature is distributed as in the rows of the table; without, evenly over the range that it had
in training. The strength of a term is the largest magnitude that it reaches in that range."""

EXAMPLES = """\
  polytrain explain adult.polytrain
  polytrain explain adult.polytrain adult-test.csv --terms 20
  polytrain explain digits.polytrain --class 7 --json"""

# The distribution of a feature is known well enough from so many rows.
_MAX_ROWS = 20_000


class RowSample:
    """Keeps an even sample of a stream of rows: every row at first, every second one when there are many, ..."""

    def __init__(self, max_rows: int = _MAX_ROWS) -> None:
        self._max_rows, self._parts, self._n, self._step, self._offset = max_rows, [], 0, 1, 0

    def __call__(self, X: NDArray) -> None:
        """Take note of a block."""
        self._parts: list[NDArray]
        part = X[self._offset :: self._step]
        self._offset = (self._offset - len(X)) % self._step
        self._parts.append(part)
        self._n += len(part)
        while self._n > self._max_rows:
            rows = np.concatenate(self._parts)
            self._offset = (self._offset + self._step * (len(rows) % 2)) % (2 * self._step)
            self._parts, self._step = [rows[::2]], 2 * self._step
            self._n = len(self._parts[0])

    @property
    def rows(self) -> NDArray:
        """The sample."""
        return np.concatenate(self._parts)


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "explain",
        run,
        summary="show importances, interactions and terms of a model",
        description=DESCRIPTION,
        examples=EXAMPLES,
    )
    add_model(parser)
    add_table(parser, nargs="?")
    parser.add_argument("--terms", type=int, default=10, metavar="K", help="how many terms (default: 10)")
    parser.add_argument(
        "--class",
        dest="label",
        metavar="LABEL",
        help="the class whose polynomial is shown (default: the first; with two classes there is one polynomial only)",
    )
    parser.add_argument(
        "--units",
        choices=("auto", "original", "centred", "scaled"),
        default="auto",
        help="variables of the terms: as they come, centred in their range, or scaled to [-1, 1] (default: auto)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    model = load_model(arguments.model)
    if arguments.terms < 1:
        raise CommandError(f"--terms must be at least 1, got {arguments.terms}.")
    train = _train_index(model, arguments.label)
    X = None
    if arguments.data is not None:
        sample = RowSample()
        with open_model_table(model, arguments) as table:
            for block in model.blocks(table, new_categories=arguments.new_categories):
                sample(block.X)
        X = sample.rows
    try:
        importances = column_importances(model, X)
        terms = top_terms(
            model.estimator,
            arguments.terms,
            train=train,
            units=arguments.units,
            feature_names=model.preparation.feature_names,
        )
    except ValueError as error:
        raise CommandError(str(error)) from error
    if arguments.json:
        show_json(
            {
                "importances": dict(importances.columns),
                "interactions": [
                    {"columns": [one, two], "share": share} for one, two, share in importances.pairs[: arguments.terms]
                ],
                "higher_interactions": importances.higher,
                "terms_of": terms.train_name,
                "units": terms.units,
                "proven": terms.exact,
                "terms": [
                    {"term": name, "coefficient": float(coefficient), "strength": float(strength)}
                    for name, coefficient, strength in zip(
                        terms.names, terms.coefficients, terms.strengths, strict=True
                    )
                ],
            }
        )
        return 0
    width = max(len(name) for name, _ in importances.columns) + 2
    show("importances of the columns")
    for name, share in importances.columns:
        show(f"  {name:<{width}}{100 * share:6.2f} %")
    show("\nshare of the variance made by pairs of columns")
    for one, two, share in importances.pairs[: min(arguments.terms, 10)]:
        show(f"  {f'{one} * {two}':<{2 * width}}{100 * share:6.2f} %")
    show(f"  {'three and more':<{2 * width}}{100 * importances.higher:6.2f} %")
    show(f"\n{terms}")
    return 0


def _train_index(model: TableModel, label: str | None) -> int:
    """Index of the polynomial that speaks for a class."""
    names = read_model(model.estimator).train_names
    if label is None:
        return 0
    if label not in names:
        raise CommandError(f"--class {label}: there is no such polynomial; there are {', '.join(names)[:200]}.")
    return names.index(label)
