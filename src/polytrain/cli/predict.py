"""Commands that apply a model to a table: ``polytrain predict``, ``evaluate`` and ``report``."""

from __future__ import annotations

import argparse
import csv
import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from polytrain.atomic_file import replace_file, written_in_place
from polytrain.cli import common
from polytrain.cli.common import CommandError, number, option, several, switch
from polytrain.texts import printable

if TYPE_CHECKING:
    from polytrain.tables import TableModel
    from polytrain.tables.model import PreparedBlock

_SPOOL_BYTES = 1 << 24
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
# Confusion matrices of more classes are not printed.
_MOST_CLASSES = 30


_MEASURED = (common.TARGET, common.OFFSET, common.WEIGHT, common.TRAIN)


@common.command(common.MODEL, common.data(), common.READING, *_MEASURED, common.JSON)
def evaluate(arguments: argparse.Namespace) -> None:
    """Compare predictions with the target in a table. Rows whose target is missing are left out.

    For classifiers: n, error, balanced_error (mean over the classes), log_loss where the model has probabilities, auc
    (of the probabilities; of several classes the mean over each against the rest), accuracy, balanced_accuracy, and the
    confusion matrix. For regressors: n, rmse, mae, deviance (of the model's loss: Poisson, gamma, pinball, or else the
    mean squared error), r2 and largest_error; with the losses poisson, gamma and quantile first the deviance, then d2,
    the explained fraction of the deviance of the best constant.

    Labels are compared as they are written. With weights, all figures but n and the confusion matrix are weighted. With
    --train, those of a linear model (logistic, ridge, Poisson or gamma regression) follow.

      polytrain evaluate adult.polytrain adult-test.csv
      polytrain evaluate adult.polytrain adult-test.csv --json | jq .error
    """
    model = common.load_model(arguments)
    reading = common.read_options(arguments, model.header)
    figures = model.evaluate(
        arguments.data, train=arguments.train, reading=reading, say=common.say, **_columns(arguments)
    )
    if arguments.json:
        common.show_json(figures)
        return
    labels, confusion = figures.pop("classes", []), figures.pop("confusion", [])
    common.show_facts(figures)
    if 0 < len(labels) <= _MOST_CLASSES:
        labels = [printable(label) for label in labels]
        width = max(max(map(len, labels)), len(str(figures["n"]))) + 2
        common.show_heading("confusion matrix (rows: true class, columns: predicted class)")
        for label, row in zip(["", *labels], [labels, *confusion], strict=True):
            common.show(f"{label:<{width}}" + "".join(f"{cell:>{width}}" for cell in row))


@common.command(
    common.MODEL,
    common.data(),
    common.READING,
    *_MEASURED,
    option("--out", "HTML file to write", required=True, type=Path, metavar="FILE"),
)
def report(arguments: argparse.Namespace) -> None:
    """Write one HTML page about a model and its errors on a table with a target.

    It shows the error beside that of simple models, curves, calibration, effects of columns, explanations of three
    rows, training and settings. The page needs no network and no script; writing it needs the extra "report"
    (matplotlib and Jinja).

      polytrain report adult.polytrain adult-test.csv --out adult.html
      polytrain report adult.polytrain adult-test.csv --train adult-train.csv --out adult.html
    """
    model = common.load_model(arguments)
    common.check_output(arguments.out, arguments.model, arguments.data, arguments.train or "-")
    from polytrain.reporting import report_table

    data_name = "standard input" if arguments.data == "-" else Path(arguments.data).name
    page = report_table(
        model,
        arguments.data,
        train=arguments.train,
        title=f"{arguments.model.name} on {data_name}",
        reading=common.read_options(arguments, model.header),
        file_bytes=arguments.model.stat().st_size,
        say=common.say,
        **_columns(arguments),
    )
    page.save(arguments.out)
    common.shows_beside(arguments.out)(str(arguments.out))


@common.command(
    common.MODEL,
    common.data(),
    common.READING,
    common.OFFSET,
    option("--out", "CSV file to write (default: standard output)", type=Path, metavar="FILE"),
    switch("--probabilities", "add one column per class with its probability"),
    number("--interval", "PART", float, "add prediction intervals with this coverage, such as 0.9"),
    option(
        "--bounds",
        "smallest and largest possible number, at which intervals are cut; none for no bound, such as 0 none",
        nargs=2,
        type=lambda text: None if text == "none" else float(text),
        metavar=("LOW", "HIGH"),
    ),
    several("--keep", "COLUMN", "columns of the table to copy, such as an identifier"),
    switch("--exact-text", "no apostrophe before text that a spreadsheet would run as a formula"),
)
def predict(arguments: argparse.Namespace) -> None:
    """Predict every row of a table. The output is CSV with the column "prediction", in the order of the rows.

    Rows are read and written block by block, so that the memory does not grow with the table. Nothing is written if a
    row is wrong: the output appears when all rows are done. Only rows from standard input to standard output are
    written as they arrive.

    Text that a spreadsheet would take for a formula, because it begins with = + - @ or a tab and is not a number, is
    written with an apostrophe before it. --exact-text writes it as it is, for programs that look up the text.

      polytrain predict adult.polytrain adult-test.csv --out predictions.csv
      polytrain predict adult.polytrain adult-test.csv --probabilities | head
      generate-rows | polytrain predict price.polytrain - | consume-predictions
    """
    model = common.load_model(arguments)
    from polytrain.checks import check_bounds
    from polytrain.tables.cells import FileCells
    from polytrain.tables.layout import find_column

    if arguments.out is not None:
        common.check_output(arguments.out, arguments.data, arguments.model)
    if arguments.probabilities and not (model.is_classifier and model.fitted.has_probabilities):
        raise CommandError(
            "--probabilities: this model has none. Fit a classifier with --loss auto, or leave the option out."
        )
    if arguments.interval is not None:
        _check_interval(model, arguments.interval)
    elif arguments.bounds is not None:
        raise CommandError("--bounds requires --interval. Add --interval 0.9, or leave --bounds out.")
    bounds = check_bounds(arguments.bounds)
    n_rows = 0
    with common.open_table(model, arguments) as table:
        kept = [find_column(name, table) for name in arguments.keep]
        titles = [table.names[index] for index in kept] if table.named else arguments.keep
        with _output(arguments) as write:
            write([[*titles, *_titles(model, arguments)]])
            given = {"offset": arguments.offset, "decimal": arguments.decimal}
            for block in model.blocks(table, with_offset=True, say=common.say, **given):
                copied = [FileCells(block.frame.iloc[:, index], table) for index in kept]
                write(zip(*copied, *_predict(model, block, arguments, bounds), strict=True))
                n_rows += len(block.X)
    common.say(f"predicted {n_rows} rows")


def _columns(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the columns of DATA that are not features, and the options for reading it."""
    return {name: getattr(arguments, name) for name in ("target", "offset", "weight", "decimal")}


def _check_interval(model: TableModel, coverage: float) -> None:
    if model.is_classifier or not hasattr(model.estimator, "predict_interval"):
        raise CommandError("--interval applies to regression only. Leave it out, or use --probabilities.")
    if not 0.0 < coverage < 1.0:
        raise CommandError(f"--interval must be between 0 and 1, such as 0.9, got {coverage:g}.")
    if not model.fitted.one_output:
        raise CommandError("--interval: not available for several targets. Fit a model per target.")


def _titles(model: TableModel, arguments: argparse.Namespace) -> list[str]:
    labels = model.estimator.classes_ if arguments.probabilities else ()
    fitted, targets = model.fitted, model.layout.targets
    outputs = targets if len(targets) == fitted.n_trains else fitted.train_names
    names = ["prediction"] if fitted.one_output else [f"prediction of {name}" for name in outputs]
    ends = [] if arguments.interval is None else ["low", "high"]
    return [*names, *ends, *(f"probability {label}" for label in labels)]


def _predict(
    model: TableModel, block: PreparedBlock, arguments: argparse.Namespace, bounds: tuple[float, float]
) -> list[list[Any]]:
    predicted = model.predict_block(block)
    columns = [predicted.tolist()] if predicted.ndim == 1 else predicted.T.tolist()
    if arguments.interval is not None:
        columns += model.fitted.intervals(block.X, coverage=arguments.interval, bounds=bounds).T.tolist()
    if arguments.probabilities:
        columns += model.fitted.probabilities(block.X).T.tolist()
    return columns


@contextmanager
def _output(arguments: argparse.Namespace) -> Iterator[Callable[[Iterable[Sequence[Any]]], None]]:
    """Yield a function that writes rows as CSV: a file appears once it is whole, other output after the last row."""
    on_terminal = arguments.out is None and sys.stdout.isatty()
    waits = arguments.data != "-" and (arguments.out is None or written_in_place(arguments.out))
    with tempfile.SpooledTemporaryFile(_SPOOL_BYTES) if waits else _destination(arguments.out) as stream:
        yield lambda rows: _write_rows(stream, rows, arguments.exact_text, on_terminal)
        if waits:
            stream.seek(0)
            with _destination(arguments.out) as destination:
                shutil.copyfileobj(stream, destination)
                destination.flush()


def _destination(out: Path | None) -> AbstractContextManager[BinaryIO]:
    if out is not None:
        return replace_file(out)
    sys.stdout.flush()
    return nullcontext(sys.stdout.buffer)


def _write_rows(stream: Any, rows: Iterable[Sequence[Any]], exact: bool, on_terminal: bool) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows if exact else ([*map(_as_text, row)] for row in rows))
    lines = text.getvalue()
    if on_terminal:
        lines = "\n".join(map(printable, lines.split("\n")))
    stream.write(lines.encode("utf-8", "backslashreplace"))  # half a surrogate pair is not valid UTF-8
    stream.flush()


def _as_text(cell: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would run as a formula, but not before numbers."""
    from polytrain.columns.forms import is_number

    is_formula = isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) and not is_number(cell)
    return f"'{cell}" if is_formula else cell
