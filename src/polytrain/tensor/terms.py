"""Sparse terms as arrays and as text: sorted, evaluated, printed, parsed, and to and from cores.

Conventions
-----------
``T`` terms are an integer array ``exponents`` (T, d) and an array ``coefficients`` (T,). Cut after feature ``k``, a
term is a prefix ``(i_1, ..., i_k)`` followed by a suffix ``(i_{k+1}, ..., i_d)``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from polytrain.arrays import Array
from polytrain.tensor.decompose import orthogonalize_cores, scale_exponent

# Numbers in the table of monomials of one block of rows: 8 MB of float64.
_BLOCK_SIZE = 2**20
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def collect_terms(exponents: Array, coefficients: Array) -> tuple[Array, Array]:
    """Sort the terms, lowest total degree first, add up like terms and drop zeros."""
    # lexsort takes the most important key last.
    order = np.lexsort((*(-exponents.T[::-1]), exponents.sum(axis=1)))
    exponents, coefficients = exponents[order], coefficients[order]
    first = np.flatnonzero(np.diff(exponents, axis=0, prepend=-1).any(axis=1))
    exponents, coefficients = exponents[first], np.add.reduceat(coefficients, first)
    keep = coefficients != 0
    return exponents[keep], coefficients[keep]


def evaluate_terms(exponents: Array, coefficients: Array, rows: Array) -> Array:
    """Sum the terms at every row, block after block.

    Shapes: rows (N, d) -> (N,).
    """
    result = np.empty(len(rows))
    size = max(_BLOCK_SIZE // max(len(coefficients), 1), 16)
    for start in range(0, len(rows), size):
        columns = rows[start : start + size].T
        monomials = np.ones((len(exponents), columns.shape[1]))
        for column, powers_of_terms in zip(columns, exponents.T, strict=True):
            # Most terms have few variables, so only those with this one are touched.
            affected = np.flatnonzero(powers_of_terms)
            monomials[affected] *= column ** powers_of_terms[affected, None]
        result[start : start + size] = coefficients @ monomials
    return result


def cores_from_terms(exponents: Array, coefficients: Array, dims: Sequence[int], max_size: int) -> list[Array]:
    """Write T >= 1 distinct terms as cores that hold nothing but zeros, ones and the coefficients.

    At each bond the terms are the edges of a graph between the prefixes and the suffixes. A prefix that becomes a
    state of the bond carries all its edges on; a suffix that becomes a state collects all its edges, weights included.
    So every vertex cover of the graph is a set of states, and the smallest one gives the smallest rank that holds for
    all values of the coefficients (Ren, Li, Jiang and Shuai, J. Chem. Phys. 153, 084118, 2020, for operators).
    """
    suffixes = _number_suffixes(exponents, dims)
    # Term `term[j]` stands for all terms that share its state and its suffix.
    term = np.arange(len(exponents))
    state = np.zeros(len(term), dtype=np.int64)
    weight = coefficients
    n_states = 1
    size = 0
    cores = []
    for k, n in enumerate(dims):
        exponent = exponents[term, k]
        prefixes, row = np.unique(state * n + exponent, return_inverse=True)
        _, first, column = np.unique(suffixes[k + 1, term], return_index=True, return_inverse=True)
        row_cover, column_cover = _smallest_vertex_cover(row, column, (len(prefixes), len(first)))
        n_rows, n_columns = int(np.count_nonzero(row_cover)), int(np.count_nonzero(column_cover))
        row_state = np.cumsum(row_cover) - 1
        column_state = np.cumsum(column_cover) - 1 + n_rows

        size += n_states * n * (n_rows + n_columns)
        if size > max_size:
            raise ValueError(
                f"the train needs rank {n_rows + n_columns} after variable {k + 1} and more than max_size={max_size} "
                "numbers. Drop small terms, order the variables so that those which occur together are neighbours, or "
                "raise max_size."
            )
        core = np.zeros((n_states, n, n_rows + n_columns))
        collected = column_cover[column]
        passed = ~collected
        core[state[collected], exponent[collected], column_state[column[collected]]] = weight[collected]
        core[state[passed], exponent[passed], row_state[row[passed]]] = 1.0
        cores.append(core)

        term = np.concatenate((term[passed], term[first[column_cover]]))
        state = np.concatenate((row_state[row[passed]], column_state[column_cover]))
        weight = np.concatenate((weight[passed], np.ones(n_columns)))
        n_states = n_rows + n_columns
    cores[-1] *= weight  # of the one state that is left
    return cores


def _number_suffixes(exponents: Array, dims: Sequence[int]) -> Array:
    """Number the distinct suffixes at every bond: (T, d) -> (d + 1, T), equal numbers for equal suffixes."""
    n_terms, order = exponents.shape
    numbers = np.zeros((order + 1, n_terms), dtype=np.int64)
    for k in reversed(range(order)):
        _, numbers[k] = np.unique(numbers[k + 1] * dims[k] + exponents[:, k], return_inverse=True)
    return numbers


def _smallest_vertex_cover(row: Array, column: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Mark as few rows and columns as possible such that every edge has a marked end (Koenig's theorem).

    Shapes: row (E,), column (E,) -> booleans (n_rows,), (n_columns,).
    """
    edges = row.astype(np.int32), column.astype(np.int32)  # SciPy 1.13 matches no others
    graph = csr_array((np.ones(len(row), dtype=np.int8), edges), shape=shape)
    matched_column = maximum_bipartite_matching(graph, perm_type="column")
    matched = np.flatnonzero(matched_column >= 0)
    matched_row = np.full(shape[1], -1)
    matched_row[matched_column[matched]] = matched
    # Reach what alternating paths reach from the unmatched rows: to any column, and back along the matching only.
    reached = matched_column < 0
    while True:
        n_reached = np.count_nonzero(reached)
        columns = np.isin(np.arange(shape[1]), column[reached[row]])
        # No reached column is unmatched: the path to it would make the matching larger.
        reached[matched_row[columns]] = True
        if np.count_nonzero(reached) == n_reached:
            return ~reached, columns


def terms_from_cores(cores: Sequence[Array], tol: float, max_size: int) -> tuple[Array, Array]:
    """List the entries of a train that are larger than ``tol`` in magnitude.

    The tree of prefixes is walked level by level. With right-orthogonal cores the norm of a prefix's row vector is the
    norm of all entries below it, so a branch is left as soon as that is not above ``tol``. For ``tol=0`` the cores are
    taken as they are: orthogonalising would turn exact zeros into rounding errors.

    Shapes: -> exponents (T, d), coefficients (T,).
    """
    if tol > 0:
        cores, exponent = orthogonalize_cores(cores, 0)
        cores[0] = scale_exponent(cores[0], exponent)
    vectors = np.ones((1, 1))
    prefixes = np.zeros((1, 0), dtype=np.int64)
    for k, core in enumerate(cores):
        children = np.tensordot(vectors, core, axes=1)
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


def format_terms(terms: Iterable[tuple[Sequence[int], float]], names: Sequence[str], precision: int | None) -> str:
    """Print terms in the given order."""
    parts = []
    for exponents, coefficient in terms:
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
        names = default_names(max(map(int, re.findall(r"x([1-9]\d*)", text)), default=0))
    else:
        variable = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    factor = rf"(?:{_NUMBER}|(?:{variable})(?:(?:\^|\*\*)\d+)?)"
    term_pattern = re.compile(rf"\s*(?P<sign>[-+]?)\s*(?P<body>{factor}(?:\s*\*\s*{factor})*)\s*")
    factor_pattern = re.compile(rf"(?P<number>{_NUMBER})|(?P<name>{variable})(?:(?:\^|\*\*)(?P<power>\d+))?")

    terms: dict[tuple[int, ...], float] = defaultdict(float)
    position = 0
    while position < len(text) or not terms:
        match = term_pattern.match(text, position)
        if match is None or (terms and not match["sign"]):
            raise ValueError(
                f"cannot read the polynomial at character {position}, {text[position : position + 20]!r}: write terms "
                f"such as 2*{names[0] if names else 'x1'}^3 with + or - between them."
            )
        coefficient = -1.0 if match["sign"] == "-" else 1.0
        powers = [0] * len(names)
        for part in factor_pattern.finditer(match["body"]):
            if part["number"]:
                coefficient *= float(part["number"])
            else:
                powers[names.index(part["name"])] += int(part["power"] or 1)
        terms[tuple(powers)] += coefficient
        position = match.end()
    return dict(terms), len(names)
