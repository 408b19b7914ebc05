"""Difficulty against the entropy of human labels: CIFAR-10H, no training."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata, spearmanr

from skcalib.difficulty import KMeansPrototypeScorer, RelativeMahalanobisScorer
from skcalib.metrics import predictive_entropy

from .measures import proba_of

N_BOOTSTRAPS = 200


def human_agreement(folder, seed=0):
    """Spearman's correlation of each difficulty with human entropy, and that of RMD minus it.

    With standard errors from the same bootstrap samples for all.
    """
    with np.load(folder / "cifar10h.npz") as data:
        counts = data["counts"].astype(float)
    human = predictive_entropy(counts / counts.sum(axis=1, keepdims=True))
    rng = np.random.default_rng(seed)
    samples = [rng.integers(len(human), size=len(human)) for _ in range(N_BOOTSTRAPS)]
    rows, resampled = {}, {}
    for name, values in _difficulties(folder).items():
        # Ranks are taken once: re-ranking every bootstrap sample changes the third digit.
        a, b = rankdata(values), rankdata(human)
        resampled[name] = np.array([np.corrcoef(a[r], b[r])[0, 1] for r in samples])
        error = float(resampled[name].std(ddof=1))
        rows[name] = [float(spearmanr(values, human)[0]), error]
    gains = {
        name: [rows["RMD"][0] - rows[name][0], float((resampled["RMD"] - other).std(ddof=1))]
        for name, other in resampled.items()
        if name != "RMD"
    }
    return {"spearman": rows, "rmd_minus": gains}


def _difficulties(folder):
    with np.load(folder / "cifar10_resnet20_features.npz") as data:
        X, y = data["features"].astype(np.float64), data["y"].astype(int)
    with np.load(folder / "cifar10_resnet20_logits.npz") as data:
        proba = proba_of(data["logits"])
    with np.load(folder / "cifar10_test_pred_probs.npz") as data:
        strong = data["proba"].astype(np.float64)
    every = np.arange(len(y))
    relative = RelativeMahalanobisScorer().fit(X, y)
    values = {
        "RMD": relative.difficulty(X, y),
        "RMD without label": relative.difficulty(X),
        "Mahalanobis": RelativeMahalanobisScorer(relative=False).fit(X, y).difficulty(X, y),
    }
    for n in (10, 100):
        scorer = KMeansPrototypeScorer(n_clusters=n, n_init=1, random_state=0)
        values[f"k-means, {n} centroids"] = scorer.fit(X).difficulty(X)
    values["loss of the network"] = -np.log(np.maximum(proba[every, y], 1e-12))
    values["entropy of the network"] = predictive_entropy(proba)
    values["out-of-fold loss of a strong model"] = -np.log(np.maximum(strong[every, y], 1e-12))
    return values
