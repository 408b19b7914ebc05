"""Speed of the relative Mahalanobis distance against its own matrix products.

python -m benchmarks.difficulty [--threads N] [--peers] [--imagenet FOLDER]

--peers times pytorch-ood on a subset, scaled to all samples. --imagenet writes a float32 memory
map of 1 281 167 x 512 (2.6 GB) into FOLDER, streams it through `fit` and `difficulty`, reports the
time and the memory beyond the map, and deletes it.
"""

import argparse
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._timing import least_seconds, print_ratios
from skcalib.difficulty import RelativeMahalanobisScorer

N_SAMPLES, N_FEATURES, N_CLASSES = 100_000, 512, 1_000


def blobs(n_samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n_samples)
    means = np.random.default_rng(1).standard_normal((N_CLASSES, N_FEATURES), dtype=np.float32)
    X = rng.standard_normal((n_samples, N_FEATURES), dtype=np.float32)
    X += means[y]
    return X, y


def against_products(repeats: int) -> None:
    X, y = blobs(N_SAMPLES)
    square = np.random.default_rng(2).standard_normal((N_FEATURES, N_FEATURES), dtype=np.float32)
    wide = np.random.default_rng(3).standard_normal((N_FEATURES, N_CLASSES), dtype=np.float32)
    scorer = RelativeMahalanobisScorer().fit(X, y)
    print(f"\nn = {N_SAMPLES}, d = {N_FEATURES}, K = {N_CLASSES}, float32")
    tasks: dict[str, dict[str, Callable[[], object]]] = {
        "X^T X": {
            "fit": lambda: RelativeMahalanobisScorer().fit(X, y),
            "X^T X": lambda: X.T @ X,
        },
        "its two products": {
            "transform": lambda: scorer.transform(X),
            "difficulty(X)": lambda: scorer.difficulty(X),
            "its two products": lambda: (X @ square) @ wide,
        },
        "one (n, d) x (d, d)": {
            "difficulty(X, y)": lambda: scorer.difficulty(X, y),
            "one (n, d) x (d, d)": lambda: X @ square,
        },
    }
    for bound, functions in tasks.items():
        seconds = least_seconds(functions, repeats=repeats)
        print_ratios(" and ".join(name for name in functions if name != bound), bound, seconds)


def peers(n_subset: int = 1_000) -> None:
    with suppress(ImportError):
        import torch
        from pytorch_ood.detector import RMD

        X, y = blobs(N_SAMPLES)
        torch.set_num_threads(1)
        detector = RMD(None)
        start = time.perf_counter()
        detector.fit_features(torch.from_numpy(X), torch.from_numpy(y))
        fit = time.perf_counter() - start
        start = time.perf_counter()
        theirs = detector.predict_features(torch.from_numpy(X[:n_subset])).numpy()
        score = (time.perf_counter() - start) * N_SAMPLES / n_subset
        ours = RelativeMahalanobisScorer().fit(X, y)
        start = time.perf_counter()
        values = ours.difficulty(X)
        ours_score = time.perf_counter() - start
        start = time.perf_counter()
        ours.fit(X, y)
        ours_fit = time.perf_counter() - start
        print(f"\npytorch-ood RMD: fit {fit:.2f} s, scoring {score:.0f} s")
        print(f"(scoring: {n_subset} samples, scaled)")
        print(f"here: fit {ours_fit:.2f} s, scoring {ours_score:.2f} s")
        # Their covariances are sums rather than means over the samples.
        difference = np.abs(theirs * N_SAMPLES - values[:n_subset]).max()
        print(f"largest difference after scaling theirs by n: {difference:.2g}")


def _resident(kind: str) -> int:
    """Bytes of memory of this process that is not backed by a file (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(kind):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {kind} in /proc/self/status")


@contextmanager
def _peak(result: list[float]):
    done = threading.Event()
    start, peak = _resident("RssAnon"), 0

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.01):
            peak = max(peak, _resident("RssAnon") - start)

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.perf_counter()
    yield
    result += [time.perf_counter() - begin, peak / 2**20]
    done.set()
    watcher.join()


def imagenet(folder: Path, n_samples: int = 1_281_167) -> None:
    path = folder / "skcalib_imagenet_shape.dat"
    try:
        shape = (n_samples, N_FEATURES)
        written = np.memmap(path, dtype=np.float32, mode="w+", shape=shape)
        y = np.empty(n_samples, dtype=np.int64)
        for i, start in enumerate(range(0, n_samples, N_SAMPLES)):
            rows = slice(start, min(start + N_SAMPLES, n_samples))
            block, label = blobs(rows.stop - rows.start, seed=10 + i)
            written[rows], y[rows] = block, label
        written.flush()
        del written, block
        X = np.memmap(path, dtype=np.float32, mode="r", shape=shape)
        scorer = RelativeMahalanobisScorer()
        print(f"\n{n_samples} x {N_FEATURES}, K = {N_CLASSES}, from a memory map of float32")
        for name, run in {
            "fit": lambda: scorer.fit(X, y),
            "difficulty(X, y)": lambda: scorer.difficulty(X, y),
            "difficulty(X)": lambda: scorer.difficulty(X),
        }.items():
            result: list[float] = []
            with _peak(result):
                run()
            print(f"  {name:<20}{result[0]:8.1f} s{result[1]:10.0f} MB beyond the map", flush=True)
    finally:
        path.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--imagenet", type=Path)
    arguments = parser.parse_args()
    with threadpool_limits(arguments.threads):
        print(f"{arguments.threads} thread(s)")
        against_products(arguments.repeats)
        if arguments.peers:
            peers()
        if arguments.imagenet is not None:
            imagenet(arguments.imagenet)


if __name__ == "__main__":
    main()
