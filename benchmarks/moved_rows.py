"""How often does check_alignment find rows in another order?  ``python -m benchmarks.moved_rows``.

Models are fitted to generated labels of which 40 to 90 % are drawn anew. What a model knows is the
mean covariance of its probabilities with 20 000 labels, as a part of what the probabilities imply.
Of models that imply less than .05, no order of rows is found; they are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from benchmarks._tables import study
from benchmarks.order_ablations import part_known
from skcalib.metrics import check_alignment

MODELS = {
    "bayes": GaussianNB,
    "logistic": lambda: LogisticRegression(C=1e6, max_iter=300),
    "forest": lambda: RandomForestClassifier(30, random_state=0),
    "tree": lambda: DecisionTreeClassifier(random_state=0, min_samples_leaf=2),
    "neighbors": lambda: KNeighborsClassifier(3),
}
N_CLASSES, NOISE, N_SEEDS, SIZES = (2, 3, 10), (0.4, 0.6, 0.7, 0.8, 0.9), 5, (60, 200, 600, 2000)
KNOWN = (-np.inf, 0.1, 0.2, 0.3, 0.5, np.inf)


def predictions() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield probabilities and labels of all models."""
    for n_classes, noise, seed in product(N_CLASSES, NOISE, range(N_SEEDS)):
        rng = np.random.default_rng([seed, n_classes, int(noise * 100), 77])
        X, y = make_classification(
            26_000, 10, n_informative=6, n_classes=n_classes,
            class_sep=rng.uniform(0.3, 1.2), random_state=seed + 3000,
        )  # fmt: skip
        y = np.where(rng.random(len(y)) < noise, rng.integers(0, n_classes, len(y)), y)
        fit = slice(int(rng.integers(60, 1500)))
        for model in MODELS.values():
            fitted = model().fit(X[fit], y[fit])
            if len(fitted.classes_) == n_classes:
                yield fitted.predict_proba(X[6000:]), y[6000:]


def rows(draws: int) -> Iterator[dict[str, object]]:
    """Yield the fractions of draws with a finding, by size and by what the models know."""
    models = [
        (proba, y, part_known(proba, y))
        for proba, y in predictions()
        if np.mean(np.sum(proba * (proba - proba.mean(axis=0)), axis=1)) >= 0.05
    ]
    for size, (low, high) in product(SIZES, pairwise(KNOWN)):
        in_order, moved = [], []
        for number, (proba, y, known) in enumerate(models):
            rng = np.random.default_rng([number, size])
            for _ in range(draws if low <= known < high else 0):
                some = rng.choice(len(y), size, replace=False)
                in_order.append(bool(check_alignment(y[some], proba[some])))
                moved.append(bool(check_alignment(y[rng.permutation(some)], proba[some])))
        yield {
            "samples": size, "known_from": max(low, -1.0), "known_to": min(high, 9.0),
            "models": len(in_order) // draws, "in_order": float(np.mean(in_order)),
            "moved": float(np.mean(moved)),
        }  # fmt: skip


if __name__ == "__main__":
    study(__doc__, rows, draws=6)
