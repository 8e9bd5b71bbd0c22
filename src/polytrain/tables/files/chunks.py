"""Whole lines of a text file, some bytes at a time."""

from __future__ import annotations

from polytrain.tables.errors import Option, TableError
from polytrain.tables.files.streams import TextStream, count_lines

__all__ = ["Chunks", "decode"]

# A line that is longer is none of a table, and is not gathered in memory.
_MAX_LINE_BYTES = 1 << 26


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
            if size > _MAX_LINE_BYTES:
                raise TableError(
                    f"{self._label} has a line of more than {_MAX_LINE_BYTES} bytes. Check that it is a table at all."
                )
            parts = [content]
        return b"".join(parts)


def decode(chunk: bytes, label: str, n_lines: int) -> str:
    """Return the text of a chunk that follows so many lines; what makes no text is a mistake that can be named."""
    try:
        text = chunk.decode()
    except UnicodeDecodeError as error:
        line = n_lines + count_lines(chunk[: error.start]) + 1
        raise TableError(
            f"{label}, line {line}: byte 0x{chunk[error.start]:02x} makes no character in UTF-8, unlike all before. "
            "Name the encoding, such as ",
            Option("encoding", "cp1252"),
            ", or mend the line.",
        ) from None
    if "\0" in text:
        line = n_lines + count_lines(chunk[: chunk.index(b"\0")]) + 1
        raise TableError(
            f"{label}, line {line}: there is a NUL byte, which no text has. Check that it is a table at all."
        )
    return text
