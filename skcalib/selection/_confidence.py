"""Confidence of the answers of a classifier, by name or by an estimator of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import (
    confidence_score,
    energy_score,
    max_logit_score,
    predictive_entropy,
    probability_margin,
)
from ..utils._estimators import predict_labels

_FROM_PROBA = {
    "msp": confidence_score,
    "entropy": lambda proba: -predictive_entropy(proba),
    "margin": probability_margin,
}
_FROM_LOGITS = {"max_logit": max_logit_score, "energy": energy_score}
CONFIDENCE_NAMES = {*_FROM_PROBA, *_FROM_LOGITS}


def confidence_of(estimator: Any, confidence: Any, X: Any) -> NDArray[np.floating]:
    """Return the confidence of every sample: larger = more confident."""
    if not isinstance(confidence, str):
        return confidence.score_samples(X)
    if confidence in _FROM_PROBA:
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"confidence must be 'max_logit', 'energy' or an estimator for "
                f"{type(estimator).__name__}, which has no predict_proba, got {confidence!r}."
            )
        return _FROM_PROBA[confidence](estimator.predict_proba(X))
    # For two classes scikit-learn gives one score, the second class against the first. It tells
    # the difference of two logits at most; the largest logit and the energy depend on their level.
    logits = estimator.decision_function(X) if hasattr(estimator, "decision_function") else None
    if logits is None or logits.ndim != 2:
        raise ValueError(
            "confidence must be read off predict_proba where the classifier gives no score for "
            f"every class, got {confidence!r} with {type(estimator).__name__}."
        )
    return _FROM_LOGITS[confidence](logits)


def judge(estimator: Any, confidence: Any, X: Any, labels: NDArray) -> NDArray[np.floating]:
    """Return (n, 2): the confidence of every sample, and 1 where its predicted class is right."""
    correct = predict_labels(estimator, X) == labels
    return np.column_stack([confidence_of(estimator, confidence, X), correct])
