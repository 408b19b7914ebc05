"""
Confidence repaired by sample difficulty
========================================

A tenth of the training labels of the handwritten digits is flipped. The relative Mahalanobis
distance finds the flipped samples, and a loss that knows how hard each sample is keeps a small net
from being sure about them. Six losses are compared on samples that none of them has seen.

Progress is printed; a table and two pictures are written to ``demo_output/``.
"""

# %%
# Data
# ----
# Half of the 1797 digits are training samples; a tenth of their labels is replaced by another
# digit. A quarter has checked labels and serves to choose hyper-parameters and temperatures. The
# last quarter is only looked at in the table.
import csv
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from skcalib.datasets import flip_labels
from skcalib.difficulty import DifficultyAwareClassifier, RMDScorer, score_difficulty
from skcalib.losses import (
    BSCEGRALoss,
    CrossEntropyLoss,
    DifficultyAwareLoss,
    EntropyRegularizedLoss,
    FocalLoss,
    LabelSmoothingLoss,
)
from skcalib.metrics import expected_calibration_error
from skcalib.nets import MLP, CalibratedNetClassifier
from skcalib.plots import HardestSamplesDisplay, ReliabilityDisplay
from skcalib.posthoc import TemperatureScaling

FLIPPED = 0.10
N_SEEDS = 5
OUTPUT = Path("demo_output")
OUTPUT.mkdir(exist_ok=True)
torch.set_num_threads(1)
started = perf_counter()

words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
X, digit = load_digits(return_X_y=True)
y = np.array(words)[digit]
X_train, X_rest, y_true, y_rest = train_test_split(
    X, y, train_size=0.5, stratify=y, random_state=0
)
X_val, X_test, y_val, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
y_train, flipped = flip_labels(y_true, fraction=FLIPPED, random_state=0)
print(
    f"{len(y_train)} training samples, {flipped.sum()} of their labels flipped ({FLIPPED:.0%}); "
    f"{len(y_val)} validation and {len(y_test)} test samples with the true labels"
)

# %%
# How hard is each sample?
# ------------------------
# The relative Mahalanobis distance of a sample to the Gaussian of its label. Here the features are
# principal components; with photographs, the first step would be an embedder.
scorer = Pipeline([("pca", PCA(30, random_state=0)), ("rmd", RMDScorer())])
scorer.fit(X_train, y_train)
difficulty = score_difficulty(scorer, X_train, y_train)
hardest = np.argsort(-difficulty)[: flipped.sum()]
print(
    f"difficulty finds the flipped labels with AUROC {roc_auc_score(flipped, difficulty):.3f}; "
    f"{flipped[hardest].mean():.0%} of the {len(hardest)} hardest samples are flipped"
)
display = HardestSamplesDisplay.from_estimator(
    scorer,
    X_train,
    y_train,
    samples=X_train.reshape(-1, 8, 8),
    n_columns=10,
    name="The hardest and the easiest training samples: given label, number, difficulty",
)
display.figure_.savefig(OUTPUT / "hardest_digits.png", dpi=150)

# %%
# Choose alpha, T and gamma
# -------------------------
# One Pipeline serves all six losses. Difficulty weights are computed within each fit, from its
# training samples alone; the validation samples never enter them.
net = CalibratedNetClassifier(
    MLP,
    module__hidden=(256,),
    criterion=CrossEntropyLoss,
    optimizer=torch.optim.Adam,
    lr=1e-2,
    max_epochs=150,
    batch_size=64,
    train_split=None,
    device="cpu",
    random_state=0,
)
pipe = Pipeline([("scale", MinMaxScaler()), ("clf", net)])
strengths = [0.05, 0.1, 0.2, 0.3, 0.5]
grids = {
    "cross-entropy": {"clf__criterion": [CrossEntropyLoss]},
    "label smoothing": {
        "clf__criterion": [LabelSmoothingLoss],
        "clf__criterion__alpha": strengths,
    },
    "focal": {
        "clf__criterion": [FocalLoss],
        "clf__criterion__gamma": [0.5, 1.0, 2.0, 3.0, 5.0],
    },
    "constant entropy": {
        "clf__criterion": [EntropyRegularizedLoss],
        "clf__criterion__alpha": strengths,
    },
    "difficulty-aware": {
        "clf": [DifficultyAwareClassifier(net, scorer)],
        "clf__temperature": [0.3, 0.7, 1.5],
        "clf__estimator__criterion": [DifficultyAwareLoss],
        "clf__estimator__criterion__alpha": [*strengths, 1.0],
    },
    "BSCE-GRA": {
        "clf__criterion": [BSCEGRALoss],
        "clf__criterion__exponent": [0.5, 1.0, 2.0, 4.0],
    },
}
split = PredefinedSplit(np.repeat([-1, 0], [len(y_train), len(y_val)]))
X_search, y_search = np.concatenate([X_train, X_val]), np.concatenate([y_train, y_val])
best = {}
for name, grid in grids.items():
    search = GridSearchCV(
        pipe,
        grid,
        scoring="neg_log_loss",
        cv=split,
        refit=False,
        n_jobs=2,
    ).fit(X_search, y_search)
    best[name] = clone(pipe).set_params(**clone(search.best_params_, safe=False))
    chosen = {key.split("__")[-1]: v for key, v in search.best_params_.items() if np.isscalar(v)}
    print(
        f"{name:17s} {len(search.cv_results_['params']):2d} settings, "
        f"validation log-loss {-search.best_score_:.3f} {chosen or ''}"
    )

# %%
# Six losses on held-out samples
# ------------------------------
# The settings of least validation log-loss, trained from several seeds. ECE has 15 bins of equal
# mass and is that of the predictions of all seeds together, as in the picture below. Temperature
# scaling is fitted on the logits of the validation samples. The net is trained until it has
# memorized the flipped labels, which is what makes plain cross-entropy overconfident.


def with_seed(model, seed):
    seeds = {key: seed for key in model.get_params() if key.endswith("random_state")}
    return clone(model).set_params(**seeds)


def judge(model, seed):
    model = with_seed(model, seed).fit(X_train, y_train)
    scaler = TemperatureScaling().fit(model.decision_function(X_val), y_val)
    before = model.predict_proba(X_test)
    after = scaler.predict_proba(model.decision_function(X_test))
    result = {"accuracy": accuracy_score(y_test, model.predict(X_test))}
    for suffix, proba in [("", before), (" scaled", after)]:
        result[f"log-loss{suffix}"] = log_loss(y_test, proba, labels=model.classes_)
    return result | {"temperature": scaler.temperature_}, before, after


table, probabilities = [], {}
print(
    f"\nmean of {N_SEEDS} seeds (ECE: of all together), {len(y_test)} test samples; "
    "'scaled': after temperature scaling"
)
for name, model in best.items():
    judged = Parallel(n_jobs=2)(delayed(judge)(model, seed) for seed in range(N_SEEDS))
    results, before, after = zip(*judged)
    row = {key: np.mean([result[key] for result in results]) for key in results[0]}
    for suffix, proba in [("", before), (" scaled", after)]:
        row[f"ECE{suffix}"] = expected_calibration_error(
            np.tile(y_test, N_SEEDS), np.concatenate(proba), strategy="quantile"
        )
    probabilities[name] = np.concatenate(before)
    if not table:
        print("loss".ljust(17), *(f"{key:>15}" for key in row))
    print(name.ljust(17), *(f"{value:15.3f}" for value in row.values()), flush=True)
    table.append({"loss": name} | row)

with open(OUTPUT / "losses.csv", "w", newline="") as file:
    writer = csv.DictWriter(file, fieldnames=list(table[0]))
    writer.writeheader()
    writer.writerows(table)

# %%
# Reliability diagrams
# --------------------
# Before temperature scaling, the predictions of all seeds together. Below the diagonal, a net is
# more confident than it is correct.
figure, axes = plt.subplots(2, 3, figsize=(13, 11), layout="constrained")
for ax, (name, proba) in zip(axes.flat, probabilities.items(), strict=True):
    ReliabilityDisplay.from_predictions(
        np.tile(y_test, N_SEEDS), proba, strategy="quantile", name=name, ax=ax
    )
figure.savefig(OUTPUT / "reliability.png", dpi=100)
print(f"\nwritten to {OUTPUT.resolve()}: {', '.join(sorted(p.name for p in OUTPUT.iterdir()))}")
print(f"{perf_counter() - started:.0f} s")
