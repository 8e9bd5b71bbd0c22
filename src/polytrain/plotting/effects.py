"""Pictures of importances, interactions and effects: a curve per number, bars per level, a map per pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from polytrain.explain import (
    Effects,
    FeatureImportances,
    MainEffect,
    PairEffect,
    effects,
    feature_importances,
    sobol_indices,
)
from polytrain.explain.sensitivity import INDEPENDENCE
from polytrain.explain.view import read_model
from polytrain.plotting.style import (
    COLOURS,
    PAPER,
    Display,
    begin_plots,
    draw_bars,
    legend_text,
    line_style,
    place_values,
    shorten,
    titled,
    write_ticks,
)
from polytrain.tensor.checks import check_positive_integer
from polytrain.texts import number_text, percent_text, unit_of

# Levels that have a bar, the most common ones; more would be too thin to read.
_MOST_BARS = 12
_MOST_DENSITY_BARS = 40
# Rows of a heat map that still has room for numbers.
_MAX_ANNOTATED = 12
# Part of the height that the distribution of a number takes below its curve.
_DENSITY_HEIGHT = 0.22


@dataclass(eq=False, repr=False)
class ImportancesDisplay(Display):
    """Importances of columns as bars.

    Parameters
    ----------
    importances : FeatureImportances
        Result of `polytrain.explain.feature_importances`.
    max_columns : int, default=15
        Number of columns to show, the most important first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import ImportancesDisplay
    >>> model = TensorTrainClassifier(random_state=0).fit(*load_iris(return_X_y=True))
    >>> ImportancesDisplay.from_estimator(model).importances.ranked()[0][0]
    'x3'
    """

    importances: FeatureImportances
    max_columns: int = 15

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, X: Any = None, *, ax: Any = None) -> Self:
        """Compute the importances of a fitted estimator and draw them; see `polytrain.explain.feature_importances`."""
        return cls(feature_importances(estimator, X)).plot(ax)

    def _size(self) -> tuple[float, float]:
        most = check_positive_integer(self.max_columns, "max_columns")
        return 4.8, 1.0 + 0.32 * min(len(self.importances.feature_names), most)

    def _draw(self, ax: Any) -> None:
        names, values = zip(*self.importances.ranked()[: self.max_columns], strict=True)
        draw_bars(ax, shorten(names), values, names=names)
        ax.set_xlabel("share of the variance, columns independent", fontsize="small")
        ax.tick_params(labelsize="small")


@dataclass(eq=False, repr=False)
class EffectsDisplay:
    """Effects of the most important columns, and of the strongest pairs, side by side.

    A number has a curve, with the distribution of the column below it, and a mark for missing values; a category has
    a bar per level, with its count, and one for missing values; a pair has a map.

    Parameters
    ----------
    effects : Effects
        Result of `polytrain.explain.effects`.
    columns : sequence of str, optional
        The columns to draw; by default the six with the largest total share.
    n_pairs : int, default=2
        Number of pairs to draw, the strongest first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import EffectsDisplay
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> len(EffectsDisplay.from_estimator(model, n_pairs=1).axes_)
    5
    """

    effects: Effects
    columns: Sequence[str] | None = None
    n_pairs: int = 2

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike | None = None,
        *,
        output: int | str = 0,
        columns: Sequence[str] | None = None,
        n_pairs: int = 2,
        axes: Any = None,
    ) -> Self:
        """Compute the effects of a fitted estimator on an output and draw them; see `polytrain.explain.effects`."""
        return cls(effects(estimator, X, output=output, top_pairs=n_pairs), columns, n_pairs).plot(axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw into the given axes, or into a new figure, and return the display."""
        names = [effect.name for effect in self.effects.ranked()[:6]] if self.columns is None else self.columns
        shown = [self.effects[name] for name in names]
        pairs = self.effects.pairs[: self.n_pairs]
        if not shown and not pairs:
            raise ValueError(f"there is nothing to draw with columns={self.columns!r} and no pairs; name a column.")
        self.figure_, self.axes_ = begin_plots(axes, len(shown) + len(pairs))
        for ax, effect in zip(self.axes_, shown, strict=False):
            draw_main_effect(ax, effect)
        for ax, pair in zip(self.axes_[len(shown) :], pairs, strict=False):
            draw_pair_effect(ax, pair)
        output = self.effects.output
        self.axes_[0].set_ylabel("effect" if output == "prediction" else f"effect on {output!r}")
        if axes is None:
            self.figure_.supxlabel(f"shares of the variance; {INDEPENDENCE}", fontsize="small", color=PAPER["muted"])
        return self


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
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import InteractionDisplay
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> InteractionDisplay.from_estimator(model).shares.shape
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
        ax: Any = None,
    ) -> Self:
        """Compute the Sobol indices of a fitted estimator and draw them; see `polytrain.explain.sobol_indices`.

        They are those of one train, or the mean over all of them. ``max_features`` is the number of features to show:
        those with the largest total index, in the order of the data.
        """
        max_features = check_positive_integer(max_features, "max_features")
        indices = sobol_indices(estimator, X)
        chosen = range(len(indices.train_names)) if train is None else [read_model(estimator).index("train", train)]
        parts = indices.second, indices.first, indices.total
        shares, main, total = (part[list(chosen)].mean(axis=0) for part in parts)
        np.fill_diagonal(shares, main)
        shown = np.sort(np.argsort(-total, kind="stable")[:max_features])
        covered = percent_text(float(np.triu(shares).sum()))
        title = "mean over the trains" if len(chosen) > 1 else indices.train_names[chosen[0]]
        title = f"{title}: {covered} of the variance in single features and pairs"
        return cls(shares[np.ix_(shown, shown)], [indices.feature_names[k] for k in shown], title).plot(ax)

    def _size(self) -> tuple[float, float]:
        size = 3.2 + 0.42 * len(self.feature_names)
        return size + 1.2, size

    def _draw(self, ax: Any) -> None:
        from matplotlib.colors import PowerNorm

        count, percent = len(self.feature_names), 100 * np.asarray(self.shares)
        # Interactions are small beside main effects; the root makes them visible.
        self.im_ = ax.imshow(percent, cmap="Blues", norm=PowerNorm(0.5, vmin=0))
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


def draw_main_effect(ax: Any, effect: MainEffect | Mapping[int, MainEffect], names: Sequence[str] = ()) -> None:
    """Draw the main effect of a column: a curve, or bars.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    effect : MainEffect, or dict of int to MainEffect
        One of ``effects(...).main``; or those of a column on several scores, by the numbers of the scores. A score has
        the same colour in all pictures.
    names : sequence of str, optional
        Names of the scores.
    """
    several = {0: effect} if isinstance(effect, MainEffect) else effect
    first = next(iter(several.values()))
    if isinstance(effect, MainEffect):
        shares = f"{percent_text(first.share)} alone, {percent_text(first.total)} in all"
        ax.set_title(f"{shorten([first.name])[0]}: {shares}", fontsize="small", parse_math=False)
    (_draw_levels if first.kind == "category" else _draw_curves)(ax, several, names)
    ax.tick_params(labelsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    write_ticks(ax)
    if len(several) > 1:
        ax.legend(fontsize="small")


def _draw_curves(ax: Any, several: Mapping[int, MainEffect], names: Sequence[str]) -> None:
    effect = next(iter(several.values()))
    grid = effect.grid
    places = grid.astype("datetime64[s]").astype(float) if effect.kind == "date" else grid
    ends = _bar_ends(places)
    heights, _ = np.histogram(places, bins=ends, weights=effect.parts)
    below = ax.inset_axes((0, 0, 1, _DENSITY_HEIGHT), sharex=ax)
    edges = ends.astype("datetime64[s]") if effect.kind == "date" else ends
    below.stairs(heights, edges, fill=True, color=PAPER["rule"])
    below.axis("off")
    below.set_ylim(0, max(heights.max(), 1e-12))
    ax.axhline(0.0, color=PAPER["muted"], linewidth=0.8)
    look = {"markersize": 4, "linewidth": 1.2} if len(grid) <= 10 else {"marker": "", "linewidth": 2}
    right, colour = ax.get_yaxis_transform(), COLOURS[1] if len(several) == 1 else None
    for index, one in several.items():
        name, style = names[index] if names else one.name, line_style(index)
        ax.plot(grid, one.values, label=legend_text(name), **(style | look), **titled(name))
        if one.missing is not None:
            ax.plot([1.0], [one.missing], marker="D", color=colour or style["color"], clip_on=False, transform=right)
    if effect.missing is not None:
        text = f"missing ({_amount(effect, effect.missing_part)})"
        note = {"textcoords": "offset points", "ha": "right", "va": "center", "fontsize": "small", "color": colour}
        ax.annotate(text, (1.0, effect.missing), xycoords=right, xytext=(-7, 0), **note)
    gaps = [one.missing for one in several.values() if one.missing is not None]
    drawn = np.concatenate([*(one.values for one in several.values()), gaps])
    low, high = drawn.min(), drawn.max()
    height = max(high - low, 1e-12)
    # Room below the curve for the distribution.
    ax.set_ylim(low - height * (_DENSITY_HEIGHT + 0.05) / (0.95 - _DENSITY_HEIGHT), high + 0.08 * height)
    if effect.kind == "date":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=2, maxticks=5)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    else:
        place_values(ax, "x", grid)
        ax.set_xlabel(unit_of(effect.name), fontsize="small", parse_math=False)


def _bar_ends(places: NDArray) -> NDArray:
    """Ends of bars of equal width, although values may be next to each other or far apart."""
    steps = np.diff(places)
    if len(places) > 1 and steps.max() <= 1.01 * steps.min():  # as many values in every bar
        size = -(-len(places) // _MOST_DENSITY_BARS)
        return places[0] - steps[0] / 2 + steps[0] * size * np.arange(-(-len(places) // size) + 1)
    return np.linspace(places[0], places[-1] if len(places) > 1 else places[0] + 1.0, _MOST_DENSITY_BARS + 1)


def _draw_levels(ax: Any, several: Mapping[int, MainEffect], names: Sequence[str]) -> None:
    """Draw a bar per level, or, for several scores, a mark for each of them."""
    effect = next(iter(several.values()))
    common = np.sort(np.argsort(-effect.parts, kind="stable")[:_MOST_BARS])
    order = common[np.argsort(-effect.values[common], kind="stable")].tolist()
    names_of_levels = shorten(effect.grid[order])
    labels = [f"{name} ({_amount(effect, effect.parts[k])})" for name, k in zip(names_of_levels, order, strict=True)]
    gap = effect.missing is not None
    levels = [*effect.grid[order], *["missing"] * gap]
    if gap:
        labels.append(f"missing ({_amount(effect, effect.missing_part)})")
    values = {k: np.array([*one.values[order], *[one.missing] * gap], dtype=float) for k, one in several.items()}
    if len(several) == 1:
        missing = np.arange(len(labels)) == (len(order) if gap else -1)
        draw_bars(ax, labels, next(iter(values.values())), marked=missing, names=levels)
    else:
        draw_bars(ax, labels, np.zeros(len(labels)), names=levels)
        for index, some in values.items():
            style = line_style(index) | {"linestyle": "none"}
            style |= titled(names[index])
            ax.plot(some, np.arange(len(labels)), markersize=6, label=legend_text(names[index]), **style)
        ax.grid(True, axis="y", color=PAPER["rule"], linewidth=0.8)
    ax.axvline(0.0, color=PAPER["muted"], linewidth=0.8)
    left_out = len(effect.grid) - len(order)
    ax.set_xlabel("effect" + (f"; {left_out} rarer levels left out" if left_out else ""), fontsize="small")


def draw_pair_effect(ax: Any, pair: PairEffect) -> None:
    """Draw the effect of a pair as a map: one colour above 0, another below, the stronger the larger it is.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    pair : PairEffect
        One of ``effects(...).pairs``.
    """
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    # Colours that begin transparent at 0 suit light and dark pages.
    below, above = (to_rgba(COLOURS[index]) for index in (1, 0))
    ends = [below, (*below[:3], 0.0), (*above[:3], 0.0), above]
    signed = LinearSegmentedColormap.from_list("signed", list(zip((0, 0.5, 0.5, 1), ends, strict=True)), 33)
    largest = max(float(np.abs(pair.values).max()), 1e-300)
    places = [place_values(ax, axis, grid, 14) for axis, grid in zip("xy", pair.grids, strict=True)]
    mesh = ax.pcolormesh(*places, pair.values.T, cmap=signed, shading="nearest", vmin=-largest, vmax=largest)
    for set_label, name in zip((ax.set_xlabel, ax.set_ylabel), pair.names, strict=True):
        set_label(shorten([name])[0], fontsize="small", parse_math=False, **titled(name))
    ax.set_title(f"together: {percent_text(pair.share)}", fontsize="small")
    ax.tick_params(labelsize="small")
    ax.figure.colorbar(mesh, ax=ax)
    write_ticks(ax)


def _amount(effect: MainEffect, part: float) -> str:
    """Number of these rows, or their share where only shares are known."""
    return percent_text(part) if effect.n_rows is None else number_text(round(part * effect.n_rows, 6))
