"""Which columns are to be categories: the meaning of ``categorical_features``."""

from __future__ import annotations

from typing import Any

import numpy as np

from polytrain.texts import listed

__all__ = ["chosen_columns", "names_something"]

_REMEDY = (
    "Give 'from_dtype', None, a list of column names, a list of column numbers, or a list of True and False, one per "
    "column."
)


def names_something(categorical_features: Any) -> bool:
    """Whether a choice is more than a rule: a list that is not empty, or something that is no choice at all."""
    if categorical_features is None or (isinstance(categorical_features, str) and categorical_features == "from_dtype"):
        return False
    try:
        items = list(categorical_features)
    except TypeError:
        return True
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        return any(items)
    return bool(items) or isinstance(categorical_features, str)


def chosen_columns(categorical_features: Any, names: tuple[str, ...], has_names: bool) -> frozenset[int] | None:
    """Return the numbers of the columns that a choice names, or None if the types of the columns decide.

    Examples
    --------
    >>> from polytrain.columns.choice import chosen_columns
    >>> sorted(chosen_columns(["b", "c"], ("a", "b", "c"), has_names=True))
    [1, 2]
    """
    if categorical_features is None:
        return frozenset()
    if isinstance(categorical_features, str):
        if categorical_features == "from_dtype":
            return None
        hint = f" For a single column write [{categorical_features!r}]." if categorical_features in names else ""
        raise ValueError(f"categorical_features must not be {categorical_features!r:.60}. {_REMEDY}{hint}")
    try:
        items = list(categorical_features)
    except TypeError:
        raise ValueError(f"categorical_features must not be {categorical_features!r:.60}. {_REMEDY}") from None
    if not items:
        return frozenset()
    if all(isinstance(item, (bool, np.bool_)) for item in items):
        return _masked(items, len(names))
    if all(isinstance(item, (int, np.integer)) and not isinstance(item, bool) for item in items):
        return _numbered([int(item) for item in items], len(names))
    if all(isinstance(item, str) for item in items):
        return _named([str(item) for item in items], names, has_names)
    kinds = sorted({type(item).__name__ for item in items})
    raise ValueError(f"categorical_features must hold things of one kind, got a list of {', '.join(kinds)}. {_REMEDY}")


def _masked(mask: list[Any], n_columns: int) -> frozenset[int]:
    if len(mask) != n_columns:
        raise ValueError(
            f"categorical_features has {len(mask)} of True and False, but X has {n_columns} columns. Give one for "
            "each column."
        )
    return frozenset(np.flatnonzero(mask).tolist())


def _numbered(numbers: list[int], n_columns: int) -> frozenset[int]:
    wrong = [number for number in numbers if not 0 <= number < n_columns]
    if wrong:
        raise ValueError(
            f"categorical_features has the column number {wrong[0]}, but X has {n_columns} columns. Give numbers from "
            f"0 to {n_columns - 1}."
        )
    return frozenset(numbers)


def _named(chosen: list[str], names: tuple[str, ...], has_names: bool) -> frozenset[int]:
    if not has_names:
        raise ValueError(
            f"categorical_features has the column name {chosen[0]!r}, but the columns of X have no names of text. Give "
            "column numbers, or a frame with names."
        )
    known, wanted = set(names), set(chosen)
    missing = [name for name in chosen if name not in known]
    if missing:
        shown = listed(map(repr, names))
        raise ValueError(
            f"categorical_features has the column name {missing[0]!r}, which X does not have. Its columns are {shown}."
        )
    return frozenset(k for k, name in enumerate(names) if name in wanted)
