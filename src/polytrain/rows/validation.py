"""Rows that come beside or after the first ones: those that say when to stop, and later blocks of a stream."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_X_y
from sklearn.utils.multiclass import check_classification_targets

from polytrain.checks import COMPUTE_DTYPES, check_weights
from polytrain.columns import Columns
from polytrain.learning.losses import get_loss
from polytrain.rows.rows import ArrayRows, Rows
from polytrain.rows.summary import RawRows
from polytrain.texts import short_list

__all__ = ["Known", "given_validation", "hold_out"]

# Rows are cut into so many parts, by what they hold.
_N_PARTS = 1000


def hold_out(rows: Rows, fraction: float) -> tuple[Rows, Rows]:
    """Return the rows to learn from, and about this part of them to hold out; equal rows stay together.

    Where a side would be empty, the nearest part is taken that leaves both sides rows.
    """
    low, stop, high = 0, min(max(1, round(fraction * _N_PARTS)), _N_PARTS - 1), _N_PARTS
    while low < stop < high:
        learned, held_out = (rows.part(0, stop, _N_PARTS, inside=inside) for inside in (False, True))
        if not (held_out.label_codes() >= 0).any():
            low = stop
        elif not (learned.label_codes() >= 0).any():
            high = stop
        else:
            return learned, held_out
        stop = (low + high) // 2
    raise ValueError(
        "early_stopping=True needs rows to learn from and other rows to validate with, which must differ, got "
        f"n_samples={rows.summary.n_rows}. Give more rows, or set early_stopping=False."
    )


def given_validation(rows: Rows, X: Any, y: Any, sample_weight: Any, loss: str | None) -> Rows:
    """Open rows that were given to validate with; ``loss`` is that of a regression."""
    if y is None:
        raise ValueError("X_val needs its targets, y_val.")
    summary = rows.summary
    n_outputs = None if summary.target is None else len(summary.target.low)
    known = Known(rows.columns_of_any_type, summary.n_features, summary.labels, n_outputs)
    return ArrayRows(known.check(X, y, sample_weight, loss, ("X_val", "y_val")), rows.classify, summary=summary)


class Known(NamedTuple):
    """What later rows must have in common with the first ones.

    Attributes
    ----------
    columns : Columns or None
    n_features : int
    labels : ndarray
        Of a classification.
    n_outputs : int or None
        Of a regression.
    """

    columns: Columns | None
    n_features: int
    labels: NDArray
    n_outputs: int | None

    def check(self, X: Any, y: Any, sample_weight: Any, loss: str | None, names: tuple[str, str]) -> RawRows:
        """Check rows in memory, which errors call by these names."""
        checks: dict[str, Any] = {} if loss is None else {"y_numeric": True, "multi_output": True}
        X = X if self.columns is None else self.columns.encode(X)
        X, y = check_X_y(X, y, dtype=COMPUTE_DTYPES, ensure_all_finite="allow-nan", **checks)
        if X.shape[1] != self.n_features:
            raise ValueError(f"{names[0]} has {X.shape[1]} features, but the first rows had {self.n_features}.")
        if loss is None:
            check_classification_targets(y)
            known = set(self.labels.tolist())
            strange = [label for label in np.unique(y).tolist() if label not in known]
            if strange:
                raise ValueError(
                    f"{names[1]} has labels that are not known: {short_list(strange)}; the classes are "
                    f"{short_list(self.labels)}."
                )
        else:
            y = check_array(y, ensure_2d=False, dtype=np.float64, input_name=names[1])
            if (1 if y.ndim == 1 else y.shape[1]) != self.n_outputs:
                raise ValueError(f"{names[1]} has shape {y.shape}, but there should be {self.n_outputs} outputs.")
            get_loss(loss).check_target(y)
        return RawRows(X, y, check_weights(sample_weight, len(X)))
