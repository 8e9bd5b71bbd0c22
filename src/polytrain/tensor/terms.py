"""Sparse terms as arrays and as text: sorted, evaluated, printed, parsed, and to and from cores.

Conventions
-----------
``T`` terms are an integer array ``exponents`` (T, d) and an array ``coefficients`` (T,). Cut after feature ``k``, a
term is a prefix ``(i_1, ..., i_k)`` followed by a suffix ``(i_{k+1}, ..., i_d)``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from polytrain.arrays import Array
from polytrain.tensor.decompose import orthogonalize_cores, scale_exponent

# Numbers in the table of monomials of one block of rows: 8 MB of float64.
_BLOCK_SIZE = 2**20
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def sort_terms(exponents: Array, coefficients: Array) -> tuple[Array, Array]:
    """Sort distinct terms, lowest total degree first, without those whose coefficient is 0."""
    # lexsort takes the most important key last.
    order = np.lexsort((*(-exponents.T[::-1]), exponents.sum(axis=1)))
    order = order[coefficients[order] != 0]
    return exponents[order], coefficients[order]


def evaluate_terms(exponents: Array, coefficients: Array, rows: Array) -> Array:
    """Sum the terms at every row, block after block.

    Shapes: rows (N, d) -> (N,).
    """
    result = np.empty(len(rows))
    size = max(_BLOCK_SIZE // max(len(coefficients), 1), 16)
    for start in range(0, len(rows), size):
        columns = rows[start : start + size].T
        monomials = np.ones((len(exponents), columns.shape[1]))
        for column, powers in zip(columns, exponents.T, strict=True):
            affected = np.flatnonzero(powers)  # most terms have few variables
            monomials[affected] *= column ** powers[affected, None]
        result[start : start + size] = coefficients @ monomials
    return result


def cores_from_terms(exponents: Array, coefficients: Array, dims: Sequence[int], max_size: int) -> list[Array]:
    """Write T >= 1 distinct terms as cores that hold nothing but zeros, ones and the coefficients.

    The states of a bond are the distinct prefixes before one core, and the distinct suffixes after it; that core, which
    holds the coefficients, is where these are fewest.
    """
    prefixes, suffixes = _number_suffixes(exponents[:, ::-1], dims[::-1])[::-1], _number_suffixes(exponents, dims)
    counts = np.stack([prefixes, suffixes]).max(axis=2) + 1
    ranks = [np.concatenate((counts[0, : k + 1], counts[1, k + 1 :])) for k in range(len(dims))]
    sizes = [int(rank[:-1] * dims @ rank[1:]) for rank in ranks]
    centre = int(np.argmin(sizes))
    if sizes[centre] > max_size:
        raise ValueError(
            f"the train needs rank {ranks[centre].max()} and {sizes[centre]} numbers before it is rounded, more than "
            f"max_size={max_size}. Drop small terms, order the variables so that those which occur together are "
            "neighbours, or raise max_size."
        )
    cores = []
    for k, n in enumerate(dims):
        left, right = prefixes[k] if k <= centre else suffixes[k], prefixes[k + 1] if k < centre else suffixes[k + 1]
        core = np.zeros((ranks[centre][k], n, ranks[centre][k + 1]))
        core[left, exponents[:, k], right] = coefficients if k == centre else 1.0
        cores.append(core)
    return cores


def _number_suffixes(exponents: Array, dims: Sequence[int]) -> Array:
    """Number the distinct suffixes at every bond: (T, d) -> (d + 1, T), equal numbers for equal suffixes."""
    n_terms, order = exponents.shape
    numbers = np.zeros((order + 1, n_terms), dtype=np.int64)
    for k in reversed(range(order)):
        _, numbers[k] = np.unique(numbers[k + 1] * dims[k] + exponents[:, k], return_inverse=True)
    return numbers


def terms_from_cores(cores: Sequence[Array], tol: float, max_size: int) -> tuple[Array, Array]:
    """List the entries of a train that are larger than ``tol`` in magnitude.

    The tree of prefixes is walked level by level. With right-orthogonal cores the norm of a prefix's row vector is the
    norm of all entries below it, so a branch is left as soon as that is not above ``tol``. For ``tol=0`` the cores are
    taken as they are: orthogonalising would turn exact zeros into rounding errors.

    Shapes: -> exponents (T, d), coefficients (T,).
    """
    exponent = 0
    if tol > 0:
        cores, exponent = orthogonalize_cores(cores, 0)
    vectors = np.ones((1, 1))
    prefixes = np.zeros((1, 0), dtype=np.int64)
    for k, core in enumerate(cores):
        children = np.tensordot(vectors, core, axes=1)
        if k == 0:
            children = scale_exponent(children, exponent)
        # Magnitudes for tol=0: a norm would square tiny numbers away.
        alive = np.abs(children).max(axis=2) > 0
        if tol > 0:
            alive &= np.linalg.norm(children, axis=2) > tol
        parent, index = np.nonzero(alive)
        if len(parent) > max_size:
            raise ValueError(
                f"more than max_size={max_size} terms are left after variable {k + 1} of {len(cores)}. Raise tol to "
                "keep only large coefficients, or raise max_size."
            )
        prefixes = np.column_stack((prefixes[parent], index))
        vectors = children[parent, index]
    return prefixes, vectors[:, 0]


def default_names(n_variables: int) -> tuple[str, ...]:
    """Return x1, x2, ...: counted from 1, as in the formulas of the paper."""
    return tuple(f"x{k}" for k in range(1, n_variables + 1))


def format_terms(
    terms: Iterable[tuple[Sequence[int], float]], names: Sequence[str], precision: int | None, max_terms: int | None
) -> str:
    """Print terms in the given order; after ``max_terms`` terms, dots."""
    parts = []
    for count, (exponents, coefficient) in enumerate(terms):
        if count == max_terms:
            parts.append("+ ...")
            break
        magnitude = abs(coefficient)
        number = repr(magnitude).removesuffix(".0") if precision is None else f"{magnitude:.{precision}g}"
        powers = [(name, power) for name, power in zip(names, exponents, strict=True) if power > 0]
        factors = [name if power == 1 else f"{name}^{power}" for name, power in powers]
        if number != "1" or not factors:
            factors = [number, *factors]
        parts.append(f"{'-' if coefficient < 0 else '+'} {'*'.join(factors)}")
    text = " ".join(parts).removeprefix("+ ")
    return f"-{text[2:]}" if text.startswith("- ") else text or "0"


def parse_terms(text: str, names: Sequence[str] | None) -> tuple[dict[tuple[int, ...], float], int]:
    """Read the output of ``format_terms``; ``**`` also works for ``^``.

    Returns the terms, like ones added up, and the number of variables: the number of names, or without names the
    largest index of the variables x1, x2, ... in the text.
    """
    if names is None:
        variable = r"x[1-9]\d*"
    else:
        variable = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    factor = rf"(?:{_NUMBER}|(?:{variable})(?:(?:\^|\*\*)\d+)?)"
    term_pattern = re.compile(rf"\s*(?P<sign>[-+]?)\s*(?P<body>{factor}(?:\s*\*\s*{factor})*)\s*")
    factor_pattern = re.compile(rf"({_NUMBER})|({variable})(?:(?:\^|\*\*)(\d+))?")

    read: list[tuple[float, Counter[str]]] = []
    position = 0
    while position < len(text) or not read:
        match = term_pattern.match(text, position)
        if match is None or (read and not match["sign"]):
            raise ValueError(
                f"cannot read the polynomial at character {position}, {text[position : position + 20]!r}: write terms "
                f"such as 2*{names[0] if names else 'x1'}^3 with + or - between them."
            )
        coefficient, powers = -1.0 if match["sign"] == "-" else 1.0, Counter[str]()
        for number, name, power in factor_pattern.findall(match["body"]):
            if number:
                coefficient *= float(number)
            else:
                powers[name] += int(power or 1)
        read.append((coefficient, powers))
        position = match.end()

    if names is None:
        names = default_names(max((int(name[1:]) for _, powers in read for name in powers), default=0))
    terms: dict[tuple[int, ...], float] = defaultdict(float)
    for coefficient, powers in read:
        terms[tuple(powers[name] for name in names)] += coefficient
    return dict(terms), len(names)
