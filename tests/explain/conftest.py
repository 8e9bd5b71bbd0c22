"""Small fitted models, and the slow references: dense tensors and sums over all of their entries."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from polytrain import TensorTrain
from power_models import power_classifier, power_regressor

matplotlib.use("Agg")


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpool_limits(1):
        yield


def given_model(train, *, low=-1.0, high=1.0, basis="power", intercept=0.0):
    """A regressor that predicts exactly this train on features with these ranges."""
    d = train.order
    low, high = np.broadcast_to(low, d).astype(float), np.broadcast_to(high, d).astype(float)
    degree = [n - 1 for n in train.dims]
    model = power_regressor(degree=degree, basis=basis, init=train, max_sweeps=0, rank=max(train.ranks))
    model.fit(np.stack([low, high]), np.array([intercept - 1.0, intercept + 1.0]))
    return model


@pytest.fixture
def make_model():
    return given_model


@pytest.fixture
def random_model():
    """A regressor on features of different ranges, none around 0, with a random train."""

    def make(dims, rank=3, seed=0, **settings):
        low = np.linspace(0.5, 1.5, len(dims))
        settings = {"low": low, "high": low + np.linspace(1, 3, len(dims)), "intercept": 0.7, **settings}
        return given_model(TensorTrain.random(dims, rank, random_state=seed), **settings)

    return make


@pytest.fixture(scope="session")
def iris_model():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True, as_frame=True)
    return power_classifier(degree=2, rank=3, random_state=0).fit(X, y), X, y
