"""What the user says about a fit, and what is left open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polytrain.learning.trainer import TrainPlan
from polytrain.maps import MapList
from polytrain.tensor import clip_ranks

__all__ = ["Wishes"]

# Where there is nothing to decide them by.
_PLAIN_RANK, _PLAIN_SWEEPS = 8, 4
# Where validation rows say when to stop.
_SWEEPS_TO_STOP = 20


@dataclass(frozen=True)
class Wishes:
    """What the user says, checked; "auto" leaves it open.

    Attributes
    ----------
    bases, degrees : lists, one entry per column
    scale : {"minmax"} or None
    bandwidth, alpha : float, "auto", or None
    rank : int, sequence of int, or "auto"
    init : str
    max_sweeps : int or "auto"
    maps : MapList, optional
        Given maps, whatever is said about bases.
    groups : tuple of tuples of int, or None
        Which columns may act together; None for all.
    loss, solver, tol, sampling, patience, joint
        As in `polytrain.learning.trainer.TrainPlan`.
    """

    bases: Sequence[str]
    degrees: Sequence[int]
    scale: str | None
    bandwidth: Any
    alpha: Any
    rank: Any
    init: str
    max_sweeps: Any
    loss: str
    solver: str
    tol: float
    sampling: str | None
    patience: int = 0
    joint: bool = False
    maps: MapList | None = None
    groups: tuple[tuple[int, ...], ...] | None = None

    @property
    def n_sweeps(self) -> int:
        """How many sweeps a fit usually takes; many, where validation rows say when to stop."""
        return _SWEEPS_TO_STOP if self.patience else _PLAIN_SWEEPS

    def plan(self, dims: tuple[int, ...], **settings: Any) -> TrainPlan:
        """Return a plan with these settings; what is still open has a usual value."""
        entries = {
            "ranks": clip_ranks(dims, _PLAIN_RANK if self.rank == "auto" else self.rank),
            "init": "linear" if self.init == "auto" else self.init,
            "max_sweeps": self.n_sweeps if self.max_sweeps == "auto" else self.max_sweeps,
            "alpha": self.alpha,
            **settings,
        }
        usual: dict[str, Any] = {
            "solver": self.solver,
            "tol": self.tol,
            "sampling": self.sampling,
            "patience": self.patience,
            "joint": self.joint,
        }
        return TrainPlan(self.loss, dims, **usual, **entries)

    def linear_plan(self, dims: tuple[int, ...], alpha: float) -> TrainPlan:
        """Return the plan of a linear model."""
        return self.plan(dims, ranks=clip_ranks(dims, 2), alpha=alpha, init="linear", max_sweeps=0)
