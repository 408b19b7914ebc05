"""Groups: is the model calibrated in every one of them?"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..metrics import expected_calibration_error
from ._data import ReportData
from ._results_calibration import N_BINS
from ._statistics import fraction, mean


def groups(data: ReportData) -> dict[str, list[dict[str, Any]]] | None:
    """Return one entry a group for every column of groups, the worst first."""
    if data.groups is None:
        return None
    result = {}
    for name, column in data.groups.items():
        values = np.unique(column).tolist()
        entries = [_of_group(data, value, np.flatnonzero(column == value)) for value in values]
        result[name] = sorted(entries, key=lambda e: -e["expected_calibration_error"])
    return result


def _of_group(data: ReportData, value: Any, members: Any) -> dict[str, Any]:
    weight = None if data.weight is None else data.weight[members]
    error = expected_calibration_error(
        data.codes[members],
        data.proba[members],
        n_bins=N_BINS,
        sample_weight=weight,
        labels=np.arange(len(data.classes)),
    )
    accuracy = fraction(data.correct[members], data.mass[members])
    confidence = mean(data.confidence[members], data.mass[members])
    kind = None
    if not accuracy["low"] <= confidence <= accuracy["high"]:
        kind = "overconfident" if confidence > accuracy["high"] else "underconfident"
    return {
        "group": value,
        "n_samples": len(members),
        "accuracy": accuracy,
        "mean_confidence": confidence,
        "kind": kind,
        "expected_calibration_error": error,
    }
