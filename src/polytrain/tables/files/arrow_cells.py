"""Text cells as a pyarrow array, so that no cell is a Python object; equal to `TextColumn` in every respect."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from polytrain.columns.date_texts import MONTHS, date_regex
from polytrain.columns.forms import Form
from polytrain.columns.number_texts import is_number, number_pattern, plain_steps
from polytrain.tables.files.cells import TextColumn

__all__ = ["ArrowTextColumn", "trim"]

# What str.strip takes away.
_SPACES = "".join(chr(code) for code in itertools.chain(range(0x3001)) if chr(code).isspace())
# First and last bytes of such characters: control characters, the space, and those beyond ASCII.
_MAY_BE_SPACE = np.array([byte <= 0x20 or byte >= 0x80 for byte in range(256)])
# Moments that Arrow reads as we do; others are taken apart below.
_SIMPLE_ISO = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?$"
_FRACTIONS = 10 ** np.arange(7)[::-1]


class ArrowTextColumn:
    """Cells as an Arrow array of stripped text.

    Parameters
    ----------
    cells : pyarrow.StringArray
        Stripped, without nulls.
    form : Form, optional
        That of the type, where the file says that it is text.

    Examples
    --------
    >>> import pyarrow
    >>> from polytrain.tables.files import Form
    >>> from polytrain.tables.files.arrow_cells import ArrowTextColumn
    >>> column = ArrowTextColumn(pyarrow.array(["1,5", "?", "2", "1,5"]))
    >>> column.values(Form("number", ","), frozenset("?"))
    (array([1.5, nan, 2. , 1.5]), None)
    >>> column.coded(frozenset("?"))
    (array([ 0, -1,  1,  0]), ['1,5', '2'])
    """

    def __init__(self, cells: Any, form: Form | None = None) -> None:
        self._cells = cells
        self.form = form

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, index: int) -> str:
        return self._cells[index].as_py()

    def values(self, form: Form, missing: frozenset[str]) -> tuple[NDArray, int | None]:
        """Return values and the index of the first misfit, see `CellColumn`."""
        values = None
        if form.is_plain and not any(map(is_number, missing)):
            values = _plain_numbers(self._cells)  # without markers, nothing needs to be looked up
        if values is None and form.kind in ("number", "date"):
            gone = self._gone(missing)
            present = pc.if_else(gone, pa.scalar(None, pa.string()), self._cells)
            values = _dates(present, form.pattern) if form.kind == "date" else _numbers(present, form)
            if values is not None and (_is_missing(values) != np.asarray(gone)).any():
                values = None
        if values is None:
            # Whatever is odd is looked at cell by cell: it fits after all, or the first that does not is told.
            return TextColumn(self._cells.to_pylist()).values(form, missing)
        return values, None

    def coded(self, missing: frozenset[str]) -> tuple[NDArray, list[str]]:
        """Return codes and texts, see `CellColumn`."""
        encoded = self._cells.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        codes = np.asarray(encoded.indices).astype(np.int64)
        present = np.array([text != "" and text not in missing for text in texts], dtype=bool)
        if present.all():
            return codes, texts
        renumbered = np.where(present, np.cumsum(present) - 1, -1)
        return renumbered[codes], [text for text, is_there in zip(texts, present, strict=True) if is_there]

    def _gone(self, missing: frozenset[str]) -> Any:
        return pc.is_in(self._cells, value_set=pa.array(["", *missing], pa.string()))


def trim(cells: Any) -> Any:
    """Strip the cells of an Arrow array of text without nulls, as str.strip does."""
    offsets = np.frombuffer(cells.buffers()[1], dtype=np.int32)[cells.offset : cells.offset + len(cells) + 1]
    if offsets[0] == offsets[-1]:
        return cells
    content = np.frombuffer(cells.buffers()[2], dtype=np.uint8)
    starts, ends = offsets[:-1], offsets[1:]
    filled = starts < ends
    if not filled.all():
        starts, ends = starts[filled], ends[filled]
    if _MAY_BE_SPACE[content[starts]].any() or _MAY_BE_SPACE[content[ends - 1]].any():
        return pc.utf8_trim(cells, characters=_SPACES)
    return cells


def _is_missing(values: NDArray) -> NDArray:
    """Which values are none; infinite numbers are none, either."""
    return np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)


def _plain_numbers(cells: Any) -> NDArray | None:
    """Return plain finite numbers, None if some cell holds none."""
    try:
        values = np.asarray(cells.cast(pa.float64()))
    except pa.ArrowInvalid:
        return None
    return values if np.isfinite(values).all() else None


def _numbers(present: Any, form: Form) -> NDArray | None:
    """Return numbers of cells or null, None if some cell does not fit."""
    style = (*form.number_style, "", "", "", "")[:4]
    try:
        if form.is_plain:
            return present.cast(pa.float64()).to_numpy(zero_copy_only=False)
        fits = pc.match_substring_regex(present, f"^(?:{number_pattern(*style)})$")
        if not pc.all(fits, min_count=0).as_py():
            return None
        negative = pc.match_substring_regex(present, "\\(|[\u2212-]$").fill_null(False)
        for old, new in plain_steps(*style):
            present = pc.replace_substring(present, old, new)
        present = pc.utf8_rtrim(present, characters="-")
        values = present.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return np.where(np.asarray(negative), -values, values)


def _dates(present: Any, pattern: str) -> NDArray | None:
    """Return moments of cells or null, None if some cell does not fit."""
    if pattern == "iso" and pc.all(pc.match_substring_regex(present, _SIMPLE_ISO), min_count=0).as_py():
        try:
            return present.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return None
    encoded = present.dictionary_encode()
    parts = pc.extract_regex(encoded.dictionary, f"^(?:{date_regex(pattern)})$")
    if parts.null_count:
        return None
    moments = _assemble(parts)
    if moments is None:
        return None
    codes = np.asarray(encoded.indices.fill_null(-1))
    return np.append(moments, np.datetime64("NaT", "us"))[codes]


def _assemble(parts: Any) -> NDArray | None:
    """Return moments of their parts, None if one of them does not exist, such as 31 February."""
    years, months, days = _whole(parts, "year"), parts.field("month"), _whole(parts, "day")
    short = np.asarray(pc.equal(pc.utf8_length(parts.field("year")), 2))
    years = years + np.where(short, np.where(years >= 69, 1900, 2000), 0)
    try:
        numbers = np.asarray(months.cast(pa.int64()))
    except pa.ArrowInvalid:
        found = pc.index_in(pc.utf8_lower(months), value_set=pa.array(list(MONTHS)))
        if found.null_count:
            return None
        numbers = np.array(list(MONTHS.values()))[np.asarray(found)]
    hours = _whole(parts, "hour")
    half = np.asarray(pc.utf8_lower(parts.field("half")).fill_null("").to_numpy(zero_copy_only=False), dtype=str)
    if ((half != "") & ((hours < 1) | (hours > 12))).any():
        return None
    hours = np.where(half != "", hours % 12 + np.where(half == "p", 12, 0), hours)
    first = ((years - 1970) * 12 + numbers - 1).astype("datetime64[M]")
    moments = first.astype("datetime64[D]") + (days - 1)
    if (moments.astype("datetime64[M]") != first).any():
        return None
    seconds = hours * 3600 + _whole(parts, "minute") * 60 + _whole(parts, "second")
    digits = pc.utf8_slice_codeunits(parts.field("fraction"), 0, 6)
    micros = _int(digits) * _FRACTIONS[np.asarray(pc.utf8_length(digits))]
    return moments.astype("datetime64[us]") + (seconds * 1_000_000 + micros)


def _whole(parts: Any, name: str) -> NDArray:
    return _int(parts.field(name))


def _int(texts: Any) -> NDArray:
    """Whole numbers; empty text is 0."""
    return np.asarray(pc.if_else(pc.equal(texts, ""), "0", texts).cast(pa.int64()))
