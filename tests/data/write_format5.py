"""How format5.polytrain was made, once, by the version that wrote that format first.

What it says must be read for ever, so run it only to see what a new version would write elsewhere:
``python tests/data/write_format5.py PATH``.
"""

import sys

import numpy as np

from polytrain import TensorTrainRegressor


def table():
    """Rows with two numbers, one of them with gaps, and two targets."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (60, 2)).round(3)
    noise = rng.normal(size=(60, 2)).round(3)
    y = np.stack([X[:, 0] * X[:, 1] + 0.1 * noise[:, 0], 100 + X[:, 0] + 0.5 * noise[:, 1]], axis=1)
    X[::9, 1] = np.nan
    return X, y


if __name__ == "__main__":
    model = TensorTrainRegressor(basis="smooth", rank=2, calibration_fraction=0.3, random_state=0)
    model.fit(*table()).save(sys.argv[1])
