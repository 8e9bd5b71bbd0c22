"""The examples of the gallery: their form, and that each of them runs as a script without a word of warning."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("plot_*.py"))
#: What an example may not lean on: a folder of data, a network, parts that are no longer in this package.
FORBIDDEN = ("POLYTRAIN_DATA", "fetch_", "urlopen", "requests", "polytrain.datasets", "polytrain_paper", "n_jobs")
MOST_LINES = 150

pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="a source distribution has no examples")


def imported(path: Path) -> set[str]:
    """Names of the packages that a script imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def run(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder, without a screen."""
    missing = [name for name in imported(path) - {"demo"} if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(sorted(missing))} not installed")
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "POLYTRAIN_DATA")}
    environment |= {"MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if "PYTHONPATH" in environment:  # it may be relative, and the script runs elsewhere
        parts = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(str(Path(part).resolve()) for part in parts)
    command = [sys.executable, str(path)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)


def test_gallery_has_a_header_and_enough_examples():
    title, line, *_ = (EXAMPLES / "GALLERY_HEADER.rst").read_text(encoding="utf-8").splitlines()
    assert title
    assert line == "=" * len(title)
    assert len(SCRIPTS) >= 12


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_examples_have_the_form_of_the_gallery(path):
    text = path.read_text(encoding="utf-8")
    _, title, line, blank, *paragraph = (ast.get_docstring(ast.parse(text), clean=False) or "").splitlines()
    assert title == title.strip() != ""
    assert line == "=" * len(title)
    assert blank == ""
    assert any(paragraph)
    assert len(text.splitlines()) <= MOST_LINES
    # Shown at the end of a cell: what else stands there is printed on the page by its repr.
    assert "plt.show()" in text
    assert {"matplotlib", "polytrain"} <= imported(path)
    assert not [word for word in FORBIDDEN if word in text]
    cells = text.split("\n# %%\n")[1:]
    assert cells
    assert all(cell.startswith("# ") for cell in cells)


@pytest.mark.slow
@pytest.mark.skipif("CI" in os.environ, reason="make docs, another step of CI, runs all examples and fails if one does")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_examples_run_without_a_warning(path, tmp_path):
    done = run(path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_demo_compares_and_writes_a_picture(tmp_path):
    done = run(EXAMPLES / "demo.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) < 40
    for word in ("simulated", "HistGradientBoosting", "functions '", "demo.png", "TTLR"):
        assert word in done.stdout
    assert (tmp_path / "demo.png").stat().st_size > 10_000
