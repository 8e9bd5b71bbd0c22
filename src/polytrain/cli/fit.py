"""``polytrain fit``: from a table to a model file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from polytrain.atomic_file import written_in_place
from polytrain.cli import common
from polytrain.cli.common import CommandError, group, number, one_of, option, several, switch

# Arguments that are not parameters of fit_table under the same name.
_OTHERS = {"data", "target", "header", "delimiter", "encoding", "out", "json", "quiet", "run", "command_line"}
_AUTO_LOSS = "auto, for classes, learns with the squared loss and makes probabilities of it"
# Names that help and mistakes show at once, without loading what has them.
_LOSSES = [
    *("auto", "multinomial", "squared", "logistic", "squared_hinge"),
    *("absolute", "quantile", "huber", "poisson", "gamma"),
]
_BASES = [
    *("auto", "power", "chebyshev", "legendre", "power-unscaled", "spline", "spline-rank", "spline-distinct"),
    *("gauss", "gauss-rank", "smooth", "smooth-rank", "category"),
]
_METRICS = ["error", "balanced_error", "log_loss", "auc", "rmse", "mae", "deviance", "r2", "d2"]
_MISSING, _MAX_CHECK_ROWS = ["?", "NA", "N/A", "NaN", "nan", "NULL", "null"], 10_000
# Facts about the model that are shown after the fit.
_SHOWN = ("loss", "basis", "bandwidth", "degree", "functions", "rank", "alpha", "parameters")


_READING = common.reading(
    ("auto", "yes", "no"),
    "detected",
    several("--drop", "COLUMN", "columns to leave out"),
    several("--keep", "COLUMN", "columns to learn from although they look like identifiers"),
    several("--categorical", "COLUMN", "columns of numbers that are categories"),
    option(
        "--offset", "column of offsets, the logarithms of exposures, for the losses poisson and gamma", metavar="COLUMN"
    ),
    option("--weight", "column of weights", metavar="COLUMN"),
    several("--missing", "TEXT", f"what stands for a missing value, besides the empty cell and {' '.join(_MISSING)}"),
    switch(
        "--no-usual-missing",
        "only the empty cell and what --missing names is missing",
        dest="usual_missing",
        action="store_false",
    ),
    option(
        "--task", "what the target is (default: auto)", choices=("auto", "classification", "regression"), default="auto"
    ),
)
_MODEL = group(
    "the model",
    one_of("--loss", _LOSSES, f"{', '.join(_LOSSES)}; {_AUTO_LOSS} (default: auto, or squared)"),
    number("--quantile", "Q", float, "level of the loss quantile (default: 0.5)"),
    number("--epsilon", "E", float, "where the loss huber turns straight (default: 1.35)"),
    option("--class-weight", "weigh classes so that all count the same (default: rows do)", choices=("balanced",)),
    number("--rank", "R", int, "default: chosen", "auto"),
    number("--alpha", "ALPHA", float, "regularisation (default: chosen)", "auto"),
    one_of("--basis", _BASES, f"functions of numbers: {', '.join(_BASES[1:])} (default: chosen)", "auto"),
    number("--bandwidth", "C", float, "how much they may vary, if they are not polynomials (default: chosen)", "auto"),
    number("--degree", "DEGREE", int, "largest power, if they are polynomials (default: 2)", 2),
    number("--max-sweeps", "N", int, "most sweeps over the columns", "auto"),
    number("--jobs", "N", int, "processes (default: 1)", dest="n_jobs"),
)
_CHECKING = group(
    "measuring the error",
    number("--folds", "K", int, f"folds of at most {_MAX_CHECK_ROWS:,} rows; 0 for none (default: 3)", 3),
    one_of("--metric", _METRICS, f"what is measured: {', '.join(_METRICS)} (default: error, rmse, or deviance)"),
    number("--seed", "SEED", int, "seed of folds and starts (default: 0)", 0),
)


@common.command(
    common.data(),
    several("--target", "COLUMN", "column to predict, by name or position; or several", required=True),
    option("--out", "model file to write", required=True, type=Path, metavar="MODEL"),
    switch("--json", "print the results as JSON"),
    switch("--quiet", "no progress on standard error"),
    _READING,
    _MODEL,
    _CHECKING,
)
def fit(arguments: argparse.Namespace) -> None:
    """Learn a model from a table and write it to a file, together with how the table was read.

    Columns are given by name, or by position: 0 is the first, -1 the last. Text columns are categories. Numbers may
    have decimal commas, thousands separators, currency or percent signs, and dates many forms; what was understood is
    said. Missing cells are learned as such; they need not be filled. Rows without target are left out, and so are
    columns of a single value, and those that look like identifiers, unless --keep names them.

    A target of text is a label, and so is one of at most ten different whole numbers; other numbers are predicted as
    such. --task says otherwise. Several targets of numbers make one model with several outputs.

    The columns of --offset and --weight are not learned from: the first is added to the score, as the logarithm of the
    time or the area in which events were counted, and the second says how much each row counts.

    Settings that are not given are chosen by the model itself, on training rows. Its error is then measured by
    cross-validation, all settings being chosen again in each fold; --folds 0 leaves this out.

      polytrain fit adult-train.csv --target -1 --out adult.polytrain
      polytrain fit houses.csv.gz --target price --out price.polytrain --metric mae
      polytrain fit claims.csv --target count --loss poisson --offset log_years --out claims.polytrain
      polytrain fit plant.parquet --target yield purity --out plant.polytrain
      polytrain fit train.npz --target y --loss logistic --rank 8 --alpha 1e-3 --out model.polytrain --json
    """
    if arguments.data != "-":
        os.stat(arguments.data)
    common.check_output(arguments.out, arguments.data)
    parameters = _parameters(arguments)
    from polytrain.estimators.summary import model_facts
    from polytrain.tables import fit_table  # imported late, as everywhere here, so that help and mistakes come at once

    in_place = written_in_place(arguments.out)  # a pipe takes one model only, and does not tell how much went through
    model = fit_table(
        arguments.data,
        arguments.target[0] if len(arguments.target) == 1 else arguments.target,
        reading=common.read_options(arguments, "auto"),
        say=(lambda line: None) if arguments.quiet else common.say,
        spell=common.flag,
        on_fitted=None if in_place else lambda model: model.save(arguments.out),
        **parameters,
    )
    model.save(arguments.out)
    facts, task = model_facts(model.estimator), "classification" if model.is_classifier else "regression"
    results = {"task": task, **{name: facts[name] for name in _SHOWN if name in facts}, **model.training}
    left_out, show_line = model.estimator.left_out_, common.shows_beside(arguments.out)
    results["left_out"], results["model"] = left_out and left_out._asdict(), str(arguments.out)
    if not in_place:
        results["bytes"] = arguments.out.stat().st_size
    if arguments.json:
        common.show_json(results, show_line)
        return
    for line in str(model.summary()).split("\n"):
        show_line(line)
    size = "" if in_place else f", {results['bytes']:,} bytes"
    show_line(f"{'model':<14}{arguments.out}{size}, {results['total_seconds']:.1f} seconds")


def _parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that are parameters of `fit_table`, of the table or of the estimator."""
    if not 0 <= arguments.seed < 1 << 32:
        raise CommandError(f"--seed must be from 0 to 2**32 - 1, got {arguments.seed}.")
    return {name: value for name, value in vars(arguments).items() if value is not None and name not in _OTHERS}
