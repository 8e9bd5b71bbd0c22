"""What a fit is to do, where the user leaves it open: maps, bandwidth, alpha, rank and start."""

from __future__ import annotations

from collections.abc import Sequence

from polytrain.choice.few_rows import choose_exactly
from polytrain.choice.many_rows import choose_by_climbing
from polytrain.choice.maps import KINDS, MapTrial, best_of, compare_maps
from polytrain.choice.result import Choice
from polytrain.choice.task import FEW_ROWS, Task
from polytrain.choice.wishes import Wishes
from polytrain.learning.losses import get_loss
from polytrain.rows import Rows
from polytrain.rows.targets import Target

__all__ = ["choose"]

# Kinds of maps are compared on so many rows. With more columns than these, only those that are quickly found.
_COMPARE_ROWS = 500
_MANY_COLUMNS, _QUICK_KINDS = 300, ("smooth", "smooth-rank")


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
    task = Task(wishes, rows, targets, guides, seeds, n_jobs, calibrate)
    if not task.is_open:
        maps = task.maker(None, task.bandwidth)
        return Choice(maps, wishes.plan(maps.dims), bandwidth=task.bandwidth)
    best = _compare(task)
    is_exact = get_loss(wishes.loss).quadratic and task.n_rows <= FEW_ROWS and wishes.init in ("auto", "dual")
    return choose_exactly(task, best) if is_exact else choose_by_climbing(task, best)


def _compare(task: Task) -> list[MapTrial]:
    """The best bandwidth and alpha of every kind, on some of the rows."""
    kinds: Sequence[str | None] = (None,)
    if task.maker.is_free:
        kinds = KINDS if task.maker.n_columns <= _MANY_COLUMNS else _QUICK_KINDS
    few = task.choice_rows.first(_COMPARE_ROWS)
    walks = compare_maps(task.maker, kinds, task.bandwidth, task.alphas, few, task.n_threads)
    for trial in [trial for walk in walks for trial in walk]:
        task.note_trial("maps", trial, len(few.X))
    return best_of(walks)
