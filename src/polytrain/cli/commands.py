"""The commands: their names and what they are for, known before any of them is loaded."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["SUMMARIES", "load_command"]

#: What each command does. The module of the same name in this package has ``add_parser(subparsers)``, which sets the
#: default ``run``: parsed arguments -> exit code.
SUMMARIES = {
    "fit": "learn a model from a table",
    "predict": "predict the rows of a table",
    "evaluate": "compare predictions with the target in a table",
    "explain": "show importances, interactions and terms of a model, or why rows have their scores",
    "report": "write an HTML page about a model",
    "export": "write a model as ONNX or C",
    "info": "show what a model file holds",
    "reproduce": "recompute the paper's tables and convergence figure",
    "completion": "print a script for shell completion",
}


def load_command(name: str) -> Any:
    """Import the module of a command."""
    return import_module(f"polytrain.cli.{name}")
