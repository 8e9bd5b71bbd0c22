"""Losses of the estimators on rows drawn from the matching distributions, with exposures, and through files."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn import config_context
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

import polytrain
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.learning.losses import get_loss, loss_names
from power_models import power_classifier, power_regressor

REGRESSIONS = loss_names("regression")
QUICK = {"rank": 3, "max_sweeps": 4, "tol": 0.0, "random_state": 0}


def _counts(interaction, n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X, exposure = rng.uniform(-1, 1, (n_rows, 4)), np.exp(rng.normal(size=n_rows))
    mean = np.exp(0.5 + 0.8 * X[:, 0] - 0.5 * X[:, 1] + interaction * X[:, 2] * X[:, 3])
    return X, rng.poisson(exposure * mean), exposure


def _numbers(loss, n_rows=150, seed=0):
    """Rows that any loss takes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 3))
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.1 * rng.normal(size=n_rows)
    return X, np.exp(y) if get_loss(loss).link == "log" else y


@pytest.mark.slow
@pytest.mark.parametrize("interaction", [0.0, 1.2])
def test_counts_with_exposure_are_at_least_as_well_predicted_as_by_a_linear_model(interaction):
    X, y, exposure = _counts(interaction, 6000)
    new = slice(1500, None)
    model = TensorTrainRegressor(loss="poisson", random_state=0)
    model.fit(X[:1500], y[:1500], offset=np.log(exposure[:1500]))
    linear = PoissonRegressor(alpha=1e-4).fit(X[:1500], (y / exposure)[:1500], sample_weight=exposure[:1500])
    ours = mean_poisson_deviance(y[new], model.predict(X[new], offset=np.log(exposure[new])))
    theirs = mean_poisson_deviance(y[new], linear.predict(X[new]) * exposure[new])
    assert ours < (0.75 if interaction else 1.005) * theirs


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantiles_cover_what_they_say(level):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (13_000, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + (0.3 + 0.3 * np.abs(X[:, 2])) * rng.normal(size=13_000)
    model = TensorTrainRegressor(loss="quantile", quantile=level, random_state=0).fit(X[:8000], y[:8000])
    assert np.mean(y[8000:] <= model.predict(X[8000:])) == pytest.approx(level, abs=0.02)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")  # outliers are most of the squared error
@pytest.mark.parametrize("loss", ["absolute", "huber"])
def test_outliers_do_not_matter(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 3))
    truth = X[:, 0] * X[:, 1] - X[:, 2]
    y = truth + 0.1 * rng.normal(size=600)
    y[:60] += 1000 * rng.standard_cauchy(60)
    errors = [np.abs(TensorTrainRegressor(loss=name, random_state=0).fit(X, y).predict(X) - truth).mean()
              for name in ("squared", loss)]  # fmt: skip
    assert errors[1] < 0.12 < errors[0]


def test_gamma_deviance_is_that_of_the_truth():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    mean = np.exp(2 * X[:, 0] * X[:, 1] + X[:, 2])
    y = mean * rng.gamma(3.0, 1 / 3, 3000)
    model = TensorTrainRegressor(loss="gamma", random_state=0).fit(X[:1000], y[:1000])
    found, best = (mean_gamma_deviance(y[1000:], p[1000:]) for p in (model.predict(X), mean))
    assert found < 1.1 * best
    assert model.score(X[1000:], y[1000:]) == pytest.approx(
        1 - found / mean_gamma_deviance(y[1000:], np.full(2000, y[1000:].mean())), abs=1e-9
    )


@pytest.mark.parametrize("solver", ["exact", "cg", "lbfgs"])
@pytest.mark.parametrize("loss", REGRESSIONS)
def test_the_objective_never_rises(loss, solver):
    for seed in range(3):
        X, y = _numbers(loss, 40 + 60 * seed, seed)
        model = power_regressor(loss=loss, solver=solver, **QUICK).fit(X, y)
        assert all(record["decrease"] >= -1e-9 * abs(record["objective"]) for record in model.history_)


@pytest.mark.parametrize("loss", REGRESSIONS)
def test_the_history_is_in_units_of_the_target(loss):
    X, y = _numbers(loss)
    model = power_regressor(loss=loss, **QUICK).fit(X, 7 * y)
    fitted, kind = model.model_, get_loss(model.model_.loss)
    value, size, shift = fitted.values(X)[0], fitted.size[0], fitted.shift[0]
    if kind.degree:
        expected = size**kind.degree * kind.evaluate((7 * y - shift) / size, value)[0].mean()
    else:
        expected = kind.evaluate(7 * y, value + shift)[0].mean()
    assert model.history_[-1]["loss"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loss", ["absolute", "quantile", "huber"])
def test_units_of_the_target_do_not_matter(loss):
    X, y = _numbers(loss)
    one = power_regressor(loss=loss, quantile=0.3, **QUICK).fit(X, y)
    other = power_regressor(loss=loss, quantile=0.3, **QUICK).fit(X, 1e9 * y + 1e12)
    np.testing.assert_allclose(other.predict(X), 1e9 * one.predict(X) + 1e12, rtol=1e-5)


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_an_offset_is_an_exposure(loss):
    X, y, exposure = _counts(1.0, 200)
    y = y + 0.5
    with_offset = power_regressor(loss=loss, **QUICK).fit(X, y, offset=np.log(exposure))
    weights = exposure if loss == "poisson" else None
    with_rates = power_regressor(loss=loss, **QUICK).fit(X, y / exposure, sample_weight=weights)
    np.testing.assert_allclose(with_offset.predict(X), with_rates.predict(X), rtol=1e-9)
    np.testing.assert_allclose(with_offset.predict(X, offset=np.log(exposure)), exposure * with_offset.predict(X))
    # At the minimum, the deviance with offsets cannot be lowered by another constant.
    with_offset.set_params(alpha=1e-6, max_sweeps=20).fit(X, y, offset=np.log(exposure))
    scores = np.log(with_offset.predict(X, offset=np.log(exposure)))
    costs = [get_loss(loss).evaluate(y, scores + shift)[0].mean() for shift in (-0.02, 0.0, 0.02)]
    assert costs[1] < min(costs[0], costs[2])


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"), reason="pipelines route no metadata to scores before 1.8"
)
def test_offsets_are_routed_as_metadata():
    X, y, exposure = _counts(0.0, 200)
    with config_context(enable_metadata_routing=True):
        model = power_regressor(loss="poisson", **QUICK)
        model.set_fit_request(offset=True).set_predict_request(offset=True).set_score_request(offset=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y, offset=np.log(exposure))
        assert pipeline.predict(X, offset=np.log(exposure)).shape == (200,)
        found = cross_validate(pipeline, X, y, cv=3, params={"offset": np.log(exposure)})
        assert found["test_score"].mean() > 0.2


def test_offsets_that_make_no_sense_are_refused():
    X, y, exposure = _counts(0.0, 50)
    model = power_regressor(loss="poisson", **QUICK)
    with pytest.raises(ValueError, match=r"offset must be between -700 and 700, got 1000\.0\. It is the logarithm"):
        model.fit(X, y, offset=np.full(50, 1000.0))
    with pytest.raises(ValueError, match=r"offset\.shape == \(3,\), expected one number for each of the 50 rows"):
        model.fit(X, y, offset=np.zeros(3))
    with pytest.raises(ValueError, match="offset must be numbers"):
        model.fit(X, y, offset=["a"] * 50)
    with pytest.raises(ValueError, match=r"loss='squared' has none\. Leave offset out"):
        power_regressor(**QUICK).fit(X, y, offset=np.log(exposure))
    with pytest.raises(ValueError, match="loss='huber' has none"):
        power_regressor(loss="huber", **QUICK).fit(X, y).predict(X, offset=np.log(exposure))


@pytest.mark.parametrize(
    ("loss", "wrong", "message"),
    [
        ("poisson", -1.0, "targets that are not negative"),
        ("gamma", 0.0, "targets that are positive"),
        ("huber", 1e200, "between -1e"),
    ],
)
def test_targets_outside_of_the_domain_are_refused(loss, wrong, message):
    X, y = _numbers(loss)
    y[3] = wrong
    with pytest.raises(ValueError, match=message):
        TensorTrainRegressor(loss=loss).fit(X, y)


def test_parameters_of_losses_are_checked():
    X, y = _numbers("squared")
    for level in (0.0, 1.0, -1, "high", None, True):
        with pytest.raises(ValueError, match="quantile must be a number between 0 and 1"):
            TensorTrainRegressor(loss="quantile", quantile=level).fit(X, y)
    for epsilon in (0, -1.0, np.inf, "x"):
        with pytest.raises(ValueError, match="epsilon must be a number between 0 and"):
            TensorTrainRegressor(loss="huber", epsilon=epsilon).fit(X, y)
    with pytest.raises(ValueError, match="y is 0 in every row of positive weight"):
        power_regressor(loss="poisson", **QUICK).fit(X, np.zeros(len(X)))


@pytest.mark.parametrize("loss", REGRESSIONS)
def test_several_outputs_files_and_pickles(loss, tmp_path):
    X, y = _numbers(loss)
    two = np.stack([y, 2 * y], axis=1)
    model = power_regressor(loss=loss, **QUICK).fit(X, two)
    predicted = model.predict(X)
    assert predicted.shape == two.shape
    alone = [power_regressor(loss=loss, **QUICK).fit(X, column).predict(X) for column in two.T]
    np.testing.assert_allclose(predicted, np.stack(alone, axis=1), rtol=0.05, atol=0.1)
    model.save(tmp_path / "model")
    for same in (polytrain.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(same.predict(X), predicted, rtol=1e-5, atol=1e-5)
        assert same.model_.link == model.model_.link == get_loss(loss).link


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared_hinge", "multinomial"])
def test_classifiers_tell_classes_apart(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (900, 3))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.1, 0.1])
    model = TensorTrainClassifier(loss=loss, random_state=0).fit(X[:600], y[:600])
    assert model.score(X[600:], y[600:]) > 0.9
    assert hasattr(model, "predict_proba") == (loss == "multinomial")


def test_losses_of_one_task_are_refused_for_the_other():
    X, y = _numbers("squared")
    with pytest.raises(ValueError, match=r"loss must be one of .*'squared_hinge'"):
        power_classifier(loss="poisson").fit(X, y > 0)
    with pytest.raises(ValueError, match=r"loss must be one of .*'quantile'"):
        power_regressor(loss="logistic").fit(X, y)
