import numpy as np
import pytest

RNG = np.random.default_rng(0)
N_FEATURES = 4


@pytest.fixture(scope="session")
def table():
    """Rows to learn from, rows that also leave the range, a label of up to five classes, a target."""
    X = RNG.normal(size=(300, N_FEATURES))
    score = X[:, 0] + X[:, 1] * X[:, 2] - 0.5 * X[:, 3] ** 2
    labels = np.digitize(score, [-1.5, -0.5, 0.3, 1.2])
    return X, np.vstack([X, 3 * RNG.normal(size=(100, N_FEATURES))]), labels, score
