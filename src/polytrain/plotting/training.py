"""Pictures of how the training went and of the ranks that the trains need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from polytrain.explain.view import read_model
from polytrain.plotting._style import COLOURS, Display, draw_lines, line_style
from polytrain.tensor import rank_bounds

__all__ = ["ConvergenceDisplay", "RankDisplay"]

_QUANTITIES = ("objective", "loss")


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """Objective or loss of every train, sweep by sweep.

    Parameters
    ----------
    curves : sequence of (sweeps, values)
        One pair of arrays per train.
    train_names : sequence of str
        Names of the trains.
    quantity : str, default="objective"
        Label of the values.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import ConvergenceDisplay
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> display = ConvergenceDisplay.from_estimator(model, ax=Figure().subplots())
    >>> len(display.curves), display.ax_.get_xlabel()
    (3, 'sweep')
    """

    curves: Sequence[tuple[Any, Any]]
    train_names: Sequence[str]
    quantity: str = "objective"

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, quantity: str = "objective", ax: Any = None
    ) -> ConvergenceDisplay:
        """Read ``history_`` of a fitted estimator and draw it.

        Parameters
        ----------
        estimator : TensorTrainClassifier or TensorTrainRegressor
            A fitted estimator.
        quantity : {"objective", "loss"}, default="objective"
            The objective with its regularisation, or the loss alone.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        view = read_model(estimator)
        if quantity not in _QUANTITIES:
            raise ValueError(f"quantity must be one of {list(_QUANTITIES)}, got {quantity!r}.")
        if not view.estimator.history_:
            raise ValueError("the model made no sweep: it is the start of the sweeps, so there is no history to draw.")
        points: list[list[tuple[int, float]]] = [[] for _ in view.trains]
        for record in view.estimator.history_:
            points[record["train"]].append((record["sweep"], record[quantity]))
        curves = [(np.array([sweep for sweep, _ in line]), np.array([value for _, value in line])) for line in points]
        return cls(curves, view.train_names, quantity).plot(ax)

    def _draw(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator, NullFormatter

        draw_lines(ax, self.curves, self.train_names, what="trains")
        everything = np.concatenate([np.asarray(values) for _, values in self.curves])
        if everything.min() > 0 and everything.max() > 10 * everything.min():
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter("{x:g}")
            ax.yaxis.set_minor_formatter(NullFormatter())
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        ax.set_xlim(0.8, max(max(sweeps, default=1) for sweeps, _ in self.curves) + 0.2)
        ax.set(xlabel="sweep", ylabel=self.quantity)


@dataclass(eq=False, repr=False)
class RankDisplay(Display):
    """Ranks along the train, beside those that it needs.

    Parameters
    ----------
    ranks : array-like of shape (n_trains, d - 1)
        Rank of every inner bond.
    needed : array-like of shape (n_trains, d - 1)
        Rank to which each bond can be cut at a relative error of ``tol``.
    bounds : array-like of shape (d - 1,)
        Ranks beyond which nothing is gained.
    tol : float
        Relative error of the coefficients for ``needed``.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import RankDisplay
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> RankDisplay.from_estimator(model, ax=Figure().subplots()).ranks[0].tolist()
    [2, 2, 2]
    """

    ranks: Any
    needed: Any
    bounds: Any
    tol: float

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, tol: float = 0.01, ax: Any = None) -> RankDisplay:
        """Read the ranks of a fitted estimator and draw them.

        Parameters
        ----------
        estimator : TensorTrainClassifier or TensorTrainRegressor
            A fitted estimator of at least two features.
        tol : float, default=0.01
            Error of the coefficients, relative to their norm, to which each train is rounded for the ranks it needs.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        trains = read_model(estimator).trains
        if trains[0].order < 2:
            raise ValueError("the model has one feature only; there is no rank to draw.")
        ranks, needed = (
            np.array([train.ranks[1:-1] for train in some]) for some in (trains, [train.round(tol) for train in trains])
        )
        bounds = np.array([min(bound, 10**6) for bound in rank_bounds(trains[0].dims)])  # they may exceed a float
        return cls(ranks, needed, bounds, tol).plot(ax)

    def _draw(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        ranks, needed, bounds = (np.asarray(some) for some in (self.ranks, self.needed, self.bounds))
        bonds, top = np.arange(1, ranks.shape[1] + 1), max(ranks.max(), needed.max())
        shown = np.where(bounds <= 1.5 * top, bounds, np.nan)
        ax.plot(bonds, shown, ":", color="0.4", label="largest useful rank")
        labels = "rank", f"needed for an error of {100 * self.tol:g} %"
        for index, (values, label) in enumerate(zip((ranks, needed), labels, strict=True)):
            low, high = values.min(axis=0), values.max(axis=0)
            if np.any(low < high):
                label += ": median and range of the trains"
                ax.fill_between(bonds, low, high, color=COLOURS[index], alpha=0.2, linewidth=0)
            style = line_style(index) | {"linestyle": ("-", "--")[index], "markersize": 4, "label": label}
            ax.plot(bonds, np.median(values, axis=0), **style)
        ax.set_xlim(0.5, len(bonds) + 0.5)
        ax.set_ylim(0, 1.15 * top + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="bond between features k and k+1", ylabel="rank")
        ax.grid(True, color="0.9")
        ax.legend(fontsize="small")
