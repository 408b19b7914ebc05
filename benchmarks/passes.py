"""Paths of the processor beside a bound of the same run: python -m benchmarks.passes.

A pass is the least, the sum and the labels of the maxima of the same probabilities, in float32; of
a batch it is the same sums in bare numpy, of a row the classifier's own, of a comparison one call
of the metric. Least processor seconds of one thread, taking turns. Writes
benchmarks/passes_results.json and the table of the guide, docs/measured/passes_results.inc.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from benchmarks._timing import least_seconds, peak_bytes, speed_options
from benchmarks.papers.tables import csv_table
from skcalib import metrics, posthoc
from skcalib.datasets import flip_labels
from skcalib.labels import LabelIssueFinder

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks/passes_results.json"
PAGE = ROOT / "docs/measured/passes_results.inc"
PASS = "min + sum + argmax"


def data(n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels, and overconfident probabilities in which every class occurs."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.standard_normal((n, n_classes), dtype=np.float32)
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    proba = np.exp(1.5 * (logits - logits.max(axis=1, keepdims=True)))
    return y, proba / proba.sum(axis=1, keepdims=True)


def flipped_data(n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels, a tenth of them wrong, and probabilities that are sure of most answers."""
    proba = data(n, n_classes)[1] ** 2
    proba /= proba.sum(axis=1, keepdims=True)
    y = (proba.cumsum(axis=1) > np.random.default_rng(1).random((n, 1))).argmax(axis=1)
    return flip_labels(y, fraction=0.1, random_state=0)[0], proba


def one_pass(proba: np.ndarray) -> None:
    proba.min(), proba.sum(), proba.argmax(axis=1)


def add_batch(y: np.ndarray, proba: np.ndarray, sums: np.ndarray) -> None:
    """Add the sums of a batch over bins, with the checks of the probabilities alone."""
    if proba.min() < 0 or np.abs(proba.sum(axis=1) - 1).max() > 1e-3:
        raise ValueError("no probabilities")
    label = proba.argmax(axis=1)
    confidence = proba[np.arange(len(proba)), label]
    index = np.minimum((confidence * 15).astype(np.intp), 14)
    for row, weight in zip(sums, (None, confidence, label == y)):
        row += np.bincount(index, weight, 15)


def repeat(call: Callable[[], object], times: int) -> Callable[[], None]:
    """Return a function long enough to be timed."""

    def many() -> None:
        for _ in range(times):
            call()

    return many


def paths(size: Callable[[int], int]) -> Iterator[tuple]:
    """Yield (path, size, bound, call of the bound, call, bytes of the input or None).

    A last number says how many times the bound is in its call.
    """
    for n, k in ((size(50_000), 1000), (size(200_000), 10)):
        y, proba = data(max(n, k), k)
        for name in ("refined_log_loss", "score_decomposition", "expected_calibration_error"):
            call = partial(getattr(metrics, name), y, proba)
            bound = partial(one_pass, proba)
            yield f"``{name}``", f"{len(y)} x {k}", PASS, bound, call, proba.nbytes
    for name in ("BetaCalibration", "EnsembleTemperatureScaling", "TemperatureScaling"):
        for n in (500, 1000, 2000, 30_000):
            y, proba = data(size(n), 10)
            fit = partial(getattr(posthoc, name)(input="proba").fit, proba, y)
            # Long enough to be timed.
            bound = repeat(partial(one_pass, proba), 100)
            yield f"``{name}.fit``", f"{n} x 10", PASS, bound, fit, proba.nbytes, 100
    for name, n, k in (
        ("VectorScaling", size(100_000), 10),
        ("StructuredVectorScaling", size(100_000), 10),
        ("MatrixScaling", size(100_000), 10),
        ("StructuredMatrixScaling", size(100_000), 10),
        ("StructuredMatrixScaling", 2000, size(1000)),
        ("StackedCalibration", size(100_000), 10),
        ("StackedCalibration", 2000, size(1000)),
    ):
        y, proba = data(n, k)
        fit = partial(getattr(posthoc, name)(input="proba").fit, proba, y)
        bound = repeat(partial(one_pass, proba), 10)
        yield f"``{name}.fit``", f"{n} x {k}", PASS, bound, fit, proba.nbytes, 10
    row = "``LabelIssueFinder.fit``, ready probabilities"
    for n, k in ((30_000, 10), (100_000, 10), (1_000_000, 10), (2000, 1000), (5000, 1000)):
        y, proba = flipped_data(size(n), k if k < 1000 else size(k))
        fit = partial(LabelIssueFinder("precomputed").fit, proba, y)
        bound = repeat(partial(one_pass, proba), 10)
        yield row, f"{len(y)} x {proba.shape[1]}", PASS, bound, fit, proba.nbytes, 10
    y, proba = data(1000, 10)
    models = {"first": proba, "second": data(1000, 10)[1][::-1]}
    compare = partial(
        metrics.compare_calibration, y, models, metric=log_loss, n_resamples=99, random_state=0
    )
    call = "a call of the metric"
    bound = repeat(partial(log_loss, y, proba), 20)
    row = "``compare_calibration`` by log-loss"
    yield row, "1000 x 10, 99 resamples", call, bound, compare, None, 20
    y, proba = data(256, 10)
    accumulator = metrics.CalibrationAccumulator().update(y, proba)
    bound = repeat(partial(add_batch, y, proba, np.zeros((3, 15))), 200)
    update = repeat(partial(accumulator.update, y, proba), 200)
    yield "``CalibrationAccumulator.update``", "256 x 10", "bare numpy", bound, update, None
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    labels = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    model = LogisticRegression().fit(X, labels)
    calibrated = posthoc.PostHocCalibratedClassifier(FrozenEstimator(model), "temperature")
    calibrated.fit(X, labels)
    row = "``PostHocCalibratedClassifier.predict_proba``"
    bound, call = (repeat(partial(m.predict_proba, X[:1]), 100) for m in (model, calibrated))
    yield row, "one row", "its logistic regression", bound, call, None
    y, proba = data(2000, 1000)
    isotonic = posthoc.IsotonicCalibration(input="proba").fit(proba, y)
    lines = [(m.X_thresholds_, m.y_thresholds_) for m in isotonic.calibrators_]
    values = proba[:1].astype(float)

    def interpolate() -> list:
        return [np.interp(values[:, k], *line) for k, line in enumerate(lines)]

    call = partial(isotonic.predict_proba, proba[:1])
    row = "``IsotonicCalibration.predict_proba``"
    yield row, "one row, K = 1000", "its interpolation", interpolate, call, None


def measure(size: Callable[[int], int], repeats: int) -> list[dict]:
    rows = []
    for name, sizes, of, bound, call, input_bytes, *count in paths(size):
        times = least_seconds({"bound": bound, "call": call}, repeats=repeats)
        ratio = times["call"] / times["bound"] * sum(count or [1])
        memory = peak_bytes(call) / input_bytes if input_bytes else None
        rows.append({
            "path": name, "size": sizes, "bound": of, "ratio": float(f"{ratio:.2g}"),
            "memory": None if memory is None else round(memory, 1),
        })  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def page(rows: list[dict]) -> str:
    cells = [
        [row["path"], row["size"], row["bound"], f"{row['ratio']:g}",
         "" if row["memory"] is None else f"{row['memory']:.1f}"]
        for row in rows
    ]  # fmt: skip
    header = ["path", "size", "bound", "times the bound", "memory / input"]
    return csv_table("", header, cells, widths="34 20 20 13 13") + "\n"


def main() -> None:
    options = speed_options(__doc__)
    rows = measure(options.size, options.repeats)
    if not options.small:
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
        PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
