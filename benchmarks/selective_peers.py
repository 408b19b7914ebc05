"""Every selective, detection and decomposition metric beside its peers, on real predictions.

    python -m benchmarks.selective_peers --data DIR

The peers that are not installed are left out. A value that differs from ours by more than 1e-4
carries the reason.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
    roc_curve,
)

from skcalib.metrics import (
    accuracy_at_coverage,
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    confidence_score,
    coverage_at_risk,
    energy_score,
    excess_area_under_risk_coverage,
    generalized_brier_score,
    max_logit_score,
    misclassification_report,
    predictive_entropy,
    probability_margin,
    score_decomposition,
)

try:
    import torch
    from torch_uncertainty.metrics import classification as torch_uncertainty
except ImportError:
    torch_uncertainty = None
try:
    from model_diagnostics.scoring import LogLoss, SquaredError, decompose
except ImportError:
    decompose = None
try:
    import torch
    from probmetrics.metrics import BrierLoss
except ImportError:
    BrierLoss = None

TRAPEZOID = "trapezium over n points, scaled to [1/n, 1]: half of the first and last risk missing"

OUT_OF_RANGE = "scikit-learn's isotonic fit merges forecasts next to 1 and leaves 1 out of range"


def load(folder):
    with np.load(folder / "cifar10_resnet20_logits.npz") as data:
        logits, y = data["logits"], data["y"].astype(np.int64)
    yield "cifar10_resnet20_logits", softmax(logits.astype(np.float64), axis=1), y, logits
    with np.load(folder / "cifar10_test_pred_probs.npz") as data:
        proba, y = data["proba"].astype(np.float64), data["y"].astype(np.int64)
    yield "cifar10_test_pred_probs", proba, y, None


def torch_peer(name, proba, y, **options):
    if torch_uncertainty is None:
        return None
    metric = getattr(torch_uncertainty, name)(**options)
    metric.update(torch.from_numpy(proba), torch.from_numpy(y))
    return float(metric.compute())


def selective_rows(proba, y):
    yield (
        "area_under_risk_coverage",
        area_under_risk_coverage(y, proba),
        {"torch-uncertainty AURC": torch_peer("AURC", proba, y)},
        TRAPEZOID,
    )
    # Rounded to float16, many predictions, correct or wrong, have confidence 1.
    rounded = proba.astype(np.float16).astype(np.float64)
    wrong, confidence = rounded.argmax(axis=1) != y, rounded.max(axis=1)
    yield (
        "area_under_risk_coverage, float16 probabilities",
        area_under_risk_coverage(y, rounded),
        {
            "torch-uncertainty AURC": torch_peer("AURC", rounded, y),
            "numpy, correct first in ties": mean_risk(wrong, np.lexsort([wrong, -confidence])),
            "numpy, wrong first": mean_risk(wrong, np.lexsort([~wrong, -confidence])),
        },
        "ties in one of their orders",
    )
    yield "excess_area_under_risk_coverage", excess_area_under_risk_coverage(y, proba), {}, ""
    yield (
        "area_under_generalized_risk_coverage",
        area_under_generalized_risk_coverage(y, proba),
        {"torch-uncertainty AUGRC": torch_peer("AUGRC", proba, y)},
        TRAPEZOID,
    )
    yield (
        "accuracy_at_coverage, 0.8",
        accuracy_at_coverage(y, proba, coverage=0.8),
        {"torch-uncertainty 1 - RiskAt80Cov": one_less(torch_peer("RiskAt80Cov", proba, y))},
        "",
    )
    yield (
        "coverage_at_risk, 0.05",
        coverage_at_risk(y, proba, risk=0.05),
        {"torch-uncertainty CovAt5Risk": torch_peer("CovAt5Risk", proba, y)},
        "it may stop within a tie",
    )


def mean_risk(wrong, order):
    return np.mean(np.cumsum(wrong[order]) / np.arange(1, len(order) + 1))


def one_less(value):
    return None if value is None else 1 - value


def detection_rows(proba, y):
    correct = (proba.argmax(axis=1) == y).astype(int)
    scores = {
        "msp": proba.max(axis=1),
        "entropy": predictive_entropy(proba) * -1,
        "margin": probability_margin(proba),
    }
    report = misclassification_report(y, proba)
    for name, score in scores.items():
        false, true, _ = roc_curve(correct, score, drop_intermediate=False)
        peers = {
            "fpr_at_tpr": {"scikit-learn roc_curve": false[true >= 0.95].min()},
            "auroc": {"scikit-learn roc_auc_score": roc_auc_score(correct, score)},
            "aupr_success": {"scikit-learn AP": average_precision_score(correct, score)},
            "aupr_error": {"scikit-learn AP": average_precision_score(1 - correct, -score)},
        }
        if torch_uncertainty is not None:
            metric = torch_uncertainty.FPR95(pos_label=1)
            metric.update(torch.from_numpy(score), torch.from_numpy(correct))
            peers["fpr_at_tpr"]["torch-uncertainty FPR95"] = float(metric.compute())
        for measure, value in report[name].items():
            yield f"misclassification_report, {name}, {measure}", value, peers[measure], ""


def score_rows(proba, y, logits):
    brier = generalized_brier_score(y, proba).mean()
    peers = {"scikit-learn": brier_score_loss(y, proba, scale_by_half=False)}
    peers["torch-uncertainty"] = torch_peer("BrierScore", proba, y, num_classes=proba.shape[1])
    if BrierLoss is not None:
        values = BrierLoss().compute_all_from_labels_probs(
            torch.from_numpy(y), torch.from_numpy(proba)
        )
        peers["probmetrics"] = float(next(iter(values.values())))
    yield "generalized_brier_score, mean", brier, peers, ""
    entropy = predictive_entropy(proba).mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        loop = float(np.mean(-np.nansum(proba * np.log(proba), axis=1)))
    yield "predictive_entropy, mean", entropy, {"numpy nansum": loop}, ""
    yield "confidence_score, mean", confidence_score(proba).mean(), {}, ""
    if logits is not None:
        wide = logits.astype(np.float64)
        expected = {"scipy logsumexp": logsumexp(wide, axis=1).mean()}
        yield "energy_score, mean", energy_score(logits).mean(), expected, ""
        yield "max_logit_score, mean", max_logit_score(logits).mean(), {}, ""


def decomposition_rows(proba, y):
    parts = ("miscalibration", "discrimination", "uncertainty", "score")
    for rule in ("brier", "log_loss"):
        ours = score_decomposition(y, proba, scoring_rule=rule, average=None)
        peers = [None] * 4
        if decompose is not None:
            function = SquaredError() if rule == "brier" else LogLoss()
            table = [
                decompose((y == k).astype(float), proba[:, k], scoring_function=function)
                for k in range(proba.shape[1])
            ]
            peers = [sum(t[column][0] for t in table) for column in parts]
        for name, value, peer in zip(parts, ours, peers):
            total = float(np.sum(value))
            yield (
                f"score_decomposition, {rule}, {name}",
                total,
                {"model-diagnostics": peer},
                OUT_OF_RANGE,
            )
    yield (
        "multi-class log-loss (for comparison)",
        log_loss(y, proba),
        {},
        "",
    )


def print_row(name, value, peers, reason):
    peers = {peer: other for peer, other in peers.items() if other is not None}
    shown = ", ".join(f"{peer} {other:.6f}" for peer, other in peers.items())
    differs = any(not abs(other - value) <= 1e-4 for other in peers.values())
    print(f"  {name:<52}{value:12.6f}   {shown}{'  <- ' + reason if differs else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    for name, proba, y, logits in load(parser.parse_args().data):
        print(f"\n{name}: {len(y)} samples, accuracy {np.mean(proba.argmax(axis=1) == y):.4f}")
        for comparisons in (
            selective_rows(proba, y),
            detection_rows(proba, y),
            score_rows(proba, y, logits),
            decomposition_rows(proba, y),
        ):
            for comparison in comparisons:
                print_row(*comparison)


if __name__ == "__main__":
    main()
