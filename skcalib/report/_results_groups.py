"""Groups: is the model calibrated in every one of them?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import groupwise_calibration_error
from ._data import ReportData
from ._results_calibration import N_BINS
from ._statistics import LEVEL, fraction, mean


def groups(data: ReportData) -> dict[str, list[dict[str, Any]]] | None:
    """Return one entry a group for every column of groups, the one with the worst error first."""
    if data.groups is None:
        return None
    return {name: _of_column(data, column) for name, column in data.groups.items()}


def _of_column(data: ReportData, column: NDArray[Any]) -> list[dict[str, Any]]:
    table = groupwise_calibration_error(
        **data.predictions,
        groups=column,
        n_bins=N_BINS,
        confidence_level=LEVEL,
        # No fewer: the smallest p-value is the number of groups over that of resamples.
        n_resamples=999,
        random_state=data.seed,
    )
    # Largest first; NaN, for groups that are too small, last.
    order = np.argsort(-table["error"], kind="stable")
    return [_of_group(data, column == line["group"], line) for line in table[order]]


def _of_group(data: ReportData, members: NDArray[np.bool_], line: Any) -> dict[str, Any]:
    return {
        "group": line["group"],
        "n_samples": line["n_samples"],
        "accuracy": fraction(data.correct[members], data.mass[members]),
        "mean_confidence": mean(data.confidence[members], data.mass[members]),
        "expected_calibration_error": {
            "value": line["error"],
            "low": line["low"],
            "high": line["high"],
        },
        "pvalue": line["pvalue"],
    }
