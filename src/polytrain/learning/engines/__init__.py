"""Where the rows live. The sweep and the core solvers talk to rows only through the methods of an engine."""

from __future__ import annotations

from numpy.typing import NDArray

from polytrain.basis import Basis
from polytrain.learning.engines.local import BlockEngine, LocalEngine, row_ranges
from polytrain.learning.engines.protocol import CoreRows, Engine
from polytrain.learning.losses import Loss

__all__ = ["CoreRows", "Engine", "LocalEngine", "open_engine"]


def open_engine(
    columns: NDArray,
    target: NDArray,
    weights: NDArray,
    loss: Loss,
    basis: Basis,
    dims: tuple[int, ...],
    n_processes: int = 1,
) -> BlockEngine:
    """Return an engine on these rows, to be used as a context manager; see `LocalEngine` for the arguments."""
    n_processes = min(n_processes, len(row_ranges(columns.shape[1])))
    if n_processes == 1:
        return LocalEngine(columns, target, weights, loss, basis, dims)
    from polytrain.learning.engines.processes import ProcessEngine

    return ProcessEngine(columns, target, weights, loss, basis, dims, n_processes)
