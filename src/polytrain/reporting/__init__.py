"""Self-contained HTML reports about a model and its errors on a table."""

from polytrain.reporting.reports import Report, report, report_table

__all__ = ["Report", "report", "report_table"]
