"""Standard deviations and intervals of regressors."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import polytrain
from polytrain import TensorTrainRegressor, config_context
from polytrain.rows import Rows
from power_models import power_regressor


def _rows(n_rows, seed=0, n_outputs=0):
    """Noise of size 0.3 around a function of three columns."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.3 * rng.normal(size=n_rows)
    if n_outputs:
        y = np.stack([y, *(10.0**k * (X[:, 0] + rng.normal(size=n_rows)) for k in range(1, n_outputs))], axis=1)
    return X, y


def _fit(X, y, sample_weight=None, **parameters):
    return TensorTrainRegressor(**{"random_state": 0, **parameters}).fit(X, y, sample_weight)


def _coverage(intervals, y):
    return ((intervals[..., 0] <= y) & (y <= intervals[..., 1])).mean(axis=0)


@pytest.fixture(scope="module")
def model():
    return _fit(*_rows(300))


@pytest.mark.parametrize("n_rows", [300, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fraction", [None, 0.3])
def test_intervals_hold_what_they_should(n_rows, fraction):
    model = _fit(*_rows(n_rows), calibration_fraction=fraction)
    X, y = _rows(4000, seed=1)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(X))
    assert std.shape == y.shape
    assert 0.3 < np.median(std) < 0.4
    assert 0.85 < np.mean(np.abs(y - mean) < 1.645 * std) < 0.95
    found = model.predict_interval(X)
    assert found.shape == (4000, 2)
    np.testing.assert_allclose(found.mean(axis=1), mean)
    assert 0.83 < _coverage(found, y) < 0.97
    wider = model.predict_interval(X, coverage=0.95)
    assert (wider[:, 1] - wider[:, 0] >= found[:, 1] - found[:, 0]).all()
    assert model.model_.uncertainty.guaranteed == (fraction is not None)


def _growing(n_rows, seed=0):
    """Positive targets whose noise grows with their mean and, twofold, with a column that does not move it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n_rows, 3))
    mean = np.exp(2 * X[:, 0] + X[:, 1])
    return X, mean * np.exp(0.2 * (1 + X[:, 2]) * rng.normal(size=n_rows))


def _fifths(model, n_rows=10_000):
    """Coverage of 90 % intervals by fifths of the prediction, and of the column that is only about the noise."""
    X, y = _growing(n_rows, seed=1)
    inside = np.diff(np.sign(model.predict_interval(X) - y[:, None]))[:, 0] > 0
    orders = np.argsort(model.predict(X)), np.argsort(X[:, 2])
    return [[inside[rows].mean() for rows in np.array_split(order, 5)] for order in orders]


@pytest.mark.parametrize("n_rows", [600, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fraction", [None, 0.3])
def test_intervals_follow_the_row(n_rows, fraction, monkeypatch):
    settings = {"basis": "smooth", "calibration_fraction": fraction}
    models = [_fit(*_growing(n_rows, seed), **settings) for seed in (0, 2, 3, 4)]
    assert all(model.model_.uncertainty.trains[0].scale is not None for model in models)
    # The coverage of a single fit varies by some points.
    assert np.abs(np.mean([_fifths(model) for model in models], axis=0) - 0.9).max() < 0.05
    model = models[0]
    X, y = _growing(4000, seed=1)
    errors, std = np.abs(y - model.predict(X)), model.predict(X, return_std=True)[1]
    ratios = [np.sqrt(np.mean(errors[t] ** 2) / np.mean(std[t] ** 2)) for t in np.array_split(np.argsort(std), 3)]
    np.testing.assert_allclose(ratios, 1.0, atol=0.3)
    monkeypatch.setattr("polytrain.estimators._uncertainty.fit_scale", lambda e, *_: (None, np.zeros(len(e))))
    plain = _fit(*_growing(n_rows), **settings)
    assert np.abs(np.array(_fifths(plain)[0]) - 0.9).max() > 0.09
    widths = [float(np.diff(one.predict_interval(X)).mean()) for one in (model, plain)]
    assert widths[0] < 1.05 * widths[1]


def test_rows_that_are_set_apart_have_no_part_in_the_scale():
    """Other targets of the rows that calibrate change all widths by the same factor."""
    X, y = _growing(800)
    settings = {"calibration_fraction": 0.3, "basis": "smooth", "bandwidth": 1.0}
    models = [_fit(X, y, **settings)]
    original = Rows.set_apart

    def set_apart(rows, fraction):
        learned, apart = original(rows, fraction)
        check = apart.check

        def other_targets(raw):
            X, y, weights = check(raw)
            return X, y + 3 * X[:, 2], weights

        return learned, Rows(apart.map_raw, other_targets, False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rows, "set_apart", set_apart)
        models.append(_fit(X, y, **settings))
    widths = [np.diff(model.predict_interval(X))[:, 0] for model in models]
    np.testing.assert_allclose(widths[1] / widths[0], widths[1][0] / widths[0][0])
    assert widths[1][0] > 1.2 * widths[0][0]
    assert models[0].model_.uncertainty.trains[0].scale is not None


def test_errors_of_the_same_size_keep_a_constant_scale(model):
    for one in (model, _fit(*_growing(150))):  # few rows know too little
        assert one.model_.uncertainty.trains[0].scale is None


def test_intervals_end_at_bounds():
    X, y = _growing(600)
    model = _fit(X, y - y.min(), basis="smooth")
    free = model.predict_interval(X)
    assert free.min() < 0
    np.testing.assert_array_equal(model.predict_interval(X, bounds=(0, None)), np.maximum(free, 0))
    np.testing.assert_array_equal(model.predict_interval(X, 0.9, (None, 5)), np.minimum(free, 5))
    np.testing.assert_array_equal(model.predict_interval(X, bounds=None), free)
    for bounds in (0, (1, 0), (0,), ("a", None), (np.nan, 1), True):
        with pytest.raises(ValueError, match=r"bounds must be None or a pair of numbers \(low, high\) .*, got"):
            model.predict_interval(X, bounds=bounds)


def test_it_is_less_sure_where_there_were_no_rows():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 0.4, 80), rng.uniform(0.8, 1, 40)])
    y = np.sin(6 * x) + 0.05 * rng.normal(size=120)
    model = _fit(x[:, None], y, basis="legendre", degree=8)
    std = model.predict([[0.2], [0.6], [0.9]], return_std=True)[1]
    assert std[1] > 1.5 * max(std[0], std[2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_rows", "settings"), [(40, {"bandwidth": 1.0, "alpha": 1e-3, "rank": 1}), (320, {"bandwidth": 1.0, "rank": 1})]
)
def test_split_intervals_have_their_guarantee(n_rows, settings):
    """Over many small tables, the probability is between coverage and coverage + 1 / (n + 1), also with a scale."""
    rng = np.random.default_rng(0)
    held, least, most, scaled, coverage = [], [], [], [], 0.8
    for _ in range(300 if n_rows < 100 else 100):
        x = rng.uniform(-1, 1, (n_rows + 20, 1))
        y = x[:, 0] ** 2 + (0.1 + 0.5 * (x[:, 0] > 0)) * rng.standard_t(3, n_rows + 20)
        model = _fit(x[:n_rows], y[:n_rows], basis="smooth", calibration_fraction=0.3, **settings)
        own = model.model_.uncertainty.trains[0]
        n_apart = own.left_out.n_rows
        scaled.append(own.scale is not None)
        held.append(_coverage(model.predict_interval(x[n_rows:], coverage), y[n_rows:]))
        least.append(coverage)
        most.append(coverage + 1 / (n_apart + 1))
    error = np.std(held) / np.sqrt(len(held))
    assert np.mean(least) - 3 * error < np.mean(held) < np.mean(most) + 3 * error
    assert error < 0.012
    assert np.mean(scaled) == 0.0 if n_rows < 100 else np.mean(scaled) > 0.9


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_rows_that_are_set_apart_have_no_part_in_the_fit():
    X, y = _rows(200)
    settings = {"calibration_fraction": 0.25, "basis": "smooth", "bandwidth": 1.0}
    model = _fit(X, y, **settings)
    n_apart = model.model_.uncertainty.trains[0].left_out.n_rows
    assert 30 < n_apart < 70
    # An extreme row, which would change everything; what it holds decides on which side it is.
    X_more = np.vstack([X, [[1e3, 0.0, 0.0]]])
    for target in np.linspace(1e6, 2e6, 50):
        more = _fit(X_more, np.append(y, target), **settings)
        if more.model_.uncertainty.trains[0].left_out.n_rows == n_apart + 1:
            break
    np.testing.assert_array_equal(more.predict(X), model.predict(X))
    assert more.maps_[0].range == model.maps_[0].range


def _assert_alike(one, other, X, tolerance=1e-6):
    for name in ("deviations", "predict"):
        np.testing.assert_allclose(
            getattr(one.model_, name)(X), getattr(other.model_, name)(X), rtol=tolerance, atol=tolerance
        )
    np.testing.assert_allclose(
        one.predict_interval(X, 0.8), other.predict_interval(X, 0.8), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("n_rows", [150, pytest.param(1600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fraction", [None, 0.3])
def test_repeated_rows_are_weighted_rows_in_any_order(n_rows, fraction):
    X, y = _rows(n_rows)
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, n_rows)
    order = rng.permutation(np.repeat(np.arange(n_rows), counts))
    settings = {"calibration_fraction": fraction, "basis": "smooth"}
    weighted = _fit(X, y, counts, **settings)
    _assert_alike(_fit(X[order], y[order], **settings), weighted, X, 1e-4)
    kept = counts > 0
    _assert_alike(_fit(X[kept], y[kept], 1e-3 * counts[kept], **settings), weighted, X, 1e-4)


def test_rows_that_share_features_have_noise():
    """A row that is left out takes all rows like it with it, and each has an error of its own."""
    X = np.repeat(_rows(40)[0].round(1), 10, axis=0)
    y = X[:, 0] + np.random.default_rng(0).normal(size=400)
    std = _fit(X, y).predict(X, return_std=True)[1]
    assert 0.9 < np.median(std) < 1.2


@pytest.mark.parametrize("fraction", [None, 0.3])
def test_every_output_has_its_own(fraction):
    model = _fit(*_rows(400, n_outputs=2), calibration_fraction=fraction)
    X, y = _rows(2000, seed=1, n_outputs=2)
    mean, std = model.predict(X, return_std=True)
    assert std.shape == mean.shape == (2000, 2)
    assert 0.25 < np.median(std[:, 0]) < 0.5
    assert 8 < np.median(std[:, 1]) < 13
    found = model.predict_interval(X)
    assert found.shape == (2000, 2, 2)
    assert (np.abs(_coverage(found, y) - 0.9) < 0.08).all()
    column = _fit(*_rows(200, n_outputs=1)).predict_interval(X)
    assert column.shape == (2000, 1, 2)


def test_a_constant_target_is_certain():
    X, _ = _rows(50)
    model = _fit(X, np.full(50, 3.0))
    assert model.predict(X, return_std=True)[1].max() == 0
    np.testing.assert_array_equal(model.predict_interval(X), np.full((50, 2), 3.0))


@pytest.mark.parametrize("size", [1e-100, 1e9, 1e139])
def test_it_has_the_unit_of_the_target(model, size):
    X, y = _rows(300)
    std = _fit(X, size * y).predict(X, return_std=True)[1]
    np.testing.assert_allclose(std / size, model.predict(X, return_std=True)[1], rtol=1e-5)


def test_float32_rows(model):
    X, y = _rows(300)
    single = _fit(X.astype(np.float32), y)
    std = single.predict(X.astype(np.float32), return_std=True)[1]
    np.testing.assert_allclose(std, model.predict(X, return_std=True)[1], rtol=0.05)


def test_columns_of_any_type():
    rng = np.random.default_rng(0)
    X, y = _rows(240)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["town"] = pd.Categorical(rng.choice(["Bern", "Graz"], 240))
    frame.loc[::7, "a"] = np.nan
    y = y + (frame["town"] == "Bern")
    model = _fit(frame, y, calibration_fraction=0.2)
    assert np.isfinite(model.predict(frame, return_std=True)[1]).all()
    assert 0.8 < _coverage(model.predict_interval(frame), y) <= 1


def test_a_source_of_rows():
    X, y = _rows(240)
    blocks = [(X[rows], y[rows]) for rows in (slice(0, 100), slice(100, 240))]
    settings = {"basis": "smooth", "calibration_fraction": 0.2}
    with config_context(max_memory="1 MB"):
        _assert_alike(_fit(blocks_of(blocks), None, **settings), _fit(X, y, **settings), X)
        _assert_alike(_fit(blocks_of(blocks), None, basis="smooth"), _fit(X, y, basis="smooth"), X)


def blocks_of(blocks):
    """A source of rows."""

    class Blocks:
        def __iter__(self):
            return iter(blocks)

    return Blocks()


def test_dask_collections():
    da = pytest.importorskip("dask.array")
    X, y = _rows(150)
    model = _fit(X, y)
    lazy = da.from_array(X, chunks=(60, 3))
    std = model.predict(lazy, return_std=True)[1]
    np.testing.assert_allclose(std.compute(), model.predict(X, return_std=True)[1])
    assert model.predict_interval(lazy).shape == (150, 2)
    np.testing.assert_allclose(model.predict_interval(lazy, 0.8).compute(), model.predict_interval(X, 0.8))


def test_a_warm_start_keeps_the_errors_of_the_fit_before():
    X, y = _rows(200)
    model = TensorTrainRegressor(random_state=0, warm_start=True).fit(X, y)
    before = model.predict(X, return_std=True)[1]
    model.fit(X, 2 * y)
    after = model.predict(X, return_std=True)[1]
    assert np.median(after) == pytest.approx(np.median(before), rel=0.1)
    # Rows that are set apart are so again, and say how it is now.
    model.set_params(calibration_fraction=0.3).fit(X, 2 * y)
    assert np.median(model.predict(X, return_std=True)[1]) == pytest.approx(2 * np.median(before), rel=0.3)
    assert model.model_.uncertainty.guaranteed


def test_given_settings_leave_no_rows_out():
    X, y = _rows(100)
    model = power_regressor(random_state=0).fit(X, y)
    for ask in (lambda: model.predict(X, return_std=True), lambda: model.predict_interval(X)):
        with pytest.raises(
            ValueError, match=r"the uncertainty of this model is not known: .* calibration_fraction=0.2"
        ):
            ask()
    model.set_params(calibration_fraction=0.3).fit(X, y)
    assert model.predict_interval(X).shape == (100, 2)


def test_files_and_pickles_keep_it(tmp_path):
    X, y = _growing(600)
    y = np.stack([y, X[:, 0] + np.random.default_rng(2).normal(size=600)], axis=1)
    model = _fit(X, y, calibration_fraction=0.3, basis="smooth")
    assert [own.scale is None for own in model.model_.uncertainty.trains] == [False, True]
    model.save(tmp_path / "model")
    for same in (polytrain.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(same.predict_interval(X), model.predict_interval(X), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            same.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1], rtol=1e-5, atol=1e-5
        )
        assert same.model_.uncertainty.guaranteed
        assert same.calibration_fraction == 0.3


def test_other_trains_know_nothing(model):
    assert model.model_.with_trains(model.model_.cores).uncertainty is None


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 90, "0.9", True, np.nan])
def test_coverage_is_a_probability(model, coverage):
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1, got"):
        model.predict_interval(np.zeros((1, 3)), coverage)


def test_too_few_rows_for_a_coverage(model):
    with pytest.raises(ValueError, match=r"coverage=0.999 needs at least 999 different rows .* and there are 300"):
        model.predict_interval(np.zeros((1, 3)), 0.999)


@pytest.mark.parametrize("fraction", [0, 1, "some", -1])
def test_a_fraction_is_between_none_and_all(fraction):
    with pytest.raises(ValueError, match="calibration_fraction must be None or a number between 0 and 1, got"):
        _fit(*_rows(20), calibration_fraction=fraction)


@pytest.mark.parametrize(("fraction", "use"), [(1e-9, "for calibration"), (1 - 1e-9, "to learn from")])
def test_a_fraction_must_leave_rows(fraction, use):
    with pytest.raises(ValueError, match=f"calibration_fraction={fraction} leaves no row {use}, of 20"):
        _fit(*_rows(20), calibration_fraction=fraction)


def test_a_loss_without_noise_refuses(model, monkeypatch):
    monkeypatch.setattr("polytrain.learning.losses.SquaredLoss.has_noise", False)
    with pytest.raises(ValueError, match="loss='squared' gives no standard deviations or intervals"):
        model.predict(np.zeros((1, 3)), return_std=True)
    fitted = _fit(*_rows(30))
    assert fitted.model_.uncertainty is None


def test_nobody_is_asked_before_a_fit():
    with pytest.raises(NotFittedError):
        TensorTrainRegressor().predict_interval(np.zeros((1, 3)))
