"""The bytes of a text file as UTF-8, whatever it was packed with and written in."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import sys
import zipfile
from pathlib import PurePath
from typing import Any

from polytrain.tables.errors import Option, TableError, reading
from polytrain.tables.files.kinds import COMPRESSIONS
from polytrain.texts import listed

__all__ = ["SNIFF_BYTES", "ByteStream", "TextStream", "count_lines", "open_bytes"]

#: So many bytes are looked at to tell what a file is.
SNIFF_BYTES = 1 << 16
# And so many to tell its encoding: the first letter beyond ASCII may come late.
_ENCODING_BYTES = 1 << 20
_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_SPOKEN = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}
_ANEW = "It is damaged or cut short; fetch or write it anew"
_ENDINGS = (".gz", ".bz2", ".xz", ".zst", ".zip")


class ByteStream(io.RawIOBase):
    """Bytes of a file whose beginning can be looked at before it is read.

    Parameters
    ----------
    stream : binary stream
        Only ``read`` is asked of it, so that pipes will do.
    label : str
        Name for messages.
    keep_open : bool, default=False
        Whether closing leaves the stream open, as with standard input.
    """

    def __init__(self, stream: Any, label: str, keep_open: bool = False) -> None:
        self._stream, self._label, self._keep_open = stream, label, keep_open
        self._ahead = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def look(self, n_bytes: int = SNIFF_BYTES) -> bytes:
        """Return the next bytes without taking them."""
        while len(self._ahead) < n_bytes and (more := self._read(n_bytes - len(self._ahead))):
            self._ahead += more
        return self._ahead[:n_bytes]

    def read(self, n_bytes: int | None = -1) -> bytes:
        """Return at most so many bytes; none at the end of the file."""
        if n_bytes is None or n_bytes < 0:
            parts = iter(lambda: self.read(1 << 20), b"")
            return b"".join(parts)
        if self._ahead:
            taken, self._ahead = self._ahead[:n_bytes], self._ahead[n_bytes:]
            return taken
        return self._read(n_bytes)

    def _read(self, n_bytes: int) -> bytes:
        with reading(self._label, _ANEW):
            return self._stream.read(n_bytes)

    def close(self) -> None:
        """Close the file, unless it is to stay open."""
        if not self.closed and not self._keep_open:
            self._stream.close()
        super().close()


def open_bytes(path: str | os.PathLike[str], label: str) -> tuple[ByteStream, str, str | None]:
    """Open a file or standard input, decompressed.

    Returns
    -------
    ByteStream
    str
        Name of what was compressed, without the ending of the compression.
    str or None
        The compression: "gzip", "bzip2", "xz", "zstd" or "zip".
    """
    is_input = str(path) == "-"
    if is_input:
        if sys.stdin is None:
            raise TableError("standard input is closed. Name a file, or pipe one in.")
        stream = ByteStream(sys.stdin.buffer, label, keep_open=True)
    else:
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise TableError(f"{label} is a folder. Name a file in it.")
        stream = ByteStream(open(path, "rb", buffering=0), label)  # noqa: SIM115 - the table closes it
    name = PurePath(path).name
    try:
        compression = next((kind for magic, kind in COMPRESSIONS.items() if stream.look(8).startswith(magic)), None)
        if compression is None:
            return stream, name, None
        if compression == "zip":
            return _open_zip(stream, path, label)
        unpacked = ByteStream(_decompressor(compression, stream, label), label, keep_open=is_input)
        unpacked.look(1)
    except BaseException:
        stream.close()
        raise
    short = name if PurePath(name).suffix.lower() not in _ENDINGS else PurePath(name).stem
    return unpacked, short, compression


def _decompressor(compression: str, stream: ByteStream, label: str) -> Any:
    if compression == "gzip":
        return _Owner(gzip.GzipFile(fileobj=stream), stream)
    if compression == "bzip2":
        return _Owner(bz2.BZ2File(stream), stream)
    if compression == "xz":
        return _Owner(lzma.LZMAFile(stream), stream)  # type: ignore[arg-type]
    try:
        import pyarrow
    except ImportError:
        raise TableError(
            f"{label} is packed with Zstandard, which needs pyarrow: pip install 'polytrain[parquet]'. Or unpack it "
            "with zstd -d."
        ) from None
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, mode="r"), "zstd")


class _Owner:
    """A decompressor that closes the file below it, too."""

    def __init__(self, stream: Any, below: ByteStream) -> None:
        self._stream, self._below = stream, below

    def read(self, n_bytes: int) -> bytes:
        return self._stream.read(n_bytes)

    def close(self) -> None:
        self._stream.close()
        self._below.close()


def _open_zip(stream: ByteStream, path: str | os.PathLike[str], label: str) -> tuple[ByteStream, str, str | None]:
    """Open the one member of an archive; one of arrays stays as it is."""
    if str(path) == "-":
        raise TableError(f"{label} is a zip archive, which cannot be read from a pipe. Name the file, or unpack it.")
    stream.close()
    with reading(label, _ANEW):
        archive = zipfile.ZipFile(path)
        found = [member for member in archive.infolist() if member.filename and not member.is_dir()]
        members = [member.filename for member in found if not member.filename.startswith("__MACOSX/")]
    if members and all(name.endswith(".npy") for name in members):
        archive.close()
        return ByteStream(open(path, "rb"), label), PurePath(path).name, None
    try:
        if "[Content_Types].xml" in members or "mimetype" in members:
            what = "an Excel workbook" if any(name.startswith("xl/") for name in members) else "an office document"
            raise TableError(
                f"{label} is {what}, which is not read. Save the sheet as CSV, or convert it: "
                f"pandas.read_excel({label!r}).to_csv('table.csv', index=False)."
            )
        if len(members) != 1:
            raise TableError(
                f"{label} holds {len(members)} files ({listed(members)}). Unpack it, and name one of them."
            )
        if archive.getinfo(members[0]).flag_bits & 1:
            raise TableError(f"{label} is encrypted. Unpack it, and name the file that was in it.")
        with reading(label, _ANEW):
            member = archive.open(members[0])
    except BaseException:
        archive.close()
        raise
    return ByteStream(_Owner(member, archive), label), PurePath(members[0]).name, "zip"  # type: ignore[arg-type]


class TextStream:
    """A file's text as UTF-8 bytes, without a mark at its start.

    Parameters
    ----------
    stream : ByteStream
        The file.
    label : str
        Name for messages.
    encoding : str, optional
        Its encoding, if the user says so.

    Attributes
    ----------
    note : str or None
        What is to be told about the encoding.
    is_utf8 : bool
        Whether bytes are handed out as they come. They may then still be no UTF-8.
    """

    def __init__(self, stream: ByteStream, label: str, encoding: str | None = None) -> None:
        self._stream, self._label = stream, label
        self.note: str | None = None
        start = stream.look(_ENCODING_BYTES)
        encoding = self._find(start) if encoding is None else _known(encoding)
        mark = next((mark for mark, kind in _BOMS.items() if start.startswith(mark) and _same(kind, encoding)), b"")
        if codecs.lookup(encoding).name in ("utf-16", "utf-32"):  # Python would insist on a mark
            encoding = _BOMS.get(mark) or _find_wide(start) or f"{encoding}-le"
        stream.read(len(mark))
        self.encoding = encoding
        self.is_utf8 = _same(encoding, "utf-8")
        self._decoder = None if self.is_utf8 else codecs.getincrementaldecoder(encoding)()
        self._n_lines = 0

    def _find(self, start: bytes) -> str:
        for mark, kind in _BOMS.items():
            if start.startswith(mark):
                if kind != "utf-8":
                    self.note = f"read as {kind[:6].upper()}"
                return kind
        if b"\0" in start[:SNIFF_BYTES]:  # a later one is told by its line
            wide = _find_wide(start)
            if wide is None:
                raise TableError(
                    f"{self._label} is a binary file, not a table. Read are CSV, TSV, JSON lines, Parquet, Arrow, .npy "
                    "and .npz."
                )
            self.note = "read as UTF-16"
            return wide
        if _decodes(start, "utf-8"):
            return "utf-8"
        kind = "cp1252" if _decodes(start, "cp1252") else "latin-1"
        self.note = f"read as {_SPOKEN[kind]} since it is no UTF-8"
        return kind

    def read(self, n_bytes: int) -> bytes:
        """Return about so many bytes of UTF-8; none at the end."""
        if self._decoder is None:
            return self._stream.read(n_bytes)
        while True:
            raw = self._stream.read(n_bytes)
            try:
                text = self._decoder.decode(raw, final=not raw)
                encoded = text.encode()
            except UnicodeError as error:
                raise self._error(error) from None
            self._n_lines += count_lines(encoded)
            if encoded or not raw:
                return encoded

    def _error(self, error: UnicodeError) -> TableError:
        line, what = self._n_lines + 1, "the text"
        if isinstance(error, UnicodeDecodeError):
            before = error.object[: error.start].decode(self.encoding, errors="ignore")
            line += count_lines(before.encode())
            what = f"byte 0x{error.object[error.start]:02x}"
        return TableError(
            f"{self._label}, line {line}: {what} makes no character in the encoding {self.encoding}. Name another, "
            "such as ",
            Option("encoding", "latin-1"),
            ".",
        )

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def count_lines(content: bytes) -> int:
    """Return the number of line ends: LF, CR and CRLF."""
    return content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")


def _known(encoding: str) -> str:
    try:
        "a".encode(encoding)
        b"a".decode(encoding, errors="ignore")  # idna cannot, so that the line of a mistake would not be found
    except (LookupError, UnicodeError, TypeError, ValueError):
        raise TableError(
            f"there is no encoding {encoding!r:.60}. Name one that Python knows, such as ",
            Option("encoding", "cp1252"),
            " or ",
            Option("encoding", "utf-16"),
            ".",
        ) from None
    return encoding


def _same(first: str, second: str) -> bool:
    """Whether two names are of one encoding, in either byte order."""
    names = [codecs.lookup(name).name.replace("_", "-").removesuffix("-sig") for name in (first, second)]
    short = [name.removesuffix("-le").removesuffix("-be") for name in names]
    return short[0] == short[1]


def _decodes(start: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(start, final=len(start) < _ENCODING_BYTES)
    except UnicodeDecodeError:
        return False
    return True


def _find_wide(start: bytes) -> str | None:
    """UTF-16 without a mark: most of every second byte is NUL, and the others are not."""
    for kind, low, high in (("utf-16-le", start[0::2], start[1::2]), ("utf-16-be", start[1::2], start[0::2])):
        if (
            high.count(0) > 0.7 * len(high)
            and low.count(0) < 0.05 * len(low)
            and _decodes(start[: len(start) & ~1], kind)
        ):
            return kind
    return None
