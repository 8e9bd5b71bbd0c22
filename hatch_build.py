"""Compile the kernels in `src/polytrain/native` where there is a C compiler.

Without one, or where it fails, the package is pure Python and does the same work in NumPy; POLYTRAIN_NATIVE=1 makes
that an error, as it should be where wheels for others are built, and POLYTRAIN_NATIVE=0 does not try. The library is
loaded by ctypes, so one wheel serves all versions of Python on a platform.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

FOLDER = Path("src/polytrain/native")
#: Levels of the processor that the sources are compiled for, and the flags of each; only x86 has more than one.
LEVELS = {0: (), 3: ("-march=x86-64-v3",), 4: ("-march=x86-64-v4",)}


def compile_kernels(folder: Path) -> Path | None:
    """Compile the library into this folder; None where there is no compiler, or where it cannot."""
    target = folder / ("_kernels.dll" if os.name == "nt" else "_kernels.so")
    compiler = find_compiler()
    options, link_options = compiler_options(compiler)
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    with tempfile.TemporaryDirectory() as scratch:
        objects = []
        for level, flags in LEVELS.items() if is_x86 else [(0, ())]:
            compiled = str(Path(scratch) / f"level{level}.o")
            given = [*options, f"-DLEVEL={level}", *flags]
            if _run([*compiler, *given, "-c", str(folder / "kernels.c"), "-o", compiled]):
                objects.append(compiled)
            elif level == 0:
                return None
        linked = Path(scratch) / target.name
        if not _run([*compiler, "-shared", *link_options, *objects, "-o", str(linked)]):
            return None
        # Moved into place: a process that has the old library open keeps it.
        fresh = target.with_name(f".{target.name}.new")
        shutil.copy(linked, fresh)
        fresh.replace(target)
    return target


def find_compiler() -> list[str]:
    """Return the command of the C compiler that CC names, or of one that has a usual name."""
    named = shlex.split(os.environ.get("CC", ""), posix=os.name != "nt")
    return named or [next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), "cc")]


def compiler_options(compiler: list[str], is_windows: bool = os.name == "nt") -> tuple[list[str], list[str]]:
    """Return options for compiling and for linking."""
    options = ["-O3", "-std=gnu11", "-fvisibility=hidden"]
    if not is_windows:
        return [*options, "-fPIC"], []
    if "clang" in Path(compiler[0]).stem:
        return options, []
    # GCC keeps the stack of Windows aligned to 16 bytes, but moves vectors of 32 as if it were aligned to these. The
    # library must not need GCC's own, which is not there where a wheel is installed.
    return [*options, "-Wa,-muse-unaligned-vector-move"], ["-static-libgcc"]


def platform_tag() -> str:
    """Return the tag of the platforms that the library runs on."""
    if sys.platform != "darwin":
        return next(sys_tags()).platform
    # Python may be made for two architectures and older systems; the compiler makes one, for what it is told.
    target = os.environ.get("MACOSX_DEPLOYMENT_TARGET") or platform.mac_ver()[0]
    major, minor = [*target.split("."), "0"][:2]
    return f"macosx_{major}_{minor if major == '10' else 0}_{platform.machine()}"


def _run(command: list[str]) -> bool:
    """Whether a command succeeds; what it complains about goes to standard error."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=300, text=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return False
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    return done.returncode == 0


class NativeHook(BuildHookInterface):
    """Put the library into wheels and editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say what the wheel is then."""
        if self.target_name != "wheel":
            return
        if os.environ.get("POLYTRAIN_NATIVE") == "0":
            return
        library = compile_kernels(Path(self.root) / FOLDER)
        if library is None and os.environ.get("POLYTRAIN_NATIVE") == "1":
            raise RuntimeError("POLYTRAIN_NATIVE=1 asks for compiled kernels, but no C compiler works here; set CC.")
        if library is None:
            self.app.display_warning("polytrain: no C compiler that works here, so the kernels are left to NumPy")
            return
        build_data["artifacts"].append(f"/{FOLDER}/{library.name}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


if __name__ == "__main__":
    made = compile_kernels(Path(__file__).parent / FOLDER)
    print(made or "no C compiler that works here")
    sys.exit(made is None)
