"""The remembered layout <-> the JSON that a model file holds. ``docs/model-files.md`` describes it.

Reading trusts nothing; what is wrong is a ``ValueError`` without the file's name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polytrain.columns import CategoryColumn, Column, Columns, FilledColumn, NumberColumn, OneHotColumn
from polytrain.columns.scalars import sort_levels
from polytrain.tables.files import Form
from polytrain.tables.layout import FileColumn, Layout

__all__ = ["TableSection"]

#: What the record of the training may hold.
Fact = str | int | float | bool | None


@dataclass(frozen=True)
class TableSection:
    """What a model file knows about tables.

    Attributes
    ----------
    layout : Layout
        Where the columns are in a file, and how they are written.
    training : dict
        Facts about the training: file, rows, errors.
    """

    layout: Layout
    training: dict[str, Fact] = field(default_factory=dict)

    def write(self) -> dict[str, Any]:
        """Return the JSON."""
        layout = self.layout
        return {
            "columns": [_write_column(column) for column in layout.columns],
            "targets": [_write_column(target) for target in layout.targets],
            "named": layout.named,
            "n_columns": layout.n_columns,
            "missing": list(layout.missing),
            "training": self.training,
        }

    @classmethod
    def read(cls, content: dict[str, Any], estimator: Any) -> TableSection:
        """Check JSON and return what it says; an estimator of an older file is told what its columns are."""
        if isinstance(content, dict) and "target" in content:
            content = _read_older(content, estimator)
        names = ("columns", "targets", "named", "n_columns", "missing", "training")
        columns, targets, named, n_columns, missing, training = _take(content, "the table", names)
        if type(n_columns) is not int or not 1 <= n_columns <= 1 << 31 or type(named) is not bool:
            raise ValueError("the table's number of columns is not plausible.")
        if not isinstance(columns, list) or not columns or not isinstance(targets, list):
            raise ValueError("the table has no columns.")
        used, goals = (tuple(_read_column(entry, n_columns) for entry in entries) for entries in (columns, targets))
        both = (*used, *goals)
        if len({c.position for c in both}) < len(both) or len({c.name for c in both}) < len(both):
            raise ValueError("the table has a column twice.")
        return cls(Layout(used, goals, named, n_columns, _texts("missing", missing)), _read_training(training))

    def check_fits(self, estimator: Any) -> None:
        """Refuse a layout with other columns or targets than the estimator has."""
        names = [column.name for column in self.layout.columns]
        if list(map(str, getattr(estimator, "feature_names_in_", ()))) != names:
            raise ValueError("the columns of the table are not those of the model.")
        fitted, targets = estimator.model_, self.layout.targets
        wanted = 1 if fitted.one_output else fitted.n_trains
        if targets and len(targets) != wanted:
            raise ValueError(f"the table has {len(targets)} targets, and the model predicts {wanted}.")


def _take(entry: Any, what: str, names: tuple[str, ...], later: tuple[str, ...] = ()) -> list[Any]:
    """Values of these entries, which must be all there are; those of ``later`` are None in older files."""
    if not isinstance(entry, dict) or not set(names) <= entry.keys() <= {*names, *later}:
        raise ValueError(f"{what} should have {', '.join(names)}.")
    return [entry.get(name) for name in (*names, *later)]


def _texts(what: str, content: Any) -> tuple[str, ...]:
    if not isinstance(content, list) or not all(isinstance(text, str) for text in content):
        raise ValueError(f"{what} should be a list of text.")
    if len(set(content)) < len(content):
        raise ValueError(f"{what} names something twice.")
    return tuple(content)


def _write_column(column: FileColumn) -> dict[str, Any]:
    form = None if column.form is None else column.form.to_json()
    return {"name": column.name, "position": column.position, "form": form}


def _read_column(entry: Any, n_columns: int) -> FileColumn:
    name, position, form = _take(entry, "a column", ("name", "position", "form"))
    if not isinstance(name, str) or type(position) is not int or not 0 <= position < n_columns:
        raise ValueError(f"the column {name!r:.60} of the table is not plausible.")
    return FileColumn(name, position, None if form is None else Form.from_json(form))


def _read_training(content: Any) -> dict[str, Fact]:
    if not isinstance(content, dict) or not all(isinstance(value, Fact) for value in content.values()):
        raise ValueError("the record of the training should map names to text and numbers.")
    if any(isinstance(value, float) and not math.isfinite(value) for value in content.values()):
        raise ValueError("the record of the training holds a number that is not finite.")
    return content


# --- older files ------------------------------------------------------------------------------------------------------


def _read_older(content: dict[str, Any], estimator: Any) -> dict[str, Any]:
    """Bring a section of files that had the columns here into today's form, and give them to the estimator."""
    names = ("columns", "target", "named", "n_columns", "missing", "training")
    columns, target, *rest = _take(content, "the table", names)
    if not isinstance(columns, list) or not columns:
        raise ValueError("the table has no columns.")
    learned = Columns(tuple(_older_column(entry) for entry in columns))
    # Names that are alike were once stored as they are.
    made = tuple(name for column in learned.columns for name in column.feature_names)
    if tuple(estimator.model_.feature_names or ()) not in (learned.feature_names, made):
        raise ValueError("the features of the table are not those of the model.")
    estimator.model_ = replace(estimator.model_, columns=learned, feature_names=learned.feature_names)
    estimator.n_features_in_ = learned.n_columns
    estimator.feature_names_in_ = np.array([column.name for column in learned.columns], dtype=object)
    goals = [] if target is None else [target]
    for entry in (*columns, *goals):
        if not isinstance(entry, dict) or not {"name", "position"} <= entry.keys():
            raise ValueError("a column of the table has no name or no position.")
    places = [[{"name": e["name"], "position": e["position"], "form": None} for e in some] for some in (columns, goals)]
    return dict(zip(("columns", "targets", *names[2:]), (*places, *rest), strict=True))


def _older_column(entry: Any) -> Column:
    """What a column is: a number or the number of a category, or in the first files several features."""
    if not isinstance(entry, dict) or not isinstance(name := entry.get("name"), str):
        raise ValueError("a column of the table has no name.")
    common = ("name", "position", "marked")
    if "fill" in entry:
        _, _, marked, fill, truth = _take(entry, "a column", (*common, "fill"), ("has_truth",))
        if marked not in (0, 1) or (fill is None and marked) or not (truth is None or type(truth) is bool):
            raise ValueError(f"the column {name!r:.60} of numbers is not plausible.")
        if fill is None:
            return NumberColumn(name)
        return FilledColumn.from_json({"kind": FilledColumn.kind, "name": name, "fill": fill, "marked": bool(marked)})
    _, _, marked, categories, coded = _take(entry, "a column", (*common, "categories"), ("coded",))
    if marked not in (0, 1) or not (coded is None or type(coded) is bool) or (coded and marked):
        raise ValueError(f"the column {name!r:.60} of categories is not plausible.")
    levels = _texts("categories", categories)
    if not levels or sort_levels(set(levels)) != levels:
        raise ValueError(f"the categories of the column {name!r:.60} are not in order.")
    return CategoryColumn(name, levels) if coded else OneHotColumn(name, levels, marked=bool(marked))
