"""``polytrain reproduce``: the paper's tables and its convergence figure, beside the published figures."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from joblib import cpu_count

from polytrain.atomic_file import write_atomically
from polytrain.cli.common import CommandError, say, show
from polytrain_paper.datasets import DataFileError
from polytrain_paper.experiments import plots
from polytrain_paper.experiments.digit_rows import DigitRows
from polytrain_paper.experiments.paper_tables import LOSS_NAMES
from polytrain_paper.experiments.report import LiveTable, describe_run, markdown_page
from polytrain_paper.experiments.results import JobStore, rows_as_csv
from polytrain_paper.experiments.runs import CONVERGENCE_CHARACTER, Reproduction
from polytrain_paper.experiments.settings import DATASETS, FEATURES, INITS, RowSpec, Settings, ablation_rows, parse_rows

__all__ = ["add_parser"]

DESCRIPTION = """\
Run the rows of the paper's tables and set them beside the published figures. alpha is chosen by cross-validation on
training rows; the test set is looked at once per row, after everything else. Finished rows are kept: after an
interruption the same command goes on where it stopped."""


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "reproduce", help="recompute the paper's tables and convergence figure", description=DESCRIPTION
    )
    parser.set_defaults(run=run)
    parser.add_argument("dataset", choices=DATASETS, help="digits needs no download")
    parser.add_argument(
        "--loss",
        nargs="+",
        choices=list(LOSS_NAMES),
        default=list(LOSS_NAMES),
        help="squared is TTLS, logistic TTLR (default: both)",
    )
    parser.add_argument(
        "--rows",
        nargs="+",
        metavar="ROWS",
        help="paper, quick, components (40 features, degree 2, ranks 8 to 24) or rows such as d=20,degree=1,rank=8 "
        "(default: paper; quick for digits; components for other features than cnn)",
    )
    parser.add_argument("--features", choices=FEATURES, default="cnn", help="how images become features (default: cnn)")
    parser.add_argument(
        "--init", choices=INITS, default="linear", help="start of the sweeps; random is the paper's (default: linear)"
    )
    parser.add_argument(
        "--ablation", action="store_true", help="instead: starts, losses, degrees and ranks against each other at d=20"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the results (default: reproduction/NAME)")
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="forget finished rows in the folder; those that other code computed do not count in any case",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="processes (default: number of cores)")
    parser.add_argument("--data-home", type=Path, metavar="DIR", help="folder of MNIST and USPS")
    choosing = parser.add_argument_group("choosing alpha")
    choosing.add_argument("--alphas", type=float, nargs="+", metavar="ALPHA", help="default: 1e-1 to 1e-5 in decades")
    choosing.add_argument("--folds", type=int, metavar="K", help="default: 10")
    choosing.add_argument(
        "--cv-rows", type=int, metavar="N", help="most training rows to use (default: all; MNIST 10000)"
    )
    choosing.add_argument(
        "--cv-per",
        choices=("degree", "row"),
        help="choose once per loss and degree, at d=20 and rank 8, or for every row (default: degree; row for other "
        "features than cnn)",
    )
    choosing.add_argument("--seed", type=int, default=0, help="seed of starts, folds and subsample (default: 0)")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    try:
        settings = _settings(arguments)
        specs = (
            ablation_rows(arguments.loss)
            if arguments.ablation
            else parse_rows(arguments.rows, arguments.dataset, arguments.features, arguments.loss, arguments.init)
        )
    except ValueError as error:
        raise CommandError(str(error)) from error
    out = arguments.out or Path("reproduction") / _folder_name(arguments)
    try:
        out.mkdir(parents=True, exist_ok=True)
        _reproduce(arguments, settings, specs, out)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; finished rows are kept in {out}. To go on, run again: {arguments.command_line}"
        ) from None
    except (DataFileError, OSError) as error:
        raise CommandError(str(error)) from error


def _settings(arguments: argparse.Namespace) -> Settings:
    for name, least in (("jobs", 1), ("folds", 2), ("cv_rows", 20), ("seed", 0)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            raise ValueError(f"--{name.replace('_', '-')} must be at least {least}, got {value}")
    if arguments.alphas and not all(0 <= alpha < float("inf") for alpha in arguments.alphas):
        raise ValueError(f"--alphas must be finite and not negative, got {arguments.alphas}")
    if arguments.ablation and (arguments.rows or arguments.init != "linear" or arguments.features != "cnn"):
        raise ValueError("--ablation fixes rows, starts and features; leave out --rows, --init and --features")
    return Settings.default(
        arguments.dataset,
        arguments.features,
        alphas=tuple(sorted(set(arguments.alphas), reverse=True)) if arguments.alphas else None,
        folds=arguments.folds,
        cv_rows=arguments.cv_rows,
        cv_per=arguments.cv_per,
        seed=arguments.seed,
    )


def _folder_name(arguments: argparse.Namespace) -> str:
    parts = [arguments.dataset]
    parts += [arguments.features] if arguments.features != "cnn" else []
    parts += [arguments.init] if arguments.init != "linear" else []
    parts += ["ablation"] if arguments.ablation else []
    return "-".join(parts)


def _reproduce(arguments: argparse.Namespace, settings: Settings, specs: Sequence[RowSpec], out: Path) -> None:
    store = JobStore(out / "finished")
    if arguments.fresh:
        store.clear()
    jobs = arguments.jobs or cpu_count()
    digits = DigitRows(settings.dataset, settings.features, arguments.data_home, say)
    reproduction = Reproduction(settings, digits, store, jobs, say)
    kept = sum(map(reproduction.is_finished, specs))
    say(f"{settings.dataset}: {len(specs)} rows, {kept} of them finished before; --jobs {jobs}; results in {out}")
    started = time.perf_counter()
    table = LiveTable(settings.dataset, several_starts=arguments.ablation)
    for line in table.head():
        show(line)
    rows: list[dict[str, Any]] = []
    for row in reproduction.rows(specs):
        rows.append(row)
        _write_rows(out, rows)
        show(table.line(row))
    choices = {json.dumps(choice): choice for choice in (reproduction.choice(spec.loss, spec.size) for spec in specs)}
    page = markdown_page(settings, rows, list(choices.values()), jobs)
    write_atomically(out / "results.md", page)
    _draw(arguments, reproduction, specs, rows, out)
    for line in describe_run(settings, rows):
        say(line)
    say(f"done in {time.perf_counter() - started:.0f} s; see {out / 'results.md'}")


def _write_rows(out: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    write_atomically(out / "results.json", json.dumps(rows, indent=1) + "\n")
    write_atomically(out / "results.csv", rows_as_csv(rows))


def _draw(
    arguments: argparse.Namespace,
    reproduction: Reproduction,
    specs: Sequence[RowSpec],
    rows: Sequence[Mapping[str, Any]],
    out: Path,
) -> None:
    name = {"usps": "USPS", "mnist": "MNIST", "digits": "Digits"}[arguments.dataset]
    title = f"{name}, {arguments.features.upper()} features"
    curves = [] if arguments.ablation else reproduction.convergence(specs)
    if curves:
        write_atomically(out / "convergence.json", json.dumps(curves, indent=1) + "\n")
    if not plots.have_matplotlib():
        say("no plots: matplotlib is not installed (pip install 'polytrain[plot]')")
        return
    if arguments.ablation:
        plots.plot_ablation(out / "ablation.png", rows, f"{title}, d = 20")
        return
    plots.plot_errors(out / "errors.png", rows, f"{title}, {arguments.init} start")
    size = ", ".join(f"{field} = {curves[0][field]}" for field in ("d", "degree", "rank"))
    figure_title = f"{title}: the train for the character {CONVERGENCE_CHARACTER}, {size}"
    plots.plot_convergence(out / "convergence.png", curves, figure_title)
