"""Configurations of classifiers for the exports, and models that have missing values to deal with."""

import itertools
from dataclasses import replace

import numpy as np

from polytrain.maps import ColumnSummary, InterpolatedMap, MapList, MapSettings, fit_map
from power_models import power_classifier, power_regressor

_LOSSES = ("logistic", "squared")
_DECISIONS, _BASES = ("one-vs-rest", "one-vs-one", "binary-code"), ("power", "power-unscaled", "chebyshev", "legendre")

#: (loss, decision, basis, number of classes). The basis matters before the decision does and two classes have
#: no decision, so each is varied with the others at their default.
CONFIGURATIONS = [
    *itertools.product(_LOSSES, _DECISIONS, _BASES[:2], (5,)),
    *itertools.product(_LOSSES, ("one-vs-rest",), _BASES[2:], (5,)),
    *itertools.product(_LOSSES, ("one-vs-one",), _BASES[1::2], (2,)),
    *itertools.product(_LOSSES[:1], ("one-vs-rest",), ("smooth", "smooth-rank"), (5,)),
    *itertools.product(("multinomial", "auto", "squared_hinge"), ("one-vs-rest",), ("power",), (2, 5)),
]

#: Bases of the columns of `model_with_gaps`, by name.
GAPS = {
    "tables": InterpolatedMap.bases,
    "categories": ("category",) * 4,
    "mixed": ("spline", "category", "smooth", "category", "gauss-rank", "spline-distinct", "smooth-rank"),
}


def fit_configuration(table, loss, decision, basis, n_classes, **settings):
    """Return a fitted classifier of a configuration, and rows to compare its exports on."""
    X, rows, labels, _ = table
    if basis == "power-unscaled":
        X, rows = X / 4, rows / 12
    model = power_classifier(loss=loss, decision=decision, basis=basis, degree=3, **settings)
    return model.fit(X, labels if n_classes == 5 else labels > 2), rows


def model_with_gaps(bases):
    """Return a regressor with random coefficients on maps of columns with gaps, and rows with gaps everywhere.

    One column has no gaps in training, one has no values, and one has a single value.
    """
    rng = np.random.default_rng(len(bases))
    X = rng.integers(-8, 9, (200, len(bases))) / 4  # numbers that float32 has
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 0] = np.nan_to_num(X[:, 0], nan=0.5)
    X[:, -1] = np.nan
    X[:, -2] = np.where(np.arange(200) % 3, 1.5, np.nan)
    maps = MapList([fit_map(MapSettings(basis), _summary(x)) for basis, x in zip(bases, X.T, strict=True)])
    ranks = [1, *[3] * (len(bases) - 1), 1]
    cores = [rng.normal(size=(a, n, b)) / 2 for a, n, b in zip(ranks, maps.dims, ranks[1:], strict=False)]
    model = power_regressor(rank=1, max_sweeps=0).fit(np.zeros((2, len(bases))), np.arange(2.0))
    model.model_ = replace(model.model_, maps=maps).with_trains([cores])
    rows = np.vstack([X, 10 * rng.normal(size=(50, len(bases))), np.full((1, len(bases)), np.nan)])
    rows[rng.random(rows.shape) < 0.2] = np.nan
    # Numbers that float32 rounds to zero, which are not the category 0.
    tiny = np.tile(np.array([[0.0], [-0.0], [5e-324], [1e-300], [-1e-300], [1e-46]]), len(bases))
    return model, np.vstack([rows, tiny])


def _summary(column):
    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    ends = (values[0], values[-1]) if len(values) else (np.nan, np.nan)
    return ColumnSummary(*ends, values, counts.astype(float), float(np.isnan(column).sum()))
