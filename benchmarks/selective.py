"""Scores of uncertainty, selective prediction and detection against what they cannot avoid.

Per-sample scores: one logarithm of the array. Areas of a ranking: the maximum and its place in
every row, and one sort. Detection and decomposition: one sort.

    python -m benchmarks.selective
"""

import numpy as np

from benchmarks._timing import print_speed, speed_options
from skcalib import metrics


def of_probabilities(n, k, repeats):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(k), n).astype(np.float32)
    y, weight, confidence = rng.integers(0, k, n), rng.random(n), proba.max(axis=1)
    per_sample = {
        "np.log": lambda: np.log(proba),
        "predictive_entropy (validation included)": lambda: metrics.predictive_entropy(proba),
        "confidence_score": lambda: metrics.confidence_score(proba),
        "probability_margin": lambda: metrics.probability_margin(proba),
        "energy_score": lambda: metrics.energy_score(proba),
        "generalized_brier_score": lambda: metrics.generalized_brier_score(y, proba),
        "numpy: max(axis=1)": lambda: proba.max(axis=1),
        "numpy: two largest by np.partition": lambda: np.partition(proba, k - 2, axis=1),
    }
    print_speed(f"scores, ({n}, {k}) float32", "np.log", per_sample, repeats=repeats)
    bound = "numpy: max, argmax and argsort"
    areas = {
        bound: lambda: (proba.max(axis=1), proba.argmax(axis=1), np.argsort(confidence)),
        "area_under_risk_coverage": lambda: metrics.area_under_risk_coverage(y, proba),
        "  weighted": lambda: metrics.area_under_risk_coverage(y, proba, sample_weight=weight),
        "  generalized": lambda: metrics.area_under_generalized_risk_coverage(y, proba),
    }
    print_speed(f"areas, ({n}, {k}) float32", bound, areas, repeats=repeats)


def of_scores(n, repeats):
    rng = np.random.default_rng(0)
    inside, p = rng.integers(0, 2, n), rng.random(n)
    score, y = rng.normal(size=n) + inside, (rng.random(n) < p).astype(int)

    functions = {
        "np.argsort": lambda: np.argsort(score),
        "ood_report of one score: four measures": lambda: metrics.ood_report(inside, score),
        "score_decomposition, brier": lambda: metrics.score_decomposition(y, p),
        "  log_loss": lambda: metrics.score_decomposition(y, p, scoring_rule="log_loss"),
    }
    title = f"detection and decomposition, {n} float64 scores"
    print_speed(title, "np.argsort", functions, repeats=repeats)


def main():
    options = speed_options(__doc__)
    of_probabilities(options.size(1_000_000), 10, options.repeats)
    of_probabilities(options.size(50_000), 1000, options.repeats)
    of_scores(options.size(1_000_000), options.repeats)


if __name__ == "__main__":
    main()
