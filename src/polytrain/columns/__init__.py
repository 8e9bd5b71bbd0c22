"""Encode columns of frames or arrays as one matrix of numbers: categories as indices of levels, dates as a few numbers.

A new kind of column is one more subclass of `Column`; a new library of frames is one more function in ``table.py``.
"""

from __future__ import annotations

from polytrain.columns.column import CategoryColumn, Column, DateColumn, NumberColumn
from polytrain.columns.column_list import Columns, needs_encoding
from polytrain.columns.frames import is_frame

__all__ = ["CategoryColumn", "Column", "Columns", "DateColumn", "NumberColumn", "is_frame", "needs_encoding"]
