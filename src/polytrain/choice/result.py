"""What a fit has tried and chosen: for the fit itself, and for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from polytrain.learning.parts import Part
from polytrain.learning.trainer import TrainPlan
from polytrain.maps import MapList
from polytrain.rows import Rows

__all__ = ["Choice", "Chosen", "HeldOut", "LeftOutScores", "Tried"]


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


class HeldOut(NamedTuple):
    """Rows that were not learned from.

    Attributes
    ----------
    scores : ndarray of shape (N, n_trains)
    label_weights : ndarray of shape (N, n_classes)
        Weight of every row, at its label.
    n_distinct : int
        How many different rows they are.
    """

    scores: NDArray
    label_weights: NDArray
    n_distinct: int


class LeftOutScores(NamedTuple):
    """What was predicted for rows that were not learned from, on the way to a choice.

    Attributes
    ----------
    hashes : ndarray of shape (N,)
        Which rows they are, see `polytrain.rows.sketch.row_hashes`.
    scores : ndarray of shape (N, n_trains)
    rows : tuple of Rows
        Where these rows are; there may be others among them.
    """

    hashes: NDArray
    scores: NDArray
    rows: tuple[Rows, ...]


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
    left_out : LeftOutScores or None
        What the uncertainty of numbers needs; None where nothing was left to choose.
    parts : tuple of Part, or None
        What every train is a sum of, with ranks; then its start has a train for every part. None for one train.
    """

    maps: MapList
    plan: TrainPlan
    starts: Sequence[Sequence[Any]] | None = None
    basis: str | None = None
    bandwidth: float | None = None
    reasons: tuple[str, ...] = ()
    tried: tuple[Tried, ...] = ()
    held_out: HeldOut | None = None
    left_out: LeftOutScores | None = None
    parts: tuple[Part, ...] | None = None


@dataclass(frozen=True)
class Chosen:
    """What a fit has chosen and why, with a table of what it has tried.

    Attributes
    ----------
    basis : str or None
        Functions of the columns that left it open; None if all were given.
    bandwidth : float or None
        Size of the prior of all columns together; None if no map has one.
    alpha : float
        Regularisation.
    rank : int
        Largest rank.
    reasons : tuple of str
        What was decided, in words; empty if there was nothing to decide.
    tried : tuple of Tried
        What was tried, in this order.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> chosen = TensorTrainRegressor(random_state=0).fit(X, X[:, 0] * X[:, 1]).choice_
    >>> chosen.basis
    'smooth'
    >>> chosen.tried[0]._fields
    ('step', 'basis', 'bandwidth', 'alpha', 'rank', 'n_rows', 'error')
    """

    basis: str | None
    bandwidth: float | None
    alpha: float
    rank: int
    reasons: tuple[str, ...] = ()
    tried: tuple[Tried, ...] = ()

    @classmethod
    def of(cls, choice: Choice) -> Chosen:
        """Take what matters afterwards."""
        plan = choice.plan
        return cls(choice.basis, choice.bandwidth, plan.alpha, max(plan.ranks), choice.reasons, choice.tried)

    def table(self) -> str:
        """What was tried, as text."""
        lines = [f"{'step':<10}{'basis':<17}{'bandwidth':>10}{'alpha':>10}{'rank':>6}{'rows':>8}{'error':>11}"]
        for t in self.tried:
            numbers = f"{t.bandwidth:>10.3g}{t.alpha:>10.2g}{t.rank or 'any':>6}{t.n_rows:>8}{t.error:>11.4g}"
            lines.append(f"{t.step:<10}{t.basis:<17}{numbers}")
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """What was tried, as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.tried, columns=list(Tried._fields))
