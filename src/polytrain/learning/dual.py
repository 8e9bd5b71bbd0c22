"""The kernel view of a train, for few rows: the exact solution, and its best train of given ranks.

With Tikhonov regularisation and without a limit on the ranks, a train on maps v_k is ridge regression with the kernel
K(x, z) = prod_k <v_k(x_k), v_k(z_k)>. Its coefficients are a sum of rank-one tensors, one per row,

    A = sum_j c_j v_1(x_j1) o ... o v_d(x_jd),

which is rounded to a train core by core, without ever being formed. All that is needed of the columns to the right of a
core is the elementwise product of their kernels.

Conventions
-----------
``values`` holds the functions of every column, (n_k, N) each; ``weights`` sum to 1. The objective is that of the sweeps
with the squared loss: the weighted mean of (score - target)^2, plus alpha / 2 <A, A>, so the ridge is alpha / 2. With H
the inverse of the kernel plus ridge / w_j on its diagonal, the leave-one-out residual of row j is (H t)_j / H_jj;
leverages would make small residuals differences of large numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, qr
from scipy.linalg.blas import dtrmm

from polytrain.arrays import Array
from polytrain.learning import lapack
from polytrain.tensor.decompose import round_cores

_EPS = float(np.finfo(np.float64).eps)

# Directions with less than this part of the largest squared singular value are rounding noise of the Gram matrix.
_NOISE = 1e-13
# Numbers of a kernel that are computed at once, and the least number of its rows.
_BLOCK_NUMBERS, _LEAST_ROWS = 1 << 15, 16
# A ridge of this many roundings of every row and column exceeds the rounding errors.
_CLEAR = 16.0
# Kernels of a column, constant included, below which it cannot be divided out of a product.
_VANISHING = 1e-9
# Rows whose kernels span the spaces of the bonds, for every unit of the rank.
_ROWS_PER_RANK = 2
# With at least this many columns whose functions have at most this mean square, 1 + g is replaced by exp(g).
_MANY_SMALL, _SMALL_SQUARE = 32, 0.03
# Columns that are stacked at once.
_STACK_COLUMNS = 64


def product_kernel(values: Sequence[Array], quick: bool = False) -> Array:
    """Kernel of all pairs of rows, (N, N)."""
    return _mirrored(upper_kernel(values, quick=quick))


def _mirrored(upper: Array) -> Array:
    """Copy what is above the diagonal to below it."""
    for start, stop in kernel_blocks(len(upper)):
        upper[stop:, start:stop] = upper[start:stop, stop:].T
        upper[start:stop, start:stop] = (
            np.triu(upper[start:stop, start:stop]) + np.triu(upper[start:stop, start:stop], 1).T
        )
    return upper


def upper_kernel(values: Sequence[Array], out: Array | None = None, quick: bool = False) -> Array:
    """Kernel of all pairs of rows, (N, N), on and above the diagonal; the rest is undefined.

    A ``quick`` kernel is good enough for comparisons: see `_small_columns`.
    """
    n_rows = values[0].shape[1]
    kernel = np.empty((n_rows, n_rows)) if out is None else out
    small = _small_columns(values) if quick else []
    kernel[:] = 0.0
    for first in range(0, len(small), _STACK_COLUMNS):
        stacked = np.concatenate([values[k][1:] for k in small[first : first + _STACK_COLUMNS]])
        kernel += stacked.T @ stacked
    np.exp(kernel, out=kernel)
    large = [values[k] for k in _others(values, small)]
    for start, stop in kernel_blocks(n_rows):
        # The products of all columns for some rows, while these stay in cache.
        product = kernel[start:stop, start:]
        factor = np.empty(product.shape)
        for columns in large:
            np.matmul(columns[:, start:stop].T, columns[:, start:], out=factor)
            product *= factor
    return kernel


def _small_columns(values: Sequence[Array]) -> list[int]:
    """Columns whose kernels 1 + g are nearly exp(g), of which many are quickly multiplied: the g are added."""
    n_rows = values[0].shape[1]
    small = [k for k, columns in enumerate(values) if np.vdot(columns[1:], columns[1:]) <= _SMALL_SQUARE * n_rows]
    return small if len(small) >= _MANY_SMALL else []


def _others(values: Sequence[Array], small: list[int]) -> list[int]:
    return np.setdiff1d(np.arange(len(values)), small).tolist()  # type: ignore[no-any-return]


def kernel_blocks(n_rows: int) -> Iterator[tuple[int, int]]:
    """First row and end of every block of rows of a kernel."""
    size = max(_LEAST_ROWS, _BLOCK_NUMBERS // n_rows)
    for start in range(0, n_rows, size):
        yield start, min(start + size, n_rows)


def solve_dual(kernel: Array, targets: Array, weights: Array, alpha: float) -> Array:
    """Coefficients of the rows without a limit on the ranks, shaped like the targets, (N,) or (N, q)."""
    # Rows of small weight count little: their own part of the ridge is large.
    root = np.sqrt(weights)
    scaled = root[:, None] * kernel * root
    ridge = max(alpha / 2.0, _EPS * float(np.trace(scaled)))
    scaled.flat[:: len(scaled) + 1] += ridge
    roots = root if targets.ndim == 1 else root[:, None]
    return roots * cho_solve(cho_factor(scaled, lower=True, check_finite=False), roots * targets, check_finite=False)


def _right_kernels(values: Sequence[Array]) -> Iterator[Array]:
    """Kernels of the columns right of core 0, of core 1, ..., each once and in this order.

    Only about twice the root of all of them are in memory at a time: those at the ends of blocks of columns are found
    from the right first, those within a block when its turn comes.
    """
    d, n_rows = len(values), values[0].shape[1]
    step = max(1, isqrt(d))
    ends = [*range(step, d, step), d]
    kernel = np.ones((n_rows, n_rows))
    kept = {d: kernel}
    for stop, start in zip(reversed(ends), reversed([0, *ends[:-1]]), strict=True):
        kernel = kept[stop].copy()
        for columns in values[start:stop]:
            kernel *= columns.T @ columns
        kept[start] = kernel
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        inner = [kept.pop(stop) if stop == d else kept[stop]]
        for columns in reversed(values[start + 1 : stop]):
            inner.append(inner[-1] * (columns.T @ columns))
        yield from reversed(inner)


def round_rank_ones(
    values: Sequence[Array], coefficients: Array, ranks: Sequence[int], tolerance: float = 0.0
) -> list[Array]:
    """Write sum_j c_j v_1(x_j1) o ... o v_d(x_jd) as a train of these ranks at most, left-orthogonal.

    Each bond is cut by the singular values of the tensor that is left, so the error in the coefficients is at most
    the root of d times the least possible one, as for any truncated TT-SVD. Where the ranks allow it, that error is at
    most ``tolerance`` times the size of the coefficients, with the smallest ranks for that.
    """
    return round_together(values, coefficients[None, :], ranks, tolerance)[0]


def round_together(
    values: Sequence[Array], coefficients: Array, ranks: Sequence[int], tolerance: float = 0.0
) -> list[list[Array]]:
    """Do the same for several sums over the same rows, coefficients (q, N), which share the kernels of the columns."""
    lefts = [own[None, :] for own in coefficients]
    trains: list[list[Array]] = [[] for _ in lefts]
    allowed = np.zeros(len(lefts))
    for k, (columns, right) in enumerate(zip(values, _right_kernels(values), strict=True)):
        for index, left in enumerate(lefts):
            rank, n = len(left), len(columns)
            spread = (left[:, None, :] * columns).reshape(rank * n, -1)
            if k == len(values) - 1:
                trains[index].append(spread.sum(axis=1).reshape(rank, n, 1))
                continue
            gram = _sandwich(spread, right)
            if k == 0:
                allowed[index] = tolerance * tolerance * float(np.trace(gram)) / (len(values) - 1)
            kept = _leading(gram, ranks[k + 1], allowed[index])
            trains[index].append(kept.reshape(rank, n, -1))
            lefts[index] = kept.T @ spread
    return trains


def round_for_sweeps(values: Sequence[Array], coefficients: Array, rank: int) -> list[list[Array]]:
    """Write the same sums, coefficients (q, N), as trains of this rank to start sweeps from: less accurate.

    The kernels of the columns to the right are needed for a few rows only. Their products with the left parts span the
    space of a bond nearly as well as those of all rows do, at a cost of N instead of N^2 per column.
    """
    few = slice(_ROWS_PER_RANK * rank)
    rights = [np.ones((values[0].shape[1], len(values[0].T[few])))]
    for columns in values[:0:-1]:
        rights.append(rights[-1] * (columns.T @ columns[:, few]))
    trains = []
    for left in coefficients[:, None]:
        cores: list[Array] = []
        for columns, right in zip(values, reversed(rights), strict=True):
            spread = (left[:, None, :] * columns).reshape(-1, columns.shape[1])
            if len(cores) == len(values) - 1:
                cores.append(spread.sum(axis=1).reshape(len(left), -1, 1))
                break
            basis = qr(spread @ right, mode="economic", check_finite=False)[0]
            cores.append(basis.reshape(len(left), len(columns), -1))
            left = basis.T @ spread
        trains.append(round_cores(cores, 0.0, rank))
    return trains


def _sandwich(spread: Array, kernel: Array) -> Array:
    """Return spread @ kernel @ spread.T from half of the kernel: the other half is the transpose."""
    # A triangle with half of the diagonal.
    half = dtrmm(1.0, kernel.T, spread.T, lower=True) - np.diagonal(kernel)[:, None] / 2 * spread.T
    gram = half.T @ spread.T
    return gram + gram.T


def _leading(gram: Array, most: int, allowed: float) -> Array:
    """Leading eigenvectors, (M, rank): as many as leave out at most this trace, if that is not 0."""
    whole, most = float(np.trace(gram)), min(most, len(gram))
    sizes, directions = eigh(gram, subset_by_index=(len(gram) - most, len(gram) - 1))
    sizes, directions = sizes[::-1], directions[:, ::-1]
    kept = max(1, int(np.sum(sizes > _NOISE * max(float(sizes[0]), 0.0))))
    if allowed:
        left_out = whole - np.cumsum(sizes[:kept])
        kept = min(kept, 1 + int(np.sum(left_out > allowed)))
    return directions[:, :kept]


def dual_train(
    values: Sequence[Array], target: Array, weights: Array, alpha: float, ranks: Sequence[int]
) -> list[Array]:
    """Cores of the exact kernel solution, rounded to these ranks."""
    kernel = product_kernel(values)
    if not np.isfinite(kernel).all():
        raise FloatingPointError(f"the kernel of init='dual' overflows with {len(values)} columns; use init='linear'")
    return round_rank_ones(values, solve_dual(kernel, target, weights, alpha), ranks)


# --- residuals of left-out rows ---------------------------------------------------------------------------------------


def leave_one_out(kernel: Array, targets: Array, weights: Array, alphas: Sequence[float]) -> Iterator[Array]:
    """Yield the leave-one-out residuals of the kernel problem, (N, q), for every alpha.

    Shapes: kernel (N, N), targets (N, q). One eigendecomposition serves all alphas, and ridges of any size. It is that
    of B, the kernel between rows that are multiplied by the roots of their weights: H is ridge / (B + ridge), up to
    factors of rows and columns that cancel.
    """
    root = np.sqrt(weights)
    scaled = root[:, None] * kernel * root
    # SciPy 1.13 makes too little room for evd of one row.
    sizes, vectors = eigh(scaled.T, driver="evd" if len(scaled) > 1 else "ev", overwrite_a=True, check_finite=False)
    sizes = np.maximum(sizes, 0.0)
    inner, squares = vectors.T @ (root[:, None] * targets), np.square(vectors)
    least = _EPS * float(sizes.sum())
    for alpha in alphas:
        ridge = max(alpha / 2.0, least)
        kept = ridge / (sizes + ridge)
        yield (vectors @ (kept[:, None] * inner)) / ((squares @ kept) * root)[:, None]


class LeftOut:
    """Leave-one-out residuals for one alpha at a time, from a Cholesky factor: a tenth of an eigendecomposition.

    Shapes: kernel (N, N), targets (N, q), weights (N,), and memory to work in (N, N).

    >>> import numpy as np
    >>> from polytrain.learning.dual import LeftOut
    >>> left_out = LeftOut(np.ones((3, 3)), np.array([[1.0], [2.0], [6.0]]), np.full(3, 1 / 3))
    >>> left_out(1e-6).round(3).ravel().tolist()  # the mean of the two others is predicted
    [-3.0, -1.5, 4.5]
    """

    def __init__(self, kernel: Array, targets: Array, weights: Array, work: Array | None = None) -> None:
        self._kernel, self._targets, self._weights = kernel, targets, weights
        self._work = np.empty_like(kernel, order="C") if work is None else work
        self._least = _CLEAR * len(kernel) * _EPS * float(weights @ np.diagonal(kernel))

    def __call__(self, alpha: float) -> Array:
        """Residuals, (N, q); an error where rounding might spoil them, which it does not in `leave_one_out`."""
        ridge = alpha / 2.0
        if not ridge >= self._least:
            raise np.linalg.LinAlgError(f"alpha={alpha} is too small for a kernel of this size")
        np.copyto(self._work, self._kernel)
        self._work.flat[:: len(self._work) + 1] += ridge / self._weights
        _invert_factor(self._work)
        # H is the product of this with its transpose.
        diagonal = np.einsum("ij,ij->i", self._work, self._work)
        residuals: Array = (self._work @ (self._work.T @ self._targets)) / diagonal[:, None]
        return residuals


def squared_effects(values: Sequence[Array], targets: Array, weights: Array, alpha: float) -> Array:
    """Mean squares of the effects of every column, (d,), summed over the targets (N, q), each row left out in turn.

    The effect of column k is the part of the score that is lost where the functions of the column become (1, 0, ...):
    that of the kernel K g_k / (1 + g_k) with g_k the column's kernel without the constant. The solution without row i
    has the coefficients c - e_i H_i, where e_i is the leave-one-out residual: see the conventions above.
    """
    kernel = product_kernel(values, quick=True)
    inverse = inverse_kernel(kernel, weights, alpha)
    coefficients, diagonal = inverse @ targets, np.diagonal(inverse)[:, None]
    residuals = np.divide(coefficients, diagonal, out=np.zeros(targets.shape), where=diagonal > 0)
    small = _small_columns(values)
    large = _others(values, small)
    squares = np.zeros(len(values))
    for start, stop in kernel_blocks(len(kernel)):
        rows = slice(start, stop)
        block = kernel[rows]
        whole = _left_out_scores(block, coefficients, residuals[rows], inverse[rows])
        for k in large:
            own = values[k][:, rows].T @ values[k]
            own[np.abs(own) < _VANISHING] = np.inf  # where the factor of the column vanishes, so does the product
            others = np.divide(block, own, out=own)
            effects = whole - _left_out_scores(others, coefficients, residuals[rows], inverse[rows])
            squares[k] += weights[rows] @ np.square(effects).sum(axis=1)
    if small:
        inverse *= kernel
        for first in range(0, len(small), _STACK_COLUMNS):
            some = small[first : first + _STACK_COLUMNS]
            squares[some] = _small_effects(
                [values[k][1:] for k in some], kernel, inverse, coefficients, residuals, weights
            )
    return squares


def _small_effects(
    values: Sequence[Array], kernel: Array, products: Array, coefficients: Array, residuals: Array, weights: Array
) -> Array:
    """Mean squares of the effects of columns with a small g each: the other columns' kernel is nearly that of all.

    ``products`` are those of the kernel and the inverse. Sums over rows are products of matrices, as g is the sum of
    products of functions.
    """
    begins = np.cumsum([0, *map(len, values)])[:-1]
    stacked = np.concatenate(values)
    squares = np.zeros(len(values))
    own = np.add.reduceat(stacked.T * (products @ stacked.T), begins, axis=1)
    for target, left_out in zip(coefficients.T, residuals.T, strict=True):
        effects = np.add.reduceat(stacked.T * (kernel @ (stacked * target).T), begins, axis=1)
        effects -= left_out[:, None] * own
        squares += weights @ np.square(effects)
    return squares


def column_gains(
    values: Sequence[Array], others: Sequence[Array], targets: Array, weights: Array, alpha: float
) -> Array:
    """Return the possible effects of columns outside of the kernel of ``values``, (len(others),).

    It is the slope of the part of the objective that fits the targets with respect to the squared size of a column:
    the quadratic form of the coefficients with the product of the kernel and the column's own one.
    """
    kernel = product_kernel(values, quick=True)
    coefficients = solve_dual(kernel, targets, weights, alpha)
    gains = np.zeros(len(others))
    for first in range(0, len(others), _STACK_COLUMNS):
        some = [functions[1:] for functions in others[first : first + _STACK_COLUMNS]]
        begins = np.cumsum([0, *map(len, some)])[:-1]
        for own in coefficients.T:
            spread = np.concatenate(some) * own
            sums = np.einsum("mn,mn->m", spread @ kernel, spread)
            gains[first : first + len(some)] += np.add.reduceat(sums, begins)
    return gains


def inverse_kernel(kernel: Array, weights: Array, alpha: float) -> Array:
    """Inverse of the kernel with the ridge on its diagonal; a ridge below the rounding errors is raised."""
    root = np.sqrt(weights)
    scaled = root[:, None] * kernel * root
    scaled.flat[:: len(scaled) + 1] += max(alpha / 2.0, _CLEAR * len(scaled) * _EPS * float(np.trace(scaled)))
    _invert_factor(scaled)
    lapack.square_triangle(scaled.T)
    return root[:, None] * _mirrored(scaled) * root


def _invert_factor(upper: Array) -> None:
    """Replace a matrix, of which the upper triangle is read, by the inverse of its Cholesky factor, transposed."""
    if not lapack.cholesky(upper.T):
        raise np.linalg.LinAlgError("the kernel is not positive definite")
    lapack.invert_triangle(upper.T)
    for start, stop in kernel_blocks(len(upper)):
        upper[stop:, start:stop] = 0.0
        upper[start:stop, start:stop] = np.triu(upper[start:stop, start:stop])


def _left_out_scores(kernel: Array, coefficients: Array, residuals: Array, inverse: Array) -> Array:
    """Scores (M, q) of some rows, each without its own influence, by a kernel (M, N) between these and all rows."""
    scores: Array = kernel @ coefficients
    scores -= residuals * np.einsum("ij,ij->i", kernel, inverse)[:, None]
    return scores
