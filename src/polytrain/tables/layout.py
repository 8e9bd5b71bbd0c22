"""Positions and forms of a model's columns in a file, and their record in a model file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from polytrain.columns import Column
from polytrain.columns.forms import DEFAULT_MISSING, Form
from polytrain.columns.scalars import text_of
from polytrain.records import read_entries
from polytrain.tables.options import TableError, option
from polytrain.tables.table_file import TableFile, position_names
from polytrain.texts import listed

__all__ = ["Fact", "Layout", "column_names", "find_column", "fitted_columns", "read_section", "write_section"]

#: Values in the record of the training.
Fact = str | int | float | bool | None


@dataclass(frozen=True)
class Layout:
    """Where the columns of the training table are and how they are written.

    ``names`` are those of all its columns, in order; ``targets`` are some of them, and empty where the model was not
    fitted from a table. ``offset`` and ``weight`` are those of the columns that held offsets and weights, None without.
    Columns are found by name if ``named``, else by position. ``forms`` define how text is read as numbers or dates;
    where a column has none, it is detected in each file. ``missing`` are the texts that stand for a missing value,
    besides the empty cell.
    """

    names: tuple[str, ...]
    targets: tuple[str, ...]
    named: bool
    forms: dict[str, Form]
    missing: tuple[str, ...] = DEFAULT_MISSING
    offset: str | None = None
    weight: str | None = None

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that hold targets, offsets and weights."""
        return (*self.targets, *(name for name in (self.offset, self.weight) if name is not None))

    @classmethod
    def of_estimator(cls, estimator: Any) -> Layout:
        """Return the layout of a model that was not fitted from a file, but from an array or a frame."""
        columns = fitted_columns(estimator)
        names = tuple(map(str, getattr(estimator, "feature_names_in_", position_names(len(columns)))))
        # In a frame, a question mark may be an ordinary category.
        levels = {text_of(level).strip() for column in columns for level in getattr(column, "levels", ())}
        # Dates are written as in the frame, unless a file has another form.
        patterns = {name: getattr(column, "pattern", "iso") for name, column in zip(names, columns, strict=True)}
        forms = {name: Form("date", pattern=pattern) for name, pattern in patterns.items() if pattern != "iso"}
        missing = tuple(text for text in DEFAULT_MISSING if text not in levels)
        return cls(names, (), hasattr(estimator, "feature_names_in_"), forms, missing)

    def find(self, table: TableFile, names: Sequence[str], among: Sequence[int] = ()) -> list[int]:
        """Return where columns of the training are in ``table``.

        ``among`` are columns that stand among those of a model of arrays, such as its target.
        """
        absent = len(self.names) - len(table.names)
        known: Sequence[str | None]
        if self.named and table.named:
            known = table.names
        elif absent == 0:
            known = self.names
        elif absent in (len(self.targets), len({*self.targets, self.weight} - {None})):
            gone = {*self.targets} if absent == len(self.targets) else {*self.targets, self.weight}
            known = [name for name in self.names if name not in gone]
        elif not self.targets and absent == -len(among):
            rest = iter(self.names)
            known = [None if k in among else next(rest) for k in range(len(table.names))]
        else:
            without = ", the target included" if self.targets else ""
            raise TableError(
                f"{table.label} has {len(table.names)} columns, but the model was fitted on {len(self.names)}{without}."
                " Give the same columns in the same order."
            )
        places = {name: k for k, name in enumerate(known)}
        if lacking := [name for name in names if name not in places]:
            remedy = f"Name the columns as in training, or, if it has no header, pass {option('header', 'no')}"
            what = "column"
            for kind, held in (("target", self.targets), ("offset", [self.offset]), ("weight", [self.weight])):
                if set(lacking) <= set(held):
                    what, remedy = kind, f"Add it, or name another column with {option(kind)}"
            raise TableError(
                f"{table.label} lacks the {what}{'s' if len(lacking) > 1 else ''} {listed(lacking)}; it has "
                f"{listed(table.names)}. {remedy}."
            )
        return [places[name] for name in names]

    def find_other(self, table: TableFile, role: str, given: str | int | None) -> int | None:
        """Return where the "offset" or the "weight" is: the column that is given, or that of the training, if any."""
        if given is not None:
            return find_column(given, table)
        name = getattr(self, role)
        return None if name is None else self.find(table, [name])[0]

    def find_targets(self, table: TableFile, given: Sequence[str | int] | None, wanted: int) -> list[int]:
        """Return where the ``wanted`` targets are in ``table``: those that are given, or those of the training."""
        if given is None and not self.targets:
            raise TableError(f"the model file does not name the target. Name it with {option('target')}.")
        if given is None:
            return self.find(table, self.targets)
        if len(given) != wanted:
            raise TableError(
                f"the model predicts {wanted} column{'s' if wanted > 1 else ''}, but {len(given)} targets are named: "
                f"{', '.join(map(str, given))}. Name {wanted} with {option('target')}."
            )
        return [find_column(name, table) for name in given]


def column_names(layout: Layout, estimator: Any) -> list[str]:
    """Return the names that the columns of an estimator have in a table."""
    return list(map(str, getattr(estimator, "feature_names_in_", layout.names)))


def fitted_columns(estimator: Any) -> tuple[Column | None, ...]:
    """Return the columns of an estimator; None for plain numbers."""
    columns = estimator.model_.columns
    return (None,) * estimator.n_features_in_ if columns is None else columns.columns


def find_column(given: str | int, table: TableFile) -> int:
    """Return where a column is, given by name or by position, 0 being the first and -1 the last; names come first."""
    if given in table.names:
        return table.names.index(str(given))
    count = len(table.names)
    try:
        position = int(given)
    except ValueError:
        position = count
    if -count <= position < count:
        return position % count
    is_header = option("header", "yes")
    known = f"the columns {listed(table.names)}" if table.named else f"no header ({is_header} if the first row is one)"
    raise TableError(
        f"{table.label} has no column {given!r}; it has {known}. Give a name, or a position from 0 to {count - 1}; "
        "-1 is the last."
    )


# --- the layout in a model file: docs/model-files.md describes it ---


def write_section(layout: Layout, training: dict[str, Fact], estimator: Any) -> dict[str, Any]:
    """Return the JSON of a layout, and of facts about the training: file, rows, errors."""
    _check_fits(layout, estimator)
    return {"layout": asdict(layout), "training": training}


def read_section(content: dict[str, Any], estimator: Any) -> tuple[Layout, dict[str, Fact]]:
    """Return layout and facts about the training; nothing is trusted, and any problem raises a ValueError."""
    section = read_entries("the table", content, {"layout": Layout, "training": dict[str, Fact]})
    layout = section["layout"]
    for name in ("names", "targets", "missing"):
        if len(set(getattr(layout, name))) < len(getattr(layout, name)):
            raise ValueError(f"{name} of the table should be different texts.")
    if len(set(layout.others)) < len(layout.others):
        raise ValueError("targets, offset and weight of the table should be different columns.")
    if not layout.forms.keys() <= set(layout.names):
        raise ValueError("the forms of the table should be those of its columns.")
    _check_fits(layout, estimator)
    return layout, section["training"]


def _check_fits(layout: Layout, estimator: Any) -> None:
    """Refuse a layout that lacks columns of the estimator, or has another number of targets."""
    learned = set(layout.names) - set(layout.others)
    columns = set(getattr(estimator, "feature_names_in_", learned))
    if not columns <= learned or len(columns) != estimator.n_features_in_ or not set(layout.others) <= {*layout.names}:
        raise ValueError("the columns of the table are not those of the model.")
    fitted = estimator.model_
    n_outputs = 1 if fitted.one_output else fitted.n_trains
    if layout.targets and len(layout.targets) != n_outputs:
        raise ValueError(f"the table has {len(layout.targets)} targets, and the model predicts {n_outputs}.")
