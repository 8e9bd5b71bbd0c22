"""The largest terms of a fitted polynomial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from polytrain.explain.search import entries_at, largest_entries
from polytrain.explain.units import choose_variables, power_cores, weigh_cores
from polytrain.explain.view import read_model
from polytrain.tensor import Polynomial
from polytrain.tensor.checks import check_positive_integer
from polytrain.tensor.notation import format_terms
from polytrain.texts import printable

__all__ = ["TopTerms", "top_terms"]

_RANKINGS = ("strength", "coefficient")


@dataclass(frozen=True)
class TopTerms:
    """The largest terms of a polynomial, largest first.

    Attributes
    ----------
    exponents : ndarray of shape (K, d)
        Power of each variable in each term.
    coefficients : ndarray of shape (K,)
        Coefficient of each term.
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
        What a high value of the polynomial speaks for: a class, or "prediction".
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
        return tuple(format_terms([(row, 1.0)], self.variable_names, 6, None) for row in self.exponents.tolist())

    def to_polynomial(self) -> Polynomial:
        """Return the sum of these terms, a polynomial in the variables named by ``units``."""
        terms = dict(zip(map(tuple, self.exponents.tolist()), self.coefficients.tolist(), strict=True))
        return Polynomial(terms, n_variables=self.exponents.shape[1])

    def to_frame(self) -> Any:
        """Return a frame of pandas, one row per term."""
        import pandas as pd

        return pd.DataFrame({"term": self.names, "coefficient": self.coefficients, "strength": self.strengths})

    def __str__(self) -> str:
        proof = "proven" if self.exact else "not proven to be the largest"
        lines = [f"{len(self)} largest terms for {self.train_name!r}, {self.units} features, {proof}"]
        lines += [
            f"{coefficient:>12.5g}  {printable(name)}"
            for coefficient, name in zip(self.coefficients, self.names, strict=True)
        ]
        return "\n".join(lines)


def top_terms(
    model: BaseEstimator,
    k: int = 10,
    *,
    train: int = 0,
    units: str = "auto",
    rank_by: str = "strength",
    feature_names: Sequence[str] | None = None,
    max_nodes: int = 200_000,
) -> TopTerms:
    """Find the k largest terms of a fitted polynomial, without forming its coefficients.

    The search follows prefixes of terms along the train and leaves those that provably lead to no large term, so the
    result is exact, not sampled; ``exact`` says so.

    Parameters
    ----------
    model : TensorTrainClassifier or TensorTrainRegressor
        A fitted estimator. The constant of a regressor includes its ``intercept_``.
    k : int, default=10
        How many terms. Terms at the level of rounding are left out, so there may be fewer.
    train : int, default=0
        Which of ``model.trains_``: the class of a one-vs-rest classifier; 0 for two classes and for regressors.
    units : {"auto", "original", "centred", "scaled"}, default="auto"
        Variables of the terms. "original" takes the features as they come. "centred" subtracts the middle of the
        fitted range from each. "scaled" maps the range onto [-1, 1], as the estimator does. All of them write the same
        polynomial. Far from zero, powers of original features nearly cancel each other and their coefficients say
        little; "auto" takes "original" if at most one digit cancels, else "scaled".
    rank_by : {"strength", "coefficient"}, default="strength"
        Order by the largest magnitude that a term reaches in the fitted range, which does not depend on the units of
        measurement, or by the magnitude of its coefficient. The two agree for scaled features. With ``scale=None`` the
        range is not known, and features are taken to be of size one at most.
    feature_names : sequence of d str, optional
        Names to print. By default those of the training data, or x1, x2, ...
    max_nodes : int, default=200_000
        Limit of the search: how many prefixes are followed at once.

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
    >>> y = 3 * X[:, 0] * X[:, 7] - 5 * X[:, 3] + 4
    >>> powers = {"basis": "power", "degree": 1, "rank": 3, "alpha": 1e-6, "max_sweeps": 10}
    >>> model = TensorTrainRegressor(random_state=0, **powers).fit(X, y)
    >>> terms = top_terms(model, 3)
    >>> terms.names
    ('x1*x8', 'x4', '1')
    >>> terms.coefficients.round(1)
    array([ 3., -5.,  4.])
    >>> terms.exact, terms.units
    (True, 'original')
    """
    view = read_model(model, feature_names)
    k = check_positive_integer(k, "k")
    max_nodes = check_positive_integer(max_nodes, "max_nodes")
    if max_nodes < k + 1:
        raise ValueError(f"max_nodes must be larger than k={k}, got {max_nodes}.")
    if rank_by not in _RANKINGS:
        raise ValueError(f"rank_by must be one of {list(_RANKINGS)}, got {rank_by!r}.")
    which = view.train_index(train)
    variables = choose_variables(view, units)
    cores = power_cores(view, view.trains[which], variables)
    weighted = weigh_cores(cores, variables.largest)
    if not all(np.isfinite(core).all() for core in (*cores, *weighted)):
        raise ValueError(f"the coefficients overflow with units={variables.units!r}; use units='scaled'.")

    # One more than asked for: with its intercept, the constant may fall out of the list.
    ranked = weighted if rank_by == "strength" else cores
    index, exact = largest_entries(ranked, k + 1, max_nodes)
    constant = ~index.any(axis=1)
    shift = float(view.shift[which])
    if shift and not constant.any():
        index = np.concatenate((index, np.zeros((1, view.n_features), dtype=np.intp)))
        constant = np.append(constant, True)
    shifts = np.where(constant, shift, 0.0)
    coefficients, strengths = entries_at(cores, index) + shifts, np.abs(entries_at(weighted, index) + shifts)
    size = strengths if rank_by == "strength" else np.abs(coefficients)
    best = np.argsort(-size, kind="stable")[:k]
    best = best[size[best] > 0]
    return TopTerms(
        exponents=index[best],
        coefficients=coefficients[best],
        strengths=strengths[best],
        exact=exact,
        units=variables.units,
        variable_names=variables.names,
        train_name=view.train_names[which],
    )
