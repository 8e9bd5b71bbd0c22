"""Settings that the estimators would otherwise choose by themselves: a benchmark measures what it says."""

from __future__ import annotations

from typing import Any

#: Powers of scaled features, from the linear start.
POWERS: dict[str, Any] = {"basis": "power", "degree": 2, "bandwidth": None, "init": "linear"}
