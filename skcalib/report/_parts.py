"""Classes and groups: predictions against observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._data import ReportData, fraction, mean
from ._document import (
    NONE,
    Chart,
    Section,
    Table,
    Text,
    count,
    in_sentence,
    percent,
    percent_interval,
)
from ._verdict import chart_rows, tested_table

# Most rows of a table or chart; `results_` holds the others.
N_ROWS = 20


def results(data: ReportData) -> list[dict[str, Any]]:
    """Return one entry per class: recall, precision, confidence, most frequent confusion."""
    return [_of_class(data, k) for k in range(len(data.classes))]


def _of_class(data: ReportData, k: int) -> dict[str, Any]:
    labeled, answered = data.of_class(k), data.predicted == k
    return {
        "label": data.label(k),
        "n_samples": round(float(labeled.sum())),
        "n_predicted": int(answered.sum()),
        "recall": fraction(answered, data.mass * labeled),
        "precision": fraction(labeled[answered], data.mass[answered]),
        "mean_confidence": mean(data.confidence[answered], data.mass[answered]),
        "most_confused_with": _most_confused(data, k, data.mass * labeled),
    }


def _most_confused(data: ReportData, k: int, mass: NDArray[np.float64]) -> dict[str, Any] | None:
    """Return the wrong class that is predicted most often for class k; `mass` is its weight."""
    count = np.bincount(data.predicted, mass, minlength=len(data.classes))
    count[k] = 0
    if not count.any():
        return None
    other = int(count.argmax())
    return {"label": data.label(other), "fraction": float(count[other] / mass.sum())}


def chart(results: dict[str, Any]) -> Chart | None:
    """Return the chart of the groups or, without groups, of the classes; None for neither."""
    kinds = {entry["kind"] for entry in results["verdict"]["tested"]}
    for kind in ("group", "class"):
        if kind in kinds:
            return _chart(results, kind)
    return None


def _chart(results: dict[str, Any], kind: str) -> Chart:
    rows = chart_rows(results, kind)
    positive = results["overview"]["n_classes"] == 2
    does = f"class {in_sentence(results['overview']['classes'][1])}" if positive else "right"
    by = "group" if kind == "group" else "class of the answer"
    n_left = len(rows) - 1 - N_ROWS
    left = f" {n_left} more are in the tables below." if n_left > 0 else ""
    inside = ""
    if any(row["off"] and row["low"] < row["says"] < row["high"] for row in rows):
        inside = "Colored, but with the ring inside: off in another way, see the tables below. "
    return Chart(
        f"What it says (ring) and how many are {does} (dot), by {by}",
        rows[: N_ROWS + 1],
        "A ring outside its bar: what the model says does not fit what happens. The bars hold for "
        f"all rows together, with 99 %. {inside}At the right: samples.{left}",
    )


def classes_section(results: dict[str, Any]) -> Section:
    """Return the section of the classes; with more than two, also their tests."""
    header = ["class", "samples", "recall", "precision", "confidence", "most often taken for"]
    rows = []
    for entry in results["classes"][:N_ROWS]:
        other = entry["most_confused_with"]
        rows.append(
            [
                in_sentence(entry["label"]),
                count(entry["n_samples"]),
                percent(entry["recall"]["value"]),
                percent_interval(entry["precision"]),
                percent(entry["mean_confidence"]),
                f"{in_sentence(other['label'])} ({percent(other['fraction'])})" if other else NONE,
            ]
        )
    note = (
        "Recall: how many samples of the class are found. Precision and confidence: of the "
        "answers that name the class, how many are right, and how many the model says are right."
    )
    left = len(results["classes"]) - N_ROWS
    if left > 0:
        note = f"{left} more classes are in results_. {note}"
    blocks: list[Any] = [Table(header, rows), Text(note, note=True)]
    if results["overview"]["n_classes"] > 2:
        if results["groups"]:  # their chart is on the first screen
            blocks.append(_chart(results, "class"))
        blocks += tested_table(results, "class", 5 * N_ROWS)
    return Section("Which classes?", blocks)


def groups_section(results: dict[str, Any]) -> Section | None:
    """Return the section of the groups; None without groups."""
    if not results["groups"]:
        return None
    return Section("Which groups?", tested_table(results, "group", 5 * N_ROWS))
