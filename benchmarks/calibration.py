"""Calibration errors against their bounds, and against other libraries where they are installed.

``python -m benchmarks.calibration``; netcal, torchmetrics, uncertainty-calibration, relplot and
probmetrics are optional.
"""

import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from benchmarks._timing import least_seconds, print_ratios
from skcalib.metrics import (
    CalibrationAccumulator,
    calibration_error_interval,
    classwise_calibration_error,
    expected_calibration_error,
    generalized_brier_score,
    ks_calibration_error,
    ood_report,
    smooth_calibration_error,
)
from skcalib.utils._validation import check_predictions

Functions = dict[str, Callable[[], object]]


def probabilities(n_samples: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Confident probabilities, and labels that are right about half of the time."""
    rng = np.random.default_rng(0)
    proba = rng.random((n_samples, n_classes), dtype=np.float32)
    top = rng.integers(n_classes, size=n_samples)
    proba[np.arange(n_samples), top] += 4 * n_classes * rng.random(n_samples, dtype=np.float32)
    proba /= proba.sum(axis=1, keepdims=True)
    wrong = rng.random(n_samples) < 0.5
    return np.where(wrong, rng.integers(n_classes, size=n_samples), top), proba


def top_label_peers(y: np.ndarray, proba: np.ndarray) -> Functions:
    peers: Functions = {}
    with suppress(ImportError):
        import torch
        from torchmetrics.functional.classification import multiclass_calibration_error as peer

        target, preds = torch.tensor(y), torch.from_numpy(proba)
        peers["torchmetrics"] = lambda: peer(preds, target, proba.shape[1], n_bins=15)
    with suppress(ImportError):
        from netcal.metrics import ECE

        peers["netcal"] = lambda: ECE(15).measure(proba, y)
    return peers


def measure_wide() -> None:
    y, proba = probabilities(50_000, 1000)
    rows = np.arange(len(y))

    def bound() -> np.ndarray:
        proba.min()
        proba.sum(axis=1)
        return proba[rows, proba.argmax(axis=1)]

    name = "one min, one sum of every row, one argmax and gather"
    functions: Functions = {
        name: bound,
        "validation alone": lambda: check_predictions(y, proba),
        "expected_calibration_error": lambda: expected_calibration_error(y, proba),
        "  quantile": lambda: expected_calibration_error(y, proba, strategy="quantile"),
        "smooth_calibration_error": lambda: smooth_calibration_error(y, proba),
        "ks_calibration_error": lambda: ks_calibration_error(y, proba),
        "classwise_calibration_error": lambda: classwise_calibration_error(y, proba),
        **top_label_peers(y, proba),
    }
    print_ratios("(50 000, 1000) float32", name, least_seconds(functions))
    for metric in (expected_calibration_error, classwise_calibration_error):
        tracemalloc.start()
        metric(y, proba)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        print(
            f"  peak extra memory of {metric.__name__}: {peak:.1f} MB of {proba.nbytes / 1e6:.0f}"
        )
    slow: Functions = {
        "quantile": lambda: classwise_calibration_error(y, proba, strategy="quantile"),
        "sort every column": lambda: np.sort(np.ascontiguousarray(proba.T), axis=1),
    }
    print_ratios("classwise, quantile", "sort every column", least_seconds(slow, repeats=2))


def measure_long() -> None:
    y, proba = probabilities(2_000_000, 10)
    name = "numpy: max and argmax"

    def stream() -> float:
        accumulator = CalibrationAccumulator()
        for start in range(0, len(y), 100_000):
            accumulator.update(y[start : start + 100_000], proba[start : start + 100_000])
        return accumulator.result()

    functions: Functions = {
        name: lambda: (proba.max(axis=1), proba.argmax(axis=1)),
        "expected_calibration_error": lambda: expected_calibration_error(y, proba),
        "  quantile": lambda: expected_calibration_error(y, proba, strategy="quantile"),
        "CalibrationAccumulator, 20 updates": stream,
        "classwise_calibration_error": lambda: classwise_calibration_error(y, proba),
        **top_label_peers(y, proba),
    }
    print_ratios("(2 000 000, 10) float32", name, least_seconds(functions, repeats=5))


def measure_two_classes() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(1_000_000)
    y = (rng.random(len(p)) < p).astype(int)
    bounds_and_functions: list[tuple[str, Functions]] = [
        ("one sort", {
            "one sort": lambda: np.sort(p),
            "ks_calibration_error": lambda: ks_calibration_error(y, p),
        }),
        ("one weighted bincount", {
            "one weighted bincount": lambda: np.bincount((15 * p).astype(np.intp), p),
            "expected_calibration_error": lambda: expected_calibration_error(y, p),
        }),
        ("(p - y)**2", {
            "(p - y)**2": lambda: (p - y) ** 2,
            "generalized_brier_score": lambda: generalized_brier_score(y, p),
        }),
        ("sorts of both kinds", {
            "sorts of both kinds": lambda: (np.sort(p[y == 1]), np.sort(p[y == 0])),
            "ood_report": lambda: ood_report(y, p),
        }),
    ]  # fmt: skip
    for bound, functions in bounds_and_functions:
        print_ratios("(1 000 000,) float64", bound, least_seconds(functions))


def measure_many_classes() -> None:
    y, proba = probabilities(1000, 21_841)
    name = "argmax"
    functions: Functions = {
        name: lambda: proba.argmax(axis=1),
        "expected_calibration_error": lambda: expected_calibration_error(y, proba),
        "classwise_calibration_error": lambda: classwise_calibration_error(y, proba),
    }
    print_ratios("(1000, 21 841) float32", name, least_seconds(functions))


def measure_smooth() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, size=1_000_000)
    y = (rng.random(len(p)) < p**1.2).astype(int)
    name = "smooth_calibration_error"
    functions: Functions = {
        "two bincounts": lambda: [np.bincount((p * 2**14).astype(int), p) for _ in range(2)],
        name: lambda: smooth_calibration_error(y, p),
    }
    with suppress(ImportError):
        import relplot

        functions["relplot"] = lambda: relplot.smECE(p, y)
    seconds = least_seconds(functions, repeats=3)
    print_ratios("smooth, (1 000 000,) float64", name, seconds)
    for other in ("relplot",):
        if other in functions:
            print(f"  values: {functions[name]():.6f}, {other} {functions[other]():.6f}")


def measure_interval() -> None:
    y, proba = probabilities(10_000, 10)
    rng = np.random.default_rng(0)

    def draws() -> None:
        for _ in range(1000):
            np.bincount(rng.integers(len(y), size=len(y)), minlength=len(y))

    def anew(y: np.ndarray, proba: np.ndarray, **options: object) -> float:
        return expected_calibration_error(y, proba, **options)

    def interval(**options: object) -> tuple[float, float]:
        options = {"random_state": 0, **options}
        return calibration_error_interval(y, proba, **options)

    functions: Functions = {
        "draw the samples of 1000 resamples": draws,
        "bin sums": interval,
        "smooth": lambda: interval(metric=smooth_calibration_error),
        "metric anew on all columns": lambda: interval(metric=anew),
        "metric anew on all columns, 2 jobs": lambda: interval(metric=anew, n_jobs=2),
    }
    title = "interval, 1000 resamples of (10 000, 10)"
    print_ratios(title, next(iter(functions)), least_seconds(functions, repeats=3))
    with suppress(ImportError):
        from calibration import get_calibration_error_uncertainties

        peer: Functions = {
            "bin sums, 100": lambda: interval(n_resamples=100),
            "uncertainty-calibration, 100": lambda: get_calibration_error_uncertainties(
                proba, y, p=1, mode="top-label"
            ),
        }
        title = "interval, 100 resamples of (10 000, 10)"
        print_ratios(title, "bin sums, 100", least_seconds(peer, repeats=1))


if __name__ == "__main__":
    measure_wide()
    measure_long()
    measure_two_classes()
    measure_many_classes()
    measure_smooth()
    measure_interval()
