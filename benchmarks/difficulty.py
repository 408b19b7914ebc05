"""Speed of the relative Mahalanobis distance against its own matrix products.

python -m benchmarks.difficulty [--threads N]
"""

import numpy as np

from benchmarks._timing import Functions, print_speed, speed_options
from skcalib.difficulty import RelativeMahalanobisScorer


def blobs(n: int, d: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    means = rng.standard_normal((n_classes, d), dtype=np.float32)
    return rng.standard_normal((n, d), dtype=np.float32) + means[y], y


def main() -> None:
    options = speed_options(__doc__)
    n, d, n_classes = options.size(100_000), options.size(512), options.size(1_000)
    X, y = blobs(n, d, n_classes)
    rng = np.random.default_rng(1)
    square = rng.standard_normal((d, d), dtype=np.float32)
    wide = rng.standard_normal((d, n_classes), dtype=np.float32)
    scorer = RelativeMahalanobisScorer().fit(X, y)
    tasks: dict[str, Functions] = {
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
        print_speed(title, bound, functions, repeats=options.repeats)


if __name__ == "__main__":
    main()
