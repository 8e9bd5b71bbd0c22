"""The picture of a row's explanation."""

import io
import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from default_models import default_case
from polytrain.explain import explain_local
from polytrain.plotting import LocalExplanationDisplay
from power_models import power_classifier, power_regressor


def labels(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def texts(display):
    return [text.get_text() for text in display.ax_.texts]


def test_bars_lead_from_the_mean_to_the_score(regressor):
    model, X, _ = regressor
    display = LocalExplanationDisplay.from_estimator(model, X, row=5, ax=Figure().subplots())
    found = explain_local(model, X[5:6])
    bars = sorted((bar for bar in display.ax_.patches), key=lambda bar: bar.get_y())
    widths = [bar.get_width() for bar in bars]
    np.testing.assert_allclose(widths, [value for *_, value in found.ranked()])
    assert bars[-1].get_x() == pytest.approx(found.base[0])
    assert bars[0].get_x() + widths[0] == pytest.approx(found.scores[0, 0])
    for upper, lower in itertools.pairwise(bars):
        assert upper.get_x() == pytest.approx(lower.get_x() + lower.get_width())
    low, high = display.ax_.get_xlim()
    assert low < min(bar.get_x() + min(width, 0) for bar, width in zip(bars, widths, strict=True))
    assert high > max(bar.get_x() + max(width, 0) for bar, width in zip(bars, widths, strict=True))
    assert labels(display)[0].startswith(found.ranked()[0][0] + " = ")
    assert display.ax_.get_xlabel() == "prediction"
    assert any(text.startswith("row 5: ") for text in texts(display))


def test_the_rest_is_one_bar(regressor):
    model, X, _ = regressor
    display = LocalExplanationDisplay.from_estimator(model, X, max_columns=2, ax=Figure().subplots())
    assert len(display.ax_.patches) == 3
    assert labels(display)[-1] == "2 other columns"
    whole = LocalExplanationDisplay(display.explanations, max_columns=3).plot(Figure().subplots())
    assert len(whole.ax_.patches) == 4  # a bar for one column has its name
    with pytest.raises(ValueError, match="max_columns must be a positive integer"):
        LocalExplanationDisplay.from_estimator(model, X, max_columns=0)


def test_the_largest_score_unless_named(iris_model):
    model, X, _ = iris_model
    display = LocalExplanationDisplay.from_estimator(model, X, row=120, ax=Figure().subplots())
    assert display.ax_.get_xlabel() == "log-odds of 2"
    named = LocalExplanationDisplay(explain_local(model, X[120:121], output="1")).plot(Figure().subplots())
    assert named.ax_.get_xlabel() == "log-odds of 1"
    last = LocalExplanationDisplay.from_estimator(model, X, row=-1)
    assert last.explanations.row_names == (149,)
    assert last.figure_ is not None
    with pytest.raises(ValueError, match=r"row must be between -150 and 149, got 150"):
        LocalExplanationDisplay.from_estimator(model, X, row=150)


@pytest.mark.parametrize("kind", ["pandas", "polars", "list", "pipeline"])
def test_rows_of_any_kind(kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"], index=[f"r{k}" for k in range(40)])
    model = power_regressor(rank=2, max_sweeps=1, random_state=0)
    if kind == "pipeline":
        model = make_pipeline(StandardScaler(), model)
    rows = {"polars": pl.from_pandas(X), "list": X.to_numpy().tolist()}.get(kind, X)
    model.fit(rows, X["a"] * X["b"])
    display = LocalExplanationDisplay.from_estimator(model, rows, row=3, ax=Figure().subplots())
    assert display.explanations.row_names == (("r3",) if kind in ("pandas", "pipeline") else (3,))
    assert f" = {X['a'].iloc[3]:.6g}" in " ".join(labels(display))


def test_missing_values_and_levels():
    model, rows, _ = default_case("frame-regressor")
    place = int(np.flatnonzero(rows["day"].isna())[0])
    display = LocalExplanationDisplay.from_estimator(model, rows, row=place, ax=Figure().subplots())
    assert "day = missing" in labels(display)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.parametrize("format", ["svg", "png"])
def test_hostile_names_stay_text(format):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"$\\frac{1}$": rng.normal(size=40), "</text><script>\n": rng.normal(size=40), "$a$" * 20: 1.0})
    y = np.where(X.iloc[:, 0] > 0, "$\\bad{$", "<b>")
    model = power_classifier(rank=2, max_sweeps=1, random_state=0).fit(X, y)
    display = LocalExplanationDisplay.from_estimator(model, X.set_axis([f"$r{k}$" for k in range(40)]), row=2)
    stream = io.BytesIO()
    display.figure_.savefig(stream, format=format)
    assert b"<script>" not in stream.getvalue()
    assert any(label.startswith("$\\frac{1}$ = ") for label in labels(display))
    assert display.ax_.get_xlabel() == "log-odds of <b>"
