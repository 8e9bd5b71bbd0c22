"""The command ``polytrain reproduce``, which polytrain finds here."""

from polytrain_paper.cli.reproduce import add_parser

__all__ = ["add_parser"]
