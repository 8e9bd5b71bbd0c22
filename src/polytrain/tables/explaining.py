"""Explanations of a table's model in terms of the table's columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polytrain.explain import sobol_indices
from polytrain.tables.model import TableModel

__all__ = ["ColumnImportances", "column_importances"]


@dataclass(frozen=True)
class ColumnImportances:
    """How much columns and pairs of columns matter.

    Attributes
    ----------
    columns : list of (str, float)
        Columns and their importances, which sum to 1, the most important first: the sum of the total Sobol indices of
        the column's features, averaged over the trains.
    pairs : list of (str, str, float)
        Pairs of columns and the share of the variance that their interactions of two features make, largest first.
    higher : float
        Share of interactions of three and more features.
    """

    columns: list[tuple[str, float]]
    pairs: list[tuple[str, str, float]]
    higher: float


def column_importances(model: TableModel, X: NDArray | None = None) -> ColumnImportances:
    """Sum Sobol indices over the features of each column.

    Parameters
    ----------
    model : TableModel
        The model.
    X : ndarray of shape (N, d), optional
        Prepared rows that give the distribution of each feature; without them, features are uniform on their range.

    Returns
    -------
    ColumnImportances
    """
    indices = sobol_indices(model.estimator, X)
    groups = model.preparation.groups
    total, second = indices.total.mean(axis=0), indices.second.mean(axis=0)
    whole = float(total.sum()) or 1.0
    columns = [(name, float(total[place].sum()) / whole) for name, place in groups]
    pairs = [
        (one, two, float(second[first, other].sum()))
        for k, (one, first) in enumerate(groups)
        for two, other in groups[k + 1 :]
    ]
    higher = float(np.mean(indices.higher))
    return ColumnImportances(
        sorted(columns, key=lambda pair: -pair[1]), sorted(pairs, key=lambda pair: -pair[2]), higher
    )
