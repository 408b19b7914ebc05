"""Nearest-neighbor probes against an exact faiss index with its vote, in the same run.

python -m benchmarks.prediction_depth [--queries N] [--samples N] [--dims D ...] [--repeat R]
                                      [--threads T]

Seconds are those of the processor, summed over threads: they bear a machine that is shared.
"""

import argparse
import resource
from functools import partial
from time import process_time

import faiss
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from benchmarks._timing import print_ratios
from skcalib.difficulty._neighbors import NeighborSearch
from skcalib.difficulty.depth._votes import NeighborVote

K, N_CLASSES = 30, 10


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


def compare(dim, options):
    rng = np.random.default_rng(0)
    train = rng.normal(size=(options.samples, dim)).astype(np.float32)
    queries = rng.normal(size=(options.queries, dim)).astype(np.float32)
    classes = rng.integers(0, N_CLASSES, options.samples)
    bound = "faiss IndexFlatL2 and vote"
    models = {
        bound: IndexVote(train, classes),
        "skcalib": NeighborVote(NeighborSearch(K, metric="euclidean", algorithm="faiss")),
        "scikit-learn KNeighborsClassifier, brute": KNeighborsClassifier(K, algorithm="brute"),
    }
    calls = {name: partial(model.predict, queries) for name, model in models.items()}
    seconds, answers = dict.fromkeys(calls, float("inf")), {}
    for model in list(models.values())[1:]:
        model.fit(train, classes)
    for repeat in range(options.repeat):
        for name, call in calls.items():
            if repeat and name.startswith("scikit-learn"):
                continue  # It is far off: once will do.
            start = process_time()
            answers[name] = call()
            seconds[name] = min(seconds[name], process_time() - start)
    shape = f"{options.queries} queries, {options.samples} training samples, d = {dim}, k = {K}"
    print_ratios(f"{shape}, {options.threads} thread(s)", bound, seconds)
    agree = [f"{(answers[bound] == answer).mean():.2%}" for answer in answers.values()]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  same answers: {', '.join(agree)}; peak memory so far {peak:.1f} GiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 512, 3072])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    with threadpool_limits(options.threads):
        for dim in options.dims:
            compare(dim, options)


if __name__ == "__main__":
    main()
