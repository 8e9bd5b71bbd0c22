"""What a report shows of the inside of a model: the one place that asks `polytrain.explain`.

Columns are taken as independent, each distributed as in the given rows. A score is then, exactly, a mean, an effect of
every column alone, one of every pair beyond that, and so on; see `polytrain.explain.effects`. How much other columns
change an effect is the standard deviation, over them, of what the column adds to the score; it needs second moments of
their functions in place of means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from polytrain.explain import SobolIndices, sobol_indices
from polytrain.explain.local import Player, explain_players
from polytrain.explain.sites import make_column_measure, open_sites
from polytrain.maps import CategoryMap
from polytrain.reporting.evidence import cell_text
from polytrain.reporting.subject import Subject

__all__ = ["Axis", "ColumnEffect", "Contributions", "Insights", "PairEffect"]

# Rows that stand for the distribution of the columns.
_MOST_ROWS = 5000
_GRID, _COARSE, _BINS = 60, 16, 30
_MOST_LEVELS = 12
# Curves reach from this quantile to the other end's: the last per cent may be very far away.
_TAIL = 0.01


@dataclass(frozen=True, eq=False)
class Axis:
    """Values of a column at which something is drawn.

    Attributes
    ----------
    name : str
        Name of the column.
    points : ndarray of shape (G,)
        Values; numbers of levels for categories.
    levels : tuple of str, or None
        Names of the levels.
    rows : ndarray
        Rows of every level, or of every one of a number of even bins from the first to the last point.
    n_missing : int
        Rows where the value is missing.
    """

    name: str
    points: NDArray
    levels: tuple[str, ...] | None
    rows: NDArray
    n_missing: int


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """What a column does alone.

    Attributes
    ----------
    axis : Axis
    share : float
        Its importance, see `Insights.importances`.
    values : ndarray of shape (n_trains, G)
        The effect on each score.
    spread : ndarray of shape (G,), or None
        Standard deviation of the effect over the values of all other columns; for models of one train.
    missing : ndarray of shape (n_trains,), or None
        Effect of a missing value, where there are any.
    """

    axis: Axis
    share: float
    values: NDArray
    spread: NDArray | None
    missing: NDArray | None


@dataclass(frozen=True, eq=False)
class PairEffect:
    """What two columns do together, beyond what both do alone, in the score that they matter most for."""

    axes: tuple[Axis, Axis]
    share: float
    train: int
    values: NDArray


@dataclass(frozen=True)
class Contributions:
    """Why a row has its score: the mean, and what every column brings.

    Attributes
    ----------
    base, score : float
        ``score = base + sum of the parts``.
    parts : list of (str, str, float)
        Columns, their values as text, and what they add; the largest first.
    """

    base: float
    score: float
    parts: list[tuple[str, str, float]]


class Insights:
    """Effects of a model under the distribution of the columns in given rows.

    Parameters
    ----------
    model : Subject
        The model.
    X : ndarray of shape (N, d)
        Features.
    """

    def __init__(self, model: Subject, X: NDArray) -> None:
        self.model = model
        self._all = X
        self.X = X[:: -(-len(X) // _MOST_ROWS)]
        self._view = model.view
        self._measure = make_column_measure(self._view, self.X, None)
        self._open = [open_sites(train, self._measure) for train in self._view.trains]

    @property
    def train_names(self) -> tuple[str, ...]:
        """What a high score of each train speaks for."""
        return self._view.train_names

    @cached_property
    def _indices(self) -> SobolIndices:
        return sobol_indices(self.model.estimator, self.X)

    @cached_property
    def importances(self) -> list[tuple[str, float]]:
        """Columns and their shares of all total Sobol indices, averaged over the trains; the largest first."""
        total = self._indices.total.mean(axis=0)
        whole = float(total.sum()) or 1.0
        found = [(name, float(total[k]) / whole) for name, k in self.model.places.items()]
        return sorted(found, key=lambda pair: -pair[1])

    @cached_property
    def shares(self) -> tuple[float, float, float]:
        """Parts of the variance: columns alone, pairs, and three or more together; averaged over the trains."""
        indices = self._indices
        return (
            float(indices.first.sum(axis=1).mean()),
            float(indices.second.sum(axis=(1, 2)).mean() / 2),
            float(indices.higher.mean()),
        )

    def columns(self, most: int) -> list[ColumnEffect]:
        """Effects of the most important columns."""
        chosen = [(name, share) for name, share in self.importances[:most] if share > 0]
        return [self._effect(self.model.places[name], share) for name, share in chosen]

    def pairs(self, most: int) -> list[PairEffect]:
        """Interactions of the pairs of columns with the largest shares of the variance."""
        second = np.triu(self._indices.second.mean(axis=0))
        order = np.argsort(-second, axis=None, kind="stable")[:most]
        found = []
        for one, two in zip(*np.unravel_index(order, second.shape), strict=True):
            if second[one, two] > 1e-4:
                train = int(self._indices.second[:, one, two].argmax())
                found.append(self._pair(int(one), int(two), float(second[one, two]), train))
        return found

    # --- effects ------------------------------------------------------------------------------------------------------

    @cached_property
    def _grams(self) -> tuple[list[NDArray], list[NDArray]]:
        """Second moments of what lies left and right of each core of the first train; d + 1 matrices each."""
        cores, squares = self._view.trains[0].cores, []
        for feature_map, (points, weights) in zip(self._view.maps, self._measure.features, strict=True):
            values = feature_map.values(points)
            squares.append((values * weights) @ values.T)
        left, right = [np.ones((1, 1))], [np.ones((1, 1))]
        for core, square in zip(cores, squares, strict=True):
            half = np.einsum("aib,ij->ajb", core, square)
            left.append(np.einsum("ac,ajb,cjd->bd", left[-1], half, core, optimize=True))
        for core, square in zip(reversed(cores), reversed(squares), strict=True):
            half = np.einsum("aib,ij->ajb", core, square)
            right.append(np.einsum("bd,ajb,cjd->ac", right[-1], half, core, optimize=True))
        return left, right[::-1]

    def _functions(self, k: int, points: NDArray) -> NDArray:
        """Functions of a feature at some values, (n, G)."""
        feature_map = self._view.maps[k]
        return feature_map.values(feature_map.place(points))

    def _main(self, k: int, points: NDArray) -> NDArray:
        """Effect of a feature at some values, (n_trains, G)."""
        functions = self._functions(k, points)
        return np.array([sites.main(k, [functions]) for sites in self._open])

    def _spread(self, k: int, points: NDArray, main: NDArray) -> NDArray:
        """Standard deviation of what a feature adds to the first score, over the values of all others: (G,)."""
        left, right = self._grams
        centred = self._functions(k, points) - self._open[0].function_means[k][:, None]
        opened = np.einsum("aib,ig->gab", self._view.trains[0].cores[k], centred)
        squares = np.einsum("gab,gcd,ac,bd->g", opened, opened, left[k], right[k + 1], optimize=True)
        return np.sqrt(np.maximum(squares - main**2, 0.0))

    def _effect(self, k: int, share: float) -> ColumnEffect:
        axis = self._axis(k, _GRID)
        values = self._main(k, axis.points)
        gone = self._main(k, np.array([np.nan]))[:, 0] if axis.n_missing else None
        spread = self._spread(k, axis.points, values[0]) if len(values) == 1 else None
        return ColumnEffect(axis, share, values, spread, gone)

    def _pair(self, one: int, two: int, share: float, train: int) -> PairEffect:
        axes = self._axis(one, _COARSE), self._axis(two, _COARSE)
        sites = self._open[train]
        left = sites.left(one, [self._functions(one, axes[0].points)]) @ sites.between(one, two)
        values = sites.scaled(left @ sites.right(two, [self._functions(two, axes[1].points)]).T)
        return PairEffect(axes, share, train, values)

    def _axis(self, k: int, size: int) -> Axis:
        """Values of a feature to draw over: levels with the most rows, or steps between the outer quantiles."""
        name = self._view.feature_names[k]
        known = self._all[:, k][~np.isnan(self._all[:, k])]
        n_missing = len(self._all) - len(known)
        levels = self._levels.get(k)
        if levels is not None or isinstance(self._view.maps[k], CategoryMap):
            codes, rows = np.unique(known if levels is None else known[known >= 0], return_counts=True)
            kept = np.sort(np.argsort(-rows, kind="stable")[: _MOST_LEVELS if size > _COARSE else 8])
            names = tuple(cell_text(code, levels) for code in codes[kept])
            return Axis(name, codes[kept], names, rows[kept], n_missing)
        if not len(known):
            return Axis(name, np.zeros(2), None, np.zeros(1), n_missing)
        low, high = np.quantile(known, [_TAIL, 1 - _TAIL])
        if low == high:
            low, high = known.min(), known.max()
        if low == high:
            low, high = low - 0.5, high + 0.5
        rows, _ = np.histogram(known, _BINS, (low, high))
        return Axis(name, np.linspace(low, high, size), None, rows, n_missing)

    @cached_property
    def _levels(self) -> dict[int, tuple[str, ...]]:
        return self.model.levels

    # --- rows ---------------------------------------------------------------------------------------------------------

    def explain_rows(self, rows: NDArray, trains: Sequence[int]) -> list[Contributions]:
        """Why every row has its score in one of the trains: exact Shapley values of the columns."""
        places = self.model.places
        cells = tuple(tuple(cell_text(row[k], self._levels.get(k)) for k in places.values()) for row in rows)
        found = explain_players(
            self._view,
            [Player(name, slice(k, k + 1)) for name, k in places.items()],
            rows,
            self._measure.features,
            joint=True,
            scores=range(len(self._view.trains)),
            cells=cells,
            row_names=tuple(range(len(rows))),
        )
        every = []
        for j, train in enumerate(trains):
            parts = list(zip(found.column_names, cells[j], found.values[j, :, train].tolist(), strict=True))
            parts.sort(key=lambda part: -abs(part[2]))
            every.append(Contributions(float(found.base[train]), float(found.scores[j, train]), parts))
        return every
