"""An open table of any kind of file, and the names of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Self

from polytrain.tables.options import TableError
from polytrain.texts import listed

__all__ = ["BLOCK_ROWS", "TableFile", "check_width", "clean_names", "make_table", "position_names"]

#: Rows of a block unless told otherwise.
BLOCK_ROWS = 8192
_MAX_COLUMNS = 100_000
#: Yields frames of at most the given number of rows, or for None a single frame of all rows.
Frames = Callable[[int | None], Iterator[Any]]


@dataclass(eq=False)
class TableFile:
    """A table in a file that is open for one reading, to be used in a ``with`` statement.

    Attributes
    ----------
    label : str
        Its name in messages.
    names : list of str
        The columns' names; "column 0" and so on where the file has none.
    named : bool
        Whether the file has names.
    notes : list of str
        Notes about the reading: encoding, compression, delimiter, renamed columns.
    delimiter : str or None
        Separator of the cells of a text file; None for files of other kinds.
    """

    label: str
    names: list[str]
    named: bool
    notes: list[str]
    delimiter: str | None
    _frames: Frames
    _opened: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def blocks(self, n_rows: int | None = BLOCK_ROWS) -> Iterator[Any]:
        """Yield frames of at most ``n_rows`` rows, or one of all rows for None.

        Their index holds the lines of the rows, counted from 1, in text files, and numbers of rows, from 0, in others.
        """
        return (frame.set_axis(self.names, axis=1) for frame in self._frames(n_rows) if len(frame))

    def place(self, index: int) -> str:
        """Return where a row with this index in its frame is in the file, such as "line 3" or "row 2"."""
        return f"{'row' if self.delimiter is None else 'line'} {index}"


def make_table(
    label: str, cells: Sequence[str] | None, width: int, frames: Frames, notes: Sequence[str], delimiter: str | None
) -> TableFile:
    """Return a table of ``width`` columns whose rows ``frames`` yields; ``cells`` are their names in the file."""
    check_width(width, label)
    names = position_names(width) if cells is None else clean_names(cells)
    # The first column often has no name, because it is an index.
    changed = [name for name, cell in zip(names, cells or names, strict=True) if cell != name != "Unnamed: 0"]
    if changed:
        notes = [*notes, f"columns without a name, or with that of another, are called {listed(map(repr, changed))}"]
    return TableFile(label, names, cells is not None, list(notes), delimiter, frames)


def check_width(n_columns: int, label: str) -> None:
    """Refuse a table with too many columns before its cells take memory."""
    if n_columns > _MAX_COLUMNS:
        raise TableError(
            f"{label} has {n_columns} columns, more than {_MAX_COLUMNS}. Leave some out, or check that rows "
            "and columns are not exchanged."
        )


def position_names(n_columns: int) -> list[str]:
    """Names of columns that have none."""
    return [f"column {k}" for k in range(n_columns)]


def clean_names(cells: Sequence[str]) -> list[str]:
    """Return names that differ and are not empty, like those of pandas.read_csv, so that models of frames find them.

    >>> clean_names(["", "price", "price", "", "age"])
    ['Unnamed: 0', 'price', 'price.1', 'Unnamed: 3', 'age']
    """
    given, names, counts = {*cells}, dict[str, None](), dict[str, int]()
    for k, cell in enumerate(cells):
        first = name = cell or f"Unnamed: {k}"
        while name in names or (name != cell and name in given):
            counts[first] = counts.get(first, 0) + 1  # remembered, as a header may repeat a name often
            name = f"{first}.{counts[first]}"
        names[name] = None
    return [*names]
