"""What the sweep and the core solvers may ask of the rows.

Conventions
-----------
Weights are divided by their sum once, so every quantity below is a weighted mean over rows and no method needs to know
N. ``scores`` means the scores of the last core that was passed to ``score`` or reached by ``advance``; gradient, Gram
matrix and products are taken there. The ray is a direction in the space of scores along which they may move.
Regularisation is not the rows' business.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol, Self

from numpy.typing import NDArray

__all__ = ["CoreRows", "Engine"]


class CoreRows(Protocol):
    """The rows as one core problem sees them: scores are ``C @ vec(core)``."""

    def score(self, core: NDArray) -> None:
        """Make these the present scores: C vec(core)."""

    def mean_loss(self) -> float:
        """Weighted mean of the loss at the present scores."""

    def gradient(self) -> NDArray:
        """C' (weights * slope), shaped like the core."""

    def gram(self) -> NDArray:
        """C' diag(weights * curvature) C, the exact Hessian of the mean loss."""

    def aim(self, step: NDArray) -> None:
        """Lay the ray along this step: C vec(step)."""

    def probe(self, length: float, core: NDArray) -> float:
        """Mean loss at ``length`` along the ray, where the scores are those of this core."""

    def advance(self, length: float, core: NDArray) -> None:
        """Move the present scores by ``length`` along the ray, to those of this core."""


class Engine(CoreRows, Protocol):
    """Rows with the environments of a train, standing at one core."""

    #: How many rows differ from each other: unlike their number, it does not change when rows are repeated.
    n_distinct: int

    n_rows: int

    def __enter__(self) -> Self:
        """Return the engine itself."""

    def __exit__(self, *error: object) -> None:
        """Let go of whatever the engine holds outside of this process's memory."""

    def fingerprint(self) -> str:
        """Return a digest of the rows, their targets and weights."""

    def part(self, part: float, seed: int) -> Engine:
        """Return an engine on a random part of the rows, as ``polytrain.learning.sampling`` chooses them."""

    def linear(self) -> AbstractContextManager[CoreRows]:
        """Open the core problem of the linear model, with a core of shape (1, d + 1, 1): bias, then weights."""

    def place(self, cores: list[NDArray], position: int = 0) -> None:
        """Build the environments of a train that is orthogonal on both sides of a core, and stand at that core."""

    def move_right(self, core: NDArray) -> None:
        """Absorb the (left-orthogonal) core stood at into the left environment and stand at the next one."""

    def move_left(self, core: NDArray) -> None:
        """Absorb the (right-orthogonal) core stood at into the right environment and stand at the one before."""

    def product(self, step: NDArray) -> NDArray:
        """C' diag(weights * curvature) C vec(step), shaped like the core; the engine remembers C vec(step)."""

    def clear_ray(self) -> None:
        """Lay the ray at zero."""

    def walk(self, length: float) -> None:
        """Add ``length`` times the C vec(step) of the last product to the ray: no second pass over the rows."""

    def factors(self) -> tuple[NDArray, NDArray, NDArray]:
        """Three small matrices (left, basis, right) whose Kronecker product is nearly ``gram()``."""
