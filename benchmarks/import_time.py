"""Importing the estimators against importing what they use of other packages; ``import polytrain`` loads neither.

    python -m benchmarks.import_time [--quick]

The rival runs the very import statements that stand at the top of the modules which the estimators load, those of the
standard library and of polytrain itself left out. All run in fresh interpreters, in turn.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.report import Report, make_parser

_LIST = (
    "import json, sys; from polytrain import TensorTrainClassifier;"
    "print(json.dumps([m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'polytrain']))"
)
_TIME = "import time; started = time.perf_counter()\n{}\nprint(time.perf_counter() - started)"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout


def foreign_imports(path: str) -> set[str]:
    """Import statements at the top level of a module that name third-party packages."""
    found = set()
    for node in ast.parse(Path(path).read_text()).body:
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        packages = {name.split(".")[0] for name in names}
        if not packages & ({"polytrain", "__future__"} | sys.stdlib_module_names) and not getattr(node, "level", 0):
            found.add(ast.unparse(node))
    return found


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    report = Report("import_time", arguments.quick)
    loaded = json.loads(run(_LIST))
    statements = sorted(set().union(*map(foreign_imports, loaded)))
    codes = {
        "import polytrain": _TIME.format("import polytrain"),
        "the estimators": _TIME.format("from polytrain import TensorTrainClassifier"),
        "what they use": _TIME.format("\n".join(statements)),
    }
    times: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(1 + (5 if arguments.quick else 15)):
        for name, code in codes.items():
            times[name].append(float(run(code)))
    best = {name: min(values[1:]) for name, values in times.items()}  # the first run fills the file cache
    report.table(f"{len(loaded)} modules of polytrain", [{"import": name, "best s": best[name]} for name in codes])
    report.table("what they use", [{"statement": statement} for statement in statements])
    ratio = best["the estimators"] / best["what they use"]
    report.figure("estimators / what they use", ratio, "x", at_most=1.3)
    report.finish()


if __name__ == "__main__":
    main()
