"""Calibrators, fitted out-of-fold and compared sample by sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from ..metrics import expected_calibration_error
from ..posthoc import IsotonicCalibration, StackedCalibration, TemperatureScaling
from ..utils._compat import StratifiedGroupKFold
from ..utils._estimators import Folds, fit_clone, predict_columns
from ._constants import FEWEST_TO_CALIBRATE, MANY_NUMBERS, N_BINS, N_FOLDS
from ._data import ReportData, compute_mean, compute_mean_interval
from ._document import (
    NONE,
    Advice,
    Code,
    Section,
    Table,
    Text,
    format_number,
    format_percent,
    format_with_interval,
)

# In nats: a smaller difference of log-losses is rounding.
ROUNDING = 1e-9


class CalibratedData(NamedTuple):
    """What the advice after calibration is computed from.

    ``out_of_fold`` are all samples, calibrated out-of-fold. ``half`` are the samples of one half,
    calibrated by the other: around this calibrator, a threshold keeps its promise exactly.
    """

    out_of_fold: ReportData
    half: ReportData


def compare_calibrators(data: ReportData) -> tuple[dict[str, Any], CalibratedData | None]:
    """Return scores before and after every calibrator, with paired differences.

    If a calibrator is recommended, also return calibrated data.
    """
    few_groups = data.groups is not None and len(np.unique(data.groups)) < N_FOLDS
    if len(data.codes) < FEWEST_TO_CALIBRATE or len(np.unique(data.codes)) < 2 or few_groups:
        of_groups = f", in {N_FOLDS} groups" if few_groups else ""
        reason = f"that takes {FEWEST_TO_CALIBRATE} samples{of_groups} and two classes among them"
        untried = {"table": None, "reason": reason, "best": None, "ignorant": False, "code": ""}
        return untried, None
    before = data.log_loss(data.proba)
    table = [_score_calibrator(data, "as it is", data.proba, before)]
    classes = np.arange(len(data.classes))
    folds = _make_folds(data, N_FOLDS)
    calibrated: list[NDArray[Any]] = []
    kinds: list[Any] = [StackedCalibration, TemperatureScaling, IsotonicCalibration]
    for kind in kinds[:1] if data.proba.size > MANY_NUMBERS else kinds:
        calibrator = kind(input="proba", classes=classes)
        calibrated.append(_calibrate_out_of_fold(calibrator, data, folds))
        table.append(_score_calibrator(data, kind.__name__, calibrated[-1], before))
    auto = table[1]
    # "auto" is recommended if it gains more than chance, and the model knows something.
    gains = auto["log_loss_difference"]["high"] < -ROUNDING
    helps = gains and _knows_labels(data)
    found = {
        "table": table,
        "reason": None,
        "auto": auto["name"],
        "best": auto["name"] if helps else None,
        "ignorant": gains and not helps,
        "code": _write_code(auto["name"], data.model is not None) if helps else "",
    }
    if not helps:
        return found, None
    halves = _make_folds(data, 2)
    proba = _calibrate_out_of_fold(kinds[0](input="proba", classes=classes), data, halves)
    half = replace(data, proba=proba).take(next(iter(halves))[1])
    return found, CalibratedData(replace(data, proba=calibrated[0]), half)


def _knows_labels(data: ReportData) -> bool:
    """Test (at 5 %) whether labels are more probable than those of other samples.

    They are not if the rows of labels and probabilities are in different orders.
    """
    of_class = np.column_stack([data.of_class(k) for k in range(len(data.classes))])
    frequency = data.weights @ of_class / data.weights.sum()
    gain = data.per_sample(data.proba) - data.proba @ frequency
    return compute_mean_interval(gain, data.weights, data.effect(gain), level=0.9)["low"] > 0


def _calibrate_out_of_fold(calibrator: Any, data: ReportData, folds: Folds) -> NDArray[Any]:
    """Return out-of-fold probabilities."""
    given = {"sample_weight": data.weight, "groups": data.groups}
    params = {name: values for name, values in given.items() if values is not None}
    proba = np.empty(data.proba.shape)
    for train, test in folds:
        fitted = fit_clone(calibrator, data.proba, data.predictions["y_true"], train, params)
        proba[test] = predict_columns(fitted, data.proba[test], classes=calibrator.classes)
    return proba


def _make_folds(data: ReportData, n_folds: int) -> Folds:
    """Return shuffled folds, stratified if every class has a sample per fold."""
    if data.groups is not None:
        grouped = StratifiedGroupKFold(n_folds, shuffle=True, random_state=data.seed)
        parts = list(grouped.split(data.proba, data.codes, data.groups))
        return Folds(parts, len(data.proba))
    count = np.bincount(data.codes)
    kind = StratifiedKFold if count[count > 0].min() >= n_folds else KFold
    folds = kind(n_folds, shuffle=True, random_state=data.seed)
    return Folds(list(folds.split(data.proba, data.codes)), len(data.proba))


def _score_calibrator(
    data: ReportData, name: str, proba: NDArray[Any], before: NDArray[np.float64]
) -> dict[str, Any]:
    """Return a row of the table; `before` are the losses before calibration."""
    # As in the group tests: the second of two classes, else the top label.
    tested = proba[:, 1] if proba.shape[1] == 2 else proba
    predictions = {**data.predictions, "y_proba": tested}
    correct = data.agreeing(data.columns_of(proba))
    losses = data.log_loss(proba)
    return {
        "name": name,
        "accuracy": compute_mean(correct.astype(np.float64), data.weights),
        "expected_calibration_error": expected_calibration_error(**predictions, n_bins=N_BINS),
        "log_loss": compute_mean(losses, data.weights),
        "log_loss_difference": compute_mean_interval(
            losses - before, data.weights, data.effect(losses - before)
        ),
    }


def _write_code(name: str, with_model: bool) -> str:
    """Return Python code that calibrates, on samples that were in neither training nor test."""
    if with_model:
        return (
            "from sklearn.frozen import FrozenEstimator\n"
            "from skcalib.posthoc import PostHocCalibratedClassifier\n"
            "model = PostHocCalibratedClassifier(FrozenEstimator(model))\n"
            "model.fit(X_held_out, y_held_out)"
        )
    return (
        f"from skcalib.posthoc import {name}\n"
        f'calibrator = {name}(input="proba").fit(proba_held_out, y_held_out)\n'
        "proba = calibrator.predict_proba(proba_new)"
    )


def advise(results: dict[str, Any]) -> Advice:
    """Return the advice on calibration."""
    found = results["calibrators"]
    if found["table"] is None:
        return Advice("No calibrator was tried", f": {found['reason']}.")
    before, after = found["table"][:2]
    scores = ", ".join(
        f"{what} from {format_number(before[score])} to {format_number(after[score])}"
        for score, what in (
            ("log_loss", "log-loss"),
            ("expected_calibration_error", "calibration error"),
        )
    )
    tried = "on samples that it was not fitted on"
    if found["ignorant"]:
        return Advice(
            "Check that the rows are in the order of the labels",
            ": labels are no more probable than those of other samples. If the order is right, "
            "the model knows too little to be worth calibrating.",
        )
    if found["best"]:
        return Advice(
            "Calibrate it",
            f": {found['best']} brings the {scores}, {tried}. The code is below.",
        )
    if after["log_loss_difference"]["value"] < 0:
        return Advice(
            "Calibration may help a little",
            f": {found['auto']} brings the {scores}, {tried}; that may be chance.",
        )
    if results["summary"]["kind"] not in ("calibrated", "undecided"):
        return Advice(
            "No calibrator for all samples repairs it",
            f": {found['auto']} brings the {scores}, {tried}. Look for the cause.",
        )
    return Advice(
        "Leave the probabilities as they are",
        f": {found['auto']} brings the {scores}, {tried}: no gain.",
    )


def make_section(results: dict[str, Any]) -> Section:
    """Return the section on calibrators, with code for the recommended one."""
    found = results["calibrators"]
    if found["table"] is None:
        text = f"Calibrators were not compared: {found['reason']}."
        return Section("What would help?", [Text(text)])
    differences = [
        NONE,
        *(format_with_interval(e["log_loss_difference"]) for e in found["table"][1:]),
    ]
    rows = [
        [
            entry["name"],
            format_percent(entry["accuracy"]),
            format_number(entry["expected_calibration_error"]),
            format_number(entry["log_loss"]),
            difference,
        ]
        for entry, difference in zip(found["table"], differences)
    ]
    header = ["probabilities", "accuracy", "calibration error", "log-loss", "difference"]
    note = (
        f"Calibrators are fitted out-of-fold, on {results['method']['n_folds']} folds of these "
        "samples. Difference: from the probabilities as they are, with 99 % intervals, which are "
        "too narrow for a few hundred samples; below 0 is better. "
        f'{found["auto"]} is what the calibrator "auto" takes here; it is recommended where its '
        "interval of the log-loss is below 0."
    )
    blocks: list[Any] = [Table(header, rows), Text(note, note=True)]
    if found["code"]:
        blocks.append(Code(found["code"]))
    return Section("What would help?", blocks)
