"""Pictures of effects: curves, bars and maps hold the numbers that were found."""

import io

import numpy as np
import pytest
from matplotlib.dates import date2num
from matplotlib.figure import Figure

from default_models import NAMES, default_case
from polytrain import TensorTrainRegressor
from polytrain.explain import effects, feature_importances
from polytrain.plotting import EffectsDisplay, ImportancesDisplay, draw_main_effect, draw_pair_effect


def draw(figure):
    figure.savefig(io.BytesIO(), dpi=40)  # raises no warning


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("given", [True, False])
def test_all_models(name, given):
    model, rows, _ = default_case(name)
    axes = Figure(figsize=(20, 3)).subplots(1, 10)
    display = EffectsDisplay.from_estimator(model, rows if given else None, axes=axes)
    assert len(display.axes_) == len(display.effects.main) + len(display.effects.pairs)
    draw(display.figure_)


@pytest.mark.slow
def test_a_figure_of_its_own():
    model, rows, _ = default_case("frame")
    display = EffectsDisplay.from_estimator(model, rows, n_pairs=3)
    assert len(display.axes_) == 7
    draw(display.figure_)


def test_a_curve_holds_the_effect():
    model, rows, _ = default_case("gaps")
    effect = effects(model, rows).main[0]
    ax = Figure().subplots()
    draw_main_effect(ax, effect)
    curve = ax.lines[1]
    np.testing.assert_array_equal(curve.get_xdata(), effect.grid)
    np.testing.assert_array_equal(curve.get_ydata(), effect.values)
    (below,) = ax.child_axes
    assert below.patches[0].get_data().values.sum() == pytest.approx(1 - effect.missing_part)
    assert [text.get_text() for text in ax.texts] == [f"missing ({effect.missing_count:g})"]


def test_bars_have_counts():
    model, rows, _ = default_case("frame")
    effect = effects(model, rows)["town"]
    ax = Figure().subplots()
    draw_main_effect(ax, effect)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert f"Bern ({(rows['town'] == 'Bern').sum()})" in labels
    assert "other levels (4)" in labels
    assert labels[-1] == f"missing ({rows['town'].isna().sum()})"
    widths = [bar.get_width() for bar in ax.patches]
    assert sorted(widths[:-1], reverse=True) == widths[:-1]
    assert widths[-1] == effect.missing


def test_dates_are_dates():
    model, rows, _ = default_case("frame-regressor")
    effect = effects(model, rows)["day"]
    ax = Figure().subplots()
    draw_main_effect(ax, effect)
    np.testing.assert_allclose(date2num(ax.lines[1].get_xdata()), date2num(effect.grid))


def test_maps_hold_the_effect():
    model, rows, _ = default_case("frame")
    for pair in effects(model, rows, top_pairs=6).pairs:
        ax = Figure().subplots()
        draw_pair_effect(ax, pair)
        np.testing.assert_allclose(ax.collections[0].get_array().ravel(), pair.values.T.ravel())


def test_importances_as_bars():
    model, rows, _ = default_case("frame")
    display = ImportancesDisplay(feature_importances(model, rows), max_columns=3).plot(Figure().subplots())
    draw(display.figure_)
    found = display.importances
    names = [name for name, _ in found.ranked()[:3]]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == names
    order = [found.feature_names.index(name) for name in names]
    assert [bar.get_width() for bar in display.ax_.patches] == found.importances[order].tolist()
    assert len(ImportancesDisplay.from_estimator(model).ax_.patches) == len(found.importances)


def test_chosen_columns_and_axes():
    model, rows, _ = default_case("frame")
    axes = Figure().subplots(1, 3)
    display = EffectsDisplay.from_estimator(model, rows, columns=["town", "size"], n_pairs=1, axes=axes)
    assert display.axes_ == list(axes)
    assert axes[0].get_title().startswith("town: ")
    assert display.plot() is display
    with pytest.raises(ValueError, match="axes must be at least 3, one per picture, got 2"):
        display.plot(axes[:2])
    with pytest.raises(ValueError, match="there is no column 'city'"):
        EffectsDisplay.from_estimator(model, columns=["city"])
    with pytest.raises(ValueError, match=r"nothing to draw with columns=\[\] and no pairs; name a column"):
        EffectsDisplay.from_estimator(model, columns=[], n_pairs=0)


def test_many_levels_are_not_all_drawn():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (400, 1)).astype(float)
    model = TensorTrainRegressor(categorical_features=[0], random_state=0).fit(X, X[:, 0] % 7)
    ax = Figure().subplots()
    draw_main_effect(ax, effects(model, X).main[0])
    assert len(ax.patches) == 12
    assert ax.get_xlabel() == "effect; 18 rarer levels left out"
