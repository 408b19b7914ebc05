"""How often the intervals of the calibration error hold the true error, by simulation.

``python -m benchmarks.interval_coverage [--out FILE]``. The truth is the binned error of the
population. benchmarks/interval_coverage_results.json holds the table of the user guide.
"""

import argparse
import json
from pathlib import Path

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


def true_error(name: str) -> float:
    many = confidences(np.random.default_rng(0), 5_000_000)
    gap = np.bincount(bin_index(many, uniform_edges(N_BINS)), many - TRUTHS[name](many))
    return float(np.abs(gap).sum() / len(many))


def coverage(name: str, truth: float, n_samples: int) -> dict[str, float]:
    """Return the mean estimate, and the coverage and mean width of both intervals."""
    rng = np.random.default_rng(n_samples)
    covered, width = np.zeros((2, 2))
    estimate = 0.0
    for trial in range(N_TRIALS):
        p = confidences(rng, n_samples)
        y = (rng.random(n_samples) < TRUTHS[name](p)).astype(int)
        estimate += expected_calibration_error(y, p) / N_TRIALS
        for k, method in enumerate(("basic", "percentile")):
            low, high = calibration_error_interval(
                y, p, method=method, n_resamples=200, random_state=trial
            )
            # The truth of a perfectly calibrated population is 0 up to rounding.
            covered[k] += (low - 1e-12 <= truth <= high + 1e-12) / N_TRIALS
            width[k] += (high - low) / N_TRIALS
    return {
        "model": name, "samples": n_samples, "truth": truth, "mean_error": estimate,
        "basic": covered[0], "percentile": covered[1],
        "width_basic": width[0], "width_percentile": width[1],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON of all lines, written as they come")
    out = parser.parse_args().out
    print("fraction of 95 % intervals that contain the truth, and their mean width")
    print(f"{'model':<24}{'n':>6}{'truth':>8}{'estimate':>10}{'basic':>16}{'percentile':>16}")
    lines = []
    for name in TRUTHS:
        truth = true_error(name)
        for n_samples in (300, 2000, 10_000):
            line = coverage(name, truth, n_samples)
            cells = [
                f"{line[method]:8.3f}{line[f'width_{method}']:8.4f}"
                for method in ("basic", "percentile")
            ]
            error = f"{truth:8.4f}{line['mean_error']:10.4f}"
            print(f"{name:<24}{n_samples:>6}{error}{''.join(cells)}", flush=True)
            lines.append({k: v if isinstance(v, str) else round(v, 4) for k, v in line.items()})
            if out:
                out.write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
