"""Tables in files: read by pandas, understood, learned from and predicted.

`fit_table` and `load_table_model` do what the commands do. ``reading.py`` makes frames of files of all kinds; what
their columns become is the estimators' own business.
"""

from polytrain.columns.forms import DEFAULT_MISSING
from polytrain.tables.fitting import FitSettings, fit_table, fit_table_model
from polytrain.tables.layout import FileColumn, Layout
from polytrain.tables.learning import TrainingTable, read_training_table
from polytrain.tables.model import PreparedBlock, TableModel, load_table_model
from polytrain.tables.options import Option, ReadOptions, TableError, TableOptions
from polytrain.tables.reading import TableFile, open_table_file

__all__ = [
    "DEFAULT_MISSING",
    "FileColumn",
    "FitSettings",
    "Layout",
    "Option",
    "PreparedBlock",
    "ReadOptions",
    "TableError",
    "TableFile",
    "TableModel",
    "TableOptions",
    "TrainingTable",
    "fit_table",
    "fit_table_model",
    "load_table_model",
    "open_table_file",
    "read_training_table",
]
