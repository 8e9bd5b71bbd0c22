"""Maps of all columns, for any kind of functions and any bandwidth, compared by leaving rows out."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from polytrain.choice.alphas import Evidence, find_alpha, strongest
from polytrain.learning.dual import upper_kernel
from polytrain.learning.parts import Part, parts_upper_kernel
from polytrain.maps import ColumnSummary, MapList, MapSettings, fit_map, map_kind

__all__ = [
    "ALPHAS",
    "KINDS",
    "LARGEST_BANDWIDTH",
    "LEAST_BANDWIDTH",
    "ChoiceRows",
    "GivenMaps",
    "MapMaker",
    "MapTrial",
    "additive_kernel",
    "alpha_for",
    "best_of",
    "compare_maps",
    "function_values",
    "judge_kernel",
    "not_clearly_worse",
    "try_maps",
]

#: The basis of columns that leave the choice to the fit.
AUTO = "auto"
# A column with more different values than these, one of which has more than this part of the rows, has ties.
_MANY_VALUES, _LARGE_SHARE = 16, 0.1
# Places in [0, 1] that are no farther apart than two knots look the same.
_KNOT = 1 / 128


class MapMaker:
    """Makes the maps of a table again and again.

    Parameters
    ----------
    bases : sequence of str
        Basis of every column; "auto" for those that take the kind that is asked for.
    degrees : sequence of int
    scale : {"minmax"} or None
    get_columns : callable
        Gives what is known about the columns, with or without their values: see `polytrain.rows.Rows.columns`.
    parts : sequence of Part, optional
        What a model in these maps is a sum of; None if all columns may act together.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.choice.maps import MapMaker
    >>> from polytrain.maps import ColumnSummary
    >>> column = ColumnSummary(0.0, 3.0, np.arange(4.0), np.ones(4))
    >>> maker = MapMaker(["auto", "power"], [2, 2], "minmax", lambda with_values: [column, column])
    >>> [m.basis for m in maker("spline", 0.5)]
    ['spline', 'power']
    """

    def __init__(
        self,
        bases: Sequence[str],
        degrees: Sequence[int],
        scale: str | None,
        get_columns: Callable[[bool], Sequence[ColumnSummary]],
        parts: Sequence[Part] | None = None,
    ) -> None:
        self.parts = parts
        self._bases, self._degrees, self._scale = bases, degrees, scale
        self.is_free, self.n_columns = AUTO in bases, len(bases)
        self.has_bandwidth = self.is_free or any(map_kind(basis).needs_values for basis in set(bases))
        self._columns = get_columns(self.has_bandwidth)
        free = [column for column, basis in zip(self._columns, bases, strict=True) if basis == AUTO]
        #: Whether most rows share few of many values in some column: its ranks tell little about the other values.
        self.has_ties = any(map(_is_tied, free))
        #: Whether values are so unequally frequent that their ranks are not their places among the different values.
        self.has_repeats = any(map(_is_repeated, free))
        self._plain: dict[str | None, MapList] = {}

    def __call__(self, kind: str | None, bandwidth: float | None) -> MapList:
        """Make maps with functions of this kind where columns leave it open."""
        maps = self.plain(kind)
        pairs = zip(maps, self.factors(kind, bandwidth), strict=True)
        return MapList([feature_map.grown(factors) for feature_map, factors in pairs])

    def plain(self, kind: str | None) -> MapList:
        """Maps of this kind for a bandwidth of 1."""
        if kind not in self._plain:
            made = [fit_map(*pair) for pair in zip(self._settings(kind, None), self._columns, strict=True)]
            self._plain[kind] = MapList(made)
        return self._plain[kind]

    def factors(self, kind: str | None, bandwidth: float | None) -> list[NDArray]:
        """What the functions of every column are multiplied by to have another bandwidth."""
        settings = zip(self._settings(kind, None), self._settings(kind, bandwidth), strict=True)
        found: dict[tuple, NDArray] = {}  # columns of a kind have few different ones
        every = []
        for feature_map, pair in zip(self.plain(kind), settings, strict=True):
            look = type(feature_map), feature_map.basis, feature_map.n, feature_map.has_missing
            if look not in found:
                found[look] = feature_map.growth(*pair)
            every.append(found[look])
        return every

    def _settings(self, kind: str | None, bandwidth: float | None) -> list[MapSettings]:
        common = self._scale, bandwidth, len(self._bases)
        return [
            MapSettings(str(kind) if basis == AUTO else basis, degree, *common)
            for basis, degree in zip(self._bases, self._degrees, strict=True)
        ]


class GivenMaps(MapMaker):
    """Makes nothing: the maps are those of somebody else.

    Examples
    --------
    >>> from polytrain.choice.maps import GivenMaps
    >>> from polytrain.maps import MapList, PolynomialMap
    >>> maps = MapList([PolynomialMap("power", 3)])
    >>> GivenMaps(maps)(None, None) is maps
    True
    """

    def __init__(self, maps: MapList, parts: Sequence[Part] | None = None) -> None:
        self._maps, self.parts = maps, parts
        self.is_free = self.has_bandwidth = self.has_ties = self.has_repeats = False
        self.n_columns = len(maps)

    def __call__(self, kind: str | None, bandwidth: float | None) -> MapList:
        """The maps."""
        return self._maps

    def plain(self, kind: str | None) -> MapList:
        """The maps."""
        return self._maps

    def factors(self, kind: str | None, bandwidth: float | None) -> list[NDArray]:
        """Nothing changes."""
        return [np.ones(n) for n in self._maps.dims]


def _is_tied(column: ColumnSummary) -> bool:
    return len(column.values) > _MANY_VALUES and float(column.weights.max()) > _LARGE_SHARE * float(
        column.weights.sum()
    )


def _is_repeated(column: ColumnSummary) -> bool:
    """Whether ranks are not the places among the different values."""
    if len(column.values) < 2:
        return False
    parts = column.weights / column.weights.sum()
    ranks = np.cumsum(parts) - parts / 2
    return bool(np.abs(ranks - np.linspace(0.0, 1.0, len(ranks))).max() > _KNOT)


#: Kinds of functions that are tried, the simplest ones first.
KINDS = ("smooth", "gauss", "spline", "smooth-rank", "gauss-rank", "spline-rank", "spline-distinct")
#: Regularisations that are tried, the strongest one first.
ALPHAS = tuple(float(f"{10.0 ** (half / 2):.2g}") for half in range(4, -21, -1))
# Squared error of maps whose kernel is not finite.
_HOPELESS = 1e100
# The search for the bandwidth begins here.
_BANDWIDTHS = (0.5, 1.0)
#: No bandwidth beyond these is tried.
LEAST_BANDWIDTH, LARGEST_BANDWIDTH = 1 / 32, 32.0
# The best alpha grows with about this power of the bandwidth: it is tenfold for twice the bandwidth.
_ALPHA_POWER = math.log2(10.0)


class ChoiceRows(NamedTuple):
    """Different rows with their mean targets.

    Attributes
    ----------
    X : ndarray of shape (M, d)
    targets : ndarray of shape (M, q)
    weights : ndarray of shape (M,)
        They sum to 1.
    """

    X: NDArray
    targets: NDArray
    weights: NDArray

    def first(self, count: int) -> ChoiceRows:
        """Return the first ``count`` rows."""
        weights = self.weights[:count]
        return ChoiceRows(self.X[:count], self.targets[:count], weights / weights.sum())


class MapTrial(NamedTuple):
    """What leaving rows out says about some maps, with the best alpha for them.

    Attributes
    ----------
    kind : str or None
        Kind of functions of the columns that leave it open.
    bandwidth : float or None
    alpha : float
        For the rows on which it was tried.
    evidence : Evidence
    residuals : ndarray of shape (M, q)
        Targets minus scores that were learned from all other rows.
    """

    kind: str | None
    bandwidth: float | None
    alpha: float
    evidence: Evidence
    residuals: NDArray

    @property
    def error(self) -> float:
        """Mean squared error."""
        return self.evidence.error


def compare_maps(
    maker: MapMaker,
    kinds: Sequence[str | None],
    bandwidth: float | str | None,
    alphas: Sequence[float],
    rows: ChoiceRows,
    n_threads: int = 1,
) -> list[list[MapTrial]]:
    """Try kinds of functions, each with several bandwidths and all alphas.

    Parameters
    ----------
    maker : MapMaker
    kinds : sequence of str or None
        Kinds to try.
    bandwidth : float, "auto" or None
        What is given is kept; "auto" tries two and goes on in the direction in which the error falls until it rises.
    alphas : sequence of float
        Regularisations to try, the strongest first.
    rows : ChoiceRows
    n_threads : int, default=1
        It has no influence on the result.

    Returns
    -------
    list of lists of MapTrial
        For every kind, the bandwidths that were tried, the smallest first.
    """
    room = _Room(len(rows.X))
    return Parallel(n_jobs=min(n_threads, len(kinds)), require="sharedmem")(
        delayed(_walk)(maker, kind, bandwidth, alphas, rows, room) for kind in kinds
    )


def try_maps(
    maker: MapMaker,
    tries: Sequence[tuple[str | None, float | None, float]],
    alphas: Sequence[float],
    rows: ChoiceRows,
    n_threads: int = 1,
    rival: float | None = None,
) -> list[MapTrial]:
    """Try kinds, each with a bandwidth and the alpha from which the best one is expected not to be far.

    If the error of a rival is given, those that cannot come near it are left as soon as that shows.
    """
    room = _Room(len(rows.X))
    families = {kind: _Family(maker, kind, rows.X) for kind, *_ in tries}
    return Parallel(n_jobs=min(n_threads, len(tries)), require="sharedmem")(
        delayed(_try)(families[kind], kind, bandwidth, alphas, rows, room, near, rival)
        for kind, bandwidth, near in tries
    )


def function_values(maps: MapList, X: NDArray) -> list[NDArray]:
    """Functions of every column on rows, (n, N) each."""
    return [feature_map.values(column) for feature_map, column in zip(maps, maps.place(X), strict=True)]


def additive_kernel(values: Sequence[NDArray]) -> NDArray:
    """Kernel of the linear model in all functions of the maps: without interactions."""
    stacked = np.concatenate([functions[1:] for functions in values])
    return 1.0 + stacked.T @ stacked


class _Room(threading.local):
    """Two matrices for every thread: memory that is new to a process takes longer than what is computed in it."""

    def __init__(self, n_rows: int) -> None:
        self.kernel, self.work = np.zeros((2, n_rows, n_rows))


class _Family:
    """Kernels of one kind of functions on some rows, for any bandwidth: the functions are evaluated once."""

    def __init__(self, maker: MapMaker, kind: str | None, X: NDArray) -> None:
        self._maker, self._kind = maker, kind
        self._values = function_values(maker.plain(kind), X)

    def kernel(self, bandwidth: float | None, out: NDArray) -> NDArray:
        """Products of all columns' kernels, (M, M), on and above the diagonal; or the sum of those of all parts."""
        factors = self._maker.factors(self._kind, bandwidth)
        grown = [grow[:, None] * values for grow, values in zip(factors, self._values, strict=True)]
        parts = self._maker.parts
        return upper_kernel(grown, out) if parts is None else parts_upper_kernel(grown, parts, out)


def _walk(
    maker: MapMaker, kind: str | None, given: Any, alphas: Sequence[float], rows: ChoiceRows, room: _Room
) -> list[MapTrial]:
    family = _Family(maker, kind, rows.X)
    if given != "auto":
        return [_try(family, kind, given, alphas, rows, room)]
    found: dict[float, MapTrial] = {}
    following: float | None = _BANDWIDTHS[0]
    while following is not None:
        rival = min((trial.error for trial in found.values()), default=None)
        near = _expected_alpha(found, following)
        found[following] = _try(family, kind, following, alphas, rows, room, near, rival)
        following = _next_bandwidth(found)
    return [found[bandwidth] for bandwidth in sorted(found)]


def _next_bandwidth(found: dict[float, MapTrial]) -> float | None:
    """The bandwidth to try after these; None where the best one lies between two others."""
    for bandwidth in _BANDWIDTHS:
        if bandwidth not in found:
            return bandwidth
    order = sorted(found)
    best = strongest([found[bandwidth].error for bandwidth in order])
    if best == 0 and order[0] > LEAST_BANDWIDTH:
        return order[0] / 2
    if best == len(order) - 1 and order[-1] < LARGEST_BANDWIDTH:
        return order[-1] * 2
    return None


def _expected_alpha(found: dict[float, MapTrial], bandwidth: float) -> float | None:
    """Where the best alpha of a bandwidth should be, as far as those of its neighbours tell."""
    nearest = sorted(found, key=lambda other: abs(math.log(other / bandwidth)))[:2]
    if not nearest:
        return None
    trial = found[nearest[0]]
    if len(nearest) == 1:
        return alpha_for(trial, bandwidth)
    other = found[nearest[1]]
    if not (trial.alpha > 0 and other.alpha > 0):  # given, and so the only one
        return None
    power = math.log(trial.alpha / other.alpha) / math.log(nearest[0] / nearest[1])
    return alpha_for(trial, bandwidth, min(max(power, 0.0), 2.0 * _ALPHA_POWER))


def alpha_for(trial: MapTrial, bandwidth: float, power: float = _ALPHA_POWER) -> float:
    """Where the best alpha of a bandwidth near that of a trial should be."""
    return trial.alpha * (bandwidth / trial.bandwidth) ** power if trial.bandwidth else trial.alpha


def _try(
    family: _Family,
    kind: str | None,
    bandwidth: float | None,
    alphas: Sequence[float],
    rows: ChoiceRows,
    room: _Room,
    near: float | None = None,
    rival: float | None = None,
) -> MapTrial:
    with np.errstate(over="ignore", invalid="ignore"):
        kernel = family.kernel(bandwidth, room.kernel)
    return judge_kernel(kind, bandwidth, kernel, alphas, rows, near, rival, room.work)


def judge_kernel(
    kind: str | None,
    bandwidth: float | None,
    kernel: NDArray,
    alphas: Sequence[float],
    rows: ChoiceRows,
    near: float | None = None,
    rival: float | None = None,
    work: NDArray | None = None,
) -> MapTrial:
    """Find the best alpha for a kernel, see `polytrain.choice.alphas.find_alpha`."""
    # No entry is larger than the largest on the diagonal.
    if not np.isfinite(np.diagonal(kernel)).all():  # nothing can be learned from it
        nothing = Evidence(np.full(len(rows.X), _HOPELESS), rows.weights)
        return MapTrial(kind, bandwidth, alphas[0], nothing, rows.targets)
    return MapTrial(kind, bandwidth, *find_alpha(kernel, rows.targets, rows.weights, alphas, near, rival, work))


def not_clearly_worse(trials: Sequence[MapTrial], standard_errors: float) -> list[MapTrial]:
    """Trials on the same rows whose error is at most ``standard_errors`` above the least."""
    least = min(trials, key=lambda trial: trial.error)
    gaps = [(trial, *trial.evidence.worse_than(least.evidence)) for trial in trials]
    return [trial for trial, mean, error in gaps if mean <= standard_errors * error]


def best_of(walks: Sequence[Sequence[MapTrial]]) -> list[MapTrial]:
    """The best trial of every kind."""
    return [walk[strongest([trial.error for trial in walk])] for walk in walks]
