"""Notes for the reader, and how the report was computed."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import numpy as np
import scipy
import sklearn

from .. import __version__
from ._data import ReportData
from ._document import Section, Table, Text, count, in_sentence, percent
from ._limits import FEW, LEVEL, MANY_SAMPLES, MANY_SATURATED, N_BINS, N_FOLDS
from ._trust import n_resamples


def notes(data: ReportData) -> list[str]:
    """Return a sentence for everything in the data that limits the report."""
    found = [_shares(data), _summed(data), _part(data), _rare_classes(data), _saturated(data)]
    found.append(_weights(data))
    return [sentence for sentence in found if sentence]


def _shares(data: ReportData) -> str | None:
    if data.shares is None:
        return None
    return (
        "Shares of people: a sample counts as one of every class, by the share of people who "
        "chose it, and an answer is wrong by the share who disagree. The hardest samples name the "
        "class that most chose. Averages are tested, and have ranges, as if every sample had one "
        "label; shares vary less, so these tests and ranges are cautious."
    )


def _summed(data: ReportData) -> str | None:
    if data.total is None:
        return None
    of = "the probability of the second class" if data.summed == "positive" else "the answers"
    return (
        f"Sums: the calibration error of {of} and their average are those of all "
        f"{count(data.n_samples)} samples, of which {count(len(data.codes))} were here for all "
        "else: curves, thresholds, classes, groups and calibrators. They are taken for a random "
        "part."
    )


def _part(data: ReportData) -> str | None:
    n, n_sampled = len(data.codes), len(data.sampled)
    if n == n_sampled:
        return None
    kept = (
        "whole groups at random" if data.groups is not None else "in which every class and group"
    )
    kept += "" if data.groups is not None else " has its fraction"
    return (
        f"Many samples: averages, ranges, the calibration error and thresholds are those of all "
        f"{count(n)} samples. Errors that cancel on average, calibrators and labels are judged on "
        f"{count(n_sampled)} of them, {kept}."
    )


def _rare_classes(data: ReportData) -> str | None:
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


def _saturated(data: ReportData) -> str | None:
    saturated = (data.confidence >= 1).mean()
    impossible = int((data.per_sample(data.proba <= 0) > 0).sum())
    if saturated < MANY_SATURATED and not impossible:
        return None
    sentence = f"Saturated confidences: {100 * saturated:.1f} % of the samples say exactly 1"
    if impossible:
        sentence += f", and {impossible} true labels have probability 0"
    return sentence + "; no temperature can repair these."


def _weights(data: ReportData) -> str | None:
    if data.weight is None:
        return None
    left_out = data.n_given - len(data.codes)
    sentence = (
        f"Weights: a weight of k counts as k samples, {data.weight.sum():.6g} in all. The tests "
        "take a sample for one outcome whatever its weight; the hardest samples and the counts "
        "ignore weights."
    )
    return sentence + (f" {left_out} samples of weight 0 are left out." if left_out else "")


def method(data: ReportData) -> dict[str, Any]:
    """Return versions, options, the seed and a fingerprint of the data."""
    digest = sha256(np.ascontiguousarray(data.proba).data)
    for start in range(0, len(data.codes), MANY_SAMPLES):
        labels = data.classes[data.codes[start : start + MANY_SAMPLES]].tolist()
        digest.update(repr(labels).encode(errors="backslashreplace"))
    if data.shares is not None:
        digest.update(np.ascontiguousarray(data.shares).data)
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
        "n_resamples": n_resamples(len(data.codes)),
        "n_folds": N_FOLDS,
        "n_here": len(data.codes),
        "n_sampled": len(data.sampled),
        "random_state": data.seed,
    }


def warnings_section(results: dict[str, Any]) -> Section | None:
    """Return the section of warnings; None without any."""
    if not results["warnings"]:
        return None
    return Section("What to be careful about", [Text(text) for text in results["warnings"]])


def section(results: dict[str, Any]) -> Section:
    """Return the section on methods, versions and limits of the page."""
    method = results["method"]
    rows = [
        ["samples", count(results["overview"]["n_samples"])],
        ["SHA-256 of probabilities and labels", method["data_sha256"]],
        ["bins", str(method["n_bins"])],
        ["level of intervals", percent(method["confidence_level"], 0)],
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
        "probabilities. Everybody has half of the level, groups and classes share the other half, "
        "and Holm's correction goes over all. Ranges invert the test; other intervals are Clopper "
        "and Pearson's for fractions, bootstrap intervals for calibration errors, normal ones for "
        "differences. A log-loss of a sample is at most 36: a probability of 0 counts as 2e-16."
    )
    not_told = (
        "This page does not tell whether the samples are like those that the model will meet, "
        "whether they are independent of each other (several of one person are not) and of the "
        "training, what an error costs, or whether groups that were not given are treated alike."
    )
    title = "Method, versions, seed, and what this page does not tell"
    return Section(title, [Text(how), Text(not_told), Table(["what", "value"], rows)])
