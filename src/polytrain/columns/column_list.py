"""All columns of a table: their encodings since training, and which are categories or identifiers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.column import CategoryColumn, Column, NumberColumn, TextColumn, column_from_json, fit_column
from polytrain.columns.frames import is_frame, is_plain_frame, open_table
from polytrain.columns.scalars import Level
from polytrain.texts import listed, shown

__all__ = [
    *("LEAST_ROWS", "Columns", "chosen_columns", "column_number", "is_identifier", "needs_encoding", "unique_names"),
]


def needs_encoding(X: Any, categorical_features: Any) -> bool:
    """Whether X is more than a matrix of numbers, so that it needs `Columns`.

    This is so if `categorical_features` names any column, if a column of a frame holds anything but NumPy's numbers
    (text, categories, True and False, dates, durations, missing values other than NaN), or if an array of objects,
    which is what scikit-learn's ensembles make of a frame, holds anything but numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> needs_encoding(pd.DataFrame({"a": [1.5, 2.5]}), "from_dtype")
    False
    >>> needs_encoding(np.array([["red", 1.5]], dtype=object), "from_dtype")
    True
    """
    items = _listed_columns(categorical_features)
    if items is None or (any(items) if _are_flags(items) else items):
        return True
    if is_frame(X):
        return not is_plain_frame(X)
    if not (isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2):
        return False
    try:
        X.astype(np.float64)
    except (TypeError, ValueError):
        return True
    return False


@dataclass(frozen=True)
class Columns:
    """The encoding of a table of any types as one matrix of numbers: one `Column` each.

    Examples
    --------
    >>> import pandas as pd
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
    >>> Columns.from_json(columns.to_json()) == columns
    True
    """

    columns: tuple[Column, ...]

    @classmethod
    def fit(cls, X: Any, categorical_features: Any = "from_dtype") -> Self:
        """Find the kind of every column of the training rows.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array-like of shape (N, d)
            The training rows.
        categorical_features : "from_dtype", None or array-like
            Which columns are categories: those whose type says so ("category" of pandas, Categorical and Enum of
            polars), none, or those that are listed by name, by number or by a True for each. Other columns of text
            are dates if all of their values are, and else categories, with a warning if they look like numbers.
            Columns of objects of several kinds are categories, with the texts of their values as levels. A column
            without any value is a number.
        """
        return cls.merge([cls.fit_part(X, categorical_features)])

    @classmethod
    def fit_encode(cls, X: Any, categorical_features: Any = "from_dtype") -> tuple[Self, NDArray]:
        """Do `fit` and `encode` on the same rows, reading each column once."""
        table = open_table(X)
        table = replace(table, read=cache(table.read))
        columns = cls.fit(table, categorical_features)
        return columns, columns.encode(table)

    @classmethod
    def fit_part(cls, X: Any, categorical_features: Any = "from_dtype") -> Self:
        """Fit to a part of the rows; `merge` combines the parts."""
        table = open_table(X)
        chosen = chosen_columns(categorical_features, table.names, table.has_names)
        return cls(
            tuple(fit_column(table.read(k), None if chosen is None else k in chosen) for k in range(len(table.names)))
        )

    def encode(self, X: Any) -> NDArray:
        """Turn rows with the columns of training, in the same order, into float64 of shape (N, n_features).

        Missing values are NaN; categories are the indices of their levels, and -1 if they were not in training. A
        ValueError is raised if the number of columns differs, or the kind of a column's values.
        """
        table = open_table(X)
        if len(table.names) != self.n_columns:
            raise ValueError(
                f"X has {len(table.names)} columns, but had {self.n_columns} in training. Give the same columns in the "
                "same order."
            )
        encoded = np.empty((table.n_rows, self.n_features))
        features = (feature for k, column in enumerate(self.columns) for feature in column.encode(table.read(k)))
        for line, feature in zip(encoded.T, features, strict=True):
            line[:] = feature
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
        """Distinct names of the features: the names of the columns, for a date with the name of the part."""
        return tuple(unique_names([(column.name, column.feature_names) for column in self.columns]))

    @property
    def sources(self) -> NDArray:
        """Number of the column that each feature comes from."""
        return np.repeat(np.arange(self.n_columns), [len(column.feature_names) for column in self.columns])

    @property
    def levels(self) -> list[tuple[Level, ...] | None]:
        """Levels of each feature, None for numbers."""
        columns = [self.columns[k] for k in self.sources]
        return [column.levels if isinstance(column, CategoryColumn) else None for column in columns]

    @property
    def is_category(self) -> NDArray:
        """Whether each feature holds the indices of levels."""
        return np.array([levels is not None for levels in self.levels], dtype=bool)

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Combine the results of `fit_part` for parts of the rows, as if all rows had been there at once."""
        if not parts:
            raise ValueError("there is nothing to merge. Give at least one Columns.")
        counts = {part.n_columns for part in parts}
        if len(counts) > 1:
            raise ValueError(f"parts of one table have the same columns, got {sorted(counts)} of them.")
        return cls(tuple(_merge_column(k, [part.columns[k] for part in parts]) for k in range(counts.pop())))

    def to_json(self) -> list[dict[str, Any]]:
        """Return values that JSON can hold."""
        return [column.to_json() for column in self.columns]

    @classmethod
    def from_json(cls, entries: list[Any]) -> Self:
        """Check and undo `to_json`; a ValueError says what is wrong."""
        return cls(tuple(map(column_from_json, entries)))


def _merge_column(k: int, parts: list[Column]) -> Column:
    """Merge one column; parts without values take the kind of the others."""
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
    return merged.resolve() if isinstance(merged, TextColumn) else merged


def unique_names(columns: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return distinct names of all features, given every column with the names of its features.

    A feature with the name of its column keeps it. A composed name, such as "age is missing", gets a number if a
    column or an earlier feature has it already.

    >>> unique_names([("age", ["age", "age is missing"]), ("age is missing", ["age is missing"])])
    ['age', 'age is missing (2)', 'age is missing']
    """
    reserved = {column for column, _ in columns}
    names: dict[str, None] = {}
    for column, features in columns:
        for name in features:
            free, number = name, 1
            while free in names or (free in reserved and free != column):
                number += 1
                free = f"{name} ({number})"
            names[free] = None
    return list(names)


# --- categorical_features ---------------------------------------------------------------------------------------------


def _listed_columns(categorical_features: Any) -> list[Any] | None:
    """Return the columns that the parameter lists, [] for "from_dtype" and None; None if it is not a list."""
    if isinstance(categorical_features, str | bytes):
        return [] if categorical_features == "from_dtype" else None
    try:
        return [] if categorical_features is None else list(categorical_features)
    except TypeError:
        return None


def _are_flags(items: list[Any]) -> bool:
    return all(isinstance(item, (bool, np.bool_)) for item in items)


def chosen_columns(categorical_features: Any, names: tuple[str, ...], has_names: bool) -> frozenset[int] | None:
    """Return the numbers of the columns that the parameter names, or None if the types of the columns decide."""
    items = _listed_columns(categorical_features)
    if items is None:
        name = repr(categorical_features)
        is_name = isinstance(categorical_features, str) and categorical_features in names
        hint = f" For a single column write [{name}]." if is_name else ""
        raise ValueError(
            f"categorical_features must not be {shown(categorical_features)}. Give 'from_dtype', None, a list of "
            f"column names, a list of column numbers, or a list of True and False, one per column.{hint}"
        )
    if isinstance(categorical_features, str):
        return None
    if items and _are_flags(items):
        if len(items) != len(names):
            raise ValueError(
                f"categorical_features has {len(items)} of True and False, but X has {len(names)} columns. Give one "
                "for each column."
            )
        return frozenset(np.flatnonzero(items).tolist())
    known = names if has_names else None
    chosen = {*(column_number("categorical_features", item, known, len(names)) for item in items), *items}
    return frozenset(k for k, name in enumerate(names) if k in chosen or name in chosen)  # names may occur twice


def column_number(where: str, given: Any, names: Sequence[str] | None, n_columns: int) -> int:
    """Return the number of the column that a parameter gives by its number or name; ``names`` are texts or None."""
    if isinstance(given, str):
        if names is None:
            raise ValueError(
                f"{where} has the column name {given!r}, but the columns of X have no names of text. Give column "
                "numbers, or a frame with names."
            )
        if given not in names:
            raise ValueError(
                f"{where} has the column name {given!r}, which X does not have. Its columns are "
                f"{listed(map(repr, names))}."
            )
        return list(names).index(given)
    if not isinstance(given, Integral) or isinstance(given, bool):
        raise ValueError(f"{where} has the entry {shown(given)}, which is not a column. Give column numbers or names.")
    if not 0 <= int(given) < n_columns:
        raise ValueError(
            f"{where} has the column number {given}, but X has {n_columns} columns. Give numbers from 0 to "
            f"{n_columns - 1}."
        )
    return int(given)


# --- identifiers ------------------------------------------------------------------------------------------------------

#: Identifiers are not looked for in tables with fewer rows.
LEAST_ROWS = 20
# Words in names of identifiers; words that mark them at the end of a name only; words for running numbers of time.
_IDENTIFIERS = frozenset({"id", "ids", "uuid", "guid"})
_LAST_WORDS = frozenset({"index", "idx", "key", "nr", "no", "num", "number", "rownum", "row"})
_TIMES = frozenset(
    {"t", "time", "timestamp", "date", "step", "second", "minute", "hour", "day", "week", "month", "quarter", "year"}
    | {"period", "age"}
)


def is_identifier(name: str, values: NDArray) -> bool:
    """Whether the numbers of a column, NaN where one is missing, identify the rows rather than measure something.

    Identifiers are whole and distinct, and either the column's name marks them, or they count from 0 or 1, or are a
    random part of such a count: independent measurements as dense as that would repeat. Numbers that begin elsewhere,
    as years do, numbers at equal steps, and running times are measurements.

    >>> rows = np.arange(1000.0)
    >>> is_identifier("x", rows), is_identifier("x", rows[::-7]), is_identifier("customerId", 8 * rows + 5000)
    (True, False, True)
    >>> part = np.random.default_rng(0).choice(rows, 300, replace=False)
    >>> is_identifier("x", part), is_identifier("x", part**2), is_identifier("day", part)
    (True, False, False)
    """
    present = values[~np.isnan(values)]
    n = len(present)
    if n < max(LEAST_ROWS, 0.9 * len(values)) or not (present == np.round(present)).all():
        return False
    # customerId has two words.
    spaced = "".join(f" {b}" if b.isupper() and a.islower() else b for a, b in zip(" " + name, name, strict=False))
    words = re.findall(r"[^\W_]+", spaced.lower())
    last = words[-1] if words else ""
    if not _IDENTIFIERS & set(words) and last not in _LAST_WORDS:
        first, span = present.min(), present.max() + 1
        is_dense = span <= max(2 * n, n * (n - 1) / 40)
        # The first of a random part comes after more than ten times the mean distance once in 20,000 parts.
        if last.removesuffix("s") in _TIMES or not is_dense or not 0 <= first <= 1 + 10 * span / n:
            return False
        if np.gcd.reduce((present - first).astype(np.int64)) > 1:
            return False
    return len(np.unique(present)) == n
