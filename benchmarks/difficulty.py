"""Speed of scorers of difficulty against what they cannot avoid.

The relative Mahalanobis distance against its own matrix products; the nearest-neighbor probes of
the prediction depth against an exact faiss index with its vote.

    python -m benchmarks.difficulty [--threads N]
"""

from functools import partial

import faiss
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from benchmarks import _timing as timing
from benchmarks.scale import labeled
from skcalib.difficulty import RelativeMahalanobisScorer
from skcalib.difficulty._neighbors import NeighborSearch, NeighborVote

K, N_CLASSES = 30, 10
BOUND, SCIKIT_LEARN = "faiss IndexFlatL2 and vote", "scikit-learn KNeighborsClassifier, brute"


class IndexVote:
    """The bound: an exact flat index and a vote."""

    def __init__(self, train: np.ndarray, classes: np.ndarray) -> None:
        self.classes = classes
        self.index = faiss.IndexFlatL2(train.shape[1])
        self.index.add(train)

    def predict(self, queries: np.ndarray) -> np.ndarray:
        votes = self.classes[self.index.search(queries, K)[1]]
        counts = np.zeros((len(queries), N_CLASSES))
        np.add.at(counts, (np.arange(len(queries))[:, None], votes), 1)
        return counts.argmax(axis=1)


def probes(n: int, n_queries: int, dim: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    train = rng.normal(size=(n, dim)).astype(np.float32)
    queries = rng.normal(size=(n_queries, dim)).astype(np.float32)
    classes = rng.integers(0, N_CLASSES, n)
    vote = NeighborVote(NeighborSearch(K, metric="euclidean", algorithm="faiss"))
    models = {
        BOUND: IndexVote(train, classes),
        "skcalib": vote.fit(train, classes),
        SCIKIT_LEARN: KNeighborsClassifier(K, algorithm="brute").fit(train, classes),
    }
    calls = {name: partial(model.predict, queries) for name, model in models.items()}
    far_off = {SCIKIT_LEARN: calls.pop(SCIKIT_LEARN)}  # once will do
    seconds = timing.least_seconds(calls, repeats=repeats)
    seconds |= timing.least_seconds(far_off, repeats=1)
    timing.print_ratios(f"{n_queries} queries, {n} training samples, d = {dim}", BOUND, seconds)
    agree = (models[BOUND].predict(queries) == vote.predict(queries)).mean()
    print(f"  same answers: {agree:.2%}", flush=True)


def mahalanobis(n: int, d: int, n_classes: int, repeats: int) -> None:
    X, y = labeled(n, d, n_classes)
    rng = np.random.default_rng(1)
    square = rng.standard_normal((d, d), dtype=np.float32)
    wide = rng.standard_normal((d, n_classes), dtype=np.float32)
    scorer = RelativeMahalanobisScorer().fit(X, y)
    tasks: dict[str, timing.Functions] = {
        "X^T X": {
            "X^T X": lambda: X.T @ X,
            "fit": lambda: RelativeMahalanobisScorer().fit(X, y),
        },
        "its two products": {
            "its two products": lambda: (X @ square) @ wide,
            "transform": lambda: scorer.transform(X),
            "difficulty(X)": lambda: scorer.difficulty(X),
        },
        "one (n, d) x (d, d)": {
            "one (n, d) x (d, d)": lambda: X @ square,
            "difficulty(X, y)": lambda: scorer.difficulty(X, y),
        },
    }
    for bound, functions in tasks.items():
        title = f"n = {n}, d = {d}, K = {n_classes}, float32"
        timing.print_speed(title, bound, functions, repeats=repeats)


def main() -> None:
    options = timing.speed_options(__doc__)
    size = options.size
    mahalanobis(size(100_000), size(512), size(1_000), options.repeats)
    faiss.omp_set_num_threads(options.threads)
    for dim in (64, 512, 3072):
        sizes = size(50_000), size(10_000), min(dim, size(dim))
        probes(*sizes, min(options.repeats, 3))


if __name__ == "__main__":
    main()
