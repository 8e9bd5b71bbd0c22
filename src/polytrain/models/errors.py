"""What goes wrong with model files."""

__all__ = ["ModelFileError"]


class ModelFileError(ValueError):
    """A file that is no valid model file, or a model that cannot be written as one.

    Examples
    --------
    >>> import polytrain
    >>> try:
    ...     polytrain.load("setup.cfg")
    ... except (polytrain.ModelFileError, FileNotFoundError) as error:
    ...     print("refused")
    refused
    """
