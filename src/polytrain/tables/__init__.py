"""Tables in files: read block by block, understood, learned from and predicted.

`fit_table` and `load_table_model` do what the commands do. ``files/`` reads files of all kinds as columns of cells;
what these become is the estimators' own business.
"""

from polytrain.tables.errors import Option, TableError
from polytrain.tables.files import DEFAULT_MISSING, Block, ReadOptions, Table, open_table
from polytrain.tables.fitting import FitSettings, fit_table, fit_table_model
from polytrain.tables.layout import FileColumn, Layout
from polytrain.tables.learning import TrainingTable, read_training_table
from polytrain.tables.model import PreparedBlock, TableModel, load_table_model
from polytrain.tables.options import TableOptions
from polytrain.tables.section import TableSection

__all__ = [
    "DEFAULT_MISSING",
    "Block",
    "FileColumn",
    "FitSettings",
    "Layout",
    "Option",
    "PreparedBlock",
    "ReadOptions",
    "Table",
    "TableError",
    "TableModel",
    "TableOptions",
    "TableSection",
    "TrainingTable",
    "fit_table",
    "fit_table_model",
    "load_table_model",
    "open_table",
    "read_training_table",
]
