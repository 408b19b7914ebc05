"""What is measured of the logits of a student, by the metrics of the package."""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr, softmax

from skcalib import metrics
from skcalib.posthoc import TemperatureScaling


def nll(y, proba):
    """Log-loss of integer labels."""
    return float(-np.log(np.maximum(proba[np.arange(len(y)), y], 1e-12)).mean())


def calibration(y, proba):
    return {
        "nll": nll(y, proba),
        "ece": metrics.expected_calibration_error(y, proba, strategy="quantile"),
        "ece_width": metrics.expected_calibration_error(y, proba),
        "classwise": metrics.classwise_calibration_error(y, proba),
    }


def proba_of(logits):
    return softmax(logits.astype(np.float64), axis=1)


def measure(logits, y_test, y_val, human=None):
    """Measure test logits, before and after a temperature that is fitted on validation logits.

    `human` are distributions of human labels; "human_kl" is the mean divergence from them.
    """
    proba = proba_of(logits["test"])
    scaler = TemperatureScaling(mix_uniform=True).fit(logits["val"], y_val)
    scaled = calibration(y_test, scaler.predict_proba(logits["test"]))
    row = {
        "accuracy": float((proba.argmax(axis=1) == y_test).mean()),
        **calibration(y_test, proba),
        **{f"{name}_scaled": value for name, value in scaled.items()},
        "temperature": float(scaler.temperature_),
        "aurc": metrics.area_under_risk_coverage(y_test, proba),
        "errors_auroc": _errors_auroc(y_test, proba),
        "val_nll": nll(y_val, proba_of(logits["val"])),
        "val_nll_scaled": nll(y_val, scaler.predict_proba(logits["val"])),
    }
    if human is not None:
        row["human_kl"] = divergence(human, proba)
        row["human_kl_scaled"] = divergence(human, scaler.predict_proba(logits["test"]))
    if "ood" in logits:
        row |= out_of_distribution(proba, proba_of(logits["ood"]))
    return row


def divergence(human, proba):
    """Return the mean Kullback-Leibler divergence of predictions from human labels."""
    return float(rel_entr(human, np.maximum(proba, 1e-12)).sum(axis=1).mean())


def _errors_auroc(y, proba):
    correct = proba.argmax(axis=1) == y
    if correct.all() or not correct.any():
        return float("nan")
    return metrics.misclassification_report(y, proba, confidence=("msp",))["auroc"].item()


def out_of_distribution(proba, proba_ood):
    entropy = np.concatenate([metrics.predictive_entropy(p) for p in (proba, proba_ood)])
    inside = np.arange(len(entropy)) < len(proba)
    report = metrics.ood_report(inside, {"entropy": -entropy})[0]
    return {"ood_auroc": report["auroc"].item(), "ood_fpr": report["fpr_at_tpr"].item()}
