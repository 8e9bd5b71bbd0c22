import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from polytrain_paper.experiments.code_digest import ROOTS, code_digest, source_files

COMPUTE = [
    "polytrain/learning/sweep.py",
    "polytrain/learning/engines/tasks.py",
    "polytrain/tensor/thin_products.py",
    "polytrain/estimators/__init__.py",
    "polytrain/maps/polynomial.py",
    "polytrain_paper/features/deskew.py",
    "polytrain_paper/features/weights/digit_cnn_d20.safetensors",
    "polytrain_paper/datasets/usps.py",
    "polytrain_paper/experiments/convergence.py",
]
RUNS = Path("polytrain_paper", "experiments", "runs.py")
SHOW = [
    "polytrain/cli/main.py",
    "polytrain/reporting/reports.py",
    "polytrain_paper/cli/reproduce.py",
    "polytrain_paper/experiments/plots.py",
    "polytrain_paper/experiments/report.py",
]


def roots(folder):
    """Return the packages that are installed in a folder."""
    return folder / "polytrain", folder / "polytrain_paper"


@pytest.fixture
def tree(tmp_path):
    """Copies of the packages, as if installed elsewhere."""
    for root in ROOTS:
        shutil.copytree(root, tmp_path / "site" / root.name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "site"


@pytest.fixture
def tiny(tmp_path):
    """Runs that import nothing, and modules of both packages that nothing imports."""
    for name in ("__init__", "added/__init__", "added/module", "too"):
        write(tmp_path / "polytrain" / f"{name}.py")
    for name in ("__init__", "experiments/__init__", "experiments/runs", "more"):
        write(tmp_path / "polytrain_paper" / f"{name}.py")
    append(tmp_path / "polytrain" / "added" / "module.py", "import numpy, polytrain.too")
    return tmp_path


def write(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def append(path, text):
    path.write_bytes(path.read_bytes() + text.encode())


def digest_now(folder):
    """Return the digest of sources that may have changed since the last call."""
    return code_digest.__wrapped__(roots(folder))


def names(folder):
    return {path.relative_to(folder).as_posix() for path in source_files(roots(folder))}


@pytest.mark.slow
def test_the_same_sources_have_the_same_digest_wherever_they_are(tree):
    assert digest_now(tree) == code_digest() == code_digest(ROOTS)
    for path in tree.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))  # as some tools do on checkout
    assert digest_now(tree) == code_digest()


@pytest.mark.slow
def test_one_byte_of_what_computes_a_result_changes_the_digest(tree):
    digests = [digest_now(tree)]
    for name in COMPUTE:
        append(tree / name, " ")
        digests.append(digest_now(tree))
    assert len(set(digests)) == 1 + len(COMPUTE)


def test_what_only_shows_results_does_not(tree):
    for name in SHOW:
        append(tree / name, " ")
    (tree / "polytrain" / "learning" / "notes.txt").write_text("no source")
    assert digest_now(tree) == code_digest()


def test_a_renamed_source_changes_the_digest(tiny):
    append(tiny / RUNS, "import polytrain.too")
    before = digest_now(tiny)
    (tiny / "polytrain" / "too").mkdir()
    (tiny / "polytrain" / "too.py").rename(tiny / "polytrain" / "too" / "__init__.py")
    assert digest_now(tiny) != before


@pytest.mark.parametrize(
    "statement",
    [
        "import polytrain.added.module",
        "import math, polytrain.added.module as m",
        "from polytrain.added import module",
        "from polytrain.added.module import (\n    something,\n)",
        "from ..more import something",
        "def later():\n    if True:\n        from polytrain.added.module import something",
        "try:\n    pass\nexcept ImportError:\n    import polytrain.added.module",
        "match 1:\n    case 1:\n        import polytrain.added.module",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import polytrain.added.module",
        "if not TYPE_CHECKING:\n    import polytrain.added.module",
    ],
)
def test_modules_are_found_however_they_are_imported(tiny, statement):
    before = names(tiny)
    assert before == {f"polytrain_paper/{name}.py" for name in ("__init__", "experiments/__init__", "experiments/runs")}
    append(tiny / "polytrain_paper" / "more.py", "import polytrain.added.module")
    append(tiny / RUNS, statement)
    found = names(tiny) - before - {"polytrain_paper/more.py"}
    assert found == {f"polytrain/{name}.py" for name in ("__init__", "added/__init__", "added/module", "too")}


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_imports_for_type_checkers_compute_nothing(tiny, test):
    before = names(tiny)
    append(tiny / RUNS, f"if {test}:\n    import polytrain.added.module")
    assert names(tiny) == before


@pytest.mark.slow
def test_all_that_a_run_loads_is_found_and_nothing_of_the_faces():
    script = (
        "import sys, polytrain_paper.experiments.runs\n"
        "for m in [*sys.modules.values()]: print(getattr(m, '__file__', 0))"
    )
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=True)
    loaded = {Path(path) for path in run.stdout.splitlines() if any(Path(path).is_relative_to(root) for root in ROOTS)}
    assert ROOTS[0] / "learning" / "sweep.py" in loaded
    assert loaded <= source_files()
    parts = {path.relative_to(root).parts[0] for path in source_files() for root in ROOTS if path.is_relative_to(root)}
    assert parts.isdisjoint({"cli", "plotting", "reporting", "export"})


def test_missing_sources_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"does not hold the source of polytrain_paper\.experiments\.runs"):
        code_digest(roots(tmp_path))
