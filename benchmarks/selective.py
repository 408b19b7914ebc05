"""Scores of uncertainty, selective prediction and detection against what they cannot avoid.

Per-sample scores: one logarithm of the array. Areas of a ranking: the maximum and its place in
every row, and one sort. Detection and decomposition: one sort. Peers are timed where installed.

    python -m benchmarks.selective
"""

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from benchmarks._timing import least_seconds, print_ratios
from skcalib.metrics import (
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    confidence_score,
    energy_score,
    generalized_brier_score,
    ood_report,
    predictive_entropy,
    probability_margin,
    score_decomposition,
)

try:
    import torch
    from torch_uncertainty.metrics.classification import AUGRC, AURC
except ImportError:
    AURC = None


def naive_entropy(proba):
    return -np.sum(np.where(proba > 0, proba * np.log(np.where(proba > 0, proba, 1)), 0), axis=1)


def torch_uncertainty_area(metric, y, proba):
    metric = metric()
    metric.update(torch.from_numpy(proba), torch.from_numpy(y))
    return float(metric.compute())


def per_sample_scores(n, k):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(k), n).astype(np.float32)
    y = rng.integers(0, k, n)
    seconds = least_seconds(
        {
            "np.log": lambda: np.log(proba),
            "predictive_entropy (validation included)": lambda: predictive_entropy(proba),
            "confidence_score": lambda: confidence_score(proba),
            "probability_margin": lambda: probability_margin(proba),
            "energy_score": lambda: energy_score(proba),
            "generalized_brier_score": lambda: generalized_brier_score(y, proba),
            "numpy: max(axis=1)": lambda: proba.max(axis=1),
            "numpy: entropy with a mask": lambda: naive_entropy(proba),
            "numpy: two largest by np.partition": lambda: np.partition(proba, k - 2, axis=1),
        }
    )
    print_ratios(f"per-sample scores, ({n}, {k}) float32", "np.log", seconds)


def areas(n, k):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(k), n).astype(np.float32)
    y = rng.integers(0, k, n)
    confidence = proba.max(axis=1)
    weight = rng.random(n)
    functions = {
        "numpy: max, argmax and argsort": lambda: (
            proba.max(axis=1),
            proba.argmax(axis=1),
            np.argsort(confidence),
        ),
        "area_under_risk_coverage (validation included)": lambda: area_under_risk_coverage(
            y, proba
        ),
        "area_under_risk_coverage, weighted": lambda: area_under_risk_coverage(
            y, proba, sample_weight=weight
        ),
        "area_under_generalized_risk_coverage": lambda: area_under_generalized_risk_coverage(
            y, proba
        ),
    }
    if AURC is not None:
        functions["torch-uncertainty: AURC"] = lambda: torch_uncertainty_area(AURC, y, proba)
        functions["torch-uncertainty: AUGRC"] = lambda: torch_uncertainty_area(AUGRC, y, proba)
    print_ratios(
        f"areas, ({n}, {k}) float32",
        "numpy: max, argmax and argsort",
        least_seconds(functions, repeats=5),
    )


def detection(n):
    rng = np.random.default_rng(0)
    inside = rng.integers(0, 2, n)
    score = rng.normal(size=n) + inside

    def scikit_learn():
        return (
            roc_curve(inside, score),
            roc_auc_score(inside, score),
            average_precision_score(inside, score),
            average_precision_score(1 - inside, -score),
        )

    seconds = least_seconds(
        {
            "np.argsort of the scores": lambda: np.argsort(score),
            "ood_report of one score: four measures": lambda: ood_report(inside, score),
            "scikit-learn: the same four measures": scikit_learn,
        },
        repeats=5,
    )
    print_ratios(f"detection, {n} float64 scores", "np.argsort of the scores", seconds)


def decomposition(n):
    rng = np.random.default_rng(0)
    proba = rng.random(n)
    y = (rng.random(n) < proba).astype(int)
    seconds = least_seconds(
        {
            "np.argsort of the forecasts": lambda: np.argsort(proba),
            "score_decomposition, brier": lambda: score_decomposition(y, proba),
            "score_decomposition, log_loss": lambda: score_decomposition(
                y, proba, scoring_rule="log_loss"
            ),
        },
        repeats=5,
    )
    print_ratios(f"decomposition, {n} forecasts", "np.argsort of the forecasts", seconds)


def main():
    per_sample_scores(1_000_000, 10)
    per_sample_scores(50_000, 1000)
    areas(1_000_000, 10)
    areas(50_000, 1000)
    detection(1_000_000)
    decomposition(1_000_000)


if __name__ == "__main__":
    main()
