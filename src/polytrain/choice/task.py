"""What there is to choose, on which rows, and a notebook of what was tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from polytrain.choice.maps import ALPHAS, LARGEST_BANDWIDTH, LEAST_BANDWIDTH, ChoiceRows, GivenMaps, MapMaker, MapTrial
from polytrain.choice.result import Choice, HeldOut, LeftOutScores, Tried
from polytrain.learning.losses import get_loss
from polytrain.learning.parts import Part, joined_ranks, make_parts, with_rank
from polytrain.learning.start import FEW_ROWS
from polytrain.learning.targets import Target
from polytrain.learning.trainer import TrainPlan
from polytrain.maps import ColumnSummary, MapList
from polytrain.rows import Rows
from polytrain.rows.sketch import RowSketch
from polytrain.tensor import clip_ranks

__all__ = ["Settings", "Task"]

# With more than `FEW_ROWS` different rows, the kernel problem is solved for a sample of them.
_SAMPLE_ROWS = 1000


@dataclass
class Task:
    """What there is to choose.

    Attributes
    ----------
    settings, rows, targets, guides, seeds, n_jobs, calibrate
        See `polytrain.choice.choose`.
    tried, reasons
        The notebook.
    """

    settings: Settings
    rows: Rows
    targets: Sequence[Target]
    guides: Sequence[Target]
    seeds: Sequence[int]
    n_jobs: int | None
    calibrate: bool
    tried: list[Tried] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @cached_property
    def maker(self) -> MapMaker:
        """Makes maps."""
        settings = self.settings
        if settings.maps is not None:
            return GivenMaps(settings.maps, self.parts)
        return MapMaker(settings.bases, settings.degrees, settings.scale, self._columns, self.parts)

    def _columns(self, with_values: bool) -> list[ColumnSummary]:
        """What is known about the columns; their values weigh what the guides let their rows weigh."""
        if not with_values:
            return self.rows.columns(False)
        sketch = self.rows.sketch
        return self.rows.columns(True, self.guides[0].sketched(sketch.sums, sketch.weights)[1])

    @property
    def bandwidth(self) -> Any:
        """What the user says about it; None if no map has one."""
        return self.settings.bandwidth if self.maker.has_bandwidth else None

    @cached_property
    def parts(self) -> tuple[Part, ...] | None:
        """What the model is a sum of, if not all columns may act together."""
        groups = self.settings.groups
        return None if groups is None else make_parts(groups, len(self.settings.bases))

    @property
    def is_additive(self) -> bool:
        """Whether no columns may act together."""
        return self.parts is not None and all(part.additive for part in self.parts)

    @property
    def is_open(self) -> bool:
        """Whether anything is left to choose, or to learn about left-out rows."""
        free = self.maker.is_free or "auto" in (self.bandwidth, self.settings.alpha)
        return free or self.settings.rank == "auto" or self.calibrate

    @property
    def has_noise(self) -> bool:
        """Whether scores of rows that were left out are wanted for the uncertainty of numbers."""
        return not self.rows.classify and get_loss(self.settings.loss).has_noise

    @property
    def n_threads(self) -> int:
        """Threads that may compute; they have no influence on any result."""
        return effective_n_jobs(self.n_jobs)

    @cached_property
    def n_rows(self) -> int:
        """How many different rows there are."""
        return self.rows.sketch.n_distinct

    @cached_property
    def sample(self) -> RowSketch:
        """Rows of the kernel problem: all, if they are few."""
        return self.rows.sketch.first(self.n_rows if self.n_rows <= FEW_ROWS else _SAMPLE_ROWS)

    @property
    def share(self) -> float:
        """Part of the rows that the sample has."""
        return self.sample.n_rows / self.n_rows

    @property
    def alphas(self) -> Sequence[float]:
        """Regularisations to try on the sample, the strongest first.

        An alpha is for all rows; for fewer it is larger, since noise does not shrink with them.
        """
        return ALPHAS if self.settings.alpha == "auto" else (self.settings.alpha / self.share,)

    @cached_property
    def sizes(self) -> NDArray:
        """What the errors of every guide are multiplied by: several numbers to predict have equal rights."""
        if self.rows.classify:
            return np.ones(len(self.guides))
        rows = self.rows_of(self.guides)
        spread = np.sqrt(rows.weights @ np.square(rows.targets - rows.weights @ rows.targets))
        return 1.0 / np.where(spread > 0, spread, 1.0)

    @cached_property
    def choice_rows(self) -> ChoiceRows:
        """The sample with what the guides want."""
        rows = self.rows_of(self.guides)
        return rows._replace(targets=rows.targets * self.sizes)

    def rows_of(self, targets: Sequence[Target]) -> ChoiceRows:
        """The sample with what some targets want, all of which weigh rows alike."""
        found = [target.sketched(self.sample.sums, self.sample.weights) for target in targets]
        weights = found[0][1]
        return ChoiceRows(self.sample.X, np.stack([wanted for wanted, _ in found], axis=1), weights / weights.sum())

    def each_target(self) -> Iterator[tuple[NDArray, NDArray, NDArray]]:
        """For every train, which rows of the sample it knows, what it wants of them, and their weights."""
        for target in self.targets:
            rows = self.rows_of([target])
            used = np.flatnonzero(rows.weights)
            yield used, rows.targets[used, 0], rows.weights[used]

    def plain(self, maps: MapList) -> Choice:
        """Return the choice where nothing is open."""
        if self.parts is None:
            return Choice(maps, self.settings.plan(maps.dims), bandwidth=self.bandwidth)
        parts = with_rank(self.parts, maps.dims, self.settings.rank)
        plan = self.settings.plan(maps.dims, ranks=joined_ranks(parts, maps.dims))
        return Choice(maps, plan, bandwidth=self.bandwidth, parts=parts)

    # --- the notebook -------------------------------------------------------------------------------------------------

    def note_trial(self, step: str, trial: MapTrial, n_rows: int, rank: int = 0) -> None:
        """Take note of what leaving rows out says about maps."""
        alpha = trial.alpha * n_rows / self.n_rows
        self.note(step, trial.kind, trial.bandwidth, alpha, rank, n_rows, trial.error)

    def note(self, step: str, kind: str | None, bandwidth: float | None, *rest: Any) -> None:
        """Take note of a line of the table."""
        self.tried.append(Tried(step, kind or "given", float("nan") if bandwidth is None else bandwidth, *rest))

    def say_maps(self, trial: MapTrial, alpha: float) -> None:
        """Say which maps were chosen, if any were, and where the search has ended at an edge."""
        size = 1.0 if trial.bandwidth is None else trial.bandwidth
        if self.maker.is_free:
            self.reasons.append(f"functions {trial.kind!r} with bandwidth {size:.3g} and alpha {alpha:.2g}")
        edges = {
            "bandwidth": (size, LEAST_BANDWIDTH, LARGEST_BANDWIDTH, self.bandwidth),
            "alpha": (trial.alpha, ALPHAS[-1], ALPHAS[0], self.settings.alpha),
        }
        for name, (value, least, largest, wish) in edges.items():
            if wish == "auto" and not least < value < largest:
                side = "smallest" if value <= least else "largest"
                self.reasons.append(f"this {name} is the {side} that is tried, so a better one may lie beyond")

    def conclude(
        self,
        trial: MapTrial,
        maps: MapList,
        plan: TrainPlan,
        starts: Any,
        held_out: HeldOut | None,
        left_out: LeftOutScores | None,
        parts: tuple[Part, ...] | None = None,
    ) -> Choice:
        """Return the choice with all that was noted."""
        reasons, tried = tuple(self.reasons), tuple(self.tried)
        return Choice(maps, plan, starts, trial.kind, trial.bandwidth, reasons, tried, held_out, left_out, parts)


# Where there is nothing to decide them by.
_PLAIN_RANK, _PLAIN_SWEEPS = 8, 4
# Where validation rows say when to stop.
_SWEEPS_TO_STOP = 20


@dataclass(frozen=True)
class Settings:
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

    def plan(self, dims: tuple[int, ...], **changes: Any) -> TrainPlan:
        """Return a plan with these settings; what is still open has a usual value."""
        entries = {
            "ranks": clip_ranks(dims, _PLAIN_RANK if self.rank == "auto" else self.rank),
            "init": "linear" if self.init == "auto" else self.init,
            "max_sweeps": self.n_sweeps if self.max_sweeps == "auto" else self.max_sweeps,
            "alpha": self.alpha,
            **changes,
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
