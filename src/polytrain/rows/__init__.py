"""Rows of a fit: an array, blocks on disk, or a Dask collection. All go through the same steps.

open_fit -> Rows.summary -> maps -> Rows.place -> learning.schedule.train
"""

from polytrain.learning.targets import ClassTarget, NumberTarget
from polytrain.rows.dask_blocks import is_dask, is_dask_frame, lazy_blocks
from polytrain.rows.opening import open_fit
from polytrain.rows.rows import Rows
from polytrain.rows.summary import Summary

__all__ = ["ClassTarget", "NumberTarget", "Rows", "Summary", "is_dask", "is_dask_frame", "lazy_blocks", "open_fit"]
