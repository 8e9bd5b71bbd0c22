"""Compiled products with rows of data, if there was a C compiler when the package was built.

Without a library, or with the environment variable POLYTRAIN_NATIVE=0, `is_here` is False, and callers do the same in
NumPy. Calls let other threads run. Rows are the last axis and contiguous; lines may be apart by any stride. All arrays
of a call have one dtype, float32 or float64.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from polytrain.arrays import Array

# Version of the interface; a library with another one was built from other sources.
_INTERFACE = 3
_LEVELS = (0, 3, 4)
_VECTOR_BYTES = 32
_TYPES = {"f": "f32", "d": "f64"}

_N, _NUMBER, _ARRAY = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
_SIGNATURES: dict[str, list[Any]] = {
    "dense_product": [_N, _N, _N, _N, _ARRAY, _N, _ARRAY, _N, _ARRAY, _N, _ARRAY, _ARRAY, _ARRAY, _ARRAY],
    "dense_move": [_N, _N, _N, _N, _ARRAY, _N, _ARRAY, _N, _ARRAY, _ARRAY, _N],
    "dense_moments": [_N, _N, _N, _N, _ARRAY, _N, _ARRAY, _N, _ARRAY, _N, _ARRAY, _ARRAY],
    "local_product": [_N, _N, _N, _N, _ARRAY, _ARRAY, _N, _ARRAY, _N, _ARRAY, _ARRAY, _ARRAY, _ARRAY],
    "local_move": [_N, _N, _N, _N, _ARRAY, _ARRAY, _N, _ARRAY, _ARRAY, _N],
    "conjugate_gradients": [
        *(_N, _N, _N, _N, _N, _ARRAY, _N, _ARRAY, _N, _ARRAY, _N, _ARRAY, _ARRAY),
        *(_ARRAY, _ARRAY, _ARRAY, _NUMBER, _NUMBER, _N, _ARRAY, _ARRAY, _ARRAY),
    ],
    "evaluate": [_N, _N, _N, _ARRAY, _ARRAY, _ARRAY, _ARRAY, _ARRAY, _ARRAY, _ARRAY],
}


#: Whether the library may be used, in this process.
enabled = os.environ.get("POLYTRAIN_NATIVE", "1") != "0"


def _library(folder: Path) -> ctypes.CDLL | None:
    """The library in this folder, or None."""
    for path in sorted(folder.glob("_kernels.*")):
        try:
            library = ctypes.CDLL(str(path))
            if library.native_interface() == _INTERFACE:
                return library
        except (OSError, AttributeError):  # built for another kind of machine, or from other sources
            continue
    return None


def _load(library: ctypes.CDLL, level: int) -> dict[tuple[str, str], Callable[..., int]]:
    """Routines by name and character of the dtype, of the highest level up to this one."""
    routines = {}
    for available in (candidate for candidate in _LEVELS if candidate <= level):
        for name, arguments in _SIGNATURES.items():
            for char, suffix in _TYPES.items():
                routine = getattr(library, f"{name}_{suffix}_l{available}", None)
                if routine is not None:
                    routine.argtypes, routine.restype = arguments, ctypes.c_int
                    routines[name, char] = routine
    return routines


@cache
def _routines() -> dict[tuple[str, str], Callable[..., int]]:
    """Routines for this processor; none without a library."""
    library = _library(Path(__file__).parent)
    return {} if library is None else _load(library, library.native_level())


def is_here() -> bool:
    """Whether there is a library, and it is enabled."""
    return enabled and bool(_routines())


def _place(array: Array | None) -> int | None:
    return None if array is None else array.__array_interface__["data"][0]


def _lines(array: Array) -> tuple[int, int]:
    """Address of an array (lines, N), and its stride from line to line in items."""
    if array.strides[1] != array.itemsize and array.shape[1] > 1:
        raise ValueError("rows must be contiguous.")
    return array.__array_interface__["data"][0], array.strides[0] // array.itemsize


def _check(name: str, failed: int) -> None:
    if failed:
        raise MemoryError(f"no memory for the scratch of {name}.")


class DenseRows:
    """Rows with the values of all functions.

    Shapes: near (a, N), values (n, N), the first of them 1, and far (b, N). Cores are (n, a, b).
    """

    def __init__(self, near: Array, values: Array, far: Array) -> None:
        self._arrays = near, values, far  # their memory must stay
        self._dtype, routines = near.dtype, _routines()
        self._move, self._product = (routines[name, near.dtype.char] for name in ("dense_move", "dense_product"))
        self.sizes = near.shape[1], len(near), len(values), len(far), 0
        self.lines = *_lines(near), *_lines(values), *_lines(far)
        self.knots: Array | None = None

    def product(self, core: Array | None, factors: Array | None, sums: bool) -> tuple[Array | None, Array | None]:
        """Scores of a core, (N,), and sums over rows of near * values * far * factors, (n * a, b), float64.

        Either may be left out: ``core`` is None, or ``sums`` is False. With a core, the factors are multiplied by the
        scores.
        """
        n_rows, n_near, n, n_far, _ = self.sizes
        matrix = None if core is None else np.ascontiguousarray(core, self._dtype)
        scores = None if core is None else np.empty(n_rows, self._dtype)
        totals = np.empty((n * n_near, n_far)) if sums else None
        places = _place(matrix), _place(factors), _place(scores), _place(totals)
        _check("dense_product", self._product(*self.sizes[:4], *self.lines, *places))
        return scores, totals

    def move(self, core: Array, out: Array) -> Array:
        """Near environment contracted with a core, (b, N), written to ``out``; the core may have another b."""
        matrix = np.ascontiguousarray(core, self._dtype)
        _check("dense_move", self._move(*self.sizes[:3], len(out), *self.lines[:4], _place(matrix), *_lines(out)))
        return out


class LocalRows:
    """Rows with functions that are straight lines between knots; does what `DenseRows` does.

    Parameters
    ----------
    x : ndarray of shape (N,), contiguous
        Position of each row: 2.5 is half-way between the third and the fourth knot.
    near, far : ndarray of shape (a, N) and (b, N)
    knots : ndarray of shape (knots + 1, n), contiguous
        Functions at the knots. Rows lie before the last of them.
    """

    def __init__(self, x: Array, near: Array, far: Array, knots: Array) -> None:
        self._arrays = x, near, far  # their memory must stay
        self._dtype, routines = near.dtype, _routines()
        self._move, self._product = (routines[name, near.dtype.char] for name in ("local_move", "local_product"))
        self.sizes = near.shape[1], len(near), knots.shape[1], len(far), len(knots) - 1
        self._near, self._far = (_place(x), *_lines(near)), _lines(far)
        self.lines = *_lines(near), _place(x), 0, *self._far
        self.knots = knots

    def product(self, core: Array | None, factors: Array | None, sums: bool) -> tuple[Array | None, Array | None]:
        """See `DenseRows.product`."""
        n_rows, n_near, n, n_far, _ = self.sizes
        tables = None if core is None else knot_tables(self.knots, core)
        scores = None if core is None else np.empty(n_rows, self._dtype)
        totals = np.zeros((len(self.knots), n_near, local_width(n_far, self._dtype)), self._dtype) if sums else None
        self._run(tables, factors, scores, totals)
        if totals is None:
            return scores, None
        # Sums for every knot -> sums for every function.
        gathered = (self.knots.T @ totals.reshape(len(totals), -1)).reshape(n, *totals.shape[1:])
        return scores, gathered[:, :, :n_far].reshape(-1, n_far).astype(np.float64, copy=False)

    def _run(self, tables: Array | None, factors: Array | None, scores: Array | None, totals: Array | None) -> None:
        n_rows, n_near, _, n_far, n_knots = self.sizes
        places = _place(tables), _place(factors), _place(scores), _place(totals)
        _check("local_product", self._product(n_rows, n_near, n_far, n_knots, *self._near, *self._far, *places))

    def move(self, core: Array, out: Array) -> Array:
        """See `DenseRows.move`."""
        return self.move_tables(knot_tables(self.knots, core), out)

    def move_tables(self, tables: Array, out: Array) -> Array:
        """Do the same with a core from `knot_tables`."""
        sizes = *self.sizes[:2], len(out), len(tables) - 1
        _check("local_move", self._move(*sizes, *self._near, _place(tables), *_lines(out)))
        return out


def conjugate_gradients(
    rows: DenseRows | LocalRows,
    gradient: Array,
    curvature: Array,
    eigenvectors: Sequence[Array],
    eigenvalues: Array,
    *limits: float,
) -> tuple[Array, Array]:
    """Solve (C' diag(curvature) C + alpha) step = -gradient by conjugate gradients.

    The preconditioner is diagonal in other coordinates: ``eigenvectors`` of functions, near and far channels, as
    columns, with ``eigenvalues`` (n, a, b), all float64. ``limits`` are alpha, the tolerance and the largest number of
    products, at most 64.

    Shapes: gradient (n, a, b), curvature (N,) -> step (n * a, b), and its scores (N,), both float64.
    """
    n_rows, n_near, n, n_far, _ = rows.sizes
    step, scores = np.empty((n * n_near, n_far)), np.empty(n_rows)
    there = np.concatenate([vectors.ravel() for vectors in eigenvectors])
    back = np.concatenate([vectors.T.ravel() for vectors in eigenvectors])
    eigenvalues, gradient = np.ascontiguousarray(eigenvalues), np.ascontiguousarray(gradient)
    arrays = _place(rows.knots), _place(curvature), _place(there), _place(back), _place(eigenvalues)
    routine = _routines()["conjugate_gradients", curvature.dtype.char]
    failed = routine(*rows.sizes, *rows.lines, *arrays, *limits, _place(gradient), _place(step), _place(scores))
    _check("conjugate_gradients", failed)
    return step, scores


def dense_moments(near: Array, functions: Array, far: Array, weights: Array) -> Array:
    """Sum weights times pairs of near channels times functions times pairs of far channels over all rows.

    Shapes: near (a, N), functions (m, N), the first of them 1, far (b, N), weights (N,) -> (m, a(a+1)/2, b(b+1)/2),
    float64, in the order of `polytrain.learning.contractions.pair_index`.
    """
    (n_near, n_rows), n, n_far = near.shape, len(functions), len(far)
    sums = np.empty((n, n_near * (n_near + 1) // 2, n_far * (n_far + 1) // 2))
    routine = _routines()["dense_moments", near.dtype.char]
    lines = *_lines(near), *_lines(functions), *_lines(far)
    _check("dense_moments", routine(n_rows, n_near, n, n_far, *lines, _place(weights), _place(sums)))
    return sums


def local_width(n_far: int, dtype: np.dtype) -> int:
    """Number of far channels, rounded up to whole vectors."""
    lanes = _VECTOR_BYTES // dtype.itemsize
    return -(-n_far // lanes) * lanes


def knot_tables(knots: Array, core: Array) -> Array:
    """Contract a core with the functions at every knot.

    Shapes: knots (knots + 1, n), core (n, a, b) -> (knots + 1, a, local_width(b)), of the dtype of ``knots``.
    """
    n, n_near, n_far = core.shape
    padded = np.zeros((n, n_near, local_width(n_far, knots.dtype)), dtype=knots.dtype)
    padded[:, :, :n_far] = core
    return (knots @ padded.reshape(n, -1)).reshape(-1, *padded.shape[1:])


def interpolate(x: Array, tables: Array, out: Array) -> Array:
    """Interpolate functions between knots, as `LocalRows` does with a near environment of ones.

    Shapes: x (N,), contiguous, tables (knots + 1, 1, local_width(n)) -> (n, N), written to ``out``.
    """
    ones = np.ones((1, len(x)), dtype=x.dtype)
    return LocalRows(x, ones, out, tables[:, 0]).move_tables(tables, out)


class Trains:
    """Trains over the same columns, evaluated together in one dtype.

    ``trains`` has the cores (n, a, b) of each train, and ``knots``, for each column, its functions at the knots,
    (knots + 1, n), if rows come as positions among them, or None if they come as values of all functions.
    """

    def __init__(self, trains: Sequence[Sequence[Array]], knots: Sequence[Array | None], dtype: np.dtype) -> None:
        self._dtype, self._routine = dtype, _routines()["evaluate", dtype.char]
        self._cores = [
            np.ascontiguousarray(core, dtype) if table is None else knot_tables(table, core)
            for train in trains
            for core, table in zip(train, knots, strict=True)
        ]
        ranks = [[*(core.shape[1] for core in train), train[-1].shape[2]] for train in trains]
        self._sizes = len(trains), len(knots)
        dims = [core.shape[0] for core in trains[0]]
        lengths = [0 if table is None else len(table) - 1 for table in knots]
        places = [_place(core) for core in self._cores]
        self._numbers = [np.array(numbers, dtype=np.int64) for numbers in (ranks, dims, lengths, places)]

    def evaluate(self, columns: Sequence[Array]) -> Array:
        """Values of all trains, (n_trains, N).

        Each column is (n, N), the values of its functions, or (1, N), positions among its knots.
        """
        n_rows = columns[0].shape[1]
        out = np.empty((self._sizes[0], n_rows), dtype=self._dtype)
        places, strides = np.array([_lines(column) for column in columns], dtype=np.int64).T.copy()
        ranks, dims, knots, cores = (_place(numbers) for numbers in self._numbers)
        arguments = n_rows, *self._sizes, ranks, dims, knots, _place(places), _place(strides), cores, _place(out)
        _check("evaluate", self._routine(*arguments))
        return out
