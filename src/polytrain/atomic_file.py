"""Write files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["replace_file"]


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file beside ``path`` that takes its place at the end of the block, or vanishes if an error ends it.

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
    target = Path(os.path.realpath(path))  # through a link, the file that it names
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
