"""An open table of any kind of file, and the names of its columns."""

from __future__ import annotations

import re
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
_INDEX = re.compile(r"|Unnamed: 0(_level_0)?|__index_level_[0-9]+__")


@dataclass(eq=False)
class TableFile:
    """A table in a file that is open for one reading, to be used in a ``with`` statement.

    Attributes
    ----------
    label : str
        Its name in messages.
    names : list of str or None
        The columns' names, or None where the file has none.
    n_columns : int
        Number of columns that are read.
    notes : list of str
        What was understood that is not obvious: encoding, compression, delimiter, columns left out or renamed.
    delimiter : str or None
        What separates the cells of a text file; None for files of other kinds.
    """

    label: str
    names: list[str] | None
    n_columns: int
    notes: list[str]
    delimiter: str | None
    _kept: list[int]
    _frames: Callable[[int | None], Iterator[Any]]
    _opened: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def blocks(self, n_rows: int | None = BLOCK_ROWS) -> Iterator[Any]:
        """Yield frames of at most ``n_rows`` rows, or one of all rows for None.

        Their index holds the lines of the rows, counted from 1, in text files, and numbers of rows, from 0, in others.
        """
        names = self.names or position_names(self.n_columns)
        for frame in self._frames(n_rows):
            if len(frame):
                yield frame.iloc[:, self._kept].set_axis(names, axis=1)

    def place(self, index: int) -> str:
        """Return where a row with this index in its frame is in the file, such as "line 3" or "row 2"."""
        return f"{'row' if self.delimiter is None else 'line'} {index}"


def make_table(
    label: str,
    names: Sequence[str] | None,
    width: int,
    frames: Callable[[int | None], Iterator[Any]],
    keep_index: bool,
    notes: Sequence[str] = (),
    delimiter: str | None = None,
) -> TableFile:
    """Return a table of ``width`` columns whose rows ``frames`` yields."""
    check_width(width, label)
    cleaned, kept, changes = (None, list(range(width)), []) if names is None else clean_names(names, keep_index)
    return TableFile(
        label=label,
        names=cleaned,
        n_columns=len(kept),
        notes=[*notes, *changes],
        delimiter=delimiter,
        _kept=kept,
        _frames=frames,
    )


def check_width(n_columns: int, label: str) -> None:
    """Refuse a table that no model is learned from, before its cells take memory."""
    if n_columns > _MAX_COLUMNS:
        raise TableError(
            f"{label} has {n_columns} columns, and at most {_MAX_COLUMNS} are read. Leave some out, or check that rows "
            "and columns are not exchanged."
        )


def position_names(n_columns: int) -> list[str]:
    """Names of columns that have none."""
    return [f"column {k}" for k in range(n_columns)]


def clean_names(cells: Sequence[str], keep_index: bool = False) -> tuple[list[str], list[int], list[str]]:
    """Return names that differ and are not empty, the columns that they belong to, and notes on what was changed.

    A first column without a name is an index; ``keep_index`` keeps it under the name "index".

    >>> names, kept, notes = clean_names(["", "price", "price", "age"])
    >>> names, kept
    (['price', 'price_2', 'age'], [1, 2, 3])
    >>> print("; ".join(notes))
    the first column has no name and was left out as an index; columns with equal names were numbered: 'price_2'
    """
    index = [k for k in range(len(cells)) if _is_index(cells, k)]
    index = index if len(index) < len(cells) else []
    kept = [k for k in range(len(cells)) if keep_index or k not in index]
    notes = []
    if index and not keep_index:
        which = "the first column" if index == [0] else "a column"
        what = "has no name" if not cells[index[0]] else f"is named {cells[index[0]]!r}"
        notes.append(f"{which} {what} and was left out as an index")
    given = {k: "" if k in index else cells[k] for k in kept}
    taken, seen, counts = {*given.values()}, {""}, dict[str, int]()
    names = dict[int, str]()
    unnamed, numbered = list[str](), list[str]()
    for k in kept:
        name = names[k] = given[k] or ("index" if k in index else f"column {k}")
        if given[k] in seen:
            while names[k] in taken:
                counts[name] = counts.get(name, 1) + 1  # remembered, as a header may repeat a name often
                names[k] = f"{name}_{counts[name]}"
            if k not in index:
                (numbered if given[k] else unnamed).append(repr(names[k]))
        taken.add(names[k])
        seen.add(names[k])
    if unnamed:
        notes.append(f"columns without a name were named by position: {listed(unnamed)}")
    if numbered:
        notes.append(f"columns with equal names were numbered: {listed(numbered)}")
    return [names[k] for k in kept], kept, notes


def _is_index(cells: Sequence[str], k: int) -> bool:
    """Whether a column is an index that was written with the table, by its name; only the first may lack one."""
    if cells[k].startswith("__index_level_"):
        return bool(_INDEX.fullmatch(cells[k]))
    return k == 0 and bool(_INDEX.fullmatch(cells[0])) and all(cells[1:]) and len(cells) > 1
