"""Readable records of what a fit has tried and chosen."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from polytrain.texts import html_table, printable

__all__ = ["Chosen", "Tried"]

# Columns of the table of trials, and a note about its last column.
_HEAD = ("step", "basis", "bandwidth", "alpha", "rank", "rows", "mean loss")
_ABOUT_LOSS = "Errors here are mean losses on left-out rows; summary() shows the error in the usual metric."


class Tried(NamedTuple):
    """One line of the table of trials.

    Attributes
    ----------
    step : {"maps", "relevance", "columns", "bandwidth", "linear", "rank", "exact", "alpha", "logistic"}
        The decision that the trial is about.
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
        Mean loss on rows left out: squared errors are in units of the variance of a number, or for targets -1 and 1.
    """

    step: str
    basis: str
    bandwidth: float
    alpha: float
    rank: int
    n_rows: int
    error: float


@dataclass(frozen=True, repr=False)
class Chosen:
    """The settings that a fit has chosen, the reasons, and a table of all trials; ``print`` and notebooks show it.

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
        The decisions, in words; empty if there was nothing to decide.
    tried : tuple of Tried
        What was tried, in this order.
    relevances : tuple of float, or None
        Size of the prior of every feature in units of the bandwidth; None where all are equal.

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
    relevances: tuple[float, ...] | None = None

    @classmethod
    def of(cls, choice: Any) -> Chosen:
        """Keep the parts of a `polytrain.choice.Choice` that matter after the fit."""
        return cls(
            basis=choice.basis,
            bandwidth=choice.bandwidth,
            alpha=choice.plan.alpha,
            rank=max(choice.plan.ranks),
            reasons=choice.reasons,
            tried=choice.tried,
            relevances=choice.relevances,
        )

    @property
    def settings(self) -> str:
        """The settings, as text."""
        basis = "" if self.basis is None else f"basis {self.basis!r}, "
        bandwidth = "" if self.bandwidth is None else f"bandwidth {self.bandwidth:.3g}, "
        return f"{basis}{bandwidth}alpha {self.alpha:.2g}, rank {self.rank}"

    @property
    def linear_ratio(self) -> float | None:
        """Mean loss of the best model without interactions, divided by that of the best model with them, on equal rows.

        None where only one kind was tried. It is an upper bound: the search for the alpha of the model without
        interactions ends once it is clear that interactions help.
        """
        errors: dict[tuple[int, bool], dict[bool, float]] = {}  # by the rows learned from, and whether by trains
        for t in self.tried:
            # Other steps measure another loss.
            if t.step in ("maps", "bandwidth", "linear") or (t.rank > 0 and t.step != "logistic"):
                best = errors.setdefault((t.n_rows, t.rank > 0 and t.step != "linear"), {})
                best[t.rank == 1] = min(t.error, best.get(t.rank == 1, t.error))
        ratios = [best[True] / best[False] for best in errors.values() if len(best) == 2 and best[False] > 0]
        return ratios[-1] if ratios else None

    def _cells(self) -> list[tuple[str, ...]]:
        forms = ("", "", ".3g", ".2g", "", "", ".4g")
        lines = [t._replace(rank=t.rank or "any") for t in self.tried]  # type: ignore[arg-type]
        return [tuple(format(*pair) for pair in zip(line, forms, strict=True)) for line in lines]

    def table(self) -> str:
        """Return what was tried, as text."""
        form = "{:<10}{:<17}{:>10}{:>10}{:>6}{:>8}{:>11}"
        return "\n".join(printable(form.format(*cells)) for cells in (_HEAD, *self._cells()))

    def __str__(self) -> str:
        tried = [self.table(), _ABOUT_LOSS] if self.tried else []
        return "\n".join([self.settings, *map(printable, self.reasons), *tried])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lines = [self.settings, *self.reasons, *([_ABOUT_LOSS] if self.tried else [])]
        tried = html_table(self._cells(), _HEAD) if self.tried else ""
        return "".join(f"<p>{escape(printable(line))}</p>" for line in lines) + tried

    def to_frame(self) -> Any:
        """Return what was tried, as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.tried, columns=list(Tried._fields))
