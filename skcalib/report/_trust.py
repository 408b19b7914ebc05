"""Calibration errors with intervals, and reliability curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..metrics import (
    CalibrationAccumulator,
    calibration_error_interval,
    expected_calibration_error,
    isotonic_reliability_curve,
    reliability_curve,
)
from ..plots import ReliabilityDisplay
from ..utils.checking._shares import two_sided
from ._data import ReportData, fraction, mean, thinned
from ._document import Picture, Section, Table, Text, in_sentence, interval, label, number
from ._limits import LEVEL, MANY_SAMPLES, N_BINS

# Inches of a diagram and its histogram.
SIZE = (4.2, 4.8)


def overview(data: ReportData) -> dict[str, Any]:
    """Return number of samples and classes, accuracy, mean confidence and their gap."""
    accuracy, confidence = fraction(data.correct, data.mass), mean(data.confidence, data.mass)
    sums = data.sums("answers")
    if sums is not None:
        mass, said, right = sums.sum(axis=1)
        accuracy = fraction(np.array([True, False]), np.array([right, mass - right]))
        confidence = said / mass
    count = np.array([data.mass @ data.of_class(k) for k in range(len(data.classes))])
    return {
        "title": data.title,
        "model": data.model,
        "n_samples": data.n_samples,
        "total_weight": None if data.weight is None else float(data.weight.sum()),
        "n_classes": len(data.classes),
        "classes": [data.label(k) for k in range(len(data.classes))],
        "accuracy": accuracy,
        "mean_confidence": confidence,
        "gap": confidence - accuracy["value"],
        "largest_class": {
            "label": data.label(int(count.argmax())),
            "value": count.max() / count.sum(),
        },
    }


def n_resamples(n_samples: int) -> int:
    """Return 500; with more than 8 000 samples fewer, but at least 200."""
    return int(np.clip(4_000_000 // n_samples, 200, 500))


def results(data: ReportData) -> dict[str, Any]:
    """Return errors and curves of the top label and, with two classes, of the second one."""
    views = {"top_label": _judged(data, data.predictions, "answers")}
    if len(data.classes) == 2:
        positive = _judged(data, data.of_positive_class, "positive")
        views = {"positive_class": positive, **views}
    return {"views": views}


def _judged(data: ReportData, predictions: dict[str, Any], view: str) -> dict[str, Any]:
    """Return error, interval and curves of one view, "answers" or "positive"."""
    total = data.total
    if total is None or data.summed != view:
        value = expected_calibration_error(**predictions, n_bins=N_BINS)
        low, high = _interval(data, predictions)
        cells = reliability_curve(**predictions, n_bins=N_BINS)
    else:
        value, cells = total.result(), total.curve()
        low, high = total.interval(confidence_level=LEVEL, random_state=data.seed)
    return {
        "errors": {"expected_calibration_error": {"value": value, "low": low, "high": high}},
        "curve": _isotonic_curve(data, predictions),
        "histogram": {"count": cells.bin_weight, "edges": cells.edges},
    }


def _interval(data: ReportData, predictions: dict[str, Any]) -> tuple[float, float]:
    """Return the interval of the error; with very many samples, from sums over bins."""
    draws: dict[str, Any] = {
        "confidence_level": LEVEL,
        "n_resamples": n_resamples(len(data.codes)),
        "random_state": data.seed,
    }
    if len(data.codes) <= MANY_SAMPLES or data.groups is not None:
        return calibration_error_interval(
            **predictions, n_bins=N_BINS, groups=data.groups, **draws
        )
    weight = data.weight
    if weight is not None:  # sums count samples: scale weights to the effective number
        weight = weight * (weight.sum() / (weight @ weight))
    sums = CalibrationAccumulator(N_BINS, labels=predictions["labels"])
    sums.update(predictions["y_true"], predictions["y_proba"], sample_weight=weight)
    return sums.interval(**draws)


def _isotonic_curve(data: ReportData, predictions: dict[str, Any]) -> dict[str, Any]:
    if predictions["y_proba"].ndim == 2:
        # As a binary question: was the top label right?
        predictions = {
            "y_true": two_sided(data.correct),
            "y_proba": data.confidence,
            "labels": [0, 1],
        }
    if data.weight is not None:
        # The band counts samples: scale weights to the effective number.
        effective = data.weight * (data.weight.sum() / (data.weight @ data.weight))
        predictions = {**predictions, "sample_weight": effective}
    curve = isotonic_reliability_curve(
        **predictions, confidence_level=LEVEL, random_state=data.seed
    )
    points = thinned(curve.prob_pred)
    return {name: values[points] for name, values in curve._asdict().items()}


def section(results: dict[str, Any]) -> Section:
    """Return the section of calibration errors and reliability diagrams."""
    rows, notes = [], []
    for view, judged in results["calibration"]["views"].items():
        error, what = judged["errors"]["expected_calibration_error"], _what(view, results)
        rows.append([f"of the {what}", number(error["value"]), interval(error)])
        if not error["low"] <= error["value"] <= error["high"]:
            sentence = (
                f"The expected calibration error of the {what} lies outside its interval, and "
                f"that is no mistake: in {results['overview']['n_samples']} samples chance alone "
                "makes an error of about this size. The value still contains it, the interval "
                "does not."
            )
            notes.append(Text(sentence, note=True))
    table = Table([f"expected calibration error, {N_BINS} bins", "value", "99 % interval"], rows)
    pictures = [diagram(results, view) for view in results["calibration"]["views"]]
    return Section("Reliability diagram and calibration errors", [table, *notes], pictures)


def _what(view: str, results: dict[str, Any]) -> str:
    if view == "top_label":
        return "predicted class"
    return f"probability of class {in_sentence(results['overview']['classes'][1])}"


def diagram(results: dict[str, Any], view: str | None = None) -> Picture:
    """Return the reliability diagram of a view, by default the one of the verdict."""
    view = view or next(iter(results["calibration"]["views"]))
    high, low = ("too high", "too low")
    if view == "top_label":
        high, low = "overconfident", "underconfident"
    caption = (
        f"Reliability of the {_what(view, results)}: below the diagonal {high}, above it {low}. "
        "At every confidence the band holds 99 of 100 curves of calibrated models. A quarter to "
        "nearly half of them leave it somewhere: the verdict does not follow from it."
    )
    judged = results["calibration"]["views"][view]
    points = {name: np.array(values) for name, values in judged["curve"].items()}
    positive = view == "positive_class"
    display = ReliabilityDisplay(
        points["prob_true"],
        points["prob_pred"],
        np.array(judged["histogram"]["count"]),
        np.array(judged["histogram"]["edges"]),
        band=(points["lower"], points["upper"]),
        kind="isotonic",
        pos_label=label(results["overview"]["classes"][1]) if positive else None,
    )
    return Picture(lambda ax: display.plot(ax=ax), SIZE, caption)
