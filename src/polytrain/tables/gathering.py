"""Cells of a training table, column by column: what each holds is found out, and its blocks are put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.number_texts import is_number
from polytrain.tables.errors import Option, TableError
from polytrain.tables.files import Block, CellColumn, Form, Table, find_form
from polytrain.tables.layout import FileColumn
from polytrain.tables.options import TableOptions

__all__ = ["MOST_TEXTS", "GatheredColumn", "gather"]

#: Different texts that are remembered of a column.
MOST_TEXTS = 100_000
# Rows that are read at once, and those that are looked at before it is decided what columns hold.
_BLOCK_ROWS, _LOOK_AHEAD = 1 << 16, 100_000
_TEXT, _NUMBER = Form("text"), Form("number")


@dataclass
class GatheredColumn:
    """Cells of one column, as they come: values of one form, or codes of distinct text; -1 is missing.

    Blocks of which nothing is there before anything else is known are kept as their number of rows.
    """

    column: FileColumn
    as_category: bool
    form: Form | None = None
    parts: list[NDArray | int] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    too_many: bool = False

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    @property
    def is_text(self) -> bool:
        """Whether it holds text."""
        return self.form is not None and self.form.kind == "text"

    def decide(self, blocks: Sequence[Block], label: str, options: TableOptions, delimiter: str | None) -> None:
        """Find out what the column holds, from the cells of some blocks."""
        columns, missing = [block.columns[self.column.position] for block in blocks], frozenset(options.missing_texts)
        typed = next((cells.form for cells in columns if cells.form is not None), None)
        if self.as_category or (typed is not None and typed.kind != "text"):
            self.form = _TEXT if self.as_category else typed
            return
        if options.decimal != "," and _are_numbers(columns, missing):  # as most are; their texts need not be looked at
            self.form = _NUMBER
            return
        counts: Counter[str] = Counter()
        for cells in columns:
            codes, texts = cells.coded(missing)
            numbers = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
            counts.update(dict(zip(texts, numbers, strict=True)))
        if not counts:
            return
        form = find_form(list(counts), decimal=options.decimal, delimiter=delimiter)
        if form.kind == "text" and 2 * sum(n for text, n in counts.items() if is_number(text)) > counts.total():
            for block, cells in zip(blocks, columns, strict=True):
                _, wrong = cells.values(_NUMBER, missing)
                if wrong is not None:
                    raise _odd_cell(self, block, cells, wrong, label, options.decimal)
        if form.is_plain and options.decimal == "," and not any("." in text for text in counts):
            form = replace(form, decimal=",")  # whole numbers so far
        self.form = form

    @property
    def has_decimal_commas(self) -> bool:
        """Whether commas surely separate fractions."""
        return (
            self.form is not None and self.form.kind == "number" and self.form.decimal == "," and not self.form.guessed
        )

    def think_again(self, blocks: Sequence[Block], options: TableOptions, delimiter: str | None) -> None:
        """Look once more at plain numbers of a table in which commas separate fractions: 1.234 may be 1234."""
        columns = [block.columns[self.column.position] for block in blocks]
        if self.form is None or not self.form.is_plain or any(cells.form is not None for cells in columns):
            return
        texts = {text for cells in columns for text in cells.coded(frozenset(options.missing_texts))[1]}
        found = find_form(sorted(texts), decimal=",", delimiter=delimiter)
        if found.kind == "number" and not found.is_plain:
            self.form = found

    def add(self, block: Block, label: str, options: TableOptions, delimiter: str | None) -> None:
        """Take the cells of a block."""
        cells, missing = block.columns[self.column.position], frozenset(options.missing_texts)
        if self.form is None:
            self.decide([block], label, options, delimiter)
        if self.form is None:
            self.parts.append(len(block))
        elif self.is_text:
            self._add_texts(*cells.coded(missing))
        else:
            # A column of one file may hold numbers here and dates there.
            fits = cells.form is None or cells.form.kind == self.form.kind
            values, wrong = cells.values(self.form, missing) if fits else (np.zeros(0), 0)
            if wrong is not None:
                raise _odd_cell(self, block, cells, wrong, label, options.decimal)
            self.parts.append(values)

    def _add_texts(self, codes: NDArray, texts: list[str]) -> None:
        if self.too_many or len(self.known.keys() | set(texts)) > MOST_TEXTS:
            self.too_many, self.known, self.parts = True, {}, []
            return
        places = np.array([*(self.known.setdefault(text, len(self.known)) for text in texts), -1])
        self.parts.append(places[codes])

    def all(self) -> NDArray:
        """Values with NaN or NaT, or codes with -1, for missing cells."""
        gap: Any = -1 if self.is_text else np.nan
        if self.form is not None and self.form.kind == "date":
            gap = np.datetime64("NaT", "us")
        return np.concatenate([np.full(part, gap) if isinstance(part, int) else part for part in self.parts])

    def there(self) -> NDArray:
        """Whether each cell is not missing."""
        values = self.all()
        return values >= 0 if self.is_text else values == values


def _are_numbers(columns: Sequence[CellColumn], missing: frozenset[str]) -> bool:
    """Whether all cells are numbers as programs write them, and not all are missing."""
    any_there = False
    for cells in columns:
        values, wrong = cells.values(_NUMBER, missing)
        if wrong is not None:
            return False
        any_there |= not np.isnan(values).all()
    return any_there


def _odd_cell(
    column: GatheredColumn, block: Block, cells: CellColumn, wrong: int, label: str, decimal: str | None
) -> TableError:
    text = cells[wrong]
    held = "dates" if column.form is not None and column.form.kind == "date" else "numbers"
    parts: list[str | Option] = [
        f"{label}, {block.place(wrong)}: column {column.name!r} holds {held}, but here {text!r:.60}. Mend the cell, "
        "name it as missing (",
        Option("missing", text),
        "), or encode the column as categories (",
        Option("categorical", column.name),
        ")",
    ]
    if decimal is None and "," in text and is_number(text.replace(",", ".")):
        parts += ["; if a comma separates fractions, say ", Option("decimal", ",")]
    return TableError(*parts, ".")


def gather(table: Table, columns: Sequence[GatheredColumn], options: TableOptions) -> bool:
    """Read all blocks; return whether there are any. What columns hold is decided from many rows at once."""
    blocks, delimiter = table.blocks(_BLOCK_ROWS), table.delimiter
    ahead: list[Block] = []
    while sum(map(len, ahead)) < _LOOK_AHEAD and (block := next(blocks, None)) is not None:
        ahead.append(block)
    for column in columns:
        column.decide(ahead, table.label, options, delimiter)
    if options.decimal is None and any(column.has_decimal_commas for column in columns):
        options = replace(options, decimal=",")
        for column in columns:
            column.think_again(ahead, options, delimiter)
    for block in chain(ahead, blocks):
        for column in columns:
            column.add(block, table.label, options, delimiter)
    return bool(ahead)
