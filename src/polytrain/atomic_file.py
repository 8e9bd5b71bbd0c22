"""Write files that nobody ever sees half of."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: str | os.PathLike[str], content: str | Iterable[bytes]) -> None:
    """Replace a file in one step: readers and crashes see the old or the new content, never a part.

    Parameters
    ----------
    path : path-like
        The file; a link is followed, and its folder must exist.
    content : str or iterable of bytes
        Text (written as UTF-8) or parts of the content.
    """
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as stream:
            stream.writelines([content.encode()] if isinstance(content, str) else content)
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
