"""Accuracy and calibration error after allowing for wrong labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import calibration_error_interval, expected_calibration_error
from ..utils.checking._arrays import refuse_unreadable
from ..utils.checking._labels import class_positions
from ..utils.checking._validation import check_has
from ._data import ReportData, mean
from ._document import Section, Table, Text, percent, percent_interval
from ._limits import LEVEL, N_BINS, N_RESAMPLES_OF_LABELS


def check_finder(finder: Any, n_samples: int) -> None:
    """Raise an error unless the finder is fitted, to the same number of samples."""
    attributes = "label_proba_", "classes_", "noise_rate_", "noise_rate_interval_"
    check_has(finder, *attributes, name="finder", what="a fitted LabelIssueFinder")
    refuse_unreadable(finder.label_proba_, name="finder.label_proba_")
    if len(finder.label_proba_) != n_samples:
        raise ValueError(
            f"finder must be fitted to the labels of these {n_samples} samples, got one of "
            f"{len(finder.label_proba_)}."
        )


def results(data: ReportData) -> dict[str, Any] | None:
    """Return accuracy and error, by the labels and by the finder's label probabilities."""
    if data.finder is None:
        return None
    finder = data.finder
    check_finder(finder, data.n_given)
    shares = _shares(data)
    least, most = finder.noise_rate_interval_
    rate = float(finder.noise_rate_)
    # The error changes at most by as much as the rate of wrong labels.
    margins = max(rate - least, 0.0), max(most - rate, 0.0)
    found = {"as_given": _measured(data, data.codes, (0.0, 0.0))}
    found["allowed_for"] = _measured(data, shares, margins)
    return {
        **found,
        "noise_rate": rate,
        "noise_rate_interval": [float(least), float(most)],
        "checked": bool(getattr(finder, "is_trustworthy_", False)),
    }


def _shares(data: ReportData) -> NDArray[np.float64]:
    """Return the finder's probability of every class for every sample."""
    column = class_positions(np.asarray(data.finder.classes_), data.classes)
    if column.min() < 0:
        unknown = data.finder.classes_[column < 0].tolist()
        raise ValueError(f"finder must know no other classes than the report, got {unknown}.")
    shares = np.zeros((len(data.codes), len(data.classes)))
    shares[:, column] = data.finder.label_proba_[data.numbers]
    return shares


def _measured(
    data: ReportData, truth: NDArray[Any], margins: tuple[float, float]
) -> dict[str, dict[str, float]]:
    """Return accuracy and calibration error, whose interval is widened by `margins`."""
    given = {**data.judged, "y_true": truth}
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
        "accuracy": {"value": mean(right.astype(np.float64), data.mass)},
    }


def section(results: dict[str, Any]) -> Section | None:
    """Return the section with both results side by side; None without a finder."""
    found = results["wrong_labels"]
    if found is None:
        return None
    given, allowed = found["as_given"], found["allowed_for"]
    low, high = (100 * end for end in found["noise_rate_interval"])
    rate = percent(found["noise_rate"])
    text = (
        f"After allowing for {rate} wrong labels ({low:.1f} to {high:.1f}), the probabilities are "
        f"off by {percent_interval(allowed['error'])}, under the labels as they are by "
        f"{percent_interval(given['error'])}."
    )
    rows = [
        [name, percent_interval(part["error"]), percent(part["accuracy"]["value"])]
        for name, part in (("labels as given", given), ("allowing for wrong ones", allowed))
    ]
    note = (
        "Every sample counts as one of each class, weighted by how likely the finder holds that "
        "label. Calibration errors have intervals of 99 %; the second is widened by how far the "
        "interval of the rate of wrong labels reaches. All other parts of this page take the "
        "labels as they are."
    )
    if not found["checked"]:
        note += (
            " Nobody has checked labels: errors that people make on hard samples look like right "
            "labels, and stay hidden. A hundred checks settle it: "
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
