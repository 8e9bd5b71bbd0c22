"""Importances and effects of columns, and explanations of three rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from polytrain.choice import LITTLE
from polytrain.explain import MainEffect, PairEffect
from polytrain.explain.effects import all_effects
from polytrain.explain.local import explain_rows
from polytrain.explain.sensitivity import value_text
from polytrain.explain.sites import ColumnMeasure, make_measure
from polytrain.plotting import LocalExplanationDisplay, draw_main_effect, draw_pair_effect
from polytrain.plotting.style import draw_bars, shorten
from polytrain.reporting.accuracy import ScoredRows
from polytrain.reporting.pictures import picture, table
from polytrain.texts import number_format, number_text, percent_text

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
# Importances that are 0 up to rounding.
_NOTHING = 1e-12

_UNITS = {"identity": "the prediction", "log": "the logarithm", "logit": "the log-odds", "softmax": "the score"}


class ColumnEffects:
    """Effects of the columns on each score, under the distributions of the columns in the rows.

    ``importances`` are the total Sobol indices by the numbers of the columns, the largest first: their means over the
    scores, scaled to the sum 1.
    """

    def __init__(self, rows: ScoredRows) -> None:
        X = rows.X[:: -(-len(rows.X) // _MOST_ROWS)]
        measure = make_measure(rows.view, X)
        # The counts of a sample are not those of all rows, but shares are about the same.
        self.measure = replace(measure, n_rows=None) if len(X) < rows.every.n else measure
        self.effects = all_effects(self.measure, range(rows.view.fitted.n_trains), _MOST_PAIRS, _GRID, _PAIR_GRID)
        total = np.mean([[effect.total for effect in of_score.main] for of_score in self.effects], axis=0)
        total = total / (total.sum() or 1.0)
        self.importances = {int(k): float(total[k]) for k in np.argsort(-total, kind="stable")}

    def main(self, column: int) -> dict[int, MainEffect]:
        """Effects of a column on the scores that it changes most, by their numbers."""
        main = [_central(of_score.main[column]) for of_score in self.effects]
        strongest = np.argsort([-np.ptp(effect.values) for effect in main], kind="stable")[:_MOST_LINES]
        return {int(k): main[k] for k in sorted(strongest)}

    def pairs(self) -> list[tuple[int, PairEffect]]:
        """Pairs with the largest shares of the variance, each with the score in which its share is the largest."""
        every = [(k, pair) for k, of_score in enumerate(self.effects) for pair in of_score.pairs]
        best: dict[tuple[str, str], tuple[int, PairEffect]] = {}
        for k, pair in sorted(every, key=lambda item: -item[1].share):
            if pair.share > _LEAST_SHARE:
                best.setdefault(pair.names, (k, pair))
        return list(best.values())[:_MOST_PAIRS]


def _central(effect: MainEffect) -> MainEffect:
    """The effect without the outermost values of a column that has many."""
    if effect.kind == "category" or not effect.parts.any():
        return effect
    below = np.cumsum(effect.parts) / effect.parts.sum()
    kept = (below >= _TAIL) & (np.append(0.0, below[:-1]) <= 1 - _TAIL)
    if kept.sum() < 10:
        return effect
    return replace(effect, grid=effect.grid[kept], values=effect.values[kept], parts=effect.parts[kept])


def effect_section(rows: ScoredRows, effects: ColumnEffects) -> dict[str, Any]:
    """Importances, and a picture of every important column and pair."""
    fitted, names, importances = rows.view.fitted, rows.view.column_names, effects.importances
    unit = "the score" if fitted.classes is not None and not fitted.has_probabilities else _UNITS[fitted.link]
    unit += rows.unit if fitted.link == "identity" else ""
    shown, rest = list(importances)[:_MOST_BARS], list(importances)[_MOST_BARS:]
    lines = [(names[k], percent_text(importances[k])) for k in rest]
    further = table(f"{len(rest)} further columns", ("column", "importance"), lines) if rest else None
    rises = dict(zip((names[k] for k in shown), rows.shuffled(shown), strict=True))
    show_rise = partial(number_text if fitted.classes is None else percent_text, signed=True)
    pictures = [
        _bars("Importances", {names[k]: importances[k] for k in shown}, percent_text, table=further),
        _bars("Error with a column shuffled", rises, show_rise, about=f"rise of the {rows.error_name}"),
        *(_effect(rows, effects, k, unit) for k in shown[:_MOST_CURVES] if importances[k] > 0),
    ]
    shares = np.mean([(part.main_share, part.pair_share, part.rest_share) for part in effects.effects], axis=0)
    pairs = [_pair(rows, effects, k, pair) for k, pair in effects.pairs()]
    told = {"unit": unit, "shares": [percent_text(share) for share in shares], "pictures": pictures, "pairs": pairs}
    return told | {"unneeded": _unneeded(rows, importances)}


def _unneeded(rows: ScoredRows, importances: dict[int, float]) -> dict[str, Any]:
    """Columns of little or no use to the model, as a sentence and a table; empty if there are none."""
    unused = [k for k, importance in importances.items() if importance < _NOTHING]
    little = [k for k in importances if rows.relevances[k] < LITTLE or k in unused]
    if not little:
        return {}
    words = f"The model makes little or no use of {len(little)} of {len(importances)} columns"
    words += f", {len(unused)} of them without any influence on the score" if unused else ""
    share = percent_text(sum(importances[k] for k in little))
    words += f". Together they have {share} of the importance: a model without them may be just as good."
    names = rows.view.column_names
    lines = [(names[k], number_text(round(rows.relevances[k], 2)), percent_text(importances[k])) for k in little]
    return {"words": words, "table": table("Columns of little use", ("column", "relevance", "importance"), lines)}


def _bars(title: str, bars: dict[str, float], show: Callable[[float], str], **more: Any) -> dict[str, Any]:
    """A picture of one number per column, the largest first."""
    bars = dict(sorted(bars.items(), key=lambda bar: -bar[1]))
    texts, values = [show(value) for value in bars.values()], np.array(list(bars.values()))

    def draw(ax: Any) -> None:
        draw_bars(ax, shorten(list(bars)), values, marked=values < 0, numbers=texts, names=list(bars))
        ax.margins(x=0.25)
        ax.set_xlim(left=min(1.25 * values.min(), 0.0))
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)

    words = "Bars, the longest first: " + "; ".join(map(" ".join, zip(bars, texts, strict=True)))
    return picture(title, words, draw, height=0.3 + 0.33 * len(bars), **more)


def _effect(rows: ScoredRows, effects: ColumnEffects, column: int, unit: str) -> dict[str, Any]:
    main, scores = effects.main(column), rows.view.fitted.train_names
    first = next(iter(main.values()))
    is_category, n_bars = first.kind == "category", min(len(first.grid), 12) + (first.missing is not None)

    def draw(ax: Any) -> None:
        draw_main_effect(ax, main, scores)
        (ax.set_xlabel if is_category else ax.set_ylabel)(f"effect on {unit}")

    about = f"importance {percent_text(effects.importances[column])}"
    if len(scores) > len(main):
        about += f"; {len(scores) - len(main)} weaker classes left out"
    words = f"Effect on {unit} " + "; ".join(_told(effect, scores[k]) for k, effect in main.items())
    if first.missing_part > 0:
        count = first.missing_count
        words += ". Missing in "
        words += percent_text(first.missing_part) if count is None else f"{number_text(count)} rows"
    height = 0.8 + 0.3 * n_bars if is_category else 2.8
    return picture(rows.view.column_names[column], words, draw, height=height, about=about)


def _told(effect: MainEffect, score: str) -> str:
    """An effect in words: that of the first levels, or of values along a curve."""
    n_values, is_category = len(effect.grid), effect.kind == "category"
    places = range(n_values) if is_category else np.linspace(0, n_values - 1, min(n_values, 6), dtype=int)
    show = partial(number_text, signed=True)
    told = [f"{show(effect.values[k])} at {value_text(effect.grid[k])}" for k in places[:_MOST_BARS]]
    told += [] if effect.missing is None else [f"{show(effect.missing)} if missing"]
    return f"for {score}: " + ", ".join(told)


def _pair(rows: ScoredRows, effects: ColumnEffects, score: int, pair: PairEffect) -> dict[str, Any]:
    names, grids, values = pair.names, list(pair.grids), pair.values
    for axis, (name, kind) in enumerate(zip(names, pair.kinds, strict=True)):
        if kind == "category":
            parts = effects.effects[score][name].parts
            kept = np.sort(np.argsort(-parts, kind="stable")[:_MOST_LEVELS])
            grids[axis], values = grids[axis][kept], values.take(kept, axis)
    if pair.kinds[0] == "category":  # names have more room at the side
        names, grids, values = names[::-1], grids[::-1], values.T
    shown = replace(pair, names=names, grids=(grids[0], grids[1]), values=values)

    def draw(ax: Any) -> None:
        draw_pair_effect(ax, shown)
        ax.set_title("")

    about = f"{percent_text(pair.share)} of the variance"
    if len(effects.effects) > 1:
        about += f" of the score for {rows.view.fitted.train_names[score]}"
    height = 3.0 if grids[0].dtype != object else 3.8
    return picture(" and ".join(names), str(shown), draw, height=height, about=about)


def row_pictures(rows: ScoredRows, measure: ColumnMeasure) -> list[dict[str, Any]]:
    """Explain the row with the most certain prediction, the worst one, and one with a median error."""
    order, view = np.argsort(rows.margins, kind="stable"), rows.view
    surest, titles = order[-1], ("Smallest error", "Largest error", "Typical row")
    if rows.every.labels is not None:  # there may be no wrong rows
        titles = "Most certain", "Least certain" if rows.margins[order[0]] > 0 else "Largest error", "Typical row"
    if rows.answers.probabilities is not None:
        surest = rows.answers.probabilities.max(axis=1).argmax()
    chosen = [int(surest), int(order[0]), int(order[len(order) // 2])]
    explained = explain_rows(
        rows.X[chosen],
        measure,
        cells=tuple(rows.cells(j, range(len(view.groups))) for j in chosen),
        row_names=tuple(rows.places[chosen].tolist()),
    )
    pictures = []
    for place, (title, j) in enumerate(zip(titles, chosen, strict=True)):
        score = _score_of(rows, j)
        draw = LocalExplanationDisplay(explained, place, score, _MOST_CONTRIBUTIONS).plot
        words = explained.sentence(place, score, _MOST_CONTRIBUTIONS)
        height = 1.4 + 0.42 * min(len(explained.column_names), _MOST_CONTRIBUTIONS + 1)
        name = f"{title}: row {rows.places[j]}"
        pictures.append(picture(name, words, draw, height=height, about=_outcome(rows, j)))
    return pictures


def _outcome(rows: ScoredRows, j: int) -> str:
    predicted, true, sure = rows.answers.predicted[j], rows.answers.y[j], rows.answers.probabilities
    if rows.every.labels is None:
        show = number_format([predicted, true], 4)
        return f"predicted {show(predicted)}, true {show(true)}"
    probability = "" if sure is None else f" ({percent_text(float(sure[j, predicted]))})"
    return f"predicted {rows.every.labels[predicted]}{probability}, true {rows.every.labels[true]}"


def _score_of(rows: ScoredRows, j: int) -> int:
    """The score of the predicted class of a row, or that between it and the second most likely one."""
    fitted, decided = rows.view.fitted, rows.answers.decided
    if fitted.n_trains == 1 or fitted.decision is None or decided is None:
        return 0
    if fitted.n_trains == decided.shape[1]:
        return int(rows.answers.predicted[j])
    second, first = np.argsort(decided[j], kind="stable")[-2:]
    code = fitted.decision.code(decided.shape[1])
    return int((code[:, first] * code[:, second] < 0).argmax())
