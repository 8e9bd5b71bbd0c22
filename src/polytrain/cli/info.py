"""``polytrain info``: what a model file holds."""

from __future__ import annotations

import argparse
from typing import Any

from polytrain.cli.common import add_command, show, show_json
from polytrain.cli.table_arguments import add_model
from polytrain.tables import load_table_model
from polytrain.tables.facts import column_facts, model_facts

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


def describe_column(column: dict[str, Any]) -> str:
    """Return in words what a column is, and whether the model has learned from missing cells of it."""
    gone = ", or missing" if column["has_missing"] else ""
    if column["kind"] == "category":
        shown = column["categories"][:_MAX_CATEGORIES]
        more = ", ..." if len(column["categories"]) > len(shown) else ""
        return f"{len(column['categories'])} categories{gone}: {', '.join(shown)}{more}"
    return f"{column['kind']}{gone}" + (f": {', '.join(column['parts'])}" if "parts" in column else "")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    model = load_table_model(arguments.model)
    layout, facts, columns = model.layout, model_facts(model.estimator), column_facts(model)
    size = arguments.model.stat().st_size
    targets = [target.name for target in layout.targets]
    if arguments.json:
        facts["n_features"] = facts.pop("features")
        for column, place in zip(columns, layout.columns, strict=True):
            column["position"] = place.position
            column["form"] = None if place.form is None else place.form.describe()
        show_json(
            {
                **facts,
                "chosen": list(model.estimator.choice_.reasons),
                "bytes": size,
                "target": targets[0] if len(targets) == 1 else targets or None,
                "columns": columns,
                "features": list(model.view.feature_names),
                "training": model.training,
            }
        )
        return 0
    for name, value in facts.items():
        show(f"{name:<14}{', '.join(value) if isinstance(value, list) else _plain(value)}")
    show(f"{'file size':<14}{size} bytes")
    show(f"{'target':<14}{', '.join(targets) or 'not known'}")
    show()
    show(f"columns, found by {'name' if layout.named else 'position'}")
    for column, place in zip(columns, layout.columns, strict=True):
        written = place.form.describe() if place.form is not None and not place.form.is_plain else None
        written = None if place.form is None or place.form.kind == "text" else written
        show(f"  {place.position:>4}  {column['name']}: {describe_column(column)}{f' ({written})' if written else ''}")
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
