"""Second part of a report: which columns matter, how, and why three rows got their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polytrain.models import FittedModel
from polytrain.reporting.charts import bar_chart, effect_chart, heat_map, level_chart
from polytrain.reporting.evidence import ScoredRows
from polytrain.reporting.insights import Axis, ColumnEffect, Insights, PairEffect
from polytrain.reporting.page import details, figure, grid, heading, number, paragraph, percent, section, table, words

__all__ = ["three_rows", "what_matters"]

_MOST_BARS = 12
_MOST_CURVES = 9
_MOST_PAIRS = 6
_MOST_PARTS = 8
# Curves of one column in one picture.
_MOST_LINES = 4

_UNITS = {"identity": "the prediction", "log": "the logarithm", "logit": "the log-odds", "softmax": "the score"}


def what_matters(insights: Insights, scored: ScoredRows) -> tuple[str, str]:
    """Importances, a picture of every important column, and heat maps of pairs."""
    unit = _unit(scored.fitted)
    alone, pairs, more = insights.shares
    shown, rest = insights.importances[:_MOST_BARS], insights.importances[_MOST_BARS:]
    chart = bar_chart(
        "Importances of the columns",
        [(name, share, percent(share)) for name, share in shown],
        "Columns by importance: " + "; ".join(f"{name} {percent(share)}" for name, share in shown),
    )
    listed = table("Further columns", ("column", "importance"), [(name, percent(share)) for name, share in rest], (1,))
    effects = insights.columns(_MOST_CURVES)
    maps = insights.pairs(_MOST_PAIRS)
    about_shares = (
        "Importance is the share of the variance of the scores that a column takes part in, under the product of the "
        "columns' own distributions in these rows: columns taken as independent (total Sobol indices, scaled to "
        f"100 %). Of the variance, {percent(alone)} is made by columns alone, {percent(pairs)} by pairs, "
        f"{percent(more)} by three and more together. Shuffling a column among the rows breaks what it has in common "
        "with the target and with other columns: how much the error then rises says what the model would miss."
    )
    about_band = (
        "The band is one standard deviation of what it adds over the values of all other columns: where it is wide, "
        "there are interactions. "
    )
    about_curves = (
        f"A curve shows what a column alone adds to {unit}, beside its mean. "
        f"{about_band if len(insights.train_names) == 1 else ''}The grey bars are the rows (heights are roots of "
        "counts). A category has a bar per level, and a missing value a bar or a dot of its own."
    )
    parts = [words(paragraph(about_shares), paragraph(about_curves))]
    more_columns = details(f"{len(rest)} further columns", listed) if rest else ""
    pictures = [_effect(effect, insights.train_names, unit) for effect in effects]
    shuffled = _shuffled(scored, [name for name, _ in shown])
    parts.append(grid(figure("Importances", chart, "", more_columns, tall=len(shown) > 7), shuffled, *pictures))
    if maps:
        parts += [
            heading("Pairs of columns"),
            paragraph(f"What two columns add to {unit} together, beyond what both add alone."),
            grid(*(_pair(pair, insights.train_names) for pair in maps)),
        ]
    return section("What matters?", *parts)


def _shuffled(scored: ScoredRows, columns: Sequence[str]) -> str:
    rises = sorted(zip(columns, scored.shuffled(columns), strict=True), key=lambda pair: -pair[1])
    what = "share of wrong labels" if scored.model.is_classifier else "root mean squared error"
    bars = [
        (name, rise, f"{100 * rise:+.2f} %" if scored.model.is_classifier else f"{rise:+.4g}") for name, rise in rises
    ]
    chart = bar_chart(
        "Error with a column shuffled",
        bars,
        f"How much the {what} rises if a column is shuffled: " + "; ".join(f"{name} {rise}" for name, _, rise in bars),
    )
    return figure("If it is shuffled, the error rises by", chart, what, tall=len(columns) > 7)


def _unit(fitted: FittedModel) -> str:
    return "the score" if fitted.classes is not None and not fitted.has_probabilities else _UNITS[fitted.link]


def _effect(effect: ColumnEffect, train_names: Sequence[str], unit: str) -> str:
    axis = effect.axis
    about = f"importance {percent(effect.share)}"
    order = np.argsort(-np.ptp(effect.values, axis=1), kind="stable")[:_MOST_LINES]
    if axis.levels is not None:
        about = _for(train_names, int(order[0]), about)
        return figure(axis.name, _levels(effect, int(order[0]), train_names), about, tall=len(axis.levels) > 7)
    lines = [
        (train_names[k], list(zip(axis.points.tolist(), effect.values[k].tolist(), strict=True)))
        for k in sorted(order.tolist())
    ]
    band = None
    if effect.spread is not None:
        low, high = effect.values[0] - effect.spread, effect.values[0] + effect.spread
        band = tuple(list(zip(axis.points.tolist(), line.tolist(), strict=True)) for line in (high, low))
    gone = [] if effect.missing is None else [float(effect.missing[k]) for k in sorted(order.tolist())]
    told = "; ".join(_told(axis, effect.values[k], train_names[k]) for k in order)
    told += f". Missing in {axis.n_missing} rows." if gone else "."
    chart = effect_chart(
        f"Effect of {axis.name}",
        lines,
        (axis.name, f"adds to {unit}"),
        f"What {axis.name} alone adds to {unit}. {told}",
        band=band,  # type: ignore[arg-type]
        density=(np.linspace(axis.points[0], axis.points[-1], len(axis.rows) + 1).tolist(), axis.rows.tolist()),
        missing=gone,
    )
    left_out = f", {len(train_names) - len(lines)} weaker curves left out" if len(train_names) > len(lines) else ""
    return figure(axis.name, chart, about + left_out)


def _for(train_names: Sequence[str], train: int, about: str) -> str:
    return about if len(train_names) == 1 else f"{about}, for {train_names[train]}, where it does most"


def _told(axis: Axis, values: np.ndarray, name: str) -> str:
    """A curve in words: its ends and its extremes."""
    places = sorted({0, int(values.argmin()), int(values.argmax()), len(values) - 1})
    return f"for {name}: " + ", ".join(f"{values[k]:+.3g} at {axis.points[k]:.4g}" for k in places)


def _levels(effect: ColumnEffect, train: int, train_names: Sequence[str]) -> str:
    axis = effect.axis
    bars = list(zip(axis.levels or (), effect.values[train].tolist(), axis.rows.tolist(), strict=True))
    bars.sort(key=lambda bar: -bar[1])
    if effect.missing is not None:
        bars.append(("missing", float(effect.missing[train]), axis.n_missing))
    return level_chart(
        f"Effect of {axis.name}",
        bars,
        f"What the levels of {axis.name} alone add for {train_names[train]}: "
        + "; ".join(f"{name} {value:+.3g} ({rows} rows)" for name, value, rows in bars),
    )


def _pair(pair: PairEffect, train_names: Sequence[str]) -> str:
    one, two = pair.axes
    if one.levels is not None and two.levels is None:  # names have more room at the side
        one, two, values = two, one, pair.values.T
    else:
        values = pair.values
    sides = _side(one), _side(two)
    low, high = (np.unravel_index(extreme, values.shape) for extreme in (values.argmin(), values.argmax()))
    about = f"{percent(pair.share)} of the variance"
    title = f"{one.name} and {two.name}"
    chart = heat_map(
        title,
        values.tolist(),
        sides,
        (one.name, two.name),
        f"What {title} add together for {train_names[pair.train]}: from {values.min():+.3g} at {_at(one, low[0])} and "
        f"{_at(two, low[1])} to {values.max():+.3g} at {_at(one, high[0])} and {_at(two, high[1])}.",
    )
    return figure(title, chart, _for(train_names, pair.train, about))


def _side(axis: Axis) -> Sequence[str] | tuple[float, float]:
    return (float(axis.points[0]), float(axis.points[-1])) if axis.levels is None else axis.levels


def _at(axis: Axis, k: Any) -> str:
    return f"{axis.name} {axis.points[k]:.4g}" if axis.levels is None else f"{axis.name} {axis.levels[k]}"


def three_rows(insights: Insights, scored: ScoredRows) -> tuple[str, str]:
    """Explain the row that the model is surest of, the one it is most wrong about, and a typical one."""
    trust = scored.trust
    order = np.argsort(trust, kind="stable")
    best = "The surest" if scored.model.is_classifier else "The best"
    # Where all rows are right, none is wrong.
    worst = "The least sure" if scored.model.is_classifier and trust[order[0]] > 0 else "The most wrong"
    names = best, worst, "A typical row"
    surest = order[-1]
    if scored.model.is_classifier and scored.probabilities is not None:
        surest = scored.probabilities.max(axis=1).argmax()
    chosen = [int(surest), int(order[0]), int(order[len(order) // 2])]
    trains = [_train_of(scored, j) for j in chosen]
    found = insights.explain_rows(scored.X[chosen], trains)
    pictures = []
    for name, j, train, why in zip(names, chosen, trains, found, strict=True):
        shown, rest = why.parts[:_MOST_PARTS], why.parts[_MOST_PARTS:]
        bars = [(f"{column} = {cell}", value, f"{value:+.3g}") for column, cell, value in shown]
        if rest:
            others = sum(value for _, _, value in rest)
            bars.append((f"{len(rest)} other columns", others, f"{others:+.3g}"))
        speaks = "" if len(insights.train_names) == 1 and not scored.model.is_classifier else (
            f" for {insights.train_names[train]}"
        )  # fmt: skip
        chart = bar_chart(
            f"Row {scored.places[j]}",
            bars,
            f"Score{speaks} {why.score:.4g} = mean {why.base:.4g} "
            + " ".join(f"{value:+.4g} ({words})" for words, value, _ in bars),
        )
        note = f"Score{speaks}: mean {why.base:.4g}, with all bars {why.score:.4g}."
        pictures.append(figure(f"{name}: row {scored.places[j]}", chart, _outcome(scored, j), paragraph(note, "note")))
    return section(
        "Three rows",
        paragraph(
            "Bars are what the row's values add to the mean score, column by column: exact Shapley values, in which "
            "what columns do only together is shared between them. All bars and the mean sum to the score. Rows are "
            "counted from 0."
        ),
        grid(*pictures),
    )


def _outcome(scored: ScoredRows, j: int) -> str:
    if not scored.model.is_classifier:
        return f"predicted {number(float(scored.predicted[j]))}, true {number(float(scored.y[j]))}"
    labels = scored.model.estimator.classes_
    said, true = scored.predicted[j], scored.y[j]
    sure = "" if scored.probabilities is None else f" ({percent(float(scored.probabilities[j, said]))})"
    return f"predicted {labels[said]}{sure}, true {labels[true]}"


def _train_of(scored: ScoredRows, j: int) -> int:
    """The train that speaks for the predicted class of a row, or that tells it from the runner-up."""
    fitted = scored.fitted
    decided = scored.answers.decided
    if fitted.n_trains == 1 or fitted.decision is None or decided is None:
        return 0
    n_classes = decided.shape[1]
    if fitted.n_trains == n_classes:
        return int(scored.predicted[j])
    second, first = np.argsort(decided[j], kind="stable")[-2:]
    code = np.asarray(fitted.decision.code(n_classes))
    return int((code[:, first] * code[:, second] < 0).argmax())
