"""Post-hoc calibrators: temperature scaling in softmax passes, and all of them on real logits.

    python -m benchmarks.posthoc [--data DIR]

The bound is a softmax in cached blocks of rows; scipy's, which makes several passes through the
memory, is shown beside it. The stack stands beside its maps, and with --data beside the peers that
are installed (probmetrics).
"""

import numpy as np
from scipy.special import logsumexp, softmax

from benchmarks._timing import print_speed, speed_options
from benchmarks.calibrator_choice import attempt, functions, scored, stated
from benchmarks.prediction_sets import PredictionSet
from skcalib.datasets import make_predictions
from skcalib.metrics._temperature_fit import fit_temperature
from skcalib.posthoc import (
    MatrixScaling,
    StackedCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VectorScaling,
)
from skcalib.utils._numeric import compute_row_max, compute_row_sum, iter_blocks


def blocked_softmax(logits):
    out = np.empty_like(logits)
    for rows, block in iter_blocks(logits):
        terms = np.exp(block - compute_row_max(block)[:, None])
        np.divide(terms, compute_row_sum(terms)[:, None], out=out[rows])
    return out


def sample(n, k):
    y, proba, _ = make_predictions(n, n_classes=k, scale=1.2, temperature=2.5, random_state=0)
    return np.log(proba).astype(np.float32), y


def speed(n, k):
    logits, y = sample(n, k)
    timed = {
        "softmax in blocks": lambda: blocked_softmax(logits),
        "scipy.special.softmax": lambda: softmax(logits, axis=1),
        "search of the temperature alone": lambda: fit_temperature(logits, y, None, (1e-3, 1e3)),
        "TemperatureScaling.fit, log-loss": lambda: TemperatureScaling().fit(logits, y),
    }
    if n * k <= 10**7:
        ece = TemperatureScaling(criterion="ece")
        timed["TemperatureScaling.fit, ece (100 temperatures)"] = lambda: ece.fit(logits, y)
    print_speed(f"temperature scaling, ({n}, {k}) float32", "softmax in blocks", timed, repeats=3)


def stack(n, k):
    """The stack, its maps and the free ones, in fits of the temperature."""
    logits, y = sample(n, k)
    maps = [TemperatureScaling, StructuredVectorScaling, VectorScaling, MatrixScaling]
    maps += [StructuredMatrixScaling, StackedCalibration]
    timed = {f"{cls.__name__}.fit": lambda cls=cls: cls().fit(logits, y) for cls in maps}
    print_speed(f"maps, ({n}, {k})", "TemperatureScaling.fit", timed, repeats=3 if k < 100 else 1)


def quality(folder):
    """All calibrators and peers on the logits of a net: ten classes, and animals or vehicles."""
    with np.load(folder / "cifar10_resnet20_logits.npz") as data:
        logits, y = data["logits"].astype(np.float64), data["y"].astype(np.int64)
    animal = np.isin(np.arange(10), range(2, 8))
    log_odds = logsumexp(logits[:, animal], axis=1) - logsumexp(logits[:, ~animal], axis=1)
    order = np.random.default_rng(0).permutation(len(y))
    for what, scores, labels, k in (
        ("ten classes", logits, y, 10),
        ("animals or vehicles", log_odds, animal[y].astype(int), 2),
    ):
        found = PredictionSet(what, scores, labels, "logits", "open")
        for n in (500, 5000):
            fit, test = order[:n], order[5000:]
            print(f"\nResNet-20, shifted CIFAR-10, {what}: {n} samples to fit, 5000 to judge")
            print(f"  {'none':<40}{line(scored(labels[test], stated(found)[test]))}")
            for name, calibrated in functions(k).items():
                print(f"  {name:<40}{line(attempt(calibrated, found, fit, test, k))}")


def line(scores):
    return "log-loss {:.4f}, accuracy {:.4f}".format(*scores) if scores else "refused"


def main():
    options = speed_options(__doc__)
    size = options.size
    speed(size(1_000_000), 10)
    speed(size(50_000), size(1000))
    speed(size(10_000), 10)
    for n, k in ((1000, 2), (1000, 10), (5000, 20), (100_000, 10), (4000, 1000)):
        stack(size(n), min(k, size(k)))
    if options.data is not None and not options.small:
        quality(options.data)


if __name__ == "__main__":
    main()
