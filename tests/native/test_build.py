"""Compiling the kernels, and doing without a compiler."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from polytrain import native

SCRIPT = Path(__file__).parents[2] / "hatch_build.py"
pytest.importorskip("hatchling")
if not SCRIPT.is_file():
    pytest.skip("hatch_build.py is not beside these tests", allow_module_level=True)


@pytest.fixture
def hatch_build():
    spec = importlib.util.spec_from_file_location("hatch_build", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def sources(tmp_path):
    for name in ("kernels.c", "typed.h"):
        shutil.copy(Path(native.__file__).parent / name, tmp_path)
    return tmp_path


def test_without_a_compiler_nothing_is_made(hatch_build, sources, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert hatch_build.compile_kernels(sources) is None
    assert sorted(path.name for path in sources.iterdir()) == ["kernels.c", "typed.h"]


def test_sources_that_do_not_compile_leave_the_old_library(hatch_build, sources):
    (sources / "_kernels.so").write_bytes(b"old")
    (sources / "kernels.c").write_text("no C\n")
    assert hatch_build.compile_kernels(sources) is None
    assert (sources / "_kernels.so").read_bytes() == b"old"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_sources_compile_without_a_warning(hatch_build, sources, monkeypatch):
    monkeypatch.setenv("CC", "cc -Wall -Wextra -Werror")
    assert hatch_build.compile_kernels(sources) is not None
    assert native._library(sources).native_interface() == native._INTERFACE
