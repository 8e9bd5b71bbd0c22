"""A fitted estimator, or a pipeline that ends in one, as explanations, plots and reports read it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polytrain.columns import CategoryColumn, Column, Columns
from polytrain.columns.scalars import text_of
from polytrain.maps import MapList
from polytrain.models import FittedModel, fitted_model
from polytrain.tensor import TensorTrain
from polytrain.tensor.notation import default_names
from polytrain.texts import listed

__all__ = ["ModelView", "read_model"]


@dataclass(frozen=True)
class ModelView:
    """A fitted model with the names of its features and columns.

    ``groups`` holds the features of every column, which are adjacent in the train. Rows are given as ``prepare`` (the
    first steps of a pipeline) takes them, or, if ``is_encoded``, as features. ``taken`` holds, for every column of the
    model, its index among the columns of the pipeline; None where there is no pipeline.
    """

    estimator: Any
    fitted: FittedModel
    feature_names: tuple[str, ...]
    column_names: tuple[str, ...]
    groups: tuple[range, ...]
    prepare: Callable[[Any], Any] | None = None
    taken: tuple[int, ...] | None = None
    is_encoded: bool = False

    @property
    def maps(self) -> MapList:
        """One map per feature."""
        return self.fitted.maps

    @property
    def trains(self) -> tuple[TensorTrain, ...]:
        """The trains, in units of the target."""
        return self.fitted.trains

    @property
    def train_names(self) -> tuple[str, ...]:
        """What a high score of each train stands for."""
        return self.fitted.train_names

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def n_columns(self) -> int:
        """Number of columns of the table."""
        return len(self.groups)

    def column(self, column: int) -> Column | None:
        """How a column of a frame became features; None for a plain number."""
        return None if self.fitted.columns is None else self.fitted.columns.columns[column]

    def levels(self, column: int) -> tuple[str, ...] | None:
        """Names of the levels of a category, in the order of their codes; None for other columns."""
        kind = self.column(column)
        return tuple(map(text_of, kind.levels)) if isinstance(kind, CategoryColumn) else None

    def category(self, feature: int) -> CategoryColumn | None:
        """The column behind a feature that holds codes of levels; None for other features."""
        if self.fitted.columns is None:
            return None
        column = self.column(self.fitted.columns.sources[feature])
        return column if isinstance(column, CategoryColumn) else None

    def column_index(self, column: int | str) -> int:
        """Index of a column given by name or index."""
        return _index(column, "column", self.column_names)

    def feature_index(self, feature: int | str) -> int:
        """Index of a feature given by name or index."""
        return _index(feature, "feature", self.feature_names)

    def output_index(self, output: int | str) -> int:
        """Index of a train given by name or index."""
        return _index(output, "output", self.train_names)

    def train_index(self, train: int) -> int:
        """Check the index of a train."""
        return _index(train, "train", self.trains)

    def rows(self, X: ArrayLike) -> NDArray:
        """Check rows and return their features (N, d), float64."""
        if self.is_encoded:
            return np.asarray(X, dtype=np.float64)
        rows = self.fitted.encode(X if self.prepare is None else self.prepare(X), self.estimator)
        return rows.astype(np.float64, copy=False)

    def on_features(self) -> ModelView:
        """Return the same view for rows that are already features (N, d)."""
        return replace(self, prepare=None, taken=None, is_encoded=True)

    def column_functions(self, column: int, features: Sequence[NDArray]) -> list[NDArray]:
        """Values (n_k, Q) of the functions of a column's features at their numbers (Q,)."""
        maps = [self.maps[k] for k in self.groups[column]]
        return [m.values(m.place(np.asarray(x, dtype=np.float64))) for m, x in zip(maps, features, strict=True)]

    def functions(self, rows: NDArray) -> list[NDArray]:
        """Values (n_k, N) of the functions of every feature at features (N, d)."""
        return [m.values(x) for m, x in zip(self.maps, self.maps.place(rows), strict=True)]


def read_model(model: BaseEstimator | ModelView, feature_names: Sequence[str] | None = None) -> ModelView:
    """Read a fitted estimator, or a pipeline that ends in one; ``feature_names`` replaces the names it has learned."""
    if isinstance(model, ModelView):
        return model
    estimator, prepare, taken, column_names = _last_step(model)
    fitted = fitted_model(estimator, "an explanation")
    columns = fitted.columns
    if columns is None:
        if column_names is None:
            column_names = getattr(estimator, "feature_names_in_", None)
        names = _feature_names(fitted.n_features, column_names, feature_names)
        groups = tuple(range(k, k + 1) for k in range(fitted.n_features))
        return ModelView(estimator, fitted, names, names, groups, prepare, taken)
    groups = _groups(columns)
    whole = column_names or tuple(column.name for column in columns.columns)
    learned = list(columns.feature_names)
    if column_names is not None:
        for name, group in zip(column_names, groups, strict=True):
            if len(group) == 1:
                learned[group[0]] = name
    names = _feature_names(fitted.n_features, learned, feature_names)
    whole = tuple(names[group[0]] if len(group) == 1 else whole[k] for k, group in enumerate(groups))
    return ModelView(estimator, fitted, names, whole, groups, prepare, taken)


def _groups(columns: Columns) -> tuple[range, ...]:
    """Features of every column."""
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


def _index(value: Any, kind: str, names: Sequence[Any]) -> int:
    """Index of one of the names, given by itself or by the name."""
    if isinstance(value, str) and kind != "train":
        if value not in names:
            raise ValueError(f"there is no {kind} {value!r}; the {kind}s are {listed(names)}.")
        return names.index(value)
    try:
        index = operator.index(value)
    except TypeError:
        index = -1
    if isinstance(value, bool) or not 0 <= index < len(names):
        raise ValueError(f"{kind} must be an integer between 0 and {len(names) - 1}, got {value!r}.")
    return index


def _last_step(model: Any) -> tuple[Any, Callable[[Any], Any] | None, tuple[int, ...] | None, Sequence[str] | None]:
    """Return the last step of a pipeline, what prepares its rows, and the indices and names of its columns.

    The names that steps give to their columns decide: a scaler or an imputer keeps those that went in, a selector some
    of them, and a column transformer reorders them and adds prefixes. Other steps are refused.
    """
    if not isinstance(model, Pipeline):
        return model, None, None, None
    check_is_fitted(model)
    steps = [(name, step) for name, step in model.steps[:-1] if step is not None and step != "passthrough"]
    if not steps:
        return model[-1], None, None, None
    for _, step in steps:
        check_is_fitted(step)
    own, count = getattr(steps[0][1], "feature_names_in_", None), steps[0][1].n_features_in_
    # Columns of arrays need different names to be followed through the steps.
    given = [f"x{k}" for k in range(count)] if own is None else list(map(str, own))
    names, origins = list(given), list(given)
    for name, step in steps:
        after = _names_after(name, step, names)
        origins = [origins[names.index(before)] for before in after.values()]
        names = list(after)
    columns = tuple(map(given.index, origins))
    shown = default_names(count) if own is None else given
    return model[-1], model[:-1].transform, columns, tuple(shown[k] for k in columns)


def _names_after(name: str, step: Any, names: Sequence[str]) -> dict[str, str]:
    """Map the names of a step's columns to those before it, without the prefix that the step may have added."""
    try:
        after = list(map(str, step.get_feature_names_out(names)))
    except (AttributeError, ValueError) as error:
        raise ValueError(_refusal(name, step, "does not say which columns it makes")) from error
    known = set(names)
    found = [column if column in known else column.partition("__")[2] for column in after]
    new = [column for column, before in zip(after, found, strict=True) if before not in known]
    if new:
        raise ValueError(_refusal(name, step, f"makes new columns, such as {new[0]!r}"))
    if len(set(found)) < len(found):
        raise ValueError(_refusal(name, step, "makes several columns of one"))
    return dict(zip(after, found, strict=True))


def _refusal(name: str, step: Any, what: str) -> str:
    return (
        f"the step {name!r} ({type(step).__name__}) of the pipeline {what}, so that nothing can be said about the "
        "columns that went in. Explain the last step, in its own columns: pass model[-1] and model[:-1].transform(X)."
    )
