"""What a user says about a training table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polytrain.tables.files import DEFAULT_MISSING

__all__ = ["TableOptions"]


@dataclass(frozen=True)
class TableOptions:
    """What the user says about a training table. Columns are given by name or position.

    Attributes
    ----------
    target : str, int, or sequence of these
        The column to predict; several of numbers make a model with several outputs.
    task : {"auto", "classification", "regression"}
        "auto": text is labels, and so are at most ten different whole numbers; all other numbers are to be predicted.
    names : sequence of str, optional
        Names for the columns of a table that has none.
    drop, keep : sequence of str or int
        Columns to leave out; columns to learn from although they look like identifiers, or have many categories.
    categorical : sequence of str or int
        Columns of numbers that are categories.
    missing : sequence of str
        What stands for a missing value, besides the empty cell.
    max_categories : int
        Columns of text with more categories are left out.
    decimal : {".", ","}, optional
        What separates fractions; by default found out.
    """

    target: str | int | Sequence[str | int]
    task: str = "auto"
    names: Sequence[str] | None = None
    drop: Sequence[str | int] = ()
    keep: Sequence[str | int] = ()
    categorical: Sequence[str | int] = ()
    missing: Sequence[str] = DEFAULT_MISSING
    max_categories: int = 100
    decimal: str | None = None
