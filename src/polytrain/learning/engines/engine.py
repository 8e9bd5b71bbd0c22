"""The queries of the sweep and the core solvers about the rows, with cached answers.

Engines differ in where the rows live and how a question reaches them. Everything else is here: the position of the
present core, and the loss and moments that are still valid.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from polytrain.arrays import Array
from polytrain.learning.contractions import gram_from_moments
from polytrain.learning.kronecker import KroneckerHessian
from polytrain.learning.losses import Loss
from polytrain.learning.problem import LOSS, Facts, LocalFactors, Need, ProblemRows, add_up
from polytrain.maps import MapList


class CoreRows(AbstractContextManager[Any]):
    """The rows as one core problem sees them: scores are ``offset + C vec(core)``."""

    n_rows: int
    # The loss at the present scores, None until it is computed, and at those that were tried last.
    _loss_here: float | None = None
    _loss_tried: float

    def __exit__(self, *error: object) -> None:
        """Release resources outside of this process's memory; nothing by default."""

    # --- how a question reaches the rows ------------------------------------------------------------------------------

    @abstractmethod
    def _ask(self, question: str, *arguments: Any) -> Iterable[Any]:
        """Answers of all blocks, in their order; a question is a method of `polytrain.learning.blocks.TrainBlock`."""

    @abstractmethod
    def _tell(self, question: str, *arguments: Any) -> None:
        """Ask without waiting for an answer."""

    # --- what may be asked --------------------------------------------------------------------------------------------

    def score(self, core: Array) -> None:
        """Make these the present scores: offset + C vec(core)."""
        self._tell("score", core)
        self._loss_here = None

    @abstractmethod
    def facts(self, need: Need) -> Facts:
        """Return the requested facts at the present scores, in one pass over the rows."""

    def mean_loss(self) -> float:
        """Weighted mean of the loss at the present scores."""
        return self.facts(LOSS).loss

    def set_direction(self, step: Array) -> None:
        """Set the search direction of the scores to that of this step: C vec(step)."""
        self._tell("set_direction", step)

    def try_step(self, length: float, core: Array) -> float:
        """Mean loss at ``length`` along the search direction, where the scores are those of this core."""
        self._loss_tried = float(add_up(self._ask("try_step", length, core)))
        return self._loss_tried

    def accept(self) -> None:
        """Take the scores that were tried last as the present ones."""
        self._loss_here = self._loss_tried
        self._tell("accept")


class Position(NamedTuple):
    """The core that is being solved, and whether the next move goes right."""

    site: int
    to_right: bool


class Engine(CoreRows):
    """Rows with the environments of a train at its present core; ``maps`` has one map per column.

    ``n_distinct`` is the number of distinct rows: it does not change when rows are repeated.
    """

    n_distinct: int

    def __init__(self, loss: Loss, maps: MapList) -> None:
        self._loss, self._maps, self._dims = loss, maps, maps.dims
        self._at = Position(0, True)
        self._ranks: list[int] = []
        # Second moments of the environments by bond: with constant curvature they live as long as the environments.
        self._moments: dict[int, Array] = {}

    # --- the rows as a whole ------------------------------------------------------------------------------------------

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a digest of the rows, their targets, weights and offset."""

    @abstractmethod
    def gather(self, fraction: float, seed: int) -> ProblemRows:
        """Bring a random sample of the rows, or all of them if ``fraction`` is 1, to the memory of this process."""

    def linear(self, gram: Array | None = None) -> LinearRows:
        """Return the core problem of the linear model; ``gram`` is its Gram matrix, if it was computed before."""
        return LinearRows(self, gram)

    # --- along the train ----------------------------------------------------------------------------------------------

    def place(self, cores: list[Array], position: int = 0) -> None:
        """Build the environments of a train at a core, on both sides of which it is orthogonal."""
        self._ranks = [core.shape[0] for core in cores] + [1]
        self._moments.clear()
        self._set_position(self._position(len(cores) - 1, to_right=False))
        for core in reversed(cores[position + 1 :]):
            self.move(core, to_right=False)
        self._set_position(self._position(0, to_right=True))
        for core in cores[:position]:
            self.move(core, to_right=True)
        self._set_position(self._position(position, self._at.to_right))
        self.score(cores[position])

    def _position(self, site: int, to_right: bool) -> Position:
        """Position at a core: at either end of the train the next move can only go back."""
        return Position(site, (to_right or site == 0) and site < len(self._dims) - 1)

    def _set_position(self, at: Position) -> None:
        self._at = at
        self._tell("set_position", *at)

    def move(self, core: Array, to_right: bool) -> None:
        """Absorb the present core, orthogonal in this direction, into an environment and go to the next core."""
        site = self._at.site
        if self._at.to_right != to_right:
            self._set_position(Position(site, to_right))
        bond = site + 1 if to_right else site
        self._ranks[bond] = core.shape[2 if to_right else 0]
        self._moments.pop(bond, None)
        following = self._position(site + 1 if to_right else site - 1, to_right)
        self._tell("move", core, *following)
        self._at = following

    # --- at the present core ------------------------------------------------------------------------------------------

    @property
    def n_products(self) -> int:
        """Size of the product rule of the present column: how many moments an exact solution takes."""
        return self._maps[self._at.site].products.size

    def facts(self, need: Need) -> Facts:
        if self._loss_here is not None and not any(need):
            return Facts(self._loss_here)
        site, moments = self._at.site, self._moments
        if need.middle and self._loss.quadratic:
            need = need._replace(left=site not in moments, right=site + 1 not in moments)
        loss, gradient, gram, left, middle, right = add_up(self._ask("facts", need))
        self._loss_here = loss
        if need.gram:
            shape = self._ranks[site], self._dims[site], self._ranks[site + 1]
            gram = gram_from_moments(gram, shape, self._maps[site].products.table())
        if need.middle:
            if left is not None:
                moments[site] = left
            if right is not None:
                moments[site + 1] = right
            left, right = moments[site], moments[site + 1]
            # The Kronecker product of three means, times the total curvature, which is that of the constant function.
            if middle[0, 0] > 0:
                middle, right = middle / middle[0, 0], right / middle[0, 0]
        return Facts(loss, gradient, gram, left, middle, right)

    def product(self, step: Array) -> Array:
        """C' diag(weights * curvature) C vec(step), shaped like the core; the rows remember C vec(step)."""
        total: Array = add_up(self._ask("product", step))
        return total

    def local_factors(self) -> LocalFactors:
        """Bring environments, functions and curvatures at the present core to this process; for few rows."""
        return LocalFactors.join(self._ask("local_factors"))

    def descend(self, preconditioner: KroneckerHessian, gradient: Array, *limits: float) -> Array | None:
        """Solve a Newton system in one question, and search along the step.

        ``limits`` are those of `native.conjugate_gradients`. None where rows are in several places: then it takes a
        question for every product.
        """
        return None

    def clear_direction(self) -> None:
        """Set the search direction to zero."""
        self._tell("clear_direction")

    def extend_direction(self, length: float) -> None:
        """Add ``length`` times the C vec(step) of the last product to the direction: no second pass over the rows."""
        self._tell("extend_direction", length)


class LinearRows(CoreRows):
    """The core problem of the linear model: a core of shape (1, 1 + all linear functions, 1), the bias first.

    ``gram`` is the Gram matrix, if it was computed before: with a quadratic loss, problems on the same weighted rows
    share it.
    """

    def __init__(self, engine: Engine, gram: Array | None = None) -> None:
        self._engine, self._gram, self.n_rows = engine, gram, engine.n_rows

    def _ask(self, question: str, *arguments: Any) -> Iterable[Any]:
        return self._engine._ask("linear", question, *arguments)

    def _tell(self, question: str, *arguments: Any) -> None:
        self._engine._tell("linear", question, *arguments)

    def facts(self, need: Need) -> Facts:
        gram = self._gram if need.gram else None
        facts: Facts = add_up(self._ask("facts", need if gram is None else need._replace(gram=False)))
        return facts if gram is None else facts._replace(gram=gram.copy())
