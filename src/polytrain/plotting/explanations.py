"""Pictures of the explanations: terms, interactions, partial dependence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from polytrain.explain import PartialDependence, TopTerms, partial_dependence, sobol_indices, top_terms
from polytrain.explain.view import read_model
from polytrain.plotting._style import SHARES, SURFACE, begin_plot, draw_bars, draw_lines, place_values, shorten
from polytrain.tensor.checks import check_positive_integer

__all__ = ["InteractionDisplay", "PartialDependenceDisplay", "TermStrengthDisplay"]

# Cells of a heat map that still have room for a number.
_MAX_ANNOTATED = 12


@dataclass(eq=False, repr=False)
class TermStrengthDisplay:
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
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TensorTrainClassifier(basis="power", rank=2, random_state=0).fit(X, y)
    >>> display = TermStrengthDisplay.from_estimator(model, 5, ax=Figure().subplots())
    >>> len(display.terms), display.terms.exact
    (5, True)
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
        estimator : TensorTrainClassifier or TensorTrainRegressor
            A fitted estimator.
        k, train, units, feature_names
            See `polytrain.explain.top_terms`.
        constant : bool, default=False
            Whether the constant term is among them. It is often the largest and dwarfs the others.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        k = check_positive_integer(k, "k")
        terms = top_terms(estimator, k + (not constant), train=train, units=units, feature_names=feature_names)
        shown = np.ones(len(terms), dtype=bool) if constant else terms.exponents.any(axis=1)
        kept = {name: getattr(terms, name)[shown][:k] for name in ("exponents", "coefficients", "strengths")}
        return cls(replace(terms, **kept)).plot(ax)

    def plot(self, ax: Any = None) -> TermStrengthDisplay:
        """Draw into ``ax``, or into a new figure, and return the display."""
        terms = self.terms
        self.figure_, self.ax_ = begin_plot(ax, 7.2, 1.4 + 0.32 * len(terms))
        names = ["constant" if name == "1" else name for name in shorten(terms.names, 60)]
        draw_bars(
            self.ax_,
            names,
            terms.strengths,
            marked=terms.coefficients < 0,
            numbers=[f"{coefficient:.3g}" for coefficient in terms.coefficients],
            legend=("positive coefficient", "negative coefficient"),
        )
        self.ax_.margins(x=0.14)
        self.ax_.set_xlim(left=0)
        self.ax_.set_xlabel(f"strength: largest magnitude in the fitted range ({terms.units} features)")
        proof = "" if terms.exact else ", not proven to be the largest"
        self.ax_.set_title(f"Terms of {terms.train_name!r} with their coefficients{proof}", fontsize="medium")
        return self


@dataclass(eq=False, repr=False)
class InteractionDisplay:
    """Main effects and interactions of pairs as a heat map.

    Parameters
    ----------
    shares : ndarray of shape (K, K)
        Shares of the variance: main effects on the diagonal, interactions beside it.
    feature_names : sequence of K str
        Names of the features.
    title : str, default=""
        What the shares belong to.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import InteractionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(X, y)
    >>> display = InteractionDisplay.from_estimator(model, X, ax=Figure().subplots())
    >>> display.shares.shape
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
        estimator : TensorTrainClassifier or TensorTrainRegressor
            A fitted estimator.
        X : array-like of shape (N, d), optional
            Rows that give the distribution of each feature; see `polytrain.explain.sobol_indices`.
        train : int, optional
            Which of the trains; the mean over all of them by default.
        max_features : int, default=12
            How many features to show: those with the largest total index, in the order of the data.
        feature_names : sequence of d str, optional
            By default those of the training data, or x1, x2, ...
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        max_features = check_positive_integer(max_features, "max_features")
        indices = sobol_indices(estimator, X, feature_names=feature_names)
        if train is None:
            chosen = slice(None)
            title = "mean over the trains" if len(indices.train_names) > 1 else indices.train_names[0]
        else:
            position = read_model(estimator).index("train", train)
            chosen, title = slice(position, position + 1), indices.train_names[position]
        shares = indices.second[chosen].mean(axis=0)
        np.fill_diagonal(shares, indices.first[chosen].mean(axis=0))
        shown = np.sort(np.argsort(-indices.total[chosen].mean(axis=0), kind="stable")[:max_features])
        covered = float(np.trace(shares) + np.triu(shares, 1).sum())
        title = f"{title}: {100 * covered:.0f} % of the variance in single features and pairs"
        return cls(shares[np.ix_(shown, shown)], [indices.feature_names[k] for k in shown], title).plot(ax)

    def plot(self, ax: Any = None) -> InteractionDisplay:
        """Draw into ``ax``, or into a new figure, and return the display."""
        count = len(self.feature_names)
        size = 3.2 + 0.42 * count
        self.figure_, self.ax_ = begin_plot(ax, size + 1.2, size)
        from matplotlib.colors import PowerNorm

        percent = 100 * np.asarray(self.shares)
        # Interactions are small beside main effects; the root makes them visible.
        self.im_ = self.ax_.imshow(percent, cmap=SHARES, norm=PowerNorm(0.5, vmin=0))
        names = shorten(self.feature_names)
        self.ax_.set_xticks(range(count), names, rotation=45, ha="right", rotation_mode="anchor")
        self.ax_.set_yticks(range(count), names)
        if count <= _MAX_ANNOTATED:
            dark = self.im_.norm(percent) > 0.6
            for row, column in zip(*np.nonzero(percent >= 0.05), strict=True):
                colour = "white" if dark[row, column] else "black"
                self.ax_.text(column, row, f"{percent[row, column]:.1f}", ha="center", va="center", color=colour,
                              fontsize="small")  # fmt: skip
        self.figure_.colorbar(
            self.im_,
            ax=self.ax_,
            label="share of the variance (%), columns independent\ndiagonal: alone, beside it: pairs",
            shrink=0.85,
        )
        self.ax_.set_title(self.title, fontsize="medium")
        return self


@dataclass(eq=False, repr=False)
class PartialDependenceDisplay:
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
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(X, y)
    >>> display = PartialDependenceDisplay.from_estimator(model, [2, 3], X, ax=Figure().subplots())
    >>> display.dependence.values.shape
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
        estimator : TensorTrainClassifier or TensorTrainRegressor
            A fitted estimator.
        features, X, grid_size, feature_names
            See `polytrain.explain.partial_dependence`. The deciles of ``X`` are marked at the axes.
        train : int, optional
            Which train to draw; for one feature all of them by default, for two the first.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        dependence = partial_dependence(estimator, features, X, grid_size=grid_size, feature_names=feature_names)
        view = read_model(estimator)
        if train is not None:
            train = view.index("train", train)
        ticks = None
        if X is not None:
            rows = view.rows(X)
            chosen = dependence.features if len(dependence.features) == len(dependence.names) else ()  # else a date
            ticks = [_deciles(rows[:, k]) if view.category(k) is None else np.zeros(0) for k in chosen]
        return cls(dependence, train, ticks).plot(ax)

    def plot(self, ax: Any = None) -> PartialDependenceDisplay:
        """Draw into ``ax``, or into a new figure, and return the display."""
        self.figure_, self.ax_ = begin_plot(ax)
        self.ax_.set_xlabel(self.dependence.names[0])
        if len(self.dependence.names) == 1:
            self._plot_lines()
        else:
            self._plot_contours()
        marks = {"color": "black", "clip_on": False, "zorder": 5}
        for axis, ticks in zip("xy", self.ticks or (), strict=False):
            for tick in ticks:
                if axis == "x":
                    self.ax_.plot([tick, tick], [0, 0.03], transform=self.ax_.get_xaxis_transform(), **marks)
                else:
                    self.ax_.plot([0, 0.02], [tick, tick], transform=self.ax_.get_yaxis_transform(), **marks)
        return self

    def _plot_lines(self) -> None:
        shown = range(len(self.dependence.train_names)) if self.train is None else [self.train]
        (grid,) = self._begin_axes()
        curves = [(grid, self.dependence.values[index]) for index in shown]
        names = [self.dependence.train_names[index] for index in shown]
        draw_lines(self.ax_, curves, names, indices=shown, what="scores", joined=not self._has_levels)
        self.ax_.set_ylabel(_score_label(self.dependence.train_names))

    @property
    def _has_levels(self) -> bool:
        """Whether some axis counts the levels of categories."""
        return any(axis.dtype == object for axis in self.dependence.grid)

    def _begin_axes(self) -> list[NDArray]:
        """Where the values of every axis are drawn."""
        return [place_values(self.ax_, axis, grid) for axis, grid in zip("xy", self.dependence.grid, strict=False)]

    def _plot_contours(self) -> None:
        train = self.train or 0
        values = self.dependence.values[train].T
        grid = self._begin_axes()
        if self._has_levels:  # there is nothing between two levels
            filled = self.ax_.pcolormesh(*grid, values, cmap=SURFACE, shading="nearest")
        else:
            filled = self.ax_.contourf(*grid, values, levels=12, cmap=SURFACE)
            self.ax_.contour(*grid, values, levels=filled.levels, colors="white", linewidths=0.5)
        name = self.dependence.train_names[train]
        label = _score_label((name,)) if len(self.dependence.train_names) == 1 else f"mean score of {name!r}"
        self.figure_.colorbar(filled, ax=self.ax_, label=label)
        self.ax_.set_ylabel(self.dependence.names[1])


def _deciles(column: NDArray) -> NDArray:
    """Deciles of what is not missing."""
    known = column[~np.isnan(column)]
    return np.quantile(known, np.linspace(0.1, 0.9, 9)) if len(known) else known


def _score_label(train_names: Sequence[str]) -> str:
    if len(train_names) > 1:
        return "mean score"
    return "mean prediction" if train_names[0] == "prediction" else f"mean score of {train_names[0]!r}"
