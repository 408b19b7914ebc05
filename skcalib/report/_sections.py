"""The report as a document: title, verdict, tiles and the first two questions."""

from __future__ import annotations

from typing import Any

from ._document import Document, Picture, Section, Table, Text
from ._format import NONE, count, interval, label, number, percent, percent_interval, threshold
from ._sections_details import (
    calibrators_section,
    classes_section,
    groups_section,
    method_section,
    samples_section,
    warnings_section,
)

ERRORS = {
    "expected_calibration_error": "Expected calibration error, {n_bins} bins",
    "smooth_calibration_error": "Smooth calibration error",
    "debiased_calibration_error": "Debiased calibration error (L2), {n_bins} bins",
}

KINDS = ("overconfident", "underconfident")


def document(results: dict[str, Any]) -> Document:
    """Return the report of these results."""
    sections = [
        trust_section(results),
        silence_section(results),
        classes_section(results),
        samples_section(results),
        calibrators_section(results),
        groups_section(results),
        warnings_section(results),
        method_section(results),
    ]
    verdict = results["verdict"]
    return Document(
        title="Calibration report",
        subtitle=_subtitle(results),
        kind=verdict["kind"],
        verdict=verdict["sentence"],
        tiles=_tiles(results),
        sections=[section for section in sections if section is not None],
    )


def _subtitle(results: dict[str, Any]) -> str:
    overview, method = results["overview"], results["method"]
    parts = [overview["model"]] if overview["model"] else []
    parts += [f"{count(overview['n_samples'])} samples", f"{overview['n_classes']} classes"]
    parts += [method["created"], f"skcalib {method['versions']['skcalib']}"]
    return " · ".join(parts)


def _tiles(results: dict[str, Any]) -> list[tuple[str, str]]:
    overview, table = results["overview"], results["selective"]["table"]
    tiles = [
        (percent(overview["accuracy"]["value"]), "accuracy"),
        (percent(overview["mean_confidence"]), "mean confidence"),
        (f"{100 * overview['gap']:+.1f}", "percentage points between the two"),
    ]
    if table:
        first = table[-1]
        what = f"of the samples can be answered at {percent(first['risk'], 0)} error"
        if first["risk"] < 0.01:
            what = f"of the samples can be answered at {percent(first['risk'])} error"
        tiles.append((percent(first["coverage"]), what))
    return tiles


def trust_section(results: dict[str, Any]) -> Section:
    """Return calibration errors, decomposition and diagrams."""
    tables, pictures = [], []
    for view, judged in results["calibration"]["views"].items():
        what = _judged(view, results)
        tables.append(_errors(f"of the {what}", judged, results["method"]))
        below, above = ("too high", "too low") if view == "positive_class" else KINDS
        caption = (
            f"Reliability of the {what}: below the diagonal {below}, above it {above}. The curve "
            "of a calibrated model stays in the band."
        )
        pictures.append(Picture(f"reliability_{view}", caption))
    blocks: list[Any] = [
        *tables,
        Text(
            "The p-value is the probability that a calibrated model gets an error as large by "
            "chance. The interval takes the bias of small samples into account.",
            note=True,
        ),
        _decomposition(results),
        Text(
            "A score is miscalibration - discrimination + uncertainty, summed over classes that "
            "are judged one against the rest. Only the first part can be repaired without a "
            "better model.",
            note=True,
        ),
    ]
    return Section("Can the confidence be trusted?", blocks, pictures)


def _errors(heading: str, judged: dict[str, Any], method: dict[str, Any]) -> Table:
    """Return the calibration errors of one question, and the test."""
    rows = []
    for name, text in ERRORS.items():
        error = judged["errors"][name]
        rows.append([text.format(**method), number(error["value"]), interval(error)])
    rows.append(["p-value of the test of calibration", number(judged["test"]["pvalue"]), ""])
    return Table([heading, "value", "95 % interval"], rows)


def _judged(view: str, results: dict[str, Any]) -> str:
    if view == "top_label":
        return "predicted class"
    return f"probability of class {label(results['overview']['classes'][1])}"


def _decomposition(results: dict[str, Any]) -> Table:
    parts = ("miscalibration", "discrimination", "uncertainty", "score")
    rows = [
        [name, *(number(results["calibration"]["decomposition"][rule][part]) for part in parts)]
        for rule, name in (("brier", "Brier score"), ("log_loss", "log-loss"))
    ]
    return Table(["score", *parts[:-1], "total"], rows)


def silence_section(results: dict[str, Any]) -> Section:
    """Return what declining the least confident samples gains."""
    selective = results["selective"]
    at = selective["accuracy_at_coverage"]
    rows = [
        [
            percent(entry["risk"]),
            percent(entry["coverage"]),
            threshold(entry["threshold"]),
            percent_interval(entry["error_rate"]) if entry["error_rate"] else NONE,
        ]
        for entry in selective["table"]
    ]
    summary = [
        ["Error rate, all samples answered", percent(selective["error_rate"])],
        [f"Accuracy of the {percent(at['coverage'], 0)} most confident", percent(at["accuracy"])],
        ["AUROC, correct against wrong answers", number(selective["auroc"])],
        ["Area under the risk-coverage curve", number(selective["area"], 4)],
        ["... in excess of a perfect order", number(selective["excess_area"], 4)],
    ]
    header = ["error rate allowed", "samples answered", "confidence from", "error rate of answers"]
    blocks: list[Any] = [Table(["measure", "value"], summary)]
    if rows:
        note = (
            "A threshold read off these samples is exceeded on new ones about every second time. "
            "skcalib.selection.SelectiveClassifier chooses one that keeps its promise."
        )
        blocks = [Table(header, rows), Text(note, note=True), *blocks]
    caption = (
        "Error rate of the most confident samples against their fraction, with a 95 % band. "
        "Dotted: a confidence that has all errors last."
    )
    return Section("When should it stay silent?", blocks, [Picture("risk_coverage", caption)])
