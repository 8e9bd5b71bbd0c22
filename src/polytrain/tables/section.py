"""The remembered layout <-> the JSON that a model file holds. ``docs/model-files.md`` describes it.

Reading trusts nothing; what is wrong is a ``ValueError`` without the file's name.
"""

from __future__ import annotations

import math
from typing import Any

from polytrain.columns.forms import Form
from polytrain.tables.layout import FileColumn, Layout

__all__ = ["Fact", "read_section", "write_section"]

#: What the record of the training may hold.
Fact = str | int | float | bool | None


def write_section(layout: Layout, training: dict[str, Fact], estimator: Any) -> dict[str, Any]:
    """Return the JSON of a layout, and of facts about the training: file, rows, errors."""
    _check_fits(layout, estimator)
    return {
        "columns": [_write_column(column) for column in layout.columns],
        "targets": [_write_column(target) for target in layout.targets],
        "named": layout.named,
        "n_columns": layout.n_columns,
        "missing": list(layout.missing),
        "training": training,
    }


def read_section(content: dict[str, Any], estimator: Any) -> tuple[Layout, dict[str, Fact]]:
    """Check JSON and return the layout and the facts about the training."""
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
    layout = Layout(used, goals, named, n_columns, _texts("missing", missing))
    _check_fits(layout, estimator)
    return layout, dict(_read_training(training))


def _check_fits(layout: Layout, estimator: Any) -> None:
    """Refuse a layout with other columns or targets than the estimator has."""
    names = [column.name for column in layout.columns]
    if list(map(str, getattr(estimator, "feature_names_in_", ()))) != names:
        raise ValueError("the columns of the table are not those of the model.")
    fitted = estimator.model_
    wanted = 1 if fitted.one_output else fitted.n_trains
    if layout.targets and len(layout.targets) != wanted:
        raise ValueError(f"the table has {len(layout.targets)} targets, and the model predicts {wanted}.")


def _take(entry: Any, what: str, names: tuple[str, ...]) -> list[Any]:
    """Values of these entries, which must be all there are."""
    if not isinstance(entry, dict) or entry.keys() != set(names):
        raise ValueError(f"{what} should have {', '.join(names)}.")
    return [entry[name] for name in names]


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
