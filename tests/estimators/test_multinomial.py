"""loss='multinomial', and the calibration of several classes by a softmax."""

from copy import deepcopy

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import polytrain
from polytrain import TensorTrainClassifier, config_context
from polytrain.choice import many_rows
from polytrain.choice.calibration import fit_softmax
from polytrain.decisions import OneVsRest, Softmax, TwoClasses
from power_models import power_classifier

QUICK = {"loss": "multinomial", "rank": 3, "max_sweeps": 4, "random_state": 0}


def test_probabilities_are_a_softmax_of_the_scores():
    X, y = load_wine(return_X_y=True)
    model = power_classifier(**QUICK).fit(X, y)
    scores, chances = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(chances, np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.classes_[chances.argmax(axis=1)])
    assert isinstance(model.decision_, Softmax)
    assert model.model_.link == "softmax"


def test_the_log_loss_is_no_worse_than_that_of_the_linear_model():
    X, y = load_iris(return_X_y=True)
    model = power_classifier(**{**QUICK, "rank": 2, "max_sweeps": 20, "degree": 1, "tol": 0.0,
                                "alpha": 1e-6, "basis": "power-unscaled"}).fit(X / 10, y)  # fmt: skip
    linear = LogisticRegression(C=100, max_iter=10_000).fit(X / 10, y)
    # Products of features, and less regularisation: no worse than the linear model.
    assert log_loss(y, model.predict_proba(X / 10)) <= log_loss(y, linear.predict_proba(X / 10))


def test_two_classes_are_the_logistic_loss():
    X, y = load_iris(return_X_y=True)
    joint, plain = (power_classifier(**{**QUICK, "loss": loss}).fit(X, y == 1) for loss in ("multinomial", "logistic"))
    np.testing.assert_array_equal(joint.predict_proba(X), plain.predict_proba(X))
    assert isinstance(joint.decision_, TwoClasses)


def test_other_decisions_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"loss='multinomial' needs decision='one-vs-rest', got 'one-vs-one'"):
        power_classifier(**QUICK, decision="one-vs-one").fit(X, y)


def test_files_and_checkpoints(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = power_classifier(**QUICK).fit(X, y)
    model.save(tmp_path / "model")
    same = polytrain.load(tmp_path / "model")
    np.testing.assert_allclose(same.predict_proba(X), model.predict_proba(X), rtol=1e-5, atol=1e-5)
    assert isinstance(same.decision_, Softmax)
    for _ in range(2):  # the second fit finds all that the first has done
        with config_context(checkpoint=tmp_path / "kept"):
            kept = power_classifier(**QUICK).fit(X, y)
        np.testing.assert_array_equal(kept.predict_proba(X), model.predict_proba(X))


def test_weights_and_processes_do_not_matter():
    X, y = load_iris(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = power_classifier(**QUICK).fit(X, y, sample_weight=weights)
    repeated = power_classifier(**QUICK).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
    two = power_classifier(**QUICK, n_jobs=2).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(two.predict_proba(X), weighted.predict_proba(X), atol=1e-12)


def test_calibration_by_a_softmax_finds_the_factor_of_the_truth():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4000, 4))
    chances = np.exp(3 * scores + [0.5, 0.0, -0.5, 0.0])
    chances /= chances.sum(axis=1, keepdims=True)
    y = (rng.random((4000, 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
    factor, shift = fit_softmax(scores, np.eye(4)[y])
    np.testing.assert_allclose(factor, 3, rtol=0.05)
    np.testing.assert_allclose(shift - shift[1], [0.5, 0.0, -0.5, 0.0], atol=0.15)
    np.testing.assert_array_equal(fit_softmax(scores, np.zeros((4000, 4))), [[1] * 4, [0] * 4])


def test_scores_that_tell_all_apart_do_not_mean_certainty():
    scores = 2 * np.eye(3)[np.arange(30) % 3] - 1
    factor, shift = fit_softmax(scores, np.eye(3)[np.arange(30) % 3])
    chances = np.exp(scores * factor + shift)
    assert 0.9 < (chances / chances.sum(axis=1, keepdims=True)).max() < 0.999


def test_the_default_is_calibrated_by_a_softmax_where_there_are_several_classes():
    X, y = load_wine(return_X_y=True)
    model = TensorTrainClassifier(random_state=0).fit(X, y)
    assert isinstance(model.decision_, Softmax)
    assert np.ptp(model.model_.size) == 0
    plain = TensorTrainClassifier(loss="squared", random_state=0).fit(X, y)
    assert type(plain.decision_) is OneVsRest
    assert isinstance(TensorTrainClassifier(random_state=0).fit(X, y > 0).decision_, TwoClasses)


# ------------------------------------------------------------------------------------------- learned by themselves


@pytest.mark.slow
def test_the_digits_have_no_worse_probabilities_than_by_default():
    X, y = load_digits(return_X_y=True)
    joint, default = (
        TensorTrainClassifier(loss=loss, random_state=0).fit(X[:1200], y[:1200]) for loss in ("multinomial", "auto")
    )
    losses = [log_loss(y[1200:], model.predict_proba(X[1200:])) for model in (joint, default)]
    assert losses[0] <= 1.001 * losses[1]
    assert "the exact solution had a log loss" in joint.choice_.reasons[-1]


@pytest.fixture(scope="module")
def separate():
    """A model of few rows whose classes are learned by themselves, if that is better at all on rows left out."""
    X, y = load_iris(return_X_y=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many_rows, "_CLEARLY", 0.0)
        return TensorTrainClassifier(loss="multinomial", basis="smooth", bandwidth=1.0, random_state=0).fit(X, y)


def test_classes_learned_by_themselves_are_the_default(separate, tmp_path):
    X, y = load_iris(return_X_y=True)
    default = TensorTrainClassifier(basis="smooth", bandwidth=1.0, random_state=0).fit(X, y)
    assert not separate.plan_.joint
    np.testing.assert_allclose(separate.predict_proba(X), default.predict_proba(X), atol=1e-9)
    separate.save(tmp_path / "model")
    np.testing.assert_allclose(
        polytrain.load(tmp_path / "model").predict_proba(X), separate.predict_proba(X), rtol=1e-5, atol=1e-5
    )


def test_classes_learned_by_themselves_go_on_so(separate):
    X, y = load_iris(return_X_y=True)
    weights = np.where(y == 1, 9.0, 1.0)
    shares = np.bincount(y, weights) / weights.sum()
    warm = deepcopy(separate).set_params(warm_start=True).fit(X, y, weights)
    stream = deepcopy(separate).partial_fit(X, y, sample_weight=20 * weights)
    for model in (warm, stream):
        assert not model.plan_.joint
        np.testing.assert_allclose(np.average(model.predict_proba(X), axis=0, weights=weights), shares, atol=0.03)


def test_given_settings_are_learned_together(monkeypatch):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(many_rows, "_separately", None)  # nobody may ask
    settings = {"loss": "multinomial", "basis": "power", "random_state": 0}
    for given in ({"rank": 2}, {"alpha": 1e-3}, {"max_sweeps": 1}, {"init": "linear"}):
        assert TensorTrainClassifier(**settings, **given).fit(X[::2], y[::2]).plan_.joint


@pytest.mark.parametrize("loss", ["multinomial", "logistic"])
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_repetition_to_the_last_digits(loss, seed):
    """Newton's last step must not depend on rounding: the error would be the root of that of the objective."""
    rng = np.random.default_rng(seed)
    X, y, weights = rng.normal(size=(45, 10)), rng.integers(0, 3, 45), rng.integers(0, 5, 45)
    order = rng.permutation(np.repeat(np.arange(45), weights))
    given = {"basis": "power", "bandwidth": None, "init": "linear", "alpha": 1e-4, "rank": 3, "max_sweeps": 2}
    weighted = TensorTrainClassifier(loss=loss, random_state=0, **given).fit(X, y, sample_weight=weights)
    repeated = TensorTrainClassifier(loss=loss, random_state=0, **given).fit(X[order], y[order])
    scores = weighted.decision_function(X)
    np.testing.assert_allclose(repeated.decision_function(X), scores, rtol=0, atol=1e-11 * np.abs(scores).max())
