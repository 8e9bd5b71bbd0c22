"""Partial dependence: the mean of a score as a function of one or two columns, in closed form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from polytrain.columns import CategoryColumn, DateColumn
from polytrain.columns.cells import Cells
from polytrain.explain.sensitivity import frame, value_text
from polytrain.explain.sites import ColumnMeasure, column_axis, make_measure, number_grid, site_matrices
from polytrain.explain.view import read_model
from polytrain.tensor.checks import check_positive_integer
from polytrain.texts import printable

# Rows averaged at once: their environments stay in cache.
_BLOCK_ROWS = 1024


@dataclass(frozen=True)
class PartialDependence:
    """Means of the polynomials over all features but one or two.

    Attributes
    ----------
    features : tuple of int
        The features that vary.
    names : tuple of str
        Their names.
    grid : tuple of ndarray
        Values of each of them, in original units; levels of categories as objects, a missing one as None; dates.
    values : ndarray of shape (n_trains, len(grid[0])) or (n_trains, len(grid[0]), len(grid[1]))
        The means, with a regressor's intercept.
    train_names : tuple of n_trains str
        Meaning of a high value of each polynomial.
    """

    features: tuple[int, ...]
    names: tuple[str, ...]
    grid: tuple[NDArray, ...]
    values: NDArray
    train_names: tuple[str, ...]

    def to_frame(self) -> Any:
        """Return a frame of pandas: a row per value, or pair of values, and a column per train."""
        axes = [np.ravel(axis) for axis in np.meshgrid(*self.grid, indexing="ij")]
        table = frame(self.values.reshape(len(self.train_names), -1).T, columns=list(self.train_names))
        for place, (name, axis) in enumerate(zip(self.names, axes, strict=True)):
            table.insert(place, name, axis, allow_duplicates=True)
        return table

    def __str__(self) -> str:
        lines = [f"mean score over {' and '.join(map(printable, self.names))}, {self.values[0].size} values"]
        for name, values in zip(self.train_names, self.values, strict=True):
            ends = []
            for end in (values.argmin(), values.argmax()):
                place = np.unravel_index(end, values.shape)
                texts = [printable(value_text(axis[k])) for axis, k in zip(self.grid, place, strict=True)]
                ends.append(f"{values[place]:.4g} at {', '.join(texts)}")
            lines.append(f"  {printable(name)}: from {ends[0]} to {ends[1]}")
        return "\n".join(lines)


def partial_dependence(
    model: BaseEstimator,
    features: int | str | Sequence[int | str],
    X: ArrayLike | None = None,
    *,
    grid: ArrayLike | Sequence[ArrayLike] | None = None,
    grid_size: int = 50,
    sample_weight: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
) -> PartialDependence:
    """Average the polynomials over all features but one or two.

    The average is itself a polynomial of one or two features, whose few coefficients are found in one pass over the
    rows, however fine the grid is.

    Parameters
    ----------
    model : TensorTrainClassifier or TensorTrainRegressor
        A fitted estimator. For a classifier the scores are averaged, not the probabilities.
    features : int, str, or sequence of one or two of them
        The features that vary, by index or name. A date may be given by its column: then all its parts vary
        together from date to date.
    X : array-like of shape (N, d), optional
        Rows to average over, which is what scikit-learn's ``partial_dependence`` does with ``method="brute"``. Without
        it the other features are independent, each distributed as in training, or uniform on its fitted range where
        its functions are polynomials.
    grid : array-like, or sequence of one array-like per feature, optional
        Values of the features that vary. By default ``grid_size`` values from end to end of the fitted range, or of X
        if the basis is "power-unscaled"; of categories, all levels that the model distinguishes, and None for a missing
        value if training had any. Values outside the fitted range are clipped, as in `predict`.
    grid_size : int, default=50
        Length of the default grid.
    sample_weight, feature_names
        See `sobol_indices`.

    Returns
    -------
    PartialDependence
        Grid and means.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> from polytrain.explain import partial_dependence
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 3))
    >>> model = TensorTrainRegressor(random_state=0).fit(X, X[:, 0] ** 2 + X[:, 1] * X[:, 2])
    >>> partial_dependence(model, 0, grid=[-0.9, 0.0, 0.9]).values.round(2) + 0.0
    array([[0.81, 0.  , 0.81]])
    >>> partial_dependence(model, ["x2", "x3"], X).values.shape
    (1, 50, 50)
    """
    view, size = read_model(model, feature_names), check_positive_integer(grid_size, "grid_size")
    several = isinstance(features, Sequence | np.ndarray) and not isinstance(features, str)
    given: list[Any] = list(features) if several else [features]  # type: ignore[arg-type]
    measure, trains = make_measure(view, X, sample_weight), [train.cores for train in view.fitted.trains]
    dates = {name: k for k, name in enumerate(view.column_names) if isinstance(view.column(k), DateColumn)}
    if len(given) == 1 and isinstance(given[0], str) and given[0] in dates:
        names, chosen = tuple(given), tuple(view.groups[dates[given[0]]])
        axes, trains = _date_axis(measure, dates[given[0]], grid, size)
        means = _mean_coefficients(trains, chosen[:1], measure)
    else:
        chosen = tuple(view.index("feature", feature) for feature in given)
        if len(chosen) not in (1, 2) or len(set(chosen)) < len(chosen):
            raise ValueError(f"features must name one or two different features, got {features!r}.")
        names, axes = tuple(view.feature_names[k] for k in chosen), _check_grid(measure, chosen, grid, size)
        means = _mean_coefficients(trains, chosen, measure)
        for k, axis in zip(chosen, axes, strict=True):
            column, feature_map, numbers = view.column(view.columns.sources[k]), view.fitted.maps[k], axis
            if isinstance(column, CategoryColumn):
                (numbers,) = column.encode(Cells.of_objects(column.name, axis))
            # The axis that is contracted is the second; its values are appended at the end, so the order is kept.
            means = np.tensordot(means, feature_map.values(feature_map.place(numbers)), axes=(1, 0))
    values = means + view.fitted.shift.reshape(-1, *(1,) * len(axes))
    return PartialDependence(chosen, names, axes, values, view.fitted.train_names)


def _date_axis(measure: ColumnMeasure, column: int, grid: Any, grid_size: int) -> tuple[tuple[NDArray, ...], list[Any]]:
    """Dates, and trains with one function per date in the first core of the column, and the identity in the others."""
    view, axis = measure.view, column_axis(measure, column, grid_size)
    group, kind = view.groups[column], view.column(column)
    dates, features = axis.grid, axis.features
    if grid is not None and isinstance(kind, DateColumn):
        dates = np.asarray(grid, dtype="datetime64")
        features = kind.encode(Cells.of_array(kind.name, dates))
    functions, trains = view.column_functions(column, features), []
    for train in view.fitted.trains:
        cores = list(train.cores)
        cores[group.start] = site_matrices(cores[group.start : group.stop], functions).transpose(1, 0, 2)
        for k in group[1:]:  # the first function of every feature is 1
            cores[k] = np.eye(cores[group.start].shape[2])[:, None] * np.eye(cores[k].shape[1])[0][:, None]
        trains.append(cores)
    return (dates,), trains


def _check_grid(measure: ColumnMeasure, chosen: tuple[int, ...], grid: Any, grid_size: int) -> tuple[NDArray, ...]:
    """One array of values in original units for each chosen feature."""
    if grid is None:
        return tuple(_default_axis(measure, k, grid_size) for k in chosen)
    several = isinstance(grid, Sequence | np.ndarray) and len(grid) > 0 and np.ndim(grid[0]) > 0
    parts = list(grid) if several else [grid]
    if len(parts) != len(chosen):
        raise ValueError(f"grid must have one array per feature, got {len(parts)} for {len(chosen)} features.")
    axes = []
    for k, part in zip(chosen, parts, strict=True):
        is_category = measure.view.columns.is_category[k]
        axis = np.asarray(part, dtype=object if is_category else np.float64)
        if axis.ndim != 1 or not len(axis) or not (is_category or np.isfinite(axis).all()):
            raise ValueError(f"grid must hold finite numbers, one-dimensional for each feature, got {axis!r}.")
        axes.append(axis)
    return tuple(axes)


def _default_axis(measure: ColumnMeasure, k: int, grid_size: int) -> NDArray:
    feature_map, levels = measure.view.fitted.maps[k], measure.view.columns.levels[k]
    axis = feature_map.grid(grid_size)
    if axis is None:
        return number_grid(measure, k, grid_size)
    if levels is None:
        return axis
    codes = np.unique(np.rint(axis).clip(0, len(levels) - 1).astype(np.intp))
    return np.array([*(levels[code] for code in codes), *[None] * feature_map.has_missing], dtype=object)


def _mean_coefficients(trains: Sequence[Sequence[NDArray]], chosen: Sequence[int], measure: ColumnMeasure) -> NDArray:
    """Coefficients of the mean scores as functions of the chosen cores.

    Shapes: -> (n_trains, n_j) or (n_trains, n_j, n_k).
    """
    *_, last = inside = sorted(chosen)
    total = np.zeros((len(trains), *(trains[0][k].shape[1] for k in inside)))
    for values, weights in _row_blocks(measure):
        for sums, cores in zip(total, trains, strict=True):
            # Left part (rows, open functions, rank): a chosen core keeps its functions apart. Right part (rows, rank).
            left, right = np.ones((len(weights), 1, 1)), weights[:, None]
            for k, core in enumerate(cores[:last]):
                left = np.tensordot(left[:, 0], core, 1) if k in inside else left @ site_matrices([core], [values[k]])
            for k in reversed(range(last + 1, len(cores))):
                right = (site_matrices([cores[k]], [values[k]]) @ right[:, :, None])[:, :, 0]
            ends = np.tensordot(left, right, (0, 0))
            sums += np.tensordot(ends, cores[last], ((1, 2), (0, 2))).reshape(sums.shape)
    return total if inside == list(chosen) else total.transpose(0, 2, 1)


def _row_blocks(measure: ColumnMeasure) -> Iterator[tuple[list[NDArray], NDArray]]:
    """Yield the function values (n_k, rows) of the features and the weights (rows,), block after block."""
    if measure.rows is None:
        # The score is linear in the functions of each feature: independent features are one row of mean values.
        yield [mean[:, None] for mean in measure.means], np.ones(1)
        return
    weights, maps = measure.features[0][1], measure.view.fitted.maps
    for start in range(0, len(weights), _BLOCK_ROWS):
        some = slice(start, start + _BLOCK_ROWS)
        yield [m.values(points[some]) for m, (points, _) in zip(maps, measure.features, strict=True)], weights[some]
