"""Build the sdists and wheels of both packages into dist/, install them and try each installation.

    python scripts/smoke_dist.py

polytrain is installed twice, in fresh virtual environments: from its wheel, which has the compiled kernels if there is
a C compiler, together with polytrain-paper; and from its sdist with POLYTRAIN_NATIVE=0, as without a compiler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
DIST = REPOSITORY / "dist"

_SMOKE_TEST = """
import sys
import numpy as np
from sklearn.datasets import load_diabetes, load_iris
import polytrain
from polytrain import TensorTrainClassifier, TensorTrainRegressor, native
for estimator, load in ((TensorTrainClassifier, load_iris), (TensorTrainRegressor, load_diabetes)):
    X, y = load(return_X_y=True)
    model = estimator(random_state=0).fit(X, y)
    model.save("model.polytrain")
    loaded = polytrain.load("model.polytrain")
    assert np.allclose(loaded.predict(X), model.predict(X), rtol=1e-5)  # files may round to float32
    assert model.score(X, y) > 0.4
print(f"  polytrain {polytrain.__version__} in {sys.prefix}: kernels {'compiled' if native.is_here() else 'in NumPy'}")
"""


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command without the repository on its path and return its output; on failure, stop with the output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def make_environment(folder: Path, *packages: str | Path, **variables: str) -> Path:
    """Make a virtual environment with these packages and return the folder of its programs."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "python", "-m", "pip", "install", "-q", *packages, cwd=folder.parent, **variables)
    return programs


def main() -> None:
    """Build, install and try."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        programs = make_environment(scratch / "build", "build")
        for source in (REPOSITORY, REPOSITORY / "paper"):
            run(programs / "python", "-m", "build", "--outdir", DIST, source, cwd=scratch)
        print("\n".join(f"  dist/{file.name}" for file in sorted(DIST.iterdir())))
        wheels = sorted(DIST.glob("*.whl"))
        (sdist,) = DIST.glob("polytrain-*.tar.gz")
        for kind, packages, variables in (("wheel", wheels, {}), ("sdist", [sdist], {"POLYTRAIN_NATIVE": "0"})):
            programs = make_environment(scratch / kind, *packages, **variables)
            print(run(programs / "python", "-c", _SMOKE_TEST, cwd=scratch, **variables), end="")
            print(" ", run(programs / "polytrain", "--version", cwd=scratch, **variables), end="")
        run(scratch / "wheel" / programs.name / "polytrain", "reproduce", "--help", cwd=scratch)
    print("Both installations work.")


if __name__ == "__main__":
    main()
