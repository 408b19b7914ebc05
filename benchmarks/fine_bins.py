"""Do intervals hold with more bins than the samples fill?  ``python -m benchmarks.fine_bins``.

With one sample in a bin, the bootstrap sees none of its noise, so that the lower end of an
interval may lie above the true error. It is taken from larger bins instead. Here are intervals
with larger bins of several sizes, and without any. The truth is the error of a large population
in the same bins. The models and sizes are not those that chose the size of the larger bins.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

from benchmarks._ablation import Rule, switched_off
from benchmarks._tables import keep, shown, simple_table
from skcalib.metrics import calibration_error_interval

N_POPULATION = 2_000_000
N_RESAMPLES = 200
N_SAMPLES = 600
# Samples in a bin, on average.
PER_BIN = (5, 2, 0.5)
# Samples that the larger bins hold on average; 0 takes none together.
LARGER = (0, 5, 10, 20, 40)
MODELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "underconfident": lambda p: expit(1.3 * logit(p)),
    "overconfident": lambda p: expit(0.7 * logit(p)),
    "too high": lambda p: np.clip(p - 0.08, 0, 1),
    "waves": lambda p: np.clip(p + 0.07 * np.sin(9 * np.pi * p), 0, 1),
}


def confidences(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw probabilities that are most often small."""
    return rng.beta(1.2, 2.5, n)


def true_error(stated: np.ndarray, true: np.ndarray, n_bins: int, norm: str) -> float:
    """Return the error of a population, from the gaps in its bins."""
    index = np.minimum((stated * n_bins).astype(int), n_bins - 1)
    mass = np.bincount(index, minlength=n_bins) / len(stated)
    gap = np.bincount(index, stated - true, minlength=n_bins) / len(stated)
    if norm == "l1":
        return float(np.abs(gap).sum())
    return float(np.sqrt((gap**2 / np.where(mass, mass, 1)).sum()))


def rows(n_draws: int) -> Iterator[dict[str, Any]]:
    """Yield for every setting how often the truth lies beyond either end."""
    population = confidences(np.random.default_rng(1), N_POPULATION)
    for norm in ("l1", "l2"):
        for per_bin in PER_BIN:
            n_bins = round(N_SAMPLES / per_bin)
            for name, truth in MODELS.items():
                error = true_error(population, truth(population), n_bins, norm)
                for larger in LARGER:
                    off = {"skcalib.metrics._intervals._FEWEST_PER_BIN": larger}
                    with switched_off(Rule("", "", off)):
                        low, high = ends(truth, n_bins, norm, n_draws)
                    yield {
                        "norm": norm, "per_bin": per_bin, "model": name, "larger": larger,
                        "draws": n_draws, "truth": error, "truth_below": (error < low).mean(),
                        "truth_above": (error > high).mean(), "low": low.mean(),
                        "high": high.mean(),
                    }  # fmt: skip


def ends(
    truth: Callable[[np.ndarray], np.ndarray], n_bins: int, norm: str, n_draws: int
) -> np.ndarray:
    """Return the ends of the intervals of all draws, each (n_draws,)."""
    found = []
    for draw in range(n_draws):
        rng = np.random.default_rng([draw, n_bins])
        stated = confidences(rng, N_SAMPLES)
        y = (rng.random(N_SAMPLES) < truth(stated)).astype(int)
        found.append(
            calibration_error_interval(
                y, stated, n_bins=n_bins, norm=norm, n_resamples=N_RESAMPLES, random_state=draw
            )
        )
    return np.transpose(found)


def table(lines: list[dict[str, Any]]) -> str:
    """Return the table of the guide: how often the lower end fails at most, over the models."""
    head = ("norm", "samples in a bin", *(f"{n} together" if n else "as they are" for n in LARGER))
    shown_rows = []
    for norm, per_bin in dict.fromkeys((row["norm"], row["per_bin"]) for row in lines):
        cells = []
        for larger in LARGER:
            which = norm, per_bin, larger
            of_cell = [r for r in lines if (r["norm"], r["per_bin"], r["larger"]) == which]
            cells.append(shown(max(r["truth_below"] for r in of_cell), 2))
        shown_rows.append((norm, f"{per_bin:g}", *cells))
    return simple_table(head, shown_rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--out", type=Path, help="JSON of all lines, written as they come")
    arguments = parser.parse_args()
    keep(rows(arguments.draws), arguments.out)


if __name__ == "__main__":
    main()
