"""Which samples? The hardest ones, and those whose label is probably wrong."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..difficulty import (
    RelativeMahalanobisScorer,
    error_rate_by_difficulty,
    score_difficulty,
)
from ..labels import LabelIssueFinder
from ..plots import DifficultyDisplay
from ..utils import SkcalibWarning
from ..utils._estimators import last_step
from ..utils._private import _safe_indexing
from ..utils._proba import label_log_loss, wilson_interval
from ._data import LEVEL, ReportData
from ._document import Picture, Samples, Section, Text, count, label, number, percent, probability
from ._thumbnails import shown_sample

N_SHOWN = 12
N_TENTHS = 10
# A class needs some samples to tell what is odd in it.
FEWEST_OF_A_CLASS = 10
# Covariances of more features take minutes, and more samples than most evaluations have.
MANY_FEATURES = 1000


def hardest(data: ReportData) -> dict[str, Any]:
    """Return the hardest samples, the hardest first, and what says so."""
    difficulty, source = _difficulty(data)
    # Stable, so that ties stand in the order of the samples; NaN, no answer, comes last.
    order = np.argsort(-difficulty, kind="stable")[:N_SHOWN]
    table = [{**_entry(data, i), "difficulty": float(difficulty[i])} for i in order]
    return {"source": source, "table": table, "error_rate": _error_rate(data, difficulty)}


def _error_rate(
    data: ReportData, difficulty: NDArray[np.float64]
) -> list[dict[str, float]] | None:
    """Return the error rate from the easiest tenth to the hardest; None without a scorer."""
    # By its own log-loss, the hardest samples of a model are its errors.
    if data.scorer is None or not np.isfinite(difficulty).all() or len(difficulty) < 10 * N_TENTHS:
        return None
    rates = error_rate_by_difficulty(
        data.codes, data.predicted, difficulty, n_groups=N_TENTHS, sample_weight=data.weight
    )
    # Groups have equal weight.
    low, high = wilson_interval(rates, np.full(N_TENTHS, data.mass.sum() / N_TENTHS), LEVEL)
    return [{"value": r, "low": a, "high": b} for r, a, b in zip(rates, low, high)]


def _difficulty(data: ReportData) -> tuple[NDArray[np.float64], str]:
    """Return the difficulty of the samples with their labels, and what says so."""
    if data.scorer is not None:
        X = _safe_indexing(data.features, data.numbers)
        difficulty = score_difficulty(data.scorer, X, data.classes[data.codes])
        return np.asarray(difficulty, dtype=np.float64), type(last_step(data.scorer)[0]).__name__
    return label_log_loss(data.proba, data.codes), "log-loss"


def _entry(data: ReportData, i: int) -> dict[str, Any]:
    """Return number, label, prediction and a picture or text of a sample."""
    return {
        "sample": int(data.numbers[i]),
        "label": data.label(data.codes[i]),
        "predicted": data.label(data.predicted[i]),
        "confidence": float(data.confidence[i]),
        **shown_sample(data.shown, int(data.numbers[i])),
    }


def issues(data: ReportData) -> dict[str, Any]:
    """Return the labels that are probably wrong, the most suspicious first, and the noise rate.

    Labels are judged by features or a scorer, and not where the finder warns that these do not
    tell: the reason is given then.
    """
    count = np.bincount(data.codes)
    present = np.flatnonzero(count)
    finder, X, source = _finder(data)
    if finder is None:
        return {"table": None, "reason": "that takes features or a scorer, and there are none"}
    if len(present) < 2 or count[present].min() < FEWEST_OF_A_CLASS:
        reason = f"every class must have {FEWEST_OF_A_CLASS} samples or more"
        return {"table": None, "reason": reason}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        finder.fit(X, np.searchsorted(present, data.codes), sample_weight=data.weight)
    doubts = [str(w.message) for w in caught if issubclass(w.category, SkcalibWarning)]
    if doubts:
        return {"table": None, "reason": doubts[0][0].lower() + doubts[0][1:].rstrip(".")}
    found = finder.issues_
    worst = np.lexsort([-found["margin"], found["p_label_correct"]])
    worst = worst[found["is_issue"][worst]]
    table = [
        {
            **_entry(data, i),
            "suggested_label": data.label(present[found["suggested_label"][i]]),
            "p_label_correct": float(found["p_label_correct"][i]),
        }
        for i in worst[:N_SHOWN]
    ]
    return {
        "table": table,
        "reason": None,
        "source": source,
        "n_issues": len(worst),
        "noise_rate": finder.noise_rate_,
        "noise_rate_interval": finder.noise_rate_interval_,
    }


def _finder(data: ReportData) -> tuple[LabelIssueFinder | None, Any, str]:
    """Return a finder, what it is fitted to, and what judges the labels."""
    if isinstance(last_step(data.scorer)[0], RelativeMahalanobisScorer):
        X = _safe_indexing(data.features, data.numbers)
        name = type(last_step(data.scorer)[0]).__name__
        return LabelIssueFinder(clone(data.scorer)), X, f"the scorer, {name}"
    features = _numeric_features(data)
    return None if features is None else LabelIssueFinder(), features, "the features"


def _numeric_features(data: ReportData) -> NDArray[Any] | None:
    """Return the features as numbers; None for images, texts, gaps and very many of them."""
    if data.features is None or hasattr(data.features, "tocsr"):
        return None
    features = np.asarray(data.features)
    if features.ndim != 2 or features.dtype.kind not in "biuf":
        return None
    if features.shape[1] > MANY_FEATURES or not np.isfinite(features).all():
        return None
    return features[data.numbers]


def section(results: dict[str, Any]) -> Section:
    """Return the hardest samples, and the labels that are probably wrong."""
    hardest, issues = results["hardest"], results["issues"]
    entries = [
        {**entry, "lines": [_answer(entry), f"difficulty {number(entry['difficulty'], 2)}"]}
        for entry in hardest["table"]
    ]
    pictures = []
    if hardest["error_rate"]:
        caption = (
            f"Error rate from the easiest tenth of the samples to the hardest, by "
            f"{hardest['source']}. Where the curve rises, the difficulty tells where the model "
            "errs."
        )
        pictures.append(Picture(partial(_draw, results), (4.2, 3.2), caption))
    blocks = [Samples(f"Hardest, by {hardest['source']}", entries), *_issues(issues)]
    return Section("Which samples, which labels?", blocks, pictures)


def _issues(issues: dict[str, Any]) -> list[Any]:
    if issues["table"] is None:
        return [Text(f"Labels were not judged: {issues['reason']}.", note=True)]
    low, high = issues["noise_rate_interval"]
    rate = Text(
        f"Judged by {issues['source']}, {percent(issues['noise_rate'])} of the labels are wrong "
        f"({100 * low:.1f} to {100 * high:.1f}). Labels that people got wrong on hard samples are "
        "not all among them."
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


def _draw(results: dict[str, Any], ax: Any) -> None:
    groups = results["hardest"]["error_rate"]
    rates = {end: np.array([group[end] for group in groups]) for end in ("value", "low", "high")}
    DifficultyDisplay(
        rates["value"],
        overall=results["selective"]["error_rate"],
        band=(rates["low"], rates["high"]),
    ).plot(ax=ax)
