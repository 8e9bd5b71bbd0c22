"""The kernel view of a train, for few rows: the exact solution, and its best train of given ranks.

With Tikhonov regularisation and without a limit on the ranks, a train on maps v_k is ridge regression with the kernel
K(x, z) = prod_k <v_k(x_k), v_k(z_k)>. Its coefficients are a sum of rank-one tensors, one per row,

    A = sum_j c_j v_1(x_j1) o ... o v_d(x_jd),

which is rounded to a train core by core, without ever being formed. All that is needed of the columns to the right of a
core is the elementwise product of their kernels.

Conventions
-----------
``values`` holds the functions of every column, (n_k, N) each; ``weights`` sum to 1. The objective is that of the sweeps
with the squared loss: the weighted mean of (score - target)^2, plus alpha / 2 <A, A>.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

__all__ = ["dual_train", "leave_one_out", "product_kernel", "round_rank_ones", "solve_dual"]

# Directions with less than this part of the largest squared singular value are rounding noise of the Gram matrix.
_NOISE = 1e-13


def product_kernel(values: Sequence[NDArray]) -> NDArray:
    """Kernel of all pairs of rows, (N, N)."""
    kernel = np.ones((values[0].shape[1],) * 2)
    for columns in values:
        kernel *= columns.T @ columns
    return kernel


def solve_dual(kernel: NDArray, targets: NDArray, weights: NDArray, alpha: float) -> NDArray:
    """Coefficients of the rows without a limit on the ranks, shaped like the targets, (N,) or (N, q)."""
    # Rows of small weight count little: their own part of the ridge is large.
    root = np.sqrt(weights)
    scaled = root[:, None] * kernel * root
    ridge = max(alpha / 2.0, np.finfo(np.float64).eps * float(np.trace(scaled)))
    scaled.flat[:: len(scaled) + 1] += ridge
    roots = root if targets.ndim == 1 else root[:, None]
    return roots * cho_solve(cho_factor(scaled, lower=True, check_finite=False), roots * targets, check_finite=False)


def _right_kernels(values: Sequence[NDArray]) -> Iterator[NDArray]:
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
    values: Sequence[NDArray], coefficients: NDArray, ranks: Sequence[int], tolerance: float = 0.0
) -> list[NDArray]:
    """Write sum_j c_j v_1(x_j1) o ... o v_d(x_jd) as a train of these ranks at most, left-orthogonal.

    Each bond is cut by the singular values of the tensor that is left, so the error in the coefficients is at most
    the root of d times the least possible one, as for any truncated TT-SVD. Where the ranks allow it, that error is no
    more than ``tolerance`` times the size of the coefficients, and no rank is larger than that takes.
    """
    left = coefficients[None, :]
    cores: list[NDArray] = []
    allowed = -1.0
    for k, (columns, right) in enumerate(zip(values, _right_kernels(values), strict=True)):
        rank, n = len(left), len(columns)
        spread = (left[:, None, :] * columns).reshape(rank * n, -1)
        if k == len(values) - 1:
            cores.append(spread.sum(axis=1).reshape(rank, n, 1))
            break
        gram = spread @ right @ spread.T
        whole = float(np.trace(gram))
        if k == 0:
            allowed = tolerance * tolerance * whole / max(1, len(values) - 1)
        most = min(ranks[k + 1], len(gram))
        sizes, directions = eigh((gram + gram.T) / 2, subset_by_index=(len(gram) - most, len(gram) - 1))
        sizes, directions = sizes[::-1], directions[:, ::-1]
        kept = max(1, int(np.sum(sizes > _NOISE * max(float(sizes[0]), 0.0))))
        if tolerance:
            left_out = whole - np.cumsum(sizes[:kept])
            kept = min(kept, 1 + int(np.sum(left_out > allowed)))
        cores.append(directions[:, :kept].reshape(rank, n, kept))
        left = directions[:, :kept].T @ spread
    return cores


def dual_train(
    values: Sequence[NDArray], target: NDArray, weights: NDArray, alpha: float, ranks: Sequence[int]
) -> list[NDArray]:
    """Cores of the exact kernel solution, rounded to these ranks."""
    kernel = product_kernel(values)
    if not np.isfinite(kernel).all():
        raise FloatingPointError(f"the kernel of init='dual' overflows with {len(values)} columns; use init='linear'")
    return round_rank_ones(values, solve_dual(kernel, target, weights, alpha), ranks)


def leave_one_out(kernel: NDArray, targets: NDArray, weights: NDArray, alphas: Sequence[float]) -> Iterator[NDArray]:
    """What every row's target is off the prediction of the kernel problem on all other rows, (N, q), for every alpha.

    Shapes: kernel (N, N), targets (N, q). One eigendecomposition serves all alphas. With B the kernel between rows that
    are multiplied by the roots of their weights, the residuals are r = g(B) t, g(b) = ridge / (b + ridge), and those of
    leaving a row out r_j / g(B)_jj. Written with 1 - g, small residuals would be differences of large numbers.
    """
    root = np.sqrt(weights)
    sizes, vectors = eigh(root[:, None] * kernel * root, driver="evr", overwrite_a=True, check_finite=False)
    sizes = np.maximum(sizes, 0.0)
    inner, squares = vectors.T @ (root[:, None] * targets), np.square(vectors)
    least = np.finfo(np.float64).eps * float(sizes.sum())
    for alpha in alphas:
        ridge = max(alpha / 2.0, least)
        kept = ridge / (sizes + ridge)
        yield (vectors @ (kept[:, None] * inner)) / ((squares @ kept) * root)[:, None]
