"""Trains of several classes that are learned together: each in turn, given the scores of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.trainer import TrainJob, TrainPlan, TrainResult
from polytrain.maps import MapList
from polytrain.rows.targets import ClassTarget, JointTarget, Target

__all__ = ["learn_jointly", "log_losses"]

# A visit of a class is a sweep there and back, so that every core is updated; linear models are solved at each visit.
_SWEEPS_OF_VISIT, _LINEAR_ROUNDS = 2, 5

#: Learns one train per target: what `polytrain.rows.rows.PlacedRows.learn` does for trains that ignore each other.
LearnEach = Callable[[TrainPlan, Sequence[Target], Sequence[TrainJob], Callable[..., Any]], Iterator[TrainResult]]


def learn_jointly(
    learn_each: LearnEach,
    maps: MapList,
    plan: TrainPlan,
    targets: Sequence[Target],
    jobs: Sequence[TrainJob],
    report: Callable[..., Any],
) -> list[TrainResult]:
    """Learn the trains of all classes so that the probabilities of their softmax fit the labels.

    The whole objective, the mean of minus the logarithm of the right class's probability plus alpha / 2 times the
    squared norms of all trains, never rises: every visit of a class lowers it, with the other trains as they are.
    """
    is_linear = plan.max_sweeps == 0 and plan.init == "linear"
    trains: list[Sequence[NDArray]] = [job.start for job in jobs if job.start is not None]
    histories: list[list[dict]] = [[] for _ in jobs]
    reason = "max_sweeps"
    if len(trains) < len(jobs):
        first, plain = replace(plan, max_sweeps=0, patience=0), [TrainJob(job.seed) for job in jobs]
        if is_linear:  # from nothing, so that no class begins with what is common to all
            trains = [[np.zeros((1, n, 1)) for n in plan.dims]] * len(jobs)
        elif plan.init == "linear":
            trains = [result.cores for result in learn_jointly(learn_each, maps, first, targets, plain, _silent)]
        else:
            trains = [result.cores for result in learn_each(first, targets, plain, _silent)]
    n_rounds = _LINEAR_ROUNDS if is_linear else -(-plan.max_sweeps // _SWEEPS_OF_VISIT)
    visit = replace(plan, max_sweeps=0 if is_linear else _SWEEPS_OF_VISIT, sampling=None)
    shift = np.zeros(len(jobs))
    for number in range(n_rounds):
        decreases = []
        for index, (own, job) in enumerate(zip(targets, jobs, strict=True)):
            if not isinstance(own, ClassTarget):
                raise TypeError("only classes are learned jointly.")
            target = JointTarget(own, index, maps, list(trains), shift)
            following = TrainJob(job.seed, None if is_linear else trains[index], _round_file(job.checkpoint, number))
            heard = partial(_renumbered, report, index, len(histories[index]))
            (result,) = learn_each(visit, [target], [following], heard)
            trains[index] = result.cores
            shifted = [{**record, "sweep": record["sweep"] + len(histories[index])} for record in result.history]
            histories[index] += shifted
            decreases.append(sum(record["decrease"] for record in result.history))
            objective = result.history[-1]["objective"] if result.history else 0.0
            if result.stop_reason == "stopped":  # somebody has asked for an end, and means the fit
                reason = "stopped"
                break
        if reason == "stopped":
            break
        if not is_linear and sum(decreases) <= plan.tol * abs(objective):
            reason = "tolerance"
            break
    return [TrainResult(tuple(train), history, reason) for train, history in zip(trains, histories, strict=True)]


def log_losses(scores: NDArray, y: NDArray) -> NDArray:
    """Minus the logarithm of the right class's probability, (N,), for scores (N, m) and indices of classes (N,)."""
    largest = scores.max(axis=1)
    sums = np.exp(scores - largest[:, None]).sum(axis=1)
    return np.log(sums) + largest - scores[np.arange(len(y)), y]


def _round_file(path: Path | None, number: int) -> Path | None:
    return None if path is None else path.with_suffix(f".{number}{path.suffix}")


def _renumbered(report: Callable[..., Any], train: int, before: int, _: int, record: dict, cores: Any) -> Any:
    return report(train, {**record, "sweep": record["sweep"] + before}, cores)


def _silent(train: int, record: dict, cores: Sequence[NDArray]) -> None:
    """Say nothing."""
