"""Triangles in place, by SciPy's BLAS and LAPACK without Python's lock.

SciPy's own wrappers hold the lock while they compute, so that threads wait for each other. The same functions are
called here through the addresses that SciPy exports for Cython.
"""

from __future__ import annotations

from ctypes import CFUNCTYPE, byref, c_char, c_char_p, c_double, c_int, c_void_p, py_object, pythonapi
from typing import Any

from scipy.linalg import cython_blas, cython_lapack

from polytrain.arrays import Array

__all__ = ["cholesky", "invert_triangle", "square_triangle"]

# Triangles of at most this many rows are left to LAPACK.
_SMALL = 64


def _function(module: Any, name: str, n_arguments: int) -> Any:
    """A function of Fortran, all of whose arguments are addresses."""
    name_of, pointer_of = pythonapi.PyCapsule_GetName, pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = c_char_p, [py_object]
    pointer_of.restype, pointer_of.argtypes = c_void_p, [py_object, c_char_p]
    capsule = module.__pyx_capi__[name]
    return CFUNCTYPE(None, *[c_void_p] * n_arguments)(pointer_of(capsule, name_of(capsule)))


_dpotrf, _dlauum = _function(cython_lapack, "dpotrf", 5), _function(cython_lapack, "dlauum", 5)
_dtrtri, _dtrmm = _function(cython_lapack, "dtrtri", 6), _function(cython_blas, "dtrmm", 11)
_LEFT, _RIGHT, _LOWER, _PLAIN = (byref(c_char(letter)) for letter in (b"L", b"R", b"L", b"N"))
_ONE, _MINUS = byref(c_double(1.0)), byref(c_double(-1.0))


def cholesky(matrix: Array) -> bool:
    """Put the Cholesky factor into the lower triangle of a matrix in Fortran's order; False if there is none."""
    info, size = c_int(), byref(c_int(len(matrix)))
    _dpotrf(_LOWER, size, matrix.ctypes.data, size, byref(info))
    return info.value == 0


def square_triangle(lower: Array) -> None:
    """Replace a lower triangle L in Fortran's order by that of L' L."""
    info, size = c_int(), byref(c_int(len(lower)))
    _dlauum(_LOWER, size, lower.ctypes.data, size, byref(info))


def invert_triangle(lower: Array) -> None:
    """Invert a lower triangle in Fortran's order.

    By halves, since most of it then are products of large matrices: twice as fast as LAPACK's own.
    """
    _invert(lower.ctypes.data, len(lower), len(lower), lower.itemsize)


def _invert(address: int, n_rows: int, stride: int, itemsize: int) -> None:
    leading = byref(c_int(stride))
    if n_rows <= _SMALL:
        _dtrtri(_LOWER, _PLAIN, byref(c_int(n_rows)), address, leading, byref(c_int()))
        return
    half = n_rows // 2
    first, rest = byref(c_int(half)), byref(c_int(n_rows - half))
    between, last = address + half * itemsize, address + half * (stride + 1) * itemsize
    _invert(address, half, stride, itemsize)
    _invert(last, n_rows - half, stride, itemsize)
    _dtrmm(_RIGHT, _LOWER, _PLAIN, _PLAIN, rest, first, _MINUS, address, leading, between, leading)
    _dtrmm(_LEFT, _LOWER, _PLAIN, _PLAIN, rest, first, _ONE, last, leading, between, leading)
