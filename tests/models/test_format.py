"""Files written once must be read for ever; that of format 2 is read in tests/tables/test_table_section.py."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
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


@pytest.mark.parametrize("version", [1, 2, 3])
def test_older_formats_know_of_no_choice(version):
    model = polytrain.load(DATA / f"format{version}.polytrain")
    assert (model.choice_.basis, model.choice_.bandwidth, model.choice_.tried) == (None, None, ())
    assert (model.choice_.alpha, model.choice_.rank) == (model.plan_.alpha, max(model.plan_.ranks))
    assert not model.model_.calibrated
    assert model.model_.columns is None
    assert model.bandwidth is None  # what it stood for before it could be left open
    assert "auto" not in (model.basis, model.rank, model.alpha, model.init, model.max_sweeps)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_older_files_are_saved_in_the_format_of_today(tmp_path, version):
    model = polytrain.load(DATA / f"format{version}.polytrain")
    model.save(tmp_path / "now")
    again = polytrain.load(tmp_path / "now")
    rows = np.linspace(-1, 1, 3 * model.n_features_in_).reshape(3, -1)
    assert_array_equal(again.model_.predict(rows), model.model_.predict(rows))
    assert b'"version":"%d"' % FORMAT in (tmp_path / "now").read_bytes()


def test_format_4():
    """What tests/data/write_format4.py has made."""
    model = polytrain.load(DATA / "format4.polytrain")
    assert isinstance(model, polytrain.TensorTrainClassifier)
    assert_array_equal(model.feature_names_in_, ["length", "Farbe", "town", "day"])
    fitted = model.model_
    assert fitted.feature_names == ("length", "Farbe", "town", "day (time)", "day (month)", "day (weekday)")
    assert fitted.columns.levels[1:3] == [("blau", "grün", "rot"), ("Bern", "Graz")]
    assert fitted.calibrated
    assert (model.loss, model.alpha, model.rank, model.categorical_features) == ("auto", "auto", 2, "from_dtype")
    assert (model.choice_.basis, model.choice_.bandwidth, model.choice_.alpha) == ("gauss", 2.0, 1e-3)
    assert model.choice_.tried[-1][:4] == ("linear", "gauss", 2.0, 0.32)
    assert len(model.choice_.reasons) == 2
    rows = pd.DataFrame(
        {
            "length": [-9.0, 0.25, 0.5, 0.0],
            "Farbe": ["rot", "blau", None, "lila"],
            "town": ["Bern", None, "Graz", "Wien"],
            "day": pd.to_datetime(["2024-02-01", "2023-12-31", None, "2024-03-30"]),
        }
    )
    probabilities = [
        [0.2040508790581701, 0.7684422637458602, 0.02750685719596968],
        [0.00761906985885318, 0.2674128291117003, 0.7249681010294465],
        [0.05368639774779273, 0.20228297544573573, 0.7440306268064716],
        [0.10047356567486793, 0.37369706466696706, 0.5258293696581651],
    ]
    assert model.predict(rows).tolist() == ["perhaps", "yes", "yes", "yes"]
    assert_allclose(model.predict_proba(rows), probabilities, rtol=1e-10)


def test_format_4_knows_of_no_uncertainty(tmp_path):
    """Nor do older ones: a regressor of format 3 says so, and says it again once it is saved in the format of today."""
    model = polytrain.load(DATA / "format3.polytrain")
    model.save(tmp_path / "now")
    for read in (model, polytrain.load(tmp_path / "now")):
        assert read.model_.uncertainty is None
        with pytest.raises(ValueError, match="read from a file of format 4 or older"):
            read.model_.deviations(np.zeros((1, 3)))
    assert polytrain.load(DATA / "format4.polytrain").model_.uncertainty is None


def test_format_5():
    """What tests/data/write_format5.py has made."""
    model = polytrain.load(DATA / "format5.polytrain")
    assert isinstance(model, polytrain.TensorTrainRegressor)
    assert (model.basis, model.rank, model.calibration_fraction) == ("smooth", 2, 0.3)
    known = model.model_.uncertainty
    assert known.guaranteed
    assert [train.left_out.n_rows for train in known.trains] == [22, 22]
    rows = np.array([[-9.0, 0.25], [0.5, np.nan], [0.0, 0.0], [0.75, 9.0]])
    mean = [
        [-0.21042850762817908, 98.924634756672958],
        [0.07718520420754274, 100.23702241060982],
        [0.0061642794179464777, 100.09007316234913],
        [0.66825736900822863, 100.50372436451121],
    ]
    std = [
        [0.15637159220306607, 0.568718516004866],
        [0.16532694479504856, 0.5597141136477688],
        [0.14838149684390517, 0.5025232034160141],
        [0.18610241874694586, 0.5777446329333482],
    ]
    found = model.predict(rows, return_std=True)
    assert_allclose(found[0], mean, rtol=1e-10)
    assert_allclose(found[1], std, rtol=1e-10)
    first = [[-0.45621071661304602, 0.035353701356687833], [98.12662141678986, 99.722648096556057]]
    assert_allclose(model.predict_interval(rows, coverage=0.8)[0], first, rtol=1e-10)
