"""What awkward files hold: one table, written in many ways."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

NAMES = ("size", "amount", "colour", "target")
N_ROWS = 80
COLOURS = ("red", "green", "blue")


def row(k: int) -> tuple[float, float, str, str]:
    """One row of the table that most files hold."""
    size, amount, colour = (37 * k % 40) / 4 + 0.25, 1000 + (7919 * k % 37) * 211.5, COLOURS[k % 3]
    return size, amount, colour, "yes" if size > 6 or (colour == "red" and amount > 5000) else "no"


ROWS = [row(k) for k in range(N_ROWS)]


def number(value: float, decimal: str = ".", thousands: str = "") -> str:
    return f"{value:,.2f}".replace(",", "T").replace(".", decimal).replace("T", thousands)


def table(
    delimiter: str = ",",
    *,
    names: tuple[str, ...] | None = NAMES,
    size: Callable[[float], str] = number,
    amount: Callable[[float], str] = number,
    colour: Callable[[str], str] = str,
    extra: Callable[[int], str] | None = None,
    end: str = "\n",
    tail: str = "",
) -> str:
    """The table as text; ``extra`` is a first column, ``tail`` stands at the end of each line."""
    lines = [] if names is None else [delimiter.join(names)]
    for k, (one, two, three, four) in enumerate(ROWS):
        cells = [size(one), amount(two), colour(three), four]
        lines.append(delimiter.join(cells if extra is None else [extra(k), *cells]))
    return "".join(line + tail + end for line in lines)


# --- files that pyarrow or zipfile write ------------------------------------------------------------------------------


def columns() -> dict[str, list]:
    return {name: [cells[k] for cells in ROWS] for k, name in enumerate(NAMES)}


def zstandard(path: Path) -> None:
    import pyarrow

    with pyarrow.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(table().encode())


def parquet(path: Path) -> None:
    import pyarrow
    from pyarrow import parquet as files

    index = {"__index_level_0__": list(range(N_ROWS))}
    files.write_table(pyarrow.table({**columns(), **index}), path)


def feather(path: Path) -> None:
    import pyarrow
    from pyarrow import feather as files

    files.write_feather(pyarrow.table(columns()), str(path))


def archive(**members: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in members.items():
            packed.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return stream.getvalue()


def workbook() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        for name in ("[Content_Types].xml", "xl/workbook.xml", "xl/worksheets/sheet1.xml"):
            packed.writestr(name, "<x/>")
    return stream.getvalue()


def folder(path: Path) -> None:
    path.mkdir()
    (path / "part.csv").write_text(table())


# --- other texts ------------------------------------------------------------------------------------------------------


def records(gaps: bool = False) -> list[dict]:
    found = [dict(zip(NAMES, cells, strict=True)) for cells in ROWS]
    if gaps:
        for k, record in enumerate(found):
            record["sold"] = k % 2 == 0
            if k % 5 == 1:
                del record["amount"]
            if k % 7 == 2:
                record["colour"] = None
    return found


def lines(found: list[dict]) -> str:
    return "".join(json.dumps(record) + "\n" for record in found)


def with_dates(write: Callable[[int], str]) -> str:
    """The table with a column "day" before the others; the day is 1 + k % 28 of March 2024."""
    return table(names=("day", *NAMES), extra=lambda k: write(1 + k % 28))


def years() -> str:
    wide = [f"{cells[2]},{cells[0]},{cells[1]},{cells[3]}" for cells in ROWS]
    return "\n".join(["colour,2019,2020,target", *wide]) + "\n"


def quoted_lines() -> str:
    def quote(colour: str) -> str:
        return f'"{colour} ""paint""\nof one coat, dry"'

    return table(colour=quote)


def long_rows(last: bytes) -> bytes:
    """More than is looked at when the file is opened, then one line."""
    return table(names=("remark", *NAMES), extra=lambda k: "x" * 15_000).encode() + last
