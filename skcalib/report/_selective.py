"""Selective prediction: error rate against coverage, and thresholds with a guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..metrics import risk_coverage_curve
from ..plots import RiskCoverageDisplay
from ..utils.computing._risk_control import risk_control
from ._data import ReportData, thinned
from ._document import NONE, Picture, Section, Table, Text, percent, threshold
from ._limits import LEVEL, N_RISKS, RISKS, SPREADS

# Inches of the curve.
SIZE = (4.2, 3.2)


def results(data: ReportData) -> dict[str, Any]:
    """Return the curve, thresholds for several limits, and the one for half the error rate."""
    curve = risk_coverage_curve(**data.predictions)
    points = thinned(curve.coverage)
    error_rate = float(curve.risk[-1])
    table = _thresholds(data, [risk for risk in RISKS if risk < error_rate][-N_RISKS:])
    half = [entry for entry in table if entry["risk"] <= error_rate / 2]
    return {
        "n_samples": float(data.mass.sum()),
        "error_rate": error_rate,
        "table": table,
        "promise": half[-1] if half else None,
        "curve": {"coverage": curve.coverage[points], "risk": curve.risk[points]},
    }


def _thresholds(data: ReportData, risks: list[float]) -> list[dict[str, Any]]:
    """Return for every risk the threshold that keeps it on new samples; none with weights."""
    # The exact test counts samples, so there is none with weights.
    if data.weight is not None or len(np.unique(data.codes)) < 2:
        return []
    found = []
    # A calibrator fitted to other samples may give higher confidences, and answer more samples.
    upper = data.confidence
    if data.spread is not None:
        upper = upper + SPREADS * data.spread
    for risk in risks:
        kept = risk_control(upper, data.correct, risk=risk, delta=1 - LEVEL, groups=data.groups)
        answered = data.confidence > kept.threshold
        answers = kept.n_accepted > 0 and bool(answered.any())
        found.append(
            {
                "risk": risk,
                "kept": answers,
                "threshold": kept.threshold if answers else None,
                "coverage": float(answered.mean()) if answers else 0.0,
                "error_rate": float(1 - data.correct[answered].mean()) if answers else None,
            }
        )
    return found


def section(results: dict[str, Any]) -> Section:
    """Return the section on declining the least confident samples."""
    selective, after = results["selective"], results["after_calibration"]
    as_it_is = _table(selective, "confidence above")
    blocks: list[Any] = []
    if after is not None:
        blocks = [
            *_table(after["selective"], "calibrated confidence above"),
            Text(
                "First calibrate, then decline: these thresholds are confidences after "
                f"{results['calibrators']['best']}, of samples that it was not fitted on. The "
                "thresholds below are for the probabilities as they are, and keep nothing after "
                "calibration.",
                note=True,
            ),
        ]
    blocks += as_it_is
    if blocks:
        note = (
            f"Each of these limits is kept on new samples of the same kind with "
            f"{percent(LEVEL, 0)} certainty, by skcalib.selection.SelectiveClassifier. A "
            "threshold that just fits these samples, read off the curve, breaks its limit about "
            "half the time."
        )
        blocks.append(Text(note, note=True))
    caption = (
        "Error rate of the most confident samples against their fraction, with a band of 95 % at "
        "every fraction, not of the whole curve. Dotted: the best possible order."
    )
    curve = selective["curve"]
    display = RiskCoverageDisplay(
        np.array(curve["coverage"]),
        np.array(curve["risk"]),
        n_samples=selective["n_samples"],
    )
    picture = Picture(lambda ax: display.plot(ax=ax), SIZE, caption)
    return Section("When should it decline?", blocks, [picture])


def _table(selective: dict[str, Any], above: str) -> list[Any]:
    rows = [
        [
            percent(entry["risk"]),
            percent(entry["coverage"]) if entry["kept"] else "not promised",
            threshold(entry["threshold"]),
            percent(entry["error_rate"]) if entry["kept"] else NONE,
        ]
        for entry in selective["table"]
    ]
    return (
        [Table(["wrong, at most", "samples answered", above, "wrong here"], rows)] if rows else []
    )
