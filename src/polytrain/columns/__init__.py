"""Columns of any type become one matrix of numbers.

`Columns` is fitted to the training rows, frames of pandas or polars or an array, and turns these and other rows into
float64: numbers stay, categories and text become the indices of their levels, dates become a few numbers each.

A new kind of column is one more subclass of `Column`; a new library of frames is one more function in ``table.py``.
"""

from __future__ import annotations

from polytrain.columns.column import CategoryColumn, Column, DateColumn, NumberColumn
from polytrain.columns.column_list import Columns, needs_encoding
from polytrain.columns.table import is_frame

__all__ = ["CategoryColumn", "Column", "Columns", "DateColumn", "NumberColumn", "is_frame", "needs_encoding"]
