"""Learn from tables in files and predict them: `fit_table` and `load_table_model` are the commands in Python."""

from polytrain.columns.forms import DEFAULT_MISSING
from polytrain.tables.fitting import fit_table
from polytrain.tables.model import TableModel, load_table_model
from polytrain.tables.open_file import open_table_file
from polytrain.tables.options import ReadOptions, TableError, TableOptions
from polytrain.tables.table_file import TableFile

__all__ = [
    "DEFAULT_MISSING",
    "ReadOptions",
    "TableError",
    "TableFile",
    "TableModel",
    "TableOptions",
    "fit_table",
    "load_table_model",
    "open_table_file",
]
