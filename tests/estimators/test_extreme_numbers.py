"""Numbers near the ends of what floats hold: learned with finite results, or refused with the remedy. Arrays and
sources of rows behave alike."""

import numpy as np
import pytest

from polytrain import TensorTrainClassifier, TensorTrainRegressor, config_context
from power_models import power_classifier, power_regressor

LARGEST = np.finfo(np.float64).max
QUICK = {"rank": 2, "max_sweeps": 2, "random_state": 0}
REGRESSORS = pytest.mark.parametrize(
    "model",
    [
        pytest.param(power_regressor(**QUICK), id="power"),
        pytest.param(TensorTrainRegressor(random_state=0), id="default", marks=pytest.mark.slow),
    ],
)
CLASSIFIERS = pytest.mark.parametrize(
    "model",
    [
        pytest.param(power_classifier(**QUICK), id="power"),
        pytest.param(TensorTrainClassifier(random_state=0), id="default", marks=pytest.mark.slow),
    ],
)


@pytest.fixture(autouse=True)
def _little_memory():
    with config_context(max_memory="10 kB"):
        yield


class Blocks:
    """Arrays as a source of rows."""

    def __init__(self, *arrays):
        self._arrays = arrays

    def __iter__(self):
        for start in range(0, len(self._arrays[0]), 70):
            yield tuple(array[start : start + 70] for array in self._arrays)


def _rows(n_rows=200, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n_rows, 3))
    return X, X[:, 0] * X[:, 1] + 0.5


def check_fits(model, *arrays):
    """Fit arrays, and the same as a source; all that comes out must be finite and alike."""
    model.fit(*arrays)
    expected = check_numbers(model, arrays[0])
    model.fit(Blocks(*arrays))
    size = np.abs(expected).max()
    np.testing.assert_allclose(check_numbers(model, arrays[0]) / size, expected / size, atol=1e-6)
    return expected


def check_numbers(model, X):
    predicted = model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)
    history = [record[key] for record in model.history_ for key in ("loss", "objective", "decrease")]
    for found in (predicted, history, *(core for train in model.trains_ for core in train.cores)):
        assert np.isfinite(found).all()
    return predicted


def check_refused(model, message, *arrays):
    """Arrays and the same as a source are refused with the same words."""
    for rows in (arrays, (Blocks(*arrays),)):
        with pytest.raises(ValueError, match=message):
            model.fit(*rows)


@REGRESSORS
@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e100, 6e139])
def test_targets_of_any_size_that_can_be_squared(model, size):
    X, y = _rows()
    np.testing.assert_allclose(check_fits(model, X, y * size) / size, y, atol=0.1)


@REGRESSORS
@pytest.mark.parametrize("size", [1e141, 1e155, 1e200, 1e308])
def test_targets_whose_squares_overflow_arecheck_refused(model, size):
    X, y = _rows()
    check_refused(model, r"between -1e\+140 and 1e\+140, got -?[0-9.]+e\+.*divide the target", X, y * size)
    check_refused(model, r"divide the target", X, np.stack([y, y * size], axis=1))


@REGRESSORS
def test_the_largest_float_is_named(model):
    X, y = _rows()
    y[150] = -LARGEST
    check_refused(model, r"got -1\.797\d+e\+308\. .*divide the target", X, y)


@REGRESSORS
@pytest.mark.parametrize(
    "y",
    [
        np.round(_rows()[1] * 2**60).astype(np.int64),
        (2**63 + np.round(_rows()[1] * 2**50)).astype(np.uint64),
        np.array([10**30 * int(1000 * value) for value in _rows()[1]], dtype=object),
        1e120 + 1e110 * _rows()[1],
        (2e38 * _rows()[1]).astype(np.float32),
    ],
    ids=["int64", "uint64", "integers without end", "offset", "float32"],
)
def test_targets_of_any_type(model, y):
    X, _ = _rows()
    numbers = y.astype(np.float64)
    spread = np.ptp(numbers)
    np.testing.assert_allclose((check_fits(model, X, y) - numbers) / spread, 0, atol=0.1)


@pytest.mark.parametrize("weight", [1e-320, 1e-300, 1e300, LARGEST])
@REGRESSORS
def test_weights_that_are_all_the_same_change_nothing(model, weight):
    X, y = _rows()
    plain = model.fit(X, y).predict(X)
    np.testing.assert_allclose(check_fits(model, X, y, np.full(200, weight)), plain, atol=1e-6)


@CLASSIFIERS
@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")  # one row is nearly all of the weight
@pytest.mark.parametrize("heavy", [1, 100])
def test_weights_that_differ_by_almost_all_that_floats_hold(model, heavy):
    X, y = _rows()
    check_fits(model, X, (y > 0.5).astype(int), np.where(np.arange(200) < heavy, 1e290, 1e-10))


@pytest.mark.parametrize("make", [power_classifier, power_regressor, TensorTrainClassifier, TensorTrainRegressor])
@pytest.mark.parametrize(("least", "largest"), [(1e-320, 1.0), (1e-320, 1e300), (1e-10, 1e300)])
def test_weights_that_differ_by_more_arecheck_refused(make, least, largest):
    X, y = _rows()
    y = np.where(y > 0.5, 1, 0)
    weights = np.where(np.arange(200) < 100, largest, least)
    message = r"sample_weight has positive weights from .* to .*Leave out the rows with negligible weights"
    check_refused(make(**QUICK), message, X, y, weights)


@pytest.mark.parametrize("make", [power_classifier, TensorTrainClassifier])
def test_class_weights_that_differ_by_more_arecheck_refused(make):
    X, y = _rows()
    labels = np.where(y > 0.5, 1, 0)
    check_refused(make(class_weight={0: 1e-320}), "class_weight has positive weights from .* to 1;", X, labels)
    weights = np.where(labels, 1.0, 1e-200)
    check_refused(make(class_weight={0: 1e-200}), "class_weight times sample_weight has positive", X, labels, weights)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: np.where(x > 0, LARGEST, -LARGEST),
        lambda x: np.full_like(x, LARGEST),
        lambda x: x * 1e308,
        lambda x: x * 1e-310,
        lambda x: np.where(x > 0, 5e-324, 0.0),
        lambda x: 1e300 + x * 1e290,
        lambda x: 2.0**53 + np.round(1000 * x),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_features_of_any_size(change, dtype):
    X, y = _rows()
    X[:, 2] = change(X[:, 2]) if dtype == np.float64 else np.clip(change(X[:, 2]), -3.4e38, 3.4e38)
    X = X.astype(dtype)
    for model in (power_regressor(**QUICK), TensorTrainRegressor(random_state=0)):
        check_fits(model, X, y)
    for model in (power_classifier(**QUICK), TensorTrainClassifier(random_state=0)):
        check_numbers(model.fit(X, y > 0.5), X)
