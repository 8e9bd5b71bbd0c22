"""Which columns matter, what they do to the scores, and why three rows have their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from polytrain.explain import MainEffect, PairEffect
from polytrain.explain.axes import value_text
from polytrain.explain.effects import all_effects
from polytrain.explain.local import explain_rows
from polytrain.explain.sites import make_measure
from polytrain.plotting import LocalExplanationDisplay, draw_bars, draw_main_effect, draw_pair_effect, shorten
from polytrain.reporting.errors import ScoredRows
from polytrain.reporting.pictures import number, percent, picture, table

__all__ = ["ColumnEffects", "effect_section", "row_section"]

# Rows that give the distributions of the columns.
_MOST_ROWS = 5000
_MOST_BARS, _MOST_CURVES, _MOST_PAIRS, _MOST_CONTRIBUTIONS = 12, 9, 6, 8
# Curves of one column in one picture, and levels of a category in the picture of a pair.
_MOST_LINES, _MOST_LEVELS = 4, 8
_GRID, _PAIR_GRID = 200, 16
# Curves leave out this share of the rows at both ends: the last per cent may be very far away.
_TAIL = 0.01
# Pairs with a smaller share of the variance are not drawn.
_LEAST_SHARE = 1e-4

_UNITS = {"identity": "the prediction", "log": "the logarithm", "logit": "the log-odds", "softmax": "the score"}


class ColumnEffects:
    """Effects of the columns on each score, under the distributions of the columns in the rows.

    Attributes
    ----------
    effects : list of Effects
        One per score.
    importances : dict of int to float
        Total Sobol index of each column, the mean over the scores, scaled to the sum 1; the largest first.
    """

    def __init__(self, rows: ScoredRows) -> None:
        X = rows.X[:: -(-len(rows.X) // _MOST_ROWS)]
        self.effects = all_effects(rows.view, X, range(len(rows.view.trains)), _MOST_PAIRS, _GRID, _PAIR_GRID)
        self._is_sample = len(X) < rows.errors.n
        total = np.mean([[effect.total for effect in one.main] for one in self.effects], axis=0)
        total = total / (total.sum() or 1.0)
        self.importances = {int(k): float(total[k]) for k in np.argsort(-total, kind="stable")}

    def main(self, column: int) -> dict[int, MainEffect]:
        """Effects of a column on those scores that it changes most, by their numbers."""
        main = [_central(one.main[column]) for one in self.effects]
        if self._is_sample:  # its counts are not those of all rows, but shares are about the same
            main = [replace(effect, counts=None, missing_count=None) for effect in main]
        strongest = np.argsort([-np.ptp(effect.values) for effect in main], kind="stable")[:_MOST_LINES]
        return {int(k): main[k] for k in sorted(strongest)}

    def pairs(self) -> list[tuple[int, PairEffect]]:
        """Pairs with the largest shares of the variance, each with the score in which its share is the largest."""
        every = [(k, pair) for k, one in enumerate(self.effects) for pair in one.pairs if pair.share > _LEAST_SHARE]
        best: dict[tuple[str, str], tuple[int, PairEffect]] = {}
        for k, pair in sorted(every, key=lambda item: -item[1].share):
            best.setdefault(pair.names, (k, pair))
        return list(best.values())[:_MOST_PAIRS]


def _central(effect: MainEffect) -> MainEffect:
    """The effect without the outermost values of a column that has many."""
    if effect.kind == "category" or len(effect.grid) <= 10 or not effect.parts.any():
        return effect
    below = np.cumsum(effect.parts) / effect.parts.sum()
    kept = (below >= _TAIL) & (below - effect.parts / effect.parts.sum() <= 1 - _TAIL)
    if kept.sum() < 10:
        return effect
    counts = None if effect.counts is None else effect.counts[kept]
    return replace(effect, grid=effect.grid[kept], values=effect.values[kept], parts=effect.parts[kept], counts=counts)


def effect_section(rows: ScoredRows, found: ColumnEffects) -> dict[str, Any]:
    """Importances, and a picture of every important column and pair."""
    fitted, names = rows.fitted, rows.view.column_names
    unit = "the score" if fitted.classes is not None and not fitted.has_probabilities else _UNITS[fitted.link]
    shown, rest = list(found.importances)[:_MOST_BARS], list(found.importances)[_MOST_BARS:]
    more: dict[str, Any] = {}
    if rest:
        lines = [(names[k], percent(found.importances[k])) for k in rest]
        more = {
            "table": table("Further columns", ("column", "importance"), lines),
            "summary": f"{len(rest)} further columns",
        }
    pictures = [
        _bars("Importances", {names[k]: (found.importances[k], percent(found.importances[k])) for k in shown}, **more),
        _shuffled(rows, shown),
    ]
    pictures += [_effect(rows, found, k, unit) for k in shown[:_MOST_CURVES] if found.importances[k] > 0]
    shares = np.mean([(one.main_share, one.pair_share, one.rest_share) for one in found.effects], axis=0)
    return {
        "unit": unit,
        "shares": [percent(share) for share in shares],
        "pictures": pictures,
        "pairs": [_pair(rows, found, k, pair) for k, pair in found.pairs()],
    }


def _bars(title: str, bars: dict[str, tuple[float, str]], **more: Any) -> dict[str, Any]:
    values = np.array([value for value, _ in bars.values()])

    def draw(ax: Any) -> None:
        draw_bars(ax, shorten(list(bars), 20), values, marked=values < 0, numbers=[text for _, text in bars.values()])
        ax.margins(x=0.25)
        ax.set_xlim(left=min(1.25 * values.min(), 0.0))
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)

    told = "; ".join(f"{name} {text}" for name, (_, text) in bars.items())
    return picture(title, told, draw, height=0.3 + 0.33 * len(bars), **more)


def _shuffled(rows: ScoredRows, columns: Sequence[int]) -> dict[str, Any]:
    rises = sorted(zip(columns, rows.shuffled(columns), strict=True), key=lambda pair: -pair[1])
    is_share = rows.labels is not None
    bars = {
        rows.view.column_names[k]: (rise, f"{100 * rise:+.2f} %" if is_share else f"{rise:+.4g}") for k, rise in rises
    }
    about = "rise of the share of wrong labels" if is_share else "rise of the root mean squared error"
    return _bars("Error with a column shuffled", bars, about=about)


def _effect(rows: ScoredRows, found: ColumnEffects, column: int, unit: str) -> dict[str, Any]:
    effects, scores = found.main(column), rows.view.train_names
    name, first = rows.view.column_names[column], next(iter(effects.values()))

    def draw(ax: Any) -> None:
        draw_main_effect(ax, effects, scores)
        (ax.set_ylabel if first.kind != "category" else ax.set_xlabel)(f"effect on {unit}")

    about = f"importance {percent(found.importances[column])}"
    if len(scores) > len(effects):
        about += f"; {len(scores) - len(effects)} weaker classes left out"
    told = "; ".join(_told(effect, scores[k]) for k, effect in effects.items())
    if first.missing_part > 0:
        count = percent(first.missing_part) if first.missing_count is None else f"{first.missing_count:g} rows"
        told += f". Missing in {count}"
    n_bars = min(len(first.grid), 12) + (first.missing is not None)
    height = 0.8 + 0.3 * n_bars if first.kind == "category" else 2.8
    return picture(name, f"Effect on {unit} {told}", draw, height=height, about=about)


def _told(effect: MainEffect, score: str) -> str:
    """An effect in words: that of each level, or the ends and extremes of a curve."""
    values, places = effect.values, list(range(len(effect.grid)))[:_MOST_BARS]
    if effect.kind != "category":
        places = sorted({0, int(values.argmin()), int(values.argmax()), len(values) - 1})
    told = [f"{values[k]:+.3g} at {value_text(effect.grid[k])}" for k in places]
    told += [] if effect.missing is None else [f"{effect.missing:+.3g} if missing"]
    return f"for {score}: " + ", ".join(told)


def _pair(rows: ScoredRows, found: ColumnEffects, score: int, pair: PairEffect) -> dict[str, Any]:
    order = [0, 1] if pair.kinds[0] != "category" else [1, 0]  # names have more room at the side
    values, names, grids = pair.values.transpose(order), [pair.names[k] for k in order], []
    for axis, k in enumerate(order):
        kept = np.arange(len(pair.grids[k]))
        if pair.kinds[k] == "category":
            kept = np.sort(np.argsort(-found.effects[score][pair.names[k]].parts, kind="stable")[:_MOST_LEVELS])
        values = values.take(kept, axis=axis)
        grids.append(pair.grids[k][kept])
    shown = PairEffect((names[0], names[1]), pair.kinds, (grids[0], grids[1]), values, pair.share)
    ends = [np.unravel_index(end, values.shape) for end in (values.argmin(), values.argmax())]
    told = " to ".join(
        f"{values[end]:+.3g} at {', '.join(value_text(grid[k]) for grid, k in zip(grids, end, strict=True))}"
        for end in ends
    )
    about = f"{percent(pair.share)} of the variance"
    if len(found.effects) > 1:
        about += f" of the score for {rows.view.train_names[score]}"
    height = 3.0 if grids[0].dtype != object else 3.8
    return picture(" and ".join(names), told, partial(_draw_pair, pair=shown), height=height, about=about)


def _draw_pair(ax: Any, pair: PairEffect) -> None:
    draw_pair_effect(ax, pair)
    ax.set_title("")


def _outcome(rows: ScoredRows, j: int) -> str:
    labels, answers = rows.labels, rows.answers
    if labels is None:
        return f"predicted {number(float(answers.predicted[j]))}, true {number(float(answers.y[j]))}"
    predicted, sure = answers.predicted[j], answers.probabilities
    probability = "" if sure is None else f" ({percent(float(sure[j, predicted]))})"
    return f"predicted {labels[predicted]}{probability}, true {labels[answers.y[j]]}"


def row_section(rows: ScoredRows) -> dict[str, Any]:
    """Explain the row with the most certain prediction, the worst one, and one with a median error."""
    order = np.argsort(rows.margins, kind="stable")
    is_classifier, surest = rows.labels is not None, order[-1]
    if rows.answers.probabilities is not None:
        surest = rows.answers.probabilities.max(axis=1).argmax()
    # Where all rows are right, none is wrong.
    worst = "Least certain" if is_classifier and rows.margins[order[0]] > 0 else "Largest error"
    titles = "Most certain" if is_classifier else "Smallest error", worst, "Typical row"
    chosen = [int(surest), int(order[0]), int(order[len(order) // 2])]
    view = rows.view
    found = explain_rows(
        view,
        rows.X[chosen],
        make_measure(view, rows.X[:: -(-len(rows.X) // _MOST_ROWS)]),
        scores=range(len(view.trains)),
        cells=tuple(rows.cells(j) for j in chosen),
        row_names=tuple(int(rows.places[j]) for j in chosen),
    )
    pictures = []
    for place, (title, j) in enumerate(zip(titles, chosen, strict=True)):
        score = _score_of(rows, j)
        display = LocalExplanationDisplay(found, place, score, _MOST_CONTRIBUTIONS)
        n_bars = min(len(found.column_names), _MOST_CONTRIBUTIONS + 1)
        told = found.sentence(place, score, _MOST_CONTRIBUTIONS)
        name = f"{title}: row {rows.places[j]}"
        pictures.append(picture(name, told, display.plot, height=1.4 + 0.42 * n_bars, about=_outcome(rows, j)))
    return {"pictures": pictures}


def _score_of(rows: ScoredRows, j: int) -> int:
    """The score that stands for the predicted class of a row, or that tells it from the second most likely one."""
    fitted, decided = rows.fitted, rows.answers.decided
    if fitted.n_trains == 1 or fitted.decision is None or decided is None:
        return 0
    if fitted.n_trains == decided.shape[1]:
        return int(rows.answers.predicted[j])
    second, first = np.argsort(decided[j], kind="stable")[-2:]
    code = np.asarray(fitted.decision.code(decided.shape[1]))
    return int((code[:, first] * code[:, second] < 0).argmax())
