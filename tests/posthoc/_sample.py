"""Scores and labels for the tests of the calibrators."""

import numpy as np
from scipy.special import softmax


def sample(n=1500, k=4, *, temperature=2.0, bias=None, seed=0):
    """Logits and labels drawn from softmax(logits / temperature + bias)."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(n, k))
    shift = np.zeros(k) if bias is None else np.asarray(bias)
    proba = softmax(logits / temperature + shift, axis=1)
    y = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return logits, np.minimum(y, k - 1)


def mean_log_loss(proba, y, weight=None):
    with np.errstate(divide="ignore"):
        return np.average(-np.log(proba[np.arange(len(y)), y]), weights=weight)
