"""How many new samples a novelty detector calls outliers, where all are like the training samples.

    python -m benchmarks.false_alarms [--draws 20] [--out FILE]

Six sets of features with 30 to 200 samples a class; the promise is ``contamination=0.05``. The
digits are scikit-learn's, the others are drawn anew. For every detector the mean over the draws,
its standard error, and the rate in-sample scores would give (``cv=None``).
benchmarks/false_alarms_results.json holds the figures of the user guide.
"""

from collections.abc import Callable, Iterator

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._tables import shown, simple_table, study
from skcalib.difficulty import KMeansPrototypeScorer, KNNScorer, NoveltyDetector, RMDScorer

CONTAMINATION = 0.05
N_NEW = 2000
Draw = Callable[[int], tuple[np.ndarray, np.ndarray, np.ndarray]]


def gaussians(
    n_classes: int, per_class: int, d: int, *, spread: float = 1.0, tails: float | None = None
) -> Draw:
    """Return a draw of training samples, labels and new samples."""
    centers = np.random.default_rng(0).normal(size=(n_classes, d))
    scale = np.geomspace(spread, 1 / spread, d)

    def draw(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        n = n_classes * per_class
        noise = rng.normal(size=(n + N_NEW, d))
        if tails is not None:
            noise = rng.standard_t(tails, size=noise.shape)
        labels = np.arange(n + N_NEW) % n_classes
        features = centers[labels] + noise * scale
        return features[:n], labels[:n], features[n:]

    return draw


def digits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    features, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    train, new = order[:400], order[400:]
    return features[train], labels[train], features[new]


SETS: dict[str, Draw] = {
    "2 classes of 50, 60 features": gaussians(2, 50, 60),
    "4 classes of 30, 40 unequal features": gaussians(4, 30, 40, spread=5.0),
    "5 classes of 40, 20 features": gaussians(5, 40, 20),
    "3 classes of 100, heavy tails": gaussians(3, 100, 8, tails=3.0),
    "3 classes of 200, 100 features": gaussians(3, 200, 100),
    "digits, 10 classes of 40": digits,
}
SCORERS = {
    "RMD": RMDScorer(),
    "RMD, auto": RMDScorer(shrinkage="auto"),
    "Mahalanobis, auto": RMDScorer(relative=False, shrinkage="auto"),
    "5th neighbor": KNNScorer(normalize=True),
    "k-means": KMeansPrototypeScorer(8, random_state=0),
    "PCA, RMD, auto": make_pipeline(
        StandardScaler(), PCA(6, random_state=0), RMDScorer(shrinkage="auto")
    ),
}


def guide_table(lines: list[dict]) -> str:
    """Return the table of the user guide."""
    by_key = {(r["features"], r["scorer"]): r for r in lines}
    rows = [
        (name, *(
            f"{shown(by_key[name, s]['rate'], 3)} ({shown(by_key[name, s]['in_sample'], 2)})"
            for s in SCORERS
        ))
        for name in SETS
    ]  # fmt: skip
    return simple_table(("features", *SCORERS), rows)


def rates_of_alarms(draws: int) -> Iterator[dict]:
    """Yield the rate of every detector on every set."""
    for name, draw in SETS.items():
        for scorer_name, scorer in SCORERS.items():
            rates = []
            for seed in range(draws):
                train, labels, new = draw(seed)
                rates.append([
                    np.mean(NoveltyDetector(scorer, cv=cv).fit(train, labels).predict(new) == -1)
                    for cv in ("auto", None)
                ])  # fmt: skip
            (rate, in_sample), spread = np.mean(rates, axis=0), np.std(rates, axis=0)[0]
            yield {
                "features": name, "scorer": scorer_name, "n": len(labels), "draws": draws,
                "rate": rate, "standard_error": spread / np.sqrt(draws - 1), "spread": spread,
                "in_sample": in_sample,
            }  # fmt: skip


if __name__ == "__main__":
    study(__doc__, rates_of_alarms, draws=20)
