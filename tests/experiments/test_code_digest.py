import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from polytrain.experiments.code_digest import ROOT, code_digest, source_files

COMPUTE = [
    "learning/sweep.py",
    "learning/engines/processes.py",  # imported only where it is used
    "tensor/contract.py",
    "estimators/__init__.py",
    "features/deskew.py",
    "features/weights/digit_cnn_d20.safetensors",
    "datasets/usps.py",
    "maps/polynomial.py",
    "experiments/convergence.py",
]
SHOW = ["cli/main.py", "cli/reproduce.py", "experiments/plots.py", "experiments/report.py", "reporting/page.py"]


@pytest.fixture
def tree(tmp_path):
    """A copy of the package, as if installed elsewhere."""
    return Path(shutil.copytree(ROOT, tmp_path / "site" / "polytrain", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture
def tiny(tmp_path):
    """A package of runs that import nothing, and of modules that nothing imports."""
    for name in ("__init__", "experiments/__init__", "experiments/runs", "added/__init__", "added/module", "too"):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    append(tmp_path / "added" / "module.py", "import numpy, polytrain.too")
    return tmp_path


def append(path, text):
    path.write_bytes(path.read_bytes() + text.encode())


def digest_now(root):
    """Return the digest of sources that may have changed since the last call."""
    return code_digest.__wrapped__(root)


def names(root=ROOT):
    return {path.relative_to(root).as_posix() for path in source_files(root)}


@pytest.mark.slow
def test_the_same_sources_have_the_same_digest_wherever_they_are(tree):
    assert digest_now(tree) == code_digest() == code_digest(ROOT)
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
    (tree / "learning" / "notes.txt").write_text("no source")
    assert digest_now(tree) == code_digest()


def test_a_renamed_source_changes_the_digest(tiny):
    append(tiny / "experiments" / "runs.py", "import polytrain.too")
    before = digest_now(tiny)
    (tiny / "too").mkdir()
    (tiny / "too.py").rename(tiny / "too" / "__init__.py")
    assert digest_now(tiny) != before


@pytest.mark.parametrize(
    "statement",
    [
        "import polytrain.added.module",
        "import math, polytrain.added.module as m",
        "from polytrain.added import module",
        "from polytrain.added.module import (\n    something,\n)",
        "from ..added import module",
        "def later():\n    if True:\n        from polytrain.added.module import something",
        "try:\n    pass\nexcept ImportError:\n    import polytrain.added.module",
        "match 1:\n    case 1:\n        import polytrain.added.module",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import polytrain.added.module",
        "if not TYPE_CHECKING:\n    import polytrain.added.module",
    ],
)
def test_modules_are_found_however_they_are_imported(tiny, statement):
    before = names(tiny)
    assert before == {"__init__.py", "experiments/__init__.py", "experiments/runs.py"}
    append(tiny / "experiments" / "runs.py", statement)
    assert names(tiny) - before == {"added/__init__.py", "added/module.py", "too.py"}


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_imports_for_type_checkers_compute_nothing(tiny, test):
    before = names(tiny)
    append(tiny / "experiments" / "runs.py", f"if {test}:\n    import polytrain.added.module")
    assert names(tiny) == before


@pytest.mark.slow
def test_all_that_a_run_loads_is_found_and_nothing_of_the_faces():
    script = (
        "import sys, polytrain.experiments.runs\nfor m in [*sys.modules.values()]: print(getattr(m, '__file__', 0))"
    )
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=True)
    loaded = {Path(path) for path in run.stdout.splitlines() if Path(path).is_relative_to(ROOT)}
    assert ROOT / "learning" / "sweep.py" in loaded
    assert loaded <= source_files()
    assert {name.split("/")[0] for name in names()}.isdisjoint({"cli", "plotting", "reporting", "export"})


def test_missing_sources_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"does not hold the source of polytrain\.experiments\.runs"):
        code_digest(tmp_path)
