"""Every number of a report, as plain numbers, strings, lists and dicts."""

from __future__ import annotations

from typing import Any

from ._data import ReportData
from ._results_calibration import calibration, overview
from ._results_calibrators import calibrators
from ._results_classes import classes
from ._results_groups import groups
from ._results_issues import issues
from ._results_notes import method, warnings
from ._results_samples import hardest
from ._results_selective import selective
from ._statistics import plain
from ._verdict import verdict


def gather(data: ReportData) -> dict[str, Any]:
    """Return the results of all sections."""
    summary, trust = overview(data), calibration(data)
    results = {
        "overview": summary,
        "verdict": verdict(summary, trust),
        "calibration": trust,
        "selective": selective(data),
        "classes": classes(data),
        "hardest": hardest(data),
        "issues": issues(data),
        "calibrators": calibrators(data),
        "groups": groups(data),
        "warnings": warnings(data),
        "method": method(data),
    }
    return plain(results)
