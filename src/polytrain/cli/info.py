"""``polytrain info``: what a model file holds."""

from __future__ import annotations

import argparse
from typing import Any

from polytrain.cli.common import add_command, show, show_json
from polytrain.cli.table_arguments import add_model, load_model
from polytrain.tables import CategoryColumn, NumberColumn
from polytrain.tables.facts import model_facts

__all__ = ["add_parser"]

DESCRIPTION = """\
Show what a model file holds: estimator and settings, size, classes, columns and how they are prepared, and the record
of the training. With --json also all categories, and the list of features in the order in which exported models want
them."""

EXAMPLES = """\
  polytrain info adult.polytrain
  polytrain info adult.polytrain --json | jq .features"""


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = add_command(subparsers, "info", run, description=DESCRIPTION, examples=EXAMPLES)
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


# Longer lists of categories are cut off.
_MAX_CATEGORIES = 8


def describe_column(column: NumberColumn | CategoryColumn, had_missing: bool) -> str:
    """Return in words how a column is prepared, and whether the model has learned from missing cells of it."""
    if isinstance(column, NumberColumn):
        if column.fill is None:
            return f"number{', or missing' if had_missing else ''}"
        return f"number, missing -> {column.fill:g}{', marked' if column.marked else ''}"
    shown = column.categories[:_MAX_CATEGORIES]
    more = ", ..." if len(column.categories) > len(shown) else ""
    gone = ", or missing" if had_missing or column.marked else ""
    return f"{len(column.categories)} categories{gone}: {', '.join(shown)}{more}"


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    model = load_model(arguments.model)
    preparation = model.preparation
    facts = model_facts(model)
    size = arguments.model.stat().st_size
    target = preparation.target and preparation.target.name
    if arguments.json:
        facts["n_features"] = facts.pop("features")
        columns = [
            {
                "name": column.name,
                "position": column.position,
                "marked": column.marked,
                **(
                    {"kind": "number", "fill": column.fill}
                    if isinstance(column, NumberColumn)
                    else {"kind": "category", "categories": list(column.categories), "coded": column.coded}
                ),
            }
            for column in preparation.columns
        ]
        show_json(
            {
                **facts,
                "chosen": list(model.estimator.choice_.reasons),
                "bytes": size,
                "target": target,
                "columns": columns,
                "features": preparation.feature_names,
                "training": model.training,
            }
        )
        return 0
    for name, value in facts.items():
        show(f"{name:<14}{', '.join(value) if isinstance(value, list) else _plain(value)}")
    show(f"{'file size':<14}{size} bytes")
    show(f"{'target':<14}{target if target is not None else 'not known'}")
    show()
    show(f"columns, found by {'name' if preparation.named else 'position'}")
    maps = model.estimator.maps_
    for column, (_, place) in zip(preparation.columns, preparation.groups, strict=True):
        show(f"  {column.position:>4}  {column.name}: {describe_column(column, maps[place.start].has_missing)}")
    if model.estimator.choice_.reasons:
        show()
        show("chosen")
        for reason in model.estimator.choice_.reasons:
            show(f"  {reason}")
    if model.training:
        show()
        show("training")
        for name, fact in model.training.items():
            show(f"  {name:<22}{_plain(fact)}")
    return 0


def _plain(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
