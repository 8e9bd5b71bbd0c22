"""One core update: minimise the regularised objective over one core, all others fixed.

With the scores s = C g linear in the core g and an orthogonal gauge, the problem is

    minimise over g:  mean_j w_j loss(y_j, s_j) + alpha / 2 |g|^2,

convex in the entries of one core. All solvers are Newton's method; they differ in how the Newton system is solved
(exactly from moments, or by preconditioned conjugate gradients), and for a quadratic loss one step is the answer.
``lbfgs`` hands value and gradient to SciPy instead. No solver ever returns a core with a higher objective than
the one it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.optimize import minimize

from polytrain.arrays import Array
from polytrain.learning.engines.engine import CoreRows, Engine, LinearRows
from polytrain.learning.kronecker import KroneckerHessian
from polytrain.learning.problem import FACTORS, GRADIENT, Facts, Need

# Newton stops after a step that promised less than this fraction of the objective: the error left is of second order,
# and the next sweep updates the core again. Solving every core to the end costs up to twice the time for the same
# final objective.
_NEWTON_TOL = 1e-2
_MAX_NEWTON = 12
# Armijo's condition and the number of halvings before a step is taken to be at rounding level.
_ARMIJO, _MAX_HALVINGS = 1e-4, 30
# A step that fails and promises less than this fraction of the objective fails because of rounding in float32.
_HOPELESS = 1e-7
# CG stops when the next step, extrapolated from the last two, would lower the objective by less than this fraction of
# the decrease so far. On MNIST at rank 24 five sweeps at this tolerance take less time, and end lower, than four at a
# fifth of it.
_CG_TOL, _MAX_CG = 0.05, 12
_LBFGS_ITERATIONS = 200
# A relative rise of the objective that rounding explains.
_ROUNDING = 1e-12
_EPS = float(np.finfo(float).eps)
# Solve in the space of the rows only for at least this many unknowns and at most this many distinct rows: the time
# grows with the cube of the latter.
_MANY_UNKNOWNS, _MANY_ROWS = 512, 1500
# Dividing by a smaller alpha loses too many digits; directions whose eigenvalue is less than this fraction of
# the largest are left out then.
_LEAST_ALPHA, _LEAST_EIGENVALUE = 1e-9, 1e-10
# Typical number of products of a CG update, residual and preconditioner included.
_USUAL_CG = 6

# Solves ``hessian @ step = -gradient`` for the step and makes it the search direction of the rows.
Direction = Callable[[Array], Array]


class _Exact:
    """Solve by a factorisation of the Hessian, which serves every gradient."""

    needs = Need(gradient=True, gram=True)

    @staticmethod
    def direction(rows: CoreRows, facts: Facts, shape: tuple[int, ...], alpha: float) -> Direction:
        invert = _inverse(facts.gram, alpha)

        def solve(gradient: Array) -> Array:
            step = -invert(gradient.ravel()).reshape(shape)
            rows.set_direction(step)
            return step

        return solve


def _inverse(matrix: Array, alpha: float) -> Callable[[Array], Array]:
    """Add alpha to the diagonal of a positive semidefinite matrix; return a function that multiplies by the inverse."""
    matrix.flat[:: len(matrix) + 1] += alpha
    try:
        factor = cho_factor(matrix, lower=True, check_finite=False)
    except LinAlgError:
        # Singular up to rounding (tiny alpha, or columns that depend on each other): the solution of least norm.
        return _by_eigenvalues(matrix, _EPS * len(matrix), lambda values: 1.0 / values)
    return lambda vector: cho_solve(factor, vector, check_finite=False)


def _by_eigenvalues(matrix: Array, least: float, function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function that multiplies by a function of a matrix; it ignores relatively small eigenvalues."""
    values, vectors = eigh(matrix, check_finite=False)
    kept = values > least * max(values[-1], 0.0)
    vectors, factors = vectors[:, kept], function(values[kept])
    return lambda vector: vectors @ (factors * (vectors.T @ vector))


class _RowSpace:
    """Solve exactly with one unknown per row, where rows are fewer than the entries of the core.

    With B = diag(weights * curvature)^(1/2) C the Newton system is (B'B + alpha) step = -gradient, and

        (B'B + alpha)^-1 = (1 - B' (B B' + alpha)^-1 B) / alpha.

    B B' has the elementwise product of three small Gram matrices in it: neither C nor the Hessian is ever formed. For
    tiny alpha the step is that of least norm instead, B' V (L (L + alpha))^-1 V' B with B B' = V L V'.
    """

    needs = GRADIENT

    @staticmethod
    def direction(rows: Engine, facts: Facts, shape: tuple[int, ...], alpha: float) -> Direction:
        left, values, right, curvature = rows.local_factors()
        root = np.sqrt(curvature)
        matrix = (left.T @ left) * (values.T @ values) * (right.T @ right)
        matrix *= root[:, None] * root
        if alpha >= _LEAST_ALPHA:
            invert = _inverse(matrix, alpha)
        else:
            invert = _by_eigenvalues(matrix, _LEAST_EIGENVALUE, lambda values: -1.0 / (values * (values + alpha)))
        spread = (left[:, None, :] * values).reshape(shape[0] * shape[1], -1)

        def solve(gradient: Array) -> Array:
            image = np.einsum("pj,pj->j", gradient.reshape(len(spread), -1) @ right, spread)
            dual = root * invert(root * image)
            step: Array = ((spread * dual) @ right.T).reshape(shape)
            if alpha >= _LEAST_ALPHA:
                step = (step - gradient) / alpha
            rows.set_direction(step)
            return step

        return solve


class _ConjugateGradients:
    """Solve loosely by preconditioned conjugate gradients, started at zero."""

    needs = FACTORS._replace(gradient=True)

    @staticmethod
    def direction(rows: Engine, facts: Facts, shape: tuple[int, ...], alpha: float) -> Direction:
        preconditioner = KroneckerHessian(facts, alpha)

        def solve(gradient: Array) -> Array:
            at_once = rows.descend(preconditioner, gradient, alpha, _CG_TOL, _MAX_CG)
            return _descend(rows, preconditioner, gradient, alpha) if at_once is None else at_once

        return solve


def _descend(rows: Engine, preconditioner: KroneckerHessian, gradient: Array, alpha: float) -> Array:
    """Conjugate gradients, product by product."""
    rows.clear_direction()
    residual = -gradient
    step = np.zeros(gradient.shape)
    conjugate = search = preconditioner.solve(residual)
    angle = float(np.vdot(residual, conjugate))
    total = gain = 0.0
    past: list[tuple[Array, Array, float]] = []
    for _ in range(_MAX_CG):
        if angle <= 0.0:
            break
        image = rows.product(search) + alpha * search
        curvature = float(np.vdot(search, image))
        if curvature <= 0.0:
            break
        length = angle / curvature
        step += length * search
        rows.extend_direction(length)
        previous_gain, gain = gain, 0.5 * length * angle
        total += gain
        ratio = gain / previous_gain if previous_gain else 1.0
        if min(ratio, 1.0) * gain < _CG_TOL * total:
            break
        past.append((residual, conjugate, angle))
        residual = residual - length * image
        # Residuals are orthogonal in exact arithmetic and lose it fast in floating point. Restoring it costs
        # nothing beside a product with all rows, and keeps results from depending on the order of the rows.
        for old_residual, old_conjugate, old_angle in past:
            residual -= (np.vdot(residual, old_conjugate) / old_angle) * old_residual
        conjugate = preconditioner.solve(residual)
        previous, angle = angle, float(np.vdot(residual, conjugate))
        search = conjugate + (angle / previous) * search
    return step


def _objective(loss: float, core: Array, alpha: float) -> float:
    return loss + 0.5 * alpha * float(np.vdot(core, core))


def _quadratic_update(rows: Any, core: Array, alpha: float, method: Any, refine: bool) -> Array:
    """Take the one Newton step that a quadratic loss needs; ``refine`` corrects its rounding through the operator."""
    facts = rows.facts(method.needs)
    direction = method.direction(rows, facts, core.shape, alpha)
    for again in (refine, False):
        moved = core + direction(facts.gradient + alpha * core)
        after = _objective(rows.try_step(1.0, moved), moved, alpha)
        if not after <= _objective(facts.loss, core, alpha) * (1.0 + _ROUNDING):  # so ill-conditioned that it is wrong
            break
        rows.accept()
        core = moved
        if not again:
            break
        facts = rows.facts(GRADIENT)
    return core


def _line_search(rows: CoreRows, core: Array, step: Array, slope: float, alpha: float, objective: float) -> float:
    """Backtrack from 1 until Armijo's condition holds; 0 if rounding hides any decrease.

    The condition has room for rounding. Without it, the last digits decide near the minimum whether a step is made.
    """
    length, allowed = 1.0, objective * (1.0 + _ROUNDING)
    for _ in range(_MAX_HALVINGS):
        moved = core + length * step
        if _objective(rows.try_step(length, moved), moved, alpha) <= allowed + _ARMIJO * length * slope:
            return length
        if -length * slope <= _HOPELESS * objective:
            break
        length *= 0.5
    return 0.0


def _newton_update(
    rows: Any, core: Array, alpha: float, method: Any, tol: float = _NEWTON_TOL, max_steps: int = _MAX_NEWTON
) -> Array:
    """Newton's method with backtracking, from the present core."""
    for _ in range(max_steps):
        facts = rows.facts(method.needs)
        objective, gradient = _objective(facts.loss, core, alpha), facts.gradient + alpha * core
        step = method.direction(rows, facts, core.shape, alpha)(gradient)
        slope = float(np.vdot(gradient, step))
        if not slope < 0.0:
            break
        length = _line_search(rows, core, step, slope, alpha, objective)
        if length == 0.0:
            break
        core = core + length * step
        rows.accept()
        if -0.5 * slope <= tol * objective and length == 1.0:
            break
    return core


def _lbfgs_update(rows: Engine, core: Array, alpha: float) -> Array:
    """Limited-memory BFGS on value and gradient, the paper's quasi-Newton suggestion.

    It runs on the displacement from the present core, in coordinates in which the Hessian is nearly the identity:
    the raw problem is scaled so badly that a quasi-Newton method stalls on it.
    """
    preconditioner = KroneckerHessian(rows.facts(FACTORS), alpha)

    def value_and_gradient(white: Array) -> tuple[float, Array]:
        trial = core + preconditioner.color(white).reshape(core.shape)
        rows.score(trial)
        facts = rows.facts(GRADIENT)
        return _objective(facts.loss, trial, alpha), preconditioner.whiten(facts.gradient + alpha * trial).ravel()

    before, slope = value_and_gradient(np.zeros(core.size))
    options: Any = {"maxiter": _LBFGS_ITERATIONS, "ftol": 1e-14, "gtol": 1e-9 * float(np.abs(slope).max())}
    result = minimize(value_and_gradient, np.zeros(core.size), jac=True, method="L-BFGS-B", options=options)
    solution = core + preconditioner.color(result.x).reshape(core.shape) if result.fun <= before else core
    rows.score(solution)
    return solution


@dataclass(frozen=True)
class CoreSolver:
    """A way to solve core problems, chosen by name.

    ``cg`` takes the exact route for cores that conjugate gradients do not suit, ``auto`` also where it costs less.
    """

    name: str
    quadratic: bool

    def update(self, rows: Engine, core: Array, alpha: float) -> Array:
        """Return the core that minimises the objective (nearly, for ``cg`` and ``lbfgs``); scores follow."""
        if self.name == "lbfgs":
            return _lbfgs_update(rows, core, alpha)
        exact = self.name == "exact" or not _suits_cg(core.shape, rows.n_distinct)
        exact |= self.name == "auto" and _prefers_exact(core.shape, rows.n_products)
        method: Any = _Exact if exact else _ConjugateGradients
        # An exact update may have fewer unknowns in the space of the rows; with few unknowns it does not matter.
        if self.name != "exact" and exact and core.size >= _MANY_UNKNOWNS and rows.n_rows < core.size:
            method = _RowSpace
        if self.quadratic:
            return _quadratic_update(rows, core, alpha, method, refine=exact)
        return _newton_update(rows, core, alpha, method)


SOLVERS = ("auto", "exact", "cg", "lbfgs")


def _suits_cg(shape: tuple[int, ...], n_distinct: int) -> bool:
    """Whether to use conjugate gradients for a core of this shape.

    With no more distinct rows than unknowns the Hessian is far from a Kronecker product: a few steps leave some of the
    decrease to the next sweep, and their result depends on rounding. With few rows an exact solution costs little; with
    many it takes ten times as long as sweeps with the same result.
    """
    a, n, b = shape
    return a * n * b < n_distinct or n_distinct > _MANY_ROWS


def _prefers_exact(shape: tuple[int, ...], n_products: int) -> bool:
    """Compare the work per row of one exact update with that of one CG update of a core of this shape.

    The number of rows must not matter: repeating a row and doubling its weight must lead to the same solver. Below
    about 64 unknowns the exact route costs next to nothing.
    """
    a, n, b = shape
    pairs_left, pairs_right = a * (a + 1) // 2, b * (b + 1) // 2
    exact = 2 * n_products * pairs_left * pairs_right
    per_product = 4 * (a * n * b + 4 * n * min(a, b))
    return a * n * b <= 64 or exact <= _USUAL_CG * per_product


def update_work(shape: tuple[int, ...], n_rows: float, exact: bool, width: int) -> float:
    """Floating point operations of one update for a quadratic loss, roughly.

    ``width`` is the number of functions that are not 0 at a row in the basis in which products are computed: 2 between
    knots, however many functions there are.
    """
    a, n, b = shape
    unknowns = float(a * n * b)
    by_moments = unknowns**3 / 3 + n_rows * n * a * a * b * b / 2
    if exact:
        return by_moments
    if not _suits_cg(shape, int(n_rows)):
        return n_rows**3 / 3 + n_rows * n_rows * unknowns if unknowns >= _MANY_UNKNOWNS else by_moments
    return min(by_moments, 4 * _USUAL_CG * n_rows * a * b * width)


def solve_linear(rows: LinearRows, n_functions: int, alpha: float, quadratic: bool) -> Array:
    """Solve the regularised linear model to rounding. Returns (1, 1 + n_functions, 1): bias, then weights."""
    model = np.zeros((1, n_functions + 1, 1))
    rows.score(model)
    if quadratic:
        return _quadratic_update(rows, model, alpha, _Exact, refine=True)
    return _newton_update(rows, model, alpha, _Exact, tol=1e-14, max_steps=100)
