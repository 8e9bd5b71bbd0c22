"""What a fit is to do, where the user leaves it open: maps, bandwidth, alpha, rank and start."""

from __future__ import annotations

from collections.abc import Sequence

from polytrain.choice.few_rows import choose_exactly
from polytrain.choice.many_rows import TELLS_RARE, choose_by_climbing
from polytrain.choice.maps import KINDS, MapTrial, best_of, compare_maps, not_clearly_worse
from polytrain.choice.result import Choice
from polytrain.choice.task import FEW_ROWS, Task
from polytrain.choice.wishes import Wishes
from polytrain.learning.losses import get_loss
from polytrain.rows import Rows
from polytrain.rows.targets import Target

__all__ = ["choose"]

# Kinds of maps are compared on some rows, and those that are not clearly worse than the best on more of them. With more
# columns than these, only kinds that are quickly found are tried.
_SCREEN_ROWS, _COMPARE_ROWS, _CLEARLY = 200, 500, 3.0
_MANY_COLUMNS, _QUICK_KINDS = 300, ("smooth", "smooth-rank")
_FIRST_BANDWIDTH = 1.0


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
    names: Sequence[str | None] = (None,)
    if task.maker.is_free:
        names = KINDS if task.maker.n_columns <= _MANY_COLUMNS else _QUICK_KINDS
    kinds = [(name, _FIRST_BANDWIDTH) for name in names]
    if task.sample.n_rows >= _COMPARE_ROWS and len(kinds) > 1:
        screened = not_clearly_worse(_compare_on(task, kinds, _SCREEN_ROWS), _CLEARLY)
        kinds = [(trial.kind, trial.bandwidth or _FIRST_BANDWIDTH) for trial in screened]
        if task.maker.has_ties and task.n_rows > FEW_ROWS and TELLS_RARE not in dict(kinds):
            kinds.append((TELLS_RARE, _FIRST_BANDWIDTH))
    return _compare_on(task, kinds, _COMPARE_ROWS)


def _compare_on(task: Task, kinds: Sequence[tuple[str | None, float]], n_rows: int) -> list[MapTrial]:
    rows = task.choice_rows.first(n_rows)
    walks = compare_maps(task.maker, kinds, task.bandwidth, task.alphas, rows, task.n_threads)
    for trial in [trial for walk in walks for trial in walk]:
        task.note_trial("maps", trial, len(rows.X))
    return best_of(walks)
