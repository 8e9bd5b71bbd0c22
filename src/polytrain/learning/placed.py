"""Rows whose columns are placed by maps: one block in the memory of this process, or partitions elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from polytrain.learning.engines.tasks import Runner, TaskEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.problem import ProblemRows
from polytrain.learning.settings import Settings
from polytrain.learning.targets import JointTarget, PartTarget, PlacedBlock, Target
from polytrain.maps import MapList

# Bytes of a row besides its columns and environments: about eight numbers in float64.
_ROW_BYTES = 64


@dataclass(eq=False)
class PlacedRows:
    """Placed rows: a block, or the partitions of a runner, which are brought here if that fits a budget.

    The budget is the memory of this process, ``row_bytes`` for each row, whose numbers have ``itemsize`` bytes.
    """

    in_memory: PlacedBlock | None = None
    runner: Runner | None = None
    partitions: Sequence[Any] = ()
    row_bytes: float = 0.0
    itemsize: int = 8

    @cached_property
    def block(self) -> PlacedBlock:
        """All rows, in the memory of this process."""
        if self.runner is None:
            return self.in_memory  # type: ignore[return-value]
        columns, *others = zip(*self.runner.collect(self.partitions), strict=True)
        return PlacedBlock(np.concatenate(columns, axis=1), *(np.concatenate(arrays) for arrays in others))

    def n_processes(self, plan: Settings) -> int:
        """How many processes can learn a train of this plan from one block; 0 if the rows stay in partitions."""
        if self.runner is None:
            return sys.maxsize
        # The placed columns are there twice while they are joined. A process has the environments, a quarter of them
        # more while they are replaced, and targets, weights, scores, slopes and curvatures.
        rows = 2 * (len(plan.ranks) - 1) * self.itemsize + _ROW_BYTES
        environments = 1.25 * sum(plan.ranks) * self.itemsize + _ROW_BYTES
        return max(0, int((self.row_bytes - rows) / environments))

    def here(self) -> PlacedRows:
        """Return the same rows as one block in the memory of this process."""
        return PlacedRows(self.block)

    def problem(
        self, plan: Settings, maps: MapList, target: Target | JointTarget | PartTarget
    ) -> ProblemRows | TaskEngine:
        """Return the problem of one train: its rows if they are in this process, else an engine where they are."""
        if self.runner is None:
            return target.problem(self.block).normalised()
        problem = self.runner.map(target.problem, self.partitions)
        return TaskEngine(self.runner, problem, get_loss(plan.loss), maps)
