"""The type of arrays in annotations: shapes and dtypes stand in the docstrings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "FloatArray"]

Array = NDArray[Any]
FloatArray = NDArray[np.floating]
