"""How often the answers of a selective classifier exceed the promised error rate.

    python -m benchmarks.selective_guarantee [--data DIR] [--out FILE]

Calibration samples are drawn with replacement from a population whose error rate above every
threshold is therefore known: the 10 000 test images behind ``cifar10_resnet20_logits.npz`` where
`--data` holds it, the same with 1.5 % wrong labels, the same with confidences rounded to two
digits (ties), and a synthetic population without any data. Three rules choose the threshold: the
empirical risk (what ``coverage_at_risk`` invites), the exact tests in sequence, and SGR.
benchmarks/selective_guarantee_results.json holds the table of the user guide.
"""

from collections.abc import Iterator
from itertools import product
from math import ceil, log2
from pathlib import Path

import numpy as np
from scipy.special import softmax

from benchmarks._tables import shown, simple_table, study
from skcalib.selection._risk_control import compute_upper_bound, control_risk

N_SPLITS = 2000
DELTA = 0.1


def empirical_threshold(confidence: np.ndarray, correct: np.ndarray, risk: float) -> float:
    """Return the lowest threshold above which the observed error rate is within `risk`."""
    values, group = np.unique(-confidence, return_inverse=True)
    accepted = np.cumsum(np.bincount(group))
    errors = np.cumsum(np.bincount(group, ~correct))
    within = np.flatnonzero(errors <= risk * accepted)
    if not len(within):
        return np.inf
    last = within[-1]
    return -values[last + 1] if last + 1 < len(values) else -np.inf


def sgr_threshold(confidence: np.ndarray, correct: np.ndarray, risk: float) -> float:
    """Return the lowest threshold that a bisection finds below `risk` (Geifman and El-Yaniv 2017).

    It looks at ceil(log2 n) thresholds, each with a bound at delta divided by their number.
    """
    values, group = np.unique(-confidence, return_inverse=True)
    accepted = np.cumsum(np.bincount(group))
    errors = np.cumsum(np.bincount(group, ~correct)).astype(int)
    n_steps = max(1, ceil(log2(len(values))))
    best, low, high = -1, 0, len(values) - 1
    for _ in range(n_steps):
        middle = (low + high + 1) // 2
        if (
            compute_upper_bound(int(errors[middle]), int(accepted[middle]), DELTA / n_steps)
            <= risk
        ):
            best = low = middle
        else:
            high = max(middle - 1, 0)
    if best < 0:
        return np.inf
    return -values[best + 1] if best + 1 < len(values) else -np.inf


def populations(folder: Path | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    confidence = rng.random(20_000)
    found = {"synthetic": (confidence, rng.random(20_000) > 0.3 * (1 - confidence) ** 2)}
    if folder is None:
        return found
    stored = np.load(folder / "cifar10_resnet20_logits.npz")
    proba = softmax(stored["logits"].astype(np.float64), axis=1)
    confidence, correct = proba.max(axis=1), proba.argmax(axis=1) == stored["y"]
    wrong_label = rng.random(len(correct)) < 0.015
    return found | {
        "ResNet-20": (confidence, correct),
        "ResNet-20, ties": (confidence.round(2), correct),
        "ResNet-20, 1.5 % wrong labels": (confidence, correct & ~wrong_label),
    }


def simulate(
    confidence: np.ndarray, correct: np.ndarray, risk: float, n_samples: int
) -> dict[str, dict[str, float]]:
    """Return how often each rule exceeds `risk`, its mean coverage, and how often it declines."""
    rng = np.random.default_rng(1)
    order = np.argsort(confidence)
    ascending = confidence[order]
    errors_above = np.append(np.cumsum(~correct[order][::-1])[::-1], 0)
    outcomes: dict[str, list[tuple[bool, float]]] = {}
    for _ in range(N_SPLITS):
        rows = rng.integers(0, len(confidence), n_samples)
        sample = confidence[rows], correct[rows]
        thresholds = {
            "fixed_sequence": control_risk(*sample, risk=risk, delta=DELTA).threshold,
            "sgr": sgr_threshold(*sample, risk),
        }
        thresholds["empirical"] = empirical_threshold(*sample, risk)
        for rule, threshold in thresholds.items():
            start = int(np.searchsorted(ascending, threshold, side="right"))
            n_accepted = len(ascending) - start
            exceeded = n_accepted > 0 and errors_above[start] / n_accepted > risk
            outcomes.setdefault(rule, []).append((exceeded, n_accepted / len(ascending)))
    result = {}
    for rule, rows_of_rule in outcomes.items():
        exceeded, coverage = np.array(rows_of_rule, dtype=float).T
        error = np.sqrt(exceeded.mean() * (1 - exceeded.mean()) / N_SPLITS)
        found = {
            "exceeded": exceeded.mean(), "standard_error": error,
            "coverage": coverage.mean(), "nothing_answered": np.mean(coverage == 0),
        }  # fmt: skip
        result[rule] = {name: round(float(value), 4) for name, value in found.items()}
    return result


def guide_table(records: list[dict]) -> str:
    """Return the table of the user guide: how often each rule exceeds the risk (its coverage)."""
    rules = {"empirical threshold": "empirical", "fixed sequence": "fixed_sequence", "SGR": "sgr"}
    rows = [
        (
            shown(record["risk"], 2),
            str(record["n"]),
            *(
                f"{shown(record[rule]['exceeded'], 3)} ({shown(record[rule]['coverage'], 3)})"
                for rule in rules.values()
            ),
        )
        for record in records
        if record["population"] == "ResNet-20"
    ]
    return simple_table(("risk", "samples", *rules), rows)


def records(data: Path | None) -> Iterator[dict]:
    cases = product(populations(data).items(), (0.02, 0.05, 0.1), (200, 500, 2000, 5000))
    for (name, population), risk, n_samples in cases:
        rules = simulate(*population, risk, n_samples)
        yield {"population": name, "risk": risk, "n": n_samples, **rules}


if __name__ == "__main__":
    study(__doc__, records, data=None)
