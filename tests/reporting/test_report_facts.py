"""Intervals, the simple models that a report compares with, and the effects that it draws."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.choice import LITTLE
from polytrain.columns import CategoryColumn, Columns, NumberColumn
from polytrain.evaluation import Answers
from polytrain.explain.view import read_model
from polytrain.reporting.accuracy import ScoredRows, bootstrap, compare, error_section
from polytrain.reporting.effects import ColumnEffects, effect_section
from polytrain.texts import number_text, percent_text


def test_bootstrap_holds_the_truth_about_as_often_as_it_says():
    def rmse(residuals):
        return bootstrap(Answers(np.zeros(len(residuals)), residuals), is_rmse=True)

    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(100):
        low, high = rmse(rng.normal(scale=3.0, size=100))
        inside += low <= 3.0 <= high
    assert 85 <= inside <= 99
    assert rmse(np.zeros(5)) == (0.0, 0.0)
    assert np.isfinite(rmse(np.array([1e300, -1e300, 0.0]))).all()


def scored(estimator, X, y, categories=()):
    columns = [
        CategoryColumn(str(k), ("a", "b", "c")) if k in categories else NumberColumn(str(k)) for k in range(X.shape[1])
    ]
    known = copy(estimator)
    known.model_ = replace(estimator.model_, columns=Columns(tuple(columns)), feature_names=None)
    view = read_model(known).on_features()
    return ScoredRows(view, Answers.of(view.fitted, X, y), X, np.arange(len(X)))


def learned(estimator, X, y):
    """Training rows as the linear model gets them."""
    return X, Answers.of(estimator.model_, X, y)


@pytest.fixture
def classes():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 3, 300), rng.normal(size=300)])
    X[::9, 2] = np.nan
    y = ((X[:, 0] + (X[:, 1] == 1) + 0.3 * rng.normal(size=300)) > 0.5).astype(int)
    model = TensorTrainClassifier(basis=["spline", "category", "spline"], rank=2, alpha=1e-3, random_state=0)
    return model.fit(X, y), X, y


def test_linear_model_and_constant(classes):
    model, X, y = classes
    own, linear, constant = compare(scored(model, X, y, (1,)), learned(model, X, y))
    assert own.error == pytest.approx(np.mean(model.predict(X) != y))
    assert linear.error < 0.15 < constant.error
    assert linear.low < linear.error < linear.high
    assert constant.error == pytest.approx(min(y.mean(), 1 - y.mean()))
    assert constant.name == f"always {int(y.mean() > 0.5)}"


def test_no_linear_model_without_training_rows(classes):
    """One that learned from the given rows would have seen other rows than the model, and fewer."""
    model, X, y = classes
    _, constant = compare(scored(model, X, y, (1,)))
    assert constant.how == "the best constant here"


def test_linear_model_of_training_rows(classes):
    model, X, y = classes
    _, linear, _ = compare(scored(model, X[200:], y[200:], (1,)), learned(model, X[:200], y[:200]))

    def design(rows):
        gone = np.isnan(rows[:, 2])
        known = X[:200, 2][~np.isnan(X[:200, 2])]
        number = np.where(gone, 0.0, (rows[:, 2] - known.mean()) / known.std())
        first = (rows[:, 0] - X[:200, 0].mean()) / X[:200, 0].std()
        return np.column_stack([first, rows[:, 1:2] == [0, 1, 2], np.zeros(len(rows)), number, gone])

    expected = LogisticRegression(max_iter=200).fit(design(X[:200]), y[:200]).predict(design(X[200:]))
    assert linear.error == pytest.approx(np.mean(expected != y[200:]))
    assert linear.how == "fitted on 200 training rows"


def test_numbers_are_compared_by_their_errors():
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = X[:, 0] + 3.0
    model = TensorTrainRegressor(rank=2, alpha=1e-3, random_state=0).fit(X, y)
    _, linear, constant = compare(scored(model, X, y), learned(model, X, y))
    assert linear.error < 1e-2 < constant.error
    assert constant.error == pytest.approx(y.std())


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_the_size_of_columns_does_not_matter(size):
    X = np.random.default_rng(0).uniform(1, 2, size=(60, 2))
    model = TensorTrainRegressor(rank=1, alpha=1e-3, random_state=0).fit(X, X[:, 0])
    _, plain, _ = compare(scored(model, X, X[:, 0]), learned(model, X, X[:, 0]))
    _, linear, _ = compare(scored(model, X * size, X[:, 0]), learned(model, X * size, X[:, 0]))
    assert linear.error == pytest.approx(plain.error, rel=1e-6)


def test_few_rows_of_one_class_have_no_linear_model(classes):
    model, X, _ = classes
    one_class = np.ones(3, dtype=int)
    _, constant = compare(scored(model, X[:3], one_class, (1,)), learned(model, X[:3], one_class))
    assert constant.error == 0.0


def test_shuffling_what_matters_costs_more(classes):
    model, X, y = classes
    first, _, third = scored(model, X, y, (1,)).shuffled([0, 1, 2])
    assert first > 0.2 > abs(third)


def test_cells_as_text():
    X = np.array([[3.0, 1.0], [458609.0, -1.0], [0.1234567, np.nan], [np.nan, 0.0], [-0.5, 2.0]])
    model = TensorTrainRegressor(rank=1, alpha=1e-3, random_state=0).fit(X, np.arange(5.0))
    rows = scored(model, X, np.arange(5.0), (1,))
    assert [rows.cells(j, range(2)) for j in range(5)] == [
        ("3", "b"), ("458,609", "another"), ("0.12346", "missing"), ("missing", "a"), ("-0.5", "c"),
    ]  # fmt: skip


def test_importances_and_shares(classes):
    model, X, y = classes
    effects = ColumnEffects(scored(model, X, y, (1,)))
    assert sum(effects.importances.values()) == pytest.approx(1.0)
    assert list(effects.importances.values()) == sorted(effects.importances.values(), reverse=True)
    assert effects.effects[0].pairs[0].share == max(pair.share for _, pair in effects.pairs())


def test_curves_leave_out_the_outermost_values():
    X = np.append(np.random.default_rng(0).uniform(size=400), 3.0)[:, None]
    model = TensorTrainRegressor(basis="power", rank=1, alpha=1e-3, random_state=0).fit(X, X[:, 0])
    effect = ColumnEffects(scored(model, X, X[:, 0])).main(0)[0]
    assert effect.grid.max() < 1.1
    assert len(effect.grid) == len(effect.values) == len(effect.parts)


def test_constant_columns_and_models_have_pictures():
    X = np.column_stack([np.linspace(0, 1, 30), np.full(30, 2.0)])
    model = TensorTrainRegressor(basis="power", rank=1, alpha=1e-3, random_state=0).fit(X, np.ones(30))
    rows = scored(model, X, np.ones(30))
    section = effect_section(rows, ColumnEffects(rows))
    assert section["pairs"] == []
    assert section["pictures"][0]["title"] == "Importances"


def test_metrics_beside_the_error(classes):
    model, X, y = classes
    rows = scored(model, X, y, (1,))
    own, linear, constant = compare(rows, (X, rows.every))
    assert list(rows.further) == ["auc", "log_loss", "balanced_error"]
    assert own.more[:2] == tuple(number_text(rows.figures[name]) for name in ("auc", "log_loss"))
    assert own.more[2] == percent_text(rows.figures["balanced_error"])
    assert float(linear.more[0]) > 0.9
    assert constant.more[:2] == (
        "0.5",
        number_text(-(y.mean() * np.log(y.mean()) + (1 - y.mean()) * np.log1p(-y.mean()))),
    )
    head = error_section(rows, [own, linear, constant], [0])["simple"]["head"]
    assert head == ("model", "rows", "share of wrong labels", "95 % interval", *rows.further.values())


@pytest.mark.parametrize(("loss", "metrics"), [("squared", ["r2", "mae"]), ("poisson", ["d2", "r2", "rmse", "mae"])])
def test_metrics_of_numbers(loss, metrics):
    X = np.random.default_rng(0).uniform(size=(80, 2))
    y = np.round(np.exp(X[:, 0] + 1))
    model = TensorTrainRegressor(basis="power", loss=loss, rank=1, alpha=1e-3, random_state=0).fit(X, y)
    rows = replace(scored(model, X, y), target="visits (per day)")
    assert list(rows.further) == metrics
    assert rows.error_name == {"squared": "root mean squared error (per day)"}.get(loss, "mean Poisson deviance")
    assert len({len(model.more) for model in compare(rows, (X, rows.every))}) == 1


def test_confusion_matrix_shades_and_mistakes():
    X = np.repeat(np.arange(3.0), 20)[:, None]
    y = np.repeat(np.arange(3), 20)
    model = TensorTrainClassifier(basis="power", rank=1, alpha=1e-3, random_state=0).fit(X, y)
    y[:5], y[20] = 2, 0
    matrix = error_section(rows := scored(model, X, y), compare(rows), [0])["matrix"]
    assert [counts for _, counts, _ in matrix["rows"]] == [[15, 1, 0], [0, 19, 0], [5, 0, 20]]
    assert [shades for *_, shades in matrix["rows"]] == [[51.6, 17.2, 0], [0, 55, 0], [55, 0, 44]]
    assert matrix["mistakes"]["rows"] == [("2", "0", 5, "20 %"), ("0", "1", 1, "6.25 %")]


def test_columns_that_were_not_needed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[:, 3] = 1.0
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    model = TensorTrainRegressor(basis="power", rank=1, alpha=1e-3, random_state=0).fit(X, y)
    rows = scored(model, X, y)
    vars(rows)["relevances"] = [1.0, LITTLE, 0.99 * LITTLE, 1.0]
    section = effect_section(rows, ColumnEffects(rows))["unneeded"]
    assert [(name, relevance) for name, relevance, _ in section["table"]["rows"]] == [("2", "0.2"), ("3", "1")]
    assert "little or no use of 2 of 4 columns, 1 of them without any influence" in section["words"]
    plain = TensorTrainRegressor(basis="power", rank=1, alpha=1e-3, random_state=0).fit(X[:, :2], y)
    rows = scored(plain, X[:, :2], y)
    assert effect_section(rows, ColumnEffects(rows))["unneeded"] == {}
