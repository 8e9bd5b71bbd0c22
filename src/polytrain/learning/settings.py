"""The settings of a fit, and the starts of its trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from polytrain.maps import MapList
from polytrain.tensor import clip_ranks

# Defaults where no data decide.
_PLAIN_RANK, _PLAIN_SWEEPS = 8, 4
# The same where validation rows decide when to stop.
_SWEEPS_TO_STOP = 20


@dataclass(frozen=True)
class Settings:
    """Settings of a fit, checked. "auto" leaves one open; a *plan* is settings of which `settled` leaves none open.

    Attributes
    ----------
    loss, alpha, init, solver, max_sweeps, tol
        As the parameters of the estimators; ``init`` is "given" where the trains have starts of their own.
    rank : "auto", int or sequence of int
        As the parameter of the estimators; in a plan, a tuple of the ranks of all bonds, including the two at the ends.
    patience : int
        Sweeps that may fail to lower the loss of the validation rows before the train stops.
    joint : bool
        Whether the probabilities of classes are a softmax of the scores of their trains.
    bases, degrees, bandwidth, relevance
        As the parameters of the estimators; bases, degrees and a given relevance have one entry per column. Not in a
        plan, which is about maps that are known.
    maps : MapList, optional
        Given maps, which take precedence over bases.
    groups : tuple of tuples of int, or None
        Which columns may act together; None for all.
    """

    loss: str
    rank: Any
    alpha: Any
    init: str
    solver: str
    max_sweeps: Any
    tol: float
    patience: int = 0
    joint: bool = False
    bases: Sequence[str] = ()
    degrees: Sequence[int] = ()
    bandwidth: Any = None
    relevance: Any = None
    maps: MapList | None = None
    groups: tuple[tuple[int, ...], ...] | None = None

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of a plan."""
        return tuple(self.rank)

    @property
    def n_sweeps(self) -> int:
        """Usual number of sweeps of a fit; more where validation rows decide when to stop."""
        return _SWEEPS_TO_STOP if self.patience else _PLAIN_SWEEPS

    def settled(self, dims: Sequence[int], **changes: Any) -> Settings:
        """Return the plan for maps of these dimensions; open settings get their usual values."""
        usual: dict[str, Any] = {
            "rank": clip_ranks(dims, _PLAIN_RANK if self.rank == "auto" else self.rank),
            "init": "linear" if self.init == "auto" else self.init,
            "max_sweeps": self.n_sweeps if self.max_sweeps == "auto" else self.max_sweeps,
        }
        of_maps: dict[str, Any] = {"bases": (), "degrees": (), "bandwidth": None, "relevance": None}
        return replace(self, **of_maps, maps=None, groups=None, **{**usual, **changes})

    def linear(self, dims: Sequence[int], alpha: float) -> Settings:
        """Return the plan of a linear model."""
        return self.settled(dims, rank=clip_ranks(dims, 2), alpha=alpha, init="linear", max_sweeps=0)


class Start(NamedTuple):
    """The start of one train: a seed, cores or those of all parts, and the file that keeps its state.

    Without cores, the plan says where to start; ranks are adapted to the plan's. If the file exists, the fit continues
    from it, with the same result.
    """

    seed: int
    cores: Sequence[Any] | None = None
    checkpoint: Path | None = None

    def following(self, cores: Sequence[Any] | None, stage: int) -> Start:
        """Start of a later stage of the same train, with a file of its own."""
        path = self.checkpoint
        return Start(self.seed, cores, None if path is None else path.with_suffix(f".{stage}{path.suffix}"))
