"""All columns of a table: what they became in training, and how other rows become the same features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.choice import chosen_columns, names_something
from polytrain.columns.column import CategoryColumn, Column, NumberColumn, TextColumn, column_from_json, fit_column
from polytrain.columns.names import unique_names
from polytrain.columns.scalars import Level, show
from polytrain.columns.table import is_frame, is_plain_frame, open_table

__all__ = ["Columns", "needs_encoding"]

# Levels of all columns together in a file; more are identifiers, which teach nothing.
_MOST_LEVELS = 1_000_000


def needs_encoding(X: Any, categorical_features: Any) -> bool:
    """Whether X is more than a matrix of numbers, so that it needs `Columns`.

    Parameters
    ----------
    X : frame or array-like
        The training rows.
    categorical_features : "from_dtype", None or array-like
        See `Columns.fit`.

    Returns
    -------
    bool
        For a frame, whether any column holds other things than NumPy's numbers (text, categories, True and False,
        dates, durations, missing values other than NaN); for an array of objects, which is what scikit-learn's
        ensembles make of a frame, whether any of them is no number; for all, whether `categorical_features` names any
        column.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from polytrain.columns import needs_encoding
    >>> needs_encoding(pd.DataFrame({"a": [1.5, 2.5]}), "from_dtype")
    False
    >>> needs_encoding(pd.DataFrame({"a": [True, False]}), "from_dtype")
    True
    >>> needs_encoding(np.zeros((3, 2)), [1])
    True
    >>> needs_encoding(np.array([["red", 1.5]], dtype=object), "from_dtype")
    True
    """
    if names_something(categorical_features):
        return True
    return not is_plain_frame(X) if is_frame(X) else _holds_other_objects(X)


def _holds_other_objects(X: Any) -> bool:
    """Whether X is an array of objects that are not all numbers, or texts of numbers."""
    if not (isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2):
        return False
    try:
        X.astype(np.float64)
    except (TypeError, ValueError):
        return True
    return False


@dataclass(frozen=True)
class Columns:
    """How the columns of a table, of any types, become one matrix of numbers.

    Parameters
    ----------
    columns : tuple of Column
        One per column of the table: a `NumberColumn`, a `CategoryColumn` or a `DateColumn`.

    Examples
    --------
    >>> import pandas as pd
    >>> from polytrain.columns import Columns
    >>> X = pd.DataFrame({
    ...     "colour": ["red", "blue", None],
    ...     "size": [1.5, 2.5, 3.5],
    ...     "when": pd.to_datetime(["1970-01-02", "1970-01-03", "1970-01-04"]),
    ... })
    >>> columns = Columns.fit(X)
    >>> columns.feature_names
    ('colour', 'size', 'when (time)', 'when (weekday)')
    >>> columns.encode(X)
    array([[1. , 1.5, 1. , 4. ],
           [0. , 2.5, 2. , 5. ],
           [nan, 3.5, 3. , 6. ]])
    >>> columns.levels[0]
    ('blue', 'red')
    """

    columns: tuple[Column, ...]

    @classmethod
    def fit(cls, X: Any, categorical_features: Any = "from_dtype") -> Self:
        """Find out what the columns are.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array-like of shape (N, d)
            The training rows.
        categorical_features : "from_dtype", None or array-like
            Which columns are categories: those whose type says so ("category" of pandas, Categorical and Enum of
            polars), none, or those that are listed by name, by number or by a True for each. Other columns of text
            are dates if all of their values are, in one of the ways to write them that `find_form` knows, and else
            categories, with a warning if they look like numbers. Columns of objects of several kinds are categories,
            with the texts of their values as levels. A column without any value is a number.

        Returns
        -------
        Columns

        Examples
        --------
        >>> import numpy as np
        >>> from polytrain.columns import Columns
        >>> Columns.fit(np.array([[7.0, 0.5], [3.0, 0.1]]), categorical_features=[0]).columns
        (CategoryColumn(name='x0', levels=(3.0, 7.0), as_text=False), NumberColumn(name='x1', empty=False))
        """
        return cls.merge([cls.fit_part(X, categorical_features)])

    @classmethod
    def fit_part(cls, X: Any, categorical_features: Any = "from_dtype") -> Self:
        """Look at a part of the rows; `merge` makes columns of all parts."""
        table = open_table(X)
        chosen = chosen_columns(categorical_features, table.names, table.has_names)
        columns = []
        for k in range(len(table.names)):
            cells = table.read(k)
            columns.append(fit_column(cells, cells.is_category if chosen is None else k in chosen))
        return cls(tuple(columns))

    def encode(self, X: Any) -> NDArray:
        """Turn rows into numbers.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array-like of shape (N, d)
            Rows with the columns of training, in the same order.

        Returns
        -------
        ndarray of shape (N, n_features)
            float64: NaN where a value is missing; categories are the numbers of their levels, and -1 if they were not
            in training.

        Raises
        ------
        ValueError
            If the number of columns is another one, or if there is text or a date where training had numbers, or
            anything else where it had dates.
        """
        table = open_table(X)
        if len(table.names) != self.n_columns:
            raise ValueError(
                f"X has {len(table.names)} columns, but had {self.n_columns} in training. Give the same columns in the "
                "same order."
            )
        encoded = np.empty((table.n_rows, self.n_features))
        first = 0
        for k, column in enumerate(self.columns):
            for feature in column.encode(table.read(k)):
                encoded[:, first] = feature
                first += 1
        return encoded

    @property
    def n_columns(self) -> int:
        """Number of columns of the table."""
        return len(self.columns)

    @property
    def n_features(self) -> int:
        """Number of columns of the matrix."""
        return sum(len(column.feature_names) for column in self.columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features: those of the columns, and of the part for a date; no two of them alike."""
        return tuple(unique_names([(column.name, column.feature_names) for column in self.columns]))

    @property
    def sources(self) -> NDArray:
        """Number of the column that each feature comes from."""
        return np.repeat(np.arange(self.n_columns), [len(column.feature_names) for column in self.columns])

    @property
    def levels(self) -> list[tuple[Level, ...] | None]:
        """Levels of each feature, None for numbers."""
        per_column = [
            column.levels if isinstance(column, CategoryColumn) and column.coded else None for column in self.columns
        ]
        return [per_column[k] for k in self.sources]

    @property
    def is_category(self) -> NDArray:
        """Whether each feature holds the numbers of levels."""
        return np.array([levels is not None for levels in self.levels], dtype=bool)

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Make one of what `fit_part` returned for parts of the rows, as if all rows had been there at once.

        Examples
        --------
        >>> from polytrain.columns import CategoryColumn, Columns
        >>> parts = [Columns((CategoryColumn("colour", (level,)),)) for level in ("red", "blue")]
        >>> Columns.merge(parts).levels
        [('blue', 'red')]
        """
        if not parts:
            raise ValueError("there is nothing to merge: give at least one Columns.")
        counts = {part.n_columns for part in parts}
        if len(counts) > 1:
            raise ValueError(f"parts of one table have the same columns, got {sorted(counts)} of them.")
        return cls(tuple(_merge_column(k, [part.columns[k] for part in parts]) for k in range(counts.pop())))

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON has.

        Examples
        --------
        >>> from polytrain.columns import CategoryColumn, Columns
        >>> columns = Columns((CategoryColumn("colour", ("blue", "red")),))
        >>> columns.to_json()
        {'columns': [{'kind': 'category', 'name': 'colour', 'levels': ['blue', 'red'], 'as_text': False}]}
        >>> Columns.from_json(columns.to_json()) == columns
        True
        """
        categories = [column for column in self.columns if isinstance(column, CategoryColumn)]
        count = sum(len(column.levels) for column in categories)
        if count > _MOST_LEVELS:
            largest = max(categories, key=lambda column: len(column.levels))
            raise ValueError(
                f"the columns have {count} levels, more than the {_MOST_LEVELS} that can be stored; {largest.name!r} "
                f"alone has {len(largest.levels)}. Leave out columns that only identify rows."
            )
        return {"columns": [column.to_json() for column in self.columns]}

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Check and undo `to_json`; a ValueError says what is wrong."""
        if not isinstance(document, dict) or document.keys() != {"columns"}:
            raise ValueError(f"the columns must be a dict with the entry 'columns', got {show(document)}.")
        listed = document["columns"]
        if not isinstance(listed, list):
            raise ValueError(f"the entry 'columns' must be a list, got {show(listed)}.")
        counts = [len(levels) for e in listed if isinstance(e, dict) and isinstance(levels := e.get("levels"), list)]
        if sum(counts) > _MOST_LEVELS:
            raise ValueError(f"the columns have {sum(counts)} levels; at most {_MOST_LEVELS} are allowed.")
        return cls(tuple(map(column_from_json, listed)))


def _merge_column(k: int, parts: list[Column]) -> Column:
    """Merge one column; where it was empty, it is what it is elsewhere."""
    names = list(dict.fromkeys(part.name for part in parts))
    if len(names) > 1:
        raise ValueError(
            f"column {k} has the name {names[0]!r} in some rows and {names[1]!r} in others. Give all parts the same "
            "columns in the same order."
        )
    filled = [part for part in parts if not (isinstance(part, NumberColumn) and part.empty)] or parts
    kinds = list(dict.fromkeys(type(part) for part in filled))
    if set(kinds) == {TextColumn, CategoryColumn}:
        kinds = [CategoryColumn]
    if len(kinds) > 1:
        raise ValueError(
            f"column {names[0]!r} is a {kinds[0].kind} in some rows and a {kinds[1].kind} in others. Give it one type "
            "in all rows, or name it in categorical_features."
        )
    merged = kinds[0].merge(filled)
    return merged.settled() if isinstance(merged, TextColumn) else merged
