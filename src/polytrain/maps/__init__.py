"""Feature maps: how a column enters a train, one map per column.

A new kind of map is one file beside this one, with a subclass of `FeatureMap`, and one line in ``KINDS`` below.
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import NDArray

from polytrain.maps.feature_map import AffinePowers, ColumnSummary, FeatureMap, ProductRule
from polytrain.maps.map_list import MapList
from polytrain.maps.polynomial import PolynomialMap

__all__ = [
    "KINDS",
    "AffinePowers",
    "ColumnSummary",
    "FeatureMap",
    "MapList",
    "PolynomialMap",
    "ProductRule",
    "basis_names",
    "fit_map",
    "fit_maps",
]

#: All kinds of maps, by the name under which a model file knows them.
KINDS: dict[str, type[FeatureMap]] = {kind.kind: kind for kind in (PolynomialMap,)}


def basis_names() -> list[str]:
    """Names that an estimator's ``basis`` may have.

    Examples
    --------
    >>> from polytrain.maps import basis_names
    >>> basis_names()
    ['power', 'chebyshev', 'legendre']
    """
    return [name for kind in KINDS.values() for name in kind.bases]


def fit_map(basis: str, degree: int, scale: str | None, column: ColumnSummary) -> FeatureMap:
    """Make the map of one column.

    Parameters
    ----------
    basis : str
        One of `basis_names`.
    degree : int
        How rich the map is; the largest power, for polynomials.
    scale : {"minmax"} or None
        Whether the fitted range is mapped onto [-1, 1], and values outside are clipped to it.
    column : ColumnSummary
        What is known about the column's values.

    Returns
    -------
    FeatureMap

    Examples
    --------
    >>> from polytrain.maps import ColumnSummary, fit_map
    >>> fit_map("power", 2, "minmax", ColumnSummary(0.0, 10.0))
    PolynomialMap(basis='power', n=3, low=0.0, high=10.0)
    """
    for kind in KINDS.values():
        if basis in kind.bases:
            return kind.fit(basis, degree, scale, column)
    raise ValueError(f"basis must be one of {basis_names()}, got {basis!r}.")


def fit_maps(
    basis: str | Sequence[str],
    degree: int | Sequence[int],
    scale: str | None,
    low: Sequence[float] | NDArray,
    high: Sequence[float] | NDArray,
) -> MapList:
    """Make the maps of all columns from their ranges; a single basis or degree is for all of them.

    Examples
    --------
    >>> from polytrain.maps import fit_maps
    >>> fit_maps("power", [1, 2], "minmax", [0.0, -1.0], [1.0, 1.0]).dims
    (2, 3)
    """
    summaries = [ColumnSummary(float(least), float(most)) for least, most in zip(low, high, strict=True)]
    bases = [basis] * len(summaries) if isinstance(basis, str) else basis
    degrees = degree if isinstance(degree, Sequence) else [int(degree)] * len(summaries)
    columns = zip(bases, degrees, summaries, strict=True)
    return MapList([fit_map(name, count, scale, column) for name, count, column in columns])
