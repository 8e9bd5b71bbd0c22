"""Rows as columns of cells: a frame that needs no library of frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.cells import Cells

__all__ = ["CellFrame"]


class CellFrame:
    """Columns of cells with names, which the estimators take like a frame of pandas or polars.

    Tables in files become such frames; see `polytrain.tables`.

    Parameters
    ----------
    columns : sequence of Cells
        The columns, all with as many rows.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> from polytrain.columns.cells import Cells
    >>> from polytrain.columns.frame import CellFrame
    >>> frame = CellFrame([
    ...     Cells.of_array("size", np.array([1.0, 2.0, 3.0, 4.0])),
    ...     Cells.of_objects("colour", ["red", None, "blue", "red"]),
    ... ])
    >>> frame.shape, frame.names
    ((4, 2), ('size', 'colour'))
    >>> TensorTrainRegressor(random_state=0).fit(frame, [1.0, 2.0, 3.0, 4.0]).feature_names_in_
    array(['size', 'colour'], dtype=object)
    """

    def __init__(self, columns: Sequence[Cells]) -> None:
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise ValueError(f"columns of a frame have the same number of rows, got {sorted(lengths)}.")
        self.columns = tuple(columns)
        self.shape = (lengths.pop() if lengths else 0, len(self.columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> CellFrame:
        """Return some of the rows, chosen as those of an array are."""
        places = np.arange(len(self))[rows]
        return CellFrame([column.take(places) for column in self.columns])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """Return the cells as objects; missing ones are NaN or NaT, and text that is missing is None."""
        array = np.empty(self.shape, dtype=object)
        for k, column in enumerate(self.columns):
            array[:, k] = column.objects()
        return array if dtype is None else array.astype(dtype)
