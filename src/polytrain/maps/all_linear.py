"""Maps as an additive model sees them: of every column it has all functions, where a linear one may have fewer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.maps.feature_map import ColumnSummary, FeatureMap, MapSettings, ProductRule
from polytrain.maps.map_list import MapList

__all__ = ["all_linear"]


def all_linear(maps: MapList) -> MapList:
    """Return maps whose linear models have all functions of every column, for learning.

    Examples
    --------
    >>> from polytrain.maps import MapList, PolynomialMap
    >>> from polytrain.maps.all_linear import all_linear
    >>> maps = MapList([PolynomialMap("power", 4)])
    >>> maps.linear_sizes(), all_linear(maps).linear_sizes()
    ([1], [3])
    """
    return MapList([one if one.n_linear == one.n - 1 else _AllLinear(one) for one in maps])


class _AllLinear(FeatureMap):
    """The functions of another map, all of which are linear; it is neither fitted nor stored."""

    kind = "all linear"
    bases = ()

    def __init__(self, inner: FeatureMap) -> None:
        self._inner, self.n, self.basis = inner, inner.n, inner.basis

    @classmethod
    def fit(cls, settings: MapSettings, column: ColumnSummary) -> Self:
        raise TypeError("this map is made of another one.")

    def place(self, column: NDArray) -> NDArray:
        return self._inner.place(column)

    def values(self, x: NDArray, out: NDArray | None = None) -> NDArray:
        return self._inner.values(x, out)

    def knots(self, dtype: np.dtype) -> NDArray | None:
        return self._inner.knots(dtype)

    @property
    def products(self) -> ProductRule:
        return self._inner.products

    @classmethod
    def pack(cls, maps: Any) -> tuple[dict[str, Any], dict[str, NDArray]]:
        raise TypeError("this map is not stored.")

    @classmethod
    def unpack(cls, entries: dict[str, Any], arrays: dict[str, NDArray], count: int) -> list[Self]:
        raise TypeError("this map is not stored.")
