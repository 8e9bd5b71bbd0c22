"""What a fit says about itself: its numbers, its text and its HTML."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context, metrics
from sklearn.datasets import load_iris

import polytrain
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.choice import Chosen, Tried
from polytrain.estimators import _base
from polytrain.rows.summary import row_hashes
from power_models import power_classifier, power_regressor

pytestmark = pytest.mark.filterwarnings("ignore::polytrain.DataWarning")

EVIL = '<script>alert("x")</script>&\x1b'


def numbers(n_rows=60, seed=0):
    """Rows of few different values, so that some are equal."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(n_rows, 3)) / 4
    return X, 100 * X[:, 0] * X[:, 1] + 10 * rng.normal(size=n_rows)


@pytest.fixture
def held_out(monkeypatch):
    """Scores of left-out rows that the choices of this test have made."""
    kept, choose = [], _base.choose

    def watched(task):
        choice = choose(task)
        kept.append(choice.held_out)
        return choice

    monkeypatch.setattr(_base, "choose", watched)
    return kept


@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_are_those_of_left_out_rows(held_out, weighted):
    X, y = numbers()
    weights = np.arange(1.0, 61) if weighted else None
    model = TensorTrainRegressor(random_state=0).fit(X, y, weights)
    scores = dict(zip(held_out[0].hashes.tolist(), held_out[0].scores[:, 0].tolist(), strict=True))
    low, high = model.model_.limits[:, 0]
    predicted = []
    for row in X:
        score = scores[int(row_hashes(row[None])[0])]
        predicted.append(min(max(score * float(model.model_.size[0]) + float(model.model_.shift[0]), low), high))
    left_out, mean = model.left_out_, np.full(60, np.average(y, weights=weights))
    rmse = metrics.root_mean_squared_error(y, predicted, sample_weight=weights)
    assert left_out.model == {
        "rmse": pytest.approx(rmse),
        "r2": pytest.approx(metrics.r2_score(y, predicted, sample_weight=weights)),
    }
    constant = metrics.root_mean_squared_error(y, mean, sample_weight=weights)
    assert left_out.constant == {"rmse": pytest.approx(constant), "r2": pytest.approx(0.0, abs=1e-12)}
    assert left_out.where == "each of the 60 rows left out in turn; they also chose the settings"
    text = str(model.summary())
    assert f"\nroot mean squared error {rmse:.5g} in the target's unit\n" in text
    assert f"the best constant {constant:.5g}\n" in text


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_classes_are_those_of_left_out_rows(held_out, n_classes, weighted):
    X, y = numbers()
    labels = np.array(["a", "b", "c"])[np.digitize(y, [20, 60][: n_classes - 1])]
    weights = np.arange(1.0, 61) if weighted else None
    model = TensorTrainClassifier(random_state=0).fit(X, labels, weights)
    seen = dict(zip(held_out[0].hashes.tolist(), held_out[0].scores, strict=True))
    chances = []
    for row in X:
        scores = seen[int(row_hashes(row[None])[0])] * model.model_.size + model.model_.shift
        odds = np.exp(scores if n_classes > 2 else [0.0, scores[0]])
        chances.append(odds / odds.sum())
    predicted = model.classes_[np.argmax(chances, axis=1)]
    left_out, shares = model.left_out_, np.unique(labels, return_counts=True)[1] / 60
    assert left_out.model["error"] == pytest.approx(metrics.zero_one_loss(labels, predicted, sample_weight=weights))
    assert left_out.model["log_loss"] == pytest.approx(metrics.log_loss(labels, chances, sample_weight=weights))
    areas = [
        metrics.roc_auc_score(labels == label, np.array(chances)[:, k], sample_weight=weights)
        for k, label in enumerate(model.classes_)
    ]
    assert left_out.model["auc"] == pytest.approx(np.mean(areas))
    if not weighted:
        assert left_out.constant["error"] == pytest.approx(1 - shares.max())
    assert left_out.where == "each of the 60 rows left out in turn; they also chose the settings"
    assert f"\nerror {100 * left_out.model['error']:.2f} %\n" in str(model.summary())


def test_a_part_of_many_rows_is_held_out(held_out):
    X = np.random.default_rng(0).uniform(size=(1500, 2))
    y = X[:, 0] ** 2
    model = TensorTrainRegressor(basis="spline", bandwidth=1.0, rank=2, random_state=0).fit(X, y)
    n_rows = len(held_out[0].hashes)
    assert model.left_out_.where == f"{n_rows} of 1,500 rows held out; they also chose the settings"
    assert 200 < n_rows < 400
    place = {int(value): k for k, value in enumerate(row_hashes(X))}
    kept = [place[value] for value in held_out[0].hashes.tolist()]
    predicted = held_out[0].scores[:, 0] * model.model_.size + model.model_.shift
    expected = metrics.root_mean_squared_error(y[kept], np.clip(predicted, *model.model_.limits))
    assert model.left_out_.model["rmse"] == pytest.approx(expected)


def test_rows_set_apart_are_asked_the_model_itself():
    X, y = numbers(200)
    model = TensorTrainRegressor(random_state=0, calibration_fraction=0.3, rank=2, alpha=1e-3).fit(X, y)
    assert " rows that were set apart" in model.left_out_.where
    assert 0 < model.left_out_.model["rmse"] < model.left_out_.constant["rmse"]


def test_where_nothing_was_left_out_it_says_so():
    X, y = numbers()
    given = power_regressor(random_state=0).fit(X, y)
    assert given.left_out_ is None
    assert "\nerror not measured: no rows were left out of this fit\n" in str(given.summary())
    assert "\ngiven         basis power, " in str(given.summary())
    open_rank = TensorTrainClassifier(loss="logistic", random_state=0, max_sweeps=1).fit(X, y > 0)
    assert "error not measured: the fit has kept no scores of left-out rows" in str(open_rank.summary())


@pytest.mark.parametrize(
    ("loss", "first"), [("poisson", "deviance"), ("absolute", "mae"), ("quantile", "deviance"), ("huber", "rmse")]
)
def test_losses_without_noise_are_measured(loss, first):
    X, y = numbers()
    model = TensorTrainRegressor(loss=loss, random_state=0, max_sweeps=1).fit(X, np.abs(y))
    assert next(iter(model.left_out_.model)) == first
    assert model.left_out_.model[first] < model.left_out_.constant[first]
    assert model.model_.uncertainty is None


def test_figures_of_another_model_are_not_shown():
    X, y = numbers()
    model = TensorTrainRegressor(random_state=0).fit(X, y)
    other = deepcopy(model).partial_fit(X, y)
    again = deepcopy(model).set_params(warm_start=True).fit(X, y)
    merged = polytrain.average([model, deepcopy(model)])
    for changed in (other, again, merged):
        assert changed.left_out_ is None
        assert "error not measured" in str(changed.summary())


def test_blocks_and_frames_have_the_same_figures(tmp_path):
    X, y = numbers()
    model = TensorTrainRegressor(random_state=0).fit(X, y)
    frame = TensorTrainRegressor(random_state=0).fit(pd.DataFrame(X, columns=list("abc")), y)
    for k, some in enumerate((slice(17), slice(17, 60))):
        np.save(tmp_path / f"X{k}.npy", X[some])
        np.save(tmp_path / f"y{k}.npy", y[some])
    blocks = TensorTrainRegressor(random_state=0).fit(polytrain.sources.open_rows(tmp_path))
    for other in (frame, blocks):
        assert other.left_out_.where == model.left_out_.where
        assert other.left_out_.model == pytest.approx(model.left_out_.model, rel=1e-6)


def test_files_keep_it(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = TensorTrainClassifier(random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    loaded = polytrain.load(tmp_path / "m")
    assert loaded.left_out_ == model.left_out_
    assert str(loaded.summary()) == str(model.summary())
    assert loaded.summary()._repr_html_() == model.summary()._repr_html_()


def test_columns_are_described():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "size": rng.normal(size=80),
        "noise": np.where(np.arange(80) % 9, rng.normal(size=80), np.nan),
        "kind": pd.Categorical(np.array(["x", "y"])[np.arange(80) % 2]),
        "when": pd.date_range("2020-01-01", periods=80),
    })  # fmt: skip
    model = TensorTrainRegressor(random_state=0).fit(frame, 3 * frame["size"] + (frame["kind"] == "x"))
    facts = dict(model.summary().facts)
    assert facts["columns"] == "2 numbers, 1 category, 1 date"
    assert facts["with gaps"] == "noise"
    assert "noise" in facts["hardly needed"].split(", ")
    assert "size" not in facts["hardly needed"].split(", ")
    assert model.summary().bars[0][0] == "size"
    assert set(facts) == {"chosen", "loss", "columns", "with gaps", "hardly needed"}


def test_names_and_warnings_are_harmless():
    X, y = numbers()
    frame = pd.DataFrame(X, columns=[EVIL, "b", "c"])
    model = power_classifier(random_state=0).fit(frame, y > 30)
    model.warnings_ = (f"column {EVIL} is constant",)
    html, text = model.summary()._repr_html_(), str(model.summary())
    assert "<script" not in html
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;\\x1b" in html
    assert '<p class="warning">column &lt;script' in html
    assert "\x1b" not in html + text
    assert "\nwarning       column <script>" in text


def test_notebooks_show_it_below_the_diagram():
    X, y = numbers()
    model = power_regressor(random_state=0)
    before = model._repr_mimebundle_()["text/html"]
    assert "polytrain-summary" not in before + model._repr_html_()
    model.fit(X, y)
    for html in (model._repr_mimebundle_()["text/html"], model._repr_html_()):
        diagram, _, summary = html.partition('<div class="polytrain-summary">')
        assert "sk-estimator" in diagram
        assert "error not measured" in summary
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_what_was_chosen_is_a_table():
    tried = [Tried("maps", "smooth", 1.0, 1e-3, 0, 9, 0.5), Tried("linear", "smooth", 1.0, 1e-3, 1, 9, 0.75)]
    chosen = Chosen("smooth", 1.0, 1e-3, 4, (f"because {EVIL}",), tuple(tried))
    assert str(chosen).splitlines()[:3] == [
        "basis 'smooth', bandwidth 1, alpha 0.001, rank 4",
        'because <script>alert("x")</script>&\\x1b',
        "step      basis             bandwidth     alpha  rank    rows  mean loss",
    ]
    assert repr(chosen) == str(chosen)
    html = chosen._repr_html_()
    assert "<script" not in html
    assert html.count("<tr>") == 3
    assert "<td>any</td><td>9</td><td>0.5</td>" in html


@pytest.mark.parametrize(
    ("lines", "ratio"),
    [
        ([("maps", 0, 9, 0.5), ("linear", 1, 9, 0.75)], 1.5),
        ([("maps", 0, 500, 0.1), ("maps", 0, 900, 0.5), ("linear", 1, 900, 0.25)], 0.5),
        ([("maps", 0, 9, 0.1), ("relevance", 0, 9, 0.01), ("bandwidth", 0, 9, 0.2), ("linear", 1, 9, 0.2)], 2.0),
        ([("maps", 0, 9, 0.01), ("rank", 1, 8, 0.6), ("rank", 4, 8, 0.3), ("alpha", 4, 8, 0.2)], 3.0),
        ([("rank", 1, 8, 0.6), ("rank", 4, 8, 0.3), ("logistic", 4, 8, 0.001)], 2.0),
        ([("maps", 0, 9, 0.5)], None),
        ([], None),
    ],
)
def test_models_without_interactions_are_compared_on_the_same_rows(lines, ratio):
    tried = tuple(Tried(step, "smooth", 1.0, 1e-3, rank, n_rows, error) for step, rank, n_rows, error in lines)
    assert Chosen("smooth", 1.0, 1e-3, 4, (), tried).linear_ratio == (ratio and pytest.approx(ratio))
