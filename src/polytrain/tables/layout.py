"""Positions and forms of a model's columns in a file, and their record in a model file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polytrain.columns import Column
from polytrain.columns.forms import DEFAULT_MISSING, Form
from polytrain.columns.scalars import text_of
from polytrain.tables.options import TableError, option
from polytrain.tables.table_file import TableFile, position_names
from polytrain.texts import listed

__all__ = ["Fact", "FileColumn", "Layout", "find_column", "fitted_columns", "read_section", "write_section"]

#: Values in the record of the training.
Fact = str | int | float | bool | None


@dataclass(frozen=True)
class FileColumn:
    """A column of the training table: its name, its position from 0, and how its cells are written.

    ``form`` is None, and is detected in each file, where the model was not fitted from a table.
    """

    name: str
    position: int
    form: Form | None = None


@dataclass(frozen=True)
class Layout:
    """Where the columns of the training table are and how they are written.

    ``columns`` are those of the estimator, in its order; ``targets`` are empty where the model was not fitted from a
    table. Columns are found by name if ``named``, else by position among ``n_columns``, the targets included.
    ``missing`` are the texts that stand for a missing value, besides the empty cell.
    """

    columns: tuple[FileColumn, ...]
    targets: tuple[FileColumn, ...]
    named: bool
    n_columns: int
    missing: tuple[str, ...] = DEFAULT_MISSING

    @classmethod
    def of_estimator(cls, estimator: Any) -> Layout:
        """Return the layout of a model that was not fitted from a file, but from an array or a frame."""
        count, columns = estimator.n_features_in_, fitted_columns(estimator)
        names = map(str, getattr(estimator, "feature_names_in_", position_names(count)))
        # In a frame, a question mark may be a category like others.
        levels = {text_of(level).strip() for column in columns for level in getattr(column, "levels", ())}
        # Dates are written as in the frame, unless a file shows it as well.
        patterns = [getattr(column, "pattern", "iso") for column in columns]
        forms = [None if pattern == "iso" else Form("date", pattern=pattern) for pattern in patterns]
        return cls(
            columns=tuple(map(FileColumn, names, range(count), forms)),
            targets=(),
            named=hasattr(estimator, "feature_names_in_"),
            n_columns=count,
            missing=tuple(text for text in DEFAULT_MISSING if text not in levels),
        )

    def match(self, table: TableFile, targets: Sequence[int] = ()) -> list[int]:
        """Indexes in ``table`` of all columns; ``targets`` are columns that stand among them in a model of arrays."""
        if self.named and table.names is not None:
            places = {name: k for k, name in enumerate(table.names)}
            lacking = [column.name for column in self.columns if column.name not in places]
            if lacking:
                raise TableError(
                    f"{table.label} lacks the column{'s' if len(lacking) > 1 else ''} {listed(lacking)}; it has "
                    f"{listed(table.names)}. Name the columns as in training, or, if it has no header, say "
                    f"{option('header', 'no')}."
                )
            return [places[column.name] for column in self.columns]
        if not self.targets and targets and table.n_columns == self.n_columns + len(targets):
            absent: Sequence[int] = ()
            present = [k for k in range(table.n_columns) if k not in targets]
        else:
            absent = self._left_out(table)
            present = list(range(table.n_columns))
        return [present[column.position - sum(gone < column.position for gone in absent)] for column in self.columns]

    def match_targets(self, table: TableFile, given: Sequence[str | int] | None, wanted: int) -> list[int]:
        """Index in ``table`` of each of the ``wanted`` targets: those that are given, or those of the training."""
        if given is not None:
            if len(given) != wanted:
                raise TableError(
                    f"the model predicts {wanted} column{'s' if wanted > 1 else ''}, but {len(given)} targets are "
                    f"named: {', '.join(map(str, given))}. Name {wanted} with {option('target')}."
                )
            return [find_column(name, table.names, table.n_columns, table.label) for name in given]
        if not self.targets:
            raise TableError(
                f"the model file does not say which column is the target. Name it with {option('target')}."
            )
        if self.named and table.names is not None:
            if all(target.name in table.names for target in self.targets):
                return [table.names.index(target.name) for target in self.targets]
        elif not self._left_out(table):
            return [target.position for target in self.targets]
        names = " and ".join(repr(target.name) for target in self.targets)
        raise TableError(f"{table.label} lacks the target {names}. Name another column with {option('target')}.")

    def _left_out(self, table: TableFile) -> tuple[int, ...]:
        """Positions that a table does not have: those of the targets, where it comes without them."""
        if table.n_columns == self.n_columns:
            return ()
        if self.targets and table.n_columns == self.n_columns - len(self.targets):
            return tuple(target.position for target in self.targets)
        without = ", the target included" if self.targets else ""
        raise TableError(
            f"{table.label} has {table.n_columns} columns, but the model was fitted on {self.n_columns}{without}. "
            "Bring the same columns in the same order."
        )


def fitted_columns(estimator: Any) -> tuple[Column | None, ...]:
    """Return the columns of an estimator; None for plain numbers."""
    columns = estimator.model_.columns
    return (None,) * estimator.n_features_in_ if columns is None else columns.columns


def find_column(given: str | int, names: Sequence[str] | None, n_columns: int, label: str) -> int:
    """Index of a column given by name or by position, 0 being the first and -1 the last; names come first."""
    if names is not None and given in names:
        return list(names).index(str(given))
    try:
        position = int(given)
    except ValueError:
        position = n_columns
    if -n_columns <= position < n_columns:
        return position % n_columns
    known = "no header" if names is None else f"the columns {listed(names)}"
    raise TableError(
        f"{label} has no column {given!r}; it has {known}. Give a name, or a position from 0 to {n_columns - 1}; "
        "-1 is the last."
    )


# --- the layout in a model file: docs/model-files.md describes it ---


def write_section(layout: Layout, training: dict[str, Fact], estimator: Any) -> dict[str, Any]:
    """Return the JSON of a layout, and of facts about the training: file, rows, errors."""
    _check_fits(layout, estimator)

    def write(columns: Sequence[FileColumn]) -> list[dict[str, Any]]:
        return [vars(column) | {"form": column.form and column.form.to_json()} for column in columns]

    section = vars(layout) | {"columns": write(layout.columns), "targets": write(layout.targets)}
    return section | {"missing": list(layout.missing), "training": training}


def read_section(content: dict[str, Any], estimator: Any) -> tuple[Layout, dict[str, Fact]]:
    """Return layout and facts about the training; nothing is trusted, and what is wrong is a ValueError."""
    names = ("columns", "targets", "named", "n_columns", "missing", "training")
    columns, targets, named, n_columns, missing, training = _take(content, "the table", names)
    if type(n_columns) is not int or not 1 <= n_columns <= 1 << 31 or type(named) is not bool:
        raise ValueError("the table's number of columns is not plausible.")
    if not isinstance(columns, list) or not columns or not isinstance(targets, list):
        raise ValueError("the table has no columns.")
    both = [_read_column(entry, n_columns) for entry in columns + targets]
    if min(len({column.position for column in both}), len({column.name for column in both})) < len(both):
        raise ValueError("the table has a column twice.")
    is_list = isinstance(missing, list) and all(isinstance(text, str) for text in missing)
    if not is_list or len(set(missing)) < len(missing):
        raise ValueError("missing should be a list of different texts.")
    if not isinstance(training, dict) or not all(map(_is_fact, training.values())):
        raise ValueError("the record of the training should map names to text and finite numbers.")
    layout = Layout(tuple(both[: len(columns)]), tuple(both[len(columns) :]), named, n_columns, tuple(missing))
    _check_fits(layout, estimator)
    return layout, training


def _is_fact(value: Any) -> bool:
    return isinstance(value, Fact) and (not isinstance(value, float) or math.isfinite(value))


def _check_fits(layout: Layout, estimator: Any) -> None:
    """Refuse a layout with other columns or targets than the estimator has."""
    names = [column.name for column in layout.columns]
    if list(map(str, getattr(estimator, "feature_names_in_", ()))) != names:
        raise ValueError("the columns of the table are not those of the model.")
    fitted = estimator.model_
    n_outputs = 1 if fitted.one_output else fitted.n_trains
    if layout.targets and len(layout.targets) != n_outputs:
        raise ValueError(f"the table has {len(layout.targets)} targets, and the model predicts {n_outputs}.")


def _take(entry: Any, what: str, names: tuple[str, ...]) -> list[Any]:
    """Values of these entries, which must be all there are."""
    if not isinstance(entry, dict) or entry.keys() != set(names):
        raise ValueError(f"{what} should have {', '.join(names)}.")
    return [entry[name] for name in names]


def _read_column(entry: Any, n_columns: int) -> FileColumn:
    name, position, form = _take(entry, "a column", ("name", "position", "form"))
    if not isinstance(name, str) or type(position) is not int or not 0 <= position < n_columns:
        raise ValueError(f"the column {name!r:.60} of the table is not plausible.")
    return FileColumn(name, position, None if form is None else Form.from_json(form))
