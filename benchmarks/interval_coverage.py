"""How often the intervals of the calibration error hold the true error, by simulation.

The truth is the binned error of the population: ``python -m benchmarks.interval_coverage``.
"""

import numpy as np

from skcalib.metrics import calibration_error_interval, expected_calibration_error
from skcalib.utils._binning import bin_index, uniform_edges

N_TRIALS = 200
N_BINS = 15
TRUTHS = {
    "perfectly calibrated": lambda c: c,
    "overconfident by .02": lambda c: np.clip(c - 0.02, 0, 1),
    "wavy": lambda c: np.clip(c + 0.05 * np.sin(12 * c), 0, 1),
    "overconfident": lambda c: c**1.8,
}


def confidences(rng: np.random.Generator, n_samples: int) -> np.ndarray:
    return 0.1 + 0.9 * rng.beta(5, 1.2, size=n_samples)


def main() -> None:
    rng = np.random.default_rng(0)
    print("fraction of 95 % intervals that contain the truth, and their mean width")
    print(f"{'model':<24}{'n':>6}{'truth':>8}{'estimate':>10}{'basic':>16}{'percentile':>16}")
    for name, accuracy in TRUTHS.items():
        many = confidences(rng, 5_000_000)
        gap = np.bincount(bin_index(many, uniform_edges(N_BINS)), many - accuracy(many))
        truth = np.abs(gap).sum() / len(many)
        for n_samples in (300, 2000, 10_000):
            covered, width = np.zeros((2, 2))
            estimate = 0.0
            for trial in range(N_TRIALS):
                p = confidences(rng, n_samples)
                y = (rng.random(n_samples) < accuracy(p)).astype(int)
                estimate += expected_calibration_error(y, p) / N_TRIALS
                for k, method in enumerate(("basic", "percentile")):
                    low, high = calibration_error_interval(
                        y, p, method=method, n_resamples=200, random_state=trial
                    )
                    # The truth of a perfectly calibrated population is 0 up to rounding.
                    covered[k] += low - 1e-12 <= truth <= high + 1e-12
                    width[k] += high - low
            cells = [f"{h / N_TRIALS:8.3f}{w / N_TRIALS:8.4f}" for h, w in zip(covered, width)]
            print(
                f"{name:<24}{n_samples:>6}{truth:8.4f}{estimate:10.4f}{''.join(cells)}", flush=True
            )


if __name__ == "__main__":
    main()
