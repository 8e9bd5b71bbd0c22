"""Rows that say when to stop, and callbacks that do."""

import numpy as np
import pytest

import polytrain
from polytrain import TensorTrainClassifier, TensorTrainRegressor, config_context
from polytrain.learning.losses import get_loss
from polytrain.sources import open_rows
from power_models import power_classifier, power_regressor

# Many coefficients, few rows and hardly any regularisation: sweeps overfit.
LOOSE = {"rank": 4, "degree": 2, "alpha": 1e-3, "init": "random", "max_sweeps": 30, "tol": 0.0, "random_state": 0}


def _rows(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 4))
    return X, 3 * X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n_rows)


def test_sweeps_stop_where_the_validation_loss_is_least():
    X, y = _rows(100)
    X_val, y_val = _rows(seed=1)
    model = power_regressor(**LOOSE).fit(X, y, X_val=X_val, y_val=y_val)
    assert model.stop_reason_ == "validation"
    losses = [record["validation_loss"] for record in model.history_]
    assert len(losses) < 30
    assert min(losses) < losses[-1]
    assert np.mean(np.square(model.predict(X_val) - y_val)) == pytest.approx(min(losses), rel=1e-9)
    longer = power_regressor(**LOOSE).fit(X, y)
    assert np.mean(np.square(longer.predict(X_val) - y_val)) > 1.05 * min(losses)


@pytest.mark.parametrize("loss", ["auto", "logistic", "multinomial"])
def test_rows_are_held_out(loss):
    X, y = _rows()
    labels = np.digitize(y, [-0.5, 0.5])
    model = power_classifier(**{**LOOSE, "loss": loss}, early_stopping=0.3).fit(X, labels)
    assert {record["n_rows"] for record in model.history_} < set(range(150, 260))
    assert all("validation_loss" in record for record in model.history_)
    assert model.stop_reason_ in ("validation", "max_sweeps", "tolerance")


def test_held_out_rows_are_the_same_when_repeated():
    X, y = _rows()
    once = power_regressor(**LOOSE, early_stopping=True).fit(X, y)
    twice = power_regressor(**LOOSE, early_stopping=True).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    np.testing.assert_allclose(once.predict(X), twice.predict(X), atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile", "absolute"])
def test_all_losses_can_stop(loss):
    X, y = _rows()
    model = power_regressor(**LOOSE, loss=loss, early_stopping=0.3).fit(X, y)
    assert all(record["validation_loss"] >= 0 for record in model.history_)


def test_defaults_with_early_stopping():
    X, y = _rows(2000)
    model = TensorTrainRegressor(early_stopping=True, random_state=0).fit(X, y)
    assert model.plan_.max_sweeps == 20
    assert model.score(*_rows(2000, 1)) > 0.1
    classifier = TensorTrainClassifier(early_stopping=True, random_state=0).fit(X, y > 0)
    assert classifier.score(X, y > 0) > 0.6


def test_rows_elsewhere_stop_at_the_same_sweep(tmp_path):
    X, y = _rows(3000)
    for part in range(3):
        rows = slice(1000 * part, 1000 * part + 1000)
        np.save(tmp_path / f"X{part}.npy", X[rows])
        np.save(tmp_path / f"y{part}.npy", y[rows])
    settings = {**LOOSE, "max_sweeps": 8, "early_stopping": True}
    here = power_regressor(**settings).fit(X, y)
    with config_context(max_memory="1 MB"):
        there = power_regressor(**settings).fit(open_rows(tmp_path))
    for key in ("validation_loss", "objective"):
        np.testing.assert_allclose([r[key] for r in here.history_], [r[key] for r in there.history_], rtol=1e-6)
    np.testing.assert_allclose(here.predict(X), there.predict(X), atol=1e-6)


def test_histories_with_both_curves_are_stored(tmp_path):
    X, y = _rows()
    model = power_regressor(**LOOSE, early_stopping=True).fit(X, y)
    model.save(tmp_path / "model")
    assert polytrain.load(tmp_path / "model").history_ == model.history_


@pytest.mark.parametrize("fraction", [0.001, 0.1, 0.999])
@pytest.mark.parametrize("n_rows", [2, 3, 20])
def test_few_rows_leave_some_on_both_sides(n_rows, fraction):
    X, y = _rows(n_rows)
    model = power_regressor(early_stopping=fraction, random_state=0).fit(X, y)
    assert 0 < model.history_[0]["n_rows"] < n_rows
    assert np.isfinite(model.predict(X)).all()


def test_mistakes_are_named():
    X, y = _rows(50)
    for fraction in (0, 1, 1.0, -0.5, "x", None):
        with pytest.raises(ValueError, match="early_stopping must be True, False or a number between 0 and 1, got"):
            power_regressor(early_stopping=fraction).fit(X, y)
    with pytest.raises(ValueError, match=r"early_stopping needs different rows .*, got n_samples=2"):
        power_regressor(early_stopping=True).fit(X[[0, 0]], y[[0, 0]])
    with pytest.raises(ValueError, match="X_val needs its targets, y_val"):
        power_regressor().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="X_val has 3 features, but the first rows had 4"):
        power_regressor().fit(X, y, X_val=X[:, :3], y_val=y)
    with pytest.raises(ValueError, match=r"y_val has labels that are not known: \[7\]"):
        power_classifier().fit(X, (y > 0).astype(int), X_val=X, y_val=np.full(50, 7))
    for settings, validation in (({"early_stopping": True}, {}), ({}, {"X_val": X, "y_val": y})):
        with (
            config_context(checkpoint="there"),
            pytest.raises(ValueError, match=r"checkpoint='there' stores the states .* with early_stopping, X_val"),
        ):
            power_regressor(**settings, random_state=0).fit(X, y, **validation)


class Recorder:
    """A callback that listens, and stops after so many sweeps."""

    def __init__(self, most=1000):
        self.most, self.names, self.scores, self.open = most, [], [], 0

    def setup(self, estimator, context):
        self.open += 1

    def on_fit_task_begin(self, estimator, context):
        self.names.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, metadata=None):
        if context.task_name == "sweep":
            self.scores.append((metadata["record"]["loss"], fitted_estimator))
            return len(self.scores) >= self.most
        return False

    def teardown(self, estimator, context):
        self.open -= 1


@pytest.fixture(name="callbacks")
def has_callbacks():
    return pytest.importorskip("sklearn.callback")


def test_callbacks_hear_every_sweep_and_can_stop(callbacks):
    X, y = _rows()
    heard = Recorder()
    model = power_regressor(**LOOSE).set_callbacks(heard).fit(X, y)
    assert heard.names == ["fit", "train 0", *["sweep"] * model.n_iter_]
    assert heard.open == 0
    loss, fitted = heard.scores[3]
    assert np.mean(np.square(fitted.predict(X) - y)) == pytest.approx(loss, rel=1e-9)
    assert loss == model.history_[3]["loss"]
    stopped = power_regressor(**LOOSE).set_callbacks(Recorder(3)).fit(X, y)
    assert stopped.n_iter_ == 3
    assert stopped.stop_reason_ == "stopped"
    assert stopped.history_[-1]["objective"] == model.history_[2]["objective"]


def test_callbacks_stop_what_is_learned_in_rounds(callbacks):
    X, y = _rows()
    heard = Recorder(2)
    settings = {**LOOSE, "max_sweeps": 8, "loss": "multinomial"}
    joint = power_classifier(**settings).set_callbacks(heard).fit(X, np.digitize(y, [-0.5, 0.5]))
    assert joint.stop_reason_ == "stopped"
    assert len(heard.scores) == 2
    heard = Recorder(1)
    robust = power_regressor(**LOOSE, loss="quantile").set_callbacks(heard).fit(X, y)
    assert robust.stop_reason_ == "stopped"
    assert len(heard.scores) == robust.n_iter_ == 1


def test_callbacks_of_several_trains(callbacks):
    X, y = _rows()
    heard = Recorder()
    model = power_classifier(**{**LOOSE, "max_sweeps": 2}).set_callbacks(heard).fit(X, np.digitize(y, [-0.5, 0.5]))
    assert heard.names == ["fit", *[name for k in range(3) for name in (f"train {k}", "sweep", "sweep")]]
    assert model.n_iter_ == 2


def test_scikit_learns_progress_bar_works(callbacks):
    pytest.importorskip("rich")
    X, y = _rows(60)
    model = power_regressor(rank=2).set_callbacks(callbacks.ProgressBar()).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), power_regressor(rank=2).fit(X, y).predict(X))


def test_validation_losses_are_those_of_the_loss():
    X, y = _rows()
    labels = y > 0
    model = power_classifier(**{**LOOSE, "max_sweeps": 1}).fit(X, labels, X_val=X, y_val=labels)
    scores = model.decision_function(X)
    expected = get_loss("logistic").evaluate(np.where(labels, 1.0, -1.0), scores)[0].mean()
    assert model.history_[0]["validation_loss"] == pytest.approx(expected, rel=1e-9)
