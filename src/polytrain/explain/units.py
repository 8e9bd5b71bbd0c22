"""Trains in powers of the variables a reader wants: scaled features, distances from the centre, or raw features.

All three are affine in each other, feature by feature, so changing them is a small matrix on the middle axis of each
core. The ranks stay, and nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from polytrain.explain.view import ModelView
from polytrain.maps import AffinePowers
from polytrain.tensor import TensorTrain

__all__ = ["UNITS", "Variables", "all_powers", "choose_variables", "power_cores", "weigh_cores"]

UNITS = ("auto", "original", "centred", "scaled")

# Largest growth of the coefficients at which "auto" still takes raw features: one digit may cancel.
_MAX_GROWTH = 10.0


@dataclass(frozen=True)
class Variables:
    """Variables z with ``scaled feature = factor * z + offset``, and the largest magnitude of z in the fitted range.

    All arrays have shape (d,).
    """

    units: str
    factor: NDArray
    offset: NDArray
    largest: NDArray
    names: tuple[str, ...]


def choose_variables(view: ModelView, units: str) -> Variables:
    """Variables of the asked units; "auto" takes raw features unless their coefficients cancel too much."""
    if not isinstance(units, str) or units not in UNITS:
        raise ValueError(f"units must be one of {list(UNITS)}, got {units!r}.")
    if units != "auto":
        return _variables(view, units)
    raw, scaled = _variables(view, "original"), _variables(view, "scaled")
    for train in view.trains:
        before = _strength_norm(view, train, scaled)
        if not _strength_norm(view, train, raw) <= _MAX_GROWTH * before < np.inf:
            return scaled
    return raw


def _variables(view: ModelView, units: str) -> Variables:
    d, names = view.n_features, view.feature_names
    one, zero = np.ones(d), np.zeros(d)
    powers = all_powers(view)
    ranges = [feature_map.range for feature_map in view.maps]
    if not any(ranges):
        # Features were taken as they are. Their range is not known; the estimator asks for size one.
        return Variables("original", one, zero, one, names)
    factor, centre = (np.array([getattr(form, name) for form in powers]) for name in ("factor", "centre"))
    if units == "scaled":
        return Variables(units, one, zero, np.where(factor > 0, 1.0, 0.0), names)
    with np.errstate(over="ignore"):
        if units == "centred":
            half = np.divide(1.0, factor, out=np.zeros(d), where=factor > 0)
            names = tuple(
                f"({name} {'-' if middle >= 0 else '+'} {abs(middle):.4g})"
                for name, middle in zip(names, centre, strict=True)
            )
            return Variables(units, factor, zero, half, names)
        largest = np.array([1.0 if ends is None else max(abs(ends[0]), abs(ends[1])) for ends in ranges])
        return Variables(units, factor, -centre * factor, largest, names)


def all_powers(view: ModelView) -> list[AffinePowers]:
    """Every map as polynomials; the others have no terms."""
    forms = []
    for name, feature_map in zip(view.feature_names, view.maps, strict=True):
        if feature_map.powers is None:
            raise ValueError(
                f"terms are products of powers, but the column {name!r} has a map of the kind {feature_map.kind!r}, "
                "which is no polynomial. Use sobol_indices or partial_dependence, or fit with basis='power'."
            )
        forms.append(feature_map.powers)
    return forms


def power_cores(view: ModelView, train: TensorTrain, variables: Variables) -> list[NDArray]:
    """Cores in float64 of the same polynomial in powers of the variables."""
    cores = []
    with np.errstate(over="ignore", invalid="ignore"):  # callers check that the cores are finite
        for core, form, factor, offset in zip(
            train.cores, all_powers(view), variables.factor, variables.offset, strict=True
        ):
            matrix = form.matrix @ _substitution(core.shape[1], factor, offset)
            cores.append(np.einsum("aib,ij->ajb", core.astype(np.float64, copy=False), matrix))
    return cores


def _substitution(n: int, factor: float, offset: float) -> NDArray:
    """Matrix whose row i holds (factor * z + offset)^i as coefficients of 1, z, z^2, ..."""
    matrix = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            matrix[i, j] = comb(i, j) * factor**j * offset ** (i - j)
    return matrix


def weigh_cores(cores: Sequence[NDArray], largest: NDArray) -> list[NDArray]:
    """Multiply every coefficient by the largest magnitude its term reaches: cores of strengths, up to the sign."""
    with np.errstate(over="ignore", invalid="ignore"):
        return [core * (size ** np.arange(core.shape[1]))[:, None] for core, size in zip(cores, largest, strict=True)]


def _strength_norm(view: ModelView, train: TensorTrain, variables: Variables) -> float:
    """Root of the sum of the squared strengths of all terms; infinite where they overflow."""
    cores = weigh_cores(power_cores(view, train, variables), variables.largest)
    if not all(np.isfinite(core).all() for core in cores):
        return np.inf
    return TensorTrain(cores).norm()
