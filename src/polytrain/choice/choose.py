"""What a fit is to do, where the user leaves it open: maps, bandwidth, alpha, rank and start.

Few rows: the kernel problem is solved exactly. Leaving rows out chooses maps and alpha, and the solution is rounded to
a train. More rows: leaving rows out of a sample proposes, and trains of growing rank on held-out rows decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from polytrain.choice.evidence import simplest, strongest
from polytrain.choice.ladder import LINEAR, Ladder, Rung
from polytrain.choice.map_maker import MapMaker
from polytrain.choice.maps import (
    ALPHAS,
    KINDS,
    ChoiceRows,
    MapTrial,
    additive_kernel,
    additive_trial,
    best_of,
    compare_maps,
    try_maps,
)
from polytrain.learning.dual import leave_one_out, product_kernel, round_rank_ones, solve_dual
from polytrain.learning.losses import get_loss
from polytrain.learning.start import linear_cores
from polytrain.learning.threads import one_blas_thread
from polytrain.learning.trainer import TrainPlan
from polytrain.maps import MapList
from polytrain.rows import Rows
from polytrain.rows.sketch import RowSketch
from polytrain.rows.targets import Target
from polytrain.tensor import clip_ranks

__all__ = ["Choice", "HeldOut", "Tried", "Wishes", "choose"]

# Up to so many different rows the kernel problem is solved for all of them; of more, for a sample.
_FEW_ROWS, _SAMPLE_ROWS = 1300, 1000
# Kinds of maps are compared on so many rows. With more columns than these, only those that are quickly found.
_COMPARE_ROWS = 500
_MANY_COLUMNS, _QUICK_KINDS = 300, ("smooth", "smooth-rank")
# Kinds that are compared on held-out rows, and how clearly others must be worse to be left out of that.
# They are compared at this rank.
_FIRST_RANK = 4
_FINALISTS, _CLEARLY, _TELLS_RARE = 3, 2.0, "spline-distinct"
_DUAL_RANKS, _DUAL_TOLERANCE, _DUAL_WORK = (32, 24, 16, 8, 4), 1e-3, 2e10
# Part of the squared coefficients whose loss does not matter.
_LITTLE = 1e-4
_PLAIN_SWEEPS, _DUAL_SWEEPS, _RUNG_SWEEPS, _LAST_SWEEPS = 4, 1, 2, 2
# Curvature of the squared loss in units of that of the logistic loss at a score of 0.
_LOGISTIC_SHARE = 8.0
_ALPHA_STEP, _MOST_ALPHA_STEPS = sqrt(10.0), 8
# Fewer held-out rows than these must speak clearly.
_WEAK_EVIDENCE = 500
# Smaller alphas drown in rounding.
_LEAST_ALPHA = 1e-12


class Tried(NamedTuple):
    """One line of the table of what was tried.

    Attributes
    ----------
    step : {"maps", "bandwidth", "linear", "rank", "alpha"}
        What was to be decided.
    basis : str
        Kind of functions; "given" where the user said it.
    bandwidth : float
        NaN where there is none.
    alpha : float
        For all rows.
    rank : int
        1 for the linear model, 0 for a rank without limit.
    n_rows : int
        Different rows that the model has learned from.
    error : float
        Mean loss on rows that it has not: squared errors are in units of the variance of a number, or for targets -1
        and 1.
    """

    step: str
    basis: str
    bandwidth: float
    alpha: float
    rank: int
    n_rows: int
    error: float


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
    loss, solver, tol, sampling
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

    def plan(self, dims: tuple[int, ...], **settings: Any) -> TrainPlan:
        """Return a plan; what is open is as it was before there was a choice."""
        entries = {
            "ranks": clip_ranks(dims, 8 if self.rank == "auto" else self.rank),
            "init": "linear" if self.init == "auto" else self.init,
            "max_sweeps": _PLAIN_SWEEPS if self.max_sweeps == "auto" else self.max_sweeps,
            "alpha": self.alpha,
            **settings,
        }
        return TrainPlan(self.loss, dims, solver=self.solver, tol=self.tol, sampling=self.sampling, **entries)


class HeldOut(NamedTuple):
    """Scores (N, n_trains) of rows that were not learned from, targets or weights of labels (N, q), weights (N,)."""

    scores: NDArray
    label_weights: NDArray
    n_distinct: int


@dataclass(frozen=True)
class Choice:
    """What a fit will do, and why.

    Attributes
    ----------
    maps : MapList
    plan : TrainPlan
    starts : list of lists of cores, or None
        Where the sweeps begin, if not where the plan says.
    basis : str or None
        Kind of functions that was chosen for the columns that left it open.
    bandwidth : float or None
    reasons : tuple of str
        What was decided, in words.
    tried : tuple of Tried
    held_out : HeldOut or None
        What the calibration of probabilities needs.
    """

    maps: MapList
    plan: TrainPlan
    starts: Sequence[Sequence[NDArray]] | None = None
    basis: str | None = None
    bandwidth: float | None = None
    reasons: tuple[str, ...] = ()
    tried: tuple[Tried, ...] = ()
    held_out: HeldOut | None = None


@dataclass
class _Chooser:
    wishes: Wishes
    rows: Rows
    targets: Sequence[Target]
    guides: Sequence[Target]
    seeds: Sequence[int]
    n_jobs: int | None
    calibrate: bool
    tried: list[Tried] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def run(self) -> Choice:
        wishes, rows = self.wishes, self.rows
        self.maker = MapMaker(wishes.bases, wishes.degrees, wishes.scale, rows.columns)
        self.bandwidth = wishes.bandwidth if self.maker.has_bandwidth else None
        given = not self.maker.is_free and self.bandwidth != "auto"
        if given and wishes.alpha != "auto" and wishes.rank != "auto" and not self.calibrate:
            maps = self.maker(None, self.bandwidth)
            return Choice(maps, wishes.plan(maps.dims), bandwidth=self.bandwidth)
        self.n_threads = effective_n_jobs(self.n_jobs)
        self.n_rows = rows.sketch.n_distinct
        is_exact = get_loss(wishes.loss).quadratic and self.n_rows <= _FEW_ROWS and wishes.init in ("auto", "dual")
        sample = rows.sketch.first(self.n_rows if self.n_rows <= _FEW_ROWS else _SAMPLE_ROWS)
        self.share = sample.n_rows / self.n_rows
        self.sizes = np.ones(len(self.guides))
        chosen = self._sketched(sample, self.guides)
        if not rows.classify:
            spread = np.sqrt(chosen.weights @ np.square(chosen.targets - chosen.weights @ chosen.targets))
            self.sizes = 1.0 / np.where(spread > 0, spread, 1.0)
            chosen = chosen._replace(targets=chosen.targets * self.sizes)
        self.sample = sample
        # An alpha is for all rows; for fewer it is larger, since noise does not shrink with them.
        alphas = ALPHAS if wishes.alpha == "auto" else (wishes.alpha / self.share,)
        best = self._compare(chosen, alphas)
        return self._exact(best, chosen, alphas) if is_exact else self._climb(best, chosen, alphas)

    # --- leaving rows out ---------------------------------------------------------------------------------------------

    def _sketched(self, sample: RowSketch, targets: Sequence[Target]) -> ChoiceRows:
        found = [target.sketched(sample.sums, sample.weights) for target in targets]
        weights = found[0][1]
        return ChoiceRows(sample.X, np.stack([wanted for wanted, _ in found], axis=1), weights / weights.sum())

    def _compare(self, rows: ChoiceRows, alphas: Sequence[float]) -> list[MapTrial]:
        """The best bandwidth and alpha of every kind, on some of the rows."""
        kinds: Sequence[str | None] = (None,)
        if self.maker.is_free:
            kinds = KINDS if self.maker.n_columns <= _MANY_COLUMNS else _QUICK_KINDS
        few = rows.first(_COMPARE_ROWS)
        walks = compare_maps(self.maker, kinds, self.bandwidth, alphas, few, self.n_threads)
        for walk in walks:
            for trial in walk:
                self._note("maps", trial, len(few.X))
        return best_of(walks)

    def _note(self, step: str, trial: MapTrial, n_rows: int, rank: int = 0) -> None:
        alpha = trial.alpha * n_rows / self.n_rows
        self._note_line(step, trial.kind, trial.bandwidth, alpha, rank, n_rows, trial.error)

    def _note_line(self, step: str, kind: str | None, bandwidth: float | None, *rest: Any) -> None:
        self.tried.append(Tried(step, kind or "given", float("nan") if bandwidth is None else bandwidth, *rest))

    # --- few rows -----------------------------------------------------------------------------------------------------

    def _exact(self, best: list[MapTrial], rows: ChoiceRows, alphas: Sequence[float]) -> Choice:
        n_rows = len(rows.X)
        winner = best[simplest([trial.evidence for trial in best])]
        bandwidths = [winner.bandwidth]
        if self.bandwidth == "auto" and winner.bandwidth is not None:
            bandwidths = [winner.bandwidth / sqrt(2), winner.bandwidth, winner.bandwidth * sqrt(2)]
        pairs = [(winner.kind, bandwidth) for bandwidth in bandwidths]
        closer = try_maps(self.maker, pairs, alphas, rows, self.n_threads)
        for trial in closer:
            self._note("bandwidth", trial, n_rows)
        trial = closer[strongest([trial.error for trial in closer])]
        maps = self.maker(trial.kind, trial.bandwidth)
        plain = additive_trial(maps, alphas, rows)
        self._note("linear", plain._replace(kind=trial.kind, bandwidth=trial.bandwidth), n_rows, LINEAR)
        chosen = {"basis": trial.kind, "bandwidth": trial.bandwidth}
        self._say_maps(trial.kind, trial.bandwidth, trial.alpha)
        if self.wishes.rank == "auto" and plain.error <= trial.error:
            self.reasons.append(
                f"the linear model in these functions has no larger error ({plain.error:.4g}) than the exact solution "
                f"with interactions ({trial.error:.4g}), so it is the model"
            )
            plan, starts = self._linear_plan(maps, plain.alpha), self._additive(maps, plain.alpha)
            return self._choice(maps, plan, starts, self._left_out(maps, rows, plain, is_linear=True), chosen)
        ranks, starts, is_cut = self._dual(maps, trial.alpha)
        sweeps = self.wishes.max_sweeps
        if sweeps == "auto":  # what was cut off is partly found back by a sweep
            sweeps = _DUAL_SWEEPS if is_cut else 0
        plan = self.wishes.plan(maps.dims, ranks=ranks, alpha=trial.alpha, init="dual", max_sweeps=sweeps)
        self.reasons.append(
            f"the exact solution on all {n_rows} different rows, leave-one-out error {trial.error:.4g}, is rounded to "
            f"ranks up to {max(ranks)}"
        )
        return self._choice(maps, plan, starts, self._left_out(maps, rows, trial, is_linear=False), chosen)

    def _linear_plan(self, maps: MapList, alpha: float) -> TrainPlan:
        return self.wishes.plan(maps.dims, ranks=clip_ranks(maps.dims, 2), alpha=alpha, init="linear", max_sweeps=0)

    def _choice(
        self, maps: MapList, plan: TrainPlan, starts: Any, held_out: HeldOut | None, chosen: dict[str, Any]
    ) -> Choice:
        reasons, tried = tuple(self.reasons), tuple(self.tried)
        return Choice(maps, plan, starts, **chosen, reasons=reasons, tried=tried, held_out=held_out)

    def _dual(self, maps: MapList, alpha: float) -> tuple[tuple[int, ...], list[Sequence[NDArray]], bool]:
        """Round the exact solutions of all trains; return ranks, cores, and whether more than a little was cut off."""
        values = _values(maps, self.sample.X)
        if self.wishes.rank != "auto":
            ranks, tolerance = clip_ranks(maps.dims, self.wishes.rank), 0.0
        else:
            ranks, tolerance = clip_ranks(maps.dims, self._dual_rank(maps)), _DUAL_TOLERANCE
        trains: list[Sequence[NDArray]] = []
        is_cut = False
        with one_blas_thread():
            for inner, coefficients, used in self._solutions(product_kernel(values), alpha):
                own = values if len(used) == self.sample.n_rows else [columns[:, used] for columns in values]
                trains.append(round_rank_ones(own, coefficients, ranks, tolerance))
                whole, kept = float(coefficients @ inner @ coefficients), float(np.square(trains[-1][-1]).sum())
                is_cut = is_cut or whole - kept > _LITTLE * whole
        if self.wishes.rank == "auto":
            found = [[core.shape[2] for core in train[:-1]] for train in trains]
            ranks = clip_ranks(maps.dims, np.max(found, axis=0).tolist() if len(maps) > 1 else 1)
        return ranks, trains, is_cut

    def _additive(self, maps: MapList, alpha: float) -> list[Sequence[NDArray]]:
        """The exact linear models of all trains."""
        values = _values(maps, self.sample.X)
        with one_blas_thread():
            return [
                linear_cores(float(coefficients.sum()), [functions[1:, used] @ coefficients for functions in values])
                for _, coefficients, used in self._solutions(additive_kernel(values), alpha)
            ]

    def _solutions(self, kernel: NDArray, alpha: float) -> Iterator[tuple[NDArray, NDArray, NDArray]]:
        """For every train, the kernel of the rows that it knows, its coefficients of them, and which they are."""
        for target in self.targets:
            rows = self._sketched(self.sample, [target])
            used = np.flatnonzero(rows.weights)
            inner = kernel if len(used) == len(rows.weights) else kernel[np.ix_(used, used)]
            yield inner, solve_dual(inner, rows.targets[used, 0], rows.weights[used], alpha), used

    def _dual_rank(self, maps: MapList) -> int:
        """The largest rank to which rounding does not take long."""
        n_rows, n = float(self.n_rows), np.array(maps.dims)
        for rank in _DUAL_RANKS:
            products = 2.0 * n_rows * n_rows * rank * n.sum()
            if (products + 10.0 * np.sum((rank * n) ** 3.0)) * len(self.targets) <= _DUAL_WORK:
                return rank
        return _DUAL_RANKS[-1]

    def _left_out(self, maps: MapList, rows: ChoiceRows, trial: MapTrial, is_linear: bool) -> HeldOut | None:
        """Scores of every train on rows that were left out of its exact solution."""
        if not self.calibrate:
            return None
        if self.guides is self.targets:
            return HeldOut((rows.targets - trial.residuals) / self.sizes, self.sample.sums, self.n_rows)
        values = _values(maps, rows.X)
        kernel = additive_kernel(values) if is_linear else product_kernel(values)
        scores = np.zeros((len(rows.X), len(self.targets)))
        for index, target in enumerate(self.targets):
            own = self._sketched(self.sample, [target])
            used = np.flatnonzero(own.weights)
            known = kernel[np.ix_(used, used)], own.targets[used], own.weights[used]
            (residuals,) = leave_one_out(*known, [trial.alpha])
            scores[used, index] = (own.targets[used] - residuals)[:, 0]
        return HeldOut(scores, self.sample.sums, self.n_rows)

    # --- many rows ----------------------------------------------------------------------------------------------------

    def _climb(self, best: list[MapTrial], rows: ChoiceRows, alphas: Sequence[float]) -> Choice:
        finalists = self._finalists(best, rows, alphas)
        ladders = [self._ladder(trial) for trial in finalists]
        if ladders[0].is_slow:
            finalists, ladders = finalists[:1], ladders[:1]
        factor = self.share / (1.0 if get_loss(self.wishes.loss).quadratic else _LOGISTIC_SHARE)
        if self.wishes.alpha != "auto":
            factor = self.share
        paths = []
        for trial, ladder in zip(finalists, ladders, strict=True):
            paths.append([ladder.linear(trial.alpha * factor)])
            self._note_rung("rank", trial, ladder, paths[-1][-1])
            for rank in self._first_ranks(ladder):
                self._up(paths[-1], trial, ladder, rank)
        # The finalists stand in the order of their simplicity.
        index = simplest([path[-1].evidence for path in paths])
        trial, ladder, path = finalists[index], ladders[index], paths[index]
        self._say_maps(trial.kind, trial.bandwidth, trial.alpha * factor)
        if self.wishes.rank == "auto":
            higher = [rank for rank in ladder.ranks() if rank > path[-1].rank]
            if path[-1].evidence.error > path[0].evidence.error:  # than that of the linear model
                path, higher = path[:1], [rank for rank in ladder.ranks() if rank < path[-1].rank]
            for rank in higher:
                self._up(path, trial, ladder, rank)
                if path[-1].evidence.error > path[-2].evidence.error:
                    break
        # The linear model has a rank and a start of its own: it is out where the user gives others.
        if self.wishes.rank != "auto" or self.wishes.init in ("given", "random"):
            path = path[1:]
        rung = path[strongest([rung.evidence.error for rung in path])]
        if self.wishes.alpha == "auto" and not ladder.is_slow:
            rung = self._walk_alpha(rung, trial, ladder)
        return self._climbed(rung, trial, ladder)

    def _finalists(self, best: list[MapTrial], rows: ChoiceRows, alphas: Sequence[float]) -> list[MapTrial]:
        """A few kinds that are not clearly worse than the best on more of the rows, in the order of simplicity.

        Where most rows share a value, few rows say little about the others: the kind that tells values apart however
        rare they are gets a second chance.
        """
        order = sorted(range(len(best)), key=lambda index: best[index].error)[:_FINALISTS]
        rare = [index for index, trial in enumerate(best) if trial.kind == _TELLS_RARE and self.maker.has_ties]
        pairs = [(best[index].kind, best[index].bandwidth) for index in sorted({*order, *rare})]
        again = try_maps(self.maker, pairs, alphas, rows, self.n_threads)
        for trial in again:
            self._note("maps", trial, len(rows.X))
        least = min(again, key=lambda trial: trial.error)
        gaps = [(trial, *trial.evidence.worse_than(least.evidence)) for trial in again]
        return [trial for trial, mean, error in gaps if mean <= _CLEARLY * error]

    def _ladder(self, trial: MapTrial) -> Ladder:
        maps = self.maker(trial.kind, trial.bandwidth)
        alpha = trial.alpha * self.share
        sizes = self.sizes if len(self.sizes) == len(self.targets) else np.ones(len(self.targets))
        sweeps = _RUNG_SWEEPS if self.wishes.max_sweeps == "auto" else self.wishes.max_sweeps
        plan = self.wishes.plan(maps.dims, alpha=alpha, init="linear", max_sweeps=sweeps)
        return Ladder(self.rows, self.n_rows, maps, plan, self.targets, sizes, self.seeds, self.n_jobs, sweeps)

    def _first_ranks(self, ladder: Ladder) -> list[Any]:
        """Ranks at which finalists are compared."""
        if self.wishes.rank != "auto":
            return [self.wishes.rank]
        ranks = ladder.ranks()
        return [max(rank for rank in ranks if rank <= max(_FIRST_RANK, ranks[0]))]

    def _up(self, path: list[Rung], trial: MapTrial, ladder: Ladder, rank: Any) -> None:
        path.append(ladder.climb(path[-1], rank, path[-1].alpha))
        self._note_rung("rank", trial, ladder, path[-1])

    def _note_rung(self, step: str, trial: MapTrial, ladder: Ladder, rung: Rung) -> None:
        rank = int(np.max(rung.rank))
        self._note_line(step, trial.kind, trial.bandwidth, rung.alpha, rank, ladder.n_rows, rung.evidence.error)

    def _walk_alpha(self, rung: Rung, trial: MapTrial, ladder: Ladder) -> Rung:
        """Go to larger alphas as long as the error does not grow, or else to smaller ones as long as it falls.

        Few rows say little: with them it must fall clearly.
        """
        clearly = 1.0 if len(rung.evidence.squares) < _WEAK_EVIDENCE else 0.0
        for factor in (_ALPHA_STEP, 1.0 / _ALPHA_STEP):
            start = rung
            for _ in range(_MOST_ALPHA_STEPS):
                alpha = rung.alpha * factor
                if alpha < _LEAST_ALPHA:  # no more than rounding
                    break
                following = ladder.linear(alpha) if rung.rank == LINEAR else ladder.climb(rung, rung.rank, alpha)
                self._note_rung("alpha", trial, ladder, following)
                stronger, weaker = (following, rung) if factor > 1 else (rung, following)
                if (simplest([stronger.evidence, weaker.evidence], clearly) == 0) != (factor > 1):
                    break
                rung = following
            if rung is not start:
                break
        return rung

    def _climbed(self, rung: Rung, trial: MapTrial, ladder: Ladder) -> Choice:
        maps = self.maker(trial.kind, trial.bandwidth)
        chosen = {"basis": trial.kind, "bandwidth": trial.bandwidth}
        seen = ladder.held_out_of(rung)
        held_out = None
        if self.calibrate and self.rows.classify:
            labels = np.zeros((len(seen.y), len(self.rows.summary.labels)))
            labels[np.arange(len(seen.y)), seen.y] = seen.weights
            held_out = HeldOut(seen.scores, labels, len(np.unique(seen.hashes)))
        how = f"on rows that were held out, error {rung.evidence.error:.4g}"
        if rung.rank == LINEAR:
            self.reasons.append(f"no rank was better than the linear model {how}, so it is the model")
            return self._choice(maps, self._linear_plan(maps, rung.alpha), None, held_out, chosen)
        self.reasons.append(f"rank {rung.rank} and alpha {rung.alpha:.2g} were the best {how}")
        settings: dict[str, Any] = {"ranks": clip_ranks(maps.dims, rung.rank), "alpha": rung.alpha}
        starts = None
        if self.wishes.init == "auto":
            starts, settings["init"] = rung.trains[0], "given"
            if self.wishes.max_sweeps == "auto":
                settings["max_sweeps"] = _LAST_SWEEPS
        return self._choice(maps, self.wishes.plan(maps.dims, **settings), starts, held_out, chosen)

    def _say_maps(self, kind: str | None, bandwidth: float | None, alpha: float) -> None:
        if self.maker.is_free:
            self.reasons.append(f"functions {kind!r} with bandwidth {bandwidth:.3g} and alpha {alpha:.2g}")


def _values(maps: MapList, X: NDArray) -> list[NDArray]:
    """Functions of every column on rows, (n, N) each."""
    return [feature_map.values(column) for feature_map, column in zip(maps, maps.place(X), strict=True)]


def choose(
    wishes: Wishes,
    rows: Rows,
    targets: Sequence[Target],
    guides: Sequence[Target],
    seeds: Sequence[int],
    n_jobs: int | None,
    calibrate: bool,
) -> Choice:
    """Choose what the user leaves open.

    Parameters
    ----------
    wishes : Wishes
    rows : Rows
    targets : sequence of Target
        One per train.
    guides : sequence of Target
        Targets that maps are chosen by: all weigh all rows alike. The same object as ``targets``, if these do.
    seeds : sequence of int
        One per train.
    n_jobs : int or None
    calibrate : bool
        Whether scores of rows that were held out are wanted.

    Returns
    -------
    Choice
    """
    return _Chooser(wishes, rows, targets, guides, seeds, n_jobs, calibrate).run()
