"""Where the rows live. The sweep and the core solvers talk to rows only through the methods of an engine."""

from polytrain.learning.engines.engine import CoreRows, Engine
from polytrain.learning.engines.local import LocalEngine, open_engine

__all__ = ["CoreRows", "Engine", "LocalEngine", "open_engine"]
