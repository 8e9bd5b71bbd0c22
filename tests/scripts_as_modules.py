"""The scripts of the repository as modules, to test their functions."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


def load_script(name):
    """Import ``scripts/<name>.py``, which finds the modules beside it; skip the test where scripts are missing."""
    path = SCRIPTS / f"{name}.py"
    if not path.exists():
        pytest.skip("the scripts are not part of this copy")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        spec.loader.exec_module(module)
    for beside in SCRIPTS.glob("*.py"):
        if beside.stem not in before:
            sys.modules.pop(beside.stem, None)
    return module
