"""Pictures of explanations: terms, interactions, partial dependence, and the contributions to the score of one row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from polytrain.explain import (
    LocalExplanations,
    PartialDependence,
    TopTerms,
    explain_local,
    partial_dependence,
    sobol_indices,
    top_terms,
)
from polytrain.explain.local import number_format
from polytrain.explain.view import read_model
from polytrain.plotting._style import PAPER, SHARES, SURFACE, Display, draw_bars, draw_lines, place_values, shorten
from polytrain.tensor.checks import check_positive_integer
from polytrain.texts import printable

__all__ = ["InteractionDisplay", "LocalExplanationDisplay", "PartialDependenceDisplay", "TermStrengthDisplay"]

# Rows of a heat map that still has room for numbers.
_MAX_ANNOTATED = 12
# Letters of a column's name and of a row's value, for each inch of the figure.
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
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import TermStrengthDisplay
    >>> model = TensorTrainClassifier(basis="power", rank=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> len(TermStrengthDisplay.from_estimator(model, 5, ax=Figure().subplots()).terms)
    5
    """

    terms: TopTerms

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        k: int = 10,
        *,
        train: int = 0,
        units: str = "auto",
        constant: bool = False,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
    ) -> TermStrengthDisplay:
        """Find the largest terms of a fitted estimator and draw them.

        Parameters
        ----------
        estimator, k, train, units, feature_names
            See `polytrain.explain.top_terms`.
        constant : bool, default=False
            Whether the constant term is among them. It is often the largest and dwarfs the others.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        k = check_positive_integer(k, "k")
        terms = top_terms(estimator, k + (not constant), train=train, units=units, feature_names=feature_names)
        shown = np.flatnonzero(terms.exponents.any(axis=1) | constant)[:k]
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
            numbers=[f"{coefficient:.3g}" for coefficient in terms.coefficients],
            legend=("positive coefficient", "negative coefficient"),
        )
        ax.margins(x=0.14)
        ax.set_xlim(left=0)
        ax.set_xlabel(f"strength: largest magnitude in the fitted range ({terms.units} features)")
        proof = "" if terms.exact else ", not proven to be the largest"
        ax.set_title(f"Terms of {terms.train_name!r} with their coefficients{proof}", fontsize="medium")


@dataclass(eq=False, repr=False)
class InteractionDisplay(Display):
    """Main effects and interactions of pairs as a heat map.

    Parameters
    ----------
    shares : ndarray of shape (K, K)
        Shares of the variance: main effects on the diagonal, interactions beside it.
    feature_names : sequence of K str
        Names of the features.
    title : str, default=""
        The score that the shares belong to.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import InteractionDisplay
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> InteractionDisplay.from_estimator(model, ax=Figure().subplots()).shares.shape
    (4, 4)
    """

    shares: NDArray
    feature_names: Sequence[str]
    title: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike | None = None,
        *,
        train: int | None = None,
        max_features: int = 12,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
    ) -> InteractionDisplay:
        """Compute Sobol indices of a fitted estimator and draw them.

        Parameters
        ----------
        estimator, X, feature_names
            See `polytrain.explain.sobol_indices`.
        train : int, optional
            Which of the trains; the mean over all of them by default.
        max_features : int, default=12
            How many features to show: those with the largest total index, in the order of the data.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        max_features = check_positive_integer(max_features, "max_features")
        indices = sobol_indices(estimator, X, feature_names=feature_names)
        chosen = range(len(indices.train_names)) if train is None else [read_model(estimator).index("train", train)]
        shares, main, total = (
            some[list(chosen)].mean(axis=0) for some in (indices.second, indices.first, indices.total)
        )
        np.fill_diagonal(shares, main)
        shown = np.sort(np.argsort(-total, kind="stable")[:max_features])
        covered = 100 * float(np.triu(shares).sum())
        title = "mean over the trains" if len(chosen) > 1 else indices.train_names[chosen[0]]
        title = f"{title}: {covered:.0f} % of the variance in single features and pairs"
        return cls(shares[np.ix_(shown, shown)], [indices.feature_names[k] for k in shown], title).plot(ax)

    def _size(self) -> tuple[float, float]:
        size = 3.2 + 0.42 * len(self.feature_names)
        return size + 1.2, size

    def _draw(self, ax: Any) -> None:
        from matplotlib.colors import PowerNorm

        count, percent = len(self.feature_names), 100 * np.asarray(self.shares)
        # Interactions are small beside main effects; the root makes them visible.
        self.im_ = ax.imshow(percent, cmap=SHARES, norm=PowerNorm(0.5, vmin=0))
        names = shorten(self.feature_names)
        ax.set_xticks(range(count), names, rotation=45, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(count), names)
        if count <= _MAX_ANNOTATED:
            colours = np.where(self.im_.norm(percent) > 0.6, "white", "black")
            centred = {"ha": "center", "va": "center", "fontsize": "small"}
            for row, column in zip(*np.nonzero(percent >= 0.05), strict=True):
                ax.text(column, row, f"{percent[row, column]:.1f}", color=colours[row, column], **centred)
        label = "share of the variance (%), columns independent\ndiagonal: alone, beside it: pairs"
        self.figure_.colorbar(self.im_, ax=ax, label=label, shrink=0.85)
        ax.set_title(self.title, fontsize="medium")


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
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import PartialDependenceDisplay
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> PartialDependenceDisplay.from_estimator(model, [2, 3], ax=Figure().subplots()).dependence.values.shape
    (3, 60, 60)
    """

    dependence: PartialDependence
    train: int | None = None
    ticks: Sequence[NDArray] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        features: int | str | Sequence[int | str],
        X: ArrayLike | None = None,
        *,
        train: int | None = None,
        grid_size: int = 60,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
    ) -> PartialDependenceDisplay:
        """Compute the partial dependence of a fitted estimator and draw it.

        Parameters
        ----------
        estimator, features, X, grid_size, feature_names
            See `polytrain.explain.partial_dependence`. The deciles of ``X`` are marked at the axes.
        train : int, optional
            Which train to draw; for one feature all of them by default, for two the first.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        dependence = partial_dependence(estimator, features, X, grid_size=grid_size, feature_names=feature_names)
        view = read_model(estimator)
        train = None if train is None else view.index("train", train)
        ticks = None
        if X is not None and len(dependence.features) == len(dependence.names):  # a date is several features
            rows = view.rows(X)
            ticks = [_deciles(rows[:, k]) if view.category(k) is None else np.zeros(0) for k in dependence.features]
        return cls(dependence, train, ticks).plot(ax)

    def _draw(self, ax: Any) -> None:
        found = self.dependence
        grid = [place_values(ax, axis, values) for axis, values in zip("xy", found.grid, strict=False)]
        has_levels = any(axis.dtype == object for axis in found.grid)
        ax.set_xlabel(found.names[0])
        if len(grid) == 1:
            shown = range(len(found.train_names)) if self.train is None else [self.train]
            curves = [(grid[0], found.values[index]) for index in shown]
            names = [found.train_names[index] for index in shown]
            draw_lines(ax, curves, names, indices=shown, what="scores", joined=not has_levels)
            ax.set_ylabel("mean score" if len(found.train_names) > 1 else _score_label(found.train_names[0]))
        else:
            values = found.values[self.train or 0].T
            if has_levels:  # there is nothing between two levels
                filled = ax.pcolormesh(*grid, values, cmap=SURFACE, shading="nearest")
            else:
                filled = ax.contourf(*grid, values, levels=12, cmap=SURFACE)
                ax.contour(*grid, values, levels=filled.levels, colors="white", linewidths=0.5)
            self.figure_.colorbar(filled, ax=ax, label=_score_label(found.train_names[self.train or 0]))
            ax.set_ylabel(found.names[1])
        marks = {"color": "black", "clip_on": False, "zorder": 5}
        for axis, ticks in zip("xy", self.ticks or (), strict=False):
            for tick in ticks:
                if axis == "x":
                    ax.plot([tick, tick], [0, 0.03], transform=ax.get_xaxis_transform(), **marks)
                else:
                    ax.plot([0, 0.02], [tick, tick], transform=ax.get_yaxis_transform(), **marks)


def _deciles(column: NDArray) -> NDArray:
    """Deciles of the values that are not missing."""
    present = column[~np.isnan(column)]
    return np.quantile(present, np.linspace(0.1, 0.9, 9)) if len(present) else present


def _score_label(train_name: str) -> str:
    return "mean prediction" if train_name == "prediction" else f"mean score of {train_name!r}"


@dataclass(eq=False, repr=False)
class LocalExplanationDisplay(Display):
    """Why a row has its score: one bar per column, from the mean below to the score at the top.

    Parameters
    ----------
    explanations : LocalExplanations
        Result of `polytrain.explain.explain_local`.
    row : int, default=0
        Which of its rows to draw.
    score : int, optional
        Which of its scores; by default the largest of the row.
    max_columns : int, default=10
        Columns with a bar of their own; the others share one.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import LocalExplanationDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TensorTrainClassifier(random_state=0).fit(X, y)
    >>> LocalExplanationDisplay.from_estimator(model, X, row=100, ax=Figure().subplots()).ax_.get_xlabel()
    'pre-softmax score of 2'
    """

    explanations: LocalExplanations
    row: int = 0
    score: int | None = None
    max_columns: int = 10

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        *,
        row: int = 0,
        X_background: ArrayLike | None = None,
        output: int | str | None = None,
        max_columns: int = 10,
        ax: Any = None,
    ) -> LocalExplanationDisplay:
        """Explain a row of X and draw it.

        Parameters
        ----------
        estimator, X, X_background, output
            See `polytrain.explain.explain_local`. Of several scores, the largest is drawn unless ``output`` names one.
        row : int, default=0
            Which row of X to explain, by its place; -1 is the last.
        max_columns : int, default=10
            Columns with a bar of their own; the others share one.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        rows: Any = X if hasattr(X, "__len__") else np.asarray(X)
        if not -len(rows) <= row < len(rows):
            raise ValueError(
                f"row must be between 0 and {len(rows) - 1}, or count from the end, from -1 on, got {row}."
            )
        place, has_index = row % len(rows), hasattr(rows, "iloc")
        one = (rows.iloc if has_index else rows)[place : place + 1]
        found = explain_local(estimator, one, X_background=X_background, output=output)
        return cls(found if has_index else replace(found, row_names=(place,)), max_columns=max_columns).plot(ax)

    def _size(self) -> tuple[float, float]:
        most = check_positive_integer(self.max_columns, "max_columns")
        return 7.2, 1.7 + 0.34 * min(len(self.explanations.column_names), most + 1)

    def _draw(self, ax: Any) -> None:
        found, row = self.explanations, self.row
        score = int(np.argmax(found.scores[row])) if self.score is None else self.score
        ranked, most = found.ranked(row, score), self.max_columns
        if len(ranked) > most + 1:  # a bar for a single column has its name
            rest = math.fsum(value for *_, value in ranked[most:])
            ranked = [*ranked[:most], (f"{len(ranked) - most} other columns", "", rest)]
        names, cells, contributions = zip(*ranked, strict=True)
        values = np.array(contributions)
        mean, total = float(found.base[score]), float(found.scores[row, score])
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
        )
        places = np.arange(1, len(values))
        ax.vlines(ends[1:], places - 1, places, color=PAPER["muted"], linewidth=0.8, zorder=1)
        note = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points", "fontsize": "small"}
        note |= {"va": "bottom", "parse_math": False}
        ax.axvline(mean, color=PAPER["muted"], linewidth=1, linestyle="--", zorder=0)
        ax.annotate(f"mean {shown(mean)}", (mean, 0.0), xytext=(4, 3), ha="left", **note)
        ax.axvline(total, color=PAPER["muted"], linewidth=1, zorder=0)
        title = f"row {printable(found.row_names[row])}: {shown(total)}"
        ax.annotate(title, (total, 1.0), xytext=(0, 3), ha="center", **note)
        ax.set_ylim(len(values) - 0.2, -0.8)
        ax.use_sticky_edges = False  # bars that begin at the left end need room, too
        ax.margins(x=0.12)
        ax.set_xlabel(found.score_label(score), parse_math=False)
