"""What the reliability diagram shows, of every kind, from the metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import (
    calibration_error_interval,
    expected_calibration_error,
    isotonic_reliability_curve,
    reliability_curve,
    score_decomposition,
    smooth_calibration_error,
    smooth_reliability_curve,
)
from ..utils._proba import wilson_interval
from ..utils._validation import check_predictions

# More resamples would not be seen in two digits.
N_RESAMPLES = 200
# The interval of the error takes about a second for as many samples, and is narrow beyond.
FEW_SAMPLES = 20_000
# The histogram has as many cells where the axes show a part of [0, 1], and at most MAX_CELLS.
N_CELLS, MAX_CELLS = 15, 3000


def diagram_numbers(
    data: dict[str, Any],
    *,
    kind: str,
    bins: dict[str, Any],
    confidence_level: float | None,
    interval: bool | None,
    zoom: float | None,
) -> dict[str, Any]:
    """Return the arguments of a display; `data` are those of a metric, `bins` its options."""
    drawn = {"bins": _binned, "isotonic": _isotonic, "smooth": _smooth}
    if kind not in drawn:
        raise ValueError(f"kind must be 'bins', 'isotonic' or 'smooth', got {kind!r}.")
    numbers = drawn[kind](data, bins, confidence_level)
    window = None if zoom is None else _zoom_window(data, zoom)
    # Equal counts tell nothing: the histogram keeps bins of equal width.
    count, edges = _histogram(data, bins["n_bins"], window)
    return {
        **numbers,
        **_error(data, kind == "smooth", bins, confidence_level, interval),
        **bins,
        "kind": kind,
        "confidence_level": confidence_level,
        "window": window,
        "count": count,
        "edges": edges,
    }


def _error(
    data: dict[str, Any],
    smooth: bool,
    bins: dict[str, Any],
    confidence_level: float | None,
    interval: bool | None,
) -> dict[str, Any]:
    """Return the calibration error and, where asked for or cheap, its interval."""
    metric: Callable[..., float] = smooth_calibration_error
    options: dict[str, Any] = {}
    if not smooth:
        metric, options = expected_calibration_error, bins
    numbers: dict[str, Any] = {"calibration_error": metric(**data, **options)}
    if interval is None:
        # The smooth error is solved for anew in every resample, which takes seconds.
        interval = not smooth and len(data["y_true"]) <= FEW_SAMPLES
    if interval:
        level = 0.95 if confidence_level is None else confidence_level
        resamples: dict[str, Any] = {
            "n_resamples": N_RESAMPLES, "random_state": 0, "confidence_level": level,
        }  # fmt: skip
        numbers["interval"] = calibration_error_interval(
            **data, metric=metric, **resamples, **options
        )
    return numbers


def _binned(
    data: dict[str, Any], bins: dict[str, Any], confidence_level: float | None
) -> dict[str, Any]:
    curve = reliability_curve(**data, **bins)
    band = None
    if confidence_level is not None:
        band = wilson_interval(curve.prob_true, curve.bin_weight, confidence_level)
    # Weights count as much as samples on average.
    count = curve.bin_weight * (len(data["y_true"]) / curve.bin_weight.sum())
    return {
        "prob_true": curve.prob_true,
        "prob_pred": curve.prob_pred,
        "bin_count": count,
        "band": band,
    }


def _smooth(
    data: dict[str, Any], _bins: dict[str, Any], confidence_level: float | None
) -> dict[str, Any]:
    curve = smooth_reliability_curve(**data, **_resamples(confidence_level))
    band = None if confidence_level is None else (curve.lower, curve.upper)
    return {"prob_true": curve.prob_true, "prob_pred": curve.prob_pred, "band": band}


def _isotonic(
    data: dict[str, Any], _bins: dict[str, Any], confidence_level: float | None
) -> dict[str, Any]:
    binary = _binary_question(data)
    curve = isotonic_reliability_curve(**binary, **_resamples(confidence_level))
    return {
        "prob_true": curve.prob_true,
        "prob_pred": curve.prob_pred,
        "band": None if confidence_level is None else (curve.lower, curve.upper),
        "decomposition": score_decomposition(**binary),
    }


def _resamples(confidence_level: float | None) -> dict[str, Any]:
    if confidence_level is None:
        # One resample, the fewest that the functions take, whose band is dropped.
        return {"n_resamples": 1, "random_state": 0}
    options = {"n_resamples": N_RESAMPLES, "random_state": 0}
    return {**options, "confidence_level": confidence_level}


def _binary_question(data: dict[str, Any]) -> dict[str, Any]:
    """Return the problem of one class; of the top label: was it right, and how sure was it?"""
    predictions = check_predictions(**data)
    codes, proba = predictions.codes, predictions.proba
    if proba.ndim == 2:
        codes, proba = (proba.argmax(axis=1) == codes).astype(int), proba.max(axis=1)
    return {"y_true": codes, "y_proba": proba, "sample_weight": predictions.counts}


def _zoom_window(data: dict[str, Any], fraction: float) -> tuple[float, float]:
    """Return the ends of the confidences of that fraction of the samples, in the middle."""
    if isinstance(fraction, bool) or not 0 < fraction <= 1:
        raise ValueError(f"zoom must be a number in (0, 1] or None, got {fraction!r}.")
    confidence = _binary_question(data)["y_proba"]
    low, high = np.quantile(confidence, [(1 - fraction) / 2, (1 + fraction) / 2])
    return float(low), float(high)


def _histogram(
    data: dict[str, Any], n_bins: int, window: tuple[float, float] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the counts in cells of equal width of all confidences, and their edges."""
    if window is not None:
        width = max(window[1] - window[0], N_CELLS / MAX_CELLS)
        n_bins = int(np.ceil(N_CELLS / width))
    cells = reliability_curve(**data, n_bins=n_bins)
    return cells.bin_weight, cells.edges
