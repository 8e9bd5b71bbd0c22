"""Every display keeps its data, draws where it is told, and leaves pyplot alone otherwise."""

import io
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from polytrain import TensorTrainClassifier
from polytrain.explain import partial_dependence, sobol_indices, top_terms
from polytrain.plotting import (
    ConvergenceDisplay,
    InteractionDisplay,
    PartialDependenceDisplay,
    RankDisplay,
    TermStrengthDisplay,
)
from power_models import power_regressor


@pytest.fixture
def make_display(iris_model):
    """Name of a display -> a function of ax that makes it."""
    model, X, _ = iris_model
    return {
        "convergence": lambda ax: ConvergenceDisplay.from_estimator(model, ax=ax),
        "ranks": lambda ax: RankDisplay.from_estimator(model, ax=ax),
        "terms": lambda ax: TermStrengthDisplay.from_estimator(model, 5, ax=ax),
        "interactions": lambda ax: InteractionDisplay.from_estimator(model, X, ax=ax),
        "dependence": lambda ax: PartialDependenceDisplay.from_estimator(model, 2, X, ax=ax),
        "dependence of two": lambda ax: PartialDependenceDisplay.from_estimator(model, [2, 3], X, ax=ax),
    }


NAMES = ["convergence", "ranks", "terms", "interactions", "dependence", "dependence of two"]


@pytest.mark.parametrize("name", NAMES)
def test_given_axes_are_used_and_pyplot_is_left_alone(make_display, name):
    import matplotlib.pyplot as plt

    figure = Figure()
    ax = figure.subplots()
    display = make_display[name](ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert not plt.get_fignums()
    figure.savefig(io.BytesIO(), dpi=40)  # drawing it raises no warning


@pytest.mark.parametrize("name", NAMES)
def test_a_new_figure_is_made_and_plot_draws_again(make_display, name):
    import matplotlib.pyplot as plt

    display = make_display[name](None)
    first = display.figure_
    assert plt.get_fignums() == [first.number]
    assert display.plot() is display
    assert display.figure_ is not first


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (ConvergenceDisplay, ()),
        (RankDisplay, ()),
        (TermStrengthDisplay, ()),
        (InteractionDisplay, ()),
        (PartialDependenceDisplay, (0,)),
    ],
)
def test_unfitted_models(cls, arguments):
    with pytest.raises(NotFittedError):
        cls.from_estimator(TensorTrainClassifier(), *arguments)


def test_missing_matplotlib_names_the_extra(iris_model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"polytrain\[plot\]"):
        ConvergenceDisplay.from_estimator(iris_model[0])


def test_convergence_shows_the_history(iris_model):
    model, _, _ = iris_model
    display = ConvergenceDisplay.from_estimator(model, quantity="loss")
    for index, line in enumerate(display.ax_.lines):
        records = [record for record in model.history_ if record["train"] == index]
        np.testing.assert_array_equal(line.get_xdata(), [record["sweep"] for record in records])
        np.testing.assert_array_equal(line.get_ydata(), [record["loss"] for record in records])
    assert display.ax_.get_ylabel() == "loss"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["0", "1", "2"]
    with pytest.raises(ValueError, match=r"quantity must be one of .*'gradient'"):
        ConvergenceDisplay.from_estimator(model, quantity="gradient")


def test_convergence_of_many_trains_has_one_legend_entry():
    curves = [(np.array([1, 2]), np.array([1.0, 0.01 * (k + 1)])) for k in range(12)]
    display = ConvergenceDisplay(curves, [str(k) for k in range(12)]).plot()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["each of 12 trains"]
    assert display.ax_.get_yscale() == "log"
    assert not [label for label in display.ax_.get_yticklabels(which="both") if "$" in label.get_text()]


def test_convergence_without_a_sweep(regressor):
    _, X, y = regressor
    with pytest.raises(ValueError, match="made no sweep"):
        ConvergenceDisplay.from_estimator(power_regressor(max_sweeps=0, rank=2).fit(X, y))


def test_ranks_are_those_of_the_trains(iris_model):
    model, _, _ = iris_model
    display = RankDisplay.from_estimator(model, tol=0.2)
    np.testing.assert_array_equal(display.ranks, [train.ranks[1:-1] for train in model.trains_])
    np.testing.assert_array_equal(display.needed, [train.round(0.2).ranks[1:-1] for train in model.trains_])
    np.testing.assert_array_equal(display.bounds, [3, 9, 3])
    with pytest.raises(ValueError, match="only one feature"):
        RankDisplay.from_estimator(power_regressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]))


def test_term_bars(regressor):
    model, _, _ = regressor
    display = TermStrengthDisplay.from_estimator(model, 2)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["x1*x2", "x3"]
    expected = top_terms(model, 3).strengths[:2]
    widths = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in display.ax_.patches}
    np.testing.assert_allclose([widths[0], widths[1]], expected)
    with_constant = TermStrengthDisplay(top_terms(model, 3)).plot()
    assert "constant" in [label.get_text() for label in with_constant.ax_.get_yticklabels()]


def test_interactions_are_sobol_indices(iris_model):
    model, X, _ = iris_model
    indices = sobol_indices(model, X)
    display = InteractionDisplay.from_estimator(model, X, train=1)
    np.testing.assert_allclose(np.diag(display.shares), indices.first[1])
    np.testing.assert_allclose(np.triu(display.shares, 1), np.triu(indices.second[1], 1))
    mean = InteractionDisplay.from_estimator(model, X)
    np.testing.assert_allclose(np.diag(mean.shares), indices.first.mean(axis=0))
    two = InteractionDisplay.from_estimator(model, X, max_features=2)
    keep = np.sort(np.argsort(-indices.total.mean(axis=0))[:2])
    assert two.feature_names == [X.columns[k] for k in keep]
    np.testing.assert_allclose(two.im_.get_array(), 100 * mean.shares[np.ix_(keep, keep)])


def test_partial_dependence_lines(iris_model):
    model, X, _ = iris_model
    display = PartialDependenceDisplay.from_estimator(model, "petal width (cm)", X)
    expected = partial_dependence(model, 3, X)
    for line, values in zip(display.ax_.lines, expected.values, strict=False):
        np.testing.assert_allclose(line.get_ydata(), values)
    assert display.ax_.get_xlabel() == "petal width (cm)"
    assert len(PartialDependenceDisplay.from_estimator(model, 3, train=2).ax_.lines) == 1


def test_partial_dependence_labels(regressor):
    model, X, _ = regressor
    assert PartialDependenceDisplay.from_estimator(model, 0).ax_.get_ylabel() == "mean prediction"
    assert PartialDependenceDisplay.from_estimator(model, [3, 1], X).ax_.get_ylabel() == "x2"
