"""Self-contained HTML pages about a model and its errors on a table."""

from polytrain.reporting.build import build_report
from polytrain.reporting.evidence import ScoredRows
from polytrain.reporting.face import MOST_ROWS, Report, report
from polytrain.reporting.of_tables import report_table
from polytrain.reporting.subject import Subject

__all__ = ["MOST_ROWS", "Report", "ScoredRows", "Subject", "build_report", "report", "report_table"]
