"""Compiled products with rows of data, where a C compiler was at hand when the package was built.

`kernels.c` holds the arithmetic, this module the way there: it finds the library, picks the routines for the processor,
and takes NumPy arrays. Without a library `is_here` is False, and callers do the same in NumPy. The environment variable
POLYTRAIN_NATIVE=0 and the context `switched_off` do without it, too. Calls let other threads run.

Conventions
-----------
Rows are the last axis and contiguous; lines may be apart by any stride. All arrays of a call have one dtype, float32 or
float64. A core comes as a matrix (basis * near rank, far rank), in the order of `polytrain.learning.kernels.unfold`,
transposed.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DenseRows",
    "LocalRows",
    "System",
    "Trains",
    "dense_moments",
    "interpolate",
    "is_here",
    "knot_tables",
    "local_width",
    "switched_off",
]

# What the library must say it is: another one was built from other sources.
_INTERFACE = 3
_LEVELS = (0, 3, 4)
_VECTOR_BYTES = 32
_TYPES = {"f": "f32", "d": "f64"}

_Arguments = list[Any]
_N, _NUMBER, _ARRAY = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
_SIGNATURES: dict[str, _Arguments] = {
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


class _Switch:
    """Whether the library may be used."""

    on = os.environ.get("POLYTRAIN_NATIVE", "1") != "0"


@contextmanager
def switched_off() -> Iterator[None]:
    """Enter a context in which everything is done by NumPy, in this process."""
    before, _Switch.on = _Switch.on, False
    try:
        yield
    finally:
        _Switch.on = before


def _library(folder: Path) -> ctypes.CDLL | None:
    """The library in this folder, if there is one that fits."""
    for path in sorted(folder.glob("_kernels.*")):
        try:
            library = ctypes.CDLL(str(path))
            if library.native_interface() == _INTERFACE:
                return library
        except (OSError, AttributeError):  # built for another kind of machine, or from other sources
            continue
    return None


def _load(library: ctypes.CDLL, level: int) -> dict[tuple[str, str], Callable[..., int]]:
    """Routines by name and character of the dtype, of the highest level that is no more than this one."""
    found = {}
    for has in (one for one in _LEVELS if one <= level):
        for name, arguments in _SIGNATURES.items():
            for char, suffix in _TYPES.items():
                routine = getattr(library, f"{name}_{suffix}_l{has}", None)
                if routine is not None:
                    routine.argtypes, routine.restype = arguments, ctypes.c_int
                    found[name, char] = routine
    return found


@cache
def _routines() -> dict[tuple[str, str], Callable[..., int]]:
    """Routines for this processor; none without a library."""
    library = _library(Path(__file__).parent)
    return {} if library is None else _load(library, library.native_level())


def is_here() -> bool:
    """Whether there is a library, and nobody has switched it off."""
    return _Switch.on and bool(_routines())


def _place(array: NDArray | None) -> int | None:
    return None if array is None else array.__array_interface__["data"][0]


def _lines(array: NDArray) -> tuple[int, int]:
    """Where an array (lines, N) begins, and items from line to line."""
    if array.strides[1] != array.itemsize and array.shape[1] > 1:
        raise ValueError("rows must be contiguous.")
    return array.__array_interface__["data"][0], array.strides[0] // array.itemsize


def _check(name: str, failed: int) -> None:
    if failed:
        raise MemoryError(f"no memory for the scratch of {name}.")


class System(NamedTuple):
    """A Newton system (C' diag(curvature) C + alpha) step = -gradient, nearly diagonal in other coordinates.

    Attributes
    ----------
    turns : sequence of ndarray of shape (n, n), (a, a) and (b, b), float64
        Coordinates of functions, near and far channels, as columns.
    spectrum : ndarray of shape (n, a, b), float64
        The diagonal.
    alpha, tolerance : float
    most : int
        Number of products; at most 64.
    """

    turns: Sequence[NDArray]
    spectrum: NDArray
    alpha: float
    tolerance: float
    most: int


def conjugate_gradients(
    rows: DenseRows | LocalRows, system: System, start: NDArray, curvature: NDArray
) -> tuple[NDArray, NDArray]:
    """Solve a system loosely by conjugate gradients.

    Shapes: start (n, a, b), the gradient, and curvature (N,) -> step (n * a, b), and its scores (N,), both float64.
    """
    sizes, lines, knots = rows.arguments()
    n_rows, n_near, n, n_far, _ = sizes
    step, ray = np.empty((n * n_near, n_far)), np.empty(n_rows)
    there, back = (
        np.concatenate([turn.ravel() for turn in turns]) for turns in (system.turns, [t.T for t in system.turns])
    )
    spectrum, gradient = np.ascontiguousarray(system.spectrum), np.ascontiguousarray(start)
    arrays = _place(knots), _place(curvature), _place(there), _place(back), _place(spectrum)
    numbers = system.alpha, system.tolerance, system.most
    routine = _routines()["conjugate_gradients", curvature.dtype.char]
    failed = routine(*sizes, *lines, *arrays, *numbers, _place(gradient), _place(step), _place(ray))
    _check("conjugate_gradients", failed)
    return step, ray


class DenseRows:
    """Rows with the values of all functions.

    Parameters
    ----------
    near, values, far : ndarray of shape (a, N), (n, N) and (b, N)
        Environments, and function values, the first of them 1.
    """

    def __init__(self, near: NDArray, values: NDArray, far: NDArray) -> None:
        self._arrays = near, values, far  # their memory must stay
        (n_near, n_rows), self._dtype, routines = near.shape, near.dtype, _routines()
        self._shape, self._n_rows = (len(values) * n_near, len(far)), n_rows
        self._move, self._product = (routines[name, near.dtype.char] for name in ("dense_move", "dense_product"))
        self._sizes = n_rows, n_near, len(values)
        self._near = *_lines(near), *_lines(values)
        self._far = _lines(far)

    def product(
        self, matrix: NDArray | None, factors: NDArray | None, sums: bool
    ) -> tuple[NDArray | None, NDArray | None]:
        """Scores of a core, and sums over rows of spread times far environment times factors, in one pass.

        Parameters
        ----------
        matrix : ndarray of shape (n * a, b), contiguous, or None
            The core whose scores are wanted.
        factors : ndarray of shape (N,), or None
            What every row counts in the sums: times its score, if there is a core.
        sums : bool
            Whether sums are wanted.

        Returns
        -------
        scores : ndarray of shape (N,), or None
        sums : ndarray of shape (n * a, b), float64, or None
        """
        scores = None if matrix is None else np.empty(self._n_rows, dtype=self._dtype)
        totals = np.empty(self._shape) if sums else None
        places = _place(matrix), _place(factors), _place(scores), _place(totals)
        _check("dense_product", self._product(*self._sizes, self._shape[1], *self._near, *self._far, *places))
        return scores, totals

    def move(self, matrix: NDArray, out: NDArray) -> NDArray:
        """Contract the near environment with a core.

        Shapes: matrix (n * a, b), contiguous -> (b, N), written to ``out``.
        """
        _check("dense_move", self._move(*self._sizes, len(out), *self._near, _place(matrix), *_lines(out)))
        return out

    def arguments(self) -> tuple[tuple[int, ...], tuple[Any, ...], NDArray | None]:
        """Sizes, lines and knots, as `conjugate_gradients` takes them."""
        return (*self._sizes, self._shape[1], 0), (*self._near, *self._far), None


def dense_moments(near: NDArray, functions: NDArray, far: NDArray, weights: NDArray) -> NDArray:
    """Sum weights times pairs of near channels times functions times pairs of far channels over all rows.

    Shapes: near (a, N), functions (m, N), the first of them 1, far (b, N), weights (N,) -> (m, a(a+1)/2, b(b+1)/2),
    float64, in the order of `polytrain.learning.kernels.pair_index`.
    """
    (n_near, n_rows), n, n_far = near.shape, len(functions), len(far)
    sums = np.empty((n, n_near * (n_near + 1) // 2, n_far * (n_far + 1) // 2))
    routine = _routines()["dense_moments", near.dtype.char]
    lines = *_lines(near), *_lines(functions), *_lines(far)
    _check("dense_moments", routine(n_rows, n_near, n, n_far, *lines, _place(weights), _place(sums)))
    return sums


class LocalRows:
    """Rows with functions that are straight lines between knots.

    Parameters
    ----------
    x : ndarray of shape (N,), contiguous
        Where each row lies: 2.5 is half-way between the third and the fourth knot.
    near, far : ndarray of shape (a, N) and (b, N)
        Environments.
    knots : ndarray of shape (knots + 1, n), contiguous
        Functions at the knots. Rows lie before the last of them.
    """

    def __init__(self, x: NDArray, near: NDArray, far: NDArray, knots: NDArray) -> None:
        self._arrays = x, near, far  # their memory must stay
        self._knots = knots
        self._dtype, routines = near.dtype, _routines()
        self._n_near, self._n_rows = near.shape
        self._n_far = len(far)
        self._move, self._product = (routines[name, near.dtype.char] for name in ("local_move", "local_product"))
        self._near = _place(x), *_lines(near)
        self._far = _lines(far)

    def product(self, tables: NDArray | None, factors: NDArray | None, totals: NDArray | None) -> NDArray | None:
        """Do what `DenseRows.product` does.

        Parameters
        ----------
        tables : ndarray of shape (knots + 1, a, local_width(b)), contiguous, or None
            The core, contracted with the functions at every knot, see `knot_tables`.
        factors : ndarray of shape (N,), or None
        totals : ndarray of the shape of ``tables``, or None
            What the sums are added to: summed over the knots, times the functions there, they are those of
            `DenseRows.product`.

        Returns
        -------
        ndarray of shape (N,), or None
            The scores, if there are tables.
        """
        scores = None if tables is None else np.empty(self._n_rows, dtype=self._dtype)
        sizes = self._n_rows, self._n_near, self._n_far, len(self._knots) - 1
        places = _place(tables), _place(factors), _place(scores), _place(totals)
        _check("local_product", self._product(*sizes, *self._near, *self._far, *places))
        return scores

    def move(self, tables: NDArray, out: NDArray) -> NDArray:
        """Contract the near environment with a core.

        Shapes: tables (knots + 1, a, local_width(b)), contiguous -> (b, N), written to ``out``.
        """
        sizes = self._n_rows, self._n_near, len(out), len(tables) - 1
        _check("local_move", self._move(*sizes, *self._near, _place(tables), *_lines(out)))
        return out

    def arguments(self) -> tuple[tuple[int, ...], tuple[Any, ...], NDArray | None]:
        """Sizes, lines and knots, as `conjugate_gradients` takes them."""
        sizes = self._n_rows, self._n_near, self._knots.shape[1], self._n_far, len(self._knots) - 1
        x, *side = self._near
        return sizes, (*side, x, 0, *self._far), self._knots


def local_width(n_far: int, dtype: np.dtype) -> int:
    """So many far channels, rounded up to whole vectors."""
    lanes = _VECTOR_BYTES // dtype.itemsize
    return -(-n_far // lanes) * lanes


def knot_tables(knots: NDArray, core: NDArray) -> NDArray:
    """Contract a core with the functions at every knot, as `LocalRows` takes it.

    Shapes: knots (knots + 1, n), core (n, a, b) -> (knots + 1, a, local_width(b)), of the dtype of ``knots``.
    """
    n, n_near, n_far = core.shape
    padded = np.zeros((n, n_near, local_width(n_far, knots.dtype)), dtype=knots.dtype)
    padded[:, :, :n_far] = core
    return (knots @ padded.reshape(n, -1)).reshape(-1, *padded.shape[1:])


def interpolate(x: NDArray, tables: NDArray, out: NDArray) -> NDArray:
    """Interpolate functions between knots: what `LocalRows.move` does with a near environment of ones.

    Shapes: x (N,), contiguous, tables (knots + 1, 1, local_width(n)) -> (n, N), written to ``out``.
    """
    ones = np.ones((1, len(x)), dtype=x.dtype)
    return LocalRows(x, ones, out, tables[:, 0]).move(tables, out)


class Trains:
    """Trains over the same columns, evaluated together.

    Parameters
    ----------
    trains : sequence of sequences of ndarray of shape (n, a, b)
        Cores of each train, the functions first.
    knots : sequence of ndarray of shape (knots + 1, n), or None
        For each column, its functions at the knots if rows come as positions among them, None if they come as values
        of all functions.
    dtype : dtype
        What to compute in.
    """

    def __init__(self, trains: Sequence[Sequence[NDArray]], knots: Sequence[NDArray | None], dtype: np.dtype) -> None:
        self._dtype, self._routine = dtype, _routines()["evaluate", dtype.char]
        self._cores = [
            np.ascontiguousarray(core, dtype) if table is None else knot_tables(table, core)
            for train in trains
            for core, table in zip(train, knots, strict=True)
        ]
        ranks = [[*(core.shape[1] for core in train), train[-1].shape[2]] for train in trains]
        self._sizes = len(trains), len(knots)
        self._numbers = [
            np.array(numbers, dtype=np.int64)
            for numbers in (
                ranks,
                [core.shape[0] for core in trains[0]],
                [0 if table is None else len(table) - 1 for table in knots],
                [_place(core) for core in self._cores],
            )
        ]

    def evaluate(self, columns: Sequence[NDArray]) -> NDArray:
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
