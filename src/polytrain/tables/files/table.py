"""What a table is that is open for reading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from polytrain.tables.errors import Option, TableError
from polytrain.tables.files.cells import CellColumn

__all__ = ["BLOCK_ROWS", "Block", "ReadOptions", "Table", "check_width", "position_names"]

#: Rows that are handed out at a time unless told otherwise.
BLOCK_ROWS = 8192
_MAX_COLUMNS = 100_000


@dataclass(frozen=True)
class ReadOptions:
    """What the user says about a file.

    Attributes
    ----------
    header : {"auto", "yes", "no"}
        Whether the first row of a text file holds the columns' names. "auto" finds out.
    delimiter : str, optional
        What separates the cells of a text file; found out by default.
    encoding : str, optional
        Encoding of a text file; UTF-8, UTF-16 and Windows-1252 are told apart by default.
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
            raise TableError(
                "a delimiter must be one character, and no quote or line break, got ",
                Option("delimiter", self.delimiter),
                ".",
            )


@dataclass(frozen=True)
class Block:
    """Some rows of a table, column by column.

    Attributes
    ----------
    columns : sequence of CellColumn
        Their cells.
    places : sequence of int
        Line or row in the file of each row, for messages.
    unit : str
        What the places count: "line" from 1, or "row" from 0.
    """

    columns: Sequence[CellColumn]
    places: Sequence[int]
    unit: str = "line"

    def __len__(self) -> int:
        return len(self.places)

    def place(self, row: int) -> str:
        """Where a row is in the file."""
        return f"{self.unit} {self.places[row]}"


class Table(ABC):
    """A table that is open for one reading, to be used in a ``with`` statement.

    Attributes
    ----------
    label : str
        Its name in messages.
    names : list of str or None
        The columns' names, or None where the file has none.
    n_columns : int
        Number of columns that are read.
    notes : list of str
        What was understood that is not plain to see: encoding, compression, delimiter, columns left out or renamed.
    delimiter : str or None
        What separates the cells of a text file.
    """

    label: str
    names: list[str] | None
    n_columns: int
    notes: list[str]
    delimiter: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the file; standard input stays open."""

    @abstractmethod
    def blocks(self, n_rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """Read the rows, at most so many at a time; only once."""


def check_width(n_columns: int, label: str) -> None:
    """Refuse a table that no model is learned from, before its names and cells take memory."""
    if n_columns > _MAX_COLUMNS:
        raise TableError(
            f"{label} has {n_columns} columns, and at most {_MAX_COLUMNS} are read. Leave some out, or check that rows "
            "and columns are not exchanged."
        )


def position_names(n_columns: int) -> list[str]:
    """Names of columns that have none."""
    return [f"column {k}" for k in range(n_columns)]
