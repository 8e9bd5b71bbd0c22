"""Ranges of a fitted model's features."""

from typing import NamedTuple

import numpy as np


class Ranges(NamedTuple):
    low: np.ndarray
    high: np.ndarray


def ranges(model):
    """Least and largest value of every feature in the training rows."""
    return Ranges(*np.array([feature_map.range for feature_map in model.maps_]).T)
