"""A fitted polynomial as an expression of SymPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from polytrain.explain.units import all_powers, choose_variables, power_cores
from polytrain.explain.view import read_model
from polytrain.tensor import Polynomial, TensorTrain
from polytrain.tensor.checks import check_positive_integer

__all__ = ["to_sympy"]


def to_sympy(
    model: BaseEstimator,
    *,
    train: int = 0,
    units: str = "original",
    tol: float = 0.0,
    max_terms: int = 10_000,
    feature_names: Sequence[str] | None = None,
) -> Any:
    """Write a small fitted polynomial as a SymPy expression.

    Parameters
    ----------
    model : TensorTrainClassifier or TensorTrainRegressor
        A fitted estimator.
    train : int, default=0
        Which of ``model.trains_``.
    units : {"original", "centred", "scaled", "auto"}, default="original"
        Variables of the expression, see `top_terms`. Each symbol has the feature's name. With "centred" the symbols
        stand for the features and the offsets are written out; with "scaled" they stand for the scaled features.
    tol : float, default=0.0
        Leave out coefficients of at most this magnitude. The expression is then no longer exact.
    max_terms : int, default=10_000
        Refuse to write more terms than this.
    feature_names : sequence of d str, optional
        By default those of the training data, or x1, x2, ...

    Returns
    -------
    sympy.Expr
        The score as the sum of its terms, with a regressor's intercept. Within the fitted range of the features it
        equals the prediction or ``decision_function``; outside, the estimator clips and the expression does not.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> from polytrain.explain import to_sympy
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(200, 2))
    >>> model = TensorTrainRegressor(basis="power", degree=1, rank=2, alpha=1e-12, random_state=0)
    >>> model = model.fit(X, 2 + 3 * X[:, 0] * X[:, 1])
    >>> to_sympy(model, tol=1e-6).evalf(4)
    3.0*x1*x2 + 2.0
    """
    try:
        import sympy
    except ImportError as error:
        raise ImportError("to_sympy needs SymPy; install it with pip install 'polytrain[symbolic]'.") from error
    view = read_model(model, feature_names)
    which = view.train_index(train)
    max_terms = check_positive_integer(max_terms, "max_terms")
    variables = choose_variables(view, units)
    cores = power_cores(view, view.trains[which], variables)
    if not all(np.isfinite(core).all() for core in cores):
        raise ValueError(f"the coefficients overflow with units={variables.units!r}; use units='scaled'.")
    try:
        polynomial = Polynomial.from_train(TensorTrain(cores), tol=tol, max_size=max_terms)
    except ValueError as error:
        raise ValueError(
            f"the polynomial may have more than max_terms={max_terms} terms ({error}) Use top_terms for the largest "
            "ones, or raise tol or max_terms."
        ) from error
    symbols = [sympy.Symbol(name, real=True) for name in view.feature_names]
    if variables.units == "centred":
        centres = [form.centre for form in all_powers(view)]
        symbols = [symbol - centre for symbol, centre in zip(symbols, centres, strict=True)]
    terms = [
        sympy.Mul(sympy.Float(coefficient), *(base**power for base, power in zip(symbols, exponents, strict=True)))
        for exponents, coefficient in polynomial.terms.items()
    ]
    shift = float(view.shift[which])
    return sympy.Add(sympy.Float(shift) if shift else sympy.Integer(0), *terms)
