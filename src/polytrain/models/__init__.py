"""Model files: fitted estimators in a documented format that is safe to open. ``docs/model-files.md`` describes it."""

from polytrain.models.errors import ModelFileError
from polytrain.models.file import FORMAT, load

__all__ = ["FORMAT", "ModelFileError", "load"]
