"""Feature maps: the functions of a column that a train combines, one map per column.

A new kind of map is one file beside this one, with a subclass of `FeatureMap`, and one line in ``KINDS`` below.
"""

from __future__ import annotations

from polytrain.maps.category import CategoryMap
from polytrain.maps.feature_map import AffinePowers, ColumnSummary, FeatureMap, MapSettings, ProductRule
from polytrain.maps.interpolated import InterpolatedMap
from polytrain.maps.map_list import MapList
from polytrain.maps.polynomial import PolynomialMap

__all__ = [
    "KINDS",
    "AffinePowers",
    "CategoryMap",
    "ColumnSummary",
    "FeatureMap",
    "InterpolatedMap",
    "MapList",
    "MapSettings",
    "PolynomialMap",
    "ProductRule",
    "basis_names",
    "fit_map",
    "map_kind",
]

#: All kinds of maps, by their names in model files.
KINDS: dict[str, type[FeatureMap]] = {kind.kind: kind for kind in (PolynomialMap, InterpolatedMap, CategoryMap)}


def basis_names() -> list[str]:
    """Return the names that an estimator's ``basis`` may have.

    Examples
    --------
    >>> from polytrain.maps import basis_names
    >>> basis_names()[:4]
    ['power', 'chebyshev', 'legendre', 'power-unscaled']
    """
    return [name for kind in KINDS.values() for name in kind.bases]


def map_kind(basis: str) -> type[FeatureMap]:
    """Return the kind of map that has a basis of this name."""
    for kind in KINDS.values():
        if basis in kind.bases:
            return kind
    raise ValueError(f"basis must be one of {basis_names()}, got {basis!r}.")


def fit_map(settings: MapSettings, column: ColumnSummary) -> FeatureMap:
    """Make the map of a column with this summary.

    Examples
    --------
    >>> from polytrain.maps import ColumnSummary, MapSettings, fit_map
    >>> fit_map(MapSettings("power", degree=2), ColumnSummary(0.0, 10.0))
    PolynomialMap(basis='power', n=3, low=0.0, high=10.0)
    """
    return map_kind(settings.basis).fit(settings, column)
