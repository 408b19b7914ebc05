"""When should it decline? Error rate against coverage, thresholds, and one that is kept."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from ..metrics import coverage_at_risk, risk_coverage_curve
from ..plots import RiskCoverageDisplay
from ..posthoc import StackedCalibration
from ..selection import SelectiveClassifier
from ._data import LEVEL, ReportData, fraction, thinned
from ._document import NONE, Picture, Section, Table, Text, percent, percent_interval, threshold

# Error rates to allow, of which those below the error rate of all samples are shown.
RISKS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
N_RISKS = 4


def results(data: ReportData) -> dict[str, Any]:
    """Return the curve, the thresholds for several error rates, and one that is kept."""
    curve = risk_coverage_curve(**data.predictions)
    points = thinned(curve.coverage)
    error_rate = float(curve.risk[-1])
    risks = [risk for risk in RISKS if risk < error_rate][-N_RISKS:]
    return {
        "error_rate": error_rate,
        "table": [_at_risk(data, risk) for risk in risks],
        "promise": _promise(data, error_rate),
        "curve": {"coverage": curve.coverage[points], "risk": curve.risk[points]},
    }


def _promise(data: ReportData, error_rate: float) -> dict[str, Any] | None:
    """Return the threshold that keeps half of the error rate on new samples; None without one."""
    risks = [risk for risk in RISKS if risk <= error_rate / 2]
    # The exact test behind the promise counts samples.
    if not risks or data.weight is not None or len(np.unique(data.codes)) < 2:
        return None
    as_it_is = StackedCalibration([], input="proba", classes=np.arange(len(data.classes)))
    as_it_is = FrozenEstimator(as_it_is.fit(data.proba, data.codes))
    model = SelectiveClassifier(as_it_is, risk=risks[-1], delta=1 - LEVEL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing is accepted
        model.fit(data.proba, data.codes)
    kept = bool(np.isfinite(model.threshold_))
    return {
        "risk": risks[-1],
        "kept": kept,
        "threshold": float(model.threshold_) if kept else None,
        "coverage": float(model.coverage_),
        **({} if kept else {"unsafe": _at_risk(data, risks[-1])}),
    }


def _at_risk(data: ReportData, risk: float) -> dict[str, Any]:
    """Return coverage, threshold and error rate of the answers where `risk` is allowed."""
    found: Any = coverage_at_risk(**data.predictions, risk=risk, return_threshold=True)
    coverage, threshold = found
    if coverage == 0:
        return {"risk": risk, "coverage": 0.0, "threshold": None, "error_rate": None}
    answered = data.confidence >= threshold
    errors = fraction(~data.correct[answered], data.mass[answered])
    return {"risk": risk, "coverage": coverage, "threshold": threshold, "error_rate": errors}


def section(results: dict[str, Any]) -> Section:
    """Return what declining the least confident samples gains."""
    selective = results["selective"]
    rows = [
        [
            percent(entry["risk"]),
            percent(entry["coverage"]),
            threshold(entry["threshold"]),
            percent_interval(entry["error_rate"]) if entry["error_rate"] else NONE,
        ]
        for entry in selective["table"]
    ]
    header = ["error rate allowed", "samples answered", "confidence from", "error rate of answers"]
    note = (
        "These thresholds fit these samples: on new ones, each breaks its limit about half "
        "the time. skcalib.selection.SelectiveClassifier finds thresholds that keep it."
    )
    blocks: list[Any] = [Table(header, rows), Text(note, note=True)] if rows else []
    caption = (
        "Error rate of the most confident samples against their fraction, with a band of 95 %. "
        "Dotted: the best possible order."
    )
    picture = Picture(partial(_draw, results), (4.2, 3.2), caption)
    return Section("When should it decline?", blocks, [picture])


def _draw(results: dict[str, Any], ax: Any) -> None:
    curve, overview = results["selective"]["curve"], results["overview"]
    RiskCoverageDisplay(
        np.array(curve["coverage"]),
        np.array(curve["risk"]),
        n_samples=overview["total_weight"] or overview["n_samples"],
    ).plot(ax=ax)
