"""Functions in which only some columns act together: a sum of trains, each over a few columns.

A *part* is one of these trains. Columns that interact with no other are one part together, a sum of functions of single
columns; every other part is a train over the columns of a group. The sum is written as one ordinary train over all
columns, so that nothing else need know about parts.

Conventions
-----------
The objective is the weighted mean loss plus alpha / 2 times the sum of the squared norms of the parts. Without a limit
on the ranks this is ridge regression with the sum of the parts' kernels, see `polytrain.learning.dual`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.dual import kernel_blocks
from polytrain.learning.start import linear_cores
from polytrain.maps import MapList
from polytrain.tensor import clip_ranks
from polytrain.tensor.stack import TrainStack

__all__ = [
    "Part",
    "additive_part",
    "join_parts",
    "joined_ranks",
    "make_parts",
    "part_scores",
    "parts_kernel",
    "parts_upper_kernel",
    "share_additive",
    "with_rank",
]

Cores = Sequence[NDArray]
Name = str | tuple[str, int]  # of channels


@dataclass(frozen=True)
class Part:
    """Columns that may act together.

    Attributes
    ----------
    columns : tuple of int
        In their order.
    additive : bool
        Whether these columns do not act together, but each on its own.
    ranks : tuple of int
        Ranks of the part's train with the border ranks 1; empty until they are known.
    """

    columns: tuple[int, ...]
    additive: bool = False
    ranks: tuple[int, ...] = ()


def additive_part(columns: Sequence[int]) -> Part:
    """Columns that do not act together."""
    return Part(tuple(columns), True, (1, *[2] * (len(columns) - 1), 1))


def make_parts(groups: Iterable[Iterable[int]], n_columns: int) -> tuple[Part, ...]:
    """Return the parts of a function whose columns act together in these groups only, the additive part first.

    What lies within another group is left out. Columns in none of the groups are one more group.

    Examples
    --------
    >>> from polytrain.learning.parts import make_parts
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


def parts_kernel(values: Sequence[NDArray], parts: Sequence[Part]) -> NDArray:
    """Kernel of a sum of parts for all pairs of rows, (N, N), given the functions of every column, (n_k, N) each."""
    kernel = parts_upper_kernel(values, parts)
    return np.triu(kernel) + np.triu(kernel, 1).T


def parts_upper_kernel(values: Sequence[NDArray], parts: Sequence[Part], out: NDArray | None = None) -> NDArray:
    """Do the same on and above the diagonal; what is below it says nothing."""
    n_rows = values[0].shape[1]
    kernel = np.zeros((n_rows, n_rows)) if out is None else out
    for start, stop in kernel_blocks(n_rows):
        factors = [columns[:, start:stop].T @ columns[:, start:] for columns in values]
        kernel[start:stop, start:] = _sum_of_products(factors, parts)
    return kernel


def _sum_of_products(factors: Sequence[NDArray], parts: Sequence[Part]) -> NDArray:
    if _are_all_pairs(parts, len(factors)):  # as the squared sum has all products, each pair twice
        return (np.square(sum(factors)) - sum(np.square(factor) for factor in factors)) / 2.0
    total = np.zeros(factors[0].shape)
    for part in parts:
        own = [factors[k] for k in part.columns]
        if part.additive:
            total += sum(own)
            total -= len(own) - 1.0  # the constant counts once
            continue
        product = own[0] * own[1]
        for factor in own[2:]:
            product *= factor
        total += product
    return total


def _are_all_pairs(parts: Sequence[Part], n_columns: int) -> bool:
    pairs = not any(part.additive for part in parts) and all(len(part.columns) == 2 for part in parts)
    return pairs and len(parts) == n_columns * (n_columns - 1) // 2


# --- trains of parts --------------------------------------------------------------------------------------------------


def _effects(cores: Cores) -> list[NDArray]:
    """Coefficients (n_k,) of what each column does alone; the first of them is the constant, the same everywhere."""
    rights = [np.ones(1)]
    for core in reversed(cores[1:]):
        rights.append(core[:, 0, :] @ rights[-1])
    found, left = [], np.ones(1)
    for core, right in zip(cores, reversed(rights), strict=True):
        found.append(np.einsum("a,aib,b->i", left, core, right))
        left = left @ core[:, 0, :]
    return found


def share_additive(cores: Cores, parts: Sequence[Part]) -> list[list[NDArray]]:
    """Share an additive train over all columns between parts: equal shares have the least norm."""
    effects = _effects(cores)
    counts = np.bincount([k for part in parts for k in part.columns], minlength=len(effects))
    bias = float(effects[0][0]) / len(parts)
    return [linear_cores(bias, [effects[k][1:] / counts[k] for k in part.columns]) for part in parts]


def part_scores(part: Part, maps: MapList, cores: Cores, columns: NDArray) -> NDArray:
    """Evaluate a part on placed columns (d, N) -> (N,), in float64; ``maps`` are those of all columns."""
    own = maps.members(part.columns)
    stack = TrainStack([cores], [m.values for m in own], np.float64, [m.knots for m in own])
    return stack.evaluate(columns[list(part.columns)].T)[0]


def joined_ranks(parts: Sequence[Part], dims: Sequence[int]) -> tuple[int, ...]:
    """Ranks of the train that `join_parts` makes of parts whose ranks are known."""
    zeros = [
        [np.zeros((a, dims[k], b)) for k, a, b in zip(part.columns, part.ranks, part.ranks[1:], strict=False)]
        for part in parts
    ]
    widths = [len(layout) for layout in _Sum(parts, dims, zeros).bonds]
    return clip_ranks(dims, widths[1:-1]) if len(dims) > 1 else (1, 1)


def join_parts(parts: Sequence[Part], dims: Sequence[int], trains: Sequence[Cores]) -> list[NDArray]:
    """Write a sum of parts as one train over all columns.

    Two channels are shared by all: one says that nothing has begun yet, the other carries the sum of what has ended. In
    between, a part has channels of its own; the constant function carries them over columns that it does not have.
    Parts that begin with the same column share its functions as channels where these are fewer. So products of columns
    that no part has together have no channel: their coefficients are zero.
    """
    return _narrowed(_Sum(parts, dims, trains).cores())


class _Sum:
    """A sum of trains over some of the columns, as channels of one train.

    ``bonds[k]`` holds the layout of the bond left of column k: where the channels of everything that crosses it begin,
    and how many there are. The names are "before", "sum", ("functions", column) and ("train", number).
    """

    def __init__(self, parts: Sequence[Part], dims: Sequence[int], trains: Sequence[Cores]) -> None:
        self._dims = dims
        self._pieces = _pieces(parts, trains)
        self._shared = self._shared_columns()
        self.bonds = [_Layout(self._widths(k)) for k in range(len(dims) + 1)]

    def _shared_columns(self) -> set[int]:
        widths = np.zeros(len(self._dims))
        for columns, cores in self._pieces:
            if len(columns) > 1:
                widths[columns[0]] += cores[0].shape[2]
        return set(np.flatnonzero(widths > np.array(self._dims)).tolist())

    def _widths(self, bond: int) -> dict[Name, int]:
        widths: dict[Name, int] = {}
        if any(columns[0] >= bond for columns, _ in self._pieces):
            widths["before"] = 1
        if any(columns[-1] < bond for columns, _ in self._pieces):
            widths["sum"] = 1
        for number, (columns, cores) in enumerate(self._pieces):
            if columns[0] < bond <= columns[-1]:
                passed = sum(column < bond for column in columns)
                if passed == 1 and columns[0] in self._shared:
                    widths["functions", columns[0]] = self._dims[columns[0]]
                else:
                    widths["train", number] = cores[passed].shape[0]
        return widths

    def cores(self) -> list[NDArray]:
        """The cores of the sum."""
        made = [
            np.zeros((len(left), n, len(right)))
            for n, left, right in zip(self._dims, self.bonds, self.bonds[1:], strict=False)
        ]
        for k, core in enumerate(made):
            left, right = self.bonds[k], self.bonds[k + 1]
            for name in left.names & right.names:  # what has not to do with this column, and what goes on beside it
                if isinstance(name, str) or not self._is_touched(name, k):
                    core[left[name], 0, right[name]] = np.eye(left.width(name))
            if ("functions", k) in right.names:
                core[left["before"], :, right["functions", k]] = np.eye(self._dims[k])
        for number, (columns, cores) in enumerate(self._pieces):
            self._lay(made, number, columns, cores)
        return made

    def _is_touched(self, name: tuple[str, int], column: int) -> bool:
        return name[0] == "train" and column in self._pieces[name[1]][0]

    def _lay(self, made: list[NDArray], number: int, columns: Sequence[int], cores: Cores) -> None:
        cores, first = list(cores), 0
        if len(columns) > 1 and columns[0] in self._shared:  # its first core goes into the second
            cores[1] = np.tensordot(cores[0][0], cores[1], axes=(1, 0))
            first = 1
        for place in range(first, len(columns)):
            k, last = columns[place], len(columns) - 1
            begin: Name = "before" if place == 0 else ("train", number)
            if place == 1 and first == 1:
                begin = "functions", columns[0]
            end: Name = "sum" if place == last else ("train", number)
            # Several parts may end here: their sum goes to the same channel.
            made[k][self.bonds[k][begin], :, self.bonds[k + 1][end]] += cores[place]


class _Layout:
    """Channels of a bond, by name."""

    def __init__(self, widths: dict[Name, int]) -> None:
        stops = np.cumsum(list(widths.values())).tolist()
        self._slices = {name: slice(stop - widths[name], stop) for name, stop in zip(widths, stops, strict=True)}
        self._size = stops[-1]
        self.names = set(widths)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, name: Name) -> slice:
        return self._slices[name]

    def width(self, name: Name) -> int:
        """How many channels the name has."""
        return self._slices[name].stop - self._slices[name].start


def _pieces(parts: Sequence[Part], trains: Sequence[Cores]) -> list[tuple[tuple[int, ...], Cores]]:
    """Trains with their columns; an additive part falls into a train for every column."""
    found: list[tuple[tuple[int, ...], Cores]] = []
    for part, cores in zip(parts, trains, strict=True):
        if not part.additive:
            found.append((part.columns, cores))
            continue
        for place, (column, effect) in enumerate(zip(part.columns, _effects(cores), strict=True)):
            own = effect.copy()
            own[0] *= place == 0  # the constant counts once
            found.append(((column,), [own.reshape(1, -1, 1)]))
    return found


def _narrowed(cores: list[NDArray]) -> list[NDArray]:
    """Bonds that are wider than their neighbours allow, near the ends of a train, become narrower; others stay."""
    for k in range(len(cores) - 1):
        a, n, b = cores[k].shape
        if b > a * n:  # all of what the columns up to here can say: the channels are their products
            cores[k + 1] = np.tensordot(cores[k].reshape(a * n, b), cores[k + 1], axes=(1, 0))
            cores[k] = np.eye(a * n).reshape(a, n, a * n)
    for k in range(len(cores) - 1, 0, -1):
        a, n, b = cores[k].shape
        if a > n * b:
            cores[k - 1] = np.tensordot(cores[k - 1], cores[k].reshape(a, n * b), axes=(2, 0))
            cores[k] = np.eye(n * b).reshape(n * b, n, b)
    return cores
