"""Where the rows live. The sweep and the core solvers talk to rows only through the methods of an engine."""

from __future__ import annotations

from contextlib import AbstractContextManager

from polytrain.learning.engines.engine import CoreRows, Engine
from polytrain.learning.engines.local import BlockEngine, LocalEngine, row_ranges
from polytrain.learning.losses import Loss
from polytrain.learning.problem import ProblemRows
from polytrain.maps import MapList

__all__ = ["CoreRows", "Engine", "LocalEngine", "open_engine"]


def open_engine(
    rows: ProblemRows, loss: Loss, maps: MapList, n_processes: int = 1
) -> AbstractContextManager[BlockEngine]:
    """Return a context with an engine on these rows; see `BlockEngine` for the arguments."""
    n_processes = min(n_processes, len(row_ranges(rows.n_rows)))
    if n_processes == 1:
        return LocalEngine(rows, loss, maps)
    from polytrain.learning.engines.processes import shared_engine

    return shared_engine(rows, loss, maps, n_processes)
