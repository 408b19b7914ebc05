"""Every calibration metric beside its peers, on real predictions and where they differ.

    python -m benchmarks.metrics_peers --data DIR

The peers that are not installed are left out. A value that differs from ours by more than 1e-4
must carry its reason, or the script fails.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
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

try:
    import torch
    from torchmetrics.functional.classification import (
        binary_calibration_error,
        multiclass_calibration_error,
    )
except ImportError:
    torch = None
try:
    from netcal.metrics import ECE, MCE
except ImportError:
    ECE = None
try:
    import calibration as kumar  # uncertainty-calibration
except ImportError:
    kumar = None
try:
    import relplot
except ImportError:
    relplot = None
try:
    from probmetrics.distributions import CategoricalProbs
    from probmetrics.metrics import KolmogorovSmirnovCalibrationMetric
except ImportError:
    KolmogorovSmirnovCalibrationMetric = None

INTERPOLATED = "edges between observed values, not on them: samples on edges change bins"
HALF_COUNTED = "mass in the last grid cell, beside 1, is half-counted; bandwidth to 1e-3"
PERCENTILE = "percentiles of resamples, biased upwards; bins of equal weight; 100 resamples"
BEYOND = "confidences that float32 rounds to 1 are in a bin beyond the last"
FLOAT32 = "cumulative sums in float32"

Peer = tuple[str, Callable[[], Any], str | None]


def comparisons(y: np.ndarray, proba: np.ndarray) -> Iterator[tuple[str, Any, list[Peer]]]:
    """Yield (name, our value, peers); a peer has a name, a value and the reason it differs."""
    n_classes = proba.shape[1]
    confidence, correct = proba.max(axis=1), (proba.argmax(axis=1) == y).astype(int)

    def tm(norm: str) -> Callable[[], float]:
        preds, target = torch.tensor(proba), torch.tensor(y)
        return lambda: multiclass_calibration_error(preds, target, n_classes, 15, norm).item()

    def uc(p: int, mode: str, *, debias: bool, mass: bool) -> Callable[[], float]:
        scheme = kumar.utils.get_equal_bins if mass else kumar.utils.get_equal_prob_bins
        return lambda: kumar.utils.lower_bound_scaling_ce(
            proba, y, p=p, debias=debias, num_bins=15, binning_scheme=scheme, mode=mode
        )

    def by_column(peer: Any) -> Callable[[], float]:
        columns = range(n_classes)
        return lambda: np.mean([peer.measure(proba[:, k], (y == k).astype(int)) for k in columns])

    yield (
        "expected_calibration_error",
        expected_calibration_error(y, proba),
        [
            *with_peer(torch, "torchmetrics", lambda: tm("l1"), BEYOND),
            *with_peer(ECE, "netcal", lambda: lambda: ECE(15).measure(proba, y)),
            *with_peer(
                kumar,
                "uncertainty-calibration",
                lambda: uc(1, "top-label", debias=False, mass=False),
            ),
        ],
    )
    yield (
        "  quantile",
        expected_calibration_error(y, proba, strategy="quantile"),
        [
            *with_peer(
                ECE,
                "netcal",
                lambda: lambda: ECE(15, equal_intervals=False).measure(proba, y),
                INTERPOLATED,
            ),
            *with_peer(
                kumar,
                "uncertainty-calibration",
                lambda: uc(1, "top-label", debias=False, mass=True),
                INTERPOLATED,
            ),
        ],
    )
    yield (
        "  l2",
        expected_calibration_error(y, proba, norm="l2"),
        [
            *with_peer(torch, "torchmetrics", lambda: tm("l2"), BEYOND),
            *with_peer(
                kumar,
                "uncertainty-calibration",
                lambda: uc(2, "top-label", debias=False, mass=False),
            ),
        ],
    )
    yield (
        "maximum_calibration_error",
        maximum_calibration_error(y, proba),
        [
            *with_peer(torch, "torchmetrics", lambda: tm("max"), BEYOND),
            *with_peer(ECE, "netcal", lambda: lambda: MCE(15).measure(proba, y)),
        ],
    )
    yield (
        "classwise_calibration_error",
        classwise_calibration_error(y, proba),
        [
            *with_peer(ECE, "netcal, column by column", lambda: by_column(ECE(15))),
            *with_peer(
                kumar,
                "uncertainty-calibration",
                lambda: uc(1, "marginal", debias=False, mass=False),
            ),
        ],
    )
    yield (
        "  quantile",
        classwise_calibration_error(y, proba, strategy="quantile"),
        [
            *with_peer(
                ECE,
                "netcal, column by column",
                lambda: by_column(ECE(15, equal_intervals=False)),
                INTERPOLATED,
            ),
            *with_peer(
                kumar,
                "uncertainty-calibration",
                lambda: uc(1, "marginal", debias=False, mass=True),
                INTERPOLATED,
            ),
        ],
    )
    yield (
        "debiased_calibration_error",
        debiased_calibration_error(y, proba),
        with_peer(
            kumar, "uncertainty-calibration", lambda: uc(2, "top-label", debias=True, mass=False)
        ),
    )
    yield (
        "  quantile",
        debiased_calibration_error(y, proba, strategy="quantile"),
        with_peer(
            kumar,
            "uncertainty-calibration",
            lambda: uc(2, "top-label", debias=True, mass=True),
            INTERPOLATED,
        ),
    )
    yield (
        "smooth_calibration_error",
        smooth_calibration_error(y, proba),
        with_peer(
            relplot,
            "relplot, probmetrics",
            lambda: lambda: relplot.smECE(confidence, correct),
            HALF_COUNTED,
        ),
    )
    yield (
        "ks_calibration_error",
        ks_calibration_error(y, proba),
        with_peer(
            KolmogorovSmirnovCalibrationMetric,
            "probmetrics, of (correct, confidence)",
            lambda: lambda: kolmogorov_smirnov(correct, confidence),
            FLOAT32,
        ),
    )
    curve = reliability_curve(correct, confidence, n_bins=15)
    filled = curve.bin_weight > 0
    yield (
        "reliability_curve, mean accuracy of the bins",
        curve.prob_true[filled].mean(),
        with_peer(
            True,
            "scikit-learn",
            lambda: lambda: calibration_curve(correct, confidence, n_bins=15)[0].mean(),
        ),
    )
    yield (
        "calibration_error_interval",
        calibration_error_interval(y, proba, random_state=0),
        with_peer(
            kumar,
            "uncertainty-calibration",
            lambda: lambda: kumar_interval(y, proba),
            PERCENTILE,
        ),
    )


def with_peer(
    library: Any, name: str, make: Callable[[], Callable[[], Any]], reason: str | None = None
) -> list[Peer]:
    return [] if library is None else [(name, make(), reason)]


def kolmogorov_smirnov(correct: np.ndarray, confidence: np.ndarray) -> float:
    target = CategoricalProbs(torch.nn.functional.one_hot(torch.tensor(correct), 2).double())
    preds = CategoricalProbs(torch.tensor(np.column_stack([1 - confidence, confidence])))
    return KolmogorovSmirnovCalibrationMetric()._compute_mean(target, preds).item()


def kumar_interval(y: np.ndarray, proba: np.ndarray) -> tuple[float, float]:
    np.random.seed(0)  # noqa: NPY002 - the peer draws from the global state
    low, _, high = kumar.get_calibration_error_uncertainties(
        proba, y, p=1, alpha=0.05, mode="top-label"
    )
    return low, high


def compare(title: str, y: np.ndarray, proba: np.ndarray) -> bool:
    print(f"\n{title}: {len(y)} samples, {proba.shape[1]} classes, {proba.dtype}")
    explained = True
    for name, ours, peers in comparisons(y, proba):
        print(f"  {name:<52}{shown(ours)}")
        for peer, measure, reason in peers:
            value = measure()
            note = ""
            if np.max(np.abs(np.subtract(value, ours))) > 1e-4:
                explained &= reason is not None
                note = f"  {reason or 'UNEXPLAINED'}"
            print(f"    {peer:<50}{shown(value)}{note}")
    return explained


def shown(value: Any) -> str:
    return " ".join(f"{part:9.6f}" for part in np.atleast_1d(value))


def contrast(title: str, truth: float, values: dict[str, Callable[[], float]]) -> None:
    print(f"\n{title}; true: {truth:.4f}")
    for name, measure in values.items():
        print(f"    {name:<50}{shown(measure())}")


def constructed_cases() -> None:
    """Predictions whose calibration error is known, and what the libraries say."""
    if torch is not None:
        certain = np.array([[0.97, 0.03], [1, 0], [1, 0], [1, 0]])
        y = np.array([0, 0, 0, 1])
        contrast(
            "Confidence of exactly 1 (10 bins)",
            0.2425,
            {
                "ours": lambda: expected_calibration_error(y, certain, n_bins=10),
                "torchmetrics: a bin of its own beyond the last": lambda: (
                    multiclass_calibration_error(torch.tensor(certain), torch.tensor(y), 2, 10)
                ),
            },
        )
        long = np.full(20_000_000, 0.92, dtype=np.float32)
        outcomes = np.arange(len(long)) % 10 != 0
        contrast(
            "20 000 000 samples of confidence .92 and accuracy .90, float32",
            0.02,
            {
                "ours": lambda: expected_calibration_error(outcomes, long),
                "torchmetrics: sums in float32": lambda: binary_calibration_error(
                    torch.tensor(long), torch.tensor(outcomes, dtype=torch.int64), 15
                ),
            },
        )
        y, proba = rounded_predictions()
        contrast(
            "Values of 1.00001 in 2744 samples of 10000, from rounding",
            expected_calibration_error(y, np.minimum(proba, 1)),
            {
                "ours": lambda: expected_calibration_error(y, proba),
                "torchmetrics: takes all samples for logits, softmax": lambda: (
                    multiclass_calibration_error(torch.tensor(proba), torch.tensor(y), 10, 15)
                ),
            },
        )
    if relplot is not None:
        p = np.repeat([0.0, 0.5], 50)
        y = np.concatenate([np.arange(50) < 10, np.arange(50) < 25]).astype(int)
        contrast(
            "Half of the samples at 0 of which 10 of 50 are positive, half calibrated",
            0.1,
            {
                "ours": lambda: smooth_calibration_error(y, p),
                "relplot: half of the mass at 0 is lost": lambda: relplot.smECE(p, y),
            },
        )


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
        proba, y = data["proba"], data["y"]
    proba = proba.astype(np.float64)
    proba /= proba.sum(axis=1, keepdims=True)  # the peers check sums more or less strictly
    explained &= compare("Out-of-fold probabilities, CIFAR-10", y, proba)
    constructed_cases()
    return not explained


if __name__ == "__main__":
    sys.exit(main())
