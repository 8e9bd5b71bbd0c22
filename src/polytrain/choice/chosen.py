"""What a fit has chosen, for people to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polytrain.choice.choose import Choice, Tried

__all__ = ["Chosen"]


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
