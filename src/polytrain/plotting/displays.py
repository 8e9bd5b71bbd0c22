"""Pictures of terms, partial dependence, the contributions to the score of one row, training and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from polytrain.explain import (
    LocalExplanations,
    PartialDependence,
    TopTerms,
    explain_local,
    partial_dependence,
    top_terms,
)
from polytrain.explain.view import read_model
from polytrain.plotting.style import COLOURS, PAPER, Display, draw_bars, draw_lines, line_style, place_values, shorten
from polytrain.tensor import clip_ranks
from polytrain.tensor.checks import check_positive_integer
from polytrain.texts import number_format, number_text, percent_text, printable

# Characters of a column's name and of a row's value, for each inch of the figure.
_NAME_LETTERS, _CELL_LETTERS = 3.8, 2.7


@dataclass(eq=False, repr=False)
class TermStrengthDisplay(Display):
    """The largest terms of a polynomial as bars.

    Parameters
    ----------
    terms : TopTerms
        Result of `polytrain.explain.top_terms`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import TermStrengthDisplay
    >>> model = TensorTrainClassifier(basis="power", rank=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> len(TermStrengthDisplay.from_estimator(model, 5).terms)
    5
    """

    terms: TopTerms

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, k: int = 10, *, train: int = 0, ax: Any = None) -> Self:
        """Find the ``k`` largest terms of a fitted estimator and draw them; see `polytrain.explain.top_terms`.

        The constant term is left out: it is often the largest and dwarfs the others.
        """
        k = check_positive_integer(k, "k")
        terms = top_terms(estimator, k + 1, train=train)
        shown = np.flatnonzero(terms.exponents.any(axis=1))[:k]
        kept = {name: getattr(terms, name)[shown] for name in ("exponents", "coefficients", "strengths")}
        return cls(replace(terms, **kept)).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 7.2, 1.4 + 0.32 * len(self.terms)

    def _draw(self, ax: Any) -> None:
        terms = self.terms
        draw_bars(
            ax,
            ["constant" if name == "1" else name for name in shorten(terms.names, 60)],
            terms.strengths,
            marked=terms.coefficients < 0,
            numbers=[number_text(coefficient) for coefficient in terms.coefficients],
            legend=("positive coefficient", "negative coefficient"),
            names=terms.names,
        )
        ax.margins(x=0.14)
        ax.set_xlim(left=0)
        ax.set_xlabel(f"strength: largest magnitude in the fitted range ({terms.units} features)")
        proof = "" if terms.exact else ", not proven to be the largest"
        ax.set_title(f"Terms of {terms.train_name!r} with their coefficients{proof}", fontsize="medium")


@dataclass(eq=False, repr=False)
class PartialDependenceDisplay(Display):
    """Mean score as a function of one feature (lines) or two (filled contours).

    Parameters
    ----------
    dependence : PartialDependence
        Result of `polytrain.explain.partial_dependence`.
    train : int, optional
        Which train to draw; for one feature all of them by default, for two the first.
    ticks : sequence of ndarray, optional
        Values to mark at the axes, such as the deciles of the data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import PartialDependenceDisplay
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> PartialDependenceDisplay.from_estimator(model, [2, 3]).dependence.values.shape
    (3, 50, 50)
    """

    dependence: PartialDependence
    train: int | None = None
    ticks: Sequence[NDArray] | None = None

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, features: Any, X: Any = None, *, train: int | None = None, ax: Any = None
    ) -> Self:
        """Compute and draw the partial dependence on features; see `polytrain.explain.partial_dependence`.

        The deciles of numbers in ``X`` are marked at the axes.
        """
        dependence, view = partial_dependence(estimator, features, X), read_model(estimator)
        train = None if train is None else view.index("train", train)
        ticks = None
        if X is not None and len(dependence.features) == len(dependence.names):  # a date is several features
            rows = view.rows(X)
            is_number = ~np.isnan(rows) & ~view.columns.is_category
            numbers = [rows[is_number[:, k], k] for k in dependence.features]
            ticks = [np.quantile(some, np.linspace(0.1, 0.9, 9)) if len(some) else some for some in numbers]
        return cls(dependence, train, ticks).plot(ax)

    def _draw(self, ax: Any) -> None:
        dependence = self.dependence
        grid = [place_values(ax, axis, values) for axis, values in zip("xy", dependence.grid, strict=False)]
        has_levels = any(axis.dtype == object for axis in dependence.grid)
        ax.set_xlabel(dependence.names[0])
        if len(grid) == 1:
            shown = range(len(dependence.train_names)) if self.train is None else [self.train]
            curves = [(grid[0], dependence.values[index]) for index in shown]
            names = [dependence.train_names[index] for index in shown]
            draw_lines(ax, curves, names, indices=shown, what="scores", joined=not has_levels)
            ax.set_ylabel("mean score" if len(dependence.train_names) > 1 else _score_label(dependence.train_names[0]))
        else:
            values = dependence.values[self.train or 0].T
            if has_levels:  # there is nothing between two levels
                filled = ax.pcolormesh(*grid, values, cmap="cividis", shading="nearest")
            else:
                filled = ax.contourf(*grid, values, levels=12, cmap="cividis")
                ax.contour(*grid, values, levels=filled.levels, colors="white", linewidths=0.5)
            self.figure_.colorbar(filled, ax=ax, label=_score_label(dependence.train_names[self.train or 0]))
            ax.set_ylabel(dependence.names[1])
        marks = {"color": "black", "clip_on": False, "zorder": 5}
        across, along = [*(self.ticks or ()), [], []][:2]
        ax.plot([across, across], [[0], [0.03]], transform=ax.get_xaxis_transform(), **marks)
        ax.plot([[0], [0.02]], [along, along], transform=ax.get_yaxis_transform(), **marks)


def _score_label(train_name: str) -> str:
    return "mean prediction" if train_name == "prediction" else f"mean score of {train_name!r}"


@dataclass(eq=False, repr=False)
class LocalExplanationDisplay(Display):
    """The explanation of one row: one bar per column, from the mean at the bottom to the score at the top.

    Parameters
    ----------
    explanations : LocalExplanations
        Result of `polytrain.explain.explain_local`.
    row : int, default=0
        The row to draw.
    score : int, optional
        The score to draw; by default the largest of the row.
    max_columns : int, default=10
        Columns with a bar of their own; the others share one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import LocalExplanationDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TensorTrainClassifier(random_state=0).fit(X, y)
    >>> LocalExplanationDisplay.from_estimator(model, X, row=100).ax_.get_xlabel()
    'pre-softmax score of 2'
    """

    explanations: LocalExplanations
    row: int = 0
    score: int | None = None
    max_columns: int = 10

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: Any, *, row: int = 0, max_columns: int = 10, ax: Any = None
    ) -> Self:
        """Explain the row of X at the position ``row`` (-1 is the last), and draw its largest score.

        See `polytrain.explain.explain_local`.
        """
        if not -len(X) <= row < len(X):
            raise ValueError(f"row must be between {-len(X)} and {len(X) - 1}, got {row}.")
        place, has_index = row % len(X), hasattr(X, "iloc")
        explanations = explain_local(estimator, (X.iloc if has_index else X)[place : place + 1])
        if not has_index:
            explanations = replace(explanations, row_names=(place,))
        return cls(explanations, max_columns=max_columns).plot(ax)

    def _size(self) -> tuple[float, float]:
        most = check_positive_integer(self.max_columns, "max_columns")
        return 7.2, 1.7 + 0.34 * min(len(self.explanations.column_names), most + 1)

    def _draw(self, ax: Any) -> None:
        explanations, row = self.explanations, self.row
        score = int(np.argmax(explanations.scores[row])) if self.score is None else self.score
        names, cells, contributions = zip(*explanations.ranked(row, score, self.max_columns), strict=True)
        values = np.array(contributions)
        mean, total = float(explanations.base[score]), float(explanations.scores[row, score])
        # The smallest first, from the mean upwards, so that the largest end at the score.
        ends = mean + np.cumsum(values[::-1])[::-1]
        shown = number_format([mean, total, *values])
        width = self.figure_.get_figwidth()
        texts = zip(shorten(names, int(_NAME_LETTERS * width)), shorten(cells, int(_CELL_LETTERS * width)), strict=True)
        draw_bars(
            ax,
            [f"{name} = {cell}" if cell else name for name, cell in texts],
            values,
            marked=values < 0,
            starts=ends - values,
            numbers=[("\N{MINUS SIGN}" if value < 0 else "+") + shown(abs(value)) for value in values],
            legend=("raises it", "lowers it"),
            names=[f"{name} = {cell}" if cell else name for name, cell in zip(names, cells, strict=True)],
        )
        places = np.arange(1, len(values))
        ax.vlines(ends[1:], places - 1, places, color=PAPER["muted"], linewidth=0.8, zorder=1)
        note = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points", "fontsize": "small"}
        note |= {"va": "bottom", "parse_math": False}
        ax.axvline(mean, color=PAPER["muted"], linewidth=1, linestyle="--", zorder=0)
        ax.annotate(f"mean {shown(mean)}", (mean, 0.0), xytext=(4, 3), ha="left", **note)
        ax.axvline(total, color=PAPER["muted"], linewidth=1, zorder=0)
        title = f"row {printable(explanations.row_names[row])}: {shown(total)}"
        ax.annotate(title, (total, 1.0), xytext=(0, 3), ha="center", **note)
        ax.set_ylim(len(values) - 0.2, -0.8)
        ax.use_sticky_edges = False  # bars that start at the left end need room, too
        ax.margins(x=0.12)
        ax.set_xlabel(explanations.score_label(score), parse_math=False)


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
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import ConvergenceDisplay
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> len(display.curves), display.ax_.get_xlabel()
    (3, 'sweep')
    """

    curves: Sequence[Any]
    train_names: Sequence[str]
    quantity: str = "objective"

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, quantity: str = "objective", ax: Any = None) -> Self:
        """Read ``history_`` of a fitted estimator and draw its "objective", with regularisation, or its "loss"."""
        view = read_model(estimator)
        if quantity not in ("objective", "loss"):
            raise ValueError(f"quantity must be one of ['objective', 'loss'], got {quantity!r}.")
        if not view.estimator.history_:
            raise ValueError("the model made no sweeps, so there is no history to draw; its start is the solution.")
        history = np.array([(record["train"], record["sweep"], record[quantity]) for record in view.estimator.history_])
        curves = [history[history[:, 0] == train, 1:].T for train in range(view.fitted.n_trains)]
        return cls(curves, view.fitted.train_names, quantity).plot(ax)

    def _draw(self, ax: Any) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

        draw_lines(ax, self.curves, self.train_names, what="trains")
        everything = np.concatenate([np.asarray(values) for _, values in self.curves])
        if everything.min() > 0 and everything.max() > 10 * everything.min():
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
            ax.yaxis.set_minor_formatter(NullFormatter())
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        ax.set_xlim(0.8, max(max(sweeps, default=1) for sweeps, _ in self.curves) + 0.2)
        ax.set(xlabel="sweep", ylabel=self.quantity)


@dataclass(eq=False, repr=False)
class RankDisplay(Display):
    """Ranks along the train, and those that it needs.

    Parameters
    ----------
    ranks : array-like of shape (n_trains, d - 1)
        Rank of every inner bond.
    needed : array-like of shape (n_trains, d - 1)
        Rank to which each bond can be cut at a relative error of ``tol``.
    bounds : array-like of shape (d - 1,)
        Largest useful ranks.
    tol : float
        Relative error of the coefficients for ``needed``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import RankDisplay
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> RankDisplay.from_estimator(model).ranks[0].tolist()
    [2, 2, 2]
    """

    ranks: Any
    needed: Any
    bounds: Any
    tol: float

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, tol: float = 0.01, ax: Any = None) -> Self:
        """Read the ranks of a fitted estimator of at least two features and draw them."""
        trains = read_model(estimator).fitted.trains
        if trains[0].order < 2:
            raise ValueError("the model has only one feature; there is no rank to draw.")
        ranks = np.array([train.ranks[1:-1] for train in trains])
        needed = np.array([train.round(tol).ranks[1:-1] for train in trains])
        bounds = clip_ranks(trains[0].dims, 10**6)[1:-1]  # the largest may exceed a float
        return cls(ranks, needed, bounds, tol).plot(ax)

    def _draw(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        ranks, needed, bounds = (np.asarray(some) for some in (self.ranks, self.needed, self.bounds))
        bonds, top = np.arange(1, ranks.shape[1] + 1), max(ranks.max(), needed.max())
        shown = np.where(bounds <= 1.5 * top, bounds, np.nan)
        ax.plot(bonds, shown, ":", color="0.4", label="largest useful rank")
        labels = "rank", f"needed for an error of {percent_text(self.tol)}"
        for index, (values, label) in enumerate(zip((ranks, needed), labels, strict=True)):
            low, high = values.min(axis=0), values.max(axis=0)
            if np.any(low < high):
                label += ": median and range of the trains"
                ax.fill_between(bonds, low, high, color=COLOURS[index], alpha=0.2, linewidth=0)
            style = line_style(index) | {"linestyle": ("-", "--")[index], "markersize": 4, "label": label}
            ax.plot(bonds, np.median(values, axis=0), **style)
        ax.set(xlim=(0.5, len(bonds) + 0.5), ylim=(0, 1.15 * top + 0.5))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="bond between features k and k+1", ylabel="rank")
        ax.grid(True, color="0.9")
        ax.legend(fontsize="small")
