"""Explanations of rows, beside coalitions whose absent columns are averaged over a full grid of background values."""

import itertools
import math
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from default_models import NAMES, default_case, frame_target, make_frame
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.explain import LocalExplanations, explain_local, local
from polytrain.explain.local import number_format
from power_models import power_classifier, power_regressor


def brute_force(model, row, background):
    """Shapley values (columns, scores) and mean scores of one row of features, from the scores of whole rows only.

    An absent column takes all of its features from one of the background rows, each column from any of them.
    """
    columns = model.model_.columns
    sources = np.arange(len(row)) if columns is None else columns.sources
    d, n_scores = int(sources.max()) + 1, model.model_.n_trains
    draws = np.array(list(itertools.product(range(len(background)), repeat=d)))
    worth = {}
    for inside in itertools.product([False, True], repeat=d):
        rows = background[draws[:, sources], np.arange(len(row))]
        kept = np.array(inside)[sources]
        rows[:, kept] = row[kept]
        worth[inside] = model.model_.scores(rows).mean(axis=1)
    found = np.zeros((d, n_scores))
    for k in range(d):
        for inside, value in worth.items():
            if not inside[k]:
                size = sum(inside)
                weight = math.factorial(size) * math.factorial(d - 1 - size) / math.factorial(d)
                found[k] += weight * (worth[(*inside[:k], True, *inside[k + 1 :])] - value)
    return found, worth[(False,) * d]


def check_sums(found):
    np.testing.assert_allclose(found.values.sum(axis=1), found.scores - found.base, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_equal_to_brute_force(name):
    """Several classes, calibrated scores, gaps, categories, unknown levels, and dates of several features."""
    model, rows, features = default_case(name)
    found = explain_local(model, rows[:3], X_background=rows[4:7])
    for row in range(3):
        values, base = brute_force(model, features[row], features[4:7])
        np.testing.assert_allclose(found.values[row], values, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.base, base, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found.scores, model.model_.scores(features[:3]).T)
    check_sums(found)


@pytest.mark.parametrize("dims", [(3,), (2, 4), (2, 3, 2, 2, 3), (2, 3, 2, 2, 3, 2, 2, 2)])
def test_random_polynomials_equal_brute_force(random_model, dims):
    """Degree 1 columns are linear ones."""
    model = random_model(dims, seed=5)
    rng = np.random.default_rng(1)
    X, background = (rng.uniform(0.5, 3, size=(2, len(dims))) for _ in range(2))
    found = explain_local(model, X, X_background=background)
    for row in range(2):
        values, base = brute_force(model, X[row], background)
        np.testing.assert_allclose(found.values[row], values, rtol=1e-8, atol=1e-9 * np.abs(values).max())
        np.testing.assert_allclose(found.base, base, rtol=1e-9)


def test_without_background_polynomials_are_uniform(random_model):
    """Two Gauss-Legendre nodes, which weigh the same, stand for the range: exactly, for squares."""
    model = random_model((3, 2, 3), seed=1)
    low, high = np.array([one.range for one in model.maps_]).T
    nodes = (low + high) / 2 + np.array([[-1.0], [1.0]]) * (high - low) / 2 / np.sqrt(3)
    X = np.random.default_rng(0).uniform(low, high, size=(4, 3))
    one, other = explain_local(model, X), explain_local(model, X, X_background=nodes)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.base, other.base, rtol=1e-9)


def test_without_background_columns_are_as_in_training():
    """With few values and one feature per column, the maps know the training rows to the last one."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.integers(0, 6, 200).astype(float), "c": rng.choice(["a", "b", "c"], 200)})
    X.loc[::9, "n"] = np.nan
    X.loc[::7, "c"] = None
    y = X["n"].fillna(9) * (X["c"] == "a") + rng.normal(size=200)
    model = TensorTrainRegressor(random_state=0).fit(X, y)
    one, other = explain_local(model, X[:20]), explain_local(model, X[:20], X_background=X)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-6, atol=1e-8)
    assert one.cells[0] == ("missing", "missing")
    assert one.cells[1] == (str(int(X["n"][1])), X["c"][1])


def test_dates_without_background_are_a_product_of_their_parts():
    model, rows, _ = default_case("frame-regressor")
    found = explain_local(model, rows)
    assert found.column_names == ("size", "colour", "town", "day")
    check_sums(found)


def test_columns_without_effect_and_exact_sums_of_single_columns():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 3))
    model = TensorTrainRegressor(random_state=0, interaction_cst="no_interactions").fit(X, X[:, 0] ** 2 + X[:, 1])
    found = explain_local(model, X[:5], X_background=X)
    for k in range(2):  # the value is then the column's own function, centred
        changed = np.tile(X[0], (len(X), 1))
        changed[:, k] = X[:, k]
        own = model.predict(X[:1]) - model.predict(changed).mean()
        np.testing.assert_allclose(found.values[0, k, 0], own[0], rtol=1e-8, atol=1e-10)


def test_rows_are_explained_in_blocks(monkeypatch):
    model, rows, _ = default_case("frame-regressor")
    expected = explain_local(model, rows[:7])
    monkeypatch.setattr(local, "_BLOCK_NUMBERS", 1)
    np.testing.assert_allclose(explain_local(model, rows[:7]).values, expected.values, rtol=1e-12, atol=1e-14)


def test_which_score():
    model, rows, _ = default_case("three-classes")
    everything = explain_local(model, rows[:4])
    assert everything.values.shape == (4, 4, 3)
    assert everything.score_names == ("0", "1", "2")
    for output in (2, "2"):
        found = explain_local(model, rows[:4], output=output)
        np.testing.assert_array_equal(found.values[:, :, 0], everything.values[:, :, 2])
        assert found.score_names == ("2",)
    with pytest.raises(ValueError, match="there is no output '7'; the outputs are 0, 1, 2"):
        explain_local(model, rows[:4], output="7")
    with pytest.raises(ValueError, match="output must be an integer between 0 and 2"):
        explain_local(model, rows[:4], output=3)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_scales():
    X, y = load_iris(return_X_y=True)
    settings = {"rank": 2, "max_sweeps": 1, "random_state": 0}

    def scale(model, target):
        return explain_local(model.fit(X, target), X[:1]).score_label()

    assert scale(power_classifier(**settings), y == 0) == "log-odds of True"
    assert scale(power_classifier(loss="squared", **settings), y) == "score of 0"
    assert scale(power_classifier(loss="multinomial", **settings), y) == "pre-softmax score of 0"
    assert scale(power_regressor(**settings), X[:, 0]) == "prediction"
    assert scale(power_regressor(loss="poisson", **settings), y) == "log of the prediction"
    assert scale(power_regressor(**settings), X[:, :2]) == "prediction of output 0"


def test_the_range_must_be_known(make_model):
    from polytrain import TensorTrain

    model = make_model(TensorTrain.random((2, 2), 2, random_state=0), basis="power-unscaled")
    with pytest.raises(ValueError, match="does not know the range of its feature 'x1'"):
        explain_local(model, [[0.5, 0.5]])
    check_sums(explain_local(model, [[0.5, 0.5]], X_background=[[0.0, 0.1], [0.3, 0.4]]))


def test_rows_that_overflow_are_named(make_model):
    from polytrain import TensorTrain

    model = make_model(TensorTrain.random((3, 3), 2, random_state=0), basis="power-unscaled")
    with pytest.raises(ValueError, match="the score of row 1 exceeds the largest float"):
        explain_local(model, [[0.5, 0.5], [1e200, 1e200]], X_background=[[0.0, 0.1]])


# --- pipelines --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gappy():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(10, 5, size=(150, 4)), columns=["noise", "a", "b", "c"])
    y = X["a"] * X["b"] + 10 * X["c"]
    X.loc[::11, "a"] = np.nan
    return X, y


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize("out", ["default", "pandas"])
def test_pipelines_that_keep_columns(gappy, as_frame, out):
    X, y = gappy
    X = X if as_frame else X.to_numpy()
    steps = SimpleImputer(), "passthrough", StandardScaler(), SelectKBest(lambda X, y: -np.arange(4.0)[::-1], k=3)
    pipeline = make_pipeline(*steps, power_regressor(random_state=0)).set_output(transform=out).fit(X, y)
    found = explain_local(pipeline, X[:12], X_background=X)
    assert found.column_names == (("a", "b", "c") if as_frame else ("x2", "x3", "x4"))
    assert [cells[0] for cells in found.cells[:1]] == ["missing"]
    value = X.iloc[1, 1] if as_frame else X[1, 1]
    assert found.cells[1][0] == f"{value:.6g}"
    check_sums(found)
    np.testing.assert_allclose(found.scores[:, 0], pipeline.predict(X[:12]))
    last = explain_local(pipeline[-1], pipeline[:-1].transform(X[:12]), X_background=pipeline[:-1].transform(X))
    np.testing.assert_array_equal(found.values, last.values)


def test_pipelines_of_one_step_and_with_categories():
    frame = make_frame()
    target = frame_target(frame)
    alone = make_pipeline(TensorTrainRegressor(random_state=0)).fit(frame, target)
    found = explain_local(alone, frame[:3])
    assert found.column_names == ("size", "colour", "town", "day")
    kept = make_pipeline(FunctionTransformer(feature_names_out="one-to-one"), alone[-1]).fit(frame, target)
    np.testing.assert_allclose(explain_local(kept, frame[:3]).values, found.values)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_pipelines_that_make_new_columns(gappy):
    X, y = gappy
    X = X.fillna(0.0)
    rotated = make_pipeline(StandardScaler(), PCA(2), power_regressor(rank=2, max_sweeps=1)).fit(X, y)
    with pytest.raises(ValueError, match=r"step 'pca' \(PCA\) .* such as 'pca0'.*model\[:-1\].transform\(X\)"):
        explain_local(rotated, X)
    silent = make_pipeline(FunctionTransformer(np.log1p), power_regressor(rank=2, max_sweeps=1)).fit(X.abs(), y)
    with pytest.raises(ValueError, match=r"\(FunctionTransformer\) of the pipeline does not name the columns"):
        explain_local(silent, X)
    doubled = FunctionTransformer(lambda X: np.hstack([X, X]), feature_names_out=lambda _, names: [*names, *names])
    with pytest.raises(ValueError, match="makes several columns of one"):
        explain_local(make_pipeline(doubled, power_regressor(rank=2, max_sweeps=1)).fit(X, y), X)


# --- what people read -------------------------------------------------------------------------------------------------


def test_frames_of_results():
    model, rows, _ = default_case("three-classes")
    found = explain_local(model, rows[:2])
    frame = found.to_frame()
    assert len(frame) == 2 * 3 * 4
    assert list(frame.columns) == ["row", "score_of", "column", "value", "contribution", "mean", "score"]
    for (row, name), part in frame.groupby(["row", "score_of"]):
        place = found.score_names.index(name)
        np.testing.assert_array_equal(part["contribution"], found.values[row, :, place])
        assert part["column"].tolist() == list(found.column_names)
        assert part["value"].tolist() == list(found.cells[row])
        assert set(part["mean"]) == {found.base[place]}
        assert set(part["score"]) == {found.scores[row, place]}


@pytest.mark.parametrize("name", ["gaps", "frame-regressor", "three-classes"])
def test_what_shap_is_given(monkeypatch, name):
    """Its own class where it is installed, a stand-in with the same arguments elsewhere."""

    def explanation(values, base_values, data, **names):
        return SimpleNamespace(values=values, base_values=base_values, data=data, **names)

    monkeypatch.setitem(sys.modules, "shap", SimpleNamespace(Explanation=explanation))
    model, rows, _ = default_case(name)
    found = explain_local(model, rows[:6])
    given = found.to_shap()
    n_scores = len(found.score_names)
    assert given.feature_names == list(found.column_names)
    assert given.data.shape == (6, len(found.column_names))
    if n_scores == 1:
        assert given.values.shape == given.data.shape
        scores = given.values.sum(axis=1) + given.base_values
        np.testing.assert_allclose(scores, found.scores[:, 0], rtol=1e-9, atol=1e-9)
    else:
        assert given.output_names == list(found.score_names)
        np.testing.assert_allclose(given.values.sum(axis=1) + given.base_values, found.scores, rtol=1e-9, atol=1e-9)
        one = explain_local(model, rows[:6], output=1).to_shap()
        np.testing.assert_array_equal(one.values, given.values[..., 1])
        np.testing.assert_array_equal(one.base_values, given.base_values[:, 1])
    if name == "frame-regressor":
        assert given.data[:, 0].tolist() == pytest.approx(rows["size"][:6].tolist(), rel=1e-5)
        assert given.data[:4, 2].tolist() == ["unknown"] * 4
    else:
        np.testing.assert_allclose(given.data.astype(float), np.asarray(rows)[:6], rtol=1e-5)


def test_plots_of_shap():
    shap = pytest.importorskip("shap")
    plt = pytest.importorskip("matplotlib.pyplot")
    model, rows, _ = default_case("frame-regressor")
    given = explain_local(model, rows).to_shap()
    assert isinstance(given, shap.Explanation)
    for draw, drawn in ((shap.plots.waterfall, given[0]), (shap.plots.beeswarm, given), (shap.plots.bar, given)):
        figure = plt.figure()
        draw(drawn, show=False)
        assert [
            name for axes in figure.axes for text in axes.get_yticklabels() if "colour" in (name := text.get_text())
        ]
        plt.close(figure)
    model, rows, _ = default_case("three-classes")
    assert explain_local(model, rows[:5]).to_shap()[..., 2].shape == (5, 4)


def test_shap_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    model, rows, _ = default_case("regressor")
    with pytest.raises(ImportError, match="pip install shap"):
        explain_local(model, rows[:2]).to_shap()


def test_rows_have_the_labels_of_the_frame():
    model, rows, _ = default_case("frame-regressor")
    found = explain_local(model, rows.set_axis([f"person {k}" for k in range(len(rows))]).iloc[[7, 3]])
    assert found.row_names == ("person 7", "person 3")
    assert str(found).split("\n")[1].startswith("row person 3: prediction ")


def test_print():
    values = np.array([[[0.75], [-0.25], [0.0], [1e-9]]])
    found = LocalExplanations(
        values, np.array([-1.25]), np.array([[-0.75]]), tuple("abcd"), (tuple("1234"),), (5,), ("yes",), "log-odds"
    )
    assert str(found) == "row 5: log-odds of yes -0.75 = mean -1.25 + a (1) 0.75 - b (2) 0.25 + d (4) 0.00 + c (3) 0.00"
    assert found.sentence(most=1) == "row 5: log-odds of yes -0.75 = mean -1.25 + a (1) 0.75 - 3 other columns 0.25"
    assert found.sentence(most=3) == str(found)  # a single column has its name
    assert repr(found).startswith("<LocalExplanations: 1 rows, 4 columns, 1 scores")


def test_long_prints_are_cut():
    model, rows, _ = default_case("three-classes")
    lines = str(explain_local(model, rows[:20])).split("\n")
    assert len(lines) == 11
    assert lines[-1] == "... and 50 more"


def test_number_format():
    assert [number_format([number])(number) for number in (0.0, -0.001, 1.234, 152.13, 99999.5, 1e30)] == [
        "0", "-0.00100", "1.23", "152", "100,000", "1e30"
    ]  # fmt: skip


def test_hostile_names_stay_text(tmp_path):
    escape = "\x1b]0;owned\x07"
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"=size{escape}": rng.normal(size=60), 'k"ind\n,<b>': rng.choice(["=1+1", f"b\r{escape}"], 60)})
    y = np.where(X.iloc[:, 0] > 0, "=cmd()", "c\nfake row 0: score")
    model = TensorTrainClassifier(rank=2, alpha=1e-3, basis="spline", bandwidth=1.0, random_state=0).fit(X, y)
    found = explain_local(model, X[:4])
    assert all(line.isprintable() for line in str(found).split("\n"))
    assert len(str(found).split("\n")) == 4
    path = tmp_path / "found.csv"
    found.to_frame().to_csv(path, index=False, lineterminator="\n")
    with path.open(newline="") as stream:
        again = pd.read_csv(stream, lineterminator="\n")
    assert again["column"].tolist() == list(X.columns) * 4
    assert again["value"].tolist()[1::2] == X.iloc[:4, 1].tolist()
