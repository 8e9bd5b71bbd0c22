"""The order of the gallery: from first steps to special ones. Examples that are not named here come last."""

from __future__ import annotations

from pathlib import Path

_ORDER = (
    "classes",
    "numbers",
    "mixed_columns",
    "digits",
    "choice",
    "calibration",
    "uncertainty",
    "losses",
    "effects",
    "one_row",
    "constraints",
    "stopping",
    "stream",
    "dask",
    "files",
    "export_c",
    "paper",
)


def place(filename: str) -> tuple[int, str]:
    """Return what examples are sorted by: the place of ``plot_NAME.py`` in the list above, then its name."""
    name = Path(filename).stem.removeprefix("plot_")
    return _ORDER.index(name) if name in _ORDER else len(_ORDER), name
