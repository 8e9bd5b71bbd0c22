"""Pictures of models that leave all to the choice, with categories, dates and gaps."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure

from default_models import NAMES, default_case, frame_target, make_frame
from polytrain import TensorTrainRegressor
from polytrain.plotting import (
    ConvergenceDisplay,
    InteractionDisplay,
    PartialDependenceDisplay,
    RankDisplay,
)


def draw(display):
    display.figure_.savefig(io.BytesIO(), dpi=40)  # raises no warning
    return display


@pytest.mark.parametrize("name", NAMES)
def test_every_display_runs(name):
    model, rows, features = default_case(name)
    for k in range(features.shape[1]):
        draw(PartialDependenceDisplay.from_estimator(model, k, rows, ax=Figure().subplots()))
    draw(PartialDependenceDisplay.from_estimator(model, [0, 3], rows, ax=Figure().subplots()))
    draw(InteractionDisplay.from_estimator(model, rows, ax=Figure().subplots()))
    draw(RankDisplay.from_estimator(model, ax=Figure().subplots()))
    if model.history_:  # a start may be the model
        draw(ConvergenceDisplay.from_estimator(model, ax=Figure().subplots()))


def test_levels_stand_side_by_side():
    model, rows, _ = default_case("frame-regressor")
    display = draw(PartialDependenceDisplay.from_estimator(model, "colour", rows, ax=Figure().subplots()))
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["blue", "green", "red", "missing"]
    line = display.ax_.lines[0]
    assert line.get_linestyle() == "None"  # there is nothing between two levels
    np.testing.assert_array_equal(line.get_xdata(), [0, 1, 2, 3])
    np.testing.assert_array_equal(line.get_ydata(), display.dependence.values[0])
    assert len(display.ax_.lines) == 1  # no deciles


def test_levels_and_numbers_in_one_picture():
    model, rows, _ = default_case("frame-regressor")
    for features in (["colour", "size"], ["size", "colour"], ["town", "colour"]):
        display = draw(PartialDependenceDisplay.from_estimator(model, features, rows, ax=Figure().subplots()))
        (mesh,) = display.ax_.collections
        np.testing.assert_allclose(mesh.get_array().ravel(), display.dependence.values[0].T.ravel())
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["blue", "green", "red", "missing"]


def test_a_date_is_one_axis():
    model, rows, _ = default_case("frame-regressor")
    display = draw(PartialDependenceDisplay.from_estimator(model, "day", rows, ax=Figure().subplots()))
    assert display.ax_.get_xlabel() == "day"


def test_deciles_leave_gaps_out():
    model, rows, _ = default_case("gaps")
    display = PartialDependenceDisplay.from_estimator(model, 0, rows, ax=Figure().subplots())
    np.testing.assert_allclose(display.ticks[0], np.nanquantile(rows[:, 0], np.linspace(0.1, 0.9, 9)))


def test_a_linear_start_has_no_history():
    frame = make_frame(60)
    model = TensorTrainRegressor(max_sweeps=0, init="linear", random_state=0).fit(frame, frame_target(frame))
    with pytest.raises(ValueError, match="made no sweep"):
        ConvergenceDisplay.from_estimator(model)
