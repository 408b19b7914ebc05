"""Can the confidence be trusted? Calibration errors, decomposition, test, reliability curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..metrics import (
    calibration_error_interval,
    calibration_test,
    debiased_calibration_error,
    expected_calibration_error,
    isotonic_reliability_curve,
    reliability_curve,
    score_decomposition,
    smooth_calibration_error,
)
from ._data import ReportData
from ._statistics import LEVEL, fraction, mean, thinned

N_BINS = 15
MEASURES: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("expected_calibration_error", expected_calibration_error, {"n_bins": N_BINS}),
    ("smooth_calibration_error", smooth_calibration_error, {}),
    ("debiased_calibration_error", debiased_calibration_error, {"n_bins": N_BINS}),
)


def overview(data: ReportData) -> dict[str, Any]:
    """Return size, accuracy, confidence and the gap between them."""
    accuracy, confidence = fraction(data.correct, data.mass), mean(data.confidence, data.mass)
    return {
        "model": data.model,
        "n_samples": len(data.codes),
        "total_weight": None if data.weight is None else float(data.weight.sum()),
        "n_classes": len(data.classes),
        "classes": data.classes,
        "accuracy": accuracy,
        "mean_confidence": confidence,
        "gap": confidence - accuracy["value"],
    }


def n_resamples(n_samples: int) -> int:
    """Return 400, and from 10 000 samples on fewer: at least 100."""
    return int(np.clip(4_000_000 // n_samples, 100, 400))


def calibration(data: ReportData) -> dict[str, Any]:
    """Return what is known of the top label and, with two classes, of the second class."""
    views = {"top_label": _judged(data, data.predictions)}
    if len(data.classes) == 2:
        views["positive_class"] = _judged(data, data.of_positive_class)
    decompositions = {
        rule: score_decomposition(**data.predictions, scoring_rule=rule)._asdict()
        for rule in ("brier", "log_loss")
    }
    return {"views": views, "decomposition": decompositions}


def _judged(data: ReportData, predictions: dict[str, Any]) -> dict[str, Any]:
    """Return errors with intervals, the test and the curves of one question."""
    resampling: dict[str, Any] = {
        "n_resamples": n_resamples(len(data.codes)),
        "random_state": data.seed,
    }
    errors = {}
    for name, metric, options in MEASURES:
        low, high = calibration_error_interval(
            **predictions, metric=metric, confidence_level=LEVEL, **resampling, **options
        )
        value = metric(**predictions, **options)
        # The interval takes the bias of the error into account, and need not hold it.
        errors[name] = {"value": value, "low": low, "high": high}
    test = calibration_test(**predictions, n_bins=N_BINS, random_state=data.seed)
    return {
        "errors": errors,
        "test": test._asdict(),
        "curve": _isotonic_curve(data, predictions),
        "histogram": _histogram(predictions),
    }


def _isotonic_curve(data: ReportData, predictions: dict[str, Any]) -> dict[str, Any]:
    if predictions["y_proba"].ndim == 2:
        # The binary question of the top label: was it right, and how probable was it said to be?
        correct = data.correct.astype(np.intp)
        predictions = {"y_true": correct, "y_proba": data.confidence, "labels": [0, 1]}
        predictions["sample_weight"] = data.weight
    curve = isotonic_reliability_curve(
        **predictions, confidence_level=LEVEL, random_state=data.seed
    )
    points = thinned(curve.prob_pred)
    return {name: values[points] for name, values in curve._asdict().items()}


def _histogram(predictions: dict[str, Any]) -> dict[str, Any]:
    cells = reliability_curve(**predictions, n_bins=N_BINS)
    return {"count": cells.bin_weight, "edges": cells.edges}
