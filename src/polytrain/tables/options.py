"""What users say about tables, and the error that tells them what to say instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from polytrain.columns.forms import DEFAULT_MISSING
from polytrain.texts import printable

__all__ = ["Option", "ReadOptions", "TableError", "TableOptions", "reading"]


@dataclass(frozen=True)
class Option:
    """An option that a remedy names, with the value to give, or None where the user knows best.

    Examples
    --------
    >>> from polytrain.tables import Option
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
    >>> from polytrain.tables import Option, TableError
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
        """Return the message, with options as ``spell`` writes them."""
        return "".join(printable(spell(part) if isinstance(part, Option) else part) for part in self.parts)


@contextmanager
def reading(label: str, remedy: str) -> Iterator[None]:
    """Turn whatever another library raises about a damaged file into a `TableError` that names the remedy."""
    try:
        yield
    except TableError:
        raise
    except Exception as error:  # the parsers of damaged files raise what they stumble over, not what they document
        what = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise TableError(f"{label} cannot be read: {what:.200}. {remedy}.") from error


@dataclass(frozen=True)
class ReadOptions:
    """What the user says about a file.

    Attributes
    ----------
    header : {"auto", "yes", "no"}
        Whether the first row of a text file holds the names of the columns; "auto" detects it.
    delimiter : str, optional
        What separates the cells of a text file; detected by default.
    encoding : str, optional
        Encoding of a text file; by default UTF-8, UTF-16 with a mark and Windows-1252 are told apart.
    keep_index : bool
        Whether to keep, under the name "index", a first column without a name, as pandas and R write it.
    """

    header: str = "auto"
    delimiter: str | None = None
    encoding: str | None = None
    keep_index: bool = False

    def __post_init__(self) -> None:
        if self.header not in ("auto", "yes", "no"):
            raise ValueError(f"header must be 'auto', 'yes' or 'no', got {self.header!r}.")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n\0'):
            wanted = " must be one character, and neither a quote nor a line break, got "
            raise TableError(Option("delimiter"), f"{wanted}{self.delimiter!r}.")


@dataclass(frozen=True)
class TableOptions:
    """What the user says about a training table. Columns are given by name or position.

    Attributes
    ----------
    target : str, int, or sequence of these
        The column to predict; several columns of numbers make a model with several outputs.
    task : {"auto", "classification", "regression"}
        "auto": text is labels, and so are at most ten different whole numbers; other numbers are predicted as such.
    names : sequence of str, optional
        Names for the columns of a table that has none.
    drop, keep : str, int, or sequence of these
        Columns to leave out; columns to learn from although they look like identifiers, or have many categories.
    categorical : str, int, or sequence of these
        Columns of numbers that are categories.
    missing : str or sequence of str
        Texts that stand for a missing value, besides the empty cell and the usual texts.
    usual_missing : bool
        Whether the usual texts, `DEFAULT_MISSING`, stand for missing values.
    max_categories : int
        Columns of text with more categories are left out.
    decimal : {".", ","}, optional
        What separates fractions; detected by default.
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
        for name, allowed in (("task", ("auto", "classification", "regression")), ("decimal", (None, ".", ","))):
            if (value := getattr(self, name)) not in allowed:
                raise TableError(Option(name, str(value)), f" must be one of {', '.join(map(repr, allowed))}.")

    @property
    def missing_texts(self) -> tuple[str, ...]:
        """All texts that stand for a missing value."""
        return tuple(dict.fromkeys((*(DEFAULT_MISSING if self.usual_missing else ()), *self.missing)))
