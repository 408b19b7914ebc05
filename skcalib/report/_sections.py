"""Sections of the report: classes and groups, calibration, thresholds, wrong labels, method."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray

from .. import __version__
from ..metrics import (
    CalibrationAccumulator,
    calibration_error_interval,
    expected_calibration_error,
    isotonic_reliability_curve,
    reliability_curve,
    risk_coverage_curve,
)
from ..plots import ReliabilityDisplay, RiskCoverageDisplay
from ..selection._risk_control import control_risk
from ..utils._arrays import check_has, check_readable
from ..utils._labels import find_positions
from ..utils._proba import as_two_columns
from ._constants import (
    FEW,
    LEVEL,
    MANY_SAMPLES,
    MANY_SATURATED,
    N_BINS,
    N_FOLDS,
    N_RESAMPLES_OF_LABELS,
    N_RISKS,
    RISKS,
)
from ._data import ReportData, compute_mean, count_effective, estimate_fraction, thin_curve
from ._document import (
    NONE,
    Chart,
    Picture,
    Section,
    Table,
    Text,
    count,
    format_interval,
    format_label,
    format_number,
    format_percent,
    format_percent_interval,
    format_threshold,
    in_sentence,
)
from ._tests import make_chart_rows, make_test_table

# Most rows of a table or chart; `results_` holds the others.
N_ROWS = 20
# Inches of the reliability diagram with its histogram, and of the risk-coverage curve.
TRUST_SIZE, SELECTIVE_SIZE = (4.2, 4.8), (4.2, 3.2)

# Classes and groups: predictions against observations.


def compute_classes(data: ReportData) -> list[dict[str, Any]]:
    """Return one entry per class: recall, precision, confidence, most frequent confusion."""
    if data.of_answers:
        return []
    return [_compute_class(data, k) for k in range(len(data.classes))]


def _compute_class(data: ReportData, k: int) -> dict[str, Any]:
    labeled, answered = data.of_class(k), data.decided == k
    return {
        "label": data.label(k),
        "n_samples": round(float(labeled.sum())),
        "n_predicted": int(answered.sum()),
        "recall": estimate_fraction(answered, data.weights * labeled),
        "precision": estimate_fraction(labeled[answered], data.weights[answered]),
        "mean_confidence": compute_mean(
            data.proba[answered, k].astype(np.float64), data.weights[answered]
        ),
        "most_confused_with": _find_most_confused(data, k, data.weights * labeled),
    }


def _find_most_confused(
    data: ReportData, k: int, weights: NDArray[np.float64]
) -> dict[str, Any] | None:
    """Return the wrong class that is predicted most often for samples of class k."""
    count = np.bincount(data.decided, weights, minlength=len(data.classes))
    count[k] = 0
    if not count.any():
        return None
    other = int(count.argmax())
    return {"label": data.label(other), "fraction": float(count[other] / weights.sum())}


def make_chart(results: dict[str, Any]) -> Chart | None:
    """Return the chart of the groups or, without groups, of the classes; None for neither."""
    kinds = {entry["kind"] for entry in results["group_tests"]}
    for kind in ("group", "class"):
        if kind in kinds:
            return _make_chart(results, kind)
    return None


def _make_chart(results: dict[str, Any], kind: str) -> Chart:
    rows = make_chart_rows(results, kind)
    positive = results["overview"]["n_classes"] == 2 and not results["overview"].get("of_answers")
    does = f"class {in_sentence(results['overview']['classes'][1])}" if positive else "right"
    by = "group" if kind == "group" else "class of the answer"
    n_left = len(rows) - 1 - N_ROWS
    left = f" {n_left} more are in the tables below." if n_left > 0 else ""
    inside = ""
    if any(row["relevant"] and row["low"] < row["predicted"] < row["high"] for row in rows):
        inside = "If a colored bar holds its ring, the error is another: see the tables below. "
    return Chart(
        f"Predicted (ring) and how many are {does} (dot), by {by}",
        rows[: N_ROWS + 1],
        "A ring outside its bar: the prediction does not fit what was observed. The bars hold for "
        f"all rows together, with 99 %. {inside}At the right: samples.{left}",
    )


def make_classes_section(results: dict[str, Any]) -> Section | None:
    """Return the section of the classes; with more than two, also their tests."""
    if not results["classes"]:
        return None
    header = ["class", "samples", "recall", "precision", "confidence", "most often taken for"]
    rows = []
    for entry in results["classes"][:N_ROWS]:
        other = entry["most_confused_with"]
        rows.append(
            [
                in_sentence(entry["label"]),
                count(entry["n_samples"]),
                format_percent(entry["recall"]["value"]),
                format_percent_interval(entry["precision"]),
                format_percent(entry["mean_confidence"]),
                f"{in_sentence(other['label'])} ({format_percent(other['fraction'])})"
                if other
                else NONE,
            ]
        )
    note = (
        "Recall: how many samples of the class are found. Precision and confidence: of the "
        "answers that name the class, how many are right, and how many are predicted to be."
    )
    acting = results.get("costs")
    if acting is not None and acting["act_above"] is not None:
        name = in_sentence(results["overview"]["classes"][1])
        note += (
            f" An answer is class {name} from a probability of "
            f"{format_number(acting['act_above'], 4)} on."
        )
    left = len(results["classes"]) - N_ROWS
    if left > 0:
        note = f"{left} more classes are in results_. {note}"
    blocks: list[Any] = [Table(header, rows), Text(note, note=True)]
    if results["overview"]["n_classes"] > 2:
        if results["groups"]:  # their chart is on the first screen
            blocks.append(_make_chart(results, "class"))
        blocks += make_test_table(results, "class", 5 * N_ROWS)
    return Section("Which classes?", blocks)


def make_groups_section(results: dict[str, Any]) -> Section | None:
    """Return the section of the groups; None without groups."""
    if not results["groups"]:
        return None
    return Section("Which groups?", make_test_table(results, "group", 5 * N_ROWS))


# Calibration errors with intervals, and reliability curves.


def compute_overview(data: ReportData) -> dict[str, Any]:
    """Return number of samples and classes, accuracy, mean confidence, overconfidence."""
    confidence = compute_mean(data.confidence, data.weights)
    accuracy = estimate_fraction(data.correct, data.weights, _count_independent(data))
    sums = data.sums("answers")
    if sums is not None:
        total, predicted, right = sums[0].sum(axis=1)
        weights = np.array([right, total - right])
        accuracy = estimate_fraction(np.array([True, False]), weights, data.n_samples)
        confidence = predicted / total
    count = np.array([data.weights @ data.of_class(k) for k in range(len(data.classes))])
    return {
        "title": data.title,
        "model": data.model,
        "n_samples": data.n_samples,
        "total_weight": None if data.weight is None else float(data.weight.sum()),
        "n_classes": len(data.classes),
        "of_answers": data.of_answers,
        "classes": [data.label(k) for k in range(len(data.classes))],
        "accuracy": accuracy,
        "mean_confidence": confidence,
        "overconfidence": confidence - accuracy["value"],
        "largest_class": {
            "label": data.label(int(count.argmax())),
            "value": count.max() / count.sum(),
        },
    }


def _count_independent(data: ReportData) -> float:
    """Return the effective number of independent answers, with weights and groups."""
    weighted = data.weights * (
        data.correct - compute_mean(data.correct.astype(np.float64), data.weights)
    )
    return count_effective(data.weights) / data.effect(weighted)


def count_resamples(n_samples: int) -> int:
    """Return 500; with more than 8 000 samples fewer, but at least 200."""
    return int(np.clip(4_000_000 // n_samples, 200, 500))


def compute_trust(data: ReportData) -> dict[str, Any]:
    """Return errors and curves of the top label and, with two classes, of the second one."""
    if data.of_answers:
        return {"views": {"answers": _measure_view(data, data.of_positive_class, "answers")}}
    views = {"top_label": _measure_view(data, data.predictions, "answers")}
    if len(data.classes) == 2:
        positive = _measure_view(data, data.of_positive_class, "positive")
        views = {"positive_class": positive, **views}
    return {"views": views}


def _measure_view(data: ReportData, predictions: dict[str, Any], view: str) -> dict[str, Any]:
    """Return error, interval and curves of one view, "answers" or "positive"."""
    total = data.total
    if total is None or data.summed != view:
        value = expected_calibration_error(**predictions, n_bins=N_BINS)
        low, high = _compute_interval(data, predictions)
        bins = reliability_curve(**predictions, n_bins=N_BINS)
    else:
        value, bins = total.result(), total.curve()
        low, high = total.interval(confidence_level=LEVEL, random_state=data.seed)
    return {
        "errors": {"expected_calibration_error": {"value": value, "low": low, "high": high}},
        "curve": _compute_curve(data, predictions),
        "histogram": {"count": bins.bin_weight, "edges": bins.edges},
    }


def _compute_interval(data: ReportData, predictions: dict[str, Any]) -> tuple[float, float]:
    """Return the interval of the error; with very many samples, from sums over bins."""
    draws: dict[str, Any] = {
        "confidence_level": LEVEL,
        "n_resamples": count_resamples(len(data.codes)),
        "random_state": data.seed,
    }
    if len(data.codes) <= MANY_SAMPLES or data.groups is not None:
        return calibration_error_interval(
            **predictions, n_bins=N_BINS, groups=data.groups, **draws
        )
    sums = CalibrationAccumulator(N_BINS, labels=predictions["labels"])
    sums.update(predictions["y_true"], predictions["y_proba"], sample_weight=data.weight)
    return sums.interval(**draws)


def _compute_curve(data: ReportData, predictions: dict[str, Any]) -> dict[str, Any]:
    if predictions["y_proba"].ndim == 2:
        # As a binary question: was the top label right?
        predictions = {
            "y_true": as_two_columns(data.correct),
            "y_proba": data.confidence,
            "labels": [0, 1],
        }
    if data.weight is not None:
        # The band counts samples: scale weights to the effective number.
        effective = data.weight * (data.weight.sum() / (data.weight @ data.weight))
        predictions = {**predictions, "sample_weight": effective}
    curve = isotonic_reliability_curve(
        **predictions, confidence_level=LEVEL, random_state=data.seed
    )
    points = thin_curve(curve.prob_pred)
    return {name: values[points] for name, values in curve._asdict().items()}


def make_trust_section(results: dict[str, Any]) -> Section:
    """Return the section of calibration errors and reliability diagrams."""
    rows, notes = [], []
    for view, found in results["calibration"]["views"].items():
        error, what = found["errors"]["expected_calibration_error"], _name_view(view, results)
        rows.append([f"of the {what}", format_number(error["value"]), format_interval(error)])
        if not error["low"] <= error["value"] <= error["high"]:
            sentence = (
                f"The expected calibration error of the {what} lies outside its interval, which "
                f"is no mistake: with {results['overview']['n_samples']} samples, chance alone "
                "makes an error of about this size. The value includes it, the interval does not."
            )
            notes.append(Text(sentence, note=True))
    table = Table([f"expected calibration error, {N_BINS} bins", "value", "99 % interval"], rows)
    pictures = [make_diagram(results, view) for view in results["calibration"]["views"]]
    return Section("Reliability diagram and calibration errors", [table, *notes], pictures)


def _name_view(view: str, results: dict[str, Any]) -> str:
    if view in ("top_label", "answers"):
        return "predicted class" if view == "top_label" else "answers"
    return f"probability of class {in_sentence(results['overview']['classes'][1])}"


def make_diagram(results: dict[str, Any], view: str | None = None) -> Picture:
    """Return the reliability diagram of a view, by default the first."""
    view = view or next(iter(results["calibration"]["views"]))
    high, low = ("too high", "too low")
    if view != "positive_class":
        high, low = "overconfident", "underconfident"
    caption = (
        f"Reliability of the {_name_view(view, results)}: below the diagonal {high}, above it "
        f"{low}. At every confidence the band holds 99 of 100 curves of calibrated models. A "
        "quarter to nearly half of them leave it somewhere: the headline does not follow from it."
    )
    found = results["calibration"]["views"][view]
    points = {name: np.array(values) for name, values in found["curve"].items()}
    positive = view == "positive_class"
    display = ReliabilityDisplay(
        points["prob_true"],
        points["prob_pred"],
        np.array(found["histogram"]["count"]),
        np.array(found["histogram"]["edges"]),
        band=(points["lower"], points["upper"]),
        kind="isotonic",
        pos_label=format_label(results["overview"]["classes"][1]) if positive else None,
    )
    return Picture(lambda ax: display.plot(ax=ax), TRUST_SIZE, caption)


# Selective prediction: error rate against coverage, and thresholds with a guarantee.


def compute_selective(data: ReportData) -> dict[str, Any]:
    """Return the curve, thresholds for several limits, and the one for half the error rate."""
    given = data.predictions
    if data.of_answers:  # none is "wrong", however low the confidence
        given = {**given, "y_proba": np.eye(2)[data.predicted], "confidence": data.confidence}
    curve = risk_coverage_curve(**given)
    points = thin_curve(curve.coverage)
    error_rate = float(curve.risk[-1])
    table = _compute_thresholds(data, [risk for risk in RISKS if risk < error_rate][-N_RISKS:])
    half = [entry for entry in table if entry["risk"] <= error_rate / 2]
    return {
        "n_samples": count_effective(data.weights),
        "error_rate": error_rate,
        "table": table,
        "promise": half[-1] if half else None,
        "curve": {"coverage": curve.coverage[points], "risk": curve.risk[points]},
    }


def _compute_thresholds(data: ReportData, risks: list[float]) -> list[dict[str, Any]]:
    """Return for every risk the threshold that keeps it on new samples; none with weights."""
    # The exact test counts samples, so there is none with weights.
    if data.weight is not None or len(np.unique(data.codes)) < 2:
        return []
    found = []
    for risk in risks:
        confidence = data.confidence
        kept = control_risk(
            confidence, data.correct, risk=risk, delta=1 - LEVEL, groups=data.groups
        )
        answered = confidence > kept.threshold
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


def make_selective_section(results: dict[str, Any]) -> Section:
    """Return the section on declining the least confident samples."""
    selective, after = results["selective"], results["after_calibration"]
    as_it_is = _make_threshold_table(selective, "confidence above")
    blocks: list[Any] = []
    if after is not None:
        blocks = [
            *_make_threshold_table(after["selective"], "calibrated confidence above"),
            Text(
                "First calibrate, then decline: these thresholds are for confidences after "
                f"{results['calibrators']['best']}, which was fitted to one half of the samples; "
                "the other half gave the thresholds. They hold for this calibrator alone: fit "
                "your own to one half, freeze it, and fit SelectiveClassifier to the other half. "
                "The thresholds below are for the probabilities as they are, not for calibrated "
                "ones.",
                note=True,
            ),
        ]
    blocks += as_it_is
    if blocks:
        note = (
            "With each threshold, the limit holds on new samples of the same kind with "
            f"{format_percent(LEVEL, 0)} certainty; skcalib.selection.SelectiveClassifier finds "
            "it. A threshold that is read off the curve breaks its limit about half the time."
        )
        blocks.append(Text(note, note=True))
    caption = (
        "Error rate of the most confident samples against their fraction, with 95 % intervals at "
        "every fraction, not for the whole curve at once. Dotted: the best possible order."
    )
    curve = selective["curve"]
    display = RiskCoverageDisplay(
        np.array(curve["coverage"]),
        np.array(curve["risk"]),
        n_samples=selective["n_samples"],
    )
    picture = Picture(lambda ax: display.plot(ax=ax), SELECTIVE_SIZE, caption)
    return Section("When should it decline?", blocks, [picture])


def _make_threshold_table(selective: dict[str, Any], above: str) -> list[Any]:
    rows = [
        [
            format_percent(entry["risk"]),
            format_percent(entry["coverage"]) if entry["kept"] else "not promised",
            format_threshold(entry["threshold"]),
            format_percent(entry["error_rate"]) if entry["kept"] else NONE,
        ]
        for entry in selective["table"]
    ]
    return (
        [Table(["wrong, at most", "samples answered", above, "wrong here"], rows)] if rows else []
    )


# Accuracy and calibration error after allowing for wrong labels.


def check_finder(finder: Any, n_samples: int) -> None:
    """Raise an error unless the finder is fitted, to the same number of samples."""
    attributes = "label_proba_", "classes_", "noise_rate_", "noise_rate_interval_"
    check_has(finder, *attributes, name="finder", what="a fitted LabelIssueFinder")
    check_readable(finder.label_proba_, name="finder.label_proba_")
    if len(finder.label_proba_) != n_samples:
        raise ValueError(
            f"finder must be fitted to the labels of these {n_samples} samples, got one of "
            f"{len(finder.label_proba_)}."
        )


def compute_wrong_labels(data: ReportData) -> dict[str, Any] | None:
    """Return accuracy and error, by the labels and by the finder's label probabilities."""
    if data.finder is None:
        return None
    finder = data.finder
    check_finder(finder, data.n_given)
    label_proba = _align_label_proba(data)
    least, most = finder.noise_rate_interval_
    rate = float(finder.noise_rate_)
    # The error changes at most by as much as the rate of wrong labels.
    margins = max(rate - least, 0.0), max(most - rate, 0.0)
    found = {"as_given": _measure_labels(data, data.codes, (0.0, 0.0))}
    found["allowed_for"] = _measure_labels(data, label_proba, margins)
    return {
        **found,
        "noise_rate": rate,
        "noise_rate_interval": [float(least), float(most)],
        "checked": bool(getattr(finder, "is_trustworthy_", False)),
    }


def _align_label_proba(data: ReportData) -> NDArray[np.float64]:
    """Return the finder's probability of every class for every sample."""
    column = find_positions(np.asarray(data.finder.classes_), data.classes)
    if column.min() < 0:
        unknown = data.finder.classes_[column < 0].tolist()
        raise ValueError(f"finder must know no other classes than the report, got {unknown}.")
    proba = np.zeros((len(data.codes), len(data.classes)))
    proba[:, column] = data.finder.label_proba_[data.numbers]
    return proba


def _measure_labels(
    data: ReportData, truth: NDArray[Any], margins: tuple[float, float]
) -> dict[str, dict[str, float]]:
    """Return accuracy and calibration error, whose interval is widened by `margins`."""
    given = {**data.metric_kwargs, "y_true": truth}
    low, high = calibration_error_interval(
        **given, groups=data.groups, n_bins=N_BINS, confidence_level=LEVEL,
        n_resamples=N_RESAMPLES_OF_LABELS, random_state=data.seed,
    )  # fmt: skip
    rows = np.arange(len(data.codes))
    right = truth[rows, data.predicted] if truth.ndim == 2 else data.correct
    return {
        "error": {
            "value": expected_calibration_error(**given, n_bins=N_BINS),
            "low": max(low - margins[0], 0.0),
            "high": min(high + margins[1], 1.0),
        },
        "accuracy": {"value": compute_mean(right.astype(np.float64), data.weights)},
    }


def make_wrong_label_section(results: dict[str, Any]) -> Section | None:
    """Return the section with both results side by side; None without a finder."""
    found = results["wrong_labels"]
    if found is None:
        return None
    given, allowed = found["as_given"], found["allowed_for"]
    low, high = (100 * end for end in found["noise_rate_interval"])
    rate = format_percent(found["noise_rate"])
    text = (
        f"After allowing for {rate} wrong labels ({format_number(low, 1)} to "
        f"{format_number(high, 1)}), the probabilities are off by "
        f"{format_percent_interval(allowed['error'])}, under the labels as they are by "
        f"{format_percent_interval(given['error'])}."
    )
    rows = [
        [name, format_percent_interval(part["error"]), format_percent(part["accuracy"]["value"])]
        for name, part in (("labels as given", given), ("allowing for wrong ones", allowed))
    ]
    note = (
        "Every sample counts with every class, weighted by the finder's probability of the label. "
        "Calibration errors have 99 % intervals; the second one allows for the interval of the "
        "rate of wrong labels, too. All other parts of this page take the labels as they are."
    )
    if not found["checked"]:
        note += (
            " No labels were checked: mistakes that people make on hard samples look like right "
            "labels, and stay hidden. A hundred checks show them: "
            "LabelIssueFinder.draw_samples_to_check."
        )
    return Section(
        "And if some labels are wrong?",
        [
            Text(text),
            Table(["", "calibration error", "accuracy"], rows),
            Text(note, note=True),
        ],
    )


# Notes for the reader, and how the report was computed.


def list_notes(data: ReportData) -> list[str]:
    """Return a sentence for everything in the data that limits the report."""
    found = [
        _note_soft_labels(data),
        _note_sums(data),
        _note_part(data),
        _note_rare_classes(data),
        _note_saturated(data),
    ]
    found.append(_note_weights(data))
    return [sentence for sentence in found if sentence]


def _note_soft_labels(data: ReportData) -> str | None:
    if data.soft_labels is None:
        return None
    return (
        "Soft labels: a sample counts as one of every class, by the fraction of people who chose "
        "it, and an answer is wrong by the fraction who disagree. The hardest samples name the "
        "class that most chose. Averages are tested, and have ranges, as if every sample had one "
        "label; soft labels vary less, so these tests and ranges are cautious."
    )


def _note_sums(data: ReportData) -> str | None:
    if data.total is None:
        return None
    of = "the probability of the second class" if data.summed == "positive" else "the answers"
    return (
        f"Sums: the calibration error of {of} and their average are those of all "
        f"{count(data.n_samples)} samples, of which {count(len(data.codes))} were here for all "
        "else: curves, thresholds, classes, groups and calibrators. They are taken for a random "
        "part."
    )


def _note_part(data: ReportData) -> str | None:
    n, n_sampled = len(data.codes), len(data.sampled)
    if n == n_sampled:
        return None
    kept = (
        "whole groups at random" if data.groups is not None else "in which every class and group"
    )
    kept += "" if data.groups is not None else " has its fraction"
    return (
        f"Many samples: averages, ranges, the calibration error and thresholds are those of all "
        f"{count(n)} samples. Errors that cancel on average, calibrators and labels are tested on "
        f"{count(n_sampled)} of them, {kept}."
    )


def _note_rare_classes(data: ReportData) -> str | None:
    count = np.array([data.of_class(k).sum() for k in range(len(data.classes))])
    parts = []
    few = (count > 0) & (count < FEW)
    kinds = {"without any sample": count == 0, f"with fewer than {FEW} samples": few}
    for what, members in kinds.items():
        codes = np.flatnonzero(members)
        if len(codes):
            names = ", ".join(in_sentence(data.label(k)) for k in codes[:5])
            parts.append(f"{len(codes)} {what} ({names}{', ...' if len(codes) > 5 else ''})")
    return f"Classes: {'; '.join(parts)}." if parts else None


def _note_saturated(data: ReportData) -> str | None:
    saturated = (data.confidence >= 1).mean()
    impossible = int((data.per_sample(data.proba <= 0) > 0).sum())
    if saturated < MANY_SATURATED and not impossible:
        return None
    sentence = f"Saturated confidences: {100 * saturated:.1f} % of the samples say exactly 1"
    if impossible:
        sentence += f", and {impossible} true labels have probability 0"
    return sentence + "; no temperature can correct these."


def _note_weights(data: ReportData) -> str | None:
    if data.weight is None:
        return None
    left_out = data.n_given - len(data.codes)
    sentence = (
        f"Weights: {count(len(data.codes))} samples count as "
        f"{count(round(count_effective(data.weight)))} of equal weight, (sum w)^2 / sum w^2, in "
        "tests and intervals, whatever the unit of the weights. The hardest samples and the "
        "counts ignore weights."
    )
    return sentence + (f" {left_out} samples of weight 0 are left out." if left_out else "")


def describe_method(data: ReportData) -> dict[str, Any]:
    """Return versions, options, the seed and a fingerprint of the data."""
    digest = sha256(np.ascontiguousarray(data.proba).data)
    for start in range(0, len(data.codes), MANY_SAMPLES):
        labels = data.classes[data.codes[start : start + MANY_SAMPLES]].tolist()
        digest.update(repr(labels).encode(errors="backslashreplace"))
    if data.soft_labels is not None:
        digest.update(np.ascontiguousarray(data.soft_labels).data)
    return {
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": {
            "skcalib": __version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "Python": platform.python_version(),
        },
        "data_sha256": digest.hexdigest(),
        "source": data.source,
        "n_bins": N_BINS,
        "confidence_level": LEVEL,
        "n_resamples": count_resamples(len(data.codes)),
        "n_folds": N_FOLDS,
        "n_here": len(data.codes),
        "n_sampled": len(data.sampled),
        "random_state": data.seed,
    }


def make_warnings_section(results: dict[str, Any]) -> Section | None:
    """Return the section of warnings; None without any."""
    if not results["warnings"]:
        return None
    return Section("What to be careful about", [Text(text) for text in results["warnings"]])


def make_method_section(results: dict[str, Any]) -> Section:
    """Return the section on methods, versions and limits of the page."""
    method = results["method"]
    rows = [
        ["samples", count(results["overview"]["n_samples"])],
        ["SHA-256 of probabilities and labels", method["data_sha256"]],
        ["bins", str(method["n_bins"])],
        ["level of intervals", format_percent(method["confidence_level"], 0)],
        ["resamples", str(method["n_resamples"])],
        ["folds", str(method["n_folds"])],
        ["random_state", str(method["random_state"])],
        *([name, version] for name, version in method["versions"].items()),
    ]
    if method["source"]:
        rows[:0] = [[name, in_sentence(value)] for name, value in method["source"].items()]
    how = (
        "Averages are tested by the exact distribution of the number of outcomes under the "
        "probabilities (Poisson binomial), errors that may cancel by labels drawn from the "
        "probabilities. All samples have half of the level, groups and classes the other half, "
        "and Holm's correction goes over all. Ranges invert the test; other intervals are Clopper "
        "and Pearson's for fractions, bootstrap intervals for calibration errors, normal ones for "
        "differences. A log-loss of a sample is at most 36: a probability of 0 counts as 2e-16."
    )
    costs = "" if results.get("costs") is not None else "what an error costs, "
    limits = (
        "This page does not show whether the samples are like those that the model will meet, "
        "whether they are independent of each other (several of one person are not) and of the "
        f"training, {costs}or whether groups that were not given are treated alike."
    )
    title = "Method, versions, seed, and what this page does not show"
    return Section(title, [Text(how), Text(limits), Table(["what", "value"], rows)])
