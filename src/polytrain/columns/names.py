"""Names of features that are made from the names of columns."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["unique_names"]


def unique_names(columns: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the names of all features, no two of them alike.

    A feature that has the name of its column keeps it. A name that was made, such as "age is missing", gives way to a
    column, or to an earlier feature, that has it already.

    Parameters
    ----------
    columns : sequence of (str, sequence of str)
        Every column with the names of its features.

    Examples
    --------
    >>> from polytrain.columns.names import unique_names
    >>> unique_names([("age", ["age", "age is missing"]), ("age is missing", ["age is missing"])])
    ['age', 'age is missing (2)', 'age is missing']
    """
    taken = {column for column, _ in columns}
    kept: set[str] = set()
    names = []
    for column, made in columns:
        for name in made:
            free, number = name, 1
            if name == column and name not in kept:
                kept.add(name)
            else:
                while free in taken:
                    number += 1
                    free = f"{name} ({number})"
            taken.add(free)
            names.append(free)
    return names
