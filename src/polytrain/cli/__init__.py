"""The command line: one module per command."""

from polytrain.cli.main import main

__all__ = ["main"]
