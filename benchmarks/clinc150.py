"""Difficulty scorers on CLINC150 sentence embeddings: python -m benchmarks.clinc150 --data DIR.

DIR holds clinc150_minilm.npz and clinc150.json. Four tables: flipped training labels found, errors
of an independent classifier foreseen, error rate of ten groups of rising difficulty, and
out-of-scope queries detected.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from skcalib import difficulty
from skcalib.datasets import flip_labels
from skcalib.metrics import ood_report

LEVELS = (0.05, 0.1, 0.2, 0.4)


def scorers() -> dict:
    classifier = LogisticRegression(max_iter=200)
    return {
        "RMD": difficulty.RelativeMahalanobisScorer(),
        "Mahalanobis": difficulty.RelativeMahalanobisScorer(relative=False),
        "k-means": difficulty.KMeansPrototypeScorer(random_state=0),
        "loss, in-sample": difficulty.LossScorer(classifier),
        "loss, 5 folds": difficulty.LossScorer(classifier, cv=5),
    }


def flipped_labels(X: np.ndarray, y: np.ndarray) -> None:
    print("\nAUROC of flipped training labels" + "".join(f"{s:>9.0%}" for s in LEVELS))
    for name, scorer in scorers().items():
        values, start = [], time.perf_counter()
        for share in LEVELS:
            noisy, wrong = flip_labels(y, fraction=share, random_state=0)
            values.append(roc_auc_score(wrong, scorer.fit_difficulty(X, noisy)))
        seconds = (time.perf_counter() - start) / len(LEVELS)
        row = "".join(f"{v:9.3f}" for v in values)
        print(f"  {name:<30}{row}   ({seconds:.1f} s a fit)", flush=True)


def independent_errors(data: dict, texts: dict) -> None:
    train, _ = zip(*texts["train"])
    test, _ = zip(*texts["test"])
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))
    y_pred = model.fit(train, data["y_train"]).predict(test)
    y_test = data["y_test"]
    wrong = y_pred != y_test
    print(f"\nErrors of TF-IDF + logistic regression on the test texts: {wrong.mean():.3f}")
    print("  AUROC with the label of the row and without; error rate of ten groups, easiest first")
    ood = []
    for name, scorer in scorers().items():
        if name == "loss, 5 folds":
            continue
        scorer.fit(data["X_train"], data["y_train"])
        labeled = scorer.difficulty(data["X_test"], y_test)
        free = scorer.difficulty(data["X_test"])
        auroc = [roc_auc_score(wrong, d) for d in (labeled, free)]
        groups = difficulty.error_rate_by_difficulty(y_test, y_pred, labeled)
        shares = " ".join(f"{g:.3f}" for g in groups)
        print(f"  {name:<30}{auroc[0]:8.3f}{auroc[1]:8.3f}   {shares}", flush=True)
        ood.append((name, scorer))
    out_of_scope(data, ood)


def out_of_scope(data: dict, fitted: list) -> None:
    rows = np.vstack([data["X_test"], data["X_oos_test"]])
    inside = np.arange(len(rows)) < len(data["X_test"])
    report = ood_report(inside, {name: scorer.score_samples(rows) for name, scorer in fitted})
    print("\nOut-of-scope queries, by score_samples    FPR@95TPR   AUROC   AUPR in   AUPR out")
    for name, row in report.items():
        print(f"  {name:<36}" + "".join(f"{value:11.3f}" for value in row.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    with np.load(folder / "clinc150_minilm.npz") as archive:
        data = {n: v.astype("f4") if n.startswith("X_") else v for n, v in archive.items()}
    texts = json.loads((folder / "clinc150.json").read_text())
    independent_errors(data, texts)
    flipped_labels(data["X_train"], data["y_train"])


if __name__ == "__main__":
    main()
