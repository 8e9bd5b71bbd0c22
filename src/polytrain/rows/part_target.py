"""What one part of a sum of trains learns, while all other parts stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.parts import Part, part_scores
from polytrain.learning.problem import ProblemRows
from polytrain.maps import MapList
from polytrain.rows.targets import PlacedBlock, Target

__all__ = ["KnownScores", "OtherParts", "PartTarget"]


@dataclass(frozen=True, eq=False)
class KnownScores:
    """Scores (N,) of the other parts, where all rows are in one place."""

    scores: NDArray

    def of(self, columns: NDArray, numbers: NDArray) -> NDArray:
        """Scores of the rows with these numbers."""
        return self.scores[numbers]


@dataclass(frozen=True, eq=False)
class OtherParts:
    """The other parts themselves, evaluated wherever the rows are."""

    parts: Sequence[Part]
    maps: MapList
    trains: Sequence[Sequence[NDArray]]

    def of(self, columns: NDArray, numbers: NDArray) -> NDArray:
        """Scores of rows with these placed columns."""
        total = np.zeros(columns.shape[1])
        for part, cores in zip(self.parts, self.trains, strict=True):
            total += part_scores(part, self.maps, cores, columns)
        return total


@dataclass(frozen=True, eq=False)
class PartTarget:
    """What a target wants of one part: rows have its columns only, and their scores begin at those of the other parts.

    Attributes
    ----------
    target : Target
    columns : tuple of int
    others : KnownScores or OtherParts
    """

    target: Target
    columns: tuple[int, ...]
    others: KnownScores | OtherParts

    @property
    def keeps_all(self) -> bool:
        """As the target says."""
        return self.target.keeps_all

    @property
    def offset(self) -> float:
        """As the target says."""
        return self.target.offset

    @property
    def steepness(self) -> float:
        """As the target says."""
        return self.target.steepness

    def wanted(self, y: NDArray) -> tuple[NDArray, NDArray]:
        """As the target says."""
        return self.target.wanted(y)

    def sketched(self, sums: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
        """As the target says."""
        return self.target.sketched(sums, weights)

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """Rows of the target's problem, which may be fewer: in the place of keys, numbers tell which they are."""
        problem = self.target.problem(rows._replace(keys=np.arange(len(rows.keys))))
        offset = self.others.of(problem.columns, problem.keys)
        if problem.offset is not None:
            offset = offset + problem.offset
        columns = np.ascontiguousarray(problem.columns[list(self.columns)])
        return problem._replace(columns=columns, keys=rows.keys[problem.keys], offset=offset)
