"""Write files that nobody ever sees half of."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["replace_file", "write_atomically"]


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file beside ``path`` that takes its place at the end of the block, or vanishes if an error ends it.

    Readers and crashes see the old or the new content, never a part.

    Parameters
    ----------
    path : path-like
        The file; a link is followed, and its folder must exist.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polytrain.atomic_file import replace_file
    >>> path = Path(tempfile.mkdtemp()) / "file"
    >>> with replace_file(path) as stream:
    ...     _ = stream.write(b"new")
    ...     path.exists()
    False
    >>> path.read_bytes()
    b'new'
    """
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the rename itself must reach the disk; other systems cannot open a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_atomically(path: str | os.PathLike[str], content: str | Iterable[bytes]) -> None:
    """Replace a file in one step, as `replace_file` does.

    Parameters
    ----------
    path : path-like
        The file; a link is followed, and its folder must exist.
    content : str or iterable of bytes
        Text (written as UTF-8) or parts of the content.
    """
    try:
        with replace_file(path) as stream:
            stream.writelines([content.encode()] if isinstance(content, str) else content)
    except OSError as error:
        if error.errno is not None:  # a full disk does not say which file it could not hold
            error.filename = error.filename or str(path)
        raise
