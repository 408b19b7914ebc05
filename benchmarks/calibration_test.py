"""Level and power of ``calibration_test`` by simulation, beside tests of another library.

``python -m benchmarks.calibration_test [--out FILE]``. A table of how often calibration is
rejected at the level of .05: of calibrated models that should be .05, of others as often as
possible. MAPIE, with three tests of two classes, is optional.
benchmarks/calibration_test_results.json holds the table of the user guide.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import numpy as np
from scipy.special import softmax

from benchmarks._tables import study
from benchmarks.coverage import Samples, labels_of, one_column
from skcalib import metrics

N_TRIALS = 200
LEVEL = 0.05
# 5 of 100 values are at most .05: the level is exact where errors are not tied.
N_RESAMPLES = 99
N_CLASSES = 10


def confidences(rng: np.random.Generator, n_samples: int) -> np.ndarray:
    return 0.1 + 0.9 * rng.beta(5, 1.2, size=n_samples)


# p-values as functions of (y, p, seed).
Test = Callable[[np.ndarray, np.ndarray, int], float]


def ours(metric: Callable[..., float]) -> Test:
    def pvalue(y: np.ndarray, proba: np.ndarray, seed: int) -> float:
        labels = range(proba.shape[1]) if proba.ndim == 2 else None
        return metrics.calibration_test(
            y, proba, metric=metric, n_resamples=N_RESAMPLES, random_state=seed, labels=labels
        ).pvalue

    return pvalue


OF_CONFIDENCE = {
    "ECE": ours(metrics.expected_calibration_error),
    "debiased": ours(metrics.debiased_calibration_error),
    "KS": ours(metrics.ks_calibration_error),
    "smooth": ours(metrics.smooth_calibration_error),
}
OF_COLUMNS = {"classwise": ours(metrics.classwise_calibration_error)}


def peers() -> dict[str, Test]:
    found: dict[str, Test] = {}
    with suppress(ImportError):
        from mapie.metrics import calibration as mapie

        for name in ("kolmogorov_smirnov", "kuiper", "spiegelhalter"):
            function = getattr(mapie, f"{name}_p_value")
            found[f"mapie {name}"] = lambda y, p, _, f=function: f(y, p)
    return found


def of_ten_classes(temperature: float, rng: np.random.Generator, n: int) -> Samples:
    """Labels follow the softmax at a temperature, the model says 1."""
    logits = 2 * rng.normal(size=(n, N_CLASSES))
    return Samples(softmax(logits, axis=1), softmax(logits / temperature, axis=1))


def settings() -> Iterator[tuple[str, Callable[..., Samples], dict]]:
    for name, truth in (
        ("perfectly calibrated", lambda c: c),
        ("overconfident by .02", lambda c: c - 0.02),
        ("wavy", lambda c: c + 0.05 * np.sin(12 * c)),
    ):
        yield name, one_column(confidences, truth), {**OF_CONFIDENCE, **peers()}
    for name, temperature in (("ten classes, calibrated", 1.0), ("ten classes, T = 1.1", 1.1)):
        yield name, partial(of_ten_classes, temperature), {**OF_CONFIDENCE, **OF_COLUMNS}


def rejections() -> Iterator[dict]:
    """Yield how often every test rejects every model."""
    for n_samples in (300, 2000):
        for name, draw, tests in settings():
            rejected = dict.fromkeys(tests, 0)
            for trial in range(N_TRIALS):
                rng = np.random.default_rng([trial, n_samples])
                samples = draw(rng, n_samples)
                y = labels_of(samples.true, rng)
                for test, pvalue in tests.items():
                    rejected[test] += pvalue(y, samples.stated, trial) <= LEVEL
            for test, count in rejected.items():
                rate = count / N_TRIALS
                error = (rate * (1 - rate) / N_TRIALS) ** 0.5
                line = {"model": name, "samples": n_samples, "test": test}
                yield line | {"rejected": rate, "error": error}


if __name__ == "__main__":
    study(__doc__, rejections)
