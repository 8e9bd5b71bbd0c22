"""Files that hold tables: opened, whatever they are, and read block by block as columns of cells."""

from polytrain.columns.forms import Form, find_form
from polytrain.tables.files.cells import DEFAULT_MISSING, CellColumn
from polytrain.tables.files.opening import BLOCK_ROWS, Block, ReadOptions, Table, open_table, position_names

__all__ = [
    "BLOCK_ROWS",
    "DEFAULT_MISSING",
    "Block",
    "CellColumn",
    "Form",
    "ReadOptions",
    "Table",
    "find_form",
    "open_table",
    "position_names",
]
