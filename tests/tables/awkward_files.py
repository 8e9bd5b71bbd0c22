"""Files as people have them: what must be understood of each, or how it is refused and which remedy then works.

Most of them hold the same table of 80 rows: "size" and "amount" are numbers, "colour" is text, and "target" follows
from them. ``kinds`` and ``first`` say what must come of the columns, ``notes`` which words the notes must hold.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from polytrain.tables import ReadOptions
from tables.awkward_contents import (
    N_ROWS,
    NAMES,
    archive,
    feather,
    folder,
    lines,
    long_rows,
    number,
    parquet,
    quoted_lines,
    records,
    table,
    with_dates,
    workbook,
    years,
    zstandard,
)

__all__ = ["AWKWARD_FILES", "NAMES", "AwkwardFile", "Remedy"]

AS_IT_IS = ReadOptions()
INDEXED = ("Unnamed: 0", *NAMES)


@dataclass(frozen=True)
class Remedy:
    """What the message says to do: other options, or another file.

    Attributes
    ----------
    options : ReadOptions
    name : str or None
        Name of another file; None reads the same again.
    content : bytes or None
        What that file holds; None if it is there already.
    """

    options: ReadOptions = AS_IT_IS
    name: str | None = None
    content: bytes | None = None


AS_CSV = Remedy(name="saved.csv", content=table().encode())


@dataclass(frozen=True)
class AwkwardFile:
    """A file, and what is to come of it.

    Attributes
    ----------
    name : str
        Its name.
    content : bytes, str, or function of the path
        What it holds, text as UTF-8; or what writes it.
    names : tuple of str or None
        The columns' names; None if the file has none.
    n_rows : int
        Number of rows.
    notes : tuple of str
        Words that the notes must hold.
    kinds : dict
        Column -> how its form is described, or the beginning of that.
    first : dict
        Column -> value of its first cell: a number, an ISO date, or text.
    options : ReadOptions
        What is said about it.
    refusal : str or None
        What the message holds if it is refused.
    remedy : Remedy or None
        What to do then.
    needs : str or None
        Library without which it is not read.
    """

    name: str
    content: bytes | str | Callable[[Path], object]
    names: tuple[str, ...] | None = NAMES
    n_rows: int = N_ROWS
    notes: tuple[str, ...] = ()
    kinds: dict[str, str] = field(default_factory=dict)
    first: dict[str, float | str] = field(default_factory=dict)
    options: ReadOptions = AS_IT_IS
    refusal: str | None = None
    remedy: Remedy | None = None
    needs: str | None = None

    def write(self, folder: Path) -> Path:
        """Write the file into a folder."""
        path = folder / self.name
        if callable(self.content):
            self.content(path)
        else:
            path.write_bytes(self.content.encode() if isinstance(self.content, str) else self.content)
        return path

    def write_remedy(self, folder: Path) -> Path:
        """Do what the message says, and return the file to be read instead."""
        assert self.remedy is not None
        path = folder / (self.remedy.name or self.name)
        if self.remedy.content is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.remedy.content)
        return path


def of_amounts(name: str, write: Callable[[float], str], form: str, delimiter: str = ",") -> AwkwardFile:
    """A table whose amounts are written in some way: numbers such as ``form``."""
    kinds, first = {"amount": f"numbers, such as {form}"}, {"amount": 1000.0}
    return AwkwardFile(name, table(delimiter, amount=write), kinds=kinds, first=first)


def dated(name: str, pattern: str, kind: str, first: str) -> AwkwardFile:
    """A table with a column of dates in March 2024, written with the day in ``pattern``."""
    names, content = ("day", *NAMES), with_dates(pattern.format)
    return AwkwardFile(name, content, names=names, kinds={"day": kind}, first={"day": first})


AWKWARD_FILES = [
    AwkwardFile("plain.csv", table(), first={"size": 0.25, "colour": "red"}),
    # An index, names that are missing, double, or too few.
    AwkwardFile("pandas.csv", table(names=("", *NAMES), extra=str), names=INDEXED, first={"Unnamed: 0": 0.0}),
    AwkwardFile("unnamed.csv", table(names=INDEXED, extra=str), names=INDEXED),
    AwkwardFile(
        "write_table.txt",
        table(" ", names=tuple(f'"{name}"' for name in NAMES), extra=lambda k: f'"{k + 1}"', colour='"{}"'.format),
        names=INDEXED,
        notes=("separated by spaces",),
    ),
    AwkwardFile(
        "write_csv.csv",
        table(names=('""', *(f'"{name}"' for name in NAMES)), extra=lambda k: f'"{k + 1}"'),
        names=INDEXED,
    ),
    AwkwardFile(
        "doubles.csv",
        table(names=("size", "size", "colour", "target")),
        names=("size", "size.1", "colour", "target"),
        notes=("that of another, are called 'size.1'",),
    ),
    AwkwardFile(
        "nameless.csv",
        table(names=("size", "", "colour", "target")),
        names=("size", "Unnamed: 1", "colour", "target"),
        notes=("columns without a name, or with that of another, are called 'Unnamed: 1'",),
    ),
    AwkwardFile(
        "years.csv",
        years(),
        names=("colour", "2019", "2020", "target"),
        first={"2019": 0.25},
        options=ReadOptions(header="yes"),
    ),
    AwkwardFile("no_header.csv", table(names=None), names=None, first={"column 0": 0.25}),
    # Compression.
    AwkwardFile("packed.csv.gz", gzip.compress(table().encode()), notes=("gzip",)),
    AwkwardFile("packed.csv.bz2", bz2.compress(table().encode()), notes=("bzip2",)),
    AwkwardFile("packed.csv.xz", lzma.compress(table().encode()), notes=("xz",)),
    AwkwardFile("packed.csv.zst", zstandard, notes=("zstd",), needs="pyarrow"),
    AwkwardFile("packed.zip", archive(table_dot_csv=table()), notes=("zip",)),
    AwkwardFile("really_gzip.csv", gzip.compress(table().encode()), notes=("gzip",)),
    # Encodings.
    AwkwardFile("mark.csv", b"\xef\xbb\xbf" + table().encode()),
    AwkwardFile("unicode_text.txt", table("\t").encode("utf-16"), notes=("UTF-16", "tabs")),
    AwkwardFile("utf16_be.csv", b"\xfe\xff" + table().encode("utf-16-be"), notes=("UTF-16",)),
    AwkwardFile(
        "utf16_unmarked.csv",
        table().encode("utf-16-le"),
        refusal="is a binary file.*name its encoding",
        remedy=Remedy(ReadOptions(encoding="utf-16-le")),
    ),
    AwkwardFile(
        "windows.csv",
        table(colour=lambda colour: colour.replace("red", "ros\u00e9")).encode("cp1252"),
        notes=("Windows-1252 since it is not UTF-8",),
        first={"colour": "ros\u00e9"},
    ),
    AwkwardFile(
        "dos.csv",
        table(colour=lambda colour: colour.replace("red", "ros\u00e9")).encode("cp850"),
        options=ReadOptions(encoding="cp850"),
        first={"colour": "ros\u00e9"},
    ),
    AwkwardFile(
        "late_byte.csv",
        long_rows(b"x,1,2,ros\xe9,yes\n"),
        names=("remark", *NAMES),
        n_rows=N_ROWS + 1,
        refusal="line 82: byte 0xe9",
        remedy=Remedy(ReadOptions(encoding="cp1252")),
    ),
    # Delimiters, line ends, quotes, what stands around the table.
    AwkwardFile("semicolons.csv", table(";"), notes=("semicolons",)),
    AwkwardFile("tabs.tsv", table("\t"), notes=("tabs",)),
    AwkwardFile("tabs.csv", table("\t"), notes=("tabs",)),
    AwkwardFile("bars.txt", table("|"), notes=("bars",)),
    AwkwardFile("spaces.data", table("  "), notes=("spaces",)),
    AwkwardFile("carets.csv", table("^"), options=ReadOptions(delimiter="^")),
    AwkwardFile("crlf.csv", table(end="\r\n")),
    AwkwardFile("cr.csv", table(end="\r")),
    AwkwardFile("no_end.csv", table().rstrip("\n")),
    AwkwardFile("quoted.csv", quoted_lines(), first={"colour": 'red "paint"\nof one coat, dry'}),
    AwkwardFile("spaced.csv", table(", ", colour='"{}"'.format), first={"colour": "red"}),
    AwkwardFile("blank_lines.csv", "\n  \n" + table(end="\n\n") + "   \n"),
    AwkwardFile("excel.csv", "sep=;\r\n" + table(";", end="\r\n"), notes=("first line says", "semicolons")),
    AwkwardFile("comments.csv", "# measured in May, by hand\n#\n" + table(), notes=("skipped: 2",)),
    AwkwardFile("trailing.csv", table(tail=","), names=(*NAMES, "Unnamed: 4"), notes=("without a name",)),
    AwkwardFile(
        "trailing_rows.csv",
        ",".join(NAMES) + "\n" + table(names=None, tail=","),
        names=(*NAMES, "Unnamed: 4"),
        notes=("without a name",),
    ),
    AwkwardFile("trailing_header.csv", ",".join(NAMES) + ",\n" + table(names=None)),
    # Numbers.
    AwkwardFile(
        "decimal_commas.csv",
        table(";", size=lambda value: number(value, ","), amount=lambda value: number(value, ",")),
        kinds={"size": "numbers, such as '1.234,5'", "amount": "numbers, such as '1.234,5'"},
        first={"size": 0.25, "amount": 1000.0},
    ),
    AwkwardFile(
        "decimal_commas_quoted.csv",
        table(size=lambda value: f'"{number(value, ",")}"'),
        kinds={"size": "numbers, such as '1.234,5'"},
        first={"size": 0.25},
    ),
    AwkwardFile(
        "no_header_decimal_commas.csv",
        table(";", names=None, size=lambda value: number(value, ","), amount=lambda value: number(value, ",")),
        names=None,
        first={"column 0": 0.25},
    ),
    of_amounts("thousands.csv", lambda value: f'"{number(value, ".", ",")}"', "'1,234.5'"),
    of_amounts(
        "ambiguous_thousands.csv",
        lambda value: f'"{int(value):,}"',
        "'1,234.5' (another form would fit, too)",
    ),
    of_amounts("german.csv", lambda value: number(value, ",", "."), "'1.234,5'", ";"),
    of_amounts("french.csv", lambda value: number(value, ",", "\u202f"), "'1 234,5'", ";"),
    of_amounts("swiss.csv", lambda value: f"CHF {number(value, '.', chr(39))}", '"1\'234.5 CHF"'),
    of_amounts("dollars.csv", lambda value: f'"${number(value, ".", ",")}"', "'1,234.5 $'"),
    AwkwardFile(
        "euros.csv",
        table(";", amount=lambda value: f"{number(value, ',', '.')} \u20ac").encode("cp1252"),
        notes=("Windows-1252",),
        kinds={"amount": "numbers, such as '1.234,5 \u20ac'"},
        first={"amount": 1000.0},
    ),
    AwkwardFile(
        "percents.csv",
        table(size=lambda value: f"{value} %"),
        kinds={"size": "numbers, such as '1234.5 %'"},
        first={"size": 0.25},
    ),
    of_amounts(
        "accounting.csv",
        lambda value: f'"({value - 1000:,.1f})"' if value > 3000 else f'"{value:,.1f}"',
        "'1,234.5'",
    ),
    AwkwardFile(
        "gaps.csv",
        table(amount=lambda value: "NA" if value > 8000 else "" if value < 1300 else number(value)),
        kinds={"amount": "numbers"},
    ),
    # Dates.
    dated("iso_dates.csv", "2024-03-{:02}", "dates", "2024-03-01"),
    dated("zones.csv", "2024-03-{:02}T01:30:00+02:00", "dates", "2024-03-01T01:30"),
    dated("german_dates.csv", "{}.3.2024 14:30", "dates, such as '31.12.2024'", "2024-03-01T14:30"),
    dated("american_dates.csv", "3/{}/2024", "dates, such as '12/31/2024'", "2024-03-01"),
    dated("month_names.csv", "{:02}-Mar-2024", "dates, such as '31-Dec-2024'", "2024-03-01"),
    # JSON and files with types.
    AwkwardFile("lines.jsonl", lines(records()), first={"size": 0.25}),
    AwkwardFile("lines.ndjson.gz", gzip.compress(lines(records()).encode()), notes=("gzip",), first={"size": 0.25}),
    AwkwardFile("array.json", json.dumps(records(), indent=1), first={"size": 0.25}),
    AwkwardFile("gaps.jsonl", lines(records(gaps=True)), names=(*NAMES, "sold"), kinds={"sold": "numbers"}),
    AwkwardFile("rows.parquet", parquet, names=(*NAMES, "__index_level_0__"), first={"size": 0.25}, needs="pyarrow"),
    AwkwardFile("rows.feather", feather, first={"size": 0.25}, needs="pyarrow"),
    # Refused, and the way out.
    AwkwardFile("empty.csv", b"", refusal="is empty", remedy=AS_CSV),
    AwkwardFile("blank.csv", b"\n\n", refusal="holds no rows", remedy=AS_CSV),
    AwkwardFile(
        "folder.csv", folder, refusal="is a folder. Name a file in it", remedy=Remedy(name="folder.csv/part.csv")
    ),
    AwkwardFile("book.xlsx", workbook(), refusal="Excel workbook.*save the sheet as CSV|cannot be read", remedy=AS_CSV),
    AwkwardFile(
        "book.xls",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        refusal="is a binary file.*convert others to CSV",
        remedy=AS_CSV,
    ),
    AwkwardFile(
        "survey.sav", b"$FL2@(#) SPSS DATA FILE" + bytes(60), refusal="binary file.*with pandas", remedy=AS_CSV
    ),
    AwkwardFile("page.csv", "<!DOCTYPE html>\n<html></html>", refusal="a page.*save it as CSV", remedy=AS_CSV),
    AwkwardFile("picture.csv", b"\x89PNG\r\n\x1a\n\0\0\0", refusal="is a binary file", remedy=AS_CSV),
    AwkwardFile("program.csv", b"\x7fELF\2\1\1\0\0\0\0\0" * 9, refusal="is a binary file", remedy=AS_CSV),
    AwkwardFile(
        "columns.json",
        json.dumps({"size": {"0": 1, "1": 2}}),
        refusal="row 0: .* not a JSON object of plain values.*JSON lines",
        remedy=Remedy(name="saved.jsonl", content=lines(records()).encode()),
    ),
    AwkwardFile(
        "pretty.json",
        json.dumps(records()[0], indent=1),
        refusal="line 1: this is not valid JSON.*JSON lines",
        remedy=Remedy(name="saved.jsonl", content=lines(records()).encode()),
    ),
    AwkwardFile(
        "two.zip",
        archive(a_dot_csv=table(), b_dot_csv=table()),
        refusal="holds 2 files .a.csv, b.csv.. Unpack it",
        remedy=Remedy(name="a.csv", content=table().encode()),
    ),
    AwkwardFile("cut.csv.gz", gzip.compress(table().encode())[:200], refusal="damaged or truncated", remedy=AS_CSV),
    AwkwardFile("renamed.parquet", table()),
    AwkwardFile(
        "ragged.csv",
        table() + "1,2,red\n",
        refusal="line 82: 3 cells, but 4 in the first row. Fix the line",
        remedy=Remedy(name="fixed.csv", content=(table()).encode()),
    ),
    AwkwardFile(
        "carets_unsaid.csv",
        table("^", size=lambda value: number(value, ","), amount=lambda value: "0"),
        refusal="delimiter",
        remedy=Remedy(ReadOptions(delimiter="^")),
    ),
    AwkwardFile(
        "nul.csv",
        table() + "1,2,re\0d,yes\n",
        refusal="is a binary file",
        remedy=Remedy(name="fixed.csv", content=table().encode()),
    ),
]
