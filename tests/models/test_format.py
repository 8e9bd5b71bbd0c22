"""Files written once must be read for ever; that of format 2 is read in tests/tables/test_table_section.py."""

from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

import polytrain
from polytrain.models.file import FORMAT

DATA = Path(__file__).parents[1] / "data"
# A row below, within and above the ranges that the model saw, and what it said when it was written.
ROWS = np.array([[-9.0, 0.25], [0.5, -0.5], [0.0, 0.0], [0.75, 9.0]])
PREDICTED = ["no", "yes", "perhaps", "yes"]
PROBABILITIES = np.array(
    [
        [0.7657559010768381, 0.23424374299948483, 3.559236769860671e-07],
        [0.0012397264689311543, 0.1861849177452592, 0.8125753557858096],
        [0.16079688380496568, 0.7723600222834268, 0.0668430939116075],
        [0.0002624154670832137, 0.12350922933762688, 0.8762283551952899],
    ]
)


def test_format_1():
    assert FORMAT >= 1
    model = polytrain.load(DATA / "format1.polytrain")
    assert isinstance(model, polytrain.TensorTrainClassifier)
    assert_array_equal(model.feature_names_in_, ["length", "width"])
    assert_array_equal(model.classes_, ["no", "perhaps", "yes"])
    assert (model.degree, model.rank, model.basis, model.alpha) == ([1, 2], 2, "chebyshev", 1e-3)
    assert model.trains_[0].dims == (2, 3)
    assert len(model.history_) == 6
    assert model.history_[-1]["ranks"] == (1, 2, 1)
    del model.feature_names_in_
    assert_array_equal(model.predict(ROWS), PREDICTED)
    assert_allclose(model.predict_proba(ROWS), PROBABILITIES, rtol=1e-12)


def test_format_3():
    model = polytrain.load(DATA / "format3.polytrain")
    assert isinstance(model, polytrain.TensorTrainRegressor)
    assert_array_equal(model.feature_names_in_, ["length", "Breite", "constant"])
    assert [(m.basis, m.n) for m in model.maps_] == [("legendre", 4), ("power", 2), ("chebyshev", 3)]
    assert model.maps_[2].range == (5.0, 5.0)
    del model.feature_names_in_
    rows = np.array([[-9.0, 0.25, 5.0], [0.5, -0.5, 4.0], [0.0, 0.0, 5.0]])
    predicted = [[-2.54735969e-01, 1.00949557e02], [-2.35874902e-01, 1.00253254e02], [-2.71589803e-03, 1.00007529e02]]
    assert_allclose(model.predict(rows), predicted, rtol=1e-7)
