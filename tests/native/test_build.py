"""Compiling the kernels, and doing without a compiler."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

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


@pytest.mark.parametrize(
    ("target", "version", "tag"),
    [
        ("11.0", "15.5", "macosx_11_0_arm64"),
        (None, "15.5", "macosx_15_0_arm64"),
        (None, "26.0.1", "macosx_26_0_arm64"),
        ("10.13", "15.5", "macosx_10_13_arm64"),
        ("12", "15.5", "macosx_12_0_arm64"),
    ],
)
def test_wheels_of_macos_say_what_the_compiler_was_told(hatch_build, monkeypatch, target, version, tag):
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("platform.mac_ver", lambda: (version, ("", "", ""), "arm64"))
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    monkeypatch.delenv("MACOSX_DEPLOYMENT_TARGET", raising=False)
    if target is not None:
        monkeypatch.setenv("MACOSX_DEPLOYMENT_TARGET", target)
    assert hatch_build.platform_tag() == tag


def test_options_suit_the_system(hatch_build):
    assert "-fPIC" in hatch_build.compiler_options(["gcc"], is_windows=False)[0]
    compiling, linking = hatch_build.compiler_options(["C:/mingw64/bin/gcc.exe"], is_windows=True)
    assert "-fPIC" not in compiling
    assert "-Wa,-muse-unaligned-vector-move" in compiling
    assert linking == ["-static-libgcc"]
    assert hatch_build.compiler_options(["clang"], is_windows=True)[1] == []


@pytest.mark.parametrize(("wish", "outcome"), [("0", None), ("1", "error"), ("", "warning")])
def test_what_a_build_does_without_a_compiler(hatch_build, monkeypatch, wish, outcome, tmp_path):
    said, data = [], {"artifacts": []}
    application = SimpleNamespace(display_warning=said.append)
    hook = SimpleNamespace(target_name="wheel", root=str(tmp_path), app=application)
    monkeypatch.setattr(hatch_build, "compile_kernels", lambda folder: None)
    monkeypatch.setenv("POLYTRAIN_NATIVE", wish)
    if outcome == "error":
        with pytest.raises(RuntimeError, match="no C compiler works here; set CC"):
            hatch_build.NativeHook.initialize(hook, "standard", data)
    else:
        hatch_build.NativeHook.initialize(hook, "standard", data)
    assert len(said) == (outcome == "warning")
    assert data == {"artifacts": []}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_sources_compile_without_a_warning(hatch_build, sources, monkeypatch):
    monkeypatch.setenv("CC", "cc -Wall -Wextra -Werror")
    assert hatch_build.compile_kernels(sources) is not None
    assert native._library(sources).native_interface() == native._INTERFACE


# Positions among three knots, of which only the last is one; any other conversion to a whole number ends the process.
ODD_POSITIONS = """
import ctypes, sys
import numpy as np

library = ctypes.CDLL(sys.argv[1])
for routine, dtype in ((library.local_move_f32_l0, np.float32), (library.local_move_f64_l0, np.float64)):
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.5], dtype)
    side, tables, out = np.ones((1, 6), dtype), np.ones((4, 1, 32 // x.itemsize), dtype), np.zeros((1, 6), dtype)
    sizes = [ctypes.c_int64(size) for size in (6, 1, 1, 3)]
    x, side, tables, to = (ctypes.c_void_p(array.ctypes.data) for array in (x, side, tables, out))
    assert routine(*sizes, x, side, ctypes.c_int64(6), tables, to, ctypes.c_int64(6)) == 0
    assert out[0, 5] == 1
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no GCC, whose sanitizer needs no library")
def test_positions_that_are_no_whole_numbers_are_never_converted(sources):
    flags = ["-O1", "-std=gnu11", "-shared", "-fPIC", "-DLEVEL=0", "-fsanitize=float-cast-overflow"]
    trap, library = "-fsanitize-undefined-trap-on-error", sources / "trapping.so"
    subprocess.run(["gcc", *flags, trap, sources / "kernels.c", "-o", library], check=True)
    done = subprocess.run([sys.executable, "-c", ODD_POSITIONS, library], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
