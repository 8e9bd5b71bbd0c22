"""The maps of all columns of a model, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from polytrain.arrays import FloatArray
from polytrain.maps.feature_map import FeatureMap

__all__ = ["MapList"]

# Rows placed at once: few enough for clipped and shifted copies to stay in cache.
_BLOCK_ROWS = 8192
# Largest number of functions of a linear model, unless there are more columns.
_MOST_LINEAR = 4096


class MapList:
    """One map per column. Columns of one kind are placed, stored and exported together.

    Parameters
    ----------
    maps : iterable of FeatureMap
        The maps in the order of the columns.
    additive : bool, default=False
        Whether they are for an additive model: its linear model has all functions of each column.

    Attributes
    ----------
    dims : tuple of int
        Number of functions of each map.

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

    def __init__(self, maps: Iterable[FeatureMap], additive: bool = False) -> None:
        self._maps, self._additive = tuple(maps), additive
        self.dims = tuple(feature_map.n for feature_map in self._maps)
        self._whole: tuple[MapList, list[int]] | None = None

    def __getitem__(self, index: int) -> FeatureMap:
        return self._maps[index]

    def __iter__(self) -> Iterator[FeatureMap]:
        return iter(self._maps)

    def __len__(self) -> int:
        return len(self._maps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapList) and self._maps == other._maps

    def __repr__(self) -> str:
        return f"MapList({list(self._maps)!r})"

    @property
    def groups(self) -> list[tuple[type[FeatureMap], list[int]]]:
        """Kinds of maps, in the order in which they first appear, and the columns of each."""
        columns: dict[type[FeatureMap], list[int]] = {}
        for k, feature_map in enumerate(self._maps):
            columns.setdefault(type(feature_map), []).append(k)
        return list(columns.items())

    def members(self, columns: Sequence[int]) -> list[FeatureMap]:
        """Maps of some columns."""
        return [self._maps[k] for k in columns]

    def needed(self) -> MapList:
        """Return the maps that have more than the constant, or all if none has. They take rows of all columns."""
        columns = [k for k, n in enumerate(self.dims) if n > 1]
        if len(columns) in (0, len(self)):
            return self
        needed = MapList(self.members(columns), self._additive)
        needed._whole = self, columns
        return needed

    @property
    def whole(self) -> MapList:
        """The maps of all columns, of which these are the `needed` ones."""
        return self if self._whole is None else self._whole[0]

    def widened(self, parts: Sequence[Any], make: Callable[[Any], Any]) -> list[Any]:
        """Return one part of a train for every column, given those for these maps.

        ``make`` makes the part of a column that is not needed, given the part before it; None for the first.
        """
        if self._whole is None:
            return list(parts)
        given = dict(zip(self._whole[1], parts, strict=True))
        every: list[Any] = []
        for k in range(len(self.whole)):
            every.append(given[k] if k in given else make(every[-1] if every else None))
        return every

    def widened_ranks(self, ranks: Sequence[int]) -> tuple[int, ...]:
        """Return the ranks of a train for every column, those at its ends included."""
        return (1, *self.widened(ranks[1:], lambda before: before or 1))

    def place(self, X: FloatArray) -> FloatArray:
        """Raw rows (N, d) -> coordinates (d, N) of the same dtype."""
        if self._whole is not None:
            X = X[:, self._whole[1]]
        groups, out = self.groups, np.empty(X.shape[::-1], dtype=X.dtype)
        for kind, columns in groups:
            place, some = kind.place_all(self.members(columns)), columns if len(groups) > 1 else slice(None)
            for start in range(0, len(X), _BLOCK_ROWS):
                rows = slice(start, start + _BLOCK_ROWS)
                out[some, rows] = place(X[rows, some])
        return out

    def linear_sizes(self) -> list[int]:
        """Number of functions after the constant that a linear model has of each column: fewer with very many."""
        most = max(1, _MOST_LINEAR // len(self._maps))
        return [min(m.n - 1 if self._additive else m.n_linear, most) for m in self._maps]
