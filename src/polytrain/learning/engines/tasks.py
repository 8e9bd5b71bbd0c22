"""Rows in parts that live elsewhere: on the workers of a cluster, or on disk.

Every question is a set of pure tasks, one per part, run by a ``Runner``: what a task needs of a part's rows (features,
environments, loss) is named by handles and never comes here; what it answers is small and added up in the order of the
parts, so nothing depends on timing. An environment is a task of a part, the neighbouring environment and a core: the
tasks that are kept alive never reach back further than one pass along the train, and a lost part can be computed again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import Basis
from polytrain.learning import kernels
from polytrain.learning.engines.local import hash_rows, row_ranges
from polytrain.learning.losses import Loss
from polytrain.learning.rows import LinearBlock, LossAt, Scratch, TrainBlock, turned
from polytrain.learning.sampling import DistinctRows, choose_rows, row_keys
from polytrain.learning.threads import one_blas_thread

__all__ = ["PartRows", "Runner", "TaskEngine"]

#: What names a task's result, wherever it is.
Handle = Any


class Runner(Protocol):
    """Where tasks run."""

    def map(self, function: Callable, *columns: Sequence[Any]) -> list[Handle]:
        """Start ``function(*row)`` for every row of these columns; handles among them stand for their results."""

    def collect(self, handles: Sequence[Handle]) -> Iterable[Any]:
        """Return the results, in order."""


class PartRows(NamedTuple):
    """Rows of one part: scaled features (d, N) in the compute dtype, targets, and weights."""

    columns: NDArray
    target: NDArray
    weights: NDArray


_memory = threading.local()


def _scratch() -> Scratch:
    """Memory of this thread's tasks, enough for one block of rows; it is kept from one task to the next."""
    if not hasattr(_memory, "scratch"):
        _memory.scratch = Scratch()
    return _memory.scratch


@dataclass(frozen=True)
class _AtCore:
    """What a task must know to stand at one core."""

    loss: Loss
    basis: Basis
    dims: tuple[int, ...]
    site: int
    to_right: bool

    def blocks(
        self, rows: PartRows, left: NDArray | None, right: NDArray | None, here: LossAt | None = None
    ) -> Iterator[tuple[slice, TrainBlock]]:
        """Blocks that stay in cache, each standing at the core."""
        scratch = _scratch()
        for some in row_ranges(len(rows.target)):
            target, weights = rows.target[some], rows.weights[some]
            block = TrainBlock(rows.columns[:, some], target, weights, self.loss, self.basis, self.dims, scratch)
            before, behind = (None if side is None else side[:, some] for side in (left, right))
            block.stand(self.site, before, behind, self.to_right)
            if here is not None:
                block.here = here.of(some)
            yield some, block


@dataclass(frozen=True)
class _AtLinear:
    """What a task must know to work on the linear model."""

    loss: Loss

    def blocks(
        self, rows: PartRows, left: None = None, right: None = None, here: LossAt | None = None
    ) -> Iterator[tuple[slice, LinearBlock]]:
        block = LinearBlock(rows.columns, rows.target, rows.weights, self.loss)
        if here is not None:
            block.here = here
        yield slice(None), block


# --- tasks: all of them get where they stand, the rows, and both environments -----------------------------------------


class _Task:
    """A picklable task: the function's name with the arguments that all parts share."""

    def __init__(self, function: Callable, at: Any, *shared: Any) -> None:
        self._function, self._at, self._shared = function, at, shared

    def __call__(self, *own: Any) -> Any:
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            return self._function(self._at, *own, *self._shared)


def _extend(at: _AtCore, rows: PartRows, left: NDArray | None, right: NDArray | None, core: NDArray) -> NDArray:
    out = np.empty((core.shape[2] if at.to_right else core.shape[0], len(rows.target)), dtype=rows.columns.dtype)
    for some, block in at.blocks(rows, left, right):
        block.extended(core, out[:, some])
    return out


def _score(at: Any, rows: PartRows, left: Any, right: Any, core: NDArray) -> LossAt:
    parts = []
    for _, block in at.blocks(rows, left, right):
        block.score(core)
        parts.append(block.here)
    arrays = (np.concatenate([getattr(part, name) for part in parts]) for name in ("scores", "slope", "curvature"))
    scores, slope, curvature = arrays
    return LossAt(scores, sum(part.value for part in parts), slope, curvature)


def _value(at: None, here: LossAt) -> float:
    return here.value


def _product(at: Any, rows: PartRows, left: Any, right: Any, here: LossAt, step: NDArray) -> NDArray:
    return _add([block.product(step) for _, block in at.blocks(rows, left, right, here)])


def _answer(at: Any, rows: PartRows, left: Any, right: Any, here: LossAt, questions: Sequence[str]) -> tuple:
    """Answers to questions about the present scores; the part's share of the mean loss comes last."""
    blocks = [block for _, block in at.blocks(rows, left, right, here)]
    return (*(_add(getattr(block, question)() for block in blocks) for question in questions), here.value)


def _add(answers: Iterable[Any]) -> Any:
    """Sum in order; tuples are summed entry by entry."""
    return reduce(_plus, answers)


def _plus(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(_plus(*pair) for pair in zip(one, other, strict=True))
    return one + other


def _distinct(at: None, rows: PartRows) -> DistinctRows:
    return DistinctRows.of(row_keys(rows.columns), rows.target)


def _choose(at: None, rows: PartRows, part: float, seed: int, distinct: DistinctRows) -> PartRows:
    chosen, weights = choose_rows(part, seed, distinct, row_keys(rows.columns), rows.target, rows.weights)
    return PartRows(np.ascontiguousarray(rows.columns[:, chosen]), rows.target[chosen], weights)


def _hash(at: None, rows: PartRows) -> str:
    return hash_rows(*rows)


def _mass(at: None, rows: PartRows) -> tuple[int, float]:
    return len(rows.target), float(rows.weights.sum())


def _divide(at: None, rows: PartRows, mass: float) -> PartRows:
    return rows._replace(weights=rows.weights / mass)


# --- engines ----------------------------------------------------------------------------------------------------------


class _TaskRows:
    """What the linear model and the train have in common."""

    _runner: Runner
    _parts: list[Handle]
    _loss: Loss

    def __init__(self) -> None:
        self._answers: dict[str, Any] = {}
        self._asked: set[str] = set()
        self._rounds: list[set[str]] = []
        self._usual: dict[int, set[str]] = {}
        self._probed: tuple[float, list[Handle], float] | None = None

    def _at(self) -> Any:
        raise NotImplementedError

    def _nothing(self) -> list[None]:
        """Stand for the environments at an end of the train."""
        return [None] * len(self._parts)

    def _sides(self) -> tuple[Sequence[Handle], Sequence[Handle]]:
        """Left and right environment of every part."""
        raise NotImplementedError

    def _map(self, function: Callable, *shared: Any, own: Sequence[Sequence[Handle]] = ()) -> list[Handle]:
        return self._runner.map(_Task(function, self._at(), *shared), self._parts, *self._sides(), *own)

    def _total(self, handles: Sequence[Handle]) -> Any:
        return _add(self._runner.collect(handles))

    def _ask(self, question: str) -> Any:
        """Answer a question about the present scores, and with it those that usually follow: every round takes time."""
        self._asked.add(question)
        if question not in self._answers:
            usual = self._usual.get(len(self._rounds), set())
            questions = sorted(({question} | usual) - {"mean_loss"} - set(self._answers))
            answers = self._total(self._map(_answer, questions, own=[self._here]))
            self._answers.update(zip([*questions, "mean_loss"], answers, strict=True))
        return self._answers[question]

    def _next_round(self) -> None:
        """Forget the answers: the scores have changed."""
        self._rounds.append(self._asked)
        self._asked, self._answers = set(), {}

    def _next_core(self) -> None:
        """Forget the answers and remember what was asked, round by round: the next core will be asked the same."""
        self._next_round()
        self._usual, self._rounds = dict(enumerate(self._rounds)), []

    def score(self, core: NDArray) -> None:
        self._here, self._probed = self._map(_score, core), None
        self._next_round()

    def mean_loss(self) -> float:
        return self._ask("mean_loss")

    def gradient(self) -> NDArray:
        return self._ask("gradient")

    def aim(self, step: NDArray) -> None:
        """Forget what was probed. There is no ray: probes score their cores from scratch, and steps go to one of them.

        Scores made of earlier scores would make tasks hang on all tasks before them.
        """
        self._probed = None

    def probe(self, length: float, core: NDArray) -> float:
        trial = self._map(_score, core)
        loss = self._total(self._runner.map(_Task(_value, None), trial))
        self._probed = length, trial, loss
        return loss

    def advance(self, length: float, core: NDArray) -> None:
        if self._probed is None or self._probed[0] != length:
            self.score(core)
            return
        _, self._here, loss = self._probed
        self._probed = None
        self._next_round()
        self._answers["mean_loss"] = loss


class _TaskLinear(_TaskRows):
    def __init__(self, runner: Runner, parts: list[Handle], loss: Loss, n_rows: int) -> None:
        super().__init__()
        self._runner, self._parts, self._loss, self.n_rows = runner, parts, loss, n_rows

    def __enter__(self) -> _TaskLinear:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to do: what is not named any more is let go of."""

    def _at(self) -> _AtLinear:
        return _AtLinear(self._loss)

    def _sides(self) -> tuple[Sequence[Handle], Sequence[Handle]]:
        return self._nothing(), self._nothing()

    def gram(self) -> NDArray:
        return self._ask("gram")


class TaskEngine(_TaskRows):
    """A train on rows in parts.

    Parameters
    ----------
    runner : Runner
    parts : list of handles
        One ``PartRows`` each. They need at least one row; the weights are divided by their sum here.
    loss, basis, dims
        As for ``LocalEngine``.
    """

    def __init__(
        self, runner: Runner, parts: Sequence[Handle], loss: Loss, basis: Basis, dims: tuple[int, ...]
    ) -> None:
        super().__init__()
        self._runner, self._loss, self._basis, self._dims = runner, loss, basis, dims
        masses = list(runner.collect(runner.map(_Task(_mass, None), parts)))
        self.n_rows = sum(count for count, _ in masses)
        filled = [part for part, (count, _) in zip(parts, masses, strict=True) if count]
        self._parts = runner.map(_Task(_divide, None, sum(mass for _, mass in masses)), filled)
        self._distinct = DistinctRows.merge(runner.collect(runner.map(_Task(_distinct, None), self._parts)))
        self.n_distinct = self._distinct.n_rows

    def __enter__(self) -> TaskEngine:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to do: whoever made the runner ends it."""

    def _at(self) -> _AtCore:
        return _AtCore(self._loss, self._basis, self._dims, self._site, self._to_right)

    def _sides(self) -> tuple[Sequence[Handle], Sequence[Handle]]:
        return self._bonds[self._site], self._bonds[self._site + 1]

    def part(self, part: float, seed: int) -> TaskEngine:
        chosen = self._runner.map(_Task(_choose, None, part, seed, self._distinct), self._parts)
        return TaskEngine(self._runner, chosen, self._loss, self._basis, self._dims)

    def fingerprint(self) -> str:
        return " ".join(self._runner.collect(self._runner.map(_Task(_hash, None), self._parts)))

    def linear(self) -> _TaskLinear:
        return _TaskLinear(self._runner, self._parts, self._loss, self.n_rows)

    def place(self, cores: list[NDArray], position: int = 0) -> None:
        last = len(cores) - 1
        self._bonds: list[Sequence[Handle]] = [self._nothing()] * (len(cores) + 1)
        self._moments: dict[int, NDArray] = {}
        self._ranks = [core.shape[0] for core in cores] + [1]
        self._site = last
        for core in reversed(cores[position + 1 :]):
            self.move_left(core)
        self._site = 0
        for core in cores[:position]:
            self.move_right(core)
        self._site, self._to_right = position, turned(position, position == 0, len(cores))
        self.score(cores[position])

    def move_right(self, core: NDArray) -> None:
        self._to_right = True
        self._bonds[self._site + 1] = self._extended(core, self._bonds[self._site], self._nothing())
        self._moments.pop(self._site + 1, None)
        self._site += 1
        self._ranks[self._site] = core.shape[2]
        self._to_right = turned(self._site, True, len(self._dims))
        self._next_core()

    def move_left(self, core: NDArray) -> None:
        self._to_right = False
        self._bonds[self._site] = self._extended(core, self._nothing(), self._bonds[self._site + 1])
        self._moments.pop(self._site, None)
        self._ranks[self._site] = core.shape[0]
        self._site -= 1
        self._to_right = turned(self._site, False, len(self._dims))
        self._next_core()

    def _extended(self, core: NDArray, left: Sequence[Handle], right: Sequence[Handle]) -> list[Handle]:
        # Only the near environment is named: with the far one, which this replaces, tasks would hang on all before.
        return self._runner.map(_Task(_extend, self._at(), core), self._parts, left, right)

    def product(self, step: NDArray) -> NDArray:
        return self._total(self._map(_product, step, own=[self._here]))

    def clear_ray(self) -> None:
        self._probed = None

    def walk(self, length: float) -> None:
        self._probed = None

    def gram(self) -> NDArray:
        shape = self._ranks[self._site], self._dims[self._site], self._ranks[self._site + 1]
        return kernels.gram_from_moments(self._ask("gram_moments"), shape, self._basis)

    def factors(self) -> tuple[NDArray, NDArray, NDArray]:
        left, right = self._moment(self._site, "left_moment"), self._moment(self._site + 1, "right_moment")
        middle, mass = self._ask("middle_moment")
        return kernels.mean_factors(left, middle, right, mass)

    def _moment(self, bond: int, question: str) -> NDArray:
        """Second moment of an environment; with constant curvature it lives as long as the environment."""
        if bond not in self._moments or not self._loss.quadratic:
            self._moments[bond] = self._ask(question)
        return self._moments[bond]
