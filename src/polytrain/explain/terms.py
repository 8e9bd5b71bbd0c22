"""Terms of a fitted polynomial: the largest ones, all as a SymPy expression, or those with the most variance.

Powers of scaled features, of distances from the centre and of raw features are affine in each other, feature by
feature, so changing them is a small matrix on the middle axis of each core; the ranks stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from polytrain.checks import need
from polytrain.columns.column_list import unique_names
from polytrain.explain.search import entries_at, largest_entries
from polytrain.explain.sensitivity import frame, variance_shares
from polytrain.explain.sites import ColumnMeasure, make_measure, site_matrices
from polytrain.explain.view import ModelView, read_model
from polytrain.maps import AffinePowers, InterpolatedMap
from polytrain.tensor import Polynomial, TensorTrain
from polytrain.tensor.checks import check_positive_integer
from polytrain.tensor.terms import format_terms
from polytrain.texts import printable

_UNITS = ("auto", "original", "centred", "scaled")

# Largest growth of the coefficients at which "auto" still takes raw features: one digit may cancel.
_MAX_GROWTH = 10.0
# Prefixes that the search for the strongest terms follows at once.
_MAX_NODES = 50_000
# A function of a column adds nothing if those before it explain all but this share of it.
_LEAST_NEW = 1e-9


@dataclass(frozen=True)
class TopTerms:
    """The largest terms of a polynomial, largest first.

    Attributes
    ----------
    exponents, coefficients : ndarray of shape (K, d) and (K,)
        Power of each variable in each term, and its coefficient.
    strengths : ndarray of shape (K,)
        Largest magnitude that the term reaches in the fitted range of the features.
    exact : bool
        Whether these are proven to be the largest terms. If not, the search met its limit: all coefficients are right,
        but a larger term may be missing.
    units : str
        Variables of the terms: "original" features, "centred" ones or "scaled" ones.
    variable_names : tuple of d str
        Names of the variables, in which the offset of centred features is written out.
    train_name : str
        Meaning of a high value of the polynomial: a class, or "prediction".
    """

    exponents: NDArray
    coefficients: NDArray
    strengths: NDArray
    exact: bool
    units: str
    variable_names: tuple[str, ...]
    train_name: str

    def __len__(self) -> int:
        return len(self.coefficients)

    @property
    def names(self) -> tuple[str, ...]:
        """The terms without their coefficients, such as "x1*x3^2"; "1" is the constant."""
        return tuple(format_terms([(row, 1.0)], self.variable_names, 6) for row in self.exponents.tolist())

    def to_polynomial(self) -> Polynomial:
        """Return the sum of these terms, a polynomial in the variables named by ``units``."""
        terms = dict(zip(map(tuple, self.exponents.tolist()), self.coefficients.tolist(), strict=True))
        return Polynomial(terms, n_variables=self.exponents.shape[1])

    def to_frame(self) -> Any:
        """Return a frame of pandas, one row per term."""
        return frame({"term": self.names, "coefficient": self.coefficients, "strength": self.strengths})

    def __str__(self) -> str:
        proof = "proven" if self.exact else "not proven to be the largest"
        head = f"{len(self)} largest terms for {self.train_name!r}, {self.units} features, {proof}"
        terms = zip(self.coefficients, self.names, strict=True)
        return "\n".join([head, *(f"{coefficient:>12.5g}  {printable(name)}" for coefficient, name in terms)])


def top_terms(
    model: BaseEstimator,
    k: int = 10,
    *,
    train: int = 0,
    units: str = "auto",
    feature_names: Sequence[str] | None = None,
    max_nodes: int = 200_000,
) -> TopTerms:
    """Find the k largest terms of a fitted polynomial, without forming its coefficients.

    Terms are ordered by their strength, the largest magnitude that they reach in the fitted range, which does not
    depend on the units of measurement. With the basis "power-unscaled" the range is not known, and features are taken
    to be of size one at most.

    The search follows prefixes of terms along the train and drops those that provably lead to no large term, so the
    result is exact, not sampled; ``exact`` confirms it.

    Parameters
    ----------
    model : TensorTrainClassifier or TensorTrainRegressor
        A fitted estimator. The constant of a regressor includes its ``intercept_``.
    k : int, default=10
        Number of terms. Terms at the level of rounding errors are left out, so there may be fewer.
    train : int, default=0
        Which of ``model.trains_``: the class of a one-vs-rest classifier; 0 for two classes and for regressors.
    units : {"auto", "original", "centred", "scaled"}, default="auto"
        Variables of the terms. "original" takes the features unchanged. "centred" subtracts the middle of the
        fitted range from each. "scaled" maps the range onto [-1, 1], as the estimator does. All of them write the same
        polynomial. Far from zero, powers of original features nearly cancel each other and their coefficients mean
        little; "auto" takes "original" if at most one digit cancels, else "scaled".
    feature_names : sequence of d str, optional
        Names to print. By default those of the training data, or x1, x2, ...
    max_nodes : int, default=200_000
        Limit of the search: the number of prefixes that are followed at once.

    Returns
    -------
    TopTerms
        Exponents, coefficients, strengths, and whether they are proven to be the largest.

    See Also
    --------
    to_sympy : All terms, for small models.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> from polytrain.explain import top_terms
    >>> X = np.random.default_rng(0).uniform(0, 2, size=(500, 12))
    >>> model = TensorTrainRegressor(basis="power", degree=1, rank=3, alpha=1e-6, max_sweeps=10, random_state=0)
    >>> terms = top_terms(model.fit(X, 3 * X[:, 0] * X[:, 7] - 5 * X[:, 3] + 4), 3)
    >>> terms.names, terms.exact
    (('x1*x8', 'x4', '1'), True)
    >>> terms.coefficients.round(1)
    array([ 3., -5.,  4.])
    """
    view = read_model(model, feature_names)
    k = check_positive_integer(k, "k")
    max_nodes = check_positive_integer(max_nodes, "max_nodes")
    if max_nodes <= k:
        raise ValueError(f"max_nodes must be larger than k={k}, got {max_nodes}.")
    which = view.index("train", train)
    variables = _expand(view, which, units)
    if not all(np.isfinite(core).all() for core in variables.strengths):
        raise ValueError(f"the strengths overflow with units={variables.units!r}; use units='scaled'.")
    index, exact = largest_entries(variables.strengths, k, max_nodes)
    coefficients, strengths = entries_at(variables.cores, index), np.abs(entries_at(variables.strengths, index))
    name = view.fitted.train_names[which]
    return TopTerms(index, coefficients, strengths, exact, variables.units, variables.names, name)


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
    model, train, feature_names
        See `top_terms`.
    units : {"original", "centred", "scaled", "auto"}, default="original"
        Variables of the expression, see `top_terms`. Each symbol has the feature's name. With "centred" the symbols
        stand for the features and the offsets are written out; with "scaled" they stand for the scaled features.
    tol : float, default=0.0
        Leave out coefficients of at most this magnitude. The expression is then no longer exact.
    max_terms : int, default=10_000
        Refuse to write more terms than this.

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
    sympy = need("to_sympy", "symbolic", "sympy")
    view = read_model(model, feature_names)
    which = view.index("train", train)
    max_terms = check_positive_integer(max_terms, "max_terms")
    expansion = _expand(view, which, units)
    try:
        polynomial = Polynomial.from_train(TensorTrain(expansion.cores), tol=tol, max_size=max_terms)
    except ValueError as error:
        raise ValueError(
            f"the polynomial may have more than max_terms={max_terms} terms ({error}) Use top_terms for the largest "
            "ones, or raise tol or max_terms."
        ) from error
    symbols = [sympy.Symbol(name, real=True) for name in view.feature_names]
    if expansion.units == "centred":
        symbols = [symbol - form.centre for symbol, form in zip(symbols, _all_powers(view), strict=True)]
    terms = [
        sympy.Mul(sympy.Float(coefficient), *(base**power for base, power in zip(symbols, exponents, strict=True)))
        for exponents, coefficient in polynomial.terms.items()
    ]
    return sympy.Add(*terms)


class _Expansion(NamedTuple):
    """A train in powers of variables: its cores, and those of the strengths of its terms up to their signs."""

    units: str
    names: tuple[str, ...]
    cores: Sequence[NDArray]
    strengths: Sequence[NDArray]


def _expand(view: ModelView, which: int, units: str) -> _Expansion:
    """Write a train and its shift in the given units; "auto" takes raw features unless the coefficients cancel."""
    if not isinstance(units, str) or units not in _UNITS:
        raise ValueError(f"units must be one of {list(_UNITS)}, got {units!r}.")
    if units == "auto":
        norms = [[_norm(view, k, unit) for unit in ("original", "scaled")] for k in range(view.fitted.n_trains)]
        units = "original" if all(raw <= _MAX_GROWTH * scaled < np.inf for raw, scaled in norms) else "scaled"
    expansion = _in_powers(view, which, units)
    if not all(np.isfinite(core).all() for core in expansion.cores):
        raise ValueError(f"the coefficients overflow with units={units!r}; use units='scaled'.")
    shift = float(view.fitted.shift[which])
    if not shift:
        return expansion
    constant = shift * TensorTrain.rank_one([np.eye(core.shape[1])[0] for core in expansion.cores])
    cores, strengths = ((TensorTrain(some) + constant).cores for some in (expansion.cores, expansion.strengths))
    return expansion._replace(cores=cores, strengths=strengths)


def _norm(view: ModelView, which: int, units: str) -> float:
    """Root of the sum of the squared strengths of all terms of a train; infinite where they overflow."""
    strengths = _in_powers(view, which, units).strengths
    return TensorTrain(strengths).norm() if all(np.isfinite(core).all() for core in strengths) else np.inf


@np.errstate(over="ignore", invalid="ignore")  # callers check that the cores are finite
def _in_powers(view: ModelView, which: int, units: str) -> _Expansion:
    """Replace every scaled feature by ``factor * z + offset``, where z is the variable and |z| at most ``largest``."""
    forms, ranges = _all_powers(view), [feature_map.range for feature_map in view.fitted.maps]
    if not any(ranges):
        units = "original"  # features were not scaled
    names, cores, strengths = [], [], []
    for name, form, ends, core in zip(view.feature_names, forms, ranges, view.fitted.trains[which].cores, strict=True):
        factor, offset, largest = np.float64(form.factor), np.float64(0.0), 1.0
        if units == "original":
            offset, largest = -form.centre * factor, max(map(abs, ends)) if ends else 1.0
        elif units == "scaled":
            factor, largest = np.float64(1.0), float(factor > 0)
        else:
            name = f"({name} {'-' if form.centre >= 0 else '+'} {abs(form.centre):.4g})"
            largest = 1.0 / factor if factor > 0 else 0.0
        degrees = range(core.shape[1])
        # Row i holds (factor * z + offset)^i as coefficients of 1, z, z^2, ...
        powers = np.array([[comb(i, j) * factor**j * offset ** max(i - j, 0) for j in degrees] for i in degrees])
        names.append(name)
        cores.append(np.einsum("aib,ij->ajb", core, form.matrix @ powers))
        strengths.append(cores[-1] * (largest ** np.arange(core.shape[1]))[:, None])
    return _Expansion(units, tuple(names), cores, strengths)


def _all_powers(view: ModelView) -> list[AffinePowers]:
    """Every map as polynomials; maps that are not polynomials are refused."""
    forms = []
    for name, feature_map in zip(view.feature_names, view.fitted.maps, strict=True):
        if feature_map.powers is None:
            raise ValueError(
                f"terms are products of powers, but the column {name!r} has a map of the kind {feature_map.kind!r}, "
                "which is not a polynomial. Use sobol_indices or partial_dependence, or fit with basis='power'."
            )
        forms.append(feature_map.powers)
    return forms


class StrongestTerms(NamedTuple):
    """The terms of a polynomial with the most variance, strongest first.

    ``names`` are products of functions of columns; ``effects`` (K,) are their standard deviations over the rows, and
    ``shares`` (K,) their shares of the variance. ``exact`` is True if these are proven to be the strongest terms.
    """

    names: tuple[str, ...]
    effects: NDArray
    shares: NDArray
    exact: bool
    train_name: str


def strongest_terms(view: ModelView, X: NDArray | None = None, k: int = 10, train: int = 0) -> StrongestTerms:
    """Find the k terms of a train with the most variance, columns taken as independent and distributed as in X.

    Coefficients mean little where the functions of a column overlap. Here, they are made orthonormal under the
    distribution of the column, and the square of a coefficient is then the variance of its term. A power stands
    for its contribution beyond the lower powers of the feature, and f2(x) for that of the second function beyond the
    first, if a map is not polynomial. An effect of a polynomial is positive if it grows with the product of the
    features' deviations from their means; that of other functions of numbers is positive at the largest value.
    """
    measure = make_measure(view, X)
    cores, names = _named_cores(measure, train)
    index, exact = largest_entries(cores, k + 1, _MAX_NODES)  # one of them may be the constant
    index = index[index.any(axis=1)][:k]
    effects = entries_at(cores, index)
    deviation = variance_shares(measure, train, pairs=False).deviation
    shares = (effects / deviation) ** 2 if deviation > 0 else np.zeros(len(effects))
    terms = tuple(" * ".join(n[j - 1] for n, j in zip(names, term, strict=True) if j) for term in index.tolist())
    return StrongestTerms(terms, effects, shares, exact, view.fitted.train_names[train])


def _named_cores(measure: ColumnMeasure, train: int) -> tuple[list[NDArray], list[list[str]]]:
    """Cores in orthonormal functions, orthogonalised in their order, and the names of the functions.

    There is one core per column, but one per feature where the features of a column are independent for lack of rows.
    """
    view = measure.view
    titles = unique_names([(name, (name, f"{name} is missing")) for name in view.feature_names])
    functions = []
    for title, missing, feature_map in zip(titles[::2], titles[1::2], view.fitted.maps, strict=True):
        powers = [title, *(f"{title}^{j}" for j in range(2, feature_map.n))][: feature_map.n - 1]
        others = [f"f{j}({title})" for j in range(1, feature_map.n)]
        if isinstance(feature_map, InterpolatedMap) and feature_map.has_missing:
            others[-1] = missing
        functions.append(others if feature_map.powers is None else powers)
    cores, names = [], []
    for column, group in enumerate(view.groups):
        given = [view.fitted.trains[train].cores[k] for k in group]
        if measure.is_joint(column):
            cores.append(_joint_core(measure, column, given))
            names.append([name for k in group for name in functions[k]])
        else:
            cores += [np.einsum("aib,ij->ajb", core, measure.matrices[k]) for k, core in zip(group, given, strict=True)]
            names += [functions[k] for k in group]
    return cores, names


def _joint_core(measure: ColumnMeasure, column: int, cores: list[NDArray]) -> NDArray:
    """Core of a column of several features in the functions of each, made orthonormal on the rows; no products."""
    functions, weights = measure.combinations(column)
    roots = np.sqrt(weights)
    given = np.concatenate([functions[0][:1], *(values[1:] for values in functions)]) * roots
    basis = np.zeros_like(given)
    for j, values in enumerate(given):
        new = values
        for _ in range(2):  # the second time removes what rounding has left
            new = new - basis[:j].T @ (basis[:j] @ new)
        size = float(np.linalg.norm(new))
        if size > _LEAST_NEW * float(np.linalg.norm(values)):
            basis[j] = new / size
    return np.einsum("jq,qab->ajb", basis * roots, site_matrices(cores, functions), optimize=True)
