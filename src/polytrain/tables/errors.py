"""What goes wrong with tables."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TableError", "reading"]


class TableError(ValueError):
    """A table that cannot be read, or that does not fit what it is used for. The message names the remedy.

    Examples
    --------
    >>> from polytrain.tables import TableError, open_table
    >>> try:
    ...     open_table("notes.docx.npy")
    ... except (TableError, FileNotFoundError) as error:
    ...     print("refused")
    refused
    """


@contextmanager
def reading(label: str, remedy: str) -> Iterator[None]:
    """Whatever another library makes of a damaged file in this block is a `TableError` that names the remedy."""
    try:
        yield
    except TableError:
        raise
    except Exception as error:  # the parsers of damaged files raise what they stumble over, not what they document
        what = str(error).rstrip(".") or type(error).__name__
        raise TableError(f"{label} cannot be read: {what:.200}. {remedy}.") from error
