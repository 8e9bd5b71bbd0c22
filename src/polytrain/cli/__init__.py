"""The command line: `main` finds the command and runs it."""

from polytrain.cli.main import main

__all__ = ["main"]
