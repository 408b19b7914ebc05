"""Which samples? The hardest ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from ..difficulty import error_rate_by_difficulty, score_difficulty
from ..utils._private import _safe_indexing
from ..utils._proba import wilson_interval
from ._data import ReportData
from ._statistics import LEVEL
from ._thumbnails import shown_sample

N_SHOWN = 12
N_GROUPS = 10


def hardest(data: ReportData) -> dict[str, Any]:
    """Return the hardest samples, the hardest first, and what says so."""
    difficulty, source = _difficulty(data)
    # Stable, so that ties stand in the order of the samples; NaN, no answer, comes last.
    order = np.argsort(-difficulty, kind="stable")[:N_SHOWN]
    table = [{**sample_entry(data, i), "difficulty": float(difficulty[i])} for i in order]
    return {"source": source, "table": table, "error_rate": _error_rate(data, difficulty)}


def _error_rate(
    data: ReportData, difficulty: NDArray[np.float64]
) -> list[dict[str, float]] | None:
    """Return the error rate from the easiest tenth to the hardest; None without a scorer."""
    # By its own log-loss, the hardest samples of a model are its errors.
    if data.scorer is None or not np.isfinite(difficulty).all() or len(difficulty) < 10 * N_GROUPS:
        return None
    rates = error_rate_by_difficulty(
        data.codes, data.predicted, difficulty, n_groups=N_GROUPS, sample_weight=data.weight
    )
    # Groups have equal weight.
    count = np.full(N_GROUPS, data.mass.sum() / N_GROUPS)
    low, high = wilson_interval(rates, count, LEVEL)
    return [{"value": r, "low": a, "high": b} for r, a, b in zip(rates, low, high)]


def _difficulty(data: ReportData) -> tuple[NDArray[np.float64], str]:
    """Return the difficulty of the samples with their labels, and what says so."""
    if data.scorer is not None:
        X = _safe_indexing(data.features, data.numbers)
        difficulty = score_difficulty(data.scorer, X, data.classes[data.codes])
        final = data.scorer[-1] if isinstance(data.scorer, Pipeline) else data.scorer
        return np.asarray(difficulty, dtype=np.float64), type(final).__name__
    p_label = data.proba[np.arange(len(data.codes)), data.codes].astype(np.float64)
    with np.errstate(divide="ignore"):
        return -np.log(p_label), "log-loss"


def sample_entry(data: ReportData, i: int) -> dict[str, Any]:
    """Return number, label, prediction and a picture or text of a sample."""
    return {
        "sample": int(data.numbers[i]),
        "label": data.label(data.codes[i]),
        "predicted": data.label(data.predicted[i]),
        "confidence": float(data.confidence[i]),
        **shown_sample(data.shown, int(data.numbers[i])),
    }
