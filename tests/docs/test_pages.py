"""The pages run by copy and paste: blocks of Python in order, sessions of the command line, and what they print.

Every page runs in an empty folder of its own. Its blocks of Python share a namespace; if the next block is plain text,
that is what they print. Of console blocks, commands that begin with polytrain, cc or ./ run. Examples with prompts
(``{doctest}``) run in ``make docs``.
"""

import contextlib
import doctest
import importlib.util
import io
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from polytrain.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

#: Pages with Python or sessions that cannot run as they stand, or run elsewhere, and why.
NOT_RUN = {
    "docs/choosing.md": "one callback needs scikit-learn's experimental interface; the rest are doctests",
    "docs/command-line.md": "tests/cli runs its sessions",
    "docs/explanations.md": "draws for a classifier that the reader has; the rest are doctests",
    "docs/install.md": "installs packages",
    "docs/performance.md": "needs MNIST; the command of each figure is beside it",
    "docs/tabarena.md": "needs AutoGluon; test_tabarena runs the class of the page",
    "docs/uncertainty.md": "one line shows two constructors; the rest are doctests",
}

_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_NEEDS = re.compile(r"# needs (\w+)")


@dataclass(frozen=True)
class Block:
    kind: str
    body: str


def blocks(page):
    """Blocks of Python, text and console of a page, in order; others (doctests, directives) come as ``other``."""
    for found in _FENCE.finditer(page.read_text(encoding="utf-8")):
        kind = found["kind"].strip()
        body = re.sub(rf"^{found['indent']}", "", found["body"], flags=re.MULTILINE)
        yield Block(kind if kind in ("python", "text", "console") else "other", body)


def commands(body):
    """Commands of a console block, each with what it prints; a backslash at its end continues a line."""
    for part in re.split(r"^\$ ", body.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command.split("  #")[0], expected


def run_python(body, namespace):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(body, "<page>", "exec"), namespace)
    return out.getvalue()


def run_command(command, capfd):
    """Run a command line; what it prints, or None if it is not one to run."""
    words = shlex.split(command)
    if words[0] == "polytrain":
        capfd.readouterr()
        code = main(words[1:])
        out, err = capfd.readouterr()
        assert code == 0, f"{command}\n{err}"
        return out
    if words[0] == "cc" or words[0].startswith("./"):
        return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout
    return None


def run_page(page, capfd):
    """Run all blocks of a page in the current folder; the number that ran."""
    namespace = {"__name__": "__main__"}
    printed, ran = None, 0
    for block in blocks(page):
        if block.kind == "python":
            needs = _NEEDS.search(block.body)
            if needs and importlib.util.find_spec(needs[1]) is None:
                printed = None
                continue
            printed = run_python(block.body, namespace)
            ran += 1
        elif block.kind == "text":
            if printed is not None:
                assert doctest.OutputChecker().check_output(block.body, printed, FLAGS), f"printed:\n{printed}"
            printed = None
        elif block.kind == "console":
            printed = None
            for command, expected in commands(block.body):
                answer = run_command(command, capfd)
                if answer is None:
                    continue
                ran += 1
                if expected.strip():
                    assert doctest.OutputChecker().check_output(expected, answer, FLAGS), f"{command}\n{answer}"
    return ran


def with_blocks():
    """The README and the pages that have anything to run, by their path."""
    pages = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if DOCS.exists() else []
    kinds = {page: {block.kind for block in blocks(page)} for page in pages if "_build" not in page.parts}
    return [page.relative_to(ROOT).as_posix() for page, found in kinds.items() if found & {"python", "console"}]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in with_blocks() if name not in NOT_RUN])
def test_page(name, tmp_path, monkeypatch, capfd):
    if "export" in name and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    for module in ("pandas", "matplotlib", "dask"):
        pytest.importorskip(module)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    assert run_page(ROOT / name, capfd) > 0


@pytest.mark.skipif(not DOCS.exists(), reason="the pages are not part of this copy")
def test_exceptions_are_pages():
    assert set(NOT_RUN) <= set(with_blocks())


def test_wrong_output_is_found(tmp_path, capfd):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 2\nprint(x)\n```\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError, match=r"printed:\s+2"):
        run_page(page, capfd)


def test_indented_blocks_and_continued_lines(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("- an item\n\n  ```python\n  if True:\n      print('yes')\n  ```\n\n  ```text\n  yes\n  ```\n")
    assert run_page(page, capfd) == 1
    assert list(commands("$ a b \\\n  c  # why\nout\n$ d\n")) == [("a b   c", "out\n"), ("d", "")]


def test_missing_package_skips_a_block(tmp_path, capfd):
    page = tmp_path / "page.md"
    page.write_text("```python\n# needs no_such_package\nimport no_such_package\n```\n\n```text\n1\n```\n")
    assert run_page(page, capfd) == 0
    assert sys.modules.get("no_such_package") is None
