"""Rows that are not learned from, and say when to stop."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_X_y
from sklearn.utils.multiclass import check_classification_targets

from polytrain.checks import COMPUTE_DTYPES, check_weights
from polytrain.learning.losses import get_loss
from polytrain.rows.rows import ArrayRows, Rows
from polytrain.rows.summary import RawRows

__all__ = ["given_validation", "hold_out"]

# Rows are cut into so many parts, by what they hold.
_N_PARTS = 1000


def hold_out(rows: Rows, fraction: float) -> tuple[Rows, Rows]:
    """Return the rows to learn from, and about this part of them to hold out; equal rows stay together."""
    stop = min(max(1, round(fraction * _N_PARTS)), _N_PARTS - 1)
    learned, held_out = (rows.part(0, stop, _N_PARTS, inside=inside) for inside in (False, True))
    if not (learned.label_codes() >= 0).any() or not (held_out.label_codes() >= 0).any():
        raise ValueError(
            f"validation_fraction={fraction} leaves no rows to learn from or none to validate with, of "
            f"{rows.summary.n_rows} rows. Give more rows, another fraction, or early_stopping=False."
        )
    return learned, held_out


def given_validation(rows: Rows, X: Any, y: Any, sample_weight: Any, loss: str | None) -> Rows:
    """Open rows that were given to validate with; ``loss`` is that of a regression."""
    if y is None:
        raise ValueError("X_val needs its targets, y_val.")
    columns = rows.columns_of_any_type
    checks: dict[str, Any] = {} if loss is None else {"y_numeric": True, "multi_output": True}
    X = X if columns is None else columns.encode(X)
    X, y = check_X_y(X, y, dtype=COMPUTE_DTYPES, ensure_all_finite="allow-nan", **checks)
    if X.shape[1] != rows.summary.n_features:
        raise ValueError(f"X_val has {X.shape[1]} features, but X has {rows.summary.n_features}.")
    if loss is None:
        check_classification_targets(y)
        known = rows.summary.labels
        strange = [label for label in np.unique(y).tolist() if label not in known]
        if strange:
            raise ValueError(f"y_val has labels that y does not have: {strange}; y has {known.tolist()}.")
    else:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y_val")
        get_loss(loss).check_target(y)
    held_out = ArrayRows(RawRows(X, y, check_weights(sample_weight, len(X))), rows.classify)
    held_out.__dict__["summary"] = rows.summary
    return held_out
