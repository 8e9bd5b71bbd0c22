"""Pictures of how the training went and of what the trains need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from polytrain.explain.view import read_model
from polytrain.plotting._style import COLOURS, begin_plot, draw_lines, line_style
from polytrain.tensor import rank_bounds

__all__ = ["ConvergenceDisplay", "RankDisplay"]

_QUANTITIES = ("objective", "loss")


@dataclass(eq=False, repr=False)
class ConvergenceDisplay:
    """Objective or loss of every train, sweep by sweep.

    Parameters
    ----------
    curves : sequence of (sweeps, values)
        One pair of arrays per train.
    train_names : sequence of str
        Names of the trains.
    quantity : str, default="objective"
        What the values are; the label of the axis.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import ConvergenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(X, y)
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
        points: list[list[tuple[int, float]]] = [[] for _ in view.trains]
        for record in view.estimator.history_:
            points[record["train"]].append((record["sweep"], record[quantity]))
        curves = [(np.array([sweep for sweep, _ in line]), np.array([value for _, value in line])) for line in points]
        if not any(len(sweeps) for sweeps, _ in curves):
            raise ValueError(
                "the model made no sweep: it is the starting point of sweeps, so there is no history to draw."
            )
        return cls(curves, view.train_names, quantity).plot(ax)

    def plot(self, ax: Any = None) -> ConvergenceDisplay:
        """Draw into ``ax``, or into a new figure, and return the display."""
        self.figure_, self.ax_ = begin_plot(ax)
        from matplotlib.ticker import MaxNLocator, NullFormatter

        draw_lines(self.ax_, self.curves, self.train_names, what="trains")
        everything = np.concatenate([np.asarray(values) for _, values in self.curves])
        if everything.min() > 0 and everything.max() > 10 * everything.min():
            self.ax_.set_yscale("log")
            self.ax_.yaxis.set_major_formatter("{x:g}")
            self.ax_.yaxis.set_minor_formatter(NullFormatter())
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        self.ax_.set_xlim(0.8, max(max(sweeps, default=1) for sweeps, _ in self.curves) + 0.2)
        self.ax_.set_xlabel("sweep")
        self.ax_.set_ylabel(self.quantity)
        return self


@dataclass(eq=False, repr=False)
class RankDisplay:
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
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(X, y)
    >>> display = RankDisplay.from_estimator(model, ax=Figure().subplots())
    >>> display.ranks[0].tolist()
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
            A fitted estimator of two features at least.
        tol : float, default=0.01
            Error of the coefficients, relative to their norm, to which each train is rounded for the ranks it needs.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        view = read_model(estimator)
        if len(view.maps) < 2:
            raise ValueError("the model has one feature only; there is no rank to draw.")
        ranks = np.array([train.ranks[1:-1] for train in view.trains])
        needed = np.array([train.round(tol).ranks[1:-1] for train in view.trains])
        bounds = np.array([min(bound, 10**6) for bound in rank_bounds(view.trains[0].dims)])  # they may exceed a float
        return cls(ranks, needed, bounds, tol).plot(ax)

    def plot(self, ax: Any = None) -> RankDisplay:
        """Draw into ``ax``, or into a new figure, and return the display."""
        self.figure_, self.ax_ = begin_plot(ax)
        from matplotlib.ticker import MaxNLocator

        ranks, needed = np.asarray(self.ranks), np.asarray(self.needed)
        bonds = np.arange(1, ranks.shape[1] + 1)
        top = max(ranks.max(), needed.max())
        self.ax_.plot(bonds, np.where(np.asarray(self.bounds) <= 1.5 * top, self.bounds, np.nan), ":", color="0.4",
                      label="largest useful rank")  # fmt: skip
        self._draw(bonds, ranks, "rank", 0, "-")
        self._draw(bonds, needed, f"needed for an error of {100 * self.tol:g} %", 1, "--")
        self.ax_.set_xlim(0.5, len(bonds) + 0.5)
        self.ax_.set_ylim(0, 1.15 * top + 0.5)
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        self.ax_.yaxis.set_major_locator(MaxNLocator(integer=True))
        self.ax_.set_xlabel("bond between features k and k+1")
        self.ax_.set_ylabel("rank")
        self.ax_.grid(True, color="0.9")
        self.ax_.legend(fontsize="small")
        return self

    def _draw(self, bonds: Any, ranks: Any, label: str, index: int, dashes: str) -> None:
        """Draw the median over the trains, and the range where they differ."""
        style = {**line_style(index), "linestyle": dashes}
        low, high = ranks.min(axis=0), ranks.max(axis=0)
        if np.any(low < high):
            label += ": median and range of the trains"
            self.ax_.fill_between(bonds, low, high, color=COLOURS[index], alpha=0.2, linewidth=0)
        self.ax_.plot(bonds, np.median(ranks, axis=0), markersize=4, label=label, **style)
