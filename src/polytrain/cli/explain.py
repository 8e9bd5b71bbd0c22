"""``polytrain explain``: importances, interactions and terms of a model, and explanations of rows."""

from __future__ import annotations

import argparse
from itertools import combinations
from typing import TYPE_CHECKING, Any

from polytrain.cli import common
from polytrain.cli.common import CommandError, group, number, option, several
from polytrain.texts import listed, printable

if TYPE_CHECKING:
    from polytrain.explain import LocalExplanations
    from polytrain.tables import TableModel

_DISTRIBUTIONS = {"training": "as in training", "data": "as in DATA"}


@common.command(
    common.MODEL,
    common.data(nargs="?"),
    common.READING,
    common.JSON,
    number("--terms", "K", int, "number of terms, or of columns of a row (default: 10)", 10),
    option(
        "--class",
        "class whose polynomial is shown (default: the first, or with --row that of the largest score; with two "
        "classes there is only one polynomial)",
        dest="label",
        metavar="LABEL",
    ),
    option(
        "--units",
        "also print coefficients of polynomials, of columns in original units, centred, or scaled to [-1, 1]",
        choices=("auto", "original", "centred", "scaled"),
    ),
    group(
        "explaining rows",
        several(
            "--row",
            "N",
            "explain these rows of DATA, counted from 0: the contribution of each column to the score",
            dest="rows",
            type=int,
            default=None,
        ),
        option(
            "--background",
            "distribution of a column where a row's own value is left out (default: training)",
            choices=tuple(_DISTRIBUTIONS),
        ),
    ),
)
def explain(arguments: argparse.Namespace) -> None:
    """Show the importances of the columns, the strongest interactions and the strongest terms of the polynomials.

    Importances are shares of the variance that a column takes part in (total Sobol indices). Terms are measured
    likewise: their effect is their standard deviation. f1(age), f2(age), ... are the functions of a column that the
    model has, each without what those before it have in common with it; those of numbers are positive at the largest
    value. Of polynomials, age is the slope, and age^2 what the square adds to it.

    Columns are taken as independent, each distributed as in the rows of DATA, which need no target. Without DATA they
    are distributed as in training, and columns of polynomials evenly over their range in training.

    --units also prints the largest terms of the polynomial with their coefficients.

    --row explains rows of DATA instead: the contributions of their columns to the score, as Shapley values, which are
    exact and sum to the score minus the mean score. Scores are log-odds of classes that have probabilities (scores
    before the softmax if three or more classes share one), and predictions of numbers. Rows are counted from 0.

      polytrain explain adult.polytrain
      polytrain explain adult.polytrain adult-test.csv --terms 20
      polytrain explain price.polytrain --units original
      polytrain explain digits.polytrain --class 7 --json
      polytrain explain adult.polytrain adult-test.csv --row 17
    """
    if arguments.terms < 1:
        raise CommandError(f"--terms must be at least 1, got {arguments.terms}.")
    _check_row_arguments(arguments)
    model = common.load_model(arguments)
    names = model.view.fitted.train_names
    if arguments.label not in (None, *names):
        raise CommandError(f"--class {arguments.label}: there is no such polynomial. Give one of {listed(names)}.")
    train = None if arguments.label is None else names.index(arguments.label)
    if arguments.rows is not None:
        _explain_rows(model, train, arguments)
        return
    from polytrain.evaluation import RowSample

    sample = RowSample()
    if arguments.data is not None:
        with common.open_table(model, arguments) as table:
            for block in model.blocks(table, decimal=arguments.decimal, say=common.say):
                sample.add(block.X)
            if not len(sample.rows):
                raise CommandError(f"{table.label} holds no rows. Name a file with rows.")
    facts = _facts(model, sample.rows if len(sample.rows) else None, train or 0, arguments)
    if arguments.json:
        common.show_json(facts)
    else:
        _show_facts(facts)


def _facts(model: TableModel, X: Any, train: int, arguments: argparse.Namespace) -> dict[str, Any]:
    from polytrain.explain import FeatureImportances, sobol_indices, top_terms
    from polytrain.explain.terms import strongest_terms

    indices = sobol_indices(model.view, X)
    names, total, second = indices.feature_names, indices.total.mean(axis=0), indices.second.mean(axis=0)
    pairs = [(names[i], names[j], float(second[i, j])) for i, j in combinations(range(len(names)), 2)]
    pairs.sort(key=lambda pair: -pair[2])
    terms = strongest_terms(model.view, X, arguments.terms, train)
    facts: dict[str, Any] = {
        "importances": dict(FeatureImportances(total / (total.sum() or 1.0), names).ranked()),
        "interactions": [{"columns": [left, right], "share": share} for left, right, share in pairs[: arguments.terms]],
        "higher_interactions": float(indices.higher.mean()),
        "terms_of": terms.train_name,
        "proven": terms.exact,
        "terms": [
            {"term": name, "effect": effect, "share": share}
            for name, effect, share in zip(terms.names, terms.effects.tolist(), terms.shares.tolist(), strict=True)
        ],
    }
    if arguments.units is not None:
        largest = top_terms(model.view, arguments.terms, train=train, units=arguments.units)
        facts["units"], facts["coefficients_proven"] = largest.units, largest.exact
        facts["coefficients"] = dict(zip(largest.names, largest.coefficients.tolist(), strict=True))
    return facts


def _show_facts(facts: dict[str, Any]) -> None:
    common.show("importances of the columns, taken as independent")
    _show_shares(list(facts["importances"].items()))
    common.show_heading("share of the variance due to pairs of columns")
    shares = [(" * ".join(pair["columns"]), pair["share"]) for pair in facts["interactions"]]
    _show_shares([*shares, ("three or more columns", facts["higher_interactions"])])
    proof = "" if facts["proven"] else " (not proven)"
    common.show_heading(f"strongest terms for {facts['terms_of']}{proof}: effect, share, term")
    for term in facts["terms"]:
        common.show(f"  {term['effect']:+12.5g} {100 * term['share']:6.2f} %  {term['term']}")
    if "coefficients" in facts:
        proof = "" if facts["coefficients_proven"] else " (not proven)"
        common.show_heading(f"largest coefficients{proof}, {facts['units']} features")
        for name, coefficient in facts["coefficients"].items():
            common.show(f"  {coefficient:>12.5g}  {name}")


def _show_shares(shares: list[tuple[str, float]]) -> None:
    names = [printable(name) for name, _ in shares]
    width = max(map(len, names)) + 2
    for name, (_, share) in zip(names, shares, strict=True):
        common.show(f"  {name:<{width}}{100 * share:6.2f} %")


# --- explaining rows ---


def _check_row_arguments(arguments: argparse.Namespace) -> None:
    """Refuse options that cannot be combined."""
    if arguments.rows is None:
        if arguments.background is not None:
            raise CommandError("--background requires --row. Name a row, or leave the option out.")
        return
    if arguments.data is None:
        raise CommandError("--row requires a table. Give DATA after MODEL.")
    if arguments.units is not None:
        raise CommandError("--units cannot be combined with --row, which shows no coefficients. Leave one of them out.")
    if min(arguments.rows) < 0:
        raise CommandError(f"--row {min(arguments.rows)}: rows of data are counted from 0. Give 0 or more.")


def _explain_rows(model: TableModel, train: int | None, arguments: argparse.Namespace) -> None:
    """Explain rows; ``train`` is the score that is shown, None for the largest of each row."""
    background = arguments.background or "training"
    options = {"background": background, "decimal": arguments.decimal, "say": common.say}
    with common.open_table(model, arguments) as table:
        explained, places = model.explain_rows(table, arguments.rows, **options)
    scores = explained.scores.argmax(axis=1).tolist() if train is None else [train] * len(places)
    rows = [_row_facts(explained, places[row], row, score) for row, score in enumerate(scores)]
    if arguments.json:
        common.show_json({"background": background, "rows": rows})
        return
    common.show(f"contributions of columns, taken as independent and distributed {_DISTRIBUTIONS[background]}")
    for k, (row, score) in enumerate(zip(rows, scores, strict=True)):
        columns = explained.ranked(k, score, arguments.terms)
        _show_row(row, columns, explained.score_label(score))


def _row_facts(explained: LocalExplanations, place: str, row: int, score: int) -> dict[str, Any]:
    names = ("column", "value", "contribution")
    return {
        "row": explained.row_names[row],
        "place": place,
        "score_of": explained.score_names[score],
        "scale": explained.scale,
        "score": float(explained.scores[row, score]),
        "mean": float(explained.base[score]),
        "columns": [dict(zip(names, column, strict=True)) for column in explained.ranked(row, score)],
    }


def _show_row(row: dict[str, Any], columns: list[tuple[str, str, float]], label: str) -> None:
    """Show a sum: the mean, the contributions of columns, and the score below."""
    from polytrain.texts import number_format

    written = number_format([row["score"], row["mean"], *(value for *_, value in columns)])
    lines = [("mean", written(row["mean"]))]
    for name, cell, value in columns:
        lines.append((f"{name} = {cell}" if cell else name, f"{'' if value < 0 else '+'}{written(value)}"))
    lines.append((label, written(row["score"])))
    width = max(len(text) for _, text in lines)
    title = f"row {row['row']}"
    common.show_heading(title if row["place"] == title else f"{title} ({row['place']})")
    for name, text in lines:
        common.show(f"  {text:>{width}}  {name}")
