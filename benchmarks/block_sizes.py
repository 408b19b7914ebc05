"""Where the sizes in ``skcalib.utils._blocks`` come from: every hot path over a range of its size.

    python -m benchmarks.block_sizes

Process time, the least of many interleaved runs, as ratios to the best of the range: on a noisy
machine a difference of a few per cent means nothing. The threads of the BLAS count in process
time, so run it with OMP_NUM_THREADS=1.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from skcalib.difficulty import RelativeMahalanobisScorer
from skcalib.difficulty.gaussian import _class_distances, _statistics
from skcalib.difficulty.gaussian._statistics import GaussianStatistics
from skcalib.metrics import (
    _top_label,
    area_under_risk_coverage,
    classwise_calibration_error,
    expected_calibration_error,
    predictive_entropy,
)
from skcalib.utils import _blocks

Case = tuple[str, Callable[[], object]]
REPEATS = 9


@contextmanager
def constant(modules: Iterable[ModuleType], name: str, value: int) -> Iterator[None]:
    """Give a constant another value where it is used."""
    old = [getattr(module, name) for module in modules]
    for module in modules:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, value in zip(modules, old):
            setattr(module, name, value)


def least_process_seconds(
    modules: list[ModuleType], name: str, values: list[int], function: Callable[[], object]
) -> list[float]:
    """Return the least process time of the function with every value, the values taking turns."""
    seconds = [np.inf] * len(values)
    for _ in range(REPEATS):
        for i, value in enumerate(values):
            with constant(modules, name, value):
                start = time.process_time()
                function()
                seconds[i] = min(seconds[i], time.process_time() - start)
    return seconds


def sizes(modules: list[ModuleType], name: str, values: list[int], cases: list[Case]) -> None:
    """Print the time with every size, relative to the best."""
    print(f"\n{name} = {getattr(modules[0], name)}")
    print(f"{'':<42}{''.join(f'{value:>10}' for value in values)}")
    for case, function in cases:
        seconds = least_process_seconds(modules, name, values, function)
        print(f"  {case:<40}{''.join(f'{s / min(seconds):10.2f}' for s in seconds)}", flush=True)


def two_paths(
    modules: list[ModuleType],
    name: str,
    columns: list[int],
    cases: Callable[[np.ndarray], list[Case]],
) -> None:
    """Print by how much the path of many columns takes longer, for every number of columns."""
    print(f"\n{name} = {getattr(modules[0], name)}: time of the path beyond it, per that up to it")
    print(f"{'':<42}{''.join(f'{k:>8}' for k in columns)}")
    ratios: dict[str, list[float]] = {}
    for k in columns:
        for case, function in cases(probabilities(2_000_000 // k, k)):
            few, many = least_process_seconds(modules, name, [10**9, 0], function)
            ratios.setdefault(case, []).append(many / few)
    for case, row in ratios.items():
        print(f"  {case:<40}{''.join(f'{ratio:8.2f}' for ratio in row)}", flush=True)


def probabilities(n: int, k: int) -> np.ndarray:
    proba = np.random.default_rng(0).random((n, k), dtype=np.float32)
    return proba / proba.sum(axis=1, keepdims=True)


def over_blocks(kernel: Callable[[np.ndarray], object], array: np.ndarray) -> None:
    for _, block in _blocks.iter_blocks(array):
        kernel(block)


def measure_metrics() -> None:
    rng = np.random.default_rng(0)
    data = [(probabilities(10_000_000 // k, k), k) for k in (10, 1000)]
    labels = [rng.integers(k, size=len(proba)) for proba, k in data]
    cases: list[Case] = []
    for (proba, k), y in zip(data, labels):
        cases += [
            (f"ECE, {k} classes", lambda y=y, p=proba: expected_calibration_error(y, p)),
            (f"classwise, {k} classes", lambda y=y, p=proba: classwise_calibration_error(y, p)),
            (f"entropy, {k} classes", lambda p=proba: predictive_entropy(p)),
            (f"AURC, {k} classes", lambda y=y, p=proba: area_under_risk_coverage(y, p)),
        ]
    sizes([_blocks], "BLOCK_SIZE", [2**i for i in (14, 16, 17, 18, 19, 20, 22)], cases)


def measure_columns() -> None:
    columns = [2, 4, 8, 16, 24, 32, 48, 64, 96, 128]

    def reductions(proba: np.ndarray) -> list[Case]:
        y = np.zeros(len(proba), dtype=np.intp)
        return [
            ("row_max", lambda: over_blocks(_blocks.row_max, proba)),
            ("row_top_two", lambda: over_blocks(_blocks.row_top_two, proba)),
            ("row_sum", lambda: over_blocks(_blocks.row_sum, proba)),
            ("predictive_entropy", lambda: predictive_entropy(proba)),
            ("ECE", lambda: expected_calibration_error(y, proba, labels=range(proba.shape[1]))),
        ]

    two_paths([_blocks, _top_label], "FEW_COLUMNS", columns, reductions)


def measure_gaussian() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 256)).astype(np.float32)
    y = rng.integers(200, size=len(X))
    scorer = RelativeMahalanobisScorer().fit(X, y)
    values = [2**i for i in range(15, 26, 2)]
    query: list[Case] = [
        ("difficulty(X), 200 classes", lambda: scorer.difficulty(X)),
        ("difficulty(X, y)", lambda: scorer.difficulty(X, y)),
    ]
    sizes([_class_distances], "DISTANCE_BLOCK_SIZE", values, query)
    wide, long = (fit_of(n, d, n_classes=200) for n, d in [(20_000, 1024), (400_000, 16)])
    sizes([_statistics], "SCATTER_BLOCK_SIZE", [2**i for i in range(18, 26)], [wide])
    sizes([_statistics], "SCATTER_BLOCK_MOST_ROWS", [2**i for i in range(10, 18)], [wide, long])


def fit_of(n: int, d: int, n_classes: int) -> Case:
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((n, d), dtype=np.float32), rng.integers(n_classes, size=n)
    empty = GaussianStatistics.empty(n_classes, d)
    return f"statistics, {d} features", lambda: empty.with_samples(X, codes)


if __name__ == "__main__":
    measure_metrics()
    measure_columns()
    measure_gaussian()
