"""Engines hold the rows. The sweep and the core solvers reach rows only through the methods of an engine."""

from polytrain.learning.engines.engine import CoreRows, Engine
from polytrain.learning.engines.local import LocalEngine, open_engine

__all__ = ["CoreRows", "Engine", "LocalEngine", "open_engine"]
