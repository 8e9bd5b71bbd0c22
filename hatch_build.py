"""Compile the kernels in `src/polytrain/native` where there is a C compiler.

Without one, or where it fails, the package is pure Python and does the same work in NumPy. The library is loaded by
ctypes, so one wheel serves all versions of Python on a platform.
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
    compiler = shlex.split(os.environ.get("CC", "")) or [shutil.which("cc") or shutil.which("gcc") or "cc"]
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    with tempfile.TemporaryDirectory() as scratch:
        objects = []
        for level, flags in LEVELS.items() if is_x86 else [(0, ())]:
            compiled = str(Path(scratch) / f"level{level}.o")
            options = ["-O3", "-std=gnu11", "-fPIC", "-fvisibility=hidden", f"-DLEVEL={level}", *flags]
            if _run([*compiler, *options, "-c", str(folder / "kernels.c"), "-o", compiled]):
                objects.append(compiled)
            elif level == 0:
                return None
        linked = Path(scratch) / target.name
        if not _run([*compiler, "-shared", *objects, "-o", str(linked)]):
            return None
        # Moved into place: a process that has the old library open keeps it.
        fresh = target.with_name(f".{target.name}.new")
        shutil.copy(linked, fresh)
        fresh.replace(target)
    return target


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
        if library is None:
            self.app.display_warning("polytrain: no C compiler that works here, so the kernels are left to NumPy")
            return
        build_data["artifacts"].append(f"/{FOLDER}/{library.name}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{next(sys_tags()).platform}"


if __name__ == "__main__":
    made = compile_kernels(Path(__file__).parent / FOLDER)
    print(made or "no C compiler that works here")
    sys.exit(made is None)
