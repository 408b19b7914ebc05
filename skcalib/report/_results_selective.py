"""When should the model stay silent? Error rate against coverage, and thresholds."""

from __future__ import annotations

from typing import Any

from ..metrics import (
    accuracy_at_coverage,
    area_under_risk_coverage,
    coverage_at_risk,
    excess_area_under_risk_coverage,
    misclassification_report,
    risk_coverage_curve,
)
from ._data import ReportData
from ._statistics import fraction, thinned

# Error rates to promise, of which those below the error rate of all samples are shown.
RISKS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
N_RISKS = 4
COVERAGE = 0.8


def selective(data: ReportData) -> dict[str, Any]:
    """Return the curve, its areas, and the threshold for several error rates."""
    predictions = data.predictions
    curve = risk_coverage_curve(**predictions)
    points = thinned(curve.coverage)
    error_rate = float(curve.risk[-1])
    risks = [risk for risk in RISKS if risk < error_rate][-N_RISKS:]
    return {
        "error_rate": error_rate,
        "area": area_under_risk_coverage(**predictions),
        "excess_area": excess_area_under_risk_coverage(**predictions),
        "accuracy_at_coverage": {
            "coverage": COVERAGE,
            "accuracy": accuracy_at_coverage(**predictions, coverage=COVERAGE),
        },
        "auroc": _auroc(data),
        "table": [_at_risk(data, risk) for risk in risks],
        "curve": {"coverage": curve.coverage[points], "risk": curve.risk[points]},
    }


def _auroc(data: ReportData) -> float | None:
    """Return how well confidence tells correct from wrong; None where one kind is missing."""
    correct = data.correct
    if correct.all() or not correct.any():
        return None
    report = misclassification_report(**data.predictions, confidence=["msp"])
    return float(report["msp"]["auroc"])


def _at_risk(data: ReportData, risk: float) -> dict[str, Any]:
    """Return coverage, threshold and error rate of the answers where `risk` is allowed."""
    found: Any = coverage_at_risk(**data.predictions, risk=risk, return_threshold=True)
    coverage, threshold = found
    if coverage == 0:
        return {"risk": risk, "coverage": 0.0, "threshold": None, "error_rate": None}
    answered = data.confidence >= threshold
    errors = fraction(~data.correct[answered], data.mass[answered])
    return {"risk": risk, "coverage": coverage, "threshold": threshold, "error_rate": errors}
