"""What the explanations need of a fitted estimator, read and checked once."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from polytrain.columns import CategoryColumn, Column, Columns
from polytrain.columns.scalars import text_of
from polytrain.explain.pipelines import last_step
from polytrain.maps import MapList
from polytrain.models import fitted_model
from polytrain.tensor import TensorTrain
from polytrain.tensor.notation import default_names
from polytrain.texts import listed

__all__ = ["ModelView", "read_model"]


@dataclass(frozen=True)
class ModelView:
    """The polynomials of a fitted estimator and the names of what is in them.

    ``shift`` is what the estimator adds to each train: zeros for classifiers that are not calibrated. ``columns`` says
    how columns of a table became the features, where these are not the columns themselves. ``groups`` holds the
    features of every column, which follow each other in the train, and ``level_names`` those of categories, where
    ``columns`` does not know them. ``prepare`` is what a pipeline does with rows before the estimator, and ``taken``
    the columns of the pipeline that then are those of the view.
    """

    model: Any
    trains: tuple[TensorTrain, ...]
    maps: MapList
    shift: NDArray
    feature_names: tuple[str, ...]
    train_names: tuple[str, ...]
    columns: Columns | None = None
    column_names: tuple[str, ...] = ()
    groups: tuple[range, ...] = ()
    level_names: tuple[tuple[str, ...] | None, ...] | None = None
    prepare: Callable[[Any], Any] | None = None
    taken: tuple[int, ...] | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def n_columns(self) -> int:
        """Number of columns of the table."""
        return len(self.groups)

    def column_index(self, column: int | str) -> int:
        """Index of a column given by its name or by its index."""
        if isinstance(column, str):
            if column not in self.column_names:
                raise ValueError(f"there is no column {column!r}; the columns are {listed(self.column_names)}.")
            return self.column_names.index(column)
        return _index(column, "column", self.n_columns)

    def column(self, column: int) -> Column | None:
        """How a column of a frame became features; None for a plain number."""
        return None if self.columns is None else self.columns.columns[column]

    def levels(self, column: int) -> tuple[str, ...] | None:
        """Names of the levels of a column whose values are the numbers 0, 1, ... of levels; None for all others."""
        if self.level_names is not None:
            return self.level_names[column]
        kind = self.column(column)
        return tuple(map(text_of, kind.levels)) if isinstance(kind, CategoryColumn) else None

    def output_index(self, output: int | str) -> int:
        """Index of a train, given by itself or by what a high value speaks for."""
        if isinstance(output, str):
            if output not in self.train_names:
                raise ValueError(f"there is no output {output!r}; the outputs are {listed(self.train_names)}.")
            return self.train_names.index(output)
        return _index(output, "output", len(self.trains))

    def feature_index(self, feature: int | str) -> int:
        """Index of a feature given by its name or by its index."""
        if isinstance(feature, str):
            if feature not in self.feature_names:
                raise ValueError(f"there is no feature {feature!r}; the features are {listed(self.feature_names)}.")
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
        given = X if self.prepare is None else self.prepare(X)
        return self.model._checked(given).astype(np.float64, copy=False)

    def on_features(self) -> ModelView:
        """Return the same view with rows that are features already, (N, d), as the fitted model takes them."""
        plain = copy.copy(self.model)
        plain.model_ = replace(plain.model_, feature_names=None, columns=None)
        plain.n_features_in_ = plain.model_.n_features
        vars(plain).pop("feature_names_in_", None)
        levels = tuple(self.levels(k) for k in range(self.n_columns))
        return replace(self, model=plain, level_names=levels, prepare=None, taken=None)

    def coordinates(self, X: ArrayLike) -> NDArray:
        """Check rows and place them: coordinates (d, N)."""
        return self.maps.place(self.rows(X))


def read_model(model: BaseEstimator, feature_names: Sequence[str] | None = None) -> ModelView:
    """Read a fitted estimator, or a pipeline that ends in one; ``feature_names`` replaces the names it has learned."""
    step = last_step(model)
    model, named = step.model, step.names
    fitted = fitted_model(model, "an explanation")
    columns = fitted.columns
    if named is None and columns is None:
        named = getattr(model, "feature_names_in_", None)
    groups = _groups(fitted.n_features, columns)
    learned = named if columns is None else columns.feature_names
    if columns is not None and named is not None:
        learned = tuple(
            named[k] if len(group) == 1 else columns.feature_names[feature]
            for k, group in enumerate(groups)
            for feature in group
        )
    names = _feature_names(fitted.n_features, learned, feature_names)
    column_names = tuple(
        names[group[0]] if len(group) == 1 or columns is None else (named[k] if named else columns.columns[k].name)
        for k, group in enumerate(groups)
    )
    prepare = None if step.columns is None else step.prepare  # nothing to do
    parts = fitted.trains, fitted.maps, fitted.shift, names, fitted.train_names, columns
    return ModelView(model, *parts, column_names, groups, prepare=prepare, taken=step.columns)


def _groups(n_features: int, columns: Columns | None) -> tuple[range, ...]:
    """Features of every column, which follow each other."""
    if columns is None:
        return tuple(range(k, k + 1) for k in range(n_features))
    ends = np.cumsum(np.bincount(columns.sources, minlength=len(columns.columns))).tolist()
    return tuple(range(start, end) for start, end in zip([0, *ends], ends, strict=False))


def _feature_names(n_features: int, learned: Any, given: Sequence[str] | None) -> tuple[str, ...]:
    """Names that are given, or those of the training data, or x1, x2, ..."""
    if given is None:
        return default_names(n_features) if learned is None else tuple(map(str, learned))
    names = tuple(given)
    if isinstance(given, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names must be strings, one per feature, got {given!r:.200}.")
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} names but the model has {n_features} features.")
    if len(set(names)) < len(names):
        raise ValueError(f"feature_names must be different, got {listed(names)}.")
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
