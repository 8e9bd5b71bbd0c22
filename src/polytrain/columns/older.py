"""Columns of models that older versions fitted from tables: several features each. Nothing makes them any more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.cells import Cells
from polytrain.columns.column import KINDS, CategoryColumn, NumberColumn

__all__ = ["FilledColumn", "OneHotColumn"]


@dataclass(frozen=True)
class FilledColumn(NumberColumn):
    """A column of numbers whose missing values became another number, and may be marked by a second feature.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.columns.cells import Cells
    >>> from polytrain.columns.older import FilledColumn
    >>> column = FilledColumn("age", fill=40.5, marked=True)
    >>> column.feature_names
    ('age', 'age is missing')
    >>> column.encode(Cells.of_array("age", np.array([30.0, np.nan])))
    [array([30. , 40.5]), array([0., 1.])]
    """

    kind: ClassVar[str] = "filled number"

    fill: float = 0.0
    marked: bool = False

    def encode(self, cells: Cells) -> list[NDArray]:
        """Return the numbers, and where they were missing."""
        numbers = cells.numbers()
        gone = np.isnan(numbers)
        return [np.where(gone, self.fill, numbers), *([gone.astype(np.float64)] if self.marked else [])]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name, and that of the mark."""
        return (self.name, f"{self.name} is missing") if self.marked else (self.name,)

    def to_json(self) -> dict[str, Any]:
        """All that there is."""
        return {"kind": self.kind, "name": self.name, "fill": self.fill, "marked": self.marked}

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Self:
        """Check that the fill is a number."""
        fill, marked = entries.get("fill"), entries.get("marked")
        if set(entries) != {"kind", "name", "fill", "marked"} or type(marked) is not bool:
            raise ValueError(f"the column {entries['name']!r:.60} of numbers is not plausible.")
        if type(fill) is not float or not math.isfinite(fill):
            raise ValueError(f"the column {entries['name']!r:.60} has no number for missing values.")
        return cls(entries["name"], fill=fill, marked=marked)


@dataclass(frozen=True)
class OneHotColumn(CategoryColumn):
    """A column of categories with one feature of 0 and 1 per level, and perhaps one for missing cells.

    Examples
    --------
    >>> from polytrain.columns.cells import Cells
    >>> from polytrain.columns.older import OneHotColumn
    >>> column = OneHotColumn("job", ("cook", "smith"), marked=True)
    >>> column.feature_names
    ('job=cook', 'job=smith', 'job is missing')
    >>> column.encode(Cells.of_objects("job", ["smith", None]))
    [array([0., 0.]), array([1., 0.]), array([0., 1.])]
    """

    kind: ClassVar[str] = "one-hot category"
    coded: ClassVar[bool] = False

    marked: bool = False

    def encode(self, cells: Cells) -> list[NDArray]:
        """Return one feature per level; all are 0 for a level that was not in training."""
        (numbers,) = super().encode(cells)
        places = np.where(np.isnan(numbers), len(self.levels), numbers)
        return [(places == k).astype(np.float64) for k in range(len(self.levels) + self.marked)]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name and level."""
        names = tuple(f"{self.name}={level}" for level in self.levels)
        return (*names, f"{self.name} is missing") if self.marked else names

    def to_json(self) -> dict[str, Any]:
        """As of categories, with the mark."""
        return {**super().to_json(), "marked": self.marked}

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Self:
        """Check levels as those of categories."""
        marked = entries.get("marked")
        if type(marked) is not bool:
            raise ValueError(f"the column {entries['name']!r:.60} of categories is not plausible.")
        column = CategoryColumn.from_json({name: value for name, value in entries.items() if name != "marked"})
        return cls(column.name, column.levels, column.as_text, marked)


KINDS.update({column.kind: column for column in (FilledColumn, OneHotColumn)})
