"""What a user says about a training table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polytrain.columns.forms import DEFAULT_MISSING
from polytrain.tables.errors import Option, TableError

__all__ = ["TableOptions"]

_TASKS = ("auto", "classification", "regression")


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
    drop, keep : str, int, or sequence of these
        Columns to leave out; columns to learn from although they look like identifiers, or have many categories.
    categorical : str, int, or sequence of these
        Columns of numbers that are categories.
    missing : str or sequence of str
        What stands for a missing value, besides the empty cell and the usual texts.
    usual_missing : bool
        Whether the usual texts, `DEFAULT_MISSING`, stand for missing values.
    max_categories : int
        Columns of text with more categories are left out.
    decimal : {".", ","}, optional
        What separates fractions; by default found out.
    """

    target: str | int | Sequence[str | int]
    task: str = "auto"
    names: Sequence[str] | None = None
    drop: str | int | Sequence[str | int] = ()
    keep: str | int | Sequence[str | int] = ()
    categorical: str | int | Sequence[str | int] = ()
    missing: str | Sequence[str] = ()
    usual_missing: bool = True
    max_categories: int = 100
    decimal: str | None = None

    def __post_init__(self) -> None:
        for name in ("drop", "keep", "categorical", "missing"):
            value = getattr(self, name)
            if isinstance(value, str | int):  # one of them, not its letters
                object.__setattr__(self, name, (value,))
        for name, known in (("task", _TASKS), ("decimal", (None, ".", ","))):
            if getattr(self, name) not in known:
                raise TableError(
                    Option(name, str(getattr(self, name))), f" must be one of {', '.join(map(repr, known))}."
                )

    @property
    def missing_texts(self) -> tuple[str, ...]:
        """All texts that stand for a missing value."""
        return tuple(dict.fromkeys((*(DEFAULT_MISSING if self.usual_missing else ()), *self.missing)))
