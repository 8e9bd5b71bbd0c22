"""What is odd about rows is said of odd rows, and of no others; by the same code for arrays, frames and blocks."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import spearmanr

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.rows import open_fit
from polytrain.rows.oddities import copies, oddities


def said(X, y, classify):
    kind = TensorTrainClassifier if classify else TensorTrainRegressor
    with open_fit(kind(), X, y, None, None if classify else "squared") as rows:
        return list(oddities(rows))


def table(n_rows=400):
    """Two columns of numbers, one of categories with gaps, labels and numbers that they say something about."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["a", "b"])
    X["town"] = pd.Categorical(rng.choice(["x", "y", "z", None], n_rows))
    y = X["a"] + X["b"] ** 2 + (X["town"] == "x") + 0.3 * rng.normal(size=n_rows)
    return X, y.to_numpy()


@pytest.mark.parametrize("classify", [False, True])
def test_ordinary_tables_are_not_odd(classify):
    X, y = table()
    assert said(X, y > 1 if classify else y, classify) == []
    rng = np.random.default_rng(0)
    numbers = rng.uniform(-1, 1, (300, 3))
    without_noise = numbers[:, 0] + numbers[:, 1] * numbers[:, 2] / 4
    assert said(numbers, without_noise > 0 if classify else without_noise, classify) == []
    one = rng.uniform(-1, 1, (300, 1))
    assert said(one, one[:, 0] > 0 if classify else one[:, 0], classify) == []
    assert said(X[:80].assign(c=y[:80]), y[:80] > 0 if classify else y[:80], classify) == []  # few rows say little


LEAKS = {
    "threshold": lambda y: y,
    "falling": lambda y: -np.exp(y),
    "level": lambda y: pd.Categorical(np.where(y > 1, "late", "soon")),
    "missing": lambda y: np.where(y > 1, np.random.default_rng(1).normal(size=len(y)), np.nan),
    "some missing": lambda y: np.where(np.arange(len(y)) % 9, y, np.nan),
}


@pytest.mark.parametrize("kind", ["threshold", "falling", "level", "missing"])
def test_columns_that_give_labels_away(kind):
    X, y = table()
    (sentence,) = said(X.assign(cause=LEAKS[kind](y)), y > 1, True)
    assert sentence.startswith("column 'cause' alone gives the target away: ")
    assert ("knowing whether it is missing, " in sentence) == (kind == "missing")
    wrong = "0.00%" if kind in ("level", "missing") else "0.25%"  # one row of 400 is beside the threshold
    assert f", {wrong} of left-out rows are wrong, and 49% without any column" in sentence


@pytest.mark.parametrize(("kind", "is_leak"), [("threshold", True), ("falling", True), ("level", False)])
def test_columns_that_give_numbers_away(kind, is_leak):
    X, y = table()
    leaking = X.assign(cause=LEAKS[kind](y))
    figure = "100.00% of the variance of the target's ranks is explained"
    expected = [f"column 'cause' alone gives the target away: with it, {figure}"]
    assert [line.partition(". ")[0] for line in said(leaking, y, False)] == expected * is_leak
    assert said(leaking, np.column_stack([y, X["a"] * X["b"]]), False) == []  # of one output of two


def test_a_column_with_many_gaps_gives_little_away():
    X, y = table()
    gaps = X.assign(cause=LEAKS["some missing"](y))
    assert said(gaps, y > 1, True) == said(gaps, y, False) == []


def test_identifiers_are_no_leaks():
    """Neither are series that change slowly: neighbours in time know each other, and time does not say the value."""
    X, y = table()
    names = [f"customer {k}" for k in range(len(X))]
    (sentence,) = said(X.assign(name=names), y > 1, True)
    assert sentence.startswith("column 'name' holds 400 different values in 400 rows, which looks like an identifier")
    slow = np.sin(np.arange(400) / 30)
    assert said(pd.DataFrame({"day": np.arange(400) + 0.5, "a": X["a"]}), slow, False) == []


def test_constants_are_named_once():
    X, y = table()
    (sentence,) = said(X.assign(c=1, d=np.nan, e=np.where(X["a"] > 0, 1.0, np.nan)), y, False)
    assert sentence == "columns with a single value carry no information: 'c', 'd'. Leave them out."
    assert said(np.column_stack([X[["a", "b"]], np.ones(400)]), y, False) == []  # pixels, for example


def test_copies_are_groups():
    X, y = table()
    noisy = X["b"] + 0.02 * np.random.default_rng(1).normal(size=len(X))
    other = X["town"].cat.rename_categories({"x": "Rome", "y": "Bern", "z": "Oslo"})
    (sentence,) = said(X.assign(twice=2 * X["a"], log=np.exp(X["a"]), near=noisy, city=other), y, False)
    assert sentence.startswith("columns are nearly copies of each other (correlation of ranks): ")
    assert "'a', 'twice', 'log' (1.00); 'b', 'near' (1.00); 'town', 'city' (1.00)." in sentence


def test_correlations_are_those_of_ranks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    X[:, 1] = np.exp(X[:, 0]) + 0.03 * rng.normal(size=500)
    X[rng.uniform(size=500) < 0.2] = np.nan
    plain, sources = np.zeros(3, dtype=bool), np.arange(3)
    ((group, size),) = copies(X, plain, sources)
    present = ~np.isnan(X[:, 0])
    assert group == [0, 1]
    assert abs(size - spearmanr(X[present, 0], X[present, 1])[0]) < 1e-9
    assert copies(X, plain, np.array([0, 0, 1])) == []  # parts of one date
    rare = np.zeros((500, 3))
    rare[:5, :2] = 1.0
    assert copies(rare, plain, sources) == []  # five rows say little
    assert copies(np.zeros((0, 3)), plain, sources) == []


def test_arrays_frames_and_blocks_say_the_same():
    X, y = table()
    numbers = X[["a", "b"]].assign(c=X["a"] ** 3).to_numpy()

    class Blocks:
        def __iter__(self):
            yield from zip(np.split(numbers, 4), np.split(y, 4), strict=True)

    sentences = said(numbers, y, False)
    assert sentences[0].startswith("columns are nearly copies of each other (correlation of ranks): 0, 2 (1.00)")
    assert said(Blocks(), None, False) == sentences
    assert said(numbers[::-1], y[::-1], False) == sentences
    named = said(pd.DataFrame(numbers, columns=["a", "b", "c"]), y, False)
    assert_array_equal(named, [sentences[0].replace("0, 2", "'a', 'c'")])
