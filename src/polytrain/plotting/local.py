"""The picture of one row's explanation: bars from the mean to its score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from polytrain.explain import LocalExplanations, explain_local
from polytrain.explain.local import number_format
from polytrain.plotting._style import PAPER, begin_plot, draw_bars, shorten
from polytrain.tensor.checks import check_positive_integer
from polytrain.texts import printable

__all__ = ["LocalExplanationDisplay"]

# Letters of a column's name and of a row's value, for each inch of the figure.
_NAME_LETTERS, _CELL_LETTERS = 3.8, 2.7


@dataclass(eq=False, repr=False)
class LocalExplanationDisplay:
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
    >>> display = LocalExplanationDisplay.from_estimator(model, X, row=100, ax=Figure().subplots())
    >>> display.ax_.get_xlabel()
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
        estimator : TensorTrainClassifier, TensorTrainRegressor, or a Pipeline that ends with one
            A fitted estimator.
        X : array-like or frame of shape (N, n_columns)
            Rows, as for ``predict``.
        row : int, default=0
            Which of them to explain, by its place; -1 is the last.
        X_background, output
            See `polytrain.explain.explain_local`. Of several scores, the largest is drawn unless ``output`` names one.
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
        place = row % len(rows)
        one = rows.iloc[place : place + 1] if hasattr(rows, "iloc") else rows[place : place + 1]
        found = explain_local(estimator, one, X_background=X_background, output=output)
        if not hasattr(rows, "iloc"):
            found = found.renamed((place,))
        return cls(found, max_columns=max_columns).plot(ax)

    def plot(self, ax: Any = None) -> LocalExplanationDisplay:
        """Draw into ``ax``, or into a new figure, and return the display."""
        found, row = self.explanations, self.row
        score = int(np.argmax(found.scores[row])) if self.score is None else self.score
        ranked = self._ranked(score)
        values = np.array([value for *_, value in ranked])
        mean, total = float(found.base[score]), float(found.scores[row, score])
        # The smallest first, from the mean upwards, so that the largest end at the score.
        ends = mean + np.cumsum(values[::-1])[::-1]
        starts = ends - values
        shown = number_format([mean, total, *values])
        self.figure_, self.ax_ = begin_plot(ax, 7.2, 1.7 + 0.34 * len(values))
        width = self.figure_.get_figwidth()
        names = shorten([name for name, *_ in ranked], int(_NAME_LETTERS * width))
        cells = shorten([cell for _, cell, _ in ranked], int(_CELL_LETTERS * width))
        draw_bars(
            self.ax_,
            [f"{name} = {cell}" if cell else name for name, cell in zip(names, cells, strict=True)],
            values,
            marked=values < 0,
            starts=starts,
            numbers=[("\N{MINUS SIGN}" if value < 0 else "+") + shown(abs(value)) for value in values],
            legend=("raises it", "lowers it"),
        )
        places = np.arange(len(values))
        self.ax_.vlines(ends[1:], places[1:] - 1, places[1:], color=PAPER["muted"], linewidth=0.8, zorder=1)
        self._mark(mean, f"mean {shown(mean)}", above=False)
        self._mark(total, f"row {printable(found.row_names[row])}: {shown(total)}", above=True)
        self.ax_.set_ylim(len(values) - 0.2, -0.8)
        self.ax_.use_sticky_edges = False  # bars that begin at the left end need room, too
        self.ax_.margins(x=0.12)
        self.ax_.set_xlabel(found.score_label(score), parse_math=False)
        return self

    def _ranked(self, score: int) -> list[tuple[str, str, float]]:
        """Names, cells and values of the bars, the largest first; columns that are left out share the last one."""
        most = check_positive_integer(self.max_columns, "max_columns")
        ranked = self.explanations.ranked(self.row, score)
        if len(ranked) <= most + 1:  # a bar for one column might as well have its name
            return ranked
        rest = math.fsum(value for *_, value in ranked[most:])
        return [*ranked[:most], (f"{len(ranked) - most} other columns", "", rest)]

    def _mark(self, place: float, text: str, above: bool) -> None:
        """A line across the picture with its number, above it or just inside its lower end."""
        self.ax_.axvline(place, color=PAPER["muted"], linewidth=1, linestyle="-" if above else "--", zorder=0)
        self.ax_.annotate(text, (place, 1.0 if above else 0.0), xycoords=self.ax_.get_xaxis_transform(),
                          xytext=(0 if above else 4, 3), textcoords="offset points", fontsize="small",
                          ha="center" if above else "left", va="bottom", parse_math=False)  # fmt: skip
