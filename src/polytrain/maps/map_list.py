"""The maps of all columns of a model, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from polytrain.maps.feature_map import FeatureMap

__all__ = ["MapList"]

# Rows placed at once: few enough for clipped and shifted copies to stay in cache.
_BLOCK_ROWS = 8192
# Functions that a linear model has, unless there are more columns.
_MOST_LINEAR = 4096


class MapList(Sequence[FeatureMap]):
    """One map per column. Columns of one kind are placed, stored and exported together.

    Parameters
    ----------
    maps : sequence of FeatureMap
        The maps in the order of the columns.

    Attributes
    ----------
    dims : tuple of int
        Number of functions of each map.
    groups : list of (type, list of int)
        Kinds of maps, in the order in which they first appear, and the columns of each.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.maps import MapList, PolynomialMap
    >>> maps = MapList([PolynomialMap("power", 2, 0.0, 4.0), PolynomialMap("legendre", 3)])
    >>> maps.dims
    (2, 3)
    >>> maps.place(np.array([[3.0, 0.5]]))
    array([[0.5],
           [0.5]])
    """

    def __init__(self, maps: Sequence[FeatureMap]) -> None:
        self._maps = tuple(maps)
        self.dims = tuple(feature_map.n for feature_map in self._maps)
        places: dict[type[FeatureMap], list[int]] = {}
        for k, feature_map in enumerate(self._maps):
            places.setdefault(type(feature_map), []).append(k)
        self.groups = list(places.items())
        # Made when rows come: they are closures, which cannot be pickled.
        self._placers: list | None = None

    @overload
    def __getitem__(self, index: int) -> FeatureMap: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FeatureMap]: ...
    def __getitem__(self, index: int | slice) -> FeatureMap | Sequence[FeatureMap]:
        return self._maps[index]

    def __len__(self) -> int:
        return len(self._maps)

    def __iter__(self) -> Iterator[FeatureMap]:
        return iter(self._maps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapList) and self._maps == other._maps

    def __hash__(self) -> int:
        return hash(self._maps)

    def __repr__(self) -> str:
        return f"MapList({list(self._maps)!r})"

    def __getstate__(self) -> tuple[FeatureMap, ...]:
        return self._maps

    def __setstate__(self, state: tuple[FeatureMap, ...]) -> None:
        self.__init__(state)  # type: ignore[misc]

    def members(self, columns: Sequence[int]) -> list[FeatureMap]:
        """Maps of some columns."""
        return [self._maps[k] for k in columns]

    def place(self, X: NDArray) -> NDArray:
        """Raw rows (N, d) -> coordinates (d, N) of the same dtype."""
        if self._placers is None:
            self._placers = [(columns, kind.place_all(self.members(columns))) for kind, columns in self.groups]
        if len(self._placers) == 1 and len(X) <= _BLOCK_ROWS:
            return self._placers[0][1](X)
        out = np.empty(X.shape[::-1], dtype=X.dtype)
        for start in range(0, len(X), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            for columns, place in self._placers:
                if len(self._placers) == 1:
                    out[:, rows] = place(X[rows])
                else:
                    out[columns, rows] = place(X[rows, columns])
        return out

    def linear_sizes(self) -> list[int]:
        """Number of functions that a linear model has of each column: with very many columns, the first ones only."""
        most = max(1, _MOST_LINEAR // len(self._maps))
        return [min(feature_map.n_linear, most) for feature_map in self._maps]
