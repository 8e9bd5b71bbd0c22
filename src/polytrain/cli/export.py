"""``polytrain export`` writes a model as ONNX or C; ``polytrain info`` shows the contents of a model file."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polytrain.atomic_file import write_atomically
from polytrain.cli import common
from polytrain.cli.common import option

if TYPE_CHECKING:
    from polytrain.tables import TableModel

# Longer lists of categories are truncated.
_MAX_CATEGORIES = 8


@common.command(
    common.MODEL,
    option("--to", "form to write", required=True, choices=("onnx", "c")),
    option("--out", "file to write", required=True, type=Path, metavar="FILE"),
    option(
        "--dtype",
        "type of the numbers in and out (default: float32 for ONNX, float64 for C)",
        choices=("float32", "float64"),
    ),
    option("--name", "prefix of the functions in the C file (default: model)", default="model"),
)
def export(arguments: argparse.Namespace) -> None:
    """Write the model in a form that runs without polytrain: an ONNX graph, or C99 source without dependencies.

    The exported model takes one number per feature: a number as it is, a category by its number, NaN for a missing
    cell. The C file says so in a comment, with the number of each category. The ONNX file has it in its metadata, as
    JSON: the names of the columns as "polytrain.features"; the categories of columns, from number 0 on, as
    "polytrain.categories".

    A date is several numbers: the days since the start of 1970, and those of month, weekday and hour that varied.

      polytrain export adult.polytrain --to onnx --out adult.onnx
      polytrain export adult.polytrain --to c --name adult --out adult.c
    """
    model = common.load_model(arguments)
    common.check_output(arguments.out, arguments.model)
    from polytrain.export import to_c, to_onnx

    named = replace(model.fitted, feature_names=model.view.feature_names)
    if arguments.to == "c":
        content = to_c(named, arguments.name, dtype=arguments.dtype or "float64").encode()
    else:
        content = to_onnx(named, dtype=arguments.dtype or "float32").SerializeToString()
    write_atomically(arguments.out, [content])
    common.say(f"{arguments.out}: {len(content)} bytes, {model.fitted.n_features} features")
    common.shows_beside(arguments.out)(str(arguments.out))


def _describe_column(column: dict[str, Any]) -> str:
    """Describe a column, and whether the model has learned from missing cells in it."""
    gone = ", or missing" if column["has_missing"] else ""
    if column["kind"] == "category":
        shown = column["categories"][:_MAX_CATEGORIES]
        more = ", ..." if len(column["categories"]) > len(shown) else ""
        return f"{len(column['categories'])} categories{gone}: {', '.join(shown)}{more}"
    return f"{column['kind']}{gone}" + (f": {', '.join(column['parts'])}" if "parts" in column else "")


@common.command(common.MODEL, common.JSON)
def info(arguments: argparse.Namespace) -> None:
    """Show the contents of a model file.

    These are estimator and settings, size, classes, columns and their preparation, and the record of the training. With
    --json also all categories, and the list of features in the order of the inputs of exported models.

      polytrain info adult.polytrain
      polytrain info adult.polytrain --json | jq .features
    """
    model = common.load_model(arguments)
    from polytrain.estimators.summary import model_facts

    facts, columns = model_facts(model.estimator), _column_facts(model)
    size, targets = arguments.model.stat().st_size, list(model.layout.targets)
    if arguments.json:
        facts["n_features"] = facts.pop("features")
        common.show_json(
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
        return
    common.show_facts({**facts, "file size": f"{size} bytes", "target": targets or "not known"})
    common.show_heading(f"columns, found by {'name' if model.layout.named else 'position'}")
    for column in columns:
        written = "" if column["form"] in (None, "numbers") else f" ({column['form']})"
        common.show(f"  {column['position']:>4}  {column['name']}: {_describe_column(column)}{written}")
    if model.estimator.choice_.reasons:
        common.show_heading("chosen")
        for reason in model.estimator.choice_.reasons:
            common.show(f"  {reason}")
    if model.training:
        common.show_heading("training")
        common.show_facts(model.training, indent="  ")


def _column_facts(model: TableModel) -> list[dict[str, Any]]:
    """Return the kind of each column, whether missing cells were learned from, and its position and form in a table."""
    from polytrain.columns import DateColumn

    forms, positions = model.layout.forms, {name: k for k, name in enumerate(model.layout.names)}
    columns = []
    for k, (name, group) in enumerate(zip(model.view.column_names, model.view.groups, strict=True)):
        column = model.view.column(k)
        facts: dict[str, Any] = {"name": name, "kind": column.kind}
        if (levels := model.view.levels(k)) is not None:
            facts["categories"] = list(levels)
        if isinstance(column, DateColumn):
            facts["parts"] = list(column.parts)
        facts["has_missing"] = any(model.fitted.maps[feature].has_missing for feature in group)
        facts["position"], form = positions.get(name, k), forms.get(name)
        facts["form"] = None if form is None else form.describe()
        columns.append(facts)
    return columns
