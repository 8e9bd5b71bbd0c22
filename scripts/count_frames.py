"""Count the frames of polytrain on the stack of a default fit: at the sweep, through the choice, and at the kernel.

    python scripts/count_frames.py

The deepest stack of each kind counts. A frame is a function, generator or comprehension of a file of the package.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import polytrain
from polytrain import TensorTrainRegressor

PACKAGE = str(Path(polytrain.__file__).parent)
#: Functions of polytrain.native that call compiled code with all rows.
KERNELS = {"product", "conjugate_gradients", "dense_moments"}


def _stack(frame: FrameType | None) -> list[str]:
    names = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            names.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")
        frame = frame.f_back
    return names[::-1]


def count_frames(n_rows: int = 5000) -> dict[str, list[str]]:
    """Return the deepest stacks of a default fit, from ``fit`` down."""
    deepest: dict[str, list[str]] = {"sweep": [], "sweep of the choice": [], "kernel": []}

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        is_sweep = frame.f_code.co_name == "sweep_train"
        if not is_sweep and frame.f_code.co_name not in KERNELS:
            return
        stack = _stack(frame)
        is_choice = "choose.choose" in stack
        if not is_sweep and not stack[-1].startswith("__init__."):  # of polytrain.native
            return
        kinds = ["sweep of the choice" if is_choice else "sweep"] if is_sweep else [] if is_choice else ["kernel"]
        for kind in kinds:
            if len(stack) > len(deepest[kind]) and any(name.endswith(".sweep_train") for name in stack):
                deepest[kind] = stack

    X = np.random.default_rng(0).uniform(-1, 1, size=(n_rows, 6))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) * X[:, 3]
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        TensorTrainRegressor(random_state=0).fit(X, y)
    finally:
        sys.setprofile(before)
    return deepest


if __name__ == "__main__":
    for kind, stack in count_frames().items():
        print(f"{kind}: {len(stack)} frames\n  {' > '.join(stack)}")
