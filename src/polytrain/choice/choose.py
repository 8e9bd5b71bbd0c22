"""Choose maps, bandwidth, alpha, rank and start where the user leaves them open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polytrain.choice.alphas import strongest
from polytrain.choice.few_rows import choose_exactly
from polytrain.choice.many_rows import choose_by_climbing
from polytrain.choice.map_search import TRIED_BASES, MapTrial
from polytrain.choice.relevance import learn_sizes
from polytrain.choice.task import Choice, Task
from polytrain.learning.losses import get_loss
from polytrain.learning.parts import joined_ranks, with_rank
from polytrain.learning.start import FEW_ROWS

__all__ = ["choose"]

# Kinds of maps are compared on this many rows, and those that are not clearly worse than the best on more of them. With
# more columns than these, only kinds that are quickly found are tried.
_COMPARE_ROWS, _FINALISTS, _CLEARLY = 500, 3, 2.0
_MANY_COLUMNS, _QUICK_KINDS = 100, ("smooth", "smooth-rank")
# The kind that tells values apart however rare they are.
_TELLS_RARE = "spline-distinct"


def choose(task: Task) -> Choice:
    """Choose what the user leaves open."""
    task = task.linear()
    if not task.is_open:
        maps, parts = task.maker(None, task.bandwidth), task.parts
        ranks = {}
        if parts is not None:
            parts = with_rank(parts, maps.dims, task.settings.rank)
            ranks["rank"] = joined_ranks(parts, maps.dims)
        return Choice(maps, task.settings.settled(maps.dims, **ranks), bandwidth=task.bandwidth, parts=parts)
    settings = task.settings
    is_exact = get_loss(settings.loss).quadratic and task.n_rows <= FEW_ROWS and settings.init in ("auto", "dual")
    with np.errstate(over="ignore", invalid="ignore"):  # kernels are checked before they are used
        finalists = _compare(task)
        if task.learns_sizes:
            finalists = learn_sizes(task, finalists)
        return choose_exactly(task, finalists) if is_exact else choose_by_climbing(task, finalists)


def _compare(task: Task) -> list[MapTrial]:
    """Return a few kinds with their best bandwidth and alpha on all rows of the sample, in the order of simplicity."""
    kinds: Sequence[str | None] = (None,)
    if task.maker.is_free:
        kinds = TRIED_BASES if task.maker.n_columns <= _MANY_COLUMNS else _QUICK_KINDS
        if not task.maker.has_repeats:  # it is the same as the kind that goes by rank
            kinds = [kind for kind in kinds if kind != _TELLS_RARE]
    rows = task.choice_rows.take(slice(_COMPARE_ROWS))
    walks = task.search(rows).compare(kinds, task.bandwidth)
    for trial in [trial for walk in walks for trial in walk]:
        task.note_trial("maps", trial)
    best = [walk[strongest([trial.error for trial in walk])] for walk in walks]
    if len(rows.X) == task.sample.n_rows:
        return best
    # Where most rows share a value, a few rows hardly represent the other values: that kind gets a second chance.
    order = sorted(range(len(best)), key=lambda index: best[index].error)[:_FINALISTS]
    rare = [index for index, trial in enumerate(best) if trial.kind == _TELLS_RARE and task.maker.has_ties]
    share = len(rows.X) / task.sample.n_rows
    finalists = [best[index] for index in sorted({*order, *rare})]
    again = task.search(task.choice_rows).try_each([(*trial[:2], trial.alpha * share, None) for trial in finalists])
    for trial in again:
        task.note_trial("maps", trial)
    least = min(again, key=lambda trial: trial.error).evidence
    gaps = [trial.evidence.worse_than(least) for trial in again]
    return [trial for trial, (mean, error) in zip(again, gaps, strict=True) if mean <= _CLEARLY * error]
