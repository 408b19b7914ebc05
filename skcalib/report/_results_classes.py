"""Which classes? Recall, precision against confidence, and calibration error of every class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import classwise_calibration_error, isotonic_reliability_curve
from ._data import ReportData
from ._results_calibration import N_BINS
from ._statistics import LEVEL, fraction, mean, thinned

# Classes with a diagram.
N_DRAWN = 6


def classes(data: ReportData) -> list[dict[str, Any]]:
    """Return one entry a class, the one with the largest calibration error first."""
    errors = np.asarray(
        classwise_calibration_error(**data.predictions, n_bins=N_BINS, average=None)
    )
    entries = [_of_class(data, k, float(errors[k])) for k in range(len(data.classes))]
    worst_first = np.argsort(-errors, kind="stable").tolist()
    if len(entries) > 2:  # the diagram of the second of two classes is drawn already
        for k in worst_first[:N_DRAWN]:
            entries[k]["curve"] = _curve(data, k)
    return [entries[k] for k in worst_first]


def _curve(data: ReportData, k: int) -> dict[str, Any]:
    """Return the reliability curve of one class against the rest."""
    curve = isotonic_reliability_curve(
        data.codes == k,
        data.proba[:, k],
        confidence_level=LEVEL,
        sample_weight=data.weight,
        random_state=data.seed,
    )
    points = thinned(curve.prob_pred, 150)
    return {name: values[points] for name, values in curve._asdict().items()}


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
