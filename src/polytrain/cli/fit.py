"""``polytrain fit``: from a table to a model file."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polytrain.atomic_file import written_in_place
from polytrain.cli.common import (
    DATA,
    CommandError,
    add_command,
    add_list,
    add_reading,
    check_output,
    flag,
    read_options,
    say,
    show_json,
    shows_beside,
    user_errors,
)
from polytrain.learning.losses import loss_names
from polytrain.maps import basis_names
from polytrain.tables import DEFAULT_MISSING, TableModel, fit_table
from polytrain.tables.evaluation import METRICS
from polytrain.tables.fitting import MAX_CHECK_ROWS
from polytrain.tables.model import model_facts

__all__ = ["add_fit"]

# Arguments that are not parameters of fit_table under the same name.
_OTHERS = {"data", "target", "header", "delimiter", "encoding", "keep_index", "out", "json", "quiet"}
_OTHERS |= {"run", "command_line"}
# Of both tasks; some are known to both.
_LOSSES = list(dict.fromkeys(["auto", "multinomial", *loss_names("classification"), *loss_names("regression")]))


def add_fit(subparsers: Any) -> None:
    """Add the command fit."""
    parser = add_command(subparsers, fit)
    parser.add_argument("data", metavar="DATA", help=DATA)
    add_list(parser, "--target", "COLUMN", "column to predict, by name or position; or several", required=True)
    parser.add_argument("--out", required=True, type=Path, metavar="MODEL", help="model file to write")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    _add_reading(parser.add_argument_group("reading the table"))
    _add_model(parser.add_argument_group("the model"))
    checking = parser.add_argument_group("measuring the error")
    folds = f"folds of at most {MAX_CHECK_ROWS:,} rows; 0 for none (default: 3)"
    checking.add_argument("--folds", type=int, default=3, metavar="K", help=folds)
    checking.add_argument("--holdout", type=float, default=0.0, metavar="PART", help="part of the rows, such as 0.2")
    metrics = f"what is measured: {', '.join(METRICS)} (default: error, or rmse)"
    checking.add_argument("--metric", choices=list(METRICS), metavar="NAME", help=metrics)
    checking.add_argument("--seed", type=int, default=0, help="seed of folds, splits and starts (default: 0)")


def _add_reading(group: Any) -> None:
    add_reading(group, ("auto", "yes", "no"), "detected")
    group.add_argument("--names", metavar="A,B,...", help="names of the columns, for a file that has none")
    kept = "columns to learn from although they look like identifiers, or have too many categories"
    add_list(group, "--drop", "COLUMN", "columns to leave out")
    add_list(group, "--keep", "COLUMN", kept)
    add_list(group, "--categorical", "COLUMN", "columns of numbers that are categories")
    missing = f"what stands for a missing value, besides the empty cell and {' '.join(DEFAULT_MISSING)}"
    add_list(group, "--missing", "TEXT", missing)
    only = "only the empty cell and what --missing names is missing"
    group.add_argument("--no-usual-missing", dest="usual_missing", action="store_false", help=only)
    most = "text columns with more categories are left out (default: 100)"
    group.add_argument("--max-categories", type=int, default=100, metavar="N", help=most)
    tasks = ("auto", "classification", "regression")
    group.add_argument("--task", choices=tasks, default="auto", help="what the target is (default: auto)")


def _add_model(group: Any) -> None:
    losses = f"{', '.join(_LOSSES)}; auto, for classes, learns with the squared loss and makes probabilities of it"
    group.add_argument("--loss", choices=_LOSSES, metavar="NAME", help=f"{losses} (default: auto, or squared)")
    group.add_argument("--quantile", type=float, metavar="Q", help="level of the loss quantile (default: 0.5)")
    group.add_argument("--epsilon", type=float, metavar="E", help="where the loss huber turns straight (default: 1.35)")
    weights = "weigh classes so that all count the same (default: rows count the same)"
    group.add_argument("--class-weight", choices=("balanced",), help=weights)
    group.add_argument("--rank", type=_auto_or(int), default="auto", metavar="R", help="default: chosen")
    group.add_argument("--alpha", type=_auto_or(float), default="auto", help="regularisation (default: chosen)")
    bases = f"functions of numbers: {', '.join(basis_names())} (default: chosen)"
    group.add_argument("--basis", choices=["auto", *basis_names()], default="auto", metavar="NAME", help=bases)
    vary = "how much they may vary, if they are not polynomials (default: chosen)"
    group.add_argument("--bandwidth", type=_auto_or(float), default="auto", metavar="C", help=vary)
    group.add_argument("--degree", type=int, default=2, help="largest power, if they are polynomials (default: 2)")
    sweeps = "most sweeps over the columns"
    group.add_argument("--max-sweeps", type=_auto_or(int), default="auto", metavar="N", help=sweeps)
    group.add_argument("--jobs", dest="n_jobs", type=int, metavar="N", help="processes (default: 1)")


def _auto_or(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return what reads a number, or "auto"."""

    def read(text: str) -> Any:
        return text if text == "auto" else kind(text)

    read.__name__ = kind.__name__  # what argparse calls it in its errors
    return read


def fit(arguments: argparse.Namespace) -> int:
    """Learn a model from a table and write it to a file, together with how the table was read.

    Columns are given by name, or by position: 0 is the first, -1 the last. Text columns are categories. Numbers may
    have decimal commas, thousands separators, currency or percent signs, and dates many forms; what was understood is
    said. Missing cells are learned as such; they need not be filled. Rows without target are left out, and so are
    columns of a single value, and those that look like identifiers or have too many categories, unless --keep names
    them.

    A target of text is a label, and so is one of at most ten different whole numbers; other numbers are predicted as
    such. --task says otherwise. Several targets of numbers make one model with several outputs.

    Settings that are not given are chosen by the model itself, on training rows. Its error is then measured by
    cross-validation, all settings being chosen again in each fold; --folds 0 leaves this out. --holdout sets rows aside
    before anything else, and reports the error on them.

      polytrain fit adult-train.csv --target -1 --out adult.polytrain
      polytrain fit houses.csv.gz --target price --out price.polytrain --holdout 0.2 --metric mae
      polytrain fit claims.csv --target count --task regression --loss poisson --out claims.polytrain
      polytrain fit plant.parquet --target yield purity --out plant.polytrain
      polytrain fit train.npz --target y --loss logistic --rank 8 --alpha 1e-3 --out model.polytrain --json
    """
    check_output(arguments.out, arguments.data)
    in_place = written_in_place(arguments.out)  # a pipe takes one model only, and does not tell how much went through

    def save(model: TableModel) -> None:
        """Write the model, with the facts that are known by now."""
        model.save(arguments.out)

    with user_errors():
        model = fit_table(
            arguments.data,
            arguments.target[0] if len(arguments.target) == 1 else arguments.target,
            reading=read_options(arguments, "auto"),
            say=None if arguments.quiet else say,
            spell=flag,
            on_fitted=None if in_place else save,
            **_parameters(arguments),
        )
    save(model)
    results = {**_choice(model), **model.training, "model": str(arguments.out)}
    if not in_place:
        results["bytes"] = arguments.out.stat().st_size
    show_line = shows_beside(arguments.out)
    if arguments.json:
        show_json(results, show_line)
    else:
        for name, value in results.items():
            show_line(f"{name:<22}{_shown(name, value)}")
    return 0


def _parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that are parameters of `fit_table`, of the table or of the estimator."""
    if not 0 <= arguments.seed < 1 << 32:
        raise CommandError(f"--seed must be from 0 to 2**32 - 1, got {arguments.seed}.")
    if arguments.bandwidth != "auto" and not 0 < arguments.bandwidth < math.inf:
        raise CommandError(f"--bandwidth must be a positive number, got {arguments.bandwidth:g}.")
    given = {name: value for name, value in vars(arguments).items() if value is not None and name not in _OTHERS}
    if arguments.names is not None:
        given["names"] = [name.strip() for name in arguments.names.split(",")]
    return given


def _choice(model: TableModel) -> dict[str, Any]:
    """Return what was chosen."""
    facts = model_facts(model.estimator)
    task = "classification" if model.is_classifier else "regression"
    names = ("loss", "basis", "bandwidth", "degree", "functions", "rank", "alpha", "parameters")
    return {"task": task, **{name: facts[name] for name in names if name in facts}}


def _shown(name: str, value: Any) -> str:
    if isinstance(value, float):
        if name.endswith("_error"):
            return f"{100 * value:.2f} %"
        return f"{value:.2f}" if name.endswith("seconds") else f"{value:.5g}"
    return str(value)
