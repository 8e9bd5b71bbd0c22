"""Write files atomically: readers see the old or the new content, never a part."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

__all__ = ["open_descriptor", "replace_file", "write_atomically", "written_in_place"]

# Characters of a file's name that its temporary file keeps: file systems limit the bytes, at most four per character.
_MAX_LETTERS = 24
# No system follows longer chains of links.
_MAX_LINKS = 40


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file beside ``path`` that takes its place at the end of the block, or vanishes if an error ends it.

    Readers and crashes see the old or the new content, never a part. The new file has the mode and, where that is
    permitted, the owner of the one that it replaces. A link is followed. Anything but a file, such as a pipe, a device
    or /dev/stdout, is written into instead.
    """
    if written_in_place(path):
        with os.fdopen(_open_in_place(path), "wb") as stream:
            yield stream
        return
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name[:_MAX_LETTERS]}.{secrets.token_hex(8)}")
    old = path.stat() if path.exists() else None
    try:
        # At no time may more users read the new file than the old one.
        with open(temporary, "xb", opener=partial(os.open, mode=0o666 if old is None else 0o600)) as stream:
            if old is not None and os.name == "posix":
                _let_in(stream.fileno(), old)
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
    """Replace a file by text (as UTF-8) or by parts of its content in one step, as `replace_file` does."""
    try:
        with replace_file(path) as stream:
            stream.writelines([content.encode()] if isinstance(content, str) else content)
    except OSError as error:
        if error.errno is not None:  # the error of a full disk does not name the file
            error.filename = error.filename or str(path)
        raise


def written_in_place(path: str | os.PathLike[str]) -> bool:
    """Whether `replace_file` writes into a pipe, a device or an open file; folders and sockets raise ``OSError``."""
    if open_descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISSOCK(mode):
        raise OSError(errno.ENXIO, "Is a socket", str(path))
    return not stat.S_ISREG(mode)


def open_descriptor(path: str | os.PathLike[str]) -> int | None:
    """Return the number of the open file that a path such as /dev/stdout or /dev/fd/3 stands for, None for others."""
    folders = {os.path.realpath(folder) for folder in ("/proc/self/fd", "/dev/fd")}
    link = os.fspath(path)
    for _ in range(_MAX_LINKS):
        folder, name = os.path.split(link)
        if name.isdecimal() and os.path.realpath(folder) in folders:
            return int(name)
        if not os.path.islink(link):
            return None
        link = os.path.join(folder, os.readlink(link))
    return None


def _open_in_place(path: str | os.PathLike[str]) -> int:
    number = open_descriptor(path)
    if number is None:
        return os.open(path, os.O_WRONLY)
    try:
        # Opened anew, a file would be written from its start, over what others write through the same descriptor.
        return os.dup(number)
    except OSError as error:
        error.filename = str(path)
        raise


def _let_in(descriptor: int, old: os.stat_result) -> None:
    """Give an open file the owner and the mode of another, as far as that is permitted."""
    mode = old.st_mode & 0o777
    with suppress(OSError):  # only root may change owners; others may choose among their groups
        os.fchown(descriptor, -1, old.st_gid)
        os.fchown(descriptor, old.st_uid, -1)
    if os.fstat(descriptor).st_gid != old.st_gid:  # permissions of one group must not pass to another
        mode &= ~0o070 | (mode & 0o007) << 3
    with suppress(OSError):  # some file systems have one mode for all files
        os.fchmod(descriptor, mode)
