import sys

import numpy as np
import pytest
from model_ranges import ranges

from polytrain import Polynomial, TensorTrain
from polytrain.basis import BASES
from polytrain.explain import to_sympy

sympy = pytest.importorskip("sympy")


@pytest.mark.parametrize("units", ["original", "centred", "scaled"])
@pytest.mark.parametrize("basis", BASES)
def test_expression_equals_the_prediction(random_model, basis, units):
    model = random_model((3, 4, 2), basis=basis)
    X = np.random.default_rng(0).uniform(ranges(model).low, ranges(model).high, size=(40, 3))
    expression = to_sympy(model, units=units)
    evaluate = sympy.lambdify([sympy.Symbol(f"x{k}", real=True) for k in (1, 2, 3)], expression)
    columns = model.maps_.place(X) if units == "scaled" else X.T
    np.testing.assert_allclose(evaluate(*columns), model.predict(X), rtol=1e-9, atol=1e-10)


def test_classifier_scores(iris_model):
    model, X, _ = iris_model
    expression = to_sympy(model, train=1, feature_names=["a", "b", "c", "d"])
    evaluate = sympy.lambdify([sympy.Symbol(name, real=True) for name in "abcd"], expression)
    np.testing.assert_allclose(evaluate(*X.to_numpy().T), model.decision_function(X)[:, 1], rtol=1e-6, atol=1e-8)


def test_names_with_spaces_become_symbols(iris_model):
    model, X, _ = iris_model
    assert {symbol.name for symbol in to_sympy(model).free_symbols} == set(X.columns)


def test_tolerance_leaves_out_small_terms(make_model):
    model = make_model(Polynomial.parse("3*x1 + 0.001*x1*x2").to_train())
    x1, x2 = sympy.symbols("x1 x2", real=True)
    assert to_sympy(model, tol=0.01).free_symbols == {x1}
    assert to_sympy(model).free_symbols == {x1, x2}


def test_too_many_terms(make_model):
    model = make_model(TensorTrain.random((3,) * 12, 3, random_state=0))
    with pytest.raises(ValueError, match=r"more than max_terms=1000 terms .* Use top_terms"):
        to_sympy(model, max_terms=1000)


def test_missing_sympy_names_the_extra(random_model, monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(ImportError, match=r"polytrain\[symbolic\]"):
        to_sympy(random_model((2, 2)))
