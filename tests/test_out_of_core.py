"""A data set four times larger than the memory that the process may use."""

import os
import subprocess
import sys

import numpy as np
import pytest

from polytrain import TensorTrainClassifier
from power_models import CLASSIFIER_POWERS

LIMIT = 400 << 20
N_FEATURES, N_FILES = 20, 16
N_ROWS = 4 * LIMIT // (8 * N_FEATURES) + 1
SETTINGS = {
    **CLASSIFIER_POWERS,
    "loss": "squared",
    "degree": 1,
    "rank": 2,
    "max_sweeps": 1,
    "random_state": 0,
}

SCRIPT = f"""
import sys
from polytrain import TensorTrainClassifier, config_context
from polytrain.sources import open_rows

with config_context(max_memory="40 MB"):
    model = TensorTrainClassifier(**{SETTINGS}).fit(open_rows(sys.argv[1]))
model.save(sys.argv[2])
"""


def _limit_memory():
    import resource  # Windows has none

    # Heap and private mappings, wherever they come from; files that are mapped for reading are not counted.
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))


def _write_rows(folder):
    """Return the whole table, which this process has room for."""
    rng = np.random.default_rng(0)
    X = rng.random((N_ROWS, N_FEATURES))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0.8).astype(np.int64)
    for k, rows in enumerate(np.array_split(np.arange(N_ROWS), N_FILES)):
        np.save(folder / f"X{k:02d}.npy", X[rows[0] : rows[-1] + 1])
        np.save(folder / f"y{k:02d}.npy", y[rows[0] : rows[-1] + 1])
    return X, y


@pytest.mark.slow
@pytest.mark.timeout(420)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA counts all private memory on Linux only")
def test_rows_four_times_larger_than_the_memory_limit_give_the_same_model(tmp_path):
    import polytrain

    rows = tmp_path / "rows"
    rows.mkdir()
    X, y = _write_rows(rows)
    assert sum(file.stat().st_size for file in rows.glob("X*.npy")) >= 4 * LIMIT
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT, str(rows), str(tmp_path / "model")]
    child = subprocess.run(command, env=environment, preexec_fn=_limit_memory, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    model = polytrain.load(tmp_path / "model")
    expected = TensorTrainClassifier(**SETTINGS).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X[:5000]), expected.decision_function(X[:5000]), atol=1e-5)
