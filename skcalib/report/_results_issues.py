"""Which labels are probably wrong?"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline

from ..difficulty import RelativeMahalanobisScorer
from ..labels import LabelIssueFinder
from ..utils._private import _safe_indexing
from ._data import ReportData
from ._results_samples import N_SHOWN, sample_entry

# A class needs some samples to tell what is odd in it.
FEWEST_OF_A_CLASS = 10
# Covariances of more features take minutes, and more samples than most evaluations have.
MANY_FEATURES = 1000


class GivenProbabilities(ClassifierMixin, BaseEstimator):
    """A classifier whose input is its output: probabilities of samples it was not trained on."""

    def __init__(self, n_classes: int = 2) -> None:
        self.n_classes = n_classes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn nothing."""
        self.classes_ = np.arange(self.n_classes)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return X."""
        return X


def issues(data: ReportData) -> dict[str, Any]:
    """Return the labels that are probably wrong, the most suspicious first, and the noise rate."""
    count = np.bincount(data.codes)
    present = np.flatnonzero(count)
    if len(present) < 2 or count[present].min() < FEWEST_OF_A_CLASS:
        reason = f"every class must have {FEWEST_OF_A_CLASS} samples or more"
        return {"table": None, "reason": reason}
    finder, X, source = _finder(data, present)
    finder.fit(X, np.searchsorted(present, data.codes), sample_weight=data.weight)
    found = finder.issues_
    worst = np.lexsort([-found["margin"], found["p_label_correct"]])
    worst = worst[found["is_issue"][worst]]
    table = [
        {
            **sample_entry(data, i),
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


def _finder(data: ReportData, present: NDArray[np.intp]) -> tuple[LabelIssueFinder, Any, str]:
    """Return a finder, what it is fitted to, and what judges the labels."""
    scorer = data.scorer
    final = scorer[-1] if isinstance(scorer, Pipeline) else scorer
    if isinstance(final, RelativeMahalanobisScorer):
        X = _safe_indexing(data.features, data.numbers)
        return LabelIssueFinder(clone(scorer)), X, f"the scorer, {type(final).__name__}"
    features = _numeric_features(data)
    if features is not None:
        return LabelIssueFinder(), features, "distances of the features"
    finder = LabelIssueFinder(GivenProbabilities(len(present)), n_refits=0)
    proba = data.proba[:, present].astype(np.float64)
    return finder, proba, "the probabilities of the model"


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
