"""Whole lines of a text file, some bytes at a time."""

from __future__ import annotations

from polytrain.tables.errors import Option, TableError
from polytrain.tables.files.streams import TextStream, count_lines

__all__ = ["MAX_LINE_BYTES", "Chunks", "decode", "line_is_too_long"]

#: A row that is longer is none of a table, and is not gathered in memory.
MAX_LINE_BYTES = 1 << 23


class Chunks:
    """Cuts a text where lines end.

    Parameters
    ----------
    stream : TextStream
        The text.
    label : str
        Name for messages.
    """

    def __init__(self, stream: TextStream, label: str) -> None:
        self._stream, self._label = stream, label
        self._rest = b""

    def give_back(self, content: bytes) -> None:
        """Put the end of the last chunk back."""
        self._rest = content + self._rest

    def next(self, n_bytes: int) -> bytes:
        """Return whole lines of about so many bytes, none at the end; the last line may lack its end."""
        parts = [self._rest]
        size = len(self._rest)
        self._rest = b""
        while fresh := self._stream.read(n_bytes - size if size < n_bytes else n_bytes):
            parts.append(fresh)
            size += len(fresh)
            if size < n_bytes:
                continue
            content = b"".join(parts)
            # A CR at the very end may be the first half of CRLF.
            end = content.rfind(b"\n") + 1 or content.rfind(b"\r", 0, -1) + 1
            if end:
                self._rest = content[end:]
                return content[:end]
            if size > MAX_LINE_BYTES:
                raise line_is_too_long(self._label)
            parts = [content]
            n_bytes = 2 * size  # a long line is not copied again for each of its pieces
        return b"".join(parts)


def line_is_too_long(label: str) -> TableError:
    """Return the error about a row that is longer than any of a table."""
    return TableError(
        f"{label} has a row of more than {MAX_LINE_BYTES} bytes, the most that is read. Check that it is a table, and "
        "that all quotes are closed."
    )


def decode(chunk: bytes, label: str, n_lines: int) -> tuple[str, TableError | None]:
    """Return the text of a chunk that follows so many lines, and the mistake in it that can be named.

    With a mistake, the text ends before its line, so that mistakes are told in the order of lines.
    """
    error = None
    try:
        text = chunk.decode()
    except UnicodeDecodeError as found:
        line, chunk = _lines_before(chunk, found.start)
        text = chunk.decode()
        error = TableError(
            f"{label}, line {n_lines + line}: byte 0x{found.object[found.start]:02x} makes no character in UTF-8, "
            "unlike all before. Name the encoding, such as ",
            Option("encoding", "cp1252"),
            ", or mend the line.",
        )
    if "\0" in text:
        line, chunk = _lines_before(chunk, chunk.index(b"\0"))
        text = chunk.decode()
        error = TableError(
            f"{label}, line {n_lines + line}: there is a NUL byte, which no text has. Check that it is a table at all."
        )
    return text, error


def _lines_before(chunk: bytes, position: int) -> tuple[int, bytes]:
    """Return the number, from 1, of the line of a byte, and all lines before."""
    end = max(chunk.rfind(b"\n", 0, position), chunk.rfind(b"\r", 0, position)) + 1
    return count_lines(chunk[:end]) + 1, chunk[:end]
