"""Figures and paths that the scripts which draw docs/images share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

REPOSITORY = Path(__file__).resolve().parents[1]
IMAGES = REPOSITORY / "docs" / "images"
RESULTS = REPOSITORY / "benchmarks" / "results"


def panels(count: int, width: float, height: float, **options: Any) -> tuple[Any, list[Any]]:
    """Return a figure with axes side by side; sizes are in inches."""
    figure, axes = plt.subplots(1, count, figsize=(width, height), layout="constrained", squeeze=False, **options)
    return figure, list(axes[0])


def save(figure: Any, name: str, dpi: int = 110) -> None:
    """Write a figure into docs/images, or into the file that the first argument of the script names."""
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else IMAGES / name, dpi=dpi)
