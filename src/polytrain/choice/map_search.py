"""Maps of all columns, for any kind of functions and any bandwidth, compared by leaving rows out."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from polytrain.choice.alphas import Evidence, find_alpha, strongest
from polytrain.choice.calibration import held_out_losses, held_out_shift
from polytrain.learning.dual import column_gains, squared_effects, upper_kernel
from polytrain.learning.parts import Part, parts_upper_kernel
from polytrain.maps import ColumnSummary, FeatureMap, InterpolatedMap, MapList, MapSettings, fit_map, map_kind
from polytrain.maps.tabulated import TabulatedMap

__all__ = ["ALPHAS", "BANDWIDTHS", "TRIED_BASES", "ChoiceRows", "MapMaker", "MapSearch", "MapTrial", "function_values"]

#: Kinds of functions that are tried, the simplest ones first.
TRIED_BASES = ("smooth", "gauss", "spline", "smooth-rank", "gauss-rank", "spline-rank", "spline-distinct")
#: Values of alpha that are tried, the strongest first.
ALPHAS = tuple(float(f"{10.0 ** (half / 2):.2g}") for half in range(4, -21, -1))
#: No bandwidth beyond these is tried.
BANDWIDTHS = 1 / 32, 32.0
# The search for the bandwidth begins here.
_FIRST_BANDWIDTHS = 0.5, 1.0
# The best alpha grows with about this power of the bandwidth: it is tenfold for twice the bandwidth.
_ALPHA_POWER = math.log2(10.0)
# Squared error of maps whose kernel is not finite.
_HOPELESS = 1e100
# Functions of a column of numbers where all columns are alike; where they are not, most and fewest.
_USUAL, _FINEST, _LEAST = 16, 64, 2
# Functions that depend neither on the size of the prior nor on outliers.
_BENDING = "spline-rank"
# Functions of a column that show its possible effect.
_SHOWN = 8
# The basis of columns that leave the choice to the fit.
_AUTO = "auto"
# A column has ties if it has more different values than these, one of which has more than this fraction of the rows.
_MANY_VALUES, _LARGE_SHARE = 16, 0.1
# Positions in [0, 1] that are at most two knots apart are indistinguishable.
_KNOT = 1 / 128


class MapMaker:
    """Makes the maps of a table, for any kind of functions and any bandwidth.

    Parameters
    ----------
    bases : sequence of str
        Basis of every column; "auto" for those that take the kind that is asked for.
    degrees : sequence of int
    get_columns : callable
        Returns the summaries of the columns, with or without their values: see `polytrain.rows.Rows.columns`.
    sizes : sequence of float, optional
        Default size of every column in units of the bandwidth; None for equal sizes.

    Examples
    --------
    >>> from polytrain.maps import ColumnSummary
    >>> column = ColumnSummary(0.0, 3.0, np.arange(4.0), np.ones(4))
    >>> maker = MapMaker(["auto", "power"], [2, 2], lambda with_values: [column, column])
    >>> [m.basis for m in maker("spline", 0.5)]
    ['spline', 'power']
    """

    def __init__(
        self,
        bases: Sequence[str],
        degrees: Sequence[int],
        get_columns: Callable[[bool], Sequence[ColumnSummary]],
        sizes: Sequence[float] | None = None,
    ) -> None:
        self._bases, self._degrees, self._sizes = bases, degrees, sizes
        self.is_free, self.n_columns = _AUTO in bases, len(bases)
        self.has_bandwidth = self.is_free or any(map_kind(basis).needs_values for basis in set(bases))
        self._columns = get_columns(self.has_bandwidth)
        free = [column for column, basis in zip(self._columns, bases, strict=True) if basis == _AUTO]
        #: Whether most rows share few of many values in some column: its ranks then hardly resolve the other values.
        self.has_ties = any(map(_is_tied, free))
        #: Whether values are so unequally frequent that their ranks are not their places among the different values.
        self.has_repeats = any(map(_is_repeated, free))
        self._given: MapList | None = None
        self._fitted: dict[tuple[str, int], FeatureMap] = {}
        self._constant: dict[int, FeatureMap] = {}

    @classmethod
    def given(cls, maps: MapList) -> Self:
        """Return a maker of these maps and no others."""
        maker = cls((), (), lambda with_values: ())
        maker.n_columns, maker._given = len(maps), maps
        return maker

    def __call__(self, kind: str | None, bandwidth: float | None, sizes: Sequence[float] | None = None) -> MapList:
        """Make maps with functions of this kind where columns leave it open; columns of size 0 need none."""
        if self._given is not None:
            return self._given
        pairs = zip(self.plain(kind, sizes), self.factors(kind, bandwidth, sizes), strict=True)
        return MapList([feature_map.grown(factors) for feature_map, factors in pairs]).needed()

    def plain(self, kind: str | None, sizes: Sequence[float] | None = None) -> MapList:
        """Maps of this kind for a bandwidth of 1; those of columns of size 0 may have the constant alone."""
        if self._given is not None:
            return self._given
        sizes = self._sizes if sizes is None else sizes
        every = enumerate(self._settings(kind))
        return MapList([self._plain_map(settings, k, sizes is not None and not sizes[k]) for k, settings in every])

    def _plain_map(self, settings: MapSettings, k: int, is_left_out: bool) -> FeatureMap:
        if is_left_out and k in self._constant:
            return self._constant[k]
        key = settings.basis, k
        if key not in self._fitted:
            self._fitted[key] = fit_map(settings, self._columns[k])
        made = self._fitted[key]
        if is_left_out and isinstance(made, TabulatedMap):
            return self._constant.setdefault(k, made.grown(np.eye(1, made.n)[0]))
        return made

    def factors(self, kind: str | None, bandwidth: float | None, sizes: Sequence[float] | None = None) -> list[NDArray]:
        """Factors of the functions of every column that give them this bandwidth; 0 for functions that are left out.

        Only columns that are known to matter get the finest functions.
        """
        sizes = self._sizes if sizes is None else sizes
        maps = self.plain(kind, sizes)
        if self._given is not None:
            return [np.ones(n) for n in maps.dims]
        known: dict[tuple, NDArray] = {}  # columns of a kind have few different ones
        every = []
        for k, (feature_map, settings) in enumerate(zip(maps, self._settings(kind), strict=True)):
            size = 1.0 if sizes is None else float(sizes[k])
            look = type(feature_map), feature_map.basis, feature_map.n, feature_map.has_missing, size
            if look not in known:
                after = replace(settings, bandwidth=size if bandwidth is None else bandwidth * size)
                factors = feature_map.growth(settings, after)
                if not size and isinstance(feature_map, TabulatedMap):
                    factors[1:] = 0.0
                n_kept = _USUAL if sizes is None else max(_LEAST, round(_FINEST * min(size, 1.0)))
                if isinstance(feature_map, InterpolatedMap):
                    factors[1 + n_kept : feature_map.n - feature_map.has_missing] = 0.0
                known[look] = factors
            every.append(known[look])
        return every

    def _settings(self, kind: str | None) -> list[MapSettings]:
        """Settings for a bandwidth of 1."""
        return [
            MapSettings(str(kind) if basis == _AUTO else basis, degree, None, len(self._bases))
            for basis, degree in zip(self._bases, self._degrees, strict=True)
        ]


def _is_tied(column: ColumnSummary) -> bool:
    largest, total = float(column.weights.max()), float(column.weights.sum())
    return len(column.values) > _MANY_VALUES and largest > _LARGE_SHARE * total


def _is_repeated(column: ColumnSummary) -> bool:
    """Whether ranks are not the places among the different values."""
    if len(column.values) < 2:
        return False
    parts = column.weights / column.weights.sum()
    ranks = np.cumsum(parts) - parts / 2
    return bool(np.abs(ranks - np.linspace(0.0, 1.0, len(ranks))).max() > _KNOT)


class ChoiceRows(NamedTuple):
    """Different rows X (M, d) with their mean targets (M, q), and weights (M,) that sum to 1.

    Where classes are compared by their probabilities, ``labels`` (M, m) are the weights of every row at its label.
    """

    X: NDArray
    targets: NDArray
    weights: NDArray
    labels: NDArray | None = None

    def take(self, rows: slice) -> ChoiceRows:
        """Return some of the rows."""
        weights = self.weights[rows]
        labels = None if self.labels is None else self.labels[rows]
        return ChoiceRows(self.X[rows], self.targets[rows], weights / weights.sum(), labels)

    def by_squares(self) -> ChoiceRows:
        """Return the same rows, to be compared by squared errors."""
        return self._replace(labels=None)

    def judge(self, residuals: NDArray) -> Evidence:
        """Convert leave-one-out residuals to log losses of classes, or else to squared errors."""
        if self.labels is None:
            return Evidence(np.square(residuals).sum(axis=1), self.weights)
        labels = self.labels * (len(self.X) / self.labels.sum())
        losses, _ = held_out_losses(self.targets - residuals, labels)
        shift = held_out_shift(self.targets - residuals, labels, "squared")
        return Evidence(losses / labels.sum(axis=1) + shift, self.weights)


class MapTrial(NamedTuple):
    """The best alpha for some maps, by leaving rows out.

    Attributes
    ----------
    kind : str or None
        Kind of functions of the columns that leave it open.
    bandwidth : float or None
    alpha : float
        For the rows on which it was tried.
    evidence : Evidence
        Log losses for classes that are compared by their probabilities, else squared errors.
    squared_error : float
    residuals : ndarray of shape (M, q)
        Targets minus scores learned from all other rows.
    sizes : sequence of float, optional
        Size of every column in units of the bandwidth; None for equal ones.
    """

    kind: str | None
    bandwidth: float | None
    alpha: float
    evidence: Evidence
    squared_error: float
    residuals: NDArray
    sizes: Sequence[float] | None = None

    @property
    def error(self) -> float:
        """Mean log loss or squared error."""
        return self.evidence.error

    def alpha_for(self, bandwidth: float, power: float = _ALPHA_POWER) -> float:
        """Expected best alpha of a bandwidth near this one."""
        return self.alpha * (bandwidth / self.bandwidth) ** power if self.bandwidth else self.alpha


def function_values(maps: MapList, X: NDArray) -> list[NDArray]:
    """Functions of every column on rows, (n, N) each."""
    return [feature_map.values(column) for feature_map, column in zip(maps, maps.place(X), strict=True)]


class _Room(threading.local):
    """Two matrices for every thread: fresh memory takes longer than the arithmetic."""

    def __init__(self, n_rows: int) -> None:
        self.kernel, self.work = np.zeros((2, n_rows, n_rows))


class MapSearch:
    """Tries maps on some rows, each with the best alpha.

    Parameters
    ----------
    maker : MapMaker
    alphas : sequence of float
        Regularisations to try, the strongest first.
    rows : ChoiceRows
    parts : sequence of Part, optional
        What a model in these maps is a sum of; None if all columns may act together.
    n_threads : int, default=1
        It has no influence on the result.
    """

    def __init__(
        self,
        maker: MapMaker,
        alphas: Sequence[float],
        rows: ChoiceRows,
        parts: Sequence[Part] | None = None,
        n_threads: int = 1,
    ) -> None:
        self._maker, self._alphas, self._rows, self._parts, self._n_threads = maker, alphas, rows, parts, n_threads
        self._room = _Room(len(rows.X))
        self._last: tuple[Any, list[NDArray]] | None = None

    def compare(self, kinds: Sequence[str | None], bandwidth: float | str | None) -> list[list[MapTrial]]:
        """Try kinds of functions and return, for every kind, the trials of its bandwidths, the smallest first.

        A given bandwidth is kept; "auto" tries two and goes on in the direction in which the error falls until it
        rises.
        """
        return Parallel(n_jobs=min(self._n_threads, len(kinds)), require="sharedmem")(
            delayed(self._walk)(kind, bandwidth) for kind in kinds
        )

    def try_each(
        self,
        tries: Sequence[tuple[str | None, float | None, float, Sequence[float] | None]],
        rival: float | None = None,
        search_alpha: bool = True,
    ) -> list[MapTrial]:
        """Try kinds, each with a bandwidth, sizes, and an alpha that is expected to be near the best one.

        If the squared error of a rival is given, kinds that cannot get close to it are abandoned early. Without
        a search for alpha, it is what it is expected to be.
        """
        values = {kind: self._values(kind, [own for other, *_, own in tries if other == kind]) for kind, *_ in tries}
        return Parallel(n_jobs=max(1, min(self._n_threads, len(tries))), require="sharedmem")(
            delayed(self._try)(values[kind], kind, bandwidth, near, rival, sizes, search_alpha)
            for kind, bandwidth, near, sizes in tries
        )

    def effects(self, trial: MapTrial) -> NDArray:
        """Mean squares of the leave-one-out effects of every column, (d,), in the maps of a trial on these rows."""
        maps = self._maker(trial.kind, trial.bandwidth, trial.sizes)
        squares = squared_effects(
            function_values(maps, self._rows.X), self._rows.targets, self._rows.weights, trial.alpha
        )
        return np.array(maps.widened(squares.tolist(), lambda before: 0.0))

    def gains(self, trial: MapTrial) -> NDArray:
        """What each column of size 0 in a trial would change on these rows; 0 for those that it has."""
        maps = self._maker(trial.kind, trial.bandwidth, trial.sizes)
        left_out = np.flatnonzero(np.array(trial.sizes) == 0.0)
        # Columns of small size have nearly straight smooth functions: bends would not be noticed.
        bending = self._maker.plain(_BENDING if self._maker.is_free else trial.kind, np.array(trial.sizes) == 0.0)
        plain, found = function_values(bending, self._rows.X), np.zeros(self._maker.n_columns)
        others = [np.delete(plain[k], slice(1 + _SHOWN, -1), axis=0) for k in left_out]  # the last may tell gaps
        found[left_out] = column_gains(
            function_values(maps, self._rows.X), others, self._rows.targets, self._rows.weights, trial.alpha
        )
        return found

    def _values(self, kind: str | None, every: Sequence[Sequence[float] | None] = (None,)) -> list[NDArray]:
        """Functions of a kind for a bandwidth of 1 on these rows, for columns that have a size in one of several tries.

        Those that were asked for last are kept.
        """
        sizes = None if any(own is None for own in every) else np.max(every, axis=0)  # type: ignore[arg-type]
        key, last = (kind, None if sizes is None else (sizes == 0.0).tobytes()), self._last
        if last is None or last[0] != key:  # other threads may replace it
            self._last = last = key, function_values(self._maker.plain(kind, sizes), self._rows.X)
        return last[1]

    def _walk(self, kind: str | None, given: Any) -> list[MapTrial]:
        values = self._values(kind)
        if given != "auto":
            return [self._try(values, kind, given)]
        trials: dict[float, MapTrial] = {}
        following: float | None = _FIRST_BANDWIDTHS[0]
        while following is not None:
            rival = min((trial.squared_error for trial in trials.values()), default=None)
            trials[following] = self._try(values, kind, following, _expected_alpha(trials, following), rival)
            following = _next_bandwidth(trials)
        return [trials[bandwidth] for bandwidth in sorted(trials)]

    def _try(
        self,
        values: Sequence[NDArray],
        kind: str | None,
        bandwidth: float | None,
        near: float | None = None,
        rival: float | None = None,
        sizes: Sequence[float] | None = None,
        search_alpha: bool = True,
    ) -> MapTrial:
        """Try one bandwidth, given the functions of the kind for a bandwidth of 1."""
        with np.errstate(over="ignore", invalid="ignore"):
            factors = self._maker.factors(kind, bandwidth, sizes)
            grown = [
                grow[grow != 0, None] * functions[grow != 0]
                for grow, functions in zip(factors, values, strict=True)
                if self._parts is not None or grow[1:].any()
            ] or [np.ones((1, len(self._rows.X)))]
            if self._parts is None:
                kernel = upper_kernel(grown, self._room.kernel, quick=True)
            else:
                kernel = parts_upper_kernel(grown, self._parts, self._room.kernel)
        alphas = self._alphas if search_alpha or near is None else [near]
        return self.judge(kind, bandwidth, kernel, near, rival, alphas)._replace(sizes=sizes)

    def judge(
        self,
        kind: str | None,
        bandwidth: float | None,
        kernel: NDArray,
        near: float | None = None,
        rival: float | None = None,
        alphas: Sequence[float] | None = None,
    ) -> MapTrial:
        """Find the best alpha for a kernel, see `polytrain.choice.alphas.find_alpha`."""
        targets, weights = self._rows.targets, self._rows.weights
        # No entry is larger than the largest on the diagonal.
        if not np.isfinite(np.diagonal(kernel)).all():  # unusable
            nothing = Evidence(np.full(len(weights), _HOPELESS), weights)
            return MapTrial(kind, bandwidth, self._alphas[0], nothing, _HOPELESS, targets)
        alpha, squares, residuals = find_alpha(
            kernel, targets, weights, alphas or self._alphas, near, rival, self._room.work
        )
        return MapTrial(kind, bandwidth, alpha, self._rows.judge(residuals), squares.error, residuals)


def _next_bandwidth(trials: dict[float, MapTrial]) -> float | None:
    """The bandwidth to try after these; None where the best one lies between two others."""
    for bandwidth in _FIRST_BANDWIDTHS:
        if bandwidth not in trials:
            return bandwidth
    order = sorted(trials)
    errors = [trials[bandwidth].error for bandwidth in order]
    best = strongest(errors)
    if best == 0 and order[0] > BANDWIDTHS[0] and errors[0] < errors[1]:  # all may be equal, as with one class
        return order[0] / 2
    if best == len(order) - 1 and order[-1] < BANDWIDTHS[1]:
        return order[-1] * 2
    return None


def _expected_alpha(trials: dict[float, MapTrial], bandwidth: float) -> float | None:
    """Expected best alpha of a bandwidth, judging from its neighbours."""
    nearest = sorted(trials, key=lambda other: abs(math.log(other / bandwidth)))[:2]
    if not nearest:
        return None
    trial = trials[nearest[0]]
    if len(nearest) == 1:
        return trial.alpha_for(bandwidth)
    other = trials[nearest[1]]
    if not (trial.alpha > 0 and other.alpha > 0):  # given, and so the only one
        return None
    power = math.log(trial.alpha / other.alpha) / math.log(nearest[0] / nearest[1])
    return trial.alpha_for(bandwidth, min(max(power, 0.0), 2.0 * _ALPHA_POWER))
