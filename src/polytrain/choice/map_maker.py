"""Maps of all columns, for any kind of functions and any bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from polytrain.maps import ColumnSummary, FeatureMap, MapList, MapSettings, fit_map, map_kind

__all__ = ["AUTO", "MapMaker"]

#: The basis of columns that leave the choice to the fit.
AUTO = "auto"
# A column with more different values than these, one of which has more than this part of the rows, has ties.
_MANY_VALUES, _LARGE_SHARE = 16, 0.1


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
    ) -> None:
        self._bases, self._degrees, self._scale = bases, degrees, scale
        self.is_free = AUTO in bases
        self.has_bandwidth = self.is_free or any(map_kind(basis).needs_values for basis in set(bases))
        self._columns = get_columns(self.has_bandwidth)
        free = [column for column, basis in zip(self._columns, bases, strict=True) if basis == AUTO]
        #: Whether most rows share few of many values in some column: its ranks tell little about the other values.
        self.has_ties = any(map(_is_tied, free))
        self._fitted: dict[str | None, tuple[list[MapSettings], list[FeatureMap]]] = {}

    def __call__(self, kind: str | None, bandwidth: float | None) -> MapList:
        """Make maps with functions of this kind where columns leave it open."""
        if kind not in self._fitted:
            settings = [
                MapSettings(str(kind) if basis == AUTO else basis, degree, self._scale, bandwidth, len(self._bases))
                for basis, degree in zip(self._bases, self._degrees, strict=True)
            ]
            made = [fit_map(*pair) for pair in zip(settings, self._columns, strict=True)]
            self._fitted[kind] = settings, made
            return MapList(made)
        before, made = self._fitted[kind]
        after = map(partial(replace, bandwidth=bandwidth), before)
        if all(settings.bandwidth == bandwidth for settings in before):
            return MapList(made)
        pairs = zip(made, before, after, self._columns, strict=True)
        return MapList([feature_map.refit(*settings) for feature_map, *settings in pairs])


def _is_tied(column: ColumnSummary) -> bool:
    return len(column.values) > _MANY_VALUES and float(column.weights.max()) > _LARGE_SHARE * float(
        column.weights.sum()
    )
