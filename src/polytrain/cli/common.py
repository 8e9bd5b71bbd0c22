"""Output, errors and arguments that the commands share.

Results go to stdout and progress to stderr, through `show` and `say`, which escape what a terminal would obey: names
and labels come from untrusted files. A command returns its exit code. A user's mistake is a `CommandError`: one line on
stderr that names it and the remedy, exit code 2, no traceback.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from polytrain.atomic_file import open_descriptor, written_in_place
from polytrain.texts import printable

if TYPE_CHECKING:
    from polytrain.tables import ReadOptions, TableFile, TableModel

__all__ = [
    "DATA",
    "SUMMARIES",
    "CommandError",
    "HelpFormatter",
    "Parser",
    "add_command",
    "add_list",
    "add_reading",
    "check_output",
    "flag",
    "open_model_table",
    "read_options",
    "say",
    "show",
    "show_json",
    "shows_beside",
    "user_errors",
]


#: What each command does.
SUMMARIES = {
    "fit": "learn a model from a table",
    "predict": "predict the rows of a table",
    "evaluate": "compare predictions with the target in a table",
    "explain": "show importances, interactions and terms of a model, or why rows have their scores",
    "report": "write an HTML page about a model",
    "export": "write a model as ONNX or C",
    "info": "show what a model file holds",
    "reproduce": "recompute the paper's tables and convergence figure",
    "completion": "print a script for shell completion",
}


#: The argument DATA.
DATA = (
    "CSV, TSV, JSON (packed by gzip, zstd, ... or not), Parquet, Feather, Excel, .npy or .npz file; - is standard input"
)


class CommandError(Exception):
    """A mistake that the user can fix. The message names the thing, its value and the remedy."""


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn errors of estimators and of missing extras, which name the remedy, into a `CommandError`."""
    from polytrain.tables import TableError

    try:
        yield
    except TableError:
        raise
    except (ValueError, ImportError) as error:
        raise CommandError(str(error)) from error


class Parser(argparse.ArgumentParser):
    """Parser that reports a mistake like every other one, in one line."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        raise CommandError(f"{message}. See {self.prog} --help.")


class HelpFormatter(argparse.HelpFormatter):
    """Fills paragraphs to the width of the terminal, and leaves those with indented lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = [
            part if "\n  " in part or part.startswith("  ") else textwrap.fill(" ".join(part.split()), width)
            for part in text.split("\n\n")
        ]
        return textwrap.indent("\n\n".join(paragraphs), indent)


def add_command(subparsers: Any, run: Callable[[argparse.Namespace], int], *shared: str) -> argparse.ArgumentParser:
    """Add the parser of a command, a function of its name whose docstring is the help, with examples at its end.

    ``shared`` are arguments that several commands have: "MODEL", "DATA", or "[DATA]" if it may be left out, "--target"
    and "--json".
    """
    about, _, examples = (inspect.getdoc(run) or "").partition("\n\n  ")
    parser = subparsers.add_parser(
        run.__name__,
        help=SUMMARIES[run.__name__],
        description=about,
        epilog=f"examples:\n  {examples}\n\nexit codes: 0 done, 2 a mistake that you can fix, 130 interrupted.",
        formatter_class=HelpFormatter,
    )
    parser.set_defaults(run=run)
    if "MODEL" in shared:
        about = "model file, from fit or from model.save in Python"
        parser.add_argument("model", type=Path, metavar="MODEL", help=about)
    if "DATA" in shared or "[DATA]" in shared:
        parser.add_argument("data", metavar="DATA", help=DATA, nargs=None if "DATA" in shared else "?")
        add_reading(parser.add_argument_group("reading the table"), ("yes", "no"), "as in training")
    if "--target" in shared:
        about = "name or position of the target, 0 for the first column, -1 for the last (default: as in training)"
        add_list(parser, "--target", "COLUMN", about, default=None)
    if "--json" in shared:
        parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def flag(name: str, value: str) -> str:
    """Spell an option of a message (see `polytrain.tables.options.option`) as it is written on the command line."""
    name = f"--{name.replace('_', '-')}"
    # A value that begins with a dash would be taken for an option.
    return f"{name}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}" if value else name


def check_output(path: Path, *inputs: str | os.PathLike[str]) -> None:
    """Refuse an output file that could not be written, before the work begins."""
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir() or path.is_socket():
        raise CommandError(f"--out {path} is a {'folder' if path.is_dir() else 'socket'}. Name a file.")
    if written_in_place(path):
        if open_descriptor(path) is None and not os.access(path, os.W_OK):
            raise CommandError(f"--out {path}: no permission to write into it. Name another file.")
    elif not folder.is_dir():
        raise CommandError(f"--out {path}: there is no folder {folder}. Make it, or name another.")
    elif not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"--out {path}: no permission to write in {folder}. Name a file in another folder.")
    for given in inputs:
        if not path.exists() or path.is_char_device() or str(given) == "-" or not Path(given).exists():
            continue
        if path.samefile(given):
            raise CommandError(f"--out {path} would replace a file that is read. Name another.")


def shows_beside(out: Path) -> Callable[[str], None]:
    """Return the function that prints results: `say` if the output itself goes to standard output, else `show`."""
    return say if open_descriptor(out) == 1 else show


def show_json(content: Any, show_line: Callable[[str], None] | None = None) -> None:
    """Print a result for scripts."""
    text = json.dumps(content, indent=1, allow_nan=False).replace("\x7f", "\\u007f")  # all else is escaped in JSON
    for line in text.split("\n"):
        (show_line or show)(line)


def show(line: str = "") -> None:
    """Print a line of a result."""
    _print(line, sys.stdout)


def say(line: str) -> None:
    """Tell the user what is going on, in one line."""
    _print(line, sys.stderr)


def _print(line: str, stream: TextIO) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    known = printable(line).encode(encoding, "backslashreplace").decode(encoding)
    print(known, file=stream, flush=True)


# --- arguments that the commands on tables share ---


def add_list(parser: Any, name: str, metavar: str, about: str, **more: Any) -> None:
    """Add an option that takes several words, and may be given several times."""
    parser.add_argument(name, nargs="+", action="extend", metavar=metavar, help=about, **{"default": []} | more)


def add_reading(group: Any, headers: tuple[str, ...], usual: str) -> None:
    """Add the options that say how a file is read."""
    header = f"whether the first row of a text file holds the columns' names (default: {usual})"
    group.add_argument("--header", choices=headers, help=header)
    delimiter = "what separates cells of a text file, such as ';' or tab (default: detected)"
    group.add_argument("--delimiter", metavar="CHAR", help=delimiter)
    decimal = "what separates fractions of numbers in text (default: detected)"
    group.add_argument("--decimal", choices=(".", ","), help=decimal)
    group.add_argument("--encoding", metavar="NAME", help="of a text file, such as latin1 (default: detected)")
    index = "keep a first column without a name, which is taken for an index"
    group.add_argument("--keep-index", action="store_true", help=index)


def read_options(arguments: argparse.Namespace, header: str) -> ReadOptions:
    """Return how DATA is to be read."""
    from polytrain.tables import ReadOptions  # imported late, so that help comes at once

    return ReadOptions(
        header=arguments.header or header,
        delimiter={"tab": "\t", "\\t": "\t"}.get(arguments.delimiter, arguments.delimiter),
        encoding=arguments.encoding,
        keep_index=arguments.keep_index,
    )


def open_model_table(model: TableModel, arguments: argparse.Namespace) -> TableFile:
    """Open DATA for a model, and say what was understood."""
    table = model.open(arguments.data, read_options(arguments, model.header))
    for note in table.notes:
        say(f"note: {note}")
    return table
