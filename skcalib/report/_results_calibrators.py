"""What would help? Calibrators fitted out-of-fold, compared sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

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
from ._format import number
from ._results_calibration import N_BINS
from ._statistics import mean, mean_interval

N_FOLDS = 5
# Samples; with fewer, a fold has not ten.
FEWEST = 50
AS_IT_IS = "as it is"
# From the simplest on.
CALIBRATORS: tuple[type[PostHocCalibrator], ...] = (
    TemperatureScaling,
    VectorScaling,
    DirichletCalibration,
    BetaCalibration,
    IsotonicCalibration,
)
# Numbers of samples times classes, above which those with several numbers a class take too long.
MANY_NUMBERS = 1_000_000
# Dirichlet calibration has as many numbers as pairs of classes.
MANY_CLASSES = 30


def calibrators(data: ReportData) -> dict[str, Any]:
    """Return scores as they are and after every calibrator, with paired differences."""
    if len(data.codes) < FEWEST or len(np.unique(data.codes)) < 2:
        reason = f"it takes {FEWEST} samples and two classes among them"
        return {"table": None, "reason": reason, "best": None, "sentence": "", "code": ""}
    losses = {AS_IT_IS: _losses(data, data.proba)}
    table = [_scores(data, AS_IT_IS, data.proba, losses)]
    for calibrator in _candidates(data):
        name = type(calibrator).__name__
        proba = out_of_fold(data, calibrator)
        losses[name] = _losses(data, proba)
        table.append(_scores(data, name, proba, losses))
    best = _best(data, losses)
    return {
        "table": table,
        "reason": None,
        "best": best,
        "left_out": [kind.__name__ for kind in CALIBRATORS if kind.__name__ not in losses],
        "sentence": _sentence(best, table),
        "code": _code(best, data.model is not None),
    }


def _best(data: ReportData, losses: dict[str, Any]) -> str | None:
    """Return the simplest way that no other beats, None where that is to do nothing."""
    for name in losses:  # from the simplest on
        if not any(_is_beaten(data, losses, name, loss) for loss in losses[name]):
            return None if name == AS_IT_IS else name
    # One is best in one score, another in the other.
    return min(losses, key=lambda name: mean(losses[name]["log_loss"], data.mass))


def _is_beaten(data: ReportData, losses: dict[str, Any], name: str, loss: str) -> bool:
    """Tell whether the best of all has a score that is lower beyond chance."""
    means = {other: mean(values[loss], data.mass) for other, values in losses.items()}
    best = min(means, key=lambda other: means[other])
    difference = losses[name][loss] - losses[best][loss]
    return bool(mean_interval(difference, data.mass)["low"] > 0)


def _sentence(best: str | None, table: list[dict[str, Any]]) -> str:
    if best is None:
        return "No calibrator is better than the probabilities as they are, beyond chance."
    before, after = table[0], next(entry for entry in table if entry["name"] == best)
    changes = [
        f"{what} from {number(before[score])} to {number(after[score])}"
        for score, what in (
            ("log_loss", "log-loss"),
            ("brier", "Brier score"),
            ("expected_calibration_error", "expected calibration error"),
        )
    ]
    return f"{best}: {', '.join(changes)}."


def _code(best: str | None, with_model: bool) -> str:
    """Return the lines that calibrate, on samples that neither training nor test has used."""
    if best is None:
        return ""
    if not with_model:
        return (
            f"from skcalib.posthoc import {best}\n"
            f'calibrator = {best}(input="proba").fit(proba_held_out, y_held_out)\n'
            "proba = calibrator.predict_proba(proba_new)"
        )
    return (
        "from sklearn.frozen import FrozenEstimator\n"
        f"from skcalib.posthoc import {best}, PostHocCalibratedClassifier\n"
        f"model = PostHocCalibratedClassifier(FrozenEstimator(model), {best}())\n"
        "model.fit(X_held_out, y_held_out)"
    )


def _candidates(data: ReportData) -> list[PostHocCalibrator]:
    n_samples, n_classes = data.proba.shape
    chosen = [kind for kind in CALIBRATORS if kind is not DirichletCalibration]
    if n_classes <= MANY_CLASSES:
        chosen = list(CALIBRATORS)
    if n_samples * n_classes > MANY_NUMBERS:
        chosen = [TemperatureScaling]
    return [kind(input="proba", classes=np.arange(n_classes)) for kind in chosen]


def out_of_fold(data: ReportData, calibrator: PostHocCalibrator) -> NDArray[np.float64]:
    """Return the probabilities of every sample by a calibrator that has not seen it."""
    count = np.bincount(data.codes)
    # A class rarer than that cannot be in every fold.
    kind = StratifiedKFold if count[count > 0].min() >= N_FOLDS else KFold
    folds = kind(N_FOLDS, shuffle=True, random_state=data.seed)
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
        if name != AS_IT_IS:
            difference = values - losses[AS_IT_IS][loss]
            entry[f"{loss}_difference"] = mean_interval(difference, data.mass)
    return entry
