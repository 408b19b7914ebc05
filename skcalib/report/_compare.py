"""Two models on the same samples, or one model in two months: which is better calibrated?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..metrics import compare_calibration
from ..utils._proba import label_log_loss
from . import _method, _trust, _verdict
from ._data import LEVEL, N_BINS, ReportData, mean_interval
from ._document import (
    NONE,
    Document,
    Section,
    Table,
    Text,
    count,
    interval,
    number,
)

# What is compared, and how it is shown; of the accuracy larger is better, of the others smaller.
MEASURES = {
    "expected_calibration_error": f"calibration error, {N_BINS} bins",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "accuracy": "accuracy",
}


def results(models: Mapping[str, ReportData], *, paired: bool) -> dict[str, Any]:
    """Return what every model says, and how it differs from the first, with intervals.

    With several models the level is shared among the comparisons with the first.
    """
    first, *others = models
    level = 1 - (1 - LEVEL) / max(len(others), 1)
    values = {name: _per_sample(data) for name, data in models.items()}
    errors = _errors(models, level, paired=paired)
    entries = {}
    for name, data in models.items():
        measures = {key: mean_interval(x, data.mass) for key, x in values[name].items()}
        judged = _verdict.results(data, _trust.results(data))
        entries[name] = {
            "overview": _trust.overview(data),
            "verdict": {key: judged[key] for key in ("kind", "headline", "explanation")},
            "measures": {"expected_calibration_error": errors[name]["error"], **measures},
        }
    differences = {}
    for name in others:
        change = {"expected_calibration_error": errors[name]["difference"]}
        for key in values[name]:
            before, after = values[first][key], values[name][key]
            change[key] = (
                mean_interval(after - before, models[name].mass, level)
                if paired
                else _apart(entries[first]["measures"][key], entries[name]["measures"][key])
            )
        differences[name] = change
    return {"models": entries, "differences": differences, "paired": paired, "level": level}


def _per_sample(data: ReportData) -> dict[str, Any]:
    squares = np.einsum("nk,nk->n", data.proba, data.proba, dtype=np.float64)
    p_label = data.proba[np.arange(len(data.codes)), data.codes]
    return {
        "log_loss": label_log_loss(data.proba, data.codes),
        "brier": squares - 2 * p_label + 1,
        "accuracy": data.correct.astype(np.float64),
    }


def _errors(models: Mapping[str, ReportData], level: float, *, paired: bool) -> dict[str, Any]:
    """Return calibration errors of all models, and their differences to that of the first."""
    data = next(iter(models.values()))
    options: dict[str, Any] = {
        "confidence_level": level,
        "n_bins": N_BINS,
        "n_resamples": 500,
        "random_state": data.seed,
    }
    if paired:
        given = {name: _judged(d)["y_proba"] for name, d in models.items()}
        common = {key: value for key, value in data.predictions.items() if key != "y_proba"}
        lines = compare_calibration(y_probas=given, **common, **options)
        return {str(line["model"]): _named(line) for line in lines}
    found: dict[str, Any] = {}
    for name, model in models.items():
        given = _judged(model)
        line = compare_calibration(y_probas={name: given.pop("y_proba")}, **given, **options)[0]
        error = _named(line)["error"]
        found[name] = {"error": error}
        first = next(iter(found.values()))["error"]
        found[name]["difference"] = _apart(first, error)
    return found


def _judged(data: ReportData) -> dict[str, Any]:
    """Return what the verdict is about: the second of two classes, else the top label."""
    return data.of_positive_class if len(data.classes) == 2 else data.predictions


def _named(line: Any) -> dict[str, Any]:
    names = ("difference", "difference_low", "difference_high")
    return {
        "error": {"value": line["error"], "low": line["low"], "high": line["high"]},
        "difference": dict(zip(("value", "low", "high"), (line[name] for name in names))),
    }


def _apart(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float]:
    """Return the difference of two independent numbers from their intervals (Zou and Donner)."""
    value = other["value"] - first["value"]
    down = np.hypot(other["value"] - other["low"], first["high"] - first["value"])
    up = np.hypot(other["high"] - other["value"], first["value"] - first["low"])
    return {"value": value, "low": float(value - down), "high": float(value + up)}


def headline(results: dict[str, Any]) -> str:
    """Return which model is better calibrated than the first, where that can be told."""
    found = results["comparison"]
    first = next(iter(found["models"]))
    better: list[str] = []
    worse: list[str] = []
    for name, change in found["differences"].items():
        error = change["expected_calibration_error"]
        if error["high"] < 0 or error["low"] > 0:
            (better if error["high"] < 0 else worse).append(name)
    told = []
    for found_so, how in ((better, "better"), (worse, "worse")):
        if found_so:
            verb = "is" if len(found_so) == 1 else "are"
            told.append(f"{' and '.join(found_so)} {verb} {how} calibrated than {first}")
    if told:
        return "; ".join(told) + "."
    return f"No difference in calibration shows between {' and '.join(found['models'])}."


def explanation(results: dict[str, Any]) -> str:
    """Return what the log-losses say, which also count how well classes are told apart."""
    sentences = []
    for name, change in results["comparison"]["differences"].items():
        loss = change["log_loss"]
        if loss["low"] <= 0 <= loss["high"]:
            sentences.append(f"The log-loss of {name} differs by no more than chance.")
            continue
        how, sign = ("lower", -1) if loss["value"] < 0 else ("higher", 1)
        low, high = sorted(sign * loss[end] for end in ("low", "high"))
        by = f"{number(abs(loss['value']))} ({number(low)} to {number(high)})"
        sentences.append(f"The log-loss of {name} is {how} by {by}.")
    return " ".join(sentences)


def document(results: dict[str, Any]) -> Document:
    """Return the comparison: a tile for every model, a table of measures and differences."""
    found, method = results["comparison"], results["method"]
    models = found["models"]
    sizes = [entry["overview"]["n_samples"] for entry in models.values()]
    size = count(sizes[0]) if found["paired"] else " and ".join(map(count, sizes))
    subtitle = f"{size} samples · {method['created'][:10]} · skcalib"
    paired = (
        "All were judged on the same samples, so what is hard for all of them cancels."
        if found["paired"]
        else "They were judged on different samples, which is part of the intervals."
    )
    tones = {"calibrated": "good", "undecided": "open"}
    sections = [
        Section(name, [Text(entry["verdict"]["headline"]), Text(entry["verdict"]["explanation"])])
        for name, entry in models.items()
    ]
    return Document(
        title=results["title"] or " against ".join(models),
        subtitle=f"{subtitle} {method['versions']['skcalib']}",
        tone="open",
        headline=headline(results),
        explanation=f"{explanation(results)} {paired}",
        tiles=[
            (
                name,
                number(entry["measures"]["expected_calibration_error"]["value"]),
                f"calibration error. {entry['verdict']['headline']}",
                tones.get(entry["verdict"]["kind"], "bad"),
            )
            for name, entry in models.items()
        ],
        overview=_table(found),
        actions=[],
        sections=[*sections, _method.section(results)],
    )


def _table(found: dict[str, Any]) -> Table:
    models, differences = found["models"], found["differences"]
    header = ["", *models, *(f"{name} - {next(iter(models))}" for name in differences)]
    rows = []
    for key, text in MEASURES.items():
        values = [entry["measures"][key] for entry in models.values()]
        changes = [change[key] for change in differences.values()]
        rows.append(
            [text]
            + [f"{number(x['value'])} ({interval(x)})" for x in values]
            + [f"{number(x['value'])} ({interval(x)})" if x else NONE for x in changes]
        )
    return Table(header, rows, "comparison")
