"""Bad input: an error that names the thing, its value and the remedy, or it simply works."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from power_models import power_classifier, power_regressor

QUICK = {"rank": 2, "max_sweeps": 2, "random_state": 0}
POWER_MODELS = [
    power_classifier(**QUICK),
    power_classifier(loss="squared", **QUICK),
    power_regressor(**QUICK),
]
POWER_NAMES = ["logistic", "squared", "regressor"]
MODELS = pytest.mark.parametrize(
    "model",
    [*POWER_MODELS, TensorTrainClassifier(random_state=0), TensorTrainRegressor(random_state=0)],
    ids=[*POWER_NAMES, "default classifier", "default regressor"],
)
CLASSIFIERS = pytest.mark.parametrize("make", [power_classifier, TensorTrainClassifier])
PLAIN_MODELS = pytest.mark.parametrize("kind", [TensorTrainClassifier, TensorTrainRegressor])


def _data(n_rows=40, n_features=3, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    return X, np.where(X[:, 0] + 0.5 * X[:, 1] * X[:, 0] > 0, 1, 0)


def _outputs(model, X):
    yield model.predict(X)
    for method in ("decision_function", "predict_proba"):
        if hasattr(model, method):
            yield getattr(model, method)(X)


def _all_finite(model, X):
    return all(np.isfinite(output).all() for output in _outputs(model, X)) and all(
        np.isfinite(core).all() for train in model.trains_ for core in train.cores
    )


# ---------------------------------------------------------------------------------------------------- errors


@MODELS
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_in_x(model, value):
    X, y = _data()
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match="infinity"):
        model.fit(bad, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="infinity"):
        model.predict(bad)


@pytest.mark.parametrize("model", POWER_MODELS, ids=POWER_NAMES)
def test_powers_cannot_take_nan(model):
    X, y = _data()
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN in feature 1, which the basis 'power' cannot take.*impute"):
        model.fit(bad, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(bad)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_in_a_regression_target(value):
    X, y = _data()
    y = y.astype(float)
    y[2] = value
    with pytest.raises(ValueError, match=r"y contains (NaN|infinity)"):
        TensorTrainRegressor().fit(X, y)


@MODELS
def test_wrong_shapes(model):
    X, y = _data()
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.fit(X[:, 0], y)
    with pytest.raises(ValueError, match="dim 3"):
        model.fit(X[None], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    if hasattr(model, "decision"):
        with pytest.raises(ValueError, match=r"1d array|multi"):
            model.fit(X, np.stack([y, y, 2 - y], axis=1))  # 0 and 1 alone would be three labels of a row
    else:
        with pytest.raises(ValueError, match=r"dim 3|2D"):
            model.fit(X, np.stack([y, y, 1 - y], axis=1)[None])
    with pytest.raises(ValueError, match="0 sample"):
        model.fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="0 feature"):
        model.fit(X[:, :0], y)
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        model.predict(X[:, :2])


def test_one_class():
    X, _ = _data()
    with pytest.raises(ValueError, match=r"only one class \(7\).*at least two classes"):
        TensorTrainClassifier().fit(X, np.full(len(X), 7))
    labels = np.where(np.arange(len(X)) < 5, "a", "b")
    with pytest.raises(ValueError, match=r"only one class .*positive weight"):
        TensorTrainClassifier().fit(X, labels, np.where(labels == "a", 0.0, 1.0))


def test_numbers_are_no_labels():
    X, _ = _data()
    with pytest.raises(ValueError, match="Unknown label type"):
        TensorTrainClassifier().fit(X, X[:, 0])


@MODELS
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(40), "sample_weight is zero for every row"),
        (np.r_[-1.0, np.ones(39)], "sample_weight must not be negative, got a smallest weight of -1.0"),
        (np.r_[np.nan, np.ones(39)], "sample_weight contains NaN or infinity"),
        (np.r_[np.inf, np.ones(39)], "sample_weight contains NaN or infinity"),
        (np.ones(39), r"sample_weight.shape == \(39,\), expected one number for each of the 40 rows"),
        (np.ones((40, 2)), r"sample_weight.shape == \(40, 2\), expected one number for each of the 40 rows"),
        (0.0, "sample_weight is zero for every row"),
    ],
)
def test_bad_weights(model, weights, message):
    X, y = _data()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_weight=weights)


@PLAIN_MODELS
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rank", [2], "rank has 1 entries, but X has 2 bonds between features; give one each"),
        ("rank", (2, 2, 2), "rank has 3 entries, but X has 2 bonds between features"),
        ("rank", [2, 0], r"rank\[1\] must be a positive integer, got 0"),
        ("rank", [2.0, 2], r"rank\[0\] must be a positive integer, got 2.0"),
        ("degree", [2, 2], "degree has 2 entries, but X has 3 features; give one each"),
        ("degree", np.array([2, 2, 2, 2]), "degree has 4 entries"),
        ("degree", [2, True, 1], r"degree\[1\] must be a positive integer, got True"),
        ("degree", [], "degree has 0 entries"),
    ],
)
def test_bad_sequences(kind, name, value, message):
    X, y = _data()
    with pytest.raises(ValueError, match=message):
        kind(**{name: value}).fit(X, y)


def test_bad_class_weights():
    X, y = _data()
    with pytest.raises(ValueError, match=r"class_weight names classes that y lacks: \[2\]; y has \[0, 1\]"):
        TensorTrainClassifier(class_weight={0: 1.0, 2: 1.0}).fit(X, y)
    for value in (-1.0, 0.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"class_weight\[0\] must be a number between 0 and inf"):
            TensorTrainClassifier(class_weight={0: value}).fit(X, y)


@pytest.mark.parametrize("make", [power_classifier, power_regressor])
@pytest.mark.parametrize("init", ["linear", "random"])
def test_huge_features_without_scaling_are_refused_with_the_remedy(make, init):
    X, y = _data()
    X[:, 1] *= 1e200
    with pytest.raises(ValueError, match=r"overflow.*basis='power'"):
        make(basis="power-unscaled", init=init, **QUICK).fit(X, y)


@PLAIN_MODELS
def test_huge_features_without_scaling_are_refused_while_something_is_chosen(kind):
    X, y = _data()
    X[:, 1] *= 1e200
    with pytest.raises(ValueError, match=r"overflow.*basis='power'"):
        kind(basis="power-unscaled").fit(X, y)


# ---------------------------------------------------------------------------------------------------- works


@PLAIN_MODELS
def test_missing_values_work_by_default(kind):
    X, y = _data(n_rows=200)
    gaps = X.copy()
    gaps[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = kind(random_state=0).fit(gaps, y)
    assert _all_finite(model, gaps)
    assert _all_finite(model, np.full((1, 3), np.nan))
    assert model.score(gaps, y) > 0.4
    assert _all_finite(kind(random_state=0).fit(X, y), gaps)  # missing where nothing was when it learned


@PLAIN_MODELS
def test_a_column_without_any_value_works_by_default(kind):
    X, y = _data()
    X[:, 1] = np.nan
    assert _all_finite(kind(random_state=0).fit(X, y), X)


@MODELS
def test_constant_columns_work_and_change_nothing(model):
    X, y = _data()
    wide = np.insert(X, 1, 5.0, axis=1)
    model.fit(wide, y)
    assert _all_finite(model, wide)
    shifted = wide.copy()
    shifted[:, 1] = -80.0
    np.testing.assert_array_equal(model.predict(shifted), model.predict(wide))


@MODELS
def test_all_columns_constant_works(model):
    _, y = _data()
    X = np.ones((len(y), 2))
    model.fit(X, y)
    assert _all_finite(model, X)
    assert len(np.unique(model.predict(X))) == 1


@MODELS
def test_more_features_than_rows_works(model):
    X, y = _data(n_rows=12, n_features=30)
    model.fit(X, y)
    assert _all_finite(model, X)
    if model.basis == "power":  # the defaults do not learn noise by heart
        assert model.score(X, y) > 0.9


@PLAIN_MODELS
@pytest.mark.parametrize("basis", [pytest.param("auto", marks=pytest.mark.slow), "power"])
def test_products_of_very_many_columns_that_overflow_are_not_chosen(kind, basis):
    X = np.where(np.random.default_rng(0).random((40, 1100)) > 0.5, 1.0, -1.0)
    assert _all_finite(kind(basis=basis, random_state=0).fit(X, X[:, 0]), X)


@MODELS
@pytest.mark.parametrize("solver", ["exact", "cg", "lbfgs"])
def test_no_regularisation_works(model, solver):
    X, y = _data(n_rows=30, n_features=4)
    model = type(model)(**{**model.get_params(), "alpha": 0.0, "solver": solver, "rank": 6})
    assert _all_finite(model.fit(X, y), X)


@MODELS
@pytest.mark.parametrize("size", [1e30, 1e-30, 1e300])
def test_a_column_of_any_size_works(model, size):
    X, y = _data()
    expected = model.fit(X, y).predict(X)
    moved = X * [size, 1.0, 1.0]
    np.testing.assert_allclose(model.fit(moved, y).predict(moved), expected, atol=1e-6)


@MODELS
def test_a_column_that_is_1e30_everywhere_works(model):
    X, y = _data()
    X[:, 2] = 1e30
    assert _all_finite(model.fit(X, y), X)


@MODELS
def test_a_column_of_plus_and_minus_1e308_works(model):
    X, y = _data()
    X[:, 2] = np.where(X[:, 2] > 0, 1e308, -1e308)
    assert _all_finite(model.fit(X, y), X)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@CLASSIFIERS
def test_predicting_the_largest_floats_of_both_signs_works(make):
    X, y = _data()
    model = make(random_state=0).fit(X, y)
    largest = np.finfo(float).max
    far = np.array([[largest] * 3, [-largest] * 3])
    ends = np.array([X.max(axis=0), X.min(axis=0)])
    np.testing.assert_array_equal(model.decision_function(far), model.decision_function(ends))


@CLASSIFIERS
def test_float32_columns_of_the_largest_size_work(make):
    X, y = _data()
    X = X.astype(np.float32)
    X[:, 1] = np.where(X[:, 1] > 0, 3e38, -3e38)
    assert _all_finite(make(random_state=0).fit(X, y), X)


@pytest.mark.parametrize("weights", [np.r_[1e-300, np.ones(39)], np.full(40, 1e308), np.full(40, 1e-308)])
def test_weights_of_any_size_work(weights):
    X, y = _data()
    for make in (power_classifier, power_regressor, TensorTrainClassifier, TensorTrainRegressor):
        model = make(random_state=0)
        assert _all_finite(model.fit(X, y, weights), X)


def test_two_rows_work():
    X, y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
    for model in (power_classifier(), power_classifier(loss="squared"), TensorTrainClassifier()):
        np.testing.assert_array_equal(model.fit(X, y).predict(X), y)


def test_separable_classes_without_regularisation_stay_finite():
    X = np.linspace(-1, 1, 20)[:, None]
    y = (X[:, 0] > 0).astype(int)
    model = power_classifier(alpha=0.0, degree=3, max_sweeps=20, tol=0.0).fit(X, y)
    assert _all_finite(model, X)
    assert model.score(X, y) == 1.0


@CLASSIFIERS
def test_integers_and_lists_work(make):
    X = [[0, 1, 5], [1, 0, 4], [2, 2, 3], [3, 1, 2], [4, 4, 1], [5, 0, 0]]
    y = ["a", "a", "a", "b", "b", "b"]
    assert make(random_state=0).fit(X, y).score(X, y) == 1.0


def test_predicting_before_fitting():
    X, _ = _data()
    for model in (TensorTrainClassifier(), TensorTrainRegressor()):
        with pytest.raises(NotFittedError):
            model.predict(X)


def test_tables_of_other_kinds_are_refused_with_the_remedy():
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    X, y = _data()
    frame = polars.DataFrame(X)
    model = power_classifier(**QUICK).fit(frame, y)
    tables = {
        "LazyFrame of polars. Pass X.collect": frame.lazy(),
        "Table of pyarrow. Pass X.to_pandas": frame.to_arrow(),
    }
    for remedy, table in tables.items():
        for call in (model.predict, lambda rows: power_classifier(**QUICK).fit(rows, y)):
            with pytest.raises(ValueError, match=remedy):
                call(table)


def test_one_dimension_is_named_where_columns_are_of_any_type():
    X, y = _data()
    model = TensorTrainClassifier(categorical_features=[0], rank=1, alpha=0.1, random_state=0)
    with pytest.raises(ValueError, match="Reshape your data"):
        model.fit(np.round(X), y).predict(X[0])
    with pytest.raises(ValueError, match="Complex data not supported: column 'x0' holds"):
        model.fit(X + 1j, y)


def test_missing_values_where_none_were_in_training_are_named():
    """Also where no column knows missing values: dates become numbers that polynomials are fitted to."""
    rows = np.arange(60.0)
    frame = pd.DataFrame({"day": pd.date_range("2020", "2023", periods=60), "x": rows % 7})
    model = TensorTrainRegressor(basis="power", rank=2, alpha=0.1, random_state=0).fit(frame, rows)
    frame.loc[3, "day"] = pd.NaT
    with pytest.raises(ValueError, match=r"X contains NaN in feature 'day \(time\)', which had none in training"):
        model.predict(frame)
    X, y = _data()
    model = TensorTrainRegressor(basis=["power", "spline", "power"], rank=2, alpha=0.1, random_state=0).fit(X, y)
    gaps = X.copy()
    gaps[0, 1] = np.nan
    assert np.isfinite(model.predict(gaps)).all()
    gaps[0, 2] = np.nan
    with pytest.raises(ValueError, match="X contains NaN in feature 2, which had none in training"):
        model.predict(gaps)
