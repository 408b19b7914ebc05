"""The report as a document: classes, samples, calibrators, groups, warnings, method."""

from __future__ import annotations

from typing import Any

from ._document import Code, Picture, Samples, Section, Table, Text
from ._format import NONE, count, interval, label, number, percent, percent_interval, probability

# Lines of a table; results hold the others.
N_ROWS = 20


def classes_section(results: dict[str, Any]) -> Section:
    """Return the classes, the one with the largest calibration error first."""
    entries = results["classes"]
    header = ["class", "samples", "recall", "precision", "confidence", "verdict"]
    header += ["calibration error", "most often taken for"]
    rows = []
    for entry in entries[:N_ROWS]:
        other = entry["most_confused_with"]
        rows.append(
            [
                label(entry["label"]),
                count(entry["n_samples"]),
                percent(entry["recall"]["value"]),
                percent_interval(entry["precision"]),
                percent(entry["mean_confidence"]),
                entry["kind"] or "",
                number(entry["classwise_error"], 4),
                f"{label(other['label'])} ({percent(other['fraction'])})" if other else NONE,
            ]
        )
    note = (
        "Precision and confidence are those of the samples that the class was predicted for; "
        "over- or underconfident where the confidence lies outside the interval of the "
        "precision, which happens by chance to about one class in 20."
    )
    left = len(entries) - N_ROWS
    if left > 0:
        note = f"{left} more classes have smaller errors. {note}"
    pictures = []
    if "curve" in entries[0]:
        caption = (
            "Classes of the largest calibration error: fraction of the class against its "
            "probability. The curve of a calibrated model stays in the band."
        )
        pictures.append(Picture("classes", caption))
    return Section(
        "Which classes?", [Table(header, rows), Text(note, note=True)], pictures, wide=True
    )


def samples_section(results: dict[str, Any]) -> Section:
    """Return the hardest samples, and the labels that are probably wrong."""
    hardest, issues = results["hardest"], results["issues"]
    entries = [
        {**entry, "lines": [_answer(entry), f"difficulty {number(entry['difficulty'], 2)}"]}
        for entry in hardest["table"]
    ]
    blocks: list[Any] = [Samples(f"Hardest, by {hardest['source']}", entries)]
    pictures = []
    if hardest["error_rate"]:
        caption = (
            f"Error rate from the easiest tenth of the samples to the hardest, by "
            f"{hardest['source']}. A curve that rises means that the difficulty tells where the "
            "model errs."
        )
        pictures.append(Picture("difficulty", caption))
    return Section("Which samples?", [*blocks, *_issues(issues)], pictures, wide=True)


def _issues(issues: dict[str, Any]) -> list[Any]:
    if issues["table"] is None:
        return [Text(f"Labels were not checked: {issues['reason']}.", note=True)]
    low, high = issues["noise_rate_interval"]
    rate = Text(
        f"Estimated fraction of wrong labels: {percent(issues['noise_rate'])} "
        f"({100 * low:.1f}-{100 * high:.1f}), judged by {issues['source']}."
    )
    if not issues["table"]:
        return [Text("No label is suspected to be wrong."), rate]
    suspects = [
        {
            **entry,
            "lines": [
                f"label {label(entry['label'])}, suggested {label(entry['suggested_label'])}",
                f"probability that the label is right: {probability(entry['p_label_correct'])}",
            ],
        }
        for entry in issues["table"]
    ]
    return [Samples(f"Suspected labels: {count(issues['n_issues'])}", suspects), rate]


def _answer(entry: dict[str, Any]) -> str:
    said = f"{label(entry['predicted'])} ({percent(entry['confidence'])})"
    return f"label {label(entry['label'])}, predicted {said}"


def calibrators_section(results: dict[str, Any]) -> Section:
    """Return what calibrators change, and the line of code for the one to take."""
    found = results["calibrators"]
    if found["table"] is None:
        text = f"Calibrators were not compared: {found['reason']}."
        return Section("What would help?", [Text(text)])
    rows = [
        [
            entry["name"],
            percent(entry["accuracy"]),
            number(entry["expected_calibration_error"]),
            number(entry["smooth_calibration_error"]),
            number(entry["log_loss"]),
            _difference(entry, "log_loss"),
            number(entry["brier"]),
            _difference(entry, "brier"),
        ]
        for entry in found["table"]
    ]
    header = ["probabilities", "accuracy", "ECE", "smooth CE", "log-loss", "difference"]
    header += ["Brier score", "difference"]
    blocks: list[Any] = [
        Text(found["sentence"]),
        Table(header, rows),
        Text(
            "Calibrators are fitted out-of-fold, on "
            f"{results['method']['n_folds']} folds of these samples. Differences to the "
            "probabilities as they are, sample by sample, with 95 % intervals; below 0 is better. "
            "The one recommended is the simplest that no other beats, neither in log-loss nor in "
            "Brier score.",
            note=True,
        ),
    ]
    if found["left_out"]:
        left_out = ", ".join(found["left_out"])
        blocks.append(Text(f"Left out for so many samples and classes: {left_out}.", note=True))
    if found["code"]:
        blocks.append(Code(found["code"]))
    return Section("What would help?", blocks)


def _difference(entry: dict[str, Any], loss: str) -> str:
    difference = entry.get(f"{loss}_difference")
    if difference is None:
        return NONE
    return f"{number(difference['value'])} ({interval(difference)})"


def groups_section(results: dict[str, Any]) -> Section | None:
    """Return the calibration of every group, None without groups."""
    if results["groups"] is None:
        return None
    header = ["samples", "accuracy", "confidence", "ECE", "95 % interval", "p-value"]
    tables = []
    for name, entries in results["groups"].items():
        rows = [
            [
                label(entry["group"]),
                count(entry["n_samples"]),
                percent_interval(entry["accuracy"]),
                percent(entry["mean_confidence"]),
                number(entry["expected_calibration_error"]["value"]),
                interval(entry["expected_calibration_error"]),
                number(entry["pvalue"]),
            ]
            for entry in entries[:N_ROWS]
        ]
        tables.append(Table([name, *header], rows))
    note = (
        "Small groups have large errors by chance. The p-values of a table are corrected for the "
        "number of its groups: a calibrated model gets one below .05 in at most one table of 20."
    )
    return Section("Which groups?", [*tables, Text(note, note=True)])


def warnings_section(results: dict[str, Any]) -> Section | None:
    """Return the warnings, None without any."""
    if not results["warnings"]:
        return None
    return Section("What to be careful about", [Text(text) for text in results["warnings"]])


def method_section(results: dict[str, Any]) -> Section:
    """Return versions, options and the seed."""
    method = results["method"]
    rows = [
        ["samples", count(results["overview"]["n_samples"])],
        ["bins", str(method["n_bins"])],
        ["level of intervals", percent(method["confidence_level"], 0)],
        ["resamples", str(method["n_resamples"])],
        ["folds", str(method["n_folds"])],
        ["random_state", str(method["random_state"])],
        *([name, version] for name, version in method["versions"].items()),
    ]
    text = (
        "Intervals of accuracy, precision and error rate are Wilson's; those of calibration "
        "errors invert a bootstrap; those of differences are normal. The test draws "
        "labels from the probabilities. In the log-loss of the table of calibrators a "
        "probability of 0 counts as the smallest step of a floating-point number."
    )
    return Section("How this was computed", [Text(text), Table(["what", "value"], rows)])
