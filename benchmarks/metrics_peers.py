"""Every calibration metric beside its peers, on real predictions and where they differ.

    python -m benchmarks.metrics_peers --data DIR

The peers that are not installed are left out. A value that differs from ours by more than 1e-4
must carry its reason, or the script fails.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.calibration import calibration_curve

from skcalib.metrics import (
    calibration_error_interval,
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    ks_calibration_error,
    maximum_calibration_error,
    reliability_curve,
    smooth_calibration_error,
)

INTERPOLATED = "edges between observed values, not on them: samples on edges change bins"
HALF_COUNTED = "mass in the last grid cell, beside 1, is half-counted; bandwidth to 1e-3"
PERCENTILE = "percentiles of resamples, biased upwards; bins of equal weight; 100 resamples"
BEYOND = "confidences that float32 rounds to 1 are in a bin beyond the last"
FLOAT32 = "cumulative sums in float32"


# --- the peers, each imported where it is asked --------------------------------------------------


def torchmetrics(y: np.ndarray, proba: np.ndarray, norm: str = "l1", n_bins: int = 15) -> float:
    import torch
    from torchmetrics.functional import classification

    labels, p = torch.tensor(y, dtype=torch.int64), torch.tensor(proba)
    if proba.ndim == 1:
        return classification.binary_calibration_error(p, labels, n_bins, norm).item()
    error = classification.multiclass_calibration_error
    return error(p, labels, proba.shape[1], n_bins, norm).item()


def netcal(y: np.ndarray, proba: np.ndarray, name: str = "ECE", **options: Any) -> float:
    from netcal import metrics

    return getattr(metrics, name)(15, **options).measure(proba, y)


def netcal_by_column(y: np.ndarray, proba: np.ndarray, **options: Any) -> float:
    columns = range(proba.shape[1])
    return np.mean([netcal((y == k).astype(int), proba[:, k], **options) for k in columns])


def kumar(
    y: np.ndarray, proba: np.ndarray, p: int = 1, *, mode: str = "top-label",
    debias: bool = False, mass: bool = False,
) -> float:  # fmt: skip
    from calibration import utils

    scheme = utils.get_equal_bins if mass else utils.get_equal_prob_bins
    options = {"p": p, "debias": debias, "num_bins": 15, "binning_scheme": scheme, "mode": mode}
    return utils.lower_bound_scaling_ce(proba, y, **options)


def kumar_interval(y: np.ndarray, proba: np.ndarray) -> tuple[float, float]:
    import calibration

    np.random.seed(0)  # noqa: NPY002 - the peer draws from the global state
    options = {"p": 1, "alpha": 0.05, "mode": "top-label"}
    low, _, high = calibration.get_calibration_error_uncertainties(proba, y, **options)
    return low, high


def top_label(y: np.ndarray, proba: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (proba.argmax(axis=1) == y).astype(int), proba.max(axis=1)


def relplot(y: np.ndarray, proba: np.ndarray) -> float:
    import relplot as library

    correct, confidence = (y, proba) if proba.ndim == 1 else top_label(y, proba)
    return library.smECE(confidence, correct)


def probmetrics(y: np.ndarray, proba: np.ndarray) -> float:
    import torch
    from probmetrics.distributions import CategoricalProbs
    from probmetrics.metrics import KolmogorovSmirnovCalibrationMetric

    correct, p = top_label(y, proba)
    target = CategoricalProbs(torch.nn.functional.one_hot(torch.tensor(correct), 2).double())
    preds = CategoricalProbs(torch.tensor(np.column_stack([1 - p, p])))
    return KolmogorovSmirnovCalibrationMetric()._compute_mean(target, preds).item()


def scikit_learn(y: np.ndarray, proba: np.ndarray) -> float:
    return calibration_curve(*top_label(y, proba), n_bins=15)[0].mean()


# --- real predictions ----------------------------------------------------------------------------


def curve_mean(y: np.ndarray, proba: np.ndarray) -> float:
    curve = reliability_curve(*top_label(y, proba), n_bins=15)
    return curve.prob_true[curve.bin_weight > 0].mean()


QUANTILE = {"strategy": "quantile"}
MASS = {"equal_intervals": False}
MARGINAL = {"mode": "marginal"}
Peer = tuple[Callable[..., Any], dict[str, Any], str | None]
# Our metric, its options, and its peers: function, options, why its value differs if it does.
ROWS: list[tuple[Callable[..., Any], dict[str, Any], list[Peer]]] = [
    (expected_calibration_error, {},
     [(torchmetrics, {}, BEYOND), (netcal, {}, None), (kumar, {}, None)]),
    (expected_calibration_error, QUANTILE,
     [(netcal, MASS, INTERPOLATED), (kumar, {"mass": True}, INTERPOLATED)]),
    (expected_calibration_error, {"norm": "l2"},
     [(torchmetrics, {"norm": "l2"}, BEYOND), (kumar, {"p": 2}, None)]),
    (maximum_calibration_error, {},
     [(torchmetrics, {"norm": "max"}, BEYOND), (netcal, {"name": "MCE"}, None)]),
    (classwise_calibration_error, {},
     [(netcal_by_column, {}, None), (kumar, MARGINAL, None)]),
    (classwise_calibration_error, QUANTILE,
     [(netcal_by_column, MASS, INTERPOLATED), (kumar, MARGINAL | {"mass": True}, INTERPOLATED)]),
    (debiased_calibration_error, {}, [(kumar, {"p": 2, "debias": True}, None)]),
    (debiased_calibration_error, QUANTILE,
     [(kumar, {"p": 2, "debias": True, "mass": True}, INTERPOLATED)]),
    (smooth_calibration_error, {}, [(relplot, {}, HALF_COUNTED)]),
    (ks_calibration_error, {}, [(probmetrics, {}, FLOAT32)]),
    (curve_mean, {}, [(scikit_learn, {}, None)]),
    (calibration_error_interval, {"random_state": 0}, [(kumar_interval, {}, PERCENTILE)]),
]  # fmt: skip


def compare(title: str, y: np.ndarray, proba: np.ndarray) -> bool:
    """Print all metrics and their peers; return whether all differences are explained."""
    print(f"\n{title}: {len(y)} samples, {proba.shape[1]} classes, {proba.dtype}")
    explained = True
    for metric, options, peers in ROWS:
        ours = metric(y, proba, **options)
        print(f"  {named(metric, options):<52}{shown(ours)}")
        for peer, its_options, reason in peers:
            try:
                value = peer(y, proba, **its_options)
            except ImportError:
                continue
            note = ""
            if np.max(np.abs(np.subtract(value, ours))) > 1e-4:
                explained &= reason is not None
                note = f"  {reason or 'UNEXPLAINED'}"
            print(f"    {named(peer, its_options):<50}{shown(value)}{note}")
    return explained


def named(function: Callable[..., Any], options: dict[str, Any]) -> str:
    return ", ".join([function.__name__, *(str(v) for v in options.values() if v != 0)])


def shown(value: Any) -> str:
    return " ".join(f"{part:9.6f}" for part in np.atleast_1d(value))


# --- predictions whose calibration error is known ------------------------------------------------


def constructed() -> Iterator[tuple[str, float, Callable[..., Any], list[Callable[..., Any]]]]:
    """Yield (case, true error, our metric of it, the peers of it)."""

    def both(y: np.ndarray, proba: np.ndarray, metric: Any, *peers: Any) -> tuple[Any, list[Any]]:
        return partial(metric, y, proba), [partial(peer, y, proba) for peer in peers]

    certain = np.array([[0.97, 0.03], [1, 0], [1, 0], [1, 0]])
    ten_bins = partial(expected_calibration_error, n_bins=10)
    peer = partial(torchmetrics, norm="l1", n_bins=10)
    case = "Confidence of exactly 1 (10 bins)"
    yield case, 0.2425, *both(np.array([0, 0, 0, 1]), certain, ten_bins, peer)
    long = np.full(20_000_000, 0.92, dtype=np.float32)
    outcomes = np.arange(len(long)) % 10 != 0
    case = "20 000 000 samples of confidence .92 and accuracy .90, float32"
    yield case, 0.02, *both(outcomes, long, expected_calibration_error, torchmetrics)
    y, proba = rounded_predictions()
    true = expected_calibration_error(y, np.minimum(proba, 1))
    case = "Values of 1.00001 in 2744 samples of 10000, from rounding"
    yield case, true, *both(y, proba, expected_calibration_error, torchmetrics)
    p = np.repeat([0.0, 0.5], 50)
    y = np.concatenate([np.arange(50) < 10, np.arange(50) < 25]).astype(int)
    case = "Half of the samples at 0 of which 10 of 50 are positive, half calibrated"
    yield case, 0.1, *both(y, p, smooth_calibration_error, relplot)


def rounded_predictions() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(10, 0.1), size=10_000).astype(np.float32)
    y = np.array([rng.choice(10, p=row / row.sum()) for row in proba.astype(np.float64)])
    surest = np.argsort(-proba.max(axis=1))[:2744]
    top = proba[surest].argmax(axis=1)
    proba[surest] = 0
    proba[surest, top] = 1.00001
    return y, proba


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the real data")
    folder = parser.parse_args().data
    warnings.simplefilter("ignore")  # of the peers
    with np.load(folder / "cifar10_resnet20_logits.npz") as data:
        logits, y = data["logits"].astype(np.float64), data["y"]
    explained = compare("ResNet-20, CIFAR-10", y, softmax(logits, axis=1))
    with np.load(folder / "cifar10_test_pred_probs.npz") as data:
        proba, y = data["proba"].astype(np.float64), data["y"]
    proba /= proba.sum(axis=1, keepdims=True)  # the peers check sums more or less strictly
    explained &= compare("Out-of-fold probabilities, CIFAR-10", y, proba)
    for case, true, ours, peers in constructed():
        print(f"\n{case}; true: {true:.4f}, ours: {ours():.4f}")
        for peer in peers:
            try:
                print(f"    {peer.func.__name__}: {peer():.4f}")
            except ImportError:
                continue
    return not explained


if __name__ == "__main__":
    sys.exit(main())
