import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_iris

from power_models import power_classifier, power_regressor

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="session")
def iris_model():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return power_classifier(degree=2, rank=3, max_sweeps=2, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="session")
def regressor():
    X = np.random.default_rng(0).uniform(0, 2, size=(300, 4))
    y = 2 * X[:, 0] * X[:, 1] - 3 * X[:, 2] + 1
    return power_regressor(degree=1, rank=2, alpha=1e-6, max_sweeps=6, random_state=0).fit(X, y), X, y
