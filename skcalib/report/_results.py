"""Every number of a report, as plain numbers, strings, lists and dicts."""

from __future__ import annotations

import warnings
from typing import Any

from ._data import ReportData
from ._results_calibration import calibration, overview
from ._results_calibrators import calibrators
from ._results_classes import classes
from ._results_groups import groups
from ._results_issues import issues
from ._results_notes import method, notes
from ._results_samples import hardest
from ._results_selective import selective
from ._statistics import plain
from ._verdict import verdict


def gather(data: ReportData) -> dict[str, Any]:
    """Return the results of all sections."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = _sections(data)
    # What was warned of on the way belongs to the page; each fold may have said it.
    messages = dict.fromkeys(str(warning.message) for warning in caught)
    results["warnings"] += [f"Warned of on the way: {message}" for message in messages]
    return plain(results)


def _sections(data: ReportData) -> dict[str, Any]:
    summary, trust = overview(data), calibration(data)
    return {
        "overview": summary,
        "verdict": verdict(summary, trust),
        "calibration": trust,
        "selective": selective(data),
        "classes": classes(data),
        "hardest": hardest(data),
        "issues": issues(data),
        "calibrators": calibrators(data),
        "groups": groups(data),
        "warnings": notes(data),
        "method": method(data),
    }
