"""What kind of file it is, by its first bytes and its name; and the remedy for those that are no table."""

from __future__ import annotations

import re
from pathlib import PurePath

from polytrain.tables.errors import TableError

__all__ = ["COMPRESSIONS", "kind_of"]

#: First bytes of compressed files.
COMPRESSIONS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
_MODEL_FILE = b'{"__metadata__":{"format":"polytrain"'
_MAGIC = {b"PAR1": "parquet", b"\x93NUMPY": "npy", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
_ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt", ".data", ".jsonl", ".ndjson"), "text"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), "arrow"),
    ".npy": "npy",
    ".npz": "npz",
}
_SAVE = "Open it where it comes from and save it as CSV"
_PANDAS = "pandas.{}({!r}).to_csv('table.csv', index=False)"
# First bytes of files that hold tables in other ways, what they are, and what reads them.
_OTHERS: tuple[tuple[bytes, str, str], ...] = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel file", "Open it in a spreadsheet program and save it as CSV"),
    (b"$FL2", "an SPSS file", "Convert it: " + _PANDAS.replace("{}", "read_spss", 1)),
    (b"$FL3", "an SPSS file", "Convert it: " + _PANDAS.replace("{}", "read_spss", 1)),
    (b"<stata_dta>", "a Stata file", "Convert it: " + _PANDAS.replace("{}", "read_stata", 1)),
    (b"\x89HDF", "an HDF5 file", "Convert it: " + _PANDAS.replace("{}", "read_hdf", 1)),
    (b"FEA1", "an old Feather file", "Convert it: " + _PANDAS.replace("{}", "read_feather", 1)),
    (b"SQLite format 3\0", "an SQLite database", "Export one of its tables as CSV"),
    (b"%PDF", "a PDF document", _SAVE),
    (b"\x89PNG", "a picture", "Name a table"),
    (b"\xff\xd8\xff", "a picture", "Name a table"),
)
_HTML = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|table|head|body|\?xml|!--)", re.IGNORECASE)
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[{\]])")


def kind_of(name: str, start: bytes, label: str) -> str:
    """Tell what a file is: "text", "json", "parquet", "arrow", "npy" or "npz", or refuse it with a remedy.

    Parameters
    ----------
    name : str
        The file's name; only its ending counts.
    start : bytes
        The first bytes, decompressed.
    label : str
        Name for messages.
    """
    if not start:
        raise TableError(f"{label} is empty. Name a file with rows.")
    if start.startswith(_MODEL_FILE, 8):
        raise TableError(f"{label} is a polytrain model file, not a table. Name a table with rows.")
    for magic, what, remedy in _OTHERS:
        if start.startswith(magic):
            raise TableError(f"{label} is {what}, which is not read. {remedy.format(label)}.")
    if start[257:262] == b"ustar":
        raise TableError(f"{label} is an archive (tar). Unpack it, and name a table in it.")
    by_content = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "text")
    if start.startswith(b"PK\x03\x04"):
        by_content = "npz"
    kind = _ENDINGS.get(PurePath(name).suffix.lower(), by_content)
    if kind != by_content:
        raise TableError(
            f"{label} is no {kind} file, as its name says: its content is {_describe(by_content, start)}. Rename it."
        )
    if kind != "text":
        return kind
    if _HTML.match(start):
        raise TableError(f"{label} is a page (HTML or XML), not a table. {_SAVE}; a download may have gone wrong.")
    return "json" if _JSON.match(start) else "text"


def _describe(kind: str, start: bytes) -> str:
    return ("binary" if b"\0" in start else "text") if kind == "text" else f"that of a {kind} file"
