"""Rows of a table explained in terms of the table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.explain import LocalExplanations
from polytrain.explain.local import MISSING, explain_rows
from polytrain.explain.sites import make_measure
from polytrain.tables.cells import FileCells
from polytrain.tables.model import TableModel
from polytrain.tables.options import TableError, option
from polytrain.tables.table_file import TableFile

__all__ = ["ExplainedRows", "RowSample", "explain_table_rows"]


class RowSample:
    """Keeps an even sample of a stream of rows: every row at first, every second one when there are many, ..."""

    def __init__(self, max_rows: int = 20_000) -> None:
        self._parts: list[NDArray] = []
        self._max_rows, self._n, self.step, self._offset = max_rows, 0, 1, 0

    def __call__(self, X: NDArray) -> None:
        """Take note of a block."""
        part = X[self._offset :: self.step]
        self._offset = (self._offset - len(X)) % self.step
        self._parts.append(part)
        self._n += len(part)
        while self._n > self._max_rows:
            rows = np.concatenate(self._parts)
            self._offset = (self._offset + self.step * (len(rows) % 2)) % (2 * self.step)
            self._parts, self.step = [rows[::2]], 2 * self.step
            self._n = len(self._parts[0])

    def __len__(self) -> int:
        return self._n

    @property
    def rows(self) -> NDArray:
        """The sample."""
        return np.concatenate(self._parts)


@dataclass(frozen=True)
class ExplainedRows:
    """Explanations of rows of a table, with their numbers as ``row_names``, and their places, such as "line 19"."""

    explanations: LocalExplanations
    places: tuple[str, ...]


def explain_table_rows(
    model: TableModel, table: TableFile, numbers: Sequence[int], *, background: str = "training", **options: Any
) -> ExplainedRows:
    """Explain some rows of a table.

    Parameters
    ----------
    model : TableModel
        The model.
    table : TableFile
        What ``model.open`` returned.
    numbers : sequence of int
        Which of the rows of data, 0 for the first.
    background : {"training", "data"}
        How columns are distributed where a row's own value is left out: as in training, those of polynomials evenly
        over their range, or as in the table.
    **options
        See `TableModel.blocks`.

    Returns
    -------
    ExplainedRows

    Raises
    ------
    TableError
        If the table has fewer rows, or the model does not know how its columns were distributed in training.
    """
    if background == "training" and any(feature_map.measure() is None for feature_map in model.fitted.maps):
        raise TableError(
            "this model does not know how its columns were distributed in training. Say "
            f"{option('background', 'data')}, with a table that is like the training's."
        )
    found: dict[int, tuple[NDArray, tuple[str, ...], str]] = {}
    sample, start, indexes = RowSample(), 0, model.layout.match(table)
    gone = {"", *model.layout.missing}
    for block in model.blocks(table, **options):
        for number in numbers:
            if start <= number < start + len(block.X):
                row = number - start
                texts = [FileCells(block.frame.iloc[:, index], table)[row] for index in indexes]
                shown = tuple(MISSING if text in gone else text for text in texts)
                found[number] = block.X[row], shown, table.place(block.frame.index[row])
        start += len(block.X)
        if background == "data":
            sample(block.X)
        elif len(found) == len(set(numbers)):
            break
    for number in numbers:
        if number not in found:
            known = f"rows 0 to {start - 1}" if start else "no rows"
            raise TableError(f"{table.label} has {known} and no row {number}. Rows of data are counted from 0.")
    view = model.view
    rows, cells, places = zip(*(found[number] for number in numbers), strict=True)
    explanations = explain_rows(
        view,
        view.rows(np.stack(rows)),
        make_measure(view, sample.rows if background == "data" else None),
        scores=range(len(view.trains)),
        cells=cells,
        row_names=tuple(numbers),
    )
    return ExplainedRows(explanations, places)
