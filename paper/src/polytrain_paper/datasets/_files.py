"""Find, verify and download the standard files of a data set.

A file is trusted for the digest of its *decompressed* content: copies of the same data are often compressed anew, and
plain files are as good as .gz ones. Nothing is returned, and nothing stays on disk, before that digest was checked.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ENVIRONMENT_VARIABLE = "POLYTRAIN_DATA"
# One try and this many more, a second or two apart; a transfer that broke often works the next time.
RETRIES = 3
TIMEOUT_SECONDS = 30


class DataFileError(ValueError):
    """A data file is truncated, corrupt or not the one it should be."""


class DataNotFoundError(FileNotFoundError):
    """The files of a data set are neither in the data home nor could they be downloaded."""


@dataclass(frozen=True)
class StandardFile:
    """One file of a data set, named without .gz, with the size and digest of its decompressed content."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Source:
    """Where the files of a data set come from: a title for messages, a folder in the data home and a base URL."""

    title: str
    folder: str
    base_url: str


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that holds the data sets.

    Parameters
    ----------
    data_home : path-like, optional
        The folder itself. By default the environment variable ``POLYTRAIN_DATA``, else a folder for polytrain in the
        user's cache.

    Returns
    -------
    Path
        The folder, which need not exist.

    Examples
    --------
    >>> from polytrain_paper.datasets import get_data_home
    >>> get_data_home("data").name
    'data'
    """
    chosen = data_home or os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().resolve()
    return _user_cache() / "polytrain"


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def read_files(
    files: tuple[StandardFile, ...],
    source: Source,
    parse: Callable[[StandardFile, bytes], Any],
    *,
    data_home: str | os.PathLike[str] | None,
    base_url: str | None,
    download: bool,
    progress: bool,
) -> list[Any]:
    """Return the parsed content of all files, found in the data home or downloaded into it.

    ``parse(file, content)`` raises ``DataFileError`` with the reason where the content is not what it should be.
    """
    home = get_data_home(data_home)
    url = (base_url or source.base_url).rstrip("/")
    found = [_find(home, source, file) for file in files]
    missing = [file for file, path in zip(files, found, strict=True) if path is None]
    if missing and not download:
        raise DataNotFoundError(_where_to_put(missing, source, home, url, "downloading is switched off"))
    parsed = []
    for file, place in zip(files, found, strict=True):
        path = place or _download(file, source, home, url, parse, progress)
        try:
            parsed.append(check_content(file, read_content(path, compressed=path.suffix == ".gz"), parse))
        except DataFileError as error:
            raise DataFileError(
                f"{path} is refused: {error} Replace it by the standard file, or delete it to have it downloaded."
            ) from error
    return parsed


def read_content(path: Path, *, compressed: bool) -> bytes:
    """Return the content of a file, decompressed with gzip where it is ``compressed``."""
    raw = path.read_bytes()
    if not compressed:
        return raw
    if not raw.startswith(b"\x1f\x8b"):
        raise DataFileError(f"it is not a gzip file (it starts with {raw[:2]!r}).")
    try:
        return gzip.decompress(raw)
    except EOFError:
        raise DataFileError(f"the gzip stream is truncated after {len(raw):,} bytes.") from None
    except (OSError, zlib.error) as error:
        raise DataFileError(f"the gzip stream is corrupt ({error}).") from None


def check_content(file: StandardFile, content: bytes, parse: Callable[[StandardFile, bytes], Any]) -> Any:
    """Parse the content, then insist on its digest. The parser comes first because it can say what is wrong."""
    if len(content) < file.size:
        raise DataFileError(f"{file.name} is truncated: {len(content):,} of {file.size:,} bytes.")
    parsed = parse(file, content)
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise DataFileError(f"the content has SHA-256 {digest}, but the standard {file.name} has {file.sha256}.")
    return parsed


def _find(home: Path, source: Source, file: StandardFile) -> Path | None:
    for folder in (home / source.folder, home):
        for name in (f"{file.name}.gz", file.name):
            if (folder / name).is_file():
                return folder / name
    return None


def _download(
    file: StandardFile,
    source: Source,
    home: Path,
    url: str,
    parse: Callable[[StandardFile, bytes], Any],
    progress: bool,
) -> Path:
    """Fetch one .gz file into the data home; it appears there whole and verified, or not at all."""
    try:
        import pooch
        import requests
    except ImportError:
        reason = "pooch, which would download it, is not installed (pip install 'polytrain-paper[data]')"
        raise DataNotFoundError(_where_to_put([file], source, home, url, reason)) from None

    transfer = pooch.HTTPDownloader(progressbar=progress and find_spec("tqdm") is not None, timeout=TIMEOUT_SECONDS)

    def fetch_and_check(address: str, temporary: str, manager: Any) -> None:
        # pooch moves the temporary file into place only after this returns, and tries again when it raises.
        transfer(address, temporary, manager)
        check_content(file, read_content(Path(temporary), compressed=True), parse)

    name = f"{file.name}.gz"
    store = pooch.create(
        path=home / source.folder, base_url=f"{url}/", registry={name: None}, retry_if_failed=RETRIES, env=None
    )
    try:
        return Path(store.fetch(name, downloader=fetch_and_check))
    except DataFileError as error:
        raise DataFileError(f"{url}/{name} is refused: {error} Nothing was kept.") from error
    except requests.exceptions.RequestException as error:
        reason = f"downloading failed {RETRIES + 1} times ({type(error).__name__}: {error})"
    except OSError as error:
        reason = f"the download could not be written ({error})"
    raise DataNotFoundError(_where_to_put([file], source, home, url, reason))


def _where_to_put(files: list[StandardFile], source: Source, home: Path, url: str, reason: str) -> str:
    names = ", ".join(f"{file.name}.gz" for file in files)
    return (
        f"{source.title}: {names} not found in {home / source.folder} or {home}, and {reason}. "
        f"Put {names} (or the decompressed files, without .gz) into {home / source.folder}; "
        f"they are at {url}/. Another folder: pass data_home or set {ENVIRONMENT_VARIABLE}."
    )
