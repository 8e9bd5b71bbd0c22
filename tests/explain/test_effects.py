"""Effects of columns, against sums over the grid of all values of all columns."""

import itertools

import numpy as np
import pandas as pd
import pytest

from default_models import NAMES, default_case
from polytrain import Polynomial, TensorTrain, TensorTrainClassifier, TensorTrainRegressor
from polytrain.explain import effects, sobol_indices


def mixed_table(n_rows=300, seed=0):
    """Few values per column, so that the grid of all is small: numbers, a category, both with gaps, and dates."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.integers(-2, 3, n_rows).astype(float),
            "job": rng.choice(["cook", "smith", "judge"], n_rows, p=[0.6, 0.3, 0.1]),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 4, n_rows) * 40, unit="D"),
            "flag": rng.random(n_rows) < 0.3,
        }
    )
    frame.loc[rng.random(n_rows) < 0.15, "size"] = np.nan
    frame.loc[rng.random(n_rows) < 0.1, "job"] = None
    return frame


def mixed_target(frame):
    size = frame["size"].fillna(1.5).to_numpy()
    job = frame["job"].map({"cook": 0.0, "smith": 1.0, "judge": 2.0}).fillna(-1.0).to_numpy()
    month = frame["day"].dt.month.to_numpy()
    return size + 0.5 * size * job + 0.3 * month * frame["flag"] + job * size * frame["flag"]


@pytest.fixture(scope="module")
def mixed():
    frame = mixed_table()
    model = TensorTrainRegressor(basis="spline", bandwidth=2.0, rank=5, alpha=1e-5, max_sweeps=6, random_state=0)
    bases = ["spline", "category", *["spline"] * 4]  # a date becomes time, month and weekday
    return model.set_params(basis=bases).fit(frame, mixed_target(frame)), frame


def column_grid(model, X):
    """All combinations of the values of whole columns, with scores and the weights of each column."""
    values, weights = [], []
    for name in X.columns:
        counts = X[name].value_counts(dropna=False, sort=False)
        values.append(list(counts.index))
        weights.append(counts.to_numpy() / len(X))
    table = pd.DataFrame(list(itertools.product(*values)), columns=X.columns).astype(X.dtypes)
    return values, weights, model.predict(table).reshape([len(some) for some in values])


def decompose(scores, weights):
    """Main effects and pairs of a table of scores, straight from their definition."""
    d = scores.ndim

    def mean(keep):
        found = scores
        for k in range(d):
            if k not in keep:
                found = np.sum(
                    found * weights[k].reshape([-1 if j == k else 1 for j in range(d)]), axis=k, keepdims=True
                )
        return found

    whole = mean(())
    main = [mean((k,)) - whole for k in range(d)]
    pairs = {
        (i, j): mean((i, j)) - main[i] - main[j] - whole for i, j in itertools.combinations(range(d), 2)
    }  # fmt: skip
    return whole.item(), main, pairs


def variance(component, weights):
    found = component**2
    for k, some in enumerate(weights):
        if component.shape[k] > 1:
            found = np.sum(
                found * some.reshape([-1 if j == k else 1 for j in range(found.ndim)]), axis=k, keepdims=True
            )
    return found.item()


def test_effects_of_a_mixed_table_equal_sums_over_whole_columns(mixed):
    """Parts of a date belong together, levels of a category exclude each other, and a gap is a value."""
    model, frame = mixed
    values, weights, scores = column_grid(model, frame)
    whole, main, pairs = decompose(scores, weights)
    total = variance(scores - whole, weights)
    found = effects(model, frame, top_pairs=6)
    assert found.mean == pytest.approx(whole)
    assert found.deviation == pytest.approx(np.sqrt(total))
    assert found.n_rows == len(frame)
    for k, effect in enumerate(found.main):
        assert effect.name == frame.columns[k]
        assert effect.share == pytest.approx(variance(main[k], weights) / total, rel=1e-8, abs=1e-13)
        expected = dict(zip(map(str, values[k]), main[k].ravel(), strict=True))
        if effect.kind == "number":
            grid = [str(bool(x)) if effect.name == "flag" else str(x) for x in effect.grid]
        else:
            grid = [str(pd.Timestamp(x)) if effect.kind == "date" else x for x in effect.grid]
        shown = [(value, x) for value, x in zip(effect.values, grid, strict=True) if x in expected]
        assert len(shown) == len([name for name in expected if name not in ("nan", "None")])
        for value, name in shown:
            assert value == pytest.approx(expected[name], rel=1e-8, abs=1e-10)
        gap = [main[k].ravel()[place] for place, value in enumerate(values[k]) if pd.isna(value)]
        assert (effect.missing is not None) == bool(gap)
        if gap:
            assert effect.missing == pytest.approx(gap[0])
            assert effect.missing_count == frame.iloc[:, k].isna().sum()
    assert len(found.pairs) == 6
    for pair in found.pairs:
        place = tuple(frame.columns.get_loc(name) for name in pair.names)
        assert pair.share == pytest.approx(variance(pairs[place], weights) / total, rel=1e-7, abs=1e-13)
    assert found.main_share + found.pair_share + found.rest_share == pytest.approx(1)
    assert found.pair_share == pytest.approx(sum(variance(p, weights) for p in pairs.values()) / total)
    assert [pair.share for pair in found.pairs] == sorted((pair.share for pair in found.pairs), reverse=True)


def test_terms_of_rows_are_the_components(mixed):
    model, frame = mixed
    values, weights, scores = column_grid(model, frame)
    whole, main, pairs = decompose(scores, weights)
    table = pd.DataFrame(list(itertools.product(*values)), columns=frame.columns).astype(frame.dtypes)
    found = effects(model, frame, top_pairs=6)
    terms = found.of_rows(table)
    for k in range(4):
        np.testing.assert_allclose(terms.main[:, k], np.broadcast_to(main[k], scores.shape).ravel(), atol=1e-9)
    for k, pair in enumerate(found.pairs):
        place = tuple(frame.columns.get_loc(name) for name in pair.names)
        np.testing.assert_allclose(terms.pairs[:, k], np.broadcast_to(pairs[place], scores.shape).ravel(), atol=1e-9)
    higher = scores - whole - sum(main) - sum(pairs.values())
    np.testing.assert_allclose(terms.rest, higher.ravel(), atol=1e-9)
    assert variance(higher, weights) / found.deviation**2 == pytest.approx(found.rest_share, abs=1e-12)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("given", [True, False])
def test_effects_sum_to_the_score(name, given):
    model, rows, features = default_case(name)
    scores = model.model_.scores(features)
    for output in range(len(scores)):
        found = effects(model, rows if given else None, output=output, top_pairs=3)
        terms = found.of_rows(rows)
        total = terms.mean + terms.main.sum(axis=1) + terms.pairs.sum(axis=1) + terms.rest
        np.testing.assert_allclose(total, scores[output], rtol=1e-12)
        if given:  # main effects have mean 0 over the rows
            np.testing.assert_allclose(terms.main.mean(axis=0), 0, atol=1e-9 * found.deviation)
    if name == "two-classes":
        np.testing.assert_allclose(total, model.decision_function(rows))
    if name == "regressor":
        low, high = model.model_.limits[:, 0]
        np.testing.assert_allclose(np.clip(total, low, high), model.predict(rows))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("given", [True, False])
def test_shares_are_sobol_indices(name, given):
    model, rows, _ = default_case(name)
    X = rows if given else None
    indices = sobol_indices(model, X)
    for output in range(len(indices.total)):
        found = effects(model, X, output=output, top_pairs=100)
        assert [effect.share for effect in found.main] == pytest.approx(indices.first[output].tolist(), abs=1e-12)
        assert [effect.total for effect in found.main] == pytest.approx(indices.total[output].tolist(), abs=1e-12)
        for pair in found.pairs:
            i, j = (indices.feature_names.index(name) for name in pair.names)
            assert pair.share == pytest.approx(indices.second[output, i, j], rel=1e-8, abs=1e-13)
        assert found.rest_share == pytest.approx(indices.higher[output], abs=1e-10)
        assert found.mean == pytest.approx(indices.mean[output])


def test_nothing_is_left_of_pairs_and_main_effects(make_model):
    model = make_model(Polynomial.parse("1 + 2*x1 - x2^2 + 3*x1*x3 + x2*x3").to_train(), intercept=0.5)
    found = effects(model, top_pairs=6)
    assert [pair.names for pair in found.pairs] == [("x1", "x3"), ("x2", "x3")]
    assert found.rest_share == pytest.approx(0, abs=1e-12)
    X = np.random.default_rng(0).uniform(-1, 1, size=(20, 3))
    terms = found.of_rows(X)
    np.testing.assert_allclose(terms.rest, 0, atol=1e-12)
    np.testing.assert_allclose(terms.pairs, np.column_stack([3 * X[:, 0] * X[:, 2], X[:, 1] * X[:, 2]]), atol=1e-12)
    np.testing.assert_allclose(terms.main, np.column_stack([2 * X[:, 0], 1 / 3 - X[:, 1] ** 2, 0 * X[:, 0]]),
                               atol=1e-12)  # fmt: skip
    # 4/3 for the slope, 4/45 for the square, 1 and 1/9 for the pairs
    assert found.deviation**2 == pytest.approx(4 / 3 + 4 / 45 + 1 + 1 / 9)
    assert found["x1"].share == pytest.approx(4 / 3 / found.deviation**2)


def test_importances_of_a_mixed_table_equal_monte_carlo_over_whole_columns(mixed):
    """Draw whole columns independently, and exchange one of them (Jansen's estimator, which has no bias)."""
    model, frame = mixed
    found = effects(model, frame, top_pairs=0)
    rng = np.random.default_rng(0)
    n = 20_000

    def drawn():
        columns = {name: frame[name].to_numpy()[rng.integers(len(frame), size=n)] for name in frame}
        return pd.DataFrame(columns).astype(frame.dtypes)

    one, other = drawn(), drawn()
    scores = model.predict(one)
    for effect in found.main:
        changed = model.predict(one.assign(**{effect.name: other[effect.name]}))
        samples = (scores - changed) ** 2 / 2 / found.deviation**2
        error = samples.std() / np.sqrt(n)
        assert error < 0.02
        assert abs(samples.mean() - effect.total) < 4 * error


def test_main_effect_is_a_conditional_mean_minus_the_mean(mixed):
    """Without rows the levels have the parts of the training."""
    model, frame = mixed
    job = effects(model)["job"]
    assert job.kind == "category"
    assert job.grid.tolist() == ["cook", "judge", "smith"]
    assert job.counts is None
    parts = [(frame["job"] == level).mean() for level in job.grid]
    np.testing.assert_allclose(job.parts, parts)
    assert job.missing_part == pytest.approx(frame["job"].isna().mean())
    assert job.parts @ job.values + job.missing_part * job.missing == pytest.approx(0, abs=1e-10)


def test_levels_that_were_never_seen_are_counted_apart(mixed):
    model, frame = mixed
    some = frame.assign(job=frame["job"].replace("judge", "king"))
    job = effects(model, some)["job"]
    assert job.grid.tolist() == ["cook", "judge", "smith", "other levels"]
    assert job.counts.tolist() == [(some["job"] == x).sum() for x in ("cook", "judge", "smith", "king")]


def test_classes_are_named():
    model, _rows, _ = default_case("three-classes")
    assert effects(model, output="1").mean == effects(model, output=1).mean
    with pytest.raises(ValueError, match=r"there is no output 'x'; the outputs are 0, 1, 2"):
        effects(model, output="x")
    with pytest.raises(ValueError, match="output must be an integer between 0 and 2, got 3"):
        effects(model, output=3)
    with pytest.raises(ValueError, match="there is no column 'y'"):
        effects(model)["y"]


def test_weights_are_repeated_rows():
    model, rows, _ = default_case("frame-regressor")
    counts = np.arange(len(rows)) % 3
    one = effects(model, rows, sample_weight=counts)
    two = effects(model, rows.iloc[np.repeat(np.arange(len(rows)), counts)])
    assert one.n_rows == two.n_rows
    assert [e.share for e in one.main] == pytest.approx([e.share for e in two.main])
    for first, second in zip(one.main, two.main, strict=True):
        np.testing.assert_allclose(first.counts, second.counts, atol=1e-9)


def test_results_are_frames_and_text(mixed):
    model, frame = mixed
    found = effects(model, frame, top_pairs=2)
    table = found.to_frame()
    assert list(table.columns) == ["term", "order", "share", "total"]
    assert len(table) == 6
    assert str(found).splitlines()[0].startswith("effects on 'prediction': mean ")
    assert "columns taken as independent" in str(found)
    assert "size * job" in str(found)
    job = found["job"].to_frame()
    assert job["kind"].tolist() == ["category"] * 3 + ["missing"]
    assert job["count"].sum() == pytest.approx(len(frame))
    assert "(missing)" in str(found["job"])
    assert found.pairs[0].to_frame().shape == found.pairs[0].values.shape
    assert " * " in str(found.pairs[0])
    terms = found.of_rows(frame.head(3))
    np.testing.assert_allclose(terms.to_frame().iloc[:, :-1].sum(axis=1), model.predict(frame.head(3)))
    assert "(rest)" in str(terms)


def test_a_constant_score(make_model):
    model = make_model(TensorTrain.rank_one([[3.0, 0.0], [1.0, 0.0], [1.0, 0.0]]))
    found = effects(model)
    assert found.mean == pytest.approx(3)
    assert found.pairs == ()
    assert found.rest_share == found.main_share == 0
    assert "standard deviation 0" in str(found)


def test_classes_with_text_labels():
    frame = mixed_table(120)
    labels = np.where(mixed_target(frame) > 1, "rich", "poor")
    model = TensorTrainClassifier(random_state=0).fit(frame, labels)
    found = effects(model, frame)
    assert found.output == "rich"
    terms = found.of_rows(frame)
    total = terms.mean + terms.main.sum(axis=1) + terms.pairs.sum(axis=1) + terms.rest
    np.testing.assert_allclose(total, model.decision_function(frame))
