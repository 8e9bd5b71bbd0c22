"""Functions in which only some columns act together: a sum of trains, each over a few columns.

A *part* is one of these trains. Columns that interact with no other are one additive part together. The sum is written
as one ordinary train over all columns, so that other code need not handle parts. The objective is the weighted mean
loss plus alpha / 2 times the sum of the squared norms of the parts. Without a limit on the ranks this is ridge
regression with the sum of the parts' kernels, see `polytrain.learning.dual`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polytrain.arrays import Array
from polytrain.learning.dual import kernel_blocks
from polytrain.learning.start import linear_cores
from polytrain.maps import MapList
from polytrain.tensor import clip_ranks
from polytrain.tensor.stack import TrainStack

# Numbers of the train that a sum is written as: 200 MB.
_MOST_NUMBERS = 25_000_000

Cores = Sequence[Array]
Piece = tuple[tuple[int, ...], Cores]  # some columns and a train over them
Name = str | tuple[str, int]  # of channels
Blocks = dict[tuple[Name, Name], Array]


@dataclass(frozen=True)
class Part:
    """Columns that may act together or, if ``additive``, that each act on their own.

    ``ranks`` are those of the part's train with the border ranks 1; empty until they are known.
    """

    columns: tuple[int, ...]
    additive: bool = False
    ranks: tuple[int, ...] = ()


def additive_part(columns: Sequence[int]) -> Part:
    """Columns that do not act together."""
    return Part(tuple(columns), True, (1, *[2] * (len(columns) - 1), 1))


def make_parts(groups: Iterable[Iterable[int]], n_columns: int) -> tuple[Part, ...]:
    """Return the parts of a function whose columns act together in these groups only, the additive part first.

    Groups within another group are left out. Columns in none of the groups are one more group.

    >>> [(part.columns, part.additive) for part in make_parts([{1, 0}, {2}, {0}, {1, 3}], 5)]
    [((2, 4), True), ((0, 1), False), ((1, 3), False)]
    """
    wanted = {frozenset(group) for group in groups}
    wanted.add(frozenset(range(n_columns)) - frozenset().union(*wanted))
    # A group lies within another one only if its columns do: few have a column in common with it.
    holders: dict[int, list[frozenset[int]]] = {}
    for group in wanted:
        for column in group:
            holders.setdefault(column, []).append(group)
    largest = sorted(sorted(group) for group in wanted if group and not any(group < o for o in holders[min(group)]))
    single = [group[0] for group in largest if len(group) == 1]
    parts = [Part(tuple(group)) for group in largest if len(group) > 1]
    return tuple([additive_part(single), *parts] if single else parts)


def with_rank(parts: Sequence[Part], dims: Sequence[int], rank: int) -> tuple[Part, ...]:
    """Give all parts that are trains this rank, cut to what their columns allow."""
    return tuple(
        part if part.additive else replace(part, ranks=clip_ranks([dims[k] for k in part.columns], rank))
        for part in parts
    )


# --- the kernel -------------------------------------------------------------------------------------------------------


def parts_kernel(values: Sequence[Array], parts: Sequence[Part]) -> Array:
    """Kernel of a sum of parts for all pairs of rows, (N, N), given the functions of every column, (n_k, N) each."""
    kernel = parts_upper_kernel(values, parts)
    return np.triu(kernel) + np.triu(kernel, 1).T


def parts_upper_kernel(values: Sequence[Array], parts: Sequence[Part], out: Array | None = None) -> Array:
    """Do the same on and above the diagonal; the rest is undefined."""
    n_rows = values[0].shape[1]
    kernel = np.zeros((n_rows, n_rows)) if out is None else out
    grouped = [part.columns for part in parts if not part.additive]
    alone = [values[k][1:] for part in parts if part.additive for k in part.columns]
    stacked = np.concatenate([np.zeros((0, n_rows), values[0].dtype), *alone])
    for start, stop in kernel_blocks(n_rows):
        total = kernel[start:stop, start:]
        np.matmul(stacked[:, start:stop].T, stacked[:, start:], out=total)
        total += 1.0 if alone else 0.0  # the constant
        if grouped:
            total += _sum_of_products([(v[:, start:stop], v[:, start:]) for v in values], grouped)
    return kernel


def _sum_of_products(sides: Sequence[tuple[Array, Array]], groups: Sequence[tuple[int, ...]]) -> Array:
    """Sum over the groups of the products of their columns' kernels, between two sets of rows."""
    counts = np.bincount([k for group in groups for k in group], minlength=len(sides))
    # Only kernels that are needed again are kept.
    kept = {k: sides[k][0].T @ sides[k][1] for k in np.flatnonzero(counts > 1).tolist()}

    def factor(k: int) -> Array:
        return kept[k] if k in kept else sides[k][0].T @ sides[k][1]

    n_columns = len(sides)
    all_pairs = n_columns > 2 and len(groups) == n_columns * (n_columns - 1) // 2
    if all_pairs and all(len(group) == 2 for group in groups):  # the squared sum has all products, each pair twice
        return (np.square(sum(kept.values())) - sum(map(np.square, kept.values()))) / 2.0
    total = np.zeros((sides[0][0].shape[1], sides[0][1].shape[1]))
    for group in groups:
        product = factor(group[0]) * factor(group[1])
        for k in group[2:]:
            product *= factor(k)
        total += product
    return total


# --- trains of parts --------------------------------------------------------------------------------------------------


def _effects(cores: Cores) -> list[Array]:
    """Coefficients (n_k,) of each column alone; the first of them is the constant, the same everywhere."""
    rights = [np.ones(1)]
    for core in reversed(cores[1:]):
        rights.append(core[:, 0, :] @ rights[-1])
    effects, left = [], np.ones(1)
    for core, right in zip(cores, reversed(rights), strict=True):
        effects.append(np.einsum("a,aib,b->i", left, core, right))
        left = left @ core[:, 0, :]
    return effects


def share_additive(cores: Cores, parts: Sequence[Part]) -> list[list[Array]]:
    """Divide an additive train over all columns among parts: equal shares have the least norm."""
    effects = _effects(cores)
    counts = np.bincount([k for part in parts for k in part.columns], minlength=len(effects))
    bias = float(effects[0][0]) / len(parts)
    return [linear_cores(bias, [effects[k][1:] / counts[k] for k in part.columns]) for part in parts]


def sum_scores(parts: Sequence[Part], maps: MapList, trains: Sequence[Cores], columns: Array) -> Array:
    """Evaluate a sum of parts on placed columns (d, N) -> (N,), in float64; ``maps`` are those of all columns."""
    scores = np.zeros(columns.shape[1])
    for part, cores in zip(parts, trains, strict=True):
        own = maps.members(part.columns)
        stack = TrainStack([cores], [m.values for m in own], [m.knots for m in own])
        scores += stack.evaluate(columns[list(part.columns)].T, dtype=np.float64)[0]
    return scores


def joined_ranks(parts: Sequence[Part], dims: Sequence[int]) -> tuple[int, ...]:
    """Ranks of the train that `join_parts` makes of parts whose ranks are known."""
    zeros = [
        [np.zeros((a, dims[k], b)) for k, a, b in zip(part.columns, part.ranks, part.ranks[1:], strict=False)]
        for part in parts
    ]
    widths = [sum(own.values()) for own in _widths(_blocks(parts, dims, zeros))]
    ranks = clip_ranks(dims, widths[1:-1]) if len(dims) > 1 else (1, 1)
    numbers = sum(a * n * b for a, n, b in zip(ranks, dims, ranks[1:], strict=False))
    if numbers > _MOST_NUMBERS:
        raise ValueError(
            f"the sum of {len(parts)} groups of columns takes a train of {numbers} numbers, more than the "
            f"{_MOST_NUMBERS} that are sensible. Name fewer groups in interaction_cst, or leave out columns."
        )
    return ranks


def join_parts(parts: Sequence[Part], dims: Sequence[int], trains: Sequence[Cores]) -> list[Array]:
    """Write a sum of parts as one train over all columns.

    Two channels are shared by all: one for the parts to the right, the other for the sum of those to the left. In
    between, a part has channels of its own; the constant function carries them over columns that it does not have.
    Parts that begin with the same column share its functions as channels where these are fewer, and so do pairs that
    end with the same column, in the right half. Coefficients of columns that share no part are exactly zero.
    """
    blocks = _blocks(parts, dims, trains)
    bonds: list[dict[Name, slice]] = []
    for widths in _widths(blocks):
        stops = np.cumsum(list(widths.values())).tolist()
        bonds.append({name: slice(stop - widths[name], stop) for name, stop in zip(widths, stops, strict=True)})
    cores = []
    for own, n, left, right in zip(blocks, dims, bonds, bonds[1:], strict=False):
        a, b = (max(channels.stop for channels in bond.values()) for bond in (left, right))
        core = np.zeros((a, n, b))
        for (begin, end), block in own.items():
            core[left[begin], :, right[end]] = block
        cores.append(core)
    return _narrowed(cores)


def _blocks(parts: Sequence[Part], dims: Sequence[int], trains: Sequence[Cores]) -> list[Blocks]:
    """Blocks of the cores of a sum of trains over some of the columns, by their channels on the left and on the right.

    The names of channels are "before", "sum", ("train", number), ("functions", column) for the functions of a column
    to the left, and ("awaited", column) for what waits to be multiplied by those of a column to the right.
    """
    pieces = _pieces(parts, trains)
    blocks: list[Blocks] = [{} for _ in dims]
    for k in range(max(columns[0] for columns, _ in pieces)):
        blocks[k]["before", "before"] = _passing(1, dims[k])
    for k in range(min(columns[-1] for columns, _ in pieces) + 1, len(dims)):
        blocks[k]["sum", "sum"] = _passing(1, dims[k])
    for columns, cores, names in _shared(pieces, dims):
        channels = ["before", *names, "sum"]
        for place, (column, core) in enumerate(zip(columns, cores, strict=True)):
            blocks[column][channels[place], channels[place + 1]] = core
        for name, core, column, following in zip(names, cores, columns, columns[1:], strict=False):
            for k in range(column + 1, following):
                blocks[k][name, name] = _passing(core.shape[2], dims[k])
    return blocks


def _passing(width: int, n: int) -> Array:
    """Block of channels that the constant function of a column carries on."""
    block = np.zeros((width, n, width))
    block[:, 0] = np.eye(width)
    return block


def _shared(pieces: Sequence[Piece], dims: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Cores, list[Name]]]:
    """Trains with the names of their channels between two of their columns.

    Those are the functions of a column where these are fewer than the channels of all trains that begin or end there.
    """
    first, last = np.zeros(len(dims)), np.zeros(len(dims))
    for columns, cores in pieces:
        if len(columns) > 1:
            first[columns[0]] += cores[0].shape[2]
        if len(columns) == 2:
            last[columns[1]] += cores[0].shape[2]
    middle = len(dims) // 2
    for number, (columns, cores) in enumerate(pieces):
        begin, end = columns[0], columns[-1]
        names: list[Name] = [("train", number)] * (len(columns) - 1)
        begins = len(columns) > 1 and first[begin] > dims[begin]
        ends = len(columns) == 2 and last[end] > dims[end]
        if begins and ends and begin < middle < end:
            block = np.zeros((dims[begin], dims[middle], dims[end]))
            block[:, 0] = np.tensordot(cores[0][0], cores[1][:, :, 0], axes=1)
            cores = [np.eye(dims[begin])[None], block, np.eye(dims[end])[:, :, None]]
            columns, names = (begin, middle, end), [("functions", begin), ("awaited", end)]
        elif begins and not (ends and begin >= middle):  # the first core goes into the second
            cores = [np.eye(dims[begin])[None], np.tensordot(cores[0][0], cores[1], axes=1), *cores[2:]]
            names[0] = "functions", begin
        elif ends:
            cores = [np.tensordot(cores[0], cores[1][:, :, 0], axes=1), np.eye(dims[end])[:, :, None]]
            names = [("awaited", end)]
        yield columns, cores, names


def _widths(blocks: Sequence[Blocks]) -> list[dict[Name, int]]:
    """Numbers of channels at every bond, by their names."""
    widths: list[dict[Name, int]] = [{begin: block.shape[0] for (begin, _), block in own.items()} for own in blocks]
    return [*widths, {"sum": 1}]


def _pieces(parts: Sequence[Part], trains: Sequence[Cores]) -> list[Piece]:
    """Trains with their columns; an additive part is split into one train per column."""
    pieces: list[Piece] = []
    for part, cores in zip(parts, trains, strict=True):
        if not part.additive:
            pieces.append((part.columns, cores))
            continue
        for place, (column, effect) in enumerate(zip(part.columns, _effects(cores), strict=True)):
            own = effect.copy()
            own[0] *= place == 0  # the constant counts once
            pieces.append(((column,), [own.reshape(1, -1, 1)]))
    return pieces


def _narrowed(cores: list[Array]) -> list[Array]:
    """Bonds that are wider than their neighbours allow, near the ends of a train, become narrower; others stay."""
    for k in range(len(cores) - 1):
        a, n, b = cores[k].shape
        if b > a * n:  # all products of functions of the columns up to here are channels
            cores[k + 1] = np.tensordot(cores[k].reshape(a * n, b), cores[k + 1], axes=(1, 0))
            cores[k] = np.eye(a * n).reshape(a, n, a * n)
    for k in range(len(cores) - 1, 0, -1):
        a, n, b = cores[k].shape
        if a > n * b:
            cores[k - 1] = np.tensordot(cores[k - 1], cores[k].reshape(a, n * b), axes=(2, 0))
            cores[k] = np.eye(n * b).reshape(n * b, n, b)
    return cores
