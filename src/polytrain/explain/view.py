"""A view of a fitted estimator, or a pipeline that ends in one, for explanations, plots and reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polytrain.columns import CategoryColumn, Column, Columns, NumberColumn
from polytrain.columns.scalars import text_of
from polytrain.models import FittedModel, fitted_model
from polytrain.rows.oddities import copies
from polytrain.tensor.terms import default_names
from polytrain.texts import listed, shown


@dataclass(frozen=True)
class ModelView:
    """A fitted model with the names of its features and columns.

    ``columns`` encodes columns as features; ``column_names`` may differ from its names. ``groups`` holds the
    features of every column, which are adjacent in the train. ``rows`` checks raw rows and returns their features
    (N, d), float64. ``taken`` holds the index of every column among those of the pipeline, or is None.
    """

    estimator: Any
    fitted: FittedModel
    columns: Columns
    feature_names: tuple[str, ...]
    column_names: tuple[str, ...]
    groups: tuple[range, ...]
    rows: Callable[[Any], NDArray]
    taken: tuple[int, ...] | None = None

    def column(self, column: int) -> Column:
        """Return the column of a frame, or the plain number, behind one or more features."""
        return self.columns.columns[column]

    def levels(self, column: int) -> tuple[str, ...] | None:
        """Names of the levels of a category, in the order of their codes; None for other columns."""
        kind = self.column(column)
        return tuple(map(text_of, kind.levels)) if isinstance(kind, CategoryColumn) else None

    def index(self, kind: str, value: int | str) -> int:
        """Index of a "column", "feature" or "output" given by index or name, or of a "train" given by index."""
        names = {"column": self.column_names, "feature": self.feature_names}.get(kind, self.fitted.train_names)
        if isinstance(value, str) and kind != "train":
            if value not in names:
                raise ValueError(f"there is no {kind} {value!r}; the {kind}s are {listed(names)}.")
            return names.index(value)
        if not isinstance(value, Integral) or isinstance(value, bool) or not 0 <= value < len(names):
            raise ValueError(f"{kind} must be an integer between 0 and {len(names) - 1}, got {value!r}.")
        return int(value)

    def on_features(self) -> ModelView:
        """Return the same view for rows that are already features (N, d)."""
        return replace(self, rows=partial(np.asarray, dtype=np.float64))

    def column_functions(self, column: int, features: Sequence[NDArray]) -> list[NDArray]:
        """Values (n_k, Q) of the functions of a column's features at their numbers (Q,)."""
        maps = [self.fitted.maps[k] for k in self.groups[column]]
        return [m.values(m.place(np.asarray(x, dtype=np.float64))) for m, x in zip(maps, features, strict=True)]


def read_model(
    model: BaseEstimator | ModelView, feature_names: Sequence[str] | None = None, *, any_steps: bool = False
) -> ModelView:
    """Read a fitted estimator, or a pipeline that ends in one; ``feature_names`` replaces the names it has learned.

    Steps that make new columns are refused, unless ``any_steps``: then the columns are those of the last step.
    """
    if isinstance(model, ModelView):
        return model
    estimator, steps, taken, column_names = model, None, None, None
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        estimator = model[-1]
        if any(step not in (None, "passthrough") for _, step in model.steps[:-1]):
            steps = model[:-1]
            taken, column_names = _columns_after(steps, any_steps)
    fitted = fitted_model(estimator, "an explanation")
    own = fitted.feature_names or default_names(fitted.n_features)
    columns = fitted.columns or Columns(tuple(map(NumberColumn, own)))
    shown = column_names or [column.name for column in columns.columns]
    ends = np.cumsum(np.bincount(columns.sources)).tolist()
    groups = tuple(range(start, end) for start, end in pairwise([0, *ends]))
    features = zip(columns.feature_names, columns.sources.tolist(), strict=True)
    # A single feature has the name of its column.
    names = [shown[column] if len(groups[column]) == 1 else name for name, column in features]
    if feature_names is not None:
        names, n = [name for name in feature_names if isinstance(name, str)], fitted.n_features
        if isinstance(feature_names, str) or len(feature_names) != n or len(set(names)) < n:
            raise ValueError(
                f"feature_names must be {n} different strings, one per feature, got {feature_names!r:.200}."
            )
    titles = tuple(names[group[0]] if len(group) == 1 else shown[k] for k, group in enumerate(groups))
    rows = partial(_features, fitted, estimator, steps)
    return ModelView(estimator, fitted, columns, tuple(names), titles, groups, rows, taken)


def column_groups(view: ModelView, groups: Any, X: Any) -> list[list[int]]:
    """Return all columns in groups: given groups or, for "auto", near-copies in X; all others alone."""
    if isinstance(groups, str):
        if groups != "auto" or X is None:
            raise ValueError(f"groups must be None, 'auto' with rows X, or a list of groups, got {groups!r:.60}.")
        sources = view.columns.sources
        found = copies(view.rows(X), view.columns.is_category, sources)
        chosen = [np.unique(sources[group]).tolist() for group, _ in found]
    else:
        chosen = [[view.index("column", column) for column in group] for group in groups or ()]
    every = [column for group in chosen for column in group]
    if len(set(every)) < len(every):
        raise ValueError(f"groups must not share columns, got {shown(groups)}. Name every column once.")
    return sorted([*filter(None, chosen), *([k] for k in range(len(view.column_names)) if k not in every)])


def group_names(names: Sequence[str], groups: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Names of groups of columns."""
    return tuple(" & ".join(names[k] for k in group) for group in groups)


def _features(fitted: FittedModel, estimator: Any, steps: Pipeline | None, X: Any) -> NDArray:
    """Features (N, d) of raw rows, in float64; ``steps`` are the first ones of a pipeline."""
    return fitted.encode(X if steps is None else steps.transform(X), estimator).astype(np.float64, copy=False)


def _columns_after(steps: Pipeline, any_steps: bool) -> tuple[tuple[int, ...] | None, list[str] | None]:
    """Return the indices and names of the columns that the steps of a pipeline keep; see `read_model`.

    Columns are followed by the names that the steps give them: a scaler or an imputer keeps the names, a selector some
    of them, and a column transformer reorders them and adds prefixes.
    """
    named = [(name, step) for name, step in steps.steps if step not in (None, "passthrough")]
    for _, step in named:
        check_is_fitted(step)
    own, count = getattr(named[0][1], "feature_names_in_", None), named[0][1].n_features_in_
    # scikit-learn names the columns of arrays x0, x1, ...; this package shows x1, x2, ...
    names = [f"x{k}" for k in range(count)] if own is None else list(map(str, own))
    shown, indices = default_names(count) if own is None else names, {name: k for k, name in enumerate(names)}
    try:
        for name, step in named:
            after = _names_after(name, step, list(indices))
            indices = {column: indices[before] for column, before in after.items()}
    except ValueError:
        if not any_steps:
            raise
        made: list[str] = []
        with suppress(AttributeError, ValueError):
            made = list(map(str, steps.get_feature_names_out()))
        return None, made if made and len(set(made)) == len(made) else None
    return tuple(indices.values()), [shown[k] for k in indices.values()]


def _names_after(name: str, step: Any, names: Sequence[str]) -> dict[str, str]:
    """Map the names of a step's columns to those before it, without the prefix that the step may have added."""
    problem, after = "does not name the columns that it makes", {}
    with suppress(AttributeError, ValueError):
        made = list(map(str, step.get_feature_names_out(names)))
        after = {column: column if column in names else column.partition("__")[2] for column in made}
        new = [column for column, before in after.items() if before not in names]
        problem = f"makes new columns, such as {new[0]!r}" if new else ""
        if not new and len(set(after.values())) < len(made):
            problem = "makes several columns of one"
    if problem:
        raise ValueError(
            f"the step {name!r} ({type(step).__name__}) of the pipeline {problem}, so its input columns cannot be "
            "explained. Explain the last step, in its own columns: pass model[-1] and model[:-1].transform(X)."
        )
    return after
