"""What there is to choose, on which rows, and what was chosen for the fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from polytrain.choice.calibration import class_factors
from polytrain.choice.chosen import Tried
from polytrain.choice.map_search import ALPHAS, BANDWIDTHS, ChoiceRows, MapMaker, MapSearch, MapTrial
from polytrain.learning.parts import Part, make_parts
from polytrain.learning.settings import Settings
from polytrain.learning.start import FEW_ROWS
from polytrain.learning.targets import Target
from polytrain.maps import ColumnSummary, MapList
from polytrain.rows import Rows
from polytrain.rows.summary import RowSketch

__all__ = ["LITTLE", "N_PARTS", "Choice", "HeldOut", "Settings", "Task"]

# With more columns than these, learning their relevance would take minutes.
_MOST_SIZED = 1000
# With more columns than these, and than this many times the rows, only straight lines without interactions are learned.
_WIDE = 10
# Few rows squared times columns times trains, beyond which the exact solution is rounded to a low rank.
_MOST_ROUNDED = 1e8
#: Columns of less relevance than this are reported as hardly needed.
LITTLE = 0.2
# Parts of the rows, one of which is held out, unless that makes them larger than this; smaller if a rung takes long.
N_PARTS, _PART_ROWS, _SLOW_PART_ROWS = 5, 15_000, 5000
# Sweeps of a comparison, and updates of cores that take half a second or so, however small they are.
_RUNG_SWEEPS, _MOST_UPDATES = 2, 500
# With more than `FEW_ROWS` different rows, the kernel problem is solved for a sample of them.
_SAMPLE_ROWS = 1000


class HeldOut(NamedTuple):
    """Scores of rows that were not learned from.

    Attributes
    ----------
    hashes : ndarray of shape (N,)
        Hashes of the rows, see `polytrain.rows.summary.row_hashes`.
    scores : ndarray of shape (N, n_trains)
    label_weights : ndarray of shape (N, n_classes)
        Weight of every row, at its label; without classes for numbers. Where rows have any number of labels, one more
        column has the weights of the rows.
    rows : tuple of Rows
        Where these rows are; there may be others among them.
    """

    hashes: NDArray
    scores: NDArray
    label_weights: NDArray
    rows: tuple[Rows, ...]

    @property
    def n_distinct(self) -> int:
        """Number of different rows."""
        return len(np.unique(self.hashes))


@dataclass(frozen=True)
class Choice:
    """What a fit will do, and why.

    Attributes
    ----------
    maps : MapList
    plan : Settings
        None of them open.
    starts : list of lists of cores, or None
        Where the sweeps begin, if not where the plan says.
    basis : str or None
        Kind of functions that was chosen for the columns that left it open.
    bandwidth : float or None
    relevances : tuple of float, or None
        Size of every column in units of the bandwidth; None for equal ones.
    reasons : tuple of str
        The decisions, in words.
    tried : tuple of Tried
    held_out : HeldOut or None
        For the calibration of probabilities, or the uncertainty of numbers; None where nothing was left to choose.
    parts : tuple of Part, or None
        What every train is a sum of, with ranks; then its start has a train for every part. None for one train.
    """

    maps: MapList
    plan: Settings
    starts: Sequence[Sequence[Any]] | None = None
    basis: str | None = None
    bandwidth: float | None = None
    relevances: tuple[float, ...] | None = None
    reasons: tuple[str, ...] = ()
    tried: tuple[Tried, ...] = ()
    held_out: HeldOut | None = None
    parts: tuple[Part, ...] | None = None


@dataclass
class Task:
    """What there is to choose, and notes about what was tried and decided.

    Attributes
    ----------
    settings : Settings
    rows : Rows
    targets, seeds : sequences
        One target and one seed per train.
    guides : sequence of Target
        Targets that maps are chosen by: all weigh all rows alike. The same object as ``targets``, if these do.
    n_jobs : int or None
    calibrate : bool
        Whether scores of held-out rows are wanted for probabilities.
    is_joint : bool
        Whether scores of all classes become probabilities together, by a softmax.
    may_finish : bool
        Whether the last sweeps may have the logistic loss, if held-out rows ask for it.
    """

    settings: Settings
    rows: Rows
    targets: Sequence[Target]
    guides: Sequence[Target]
    seeds: Sequence[int]
    n_jobs: int | None
    calibrate: bool
    is_joint: bool = False
    may_finish: bool = False
    tried: list[Tried] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @cached_property
    def maker(self) -> MapMaker:
        """Makes maps."""
        settings = self.settings
        if settings.maps is not None:
            return MapMaker.given(settings.maps)
        sizes = settings.relevance if isinstance(settings.relevance, tuple) else None
        return MapMaker(settings.bases, settings.degrees, self._columns, sizes)

    def _columns(self, with_values: bool) -> list[ColumnSummary]:
        """Summaries of the columns; values have the weights that the guides give their rows."""
        if not with_values:
            return self.rows.columns(False)
        sketch = self.rows.sketch
        return self.rows.columns(True, self.guides[0].sketched(sketch.sums, sketch.weights)[1])

    def search(self, rows: ChoiceRows) -> MapSearch:
        """Return a search for maps by leaving out rows of these; threads have no influence on its results."""
        return MapSearch(self.maker, self.alphas, rows, self.parts, effective_n_jobs(self.n_jobs))

    @property
    def bandwidth(self) -> Any:
        """The user's setting; None if no map has a bandwidth."""
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
    def n_folds(self) -> int:
        """How often trains are learned to choose among them: with few rows, each part is held out in turn."""
        return N_PARTS if self.n_rows <= FEW_ROWS else 1

    @property
    def n_rung_sweeps(self) -> int:
        """Sweeps of trains that are learned to choose among them."""
        sweeps: int = _RUNG_SWEEPS if self.settings.max_sweeps == "auto" else self.settings.max_sweeps
        return sweeps

    def n_updates(self, n_columns: int) -> int:
        """Updates of cores that one comparison of trains over some columns takes for each candidate."""
        grouped = sum(len(part.columns) for part in self.parts or () if not part.additive)
        return max(n_columns, 2 * grouped) * len(self.targets) * self.n_rung_sweeps * self.n_folds

    def is_slow(self, n_columns: int) -> bool:
        """Whether these take half a second or more, however low the rank: then leaving rows out chooses the maps."""
        return self.n_updates(n_columns) > _MOST_UPDATES

    @property
    def learns_sizes(self) -> bool:
        """Whether the relevance of columns is left open, and can be learned."""
        settings, n_columns = self.settings, self.maker.n_columns
        if not (settings.relevance == "auto" == self.bandwidth and self.parts is None and 1 < n_columns <= _MOST_SIZED):
            return False
        if settings.init == "given" or not isinstance(settings.rank, int | str):  # they are about all columns
            return False
        # What left-out rows say is about the exact solution, of which little is left where the rank must be low.
        work = float(self.n_rows) ** 2 * n_columns * len(self.targets)
        return self.n_rows > FEW_ROWS or work <= _MOST_ROUNDED

    def linear(self) -> Task:
        """Return the task without interactions and curves, if there are far more columns than rows; else itself."""
        settings, n_columns = self.settings, len(self.settings.bases)
        is_free = "auto" in settings.bases and settings.bandwidth == settings.rank == "auto" and settings.groups is None
        if not is_free or n_columns <= max(_MOST_SIZED, _WIDE * self.n_rows):
            return self
        gaps = self.rows.summary.has_missing
        lines = [
            (basis, "smooth" if gap else "power")[basis == "auto"]
            for basis, gap in zip(settings.bases, gaps, strict=True)
        ]
        groups = tuple((k,) for k in range(n_columns))
        self.reasons.append(f"{n_columns} columns and {self.n_rows} rows: straight lines without interactions")
        return replace(self, settings=replace(settings, bases=lines, degrees=[1] * n_columns, groups=groups))

    @property
    def needs_held_out(self) -> bool:
        """Whether scores of rows left out are wanted: for probabilities, or for the errors of numbers."""
        return self.calibrate or not self.rows.classify

    def label_weights(self, weights: NDArray, sums: NDArray) -> NDArray:
        """Return weights of rows at their labels, given those of the rows (N,), and of the rows at each label."""
        return sums if self.rows.summary.target is None else np.column_stack([sums, weights])

    @property
    def judges_probabilities(self) -> bool:
        """Whether trains are judged by the log loss of their probabilities; else by their own loss."""
        return (self.calibrate or self.settings.joint) and (self.is_joint or len(self.targets) == 1)

    @cached_property
    def n_rows(self) -> int:
        """Number of different rows."""
        return self.rows.sketch.n_distinct

    @cached_property
    def sample(self) -> RowSketch:
        """Rows of the kernel problem: all, if they are few."""
        return self.rows.sketch.take(slice(self.n_rows if self.n_rows <= FEW_ROWS else _SAMPLE_ROWS))

    @property
    def share(self) -> float:
        """Fraction of the rows that the sample has."""
        return self.sample.n_rows / self.n_rows

    @property
    def alphas(self) -> Sequence[float]:
        """Regularisations to try on the sample, the strongest first.

        An alpha is for all rows; for fewer it is larger, since noise does not shrink with them.
        """
        return ALPHAS if self.settings.alpha == "auto" else (self.settings.alpha / self.share,)

    @cached_property
    def sizes(self) -> NDArray:
        """Factors of the errors of every guide: several numbers to predict have equal rights."""
        if self.rows.classify:
            return np.ones(len(self.guides))
        rows = self._rows_of(self.guides)
        spread = np.sqrt(rows.weights @ np.square(rows.targets - rows.weights @ rows.targets))
        return 1.0 / np.where(spread > 0, spread, 1.0)

    @cached_property
    def choice_rows(self) -> ChoiceRows:
        """The sample with the targets of the guides."""
        return self._scaled_rows(self.sample)

    def n_parts(self, is_slow: bool) -> int:
        """Number of parts of the rows, the first of which is held out where trains are judged."""
        return max(N_PARTS, ceil(self.n_rows / (_SLOW_PART_ROWS if is_slow else _PART_ROWS)))

    def learned_rows(self, count: int) -> ChoiceRows:
        """The first rows of the sketch that no train is judged by later; with few rows, all are among them."""
        sketch = self.rows.sketch
        learned = np.ones(sketch.n_rows, dtype=bool)
        if self.n_rows > FEW_ROWS:
            for n_parts in (self.n_parts(False), self.n_parts(True)):
                learned &= sketch.hashes % np.uint64(n_parts) != 0
        return self._scaled_rows(sketch.take(np.flatnonzero(learned)[:count]))

    def _scaled_rows(self, sketch: RowSketch) -> ChoiceRows:
        rows = self._rows_of(self.guides, sketch)
        return rows._replace(targets=rows.targets * self.sizes)

    def _rows_of(self, targets: Sequence[Target], sketch: RowSketch | None = None) -> ChoiceRows:
        """The sample, or another sketch, with some targets, all of which weigh rows alike."""
        sketch = self.sample if sketch is None else sketch
        sketched = [target.sketched(sketch.sums, sketch.weights) for target in targets]
        weights = sketched[0][1]
        labels = None
        if self.judges_probabilities and self.n_rows <= FEW_ROWS:  # with more rows, trains are judged by log losses
            labels = sketch.sums * class_factors(targets, sketch.sums.shape[1])
        return ChoiceRows(
            sketch.X, np.stack([wanted for wanted, _ in sketched], axis=1), weights / weights.sum(), labels
        )

    def each_target(self) -> Iterator[tuple[NDArray, NDArray, NDArray]]:
        """For every train, which rows of the sample it is about, their targets and their weights."""
        for target in self.targets:
            rows = self._rows_of([target])
            used = np.flatnonzero(rows.weights)
            yield used, rows.targets[used, 0], rows.weights[used]

    def note_trial(self, step: str, trial: MapTrial, rank: int = 0) -> None:
        """Take note of a trial of maps."""
        n_rows = len(trial.residuals)
        self.note(step, trial, trial.alpha * n_rows / self.n_rows, rank, n_rows, trial.error)

    def note(self, step: str, trial: MapTrial, *rest: Any) -> None:
        """Take note of a line of the table."""
        bandwidth = float("nan") if trial.bandwidth is None else trial.bandwidth
        self.tried.append(Tried(step, trial.kind or "given", bandwidth, *rest))

    def explain_maps(self, trial: MapTrial, alpha: float) -> None:
        """Say which maps were chosen, if any were, and where the search has ended at an edge."""
        size = 1.0 if trial.bandwidth is None else trial.bandwidth
        if self.maker.is_free:
            self.reasons.append(f"functions {trial.kind!r} with bandwidth {size:.3g} and alpha {alpha:.2g}")
        if trial.sizes is not None:
            few = int(np.sum(np.array(trial.sizes) < LITTLE))
            self.reasons.append(f"columns differ in relevance: {few} of {len(trial.sizes)} were hardly needed")
        edges = {
            "bandwidth": (size, *BANDWIDTHS, self.bandwidth),
            "alpha": (trial.alpha, ALPHAS[-1], ALPHAS[0], self.settings.alpha),
        }
        for name, (value, least, largest, setting) in edges.items():
            if setting == "auto" and not least < value < largest:
                side = "smallest" if value <= least else "largest"
                self.reasons.append(f"this {name} is the {side} that is tried, so a better one may lie beyond")

    def conclude(self, trial: MapTrial, maps: MapList, plan: Settings, **entries: Any) -> Choice:
        """Return the choice with all notes; ``entries`` are starts, held-out rows and parts."""
        notes: dict[str, Any] = {"reasons": tuple(self.reasons), "tried": tuple(self.tried)}
        sizes = self.settings.relevance if trial.sizes is None else trial.sizes
        notes["relevances"] = None if sizes is None or isinstance(sizes, str) else tuple(map(float, sizes))
        return Choice(maps, plan, basis=trial.kind, bandwidth=trial.bandwidth, **notes, **entries)
