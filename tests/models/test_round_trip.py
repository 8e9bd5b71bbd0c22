"""A model that went through a file equals the one that was saved, but for rounding to float32; then to the last bit."""

import itertools
import os
import pickle
import stat
import sys
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from comparison import assert_close, assert_same, assert_same_predictions
from hostile import ModelParts
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import polytrain
from default_models import NAMES as DEFAULT_MODELS
from default_models import default_case, make_frame
from polytrain import (
    ModelFileError,
    TensorTrain,
    TensorTrainRegressor,
    config_context,
)
from polytrain.learning.losses import loss_names
from polytrain.maps import MapList, PolynomialMap, basis_names, map_kind
from power_models import power_classifier, power_regressor

N_FEATURES = 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, N_FEATURES))
LABELS = np.arange(40) % 4
FAST = {"rank": 2, "max_sweeps": 1, "random_state": 0}


def through_file(model, tmp_path):
    model.save(tmp_path / "model.polytrain")
    return polytrain.load(tmp_path / "model.polytrain")


def plain(name, value):
    """Return a parameter as it comes back from a file."""
    if isinstance(value, np.random.RandomState):
        return None
    if name == "init" and not isinstance(value, str):
        return "auto"
    if isinstance(value, dict):
        return {plain(name, key): plain(name, item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple | range | set | frozenset):
        return [plain(name, item) for item in value]
    return value


def with_plain_parameters(model):
    parameters = model.get_params(deep=False).items()
    return clone_fitted(model).set_params(**{name: plain(name, value) for name, value in parameters})


def check(model, tmp_path, rows=X):
    loaded = through_file(model, tmp_path)
    assert_close(with_plain_parameters(model), loaded)
    assert_same_predictions(model, loaded, rows, exact=False)
    again = through_file(loaded, tmp_path)
    assert_same(loaded, again)
    assert_same_predictions(loaded, again, rows)
    return loaded


@pytest.mark.parametrize(
    ("loss", "decision", "basis", "dtype", "n_classes"),
    list(
        itertools.product(
            ("logistic", "squared"),
            ("one-vs-rest", "one-vs-one", "binary-code"),
            ("power", "power-unscaled", "chebyshev", "legendre"),
            (np.float64, np.float32),
            (2, 4),
        )
    ),
)
def test_classifiers(tmp_path, loss, decision, basis, dtype, n_classes):
    model = power_classifier(loss=loss, decision=decision, basis=basis, **FAST)
    check(model.fit(X.astype(dtype), LABELS % n_classes), tmp_path)


@pytest.mark.parametrize(
    ("basis", "dtype", "size"),
    list(itertools.product(("power", "power-unscaled", "chebyshev", "legendre"), (np.float64, np.float32), (1, 1e137))),
)
def test_regressors(tmp_path, basis, dtype, size):
    model = power_regressor(basis=basis, **FAST)
    check(model.fit(X.astype(dtype), size * (X[:, 0] * X[:, 1] + 3)), tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"degree": (1, 2, 3)},
        {"degree": np.array([3, 1, 2]), "rank": np.int64(3)},
        {"degree": range(1, 4), "rank": [2, 1]},
        {"degree": np.int16(1), "rank": np.array([1, 2]), "alpha": np.float32(0.1), "tol": 0},
        {"max_sweeps": 0, "verbose": False, "warm_start": 1},
        {"solver": "lbfgs", "max_sweeps": 3, "tol": np.float64(0.5)},
        {"init": "random", "n_jobs": 1},
        {"random_state": np.random.RandomState(3)},
        {"random_state": None},
        {"random_state": np.uint32(2**32 - 1)},
        {"class_weight": "balanced"},
        {"class_weight": {0: 2.0, 3: np.float32(0.5)}},
        {"class_weight": {np.int64(1): 7}},
        {"init": [TensorTrain.random((3, 3, 3), 2, k) for k in range(4)]},
        {"init": tuple([np.ones((1, 3, 1), np.float32)] * 3 for _ in range(4))},
    ],
)
def test_parameters(tmp_path, settings):
    model = power_classifier(**{**FAST, **settings}).fit(X, LABELS)
    loaded = check(model, tmp_path)
    clone(loaded)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_checkpoint_is_not_stored(tmp_path, kind):
    folder = kind(tmp_path / "kept")
    with config_context(checkpoint=folder):
        model = power_classifier(**FAST).fit(X, LABELS)
    loaded = through_file(model, tmp_path)
    assert str(folder).encode() not in (tmp_path / "model.polytrain").read_bytes()
    assert_same_predictions(model, loaded, X, exact=False)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.parametrize("name", DEFAULT_MODELS)
def test_default_models(tmp_path, name):
    model, rows, _ = default_case(name)
    loaded = through_file(model, tmp_path)
    assert_close(model, loaded)
    assert_same_predictions(model, loaded, rows, exact=False)
    assert loaded.choice_.table() == model.choice_.table()
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model.polytrain").read_bytes()
    assert_same_predictions(model, pickle.loads(pickle.dumps(model)), rows)


@pytest.mark.parametrize("loss", loss_names("regression"))
def test_every_loss_with_all_settings_chosen(tmp_path, loss):
    model = TensorTrainRegressor(loss=loss, max_sweeps=1, random_state=0).fit(X, np.exp(X[:, 0]))
    check(model, tmp_path)
    assert all(type(value) in (int, float, tuple) for record in model.history_ for value in record.values())
    assert type(model.choice_.alpha) is float


def test_numbers_of_numpy_in_the_history(tmp_path):
    model = TensorTrainRegressor(**FAST).fit(X, X[:, 0])
    model.history_ = [{**record, "objective": np.float64(0.5), "sweep": np.int32(1)} for record in model.history_]
    assert through_file(model, tmp_path).history_ == model.history_


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_columns_that_teach_nothing(tmp_path):
    """A single level, no value at all, and a single day."""
    frame = make_frame(60)
    frame["town"], frame["gone"], frame["day"] = "Bern", None, pd.Timestamp("2024-01-01")
    model = TensorTrainRegressor(random_state=0).fit(frame, np.arange(60.0))
    assert_close(model, through_file(model, tmp_path))


@pytest.mark.parametrize(
    "categorical_features", [None, [0, 2], np.array([2]), (True, False, True), np.array([True, False, False]), range(2)]
)
def test_categories_in_an_array(tmp_path, categorical_features):
    whole = np.round(X)
    model = TensorTrainRegressor(categorical_features=categorical_features, random_state=0).fit(whole, X[:, 0])
    loaded = check(model, tmp_path, whole)
    clone(loaded).fit(whole, X[:, 0])


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_names_that_are_no_text(tmp_path):
    frame = make_frame(60)
    frame.columns = range(4)
    model = TensorTrainRegressor(random_state=0).fit(frame, np.arange(60.0))
    loaded = through_file(model, tmp_path)
    assert_close(model, loaded)
    assert not hasattr(loaded, "feature_names_in_")


@pytest.mark.parametrize("size", [1e-300, 1e137])
def test_targets_of_any_size(tmp_path, size):
    check(TensorTrainRegressor(random_state=0).fit(X, size * X[:, 0] * X[:, 1]), tmp_path)


def test_given_train_of_a_regressor(tmp_path):
    for init in (TensorTrain.random((3, 3, 3), 2, 0), [np.ones((1, 3, 1))] * 3):
        check(power_regressor(init=init, rank=2, max_sweeps=1).fit(X, X[:, 0]), tmp_path)


def test_one_number_per_column_for_very_many_columns(tmp_path):
    """Their text alone would be larger than a header may be."""
    model = power_regressor(**FAST).fit(X, X[:, 0])
    columns = range(1_000_000)
    for value in (columns, [{*columns}] * 2, np.arange(1_000_000) % 3 == 0, (0.5,) * 1_000_000):
        assert through_file(model.set_params(degree=value), tmp_path).degree == plain("degree", value)


def test_alpha_of_a_stream(tmp_path):
    """It is that of the first rows until the next block; the plan has the present one."""
    model = TensorTrainRegressor(random_state=0, rank=2)
    for rows in np.split(np.arange(40), 2):
        model.partial_fit(X[rows], X[rows, 0])
    assert model.plan_.alpha != model.choice_.alpha
    assert through_file(model, tmp_path).choice_ == model.choice_


@pytest.mark.parametrize(
    "labels",
    [
        *(np.array([0, 1, 2], dtype=code) for code in "bhilqBHILQefd"),
        np.array([-(2**63), 0, 2**63 - 1]),
        np.array([0, 1, 2**64 - 1], dtype=np.uint64),
        np.array([False, True]),
        np.array(["a", "bb", "ccc"]),
        np.array(["a", "b"], dtype="U9"),
        np.array(["ä", "日本", "\N{GRINNING FACE}"]),
        np.array(["x", "yy", ""], dtype=object),
        np.array(["1999-12-31", "2000-01-01"], dtype="datetime64[D]"),
        np.array([1, 2, 3], dtype=">i4").astype("<i4"),
    ],
    ids=lambda labels: f"{labels.dtype}",
)
def test_labels(tmp_path, labels):
    model = power_classifier(**FAST).fit(X, labels[np.arange(40) % len(labels)])
    loaded = check(model, tmp_path)
    assert not loaded.classes_.flags.writeable
    assert not model.classes_.flags.writeable


def test_labels_of_the_other_byte_order_come_back_in_the_native_one(tmp_path):
    model = power_classifier(**FAST).fit(X, LABELS.astype(">i4"))
    loaded = through_file(model, tmp_path)
    assert loaded.classes_.dtype == np.int32
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_labels_of_more_classes_than_a_byte(tmp_path):
    rows = np.linspace(-1, 1, 300).reshape(-1, 1)
    model = power_classifier(decision="binary-code", **FAST)
    check(model.fit(np.repeat(rows, 3, axis=0), np.repeat(np.arange(300), 3)), tmp_path, rows)


def test_pandas(tmp_path):
    frame = pd.DataFrame(X, columns=["length", "Breite", "高さ"])
    for labels in (pd.Series(["no", "yes"] * 20), pd.Series(["no", "yes"] * 20, dtype="category")):
        model = power_classifier(**FAST).fit(frame, labels)
        loaded = through_file(model, tmp_path)
        assert_close(model, loaded)
        assert_close(model.predict_proba(frame), loaded.predict_proba(frame))
        with pytest.raises(ValueError, match="feature names"):
            loaded.predict(frame.rename(columns={"length": "width"}))


def test_a_loaded_model_learns_on(tmp_path):
    model = power_classifier(warm_start=True, **FAST).fit(X, LABELS)
    loaded = through_file(model, tmp_path)
    assert_close(model.fit(X, LABELS).trains_, loaded.fit(X, LABELS).trains_)


def test_parameters_may_have_changed_since_the_fit(tmp_path):
    model = power_classifier(loss="squared", **FAST).fit(X, LABELS)
    model.set_params(loss="logistic", degree=5, basis="legendre", decision="one-vs-one")
    loaded = check(model, tmp_path)
    assert (loaded.plan_.loss, loaded.loss) == ("squared", "logistic")


def test_one_basis_per_column_may_be_an_array(tmp_path):
    bases = np.array(["power", "legendre", "power"])
    loaded = through_file(power_classifier(basis=bases, **FAST).fit(X, LABELS), tmp_path)
    assert loaded.basis == bases.tolist()


def test_trains_of_unequal_ranks(tmp_path):
    model = power_classifier(degree=(1, 2, 4), rank=3, max_sweeps=1, random_state=0).fit(X, LABELS)
    model.model_ = model.model_.with_trains(
        [train.round(max_rank=k + 1).cores for k, train in enumerate(model.trains_)]
    )
    assert len({train.ranks for train in model.trains_}) > 1
    check(model, tmp_path)


def test_what_a_file_cannot_hold_is_named(tmp_path):
    path = tmp_path / "model.polytrain"
    model = power_classifier(**FAST).fit(X, LABELS)
    for settings, message in (
        ({"random_state": np.random.default_rng(0)}, r"random_state holds Generator.*set_params"),
        ({"degree": iter([1])}, "degree holds <list_iterator"),
        ({"class_weight": {np.datetime64("2024-01-01"): 1.0}}, "class_weight holds datetime"),
        ({"tol": float("nan")}, "tol holds nan"),
        ({"degree": [[[[0]]]]}, r"degree holds \[0\] of type builtins.list"),
        ({"degree": [2**70] * 2000}, "degree holds Python int too large"),
    ):
        with pytest.raises(ModelFileError, match=message):
            clone_fitted(model).set_params(**settings).save(path)
    broken = clone_fitted(model)
    broken.model_ = replace(broken.model_, feature_names=["x" * 2_000_000] * 3)
    with pytest.raises(ModelFileError, match=r"bytes of text, more than the 4194304"):
        broken.save(path)
    broken.model_ = model.model_.with_trains([[1e200 * core for core in train] for train in model.model_.cores])
    with pytest.raises(ModelFileError, match="too large for floats"):
        broken.save(path)
    assert not list(tmp_path.iterdir())


def test_parameters_that_the_next_fit_would_refuse_are_stored(tmp_path):
    """The fitted model does not depend on them."""
    model = power_classifier(**FAST).fit(X, LABELS).set_params(rank=0, init=[[0]], class_weight={"other": 1.0})
    loaded = through_file(model, tmp_path)
    assert (loaded.rank, loaded.init, loaded.class_weight) == (0, "auto", {"other": 1.0})
    assert_same_predictions(model, loaded, X, exact=False)
    with pytest.raises(ValueError, match="class_weight names classes"):
        loaded.fit(X, LABELS)


def clone_fitted(model):
    return pickle.loads(pickle.dumps(model))


def test_only_fitted_estimators_of_the_package(tmp_path):
    with pytest.raises(NotFittedError):
        TensorTrainRegressor().save(tmp_path / "x")

    class Own(TensorTrainRegressor):
        pass

    with pytest.raises(ModelFileError, match=r"not .*Own. Use pickle"):
        Own(rank=2).fit(X, X[:, 0]).save(tmp_path / "x")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.polytrain"
    model = power_regressor(rank=2).fit(X, X[:, 0])
    model.save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        power_regressor(rank=2).fit(X, X[:, 1]).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other links and permissions")
def test_links_and_permissions(tmp_path):
    model = power_regressor(rank=2).fit(X, X[:, 0])
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder" / "model")
    mask = os.umask(0o027)
    try:
        model.save(str(link))
    finally:
        os.umask(mask)
    assert link.is_symlink()
    assert stat.S_IMODE((tmp_path / "folder" / "model").stat().st_mode) == 0o640
    assert_close(model, polytrain.load(str(link)))


def test_saving_twice_gives_the_same_bytes(tmp_path):
    model = power_classifier(**FAST).fit(X, LABELS)
    model.save(tmp_path / "one")
    polytrain.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_numbers_that_float32_would_change_are_kept(tmp_path):
    """A train that is small beside its intermediate values, and one that is not."""
    grid = MapList([PolynomialMap("power", 2, -1.0, 1.0)] * 2)
    for gap, is_exact in ((1e-9, True), (0.1, False)):
        # 1 - x and (1 + gap) + x, whose sum hardly depends on x
        cores = [np.array([[[1.0, 1 + gap], [-1.0, 1 - gap]]]), np.array([[[1.0], [0.0]], [[1.0], [gap / 3]]])]
        model = power_regressor(rank=2, max_sweeps=0).fit(X[:, :2], X[:, 0])
        model.model_ = replace(model.model_, maps=grid, cores=[cores], uncertainty=None)
        loaded = through_file(model, tmp_path)
        kept = [np.array_equal(*pair) for pair in zip(cores, loaded.model_.cores[0], strict=True)]
        assert all(kept) == is_exact
        rows = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        values = model.model_.values(rows)
        assert np.abs(loaded.model_.values(rows) - values).max() <= 1e-6 * np.ptp(values)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")  # the first column is the target
@pytest.mark.parametrize("basis", [basis for basis in basis_names() if map_kind(basis).needs_values])
def test_functions_that_follow_from_the_points_are_not_stored(tmp_path, basis):
    rows = np.random.default_rng(0).normal(size=(300, 2)).round(2 if basis == "spline-distinct" else 6)
    rows[:20, 1] = np.nan
    if basis == "category":
        rows = rows.round()
    model = TensorTrainRegressor(basis=basis, rank=1, alpha=0.1, max_sweeps=1, random_state=0).fit(rows, rows[:, 0])
    loaded = through_file(model, tmp_path)
    header = (tmp_path / "model.polytrain").read_bytes()
    parts = ModelParts(header)
    kind = map_kind(basis).kind
    assert parts.arrays[f"map.{kind}.computed"].tolist() == [basis != "category"] * 2
    numbers = [feature_map.n * (len(feature_map.points) if basis == "category" else 1) for feature_map in model.maps_]
    assert len(parts.arrays[f"map.{kind}.table"]) == sum(numbers)
    for one, two in zip(model.maps_, loaded.maps_, strict=True):
        assert_same(one.points, two.points)
        for function, computed in zip(one.table, two.table, strict=True):
            assert_allclose(computed, function, rtol=0, atol=1e-5 * np.abs(function).max())
    assert_allclose(loaded.predict(rows), model.predict(rows), rtol=0, atol=1e-6 * np.ptp(model.predict(rows)))


def test_other_tools_can_open_the_arrays(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    model = power_classifier(**FAST).fit(X, LABELS)
    model.save(tmp_path / "model")
    tensors = safetensors.load_file(tmp_path / "model")
    first = model.trains_[0]
    cores = np.concatenate([core.ravel() for core in first.cores])
    assert_same(tensors["cores"][: first.n_parameters], cores.astype(np.float32))
    assert_same(tensors["ranks"][0], np.array(first.ranks, dtype=np.int32))
    assert_same(tensors["map.polynomial.range"], np.array([feature_map.range for feature_map in model.maps_]))


@pytest.mark.parametrize(
    "model",
    [
        power_classifier(decision="one-vs-one", degree=(1, 2, 3), **FAST),
        power_classifier(loss="squared", **FAST),
        power_regressor(basis="legendre", **FAST),
    ],
)
def test_pickle_joblib_and_skops(tmp_path, model):
    model = model.fit(X, LABELS)
    copies = [pickle.loads(pickle.dumps(model))]
    joblib.dump(model, tmp_path / "joblib")
    copies.append(joblib.load(tmp_path / "joblib"))
    skops = pytest.importorskip("skops.io")
    raw = skops.dumps(model)
    trusted = skops.get_untrusted_types(data=raw)
    assert all(name.startswith(("polytrain.", "numpy.")) for name in trusted)
    copies.append(skops.loads(raw, trusted=trusted))
    for copy in copies:
        assert_same_predictions(model, copy, X)
        check(copy, tmp_path)


@pytest.fixture
def trusted_by_skops():
    skops = pytest.importorskip("skops.io")

    def types(model):
        found = skops.get_untrusted_types(data=skops.dumps(model))
        assert all(kind.startswith(("polytrain.", "numpy.")) for kind in found)
        return found

    return types


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")  # some rows are beyond the range
@pytest.mark.parametrize("name", ["three-classes", "gaps", "frame", "frame-regressor"])
def test_skops_keeps_default_models(name, trusted_by_skops):
    model, rows, _ = default_case(name)
    skops = pytest.importorskip("skops.io")
    copy = skops.loads(skops.dumps(model), trusted=trusted_by_skops(model))
    assert_same_predictions(model, copy, rows)


@pytest.mark.filterwarnings("ignore:.*type hint:UserWarning:mlflow")  # about MLflow's own code
@pytest.mark.parametrize("kind", ["skops", "cloudpickle"])
@pytest.mark.parametrize("name", ["three-classes", "frame", "frame-regressor"])
def test_mlflow_keeps_default_models(tmp_path, name, kind, trusted_by_skops):
    pytest.importorskip("mlflow", minversion="3.17")
    from mlflow import sklearn

    model, rows, _ = default_case(name)
    options = {"skops_trusted_types": trusted_by_skops(model)} if kind == "skops" else {}
    # Requirements are given: MLflow finds out others in a process of its own.
    sklearn.save_model(model, tmp_path / "m", serialization_format=kind, pip_requirements=["polytrain"], **options)
    assert_same_predictions(model, sklearn.load_model(str(tmp_path / "m")), rows)


def test_parts_of_dates_give_way_to_columns_of_the_same_name(tmp_path):
    frame = pd.DataFrame({"when": pd.date_range("2020", "2023", periods=60), "when (month)": np.arange(60.0) % 7})
    model = TensorTrainRegressor(random_state=0, rank=2).fit(frame, np.arange(60.0) % 5)
    names = model.model_.columns.feature_names
    assert names[1] == "when (month) (2)"
    assert names[-1] == "when (month)"
    assert len(set(names)) == len(names)
    model.save(tmp_path / "m")
    assert polytrain.load(tmp_path / "m").model_.feature_names == names
