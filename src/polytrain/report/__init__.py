"""A self-contained HTML page about a model and its errors on a table."""

from polytrain.report.build import build_report

__all__ = ["build_report"]
