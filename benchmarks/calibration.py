"""Calibration errors against their bounds, and against other libraries where they are installed.

``python -m benchmarks.calibration``; torchmetrics and relplot are optional.
"""

from contextlib import suppress
from functools import partial

import numpy as np

from benchmarks._timing import Functions, peak_bytes, print_speed, speed_options
from benchmarks.scale import probabilities
from skcalib import metrics
from skcalib.utils._proba import check_predictions


def top_label_peers(y: np.ndarray, proba: np.ndarray) -> Functions:
    peers: Functions = {}
    with suppress(ImportError):
        import torch
        from torchmetrics.functional.classification import multiclass_calibration_error as peer

        target, preds = torch.tensor(y), torch.from_numpy(proba)
        peers["torchmetrics"] = lambda: peer(preds, target, proba.shape[1], n_bins=15)
    return peers


def measure_wide(n: int, n_classes: int, repeats: int) -> None:
    proba, y, _ = probabilities(n, n_classes, 4.0)
    rows, labels = np.arange(n), range(n_classes)
    ece, smooth = metrics.expected_calibration_error, metrics.smooth_calibration_error
    ks, classwise = metrics.ks_calibration_error, metrics.classwise_calibration_error
    bound = "one min, one sum of every row, one argmax and gather"

    def stream() -> float:
        accumulator = metrics.CalibrationAccumulator(labels=labels)
        for part in np.array_split(rows, 20):
            accumulator.update(y[part], proba[part])
        return accumulator.result()

    quantile = {"strategy": "quantile", "labels": labels}
    functions: Functions = {
        bound: lambda: (proba.min(), proba.sum(axis=1), proba[rows, proba.argmax(axis=1)]),
        "validation alone": lambda: check_predictions(y, proba, labels=labels),
        "expected_calibration_error": lambda: ece(y, proba, labels=labels),
        "  quantile": lambda: ece(y, proba, **quantile),
        "smooth_calibration_error": lambda: smooth(y, proba, labels=labels),
        "ks_calibration_error": lambda: ks(y, proba, labels=labels),
        "CalibrationAccumulator, 20 updates": stream,
        "classwise_calibration_error": lambda: classwise(y, proba, labels=labels),
        "  quantile, the columns sorted": lambda: classwise(y, proba, **quantile),
        **top_label_peers(y, proba),
    }
    print_speed(f"({n}, {n_classes}) float32", bound, functions, repeats=repeats)
    for metric in (metrics.expected_calibration_error, metrics.classwise_calibration_error):
        peak = peak_bytes(partial(metric, y, proba, labels=labels)) / 1e6
        print(
            f"  peak extra memory of {metric.__name__}: {peak:.1f} of {proba.nbytes / 1e6:.0f} MB"
        )


def measure_two_classes(n: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    by_bound: dict[str, Functions] = {
        "one sort": {
            "one sort": lambda: np.sort(p),
            "ks_calibration_error": lambda: metrics.ks_calibration_error(y, p),
        },
        "one weighted bincount": {
            "one weighted bincount": lambda: np.bincount((15 * p).astype(np.intp), p),
            "expected_calibration_error": lambda: metrics.expected_calibration_error(y, p),
            "smooth_calibration_error": lambda: metrics.smooth_calibration_error(y, p),
        },
        "(p - y)**2": {
            "(p - y)**2": lambda: (p - y) ** 2,
            "generalized_brier_score": lambda: metrics.generalized_brier_score(y, p),
        },
        "sorts of both kinds": {
            "sorts of both kinds": lambda: (np.sort(p[y == 1]), np.sort(p[y == 0])),
            "ood_report": lambda: metrics.ood_report(y, p),
        },
    }
    with suppress(ImportError):
        import relplot

        by_bound["one weighted bincount"]["relplot"] = lambda: relplot.smECE(p, y)
    for bound, functions in by_bound.items():
        print_speed(f"({n},) float64", bound, functions, repeats=repeats)


def measure_interval(n: int, repeats: int) -> None:
    proba, y, _ = probabilities(n, 10, 4.0)
    rng = np.random.default_rng(0)

    def draws() -> None:
        for _ in range(1000):
            np.bincount(rng.integers(n, size=n), minlength=n)

    def anew(y: np.ndarray, proba: np.ndarray, **options: object) -> float:
        return metrics.expected_calibration_error(y, proba, **options)

    def interval(**options: object) -> tuple[float, float]:
        return metrics.calibration_error_interval(y, proba, **{"random_state": 0, **options})

    functions: Functions = {
        "draw the samples of 1000 resamples": draws,
        "bin sums": interval,
        "smooth": lambda: interval(metric=metrics.smooth_calibration_error),
        "metric anew on all columns": lambda: interval(metric=anew),
    }
    title = f"interval, 1000 resamples of ({n}, 10)"
    print_speed(title, next(iter(functions)), functions, repeats=min(repeats, 2))


def main() -> None:
    options = speed_options(__doc__)
    size, repeats = options.size, options.repeats
    measure_wide(size(50_000), 1000, repeats)
    measure_wide(size(2_000_000), 10, repeats)
    measure_wide(size(1000), size(21_841), repeats)
    measure_two_classes(size(1_000_000), repeats)
    measure_interval(size(10_000), repeats)


if __name__ == "__main__":
    main()
