"""The remembered preparation <-> the JSON that a model file holds. ``docs/model-files.md`` describes it.

Reading trusts nothing; what is wrong is a ``ValueError`` without the file's name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from polytrain.tables.preparation import CategoryColumn, NumberColumn, Preparation, Target

__all__ = ["TableSection"]

#: What the record of the training may hold.
Fact = str | int | float | bool | None


@dataclass(frozen=True)
class TableSection:
    """What a model file knows about tables.

    Attributes
    ----------
    preparation : Preparation
        How rows of a table become features.
    training : dict
        Facts about the training: file, rows, how the settings were chosen, errors.
    """

    preparation: Preparation
    training: dict[str, Fact] = field(default_factory=dict)

    def write(self) -> dict[str, Any]:
        """Return the JSON."""
        preparation, target = self.preparation, self.preparation.target
        return {
            "columns": [_write_column(column) for column in preparation.columns],
            "target": target and {"name": target.name, "position": target.position, "is_text": target.is_text},
            "named": preparation.named,
            "n_columns": preparation.n_columns,
            "missing": list(preparation.missing),
            "training": self.training,
        }

    @classmethod
    def read(cls, content: dict[str, Any]) -> TableSection:
        """Check JSON and return what it says."""
        names = ("columns", "target", "named", "n_columns", "missing", "training")
        columns, target, named, n_columns, missing, training = _take(content, "the table", names)
        if type(n_columns) is not int or not 1 <= n_columns <= 1 << 31 or type(named) is not bool:
            raise ValueError("the table's number of columns is not plausible.")
        if not isinstance(columns, list) or not columns:
            raise ValueError("the table has no columns.")
        read = tuple(_read_column(entry, n_columns) for entry in columns)
        goal = None if target is None else _read_target(target, n_columns)
        taken = [column.position for column in read] + ([] if goal is None else [goal.position])
        titles = [column.name for column in read] + ([] if goal is None else [goal.name])
        if len(set(taken)) < len(taken) or len(set(titles)) < len(titles):
            raise ValueError("the table has a column twice.")
        return cls(Preparation(read, goal, named, n_columns, _texts("missing", missing)), _read_training(training))

    def check_fits(self, n_features: int, feature_names: list[str] | None, is_text: bool | None) -> None:
        """Refuse a model with other features or another target; ``is_text`` is None for regressors."""
        names = self.preparation.feature_names
        # Names that are alike were once stored as they are.
        made = [name for column in self.preparation.columns for name in column.feature_names]
        if len(names) != n_features or feature_names not in (names, made):
            raise ValueError("the features of the table are not those of the model.")
        target = self.preparation.target
        if target is not None and target.is_text != bool(is_text):
            raise ValueError("the target of the table is not that of the model.")


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


def _check_place(name: Any, position: Any, flag: Any, n_columns: int) -> None:
    if not isinstance(name, str) or type(position) is not int or not 0 <= position < n_columns or flag not in (0, 1):
        raise ValueError(f"the column {name!r:.60} of the table is not plausible.")


def _write_column(column: NumberColumn | CategoryColumn) -> dict[str, Any]:
    entry = {"name": column.name, "position": column.position, "marked": column.marked}
    if isinstance(column, NumberColumn):
        return {**entry, "fill": column.fill, "has_truth": column.has_truth}
    return {**entry, "categories": list(column.categories), "coded": column.coded}


def _read_column(entry: Any, n_columns: int) -> NumberColumn | CategoryColumn:
    common = ("name", "position", "marked")
    if isinstance(entry, dict) and "fill" in entry:
        name, position, marked, fill, has_truth = _take(entry, "a column", (*common, "fill"), ("has_truth",))
        _check_place(name, position, marked, n_columns)
        if fill is not None and (type(fill) is not float or not math.isfinite(fill)):
            raise ValueError(f"the column {name!r:.60} has no number for missing values.")
        if (fill is None and marked) or not (has_truth is None or type(has_truth) is bool):
            raise ValueError(f"the column {name!r:.60} of numbers is not plausible.")
        return NumberColumn(name, position, fill, bool(marked), bool(has_truth))
    name, position, marked, categories, coded = _take(entry, "a column", (*common, "categories"), ("coded",))
    _check_place(name, position, marked, n_columns)
    if not (coded is None or type(coded) is bool) or (coded and marked):
        raise ValueError(f"the column {name!r:.60} of categories is not plausible.")
    return CategoryColumn(name, position, _texts("categories", categories), bool(marked), bool(coded))


def _read_target(entry: Any, n_columns: int) -> Target:
    name, position, is_text = _take(entry, "the target", ("name", "position", "is_text"))
    _check_place(name, position, is_text, n_columns)
    return Target(name, position, bool(is_text))


def _read_training(content: Any) -> dict[str, Fact]:
    if not isinstance(content, dict) or not all(isinstance(value, Fact) for value in content.values()):
        raise ValueError("the record of the training should map names to text and numbers.")
    if any(isinstance(value, float) and not math.isfinite(value) for value in content.values()):
        raise ValueError("the record of the training holds a number that is not finite.")
    return content
