"""Warnings of fits and predictions: one category, each message once, kept with the model."""

import warnings

import numpy as np
import pandas as pd
import pytest

import polytrain
from polytrain import DataWarning, TensorTrainClassifier, TensorTrainRegressor

QUICK = {"rank": 1, "alpha": 1e-3, "max_sweeps": 1, "random_state": 0}


def rows(n_rows=200):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, 3))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.1 * rng.normal(size=n_rows)


def gathered(call):
    with warnings.catch_warnings(record=True, action="always") as said:
        result = call()
    assert {one.category for one in said} <= {DataWarning}
    return result, [str(one.message) for one in said], {one.filename for one in said}


def test_warnings_are_kept_with_the_model(tmp_path):
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=2 * X[:, 0], e=1)
    model, said, files = gathered(lambda: TensorTrainRegressor(degree=5, **QUICK).fit(frame, y))
    assert [line.partition(":")[0] for line in said] == [
        "degree=5 has no effect with basis='auto'. Leave degree out, or pass another basis",
        "columns without two different values say nothing",
        "columns are nearly copies of each other (correlation of ranks)",
    ]
    assert files == {__file__}  # the line that called fit
    assert model.warnings_ == tuple(said)
    model.save(tmp_path / "model.polytrain")
    assert polytrain.load(tmp_path / "model.polytrain").warnings_ == tuple(said)
    assert polytrain.average([model, model]).warnings_ == tuple(said)
    assert TensorTrainRegressor(**QUICK).fit(X, y).warnings_ == ()


def test_they_can_be_silenced():
    X, y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = TensorTrainRegressor(degree=5, **QUICK).fit(X, y)
    assert len(model.warnings_) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"degree": [1, 2, 3]}, "degree=[1, 2, 3] has no effect with basis='auto'"),
        ({"bandwidth": 2.0, "basis": "power"}, "bandwidth=2.0 has no effect with basis='power'"),
        ({"relevance": [1, 0, 1], "basis": "power"}, "relevance=[1, 0, 1] has no effect with basis='power'"),
        ({"degree": 5, "basis": ["power", "auto", "auto"], "bandwidth": 2.0}, None),
        ({"bandwidth": None, "basis": "power"}, None),
        ({"degree": 2, "relevance": None}, None),
    ],
)
def test_parameters_without_effect(settings, message):
    X, y = rows()
    _, said, _ = gathered(lambda: TensorTrainRegressor(**QUICK, **settings).fit(X, y))
    assert [line.partition(". ")[0] for line in said] == [message] * (message is not None)


@pytest.mark.parametrize("outputs", [1, 2])
def test_guesses_of_numbers(outputs):
    X, y = rows()
    noise = np.random.default_rng(1).normal(size=(200, outputs)).squeeze()
    model = TensorTrainRegressor(random_state=0)
    with pytest.warns(DataWarning, match="no better than a guess: on rows left out its mean squared error in units of"):
        model.fit(X, noise)
    assert model.fit(X, np.column_stack([y, y + noise.T[0]])).warnings_ == ()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_guesses_of_labels(n_classes):
    X, y = rows()
    noise = np.random.default_rng(1).integers(n_classes, size=200)
    model = TensorTrainClassifier(random_state=0)
    with pytest.warns(DataWarning, match="no better than a guess: on rows left out its log loss is"):
        model.fit(X, noise)
    assert model.fit(X, np.digitize(y, [0.0, 0.5][: n_classes - 1])).warnings_ == ()


def test_rows_outside_of_the_training_range():
    X, y = rows()
    model = TensorTrainRegressor(**QUICK).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    new = pd.DataFrame(np.random.default_rng(1).uniform(-1.1, 1.1, (100, 3)), columns=["a", "b", "c"])
    assert gathered(lambda: model.predict(new))[1] == []  # a few rows, a little beyond
    assert gathered(lambda: model.predict(new.assign(b=np.where(new.index < 3, 50.0, new["b"]))))[1] == []
    far = new.assign(b=np.where(new.index < 20, 50.0, new["b"]))
    _, (message,), files = gathered(lambda: model.predict(far))
    assert "rows lie outside of the range of the training rows, most often in column 'b': " in message
    assert files == {__file__}
    later = new.assign(c=np.abs(new["c"]) + 0.6)
    _, (message,), _ = gathered(lambda: model.predict(later))
    assert "most often in column 'c'" in message
    assert gathered(lambda: model.predict(later[:10]))[1] == []
    _, (message,), _ = gathered(lambda: model.predict(far[:1]))
    assert message.startswith("1 of 1 rows lie outside")


def test_ranges_of_columns_that_do_not_matter_are_not_compared():
    X, y = rows()
    X[:, 2] = 5.0
    codes = np.column_stack([X, np.arange(200) % 3])
    model = TensorTrainRegressor(basis=["spline", "spline", "power", "category"], **QUICK).fit(codes, y)
    codes[:, 2:] = 100.0
    assert gathered(lambda: model.predict(codes))[1] == []
    singles = TensorTrainRegressor(**QUICK).fit(np.where(X > 0, 0.3, 0.1), y)
    assert gathered(lambda: singles.predict(np.where(X > 0, 0.3, 0.1).astype(np.float32)))[1] == []
