"""What goes wrong with tables."""

__all__ = ["TableError"]


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
