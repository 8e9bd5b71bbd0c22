"""Maps of all columns, for any kind of functions and any bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.parts import Part
from polytrain.maps import ColumnSummary, MapList, MapSettings, fit_map, map_kind

__all__ = ["AUTO", "GivenMaps", "MapMaker"]

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
    >>> from polytrain.choice.map_maker import MapMaker
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
    >>> from polytrain.choice.map_maker import GivenMaps
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
