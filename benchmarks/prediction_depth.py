"""Nearest-neighbor probes against an exact faiss index with its vote, in the same run.

python -m benchmarks.prediction_depth [--threads T]
"""

from functools import partial

import faiss
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from benchmarks._timing import least_seconds, print_ratios, speed_options
from skcalib.difficulty._neighbors import NeighborSearch
from skcalib.difficulty.depth._probes import NeighborVote

K, N_CLASSES = 30, 10
BOUND, SCIKIT_LEARN = "faiss IndexFlatL2 and vote", "scikit-learn KNeighborsClassifier, brute"


class IndexVote:
    """The bound: an exact flat index and a vote."""

    def __init__(self, train, classes):
        self.classes = classes
        self.index = faiss.IndexFlatL2(train.shape[1])
        self.index.add(train)

    def predict(self, queries):
        votes = self.classes[self.index.search(queries, K)[1]]
        counts = np.zeros((len(queries), N_CLASSES))
        np.add.at(counts, (np.arange(len(queries))[:, None], votes), 1)
        return counts.argmax(axis=1)


def compare(n, n_queries, dim, repeats):
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
    seconds = least_seconds(calls, repeats=repeats) | least_seconds(far_off, repeats=1)
    print_ratios(f"{n_queries} queries, {n} training samples, d = {dim}", BOUND, seconds)
    agree = (models[BOUND].predict(queries) == vote.predict(queries)).mean()
    print(f"  same answers: {agree:.2%}", flush=True)


def main():
    options = speed_options(__doc__)
    faiss.omp_set_num_threads(options.threads)
    for dim in (64, 512, 3072):
        sizes = options.size(50_000), options.size(10_000), min(dim, options.size(dim))
        compare(*sizes, min(options.repeats, 3))


if __name__ == "__main__":
    main()
