"""What is remembered of the training table: which columns are used, and how their cells become features.

Every column is one feature: a number, or the number of a category, NaN where it is missing. Models of older files were
fitted on more features: a number whose missing values became the median and were marked by a second feature, and one
feature of 0 and 1 per category.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain import columns
from polytrain.columns.names import unique_names
from polytrain.columns.scalars import text_of
from polytrain.tables.cells import DEFAULT_MISSING, as_numbers, as_text, number_text, truth_as_numbers
from polytrain.tables.errors import TableError
from polytrain.tables.reading import Block, Table, position_names

__all__ = ["CategoryColumn", "NumberColumn", "Preparation", "Target", "find_column"]


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers.

    Attributes
    ----------
    name : str
    position : int
        Place in the training table, from 0.
    fill : float or None
        What replaces missing values; with None they stay missing.
    marked : bool
        Whether missing values have a feature of their own; only where they are replaced.
    has_truth : bool
        Whether True and False are read as 1 and 0, as in a column of a frame.
    """

    name: str
    position: int
    fill: float | None = None
    marked: bool = False
    has_truth: bool = False

    @property
    def feature_names(self) -> list[str]:
        """Names of the features that the column becomes."""
        return [self.name, f"{self.name} is missing"] if self.marked else [self.name]

    def encode(self, block: Block, index: int, missing: Collection[str], where: str, unknown: str) -> NDArray:
        """Features (N, 1 or 2) of the column at ``index``."""
        cells = block.columns[index]
        values, wrong = as_numbers(truth_as_numbers(cells) if self.has_truth else cells, missing)
        if wrong is not None:
            raise TableError(
                f"{where}, {block.place(wrong)}: column {self.name!r} holds numbers, but here "
                f"{cells[wrong]!r:.60}. Mend the cell, or leave it empty if the value is missing."
            )
        if self.fill is None:
            return values[:, None]
        gone = np.isnan(values)
        filled = np.where(gone, self.fill, values)
        return np.stack([filled, gone.astype(np.float64)], axis=1) if self.marked else filled[:, None]


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories.

    Attributes
    ----------
    name : str
    position : int
        Place in the training table, from 0.
    categories : tuple of str
        Those of the training rows. A cell such as 3.0 is also the category 3.
    marked : bool
        Whether missing cells have a feature of their own; only where there is one per category.
    coded : bool
        Whether the column is one feature with the number of the category, NaN for a missing cell and -1 for a category
        that is not known; otherwise one feature of 0 and 1 per category, all of them 0 for other cells.
    """

    name: str
    position: int
    categories: tuple[str, ...]
    marked: bool = False
    coded: bool = True

    @property
    def feature_names(self) -> list[str]:
        """Names of the features that the column becomes."""
        if self.coded:
            return [self.name]
        names = [f"{self.name}={category}" for category in self.categories]
        return [*names, f"{self.name} is missing"] if self.marked else names

    def encode(self, block: Block, index: int, missing: Collection[str], where: str, unknown: str) -> NDArray:
        """Features (N, 1 or one per category) of the column at ``index``."""
        cells = as_text(block.columns[index], missing)
        numbers = self._numbers(cells)
        if unknown == "error" and (numbers == -1).any():
            row = int((numbers == -1).argmax())
            raise TableError(
                f"{where}, {block.place(row)}: {cells[row]!r:.60} is a new category of column {self.name!r}. "
                "Mend the cell, or say --new-categories ignore."
            )
        if self.coded:
            return numbers[:, None]
        places = np.where(np.isnan(numbers), len(self.categories), numbers)
        return (places[:, None] == np.arange(len(self.categories) + self.marked)).astype(np.float64)

    def _numbers(self, cells: Sequence[str | None]) -> NDArray:
        """Return the number of each cell's category, NaN for a missing cell, -1 for a category that is not known."""
        known: dict[str | None, float] = {category: float(k) for k, category in enumerate(self.categories)}
        known[None] = np.nan
        for cell in set(cells) - known.keys():
            known[cell] = known.get(number_text(str(cell)), -1.0)
        return np.array([known[cell] for cell in cells], dtype=np.float64)


@dataclass(frozen=True)
class Target:
    """The column that is predicted; ``is_text`` tells labels that are text from numbers."""

    name: str
    position: int
    is_text: bool


@dataclass(frozen=True)
class Preparation:
    """How rows of a table become rows of features.

    Attributes
    ----------
    columns : tuple of NumberColumn and CategoryColumn
        The columns that are used, in the order of the features.
    target : Target or None
        What is predicted; None where the model was not fitted from a table.
    named : bool
        Whether columns are found by name; otherwise by position.
    n_columns : int
        Columns of the training table, the target included.
    missing : tuple of str
        What stands for a missing value, besides the empty cell.

    Examples
    --------
    >>> from polytrain.tables import Block, CategoryColumn, NumberColumn, Preparation
    >>> columns = (NumberColumn("age", 0), CategoryColumn("job", 1, ("cook", "smith")))
    >>> preparation = Preparation(columns, None, False, 2, ("?",))
    >>> preparation.feature_names
    ['age', 'job']
    >>> preparation.encode(Block([["31", "?"], ["smith", "cook"]], [1, 2]), [0, 1], "people.csv")
    array([[31.,  1.],
           [nan,  0.]])
    """

    columns: tuple[NumberColumn | CategoryColumn, ...]
    target: Target | None
    named: bool
    n_columns: int
    missing: tuple[str, ...]

    @cached_property
    def missing_texts(self) -> frozenset[str]:
        """The same texts, for cells to be looked up in."""
        return frozenset(self.missing)

    @classmethod
    def of_estimator(cls, model: Any) -> Preparation:
        """Return the preparation of a model that was not fitted from a table, but from an array or a frame."""
        count = model.n_features_in_
        named = hasattr(model, "feature_names_in_")
        names = [str(name) for name in (model.feature_names_in_ if named else position_names(count))]
        fitted = model.model_
        found: tuple[NumberColumn | CategoryColumn, ...]
        if fitted.columns is None:
            found = tuple(NumberColumn(name, k, _fill(fitted.maps[k])) for k, name in enumerate(names))
        else:
            found = tuple(_frame_column(name, k, fitted.columns.columns[k]) for k, name in enumerate(names))
        # In a frame, a question mark may be a category like others.
        levels = {category for column in found if isinstance(column, CategoryColumn) for category in column.categories}
        return cls(found, None, named, count, tuple(text for text in DEFAULT_MISSING if text not in levels))

    @property
    def categories(self) -> list[int]:
        """Features that are numbers of categories."""
        coded = [isinstance(column, CategoryColumn) and column.coded for column in self.columns]
        return [place.start for (_, place), is_coded in zip(self.groups, coded, strict=True) if is_coded]

    @property
    def is_one_hot(self) -> bool:
        """Whether some column has one feature per category, as in models of older files."""
        return any(isinstance(column, CategoryColumn) and not column.coded for column in self.columns)

    @property
    def feature_names(self) -> list[str]:
        """Names of all features, no two of them alike."""
        return unique_names([(column.name, column.feature_names) for column in self.columns])

    @property
    def groups(self) -> list[tuple[str, slice]]:
        """Name of every column and the place of its features."""
        groups, start = [], 0
        for column in self.columns:
            stop = start + len(column.feature_names)
            groups.append((column.name, slice(start, stop)))
            start = stop
        return groups

    def match(self, table: Table) -> list[int]:
        """Index in ``table`` of every column that is used."""
        if self.named and table.names is not None:
            places = {name: k for k, name in enumerate(table.names)}
            lacking = [column.name for column in self.columns if column.name not in places]
            if lacking:
                raise TableError(
                    f"{table.label} lacks the column{'s' if len(lacking) > 1 else ''} {', '.join(lacking)}; it has "
                    f"{_listed(table.names)}. Name the columns as in training, or say --header no if it has no header."
                )
            return [places[column.name] for column in self.columns]
        shift = self._shift(table)
        return [column.position - (column.position > shift) for column in self.columns]

    def match_target(self, table: Table, given: str | None = None) -> int:
        """Index in ``table`` of the target: the one that is given, or the one of the training."""
        if given is not None:
            return find_column(given, table.names, table.n_columns, table.label)
        if self.target is None:
            raise TableError("the model file does not say which column is the target. Name it with --target.")
        if self.named and table.names is not None:
            if self.target.name in table.names:
                return table.names.index(self.target.name)
        elif self._shift(table) == self.n_columns:
            return self.target.position
        raise TableError(f"{table.label} lacks the target {self.target.name!r}. Name another column with --target.")

    def _shift(self, table: Table) -> int:
        """Position after which columns have moved by one: that of the target where the table comes without it."""
        if table.n_columns == self.n_columns:
            return self.n_columns
        if self.target is not None and table.n_columns == self.n_columns - 1:
            return self.target.position
        without = "" if self.target is None else ", the target included"
        raise TableError(
            f"{table.label} has {table.n_columns} columns, but the model was fitted on {self.n_columns}{without}. "
            "Bring the same columns in the same order."
        )

    def encode(self, block: Block, indexes: Sequence[int], where: str, unknown: str = "error") -> NDArray:
        """Features of a block, shape (N, d); ``unknown`` is what new categories are: an "error", or to "ignore"."""
        parts = [
            column.encode(block, index, self.missing_texts, where, unknown)
            for column, index in zip(self.columns, indexes, strict=True)
        ]
        return np.concatenate(parts, axis=1)


def _fill(feature_map: Any) -> float | None:
    """What stands for a missing value where training had none: the middle of the range, unless the map knows better."""
    if feature_map.takes_missing:
        return None
    low, high = feature_map.range or (0.0, 0.0)
    return float(low / 2 + high / 2)  # the whole range might exceed the largest float


def _frame_column(name: str, position: int, column: columns.Column) -> NumberColumn | CategoryColumn:
    """Return how the cells of a table become what a column of a frame became."""
    if isinstance(column, columns.NumberColumn):
        return NumberColumn(name, position, has_truth=True)
    if isinstance(column, columns.CategoryColumn):
        categories = tuple(text_of(level).strip() for level in column.levels)  # cells of tables are stripped too
        if len(set(categories)) == len(categories):
            return CategoryColumn(name, position, categories)
        raise TableError(
            f"the model was fitted on categories of column {name!r} that look alike in a table, such as 1 and '1'. Use "
            "it from Python, with polytrain.load."
        )
    raise TableError(
        f"the model was fitted on dates in column {name!r}, which the commands do not read. Use it from Python, with "
        "polytrain.load, or fit it on numbers that you make of the dates."
    )


def find_column(given: str, names: Sequence[str] | None, n_columns: int, label: str) -> int:
    """Index of a column given by name or by position, 0 being the first and -1 the last; names come first."""
    if names is not None and given in names:
        return list(names).index(given)
    try:
        position = int(given)
    except ValueError:
        position = n_columns
    if -n_columns <= position < n_columns:
        return position % n_columns
    known = "no header" if names is None else f"the columns {_listed(names)}"
    raise TableError(
        f"{label} has no column {given!r}; it has {known}. Give a name, or a position from 0 to {n_columns - 1}; "
        "-1 is the last."
    )


def _listed(names: Sequence[str]) -> str:
    shown = list(names) if len(names) <= 12 else [*names[:8], "...", names[-1]]
    return ", ".join(shown)
