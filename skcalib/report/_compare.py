"""Comparison of models on the same samples, or of one model on different samples."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import compare_calibration
from ..utils._compat import print_elapsed
from ..utils._proba import LOSS_FLOOR, add_unseen
from . import _sections, _tests
from ._constants import LEVEL, N_BINS, OF_PAIRS
from ._data import ReportData, compute_mean, compute_mean_interval, count_effective
from ._document import (
    Document,
    Section,
    Table,
    Text,
    Tile,
    count,
    format_number,
    format_percent,
    format_with_interval,
    in_sentence,
    make_distinct,
)
from ._summary import TONES

# Measures and their names on the page. Larger accuracy is better; smaller errors are.
ERROR = "expected_calibration_error"
MEASURES = {
    ERROR: f"calibration error, {N_BINS} bins",
    "log_loss": "log-loss",
    "accuracy": "accuracy",
}


def compare_models(
    models: Mapping[str, ReportData], *, paired: bool, verbose: int = 0
) -> dict[str, Any]:
    """Return the measures of every model, and the differences to the first, with intervals.

    With several models, the level is split between the comparisons (Bonferroni).
    """
    first, *others = models
    level = 1 - (1 - LEVEL) / len(others)
    scores = {name: _compute_scores(data) for name, data in models.items()}
    step, entries, errors = partial(print_elapsed, "CalibrationReport", verbose), {}, {}
    for name, data in models.items():
        with step(name):
            entries[name] = _make_entry(data, scores[name])
    if paired:
        with step("differences"):
            errors = _compare_paired_errors(models, level)
    differences: dict[str, Any] = {}
    for name in others:
        before, after = entries[first]["measures"], entries[name]["measures"]
        differences[name] = {
            key: _subtract_independent(before[key], after[key]) for key in MEASURES
        }
        if paired:
            data, mean_proba = models[name], (models[first].proba + models[name].proba) / 2
            changes = {key: x - scores[first][key] for key, x in scores[name].items()}
            differences[name] = {
                ERROR: errors[name],
                **{
                    key: _compute_interval(data, x, mean_proba, level)
                    for key, x in changes.items()
                },
            }
    return {"models": entries, "differences": differences, "paired": paired, "level": level}


def _compute_scores(data: ReportData) -> dict[str, NDArray[np.float64]]:
    """Return the measures of every sample under every possible label, (n_samples, n_classes)."""
    proba = np.maximum(data.proba.astype(np.float64), LOSS_FLOOR)
    answered = data.predicted[:, np.newaxis] == np.arange(proba.shape[1])
    return {"log_loss": -np.log(proba), "accuracy": 1.0 * answered}


def _compute_interval(
    data: ReportData, scores: NDArray[np.float64], proba: NDArray[Any], level: float = LEVEL
) -> dict[str, float]:
    """Return the mean of a measure with its interval.

    A few samples may miss rare, large losses. So the variance is at least that of labels drawn
    from `proba`, in which no label has probability 0.
    """
    proba = add_unseen(proba, count_effective(data.weights))
    first, second = (compute_mean((proba * scores**k).sum(axis=1), data.weights) for k in (1, 2))
    of_labels = data.per_sample(scores)
    effect = data.effect(of_labels)
    return compute_mean_interval(of_labels, data.weights, effect, level, second - first**2)


def _make_entry(data: ReportData, scores: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
    """Return summary and measures of a model."""
    trust = _sections.compute_trust(data)
    summary, view = (
        _tests.summarize_tests(data, trust)["summary"],
        next(iter(trust["views"].values())),
    )
    return {
        "overview": _sections.compute_overview(data),
        "summary": {key: summary[key] for key in ("kind", "headline", "explanation")},
        "measures": {
            ERROR: view["errors"][ERROR],
            **{key: _compute_interval(data, x, data.proba) for key, x in scores.items()},
        },
    }


def _compare_paired_errors(models: Mapping[str, ReportData], level: float) -> dict[str, Any]:
    """Return the differences of the calibration errors to the first model's, with p-values."""
    first = next(iter(models.values()))
    lines = compare_calibration(
        y_probas={name: data.metric_kwargs["y_proba"] for name, data in models.items()},
        **{key: value for key, value in first.metric_kwargs.items() if key != "y_proba"},
        confidence_level=level,
        n_bins=N_BINS,
        n_resamples=500,
        random_state=first.seed,
        groups=first.groups,
    )
    of = {"value": "difference", "low": "difference_low", "high": "difference_high"}
    found = {
        str(line["model"]): {name: float(line[column]) for name, column in of.items()}
        for line in lines
    }
    for line in lines[1:]:
        sign = np.sign(line["gain"] - lines["gain"][0])
        found[str(line["model"])] |= {"pvalue": float(line["pvalue"]), "sign": float(sign)}
    return found


def _subtract_independent(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float]:
    """Return a difference of independent estimates, by their intervals (Zou and Donner)."""
    value = other["value"] - first["value"]
    down = np.hypot(other["value"] - other["low"], first["high"] - first["value"])
    up = np.hypot(other["high"] - other["value"], first["value"] - first["low"])
    return {"value": value, "low": float(value - down), "high": float(value + up)}


def _name_models(results: dict[str, Any]) -> dict[str, Any]:
    """Return the comparison with names of models that a page can show."""
    found = results["comparison"]
    names = dict(zip(found["models"], map(in_sentence, make_distinct(list(found["models"])))))
    by_name = ("models", "differences")
    return found | {key: {names[name]: x for name, x in found[key].items()} for key in by_name}


def write_headline(results: dict[str, Any]) -> str:
    """Return the headline: which models are better or worse calibrated than the first."""
    found = _name_models(results)
    first = next(iter(found["models"]))
    sentences = []
    signs = _find_signs(found)
    for how, sign in (("better", -1), ("worse", 1)):
        names = [name for name, found_sign in signs.items() if found_sign == sign]
        if names:
            verb = "is" if len(names) == 1 else "are"
            sentences.append(f"{' and '.join(names)} {verb} {how} calibrated than {first}")
    if sentences:
        return "; ".join(sentences) + "."
    off = [name for name, entry in found["models"].items() if _is_off(entry)]
    if off and len(off) < len(found["models"]):
        verb = "is" if len(off) == 1 else "are"
        return (
            f"{' and '.join(off)} {verb} off by more than chance; whether the others are better "
            "calibrated, these samples cannot show."
        )
    return f"No difference in calibration shows between {' and '.join(found['models'])}."


def _is_off(entry: dict[str, Any]) -> bool:
    return entry["summary"]["kind"] not in ("calibrated", "undecided")


def _find_signs(found: dict[str, Any]) -> dict[str, int]:
    """Return 1 for a model that is worse calibrated than the first, -1 for a better one, else 0.

    The interval of the difference decides. On the same samples, so does the paired test of what
    recalibration would gain, if the error differs in the same direction.
    """
    needed = (OF_PAIRS - (1 - LEVEL)) / len(found["differences"])
    signs = {}
    for name, change in found["differences"].items():
        error = change[ERROR]
        sign = int(np.sign(error["value"]))
        clear = not error["low"] <= 0 <= error["high"]
        by_test = error.get("pvalue", 1) <= needed and sign == error["sign"]
        signs[name] = sign if clear or by_test else 0
    return signs


def write_explanation(results: dict[str, Any]) -> str:
    """Return sentences on log-losses (which also measure knowledge) and p-values."""
    sentences, found = [], _name_models(results)
    for name, change in found["differences"].items():
        loss = change["log_loss"]
        if loss["low"] <= 0 <= loss["high"]:
            sentences.append(f"The log-loss of {name} differs by no more than chance.")
            continue
        how, sign = ("lower", -1) if loss["value"] < 0 else ("higher", 1)
        low, high = sorted(sign * loss[end] for end in ("low", "high"))
        by = f"{format_number(abs(loss['value']))} ({format_number(low)} to {format_number(high)})"
        sentences.append(f"The log-loss of {name} is {how} by {by}.")
    first = next(iter(found["models"]))
    for name, change in found["differences"].items():
        if "pvalue" in change[ERROR]:
            pairs = _format_pairs(change[ERROR]["pvalue"])
            sentences.append(
                f"Of pairs of equally well calibrated models, {pairs} differ as clearly as {name} "
                f"and {first} in what recalibration gains."
            )
    return " ".join(sentences)


def _format_pairs(pvalue: float) -> str:
    """Return a p-value as a percentage of pairs."""
    return "fewer than 0.1 %" if pvalue < 0.001 else format_percent(pvalue)


def make_document(results: dict[str, Any]) -> Document:
    """Return the page: a tile for every model, a table of measures and differences."""
    found, method = _name_models(results), results["method"]
    models = found["models"]
    sizes = [entry["overview"]["n_samples"] for entry in models.values()]
    size = count(sizes[0]) if found["paired"] else " and ".join(map(count, sizes))
    subtitle = f"{size} samples · {method['created'][:10]} · skcalib"
    paired = (
        "All were tested on the same samples, so chance in the samples partly cancels."
        if found["paired"]
        else "They were tested on different samples, which the intervals allow for."
    )
    sections = [
        Section(name, [Text(entry["summary"]["headline"]), Text(entry["summary"]["explanation"])])
        for name, entry in models.items()
    ]
    return Document(
        title=results["title"] or " against ".join(models),
        subtitle=f"{subtitle} {method['versions']['skcalib']}",
        tone="open",
        headline=write_headline(results),
        explanation=f"{write_explanation(results)} {paired}",
        tiles=[
            Tile(
                name,
                format_number(entry["measures"][ERROR]["value"]),
                f"calibration error. {entry['summary']['headline']}",
                TONES.get(entry["summary"]["kind"], "bad"),
            )
            for name, entry in models.items()
        ],
        overview=_make_table(found),
        advice=[],
        sections=[*sections, _sections.make_method_section(results)],
    )


def _make_table(found: dict[str, Any]) -> Table:
    models, differences = found["models"], found["differences"]
    header = ["", *models, *(f"{name} - {next(iter(models))}" for name in differences)]
    measured = [*(entry["measures"] for entry in models.values()), *differences.values()]
    rows = [
        [text, *(format_with_interval(x[key]) for x in measured)] for key, text in MEASURES.items()
    ]
    return Table(header, rows, "comparison")
