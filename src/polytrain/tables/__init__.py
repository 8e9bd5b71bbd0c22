"""Tables in files: read block by block, and prepared for a model in a way that is remembered."""

from polytrain.tables.cells import DEFAULT_MISSING
from polytrain.tables.errors import TableError
from polytrain.tables.learning import TableOptions, TrainingRows, read_training_rows
from polytrain.tables.model import PreparedBlock, TableModel, load_table_model
from polytrain.tables.preparation import CategoryColumn, NumberColumn, Preparation, Target
from polytrain.tables.reading import Block, Table, open_table
from polytrain.tables.section import TableSection

__all__ = [
    "DEFAULT_MISSING",
    "Block",
    "CategoryColumn",
    "NumberColumn",
    "Preparation",
    "PreparedBlock",
    "Table",
    "TableError",
    "TableModel",
    "TableOptions",
    "TableSection",
    "Target",
    "TrainingRows",
    "load_table_model",
    "open_table",
    "read_training_rows",
]
