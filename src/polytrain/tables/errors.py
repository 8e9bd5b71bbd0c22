"""What goes wrong with tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from polytrain.texts import printable

__all__ = ["Option", "TableError", "reading"]


@dataclass(frozen=True)
class Option:
    """An option that a remedy names; whoever shows the message spells it.

    Attributes
    ----------
    name : str
        Name of the keyword argument.
    value : str, optional
        What to give; None where the user knows best.

    Examples
    --------
    >>> from polytrain.tables.errors import Option
    >>> print(Option("delimiter", ";"), Option("delimiter"), Option("keep_index", "True"))
    delimiter=';' delimiter=... keep_index=True
    """

    name: str
    value: str | None = None

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name}=..."
        return f"{self.name}={self.value if self.value in ('True', 'False', 'None') else repr(self.value)}"


class TableError(ValueError):
    """A table that cannot be read, or that does not fit what it is used for. The message names the remedy.

    Parameters
    ----------
    *parts : str or Option
        The message, in parts that are joined. Options are spelled as keyword arguments.

    Examples
    --------
    >>> from polytrain.tables import TableError
    >>> from polytrain.tables.errors import Option
    >>> error = TableError("the cells do not match. Name what separates them with ", Option("delimiter", ";"), ".")
    >>> print(error)
    the cells do not match. Name what separates them with delimiter=';'.
    >>> error.spelled(lambda option: f"--{option.name} '{option.value}'")
    "the cells do not match. Name what separates them with --delimiter ';'."
    """

    def __init__(self, *parts: str | Option) -> None:
        super().__init__(*parts)
        self.parts = parts

    def __str__(self) -> str:
        return self.spelled(str)

    def spelled(self, spell: Callable[[Option], str]) -> str:
        """Return the message, options as ``spell`` writes them."""
        return "".join(printable(spell(part) if isinstance(part, Option) else part) for part in self.parts)


@contextmanager
def reading(label: str, remedy: str) -> Iterator[None]:
    """Whatever another library makes of a damaged file in this block is a `TableError` that names the remedy."""
    try:
        yield
    except TableError:
        raise
    except Exception as error:  # the parsers of damaged files raise what they stumble over, not what they document
        what = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise TableError(f"{label} cannot be read: {what:.200}. {remedy}.") from error
