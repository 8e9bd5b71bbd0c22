"""Rows whose columns are placed by maps: one block in the memory of this process, or partitions elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from polytrain.learning.engines.tasks import Runner, TaskEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.problem import ProblemRows
from polytrain.learning.settings import Settings
from polytrain.learning.targets import JointTarget, PartTarget, PlacedBlock, Target
from polytrain.maps import MapList

__all__ = ["Budget", "PlacedRows"]

# Bytes of a row besides its columns and environments: about eight numbers in float64.
_ROW_BYTES = 64


class Budget(NamedTuple):
    """Memory that rows may take in this process, and the largest number and size of the rows."""

    max_bytes: int
    n_rows: int
    itemsize: int


class PlacedRows:
    """Placed rows: a block, or the partitions of a runner, which are brought here if that fits a budget."""

    def __init__(
        self,
        block: PlacedBlock | None = None,
        runner: Runner | None = None,
        partitions: Sequence[Any] = (),
        budget: Budget | None = None,
    ) -> None:
        self._block, self._runner, self._partitions, self._budget = block, runner, partitions, budget

    @cached_property
    def block(self) -> PlacedBlock:
        """All rows, in the memory of this process."""
        if self._block is not None or self._runner is None:
            return self._block  # type: ignore[return-value]
        columns, *others = zip(*self._runner.collect(self._partitions), strict=True)
        return PlacedBlock(np.concatenate(columns, axis=1), *(np.concatenate(arrays) for arrays in others))

    def n_processes(self, plan: Settings) -> int:
        """How many processes can learn a train of this plan from one block; 0 if the rows stay in partitions."""
        if self._budget is None:
            return sys.maxsize
        max_bytes, n_rows, itemsize = self._budget
        # The placed columns are there twice while they are joined. A process has the environments, a quarter of them
        # more while they are replaced, and targets, weights, scores, slopes and curvatures.
        rows = n_rows * (2 * (len(plan.ranks) - 1) * itemsize + _ROW_BYTES)
        environments = n_rows * (5 * sum(plan.ranks) * itemsize // 4 + _ROW_BYTES)
        return max(0, (max_bytes - rows) // max(1, environments))

    def here(self) -> PlacedRows:
        """Return the same rows as one block in the memory of this process."""
        return PlacedRows(self.block)

    def problem(
        self, plan: Settings, maps: MapList, target: Target | JointTarget | PartTarget
    ) -> ProblemRows | TaskEngine:
        """Return the problem of one train: its rows if they are in this process, else an engine where they are."""
        if self._runner is None:
            return target.problem(self.block).normalised()
        problem = self._runner.map(target.problem, self._partitions)
        return TaskEngine(self._runner, problem, get_loss(plan.loss), maps)
