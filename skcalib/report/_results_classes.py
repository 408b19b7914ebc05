"""Which classes? Recall, precision against confidence, and calibration error of every class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import classwise_calibration_error
from ._data import ReportData
from ._statistics import fraction, mean


def classes(data: ReportData) -> list[dict[str, Any]]:
    """Return one entry a class, the one with the largest calibration error first."""
    errors = np.asarray(classwise_calibration_error(**data.predictions, average=None))
    entries = [_of_class(data, k, float(errors[k])) for k in range(len(data.classes))]
    return sorted(entries, key=lambda entry: -entry["classwise_error"])


def _of_class(data: ReportData, k: int, error: float) -> dict[str, Any]:
    labeled, answered = data.codes == k, data.predicted == k
    precision = fraction(data.correct[answered], data.mass[answered])
    confidence = mean(data.confidence[answered], data.mass[answered])
    return {
        "label": data.label(k),
        "n_samples": int(labeled.sum()),
        "n_predicted": int(answered.sum()),
        "recall": fraction(data.correct[labeled], data.mass[labeled]),
        "precision": precision,
        "mean_confidence": confidence,
        "kind": _kind(confidence, precision),
        "classwise_error": error,
        "most_confused_with": _most_confused(data, labeled),
    }


def _kind(confidence: float, precision: dict[str, float]) -> str | None:
    """Return how the confidence in the answers of a class differs from their precision."""
    # With NaN, for a class that is never predicted, no comparison holds.
    if confidence > precision["high"]:
        return "overconfident"
    return "underconfident" if confidence < precision["low"] else None


def _most_confused(data: ReportData, labeled: NDArray[np.bool_]) -> dict[str, Any] | None:
    """Return the wrong class that is predicted most often for samples of a class."""
    wrong = labeled & ~data.correct
    if not wrong.any():
        return None
    count = np.bincount(data.predicted[wrong], data.mass[wrong])
    other = int(count.argmax())
    return {"label": data.label(other), "fraction": float(count[other] / data.mass[labeled].sum())}
