"""``polytrain explain``: what a model has learned, and why rows of a table have their scores."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from polytrain.cli.common import (
    CommandError,
    add_command,
    add_list,
    open_model_table,
    say,
    show,
    show_json,
    user_errors,
)
from polytrain.explain import LocalExplanations, sobol_indices, top_terms
from polytrain.explain.local import number_format
from polytrain.explain.terms import strongest_terms
from polytrain.tables import TableModel, load_table_model
from polytrain.tables.evaluation import RowSample
from polytrain.texts import listed, printable

__all__ = ["add_explain"]

_DISTRIBUTIONS = {"training": "as in training", "data": "as in DATA"}


def add_explain(subparsers: Any) -> None:
    """Add the command explain."""
    parser = add_command(subparsers, explain, "MODEL", "[DATA]", "--json")
    terms = "how many terms, or columns of a row (default: 10)"
    parser.add_argument("--terms", type=int, default=10, metavar="K", help=terms)
    label = (
        "the class whose polynomial is shown (default: the first, or with --row that of the largest score; with two "
        "classes there is one polynomial only)"
    )
    parser.add_argument("--class", dest="label", metavar="LABEL", help=label)
    units = (
        "print coefficients of polynomials too, of columns as they come, centred in their range, or scaled to [-1, 1]"
    )
    parser.add_argument("--units", choices=("auto", "original", "centred", "scaled"), help=units)
    group = parser.add_argument_group("explaining rows")
    rows = "explain these rows of DATA, the first row of data being 0: what each column brings to the score"
    add_list(group, "--row", "N", rows, dest="rows", type=int, default=None)
    background = "how columns are distributed where a row's own value is left out (default: training)"
    group.add_argument("--background", choices=tuple(_DISTRIBUTIONS), help=background)


def explain(arguments: argparse.Namespace) -> int:
    """Show the importances of the columns, the strongest interactions and the strongest terms of the polynomials.

    Importances are shares of the variance that a column takes part in (total Sobol indices). Terms are measured
    likewise: their effect is their standard deviation. f1(age), f2(age), ... are the functions of a column that the
    model has, each without what those before it have in common with it; those of numbers are positive at the largest
    value. Of polynomials, age is the slope, and age^2 what the square adds to it.

    Columns are taken as independent, each distributed as in the rows of DATA; any rows of the same kind will do, a
    target is not needed. Without DATA they are distributed as in training, and columns of polynomials evenly over the
    range that they had there.

    --units prints also the largest terms with their coefficients, as they stand in the polynomial.

    --row explains rows of DATA instead: what each of their columns brings to the score, as Shapley values, which are
    exact and sum to the score less the mean score. Scores are log-odds of classes where these have probabilities, the
    scores before the softmax where there are three and more, and predictions of numbers. Rows of data are counted
    from 0.

      polytrain explain adult.polytrain
      polytrain explain adult.polytrain adult-test.csv --terms 20
      polytrain explain price.polytrain --units original
      polytrain explain digits.polytrain --class 7 --json
      polytrain explain adult.polytrain adult-test.csv --row 17
    """
    model = load_table_model(arguments.model)
    if arguments.terms < 1:
        raise CommandError(f"--terms must be at least 1, got {arguments.terms}.")
    _check_row_arguments(arguments)
    train = _train_index(model, arguments.label)
    if arguments.rows is not None:
        return _run_rows(model, None if arguments.label is None else train, arguments)
    if arguments.units is not None:
        _check_polynomial(model)
    X = None
    if arguments.data is not None:
        sample = RowSample()
        with open_model_table(model, arguments) as table:
            for block in model.blocks(table, decimal=arguments.decimal, say=say):
                sample.add(block.X)
            if not len(sample.rows):
                raise CommandError(f"{table.label} holds no rows. Name a file with rows.")
        X = sample.rows
    with user_errors():
        found = _explain(model, X, train, arguments)
    if arguments.json:
        show_json(found)
    else:
        _print(found)
    return 0


def _check_polynomial(model: TableModel) -> None:
    """Refuse a model whose columns have other functions than powers."""
    for name, feature_map in zip(model.view.feature_names, model.fitted.maps, strict=True):
        if feature_map.powers is None:
            raise CommandError(
                f"--units: column {name!r} has the basis {feature_map.basis!r}, and only polynomials have coefficients "
                "to show. Leave the option out, or fit a model of number columns with --basis power."
            )


def _explain(model: TableModel, X: Any, train: int, arguments: argparse.Namespace) -> dict[str, Any]:
    indices = sobol_indices(model.view, X)
    names, total, second = indices.feature_names, indices.total.mean(axis=0), indices.second.mean(axis=0)
    shares = zip(names, (total / (total.sum() or 1.0)).tolist(), strict=True)
    pairs = [(names[i], names[j], float(second[i, j])) for i, j in zip(*np.triu_indices(len(names), 1), strict=True)]
    pairs.sort(key=lambda pair: -pair[2])
    terms = strongest_terms(model.view, X, arguments.terms, train)
    found: dict[str, Any] = {
        "importances": dict(sorted(shares, key=lambda pair: -pair[1])),
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
        largest = top_terms(
            model.estimator,
            arguments.terms,
            train=train,
            units=arguments.units,
            feature_names=list(model.view.feature_names),
        )
        found["units"], found["coefficients_proven"] = largest.units, largest.exact
        found["coefficients"] = dict(zip(largest.names, largest.coefficients.tolist(), strict=True))
    return found


def _print(found: dict[str, Any]) -> None:
    show("importances of the columns, taken as independent")
    _print_shares(list(found["importances"].items()))
    show()
    show("share of the variance made by pairs of columns")
    shares = [(" * ".join(pair["columns"]), pair["share"]) for pair in found["interactions"]]
    _print_shares([*shares, ("three and more columns", found["higher_interactions"])])
    show()
    show(f"strongest terms for {found['terms_of']}{'' if found['proven'] else ' (not proven)'}: effect, share, term")
    for term in found["terms"]:
        show(f"  {term['effect']:+12.5g} {100 * term['share']:6.2f} %  {term['term']}")
    if "coefficients" in found:
        proof = "" if found["coefficients_proven"] else " (not proven)"
        show()
        show(f"largest coefficients{proof}, {found['units']} features")
        for name, coefficient in found["coefficients"].items():
            show(f"  {coefficient:>12.5g}  {name}")


def _print_shares(shares: list[tuple[str, float]]) -> None:
    names = [printable(name) for name, _ in shares]
    width = max(map(len, names)) + 2
    for name, (_, share) in zip(names, shares, strict=True):
        show(f"  {name:<{width}}{100 * share:6.2f} %")


def _train_index(model: TableModel, label: str | None) -> int:
    """Index of the polynomial that speaks for a class."""
    names = model.view.train_names
    if label is None:
        return 0
    if label not in names:
        raise CommandError(f"--class {label}: there is no such polynomial; there are {listed(names)}.")
    return names.index(label)


# --- explaining rows ---


def _check_row_arguments(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if arguments.rows is None:
        if arguments.background is not None:
            raise CommandError("--background belongs to --row. Name a row, or leave the option out.")
        return
    if arguments.data is None:
        raise CommandError("--row: there is no table with rows. Give DATA after MODEL.")
    if arguments.units is not None:
        raise CommandError("--units does not go with --row, which has no coefficients. Leave one of them out.")
    if min(arguments.rows) < 0:
        raise CommandError(f"--row {min(arguments.rows)}: rows of data are counted from 0. Give 0 or more.")


def _run_rows(model: TableModel, train: int | None, arguments: argparse.Namespace) -> int:
    """Explain rows; ``train`` is the score that is shown, None for the largest of each row."""
    background = arguments.background or "training"
    with open_model_table(model, arguments) as table, user_errors():
        explained, places = model.explain_rows(
            table, arguments.rows, background=background, decimal=arguments.decimal, say=say
        )
    largest = explained.scores.argmax(axis=1).tolist()
    shown = [(row, score if train is None else train) for row, score in enumerate(largest)]
    contents = [_describe_row(explained, places[row], row, score) for row, score in shown]
    if arguments.json:
        show_json({"background": background, "rows": contents})
        return 0
    show(f"what columns bring, taken as independent and distributed {_DISTRIBUTIONS[background]}")
    for content, (_, score) in zip(contents, shown, strict=True):
        _print_row(content, explained.score_label(score), arguments.terms)
    return 0


def _describe_row(explained: LocalExplanations, place: str, row: int, score: int) -> dict[str, Any]:
    return {
        "row": explained.row_names[row],
        "place": place,
        "score_of": explained.score_names[score],
        "scale": explained.scale,
        "score": float(explained.scores[row, score]),
        "mean": float(explained.base[score]),
        "columns": [
            {"column": name, "value": cell, "contribution": value} for name, cell, value in explained.ranked(row, score)
        ],
    }


def _print_row(content: dict[str, Any], label: str, most: int) -> None:
    """Show a sum: the mean, what columns bring, and the score below."""
    columns, total = content["columns"], content["score"]
    written = number_format([total, content["mean"], *(column["contribution"] for column in columns)])
    added = [(column["contribution"], f"{column['column']} = {column['value']}") for column in columns[:most]]
    if columns[most:]:
        rest = math.fsum(column["contribution"] for column in columns[most:])
        added.append((rest, f"{len(columns[most:])} other columns"))
    lines = [
        (written(content["mean"]), "mean"),
        *((written(value) if value < 0 else f"+{written(value)}", name) for value, name in added),
        (written(total), label),
    ]
    width = max(len(number) for number, _ in lines)
    title = f"row {content['row']}"
    show()
    show(title if content["place"] == title else f"{title} ({content['place']})")
    for number, name in lines:
        show(f"  {number:>{width}}  {name}")
