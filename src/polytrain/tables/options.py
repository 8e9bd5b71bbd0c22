"""Options that describe a table, and the error whose message names the option to change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from polytrain.columns.forms import DEFAULT_MISSING
from polytrain.texts import printable

__all__ = ["ReadOptions", "Say", "TableError", "TableOptions", "option", "reading", "spell_options"]

#: Takes a note about the table or the progress.
Say = Callable[[str], None]

_OPTION = re.compile("\0([a-z_]+)\0([^\0]*)\0")


def option(name: str, value: object = "") -> str:
    """Mark an option, with the value to give if there is one, in a message that `spell_options` completes."""
    return f"\0{name}\0{str(value).replace(chr(0), '')}\0"


def _keyword(name: str, value: str) -> str:
    return f"{name}={repr(value) if value else '...'}"


def spell_options(message: str, spell: Callable[[str, str], str] | None = None) -> str:
    """Write the options in a message as keyword arguments, or as ``spell`` writes a name and a value ("" for any).

    >>> spell_options(f"Name what separates the cells with {option('delimiter', ';')} or {option('encoding')}.")
    "Name what separates the cells with delimiter=';' or encoding=...."
    """
    return printable(_OPTION.sub(lambda match: (spell or _keyword)(match[1], match[2]), message))


class TableError(ValueError):
    """A table that cannot be read, or is not suitable for its use.

    The message names the remedy; an `option` in it is spelled as a keyword argument.
    """

    def __str__(self) -> str:
        return spell_options(self.args[0])


@contextmanager
def reading(label: str, remedy: str) -> Iterator[None]:
    """Turn any error of another library about a damaged file into a `TableError` that names the remedy."""
    try:
        yield
    except TableError:
        raise
    except Exception as error:  # the parsers of damaged files raise more than they document
        what = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise TableError(f"{label} cannot be read: {what:.200}. {remedy}.") from error


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file.

    Attributes
    ----------
    header : {"auto", "yes", "no"}
        Whether the first row of a text file holds the names of the columns; "auto": if it holds text only.
    delimiter : str, optional
        Separator of the cells of a text file; detected by default.
    encoding : str, optional
        Encoding of a text file; by default UTF-8, UTF-16 with a byte order mark, or Windows-1252.
    """

    header: str = "auto"
    delimiter: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.header not in ("auto", "yes", "no"):
            raise ValueError(f"header must be 'auto', 'yes' or 'no', got {self.header!r}.")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n\0'):
            wanted = "must be one character, and neither a quote nor a line break"
            raise TableError(f"{option('delimiter')} {wanted}, got {self.delimiter!r}.")


@dataclass(frozen=True)
class TableOptions:
    """Options for the columns of a training table. Columns are given by name or position.

    Attributes
    ----------
    target : str, int, or sequence of these
        The column to predict; several columns of numbers make a model with several outputs.
    task : {"auto", "classification", "regression"}
        "auto": text and at most ten different whole numbers are labels; all other numbers are regression targets.
    drop, keep : str, int, or sequence of these
        Columns to leave out; columns to learn from although they look like identifiers.
    categorical : str, int, or sequence of these
        Numeric columns that are categories.
    offset, weight : str or int, optional
        Columns that are not learned from but hold the offset of each row, the logarithm of its exposure, and its
        weight.
    missing : str or sequence of str
        Texts that stand for a missing value, besides the empty cell and the usual texts.
    usual_missing : bool
        Whether the usual texts, `DEFAULT_MISSING`, stand for missing values.
    decimal : {".", ","}, optional
        The decimal mark; detected by default.
    """

    target: str | int | Sequence[str | int]
    task: str = "auto"
    drop: str | int | Sequence[str | int] = ()
    keep: str | int | Sequence[str | int] = ()
    categorical: str | int | Sequence[str | int] = ()
    offset: str | int | None = None
    weight: str | int | None = None
    missing: str | Sequence[str] = ()
    usual_missing: bool = True
    decimal: str | None = None

    def __post_init__(self) -> None:
        for name in ("drop", "keep", "categorical", "missing"):
            value = getattr(self, name)
            if isinstance(value, str | int):  # a single column, not its characters
                object.__setattr__(self, name, (value,))
        for name, allowed in (("task", ("auto", "classification", "regression")), ("decimal", (None, ".", ","))):
            if (value := getattr(self, name)) not in allowed:
                raise TableError(f"{option(name, value)} must be one of {', '.join(map(repr, allowed))}.")

    @property
    def missing_texts(self) -> tuple[str, ...]:
        """All texts that stand for a missing value."""
        return tuple(dict.fromkeys((*(DEFAULT_MISSING if self.usual_missing else ()), *self.missing)))
