"""What would help? Calibrators fitted out-of-fold, compared sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from ..metrics import expected_calibration_error, smooth_calibration_error
from ..posthoc import (
    BetaCalibration,
    DirichletCalibration,
    IsotonicCalibration,
    PostHocCalibrator,
    TemperatureScaling,
    VectorScaling,
)
from ._data import ReportData
from ._results_calibration import N_BINS
from ._statistics import mean, mean_interval

N_FOLDS = 5
CALIBRATORS: tuple[type[PostHocCalibrator], ...] = (
    TemperatureScaling,
    VectorScaling,
    DirichletCalibration,
    BetaCalibration,
    IsotonicCalibration,
)
# Numbers of samples times classes, above which those with several numbers a class take too long.
MANY_NUMBERS = 5_000_000
# Dirichlet calibration has as many numbers as pairs of classes.
MANY_CLASSES = 30


def calibrators(data: ReportData) -> dict[str, Any]:
    """Return scores as they are and after every calibrator, with paired differences."""
    count = np.bincount(data.codes)
    fewest = int(count[count > 0].min())
    if fewest < N_FOLDS or (count > 0).sum() < 2:
        return {"table": None, "reason": f"a class has fewer than {N_FOLDS} samples"}
    losses = {"as it is": _losses(data, data.proba)}
    table = [_scores(data, "as it is", data.proba, losses)]
    for calibrator in _candidates(data):
        name = type(calibrator).__name__
        proba = out_of_fold(data, calibrator)
        losses[name] = _losses(data, proba)
        table.append(_scores(data, name, proba, losses))
    best = min(table[1:], key=lambda entry: entry["log_loss"])
    helps = best["log_loss_difference"]["high"] < 0
    return {"table": table, "reason": None, "best": best["name"] if helps else None}


def _candidates(data: ReportData) -> list[PostHocCalibrator]:
    n_samples, n_classes = data.proba.shape
    chosen = [kind for kind in CALIBRATORS if kind is not DirichletCalibration]
    if n_classes <= MANY_CLASSES:
        chosen = list(CALIBRATORS)
    if n_samples * n_classes > MANY_NUMBERS:
        chosen = [TemperatureScaling]
    return [kind(input="proba", classes=np.arange(n_classes)) for kind in chosen]  # type: ignore[call-arg]


def out_of_fold(data: ReportData, calibrator: PostHocCalibrator) -> NDArray[np.float64]:
    """Return the probabilities of every sample by a calibrator that has not seen it."""
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=data.seed)
    proba = np.empty(data.proba.shape)
    for train, test in folds.split(data.proba, data.codes):
        weight = None if data.weight is None else data.weight[train]
        calibrator.fit(data.proba[train], data.codes[train], sample_weight=weight)
        proba[test] = calibrator.predict_proba(data.proba[test])
    return proba


def _losses(data: ReportData, proba: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    """Return log-loss and Brier score of every sample."""
    p_label = proba[np.arange(len(proba)), data.codes].astype(np.float64)
    squares = np.einsum("nk,nk->n", proba, proba, dtype=np.float64)
    # As scikit-learn's log_loss: a probability of 0 is taken for the smallest step of a float.
    log_loss = -np.log(np.maximum(p_label, np.finfo(proba.dtype).eps))
    # sum_k (p_k - [k = y])^2 = sum_k p_k^2 - 2 p_y + 1
    return {"log_loss": log_loss, "brier": squares - 2 * p_label + 1}


def _scores(
    data: ReportData, name: str, proba: NDArray[Any], losses: dict[str, Any]
) -> dict[str, Any]:
    """Return the scores of one line of the table; `losses` are those of the lines so far."""
    predictions = {**data.predictions, "y_proba": proba}
    correct = proba.argmax(axis=1) == data.codes
    entry: dict[str, Any] = {
        "name": name,
        "accuracy": mean(correct.astype(np.float64), data.mass),
        "expected_calibration_error": expected_calibration_error(**predictions, n_bins=N_BINS),
        "smooth_calibration_error": smooth_calibration_error(**predictions),
    }
    for loss, values in losses[name].items():
        entry[loss] = mean(values, data.mass)
        if name != "as it is":
            difference = values - losses["as it is"][loss]
            entry[f"{loss}_difference"] = mean_interval(difference, data.mass)
    return entry
