"""What the explanations need of a fitted estimator, read and checked once."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from polytrain.columns import CategoryColumn, Columns
from polytrain.maps import MapList
from polytrain.models import fitted_model
from polytrain.tensor import TensorTrain
from polytrain.tensor.notation import default_names

__all__ = ["ModelView", "read_model"]


@dataclass(frozen=True)
class ModelView:
    """The polynomials of a fitted estimator and the names of what is in them.

    ``shift`` is what the estimator adds to each train: zeros for classifiers that are not calibrated. ``columns`` says
    how columns of a table became the features, where these are not the columns themselves.
    """

    model: Any
    trains: tuple[TensorTrain, ...]
    maps: MapList
    shift: NDArray
    feature_names: tuple[str, ...]
    train_names: tuple[str, ...]
    columns: Columns | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    def feature_index(self, feature: int | str) -> int:
        """Index of a feature given by its name or by its index."""
        if isinstance(feature, str):
            if feature not in self.feature_names:
                raise ValueError(f"there is no feature {feature!r}; the features are {_listed(self.feature_names)}.")
            return self.feature_names.index(feature)
        return _index(feature, "feature", self.n_features)

    def train_index(self, train: int) -> int:
        """Check the index of a train."""
        return _index(train, "train", len(self.trains))

    def category(self, feature: int) -> CategoryColumn | None:
        """The column behind a feature that holds the numbers of its levels; None for all other features."""
        if self.columns is None:
            return None
        column = self.columns.columns[self.columns.sources[feature]]
        return column if isinstance(column, CategoryColumn) else None

    def rows(self, X: ArrayLike) -> NDArray:
        """Check rows as the estimator does and return their features (N, d), in float64."""
        return self.model._checked(X).astype(np.float64, copy=False)

    def coordinates(self, X: ArrayLike) -> NDArray:
        """Check rows and place them: coordinates (d, N)."""
        return self.maps.place(self.rows(X))


def read_model(model: BaseEstimator, feature_names: Sequence[str] | None = None) -> ModelView:
    """Read a fitted estimator; ``feature_names`` replaces the names it has learned."""
    if isinstance(model, Pipeline):
        raise TypeError(
            "model is a Pipeline; pass its last step, such as model[-1]. The features of the explanation are then what "
            "the steps before hand over."
        )
    fitted = fitted_model(model, "an explanation")
    learned = getattr(model, "feature_names_in_", None) if fitted.columns is None else fitted.columns.feature_names
    names = _feature_names(fitted.n_features, learned, feature_names)
    return ModelView(model, fitted.trains, fitted.maps, fitted.shift, names, fitted.train_names, fitted.columns)


def _feature_names(n_features: int, learned: Any, given: Sequence[str] | None) -> tuple[str, ...]:
    """Names that are given, or those of the training data, or x1, x2, ..."""
    if given is None:
        return default_names(n_features) if learned is None else tuple(map(str, learned))
    names = tuple(given)
    if isinstance(given, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names must be strings, one per feature, got {given!r}.")
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} names but the model has {n_features} features.")
    if len(set(names)) < len(names):
        raise ValueError(f"feature_names must be different, got {_listed(names)}.")
    return names


def _index(value: object, name: str, count: int) -> int:
    """Return an index between 0 and ``count - 1``."""
    try:
        index = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        index = -1
    if isinstance(value, bool) or not 0 <= index < count:
        raise ValueError(f"{name} must be an integer between 0 and {count - 1}, got {value!r}.")
    return index


def _listed(names: Sequence[str]) -> str:
    """Names as text, the middle of a long list left out."""
    shown = list(names) if len(names) <= 12 else [*names[:8], "...", names[-1]]
    return ", ".join(shown)
