"""Where difficulty comes from: scores of the training samples of a task, larger = harder."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from skcalib.difficulty import (
    KMeansPrototypeScorer,
    LossScorer,
    RelativeMahalanobisScorer,
    cross_val_difficulty,
)
from skcalib.losses.functional import cross_entropy_loss

from .students import Plan, Settings, logits_of, train


def rmd_out_of_fold(task):
    folds = StratifiedKFold(5, shuffle=True, random_state=task.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # random flips may leave a class with less than five
        return cross_val_difficulty(
            RelativeMahalanobisScorer(), task.features, task.given, cv=folds
        )


def distance(*, relative=True, labeled=True, features="features"):
    """In-sample, as in the paper."""

    def score(task):
        X = getattr(task, features)
        scorer = RelativeMahalanobisScorer(relative=relative).fit(X, task.given)
        return scorer.difficulty(X, task.given if labeled else None)

    return score


def guided(features, *, relative=True):
    """Each sample scored without itself; shrunk, as features may be hardly fewer than samples."""

    def score(task):
        scorer = RelativeMahalanobisScorer(relative=relative, shrinkage="auto")
        return scorer.fit_difficulty(getattr(task, features), task.given)

    return score


def k_means(task):
    n_clusters = len(np.unique(task.given))
    scorer = KMeansPrototypeScorer(n_clusters=n_clusters, random_state=task.seed)
    return scorer.fit(task.features).difficulty(task.features)


def loss(cv):
    def score(task):
        scorer = LossScorer(LogisticRegression(C=10.0, max_iter=30), cv=cv)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not settled; classes of fewer samples than folds
            return scorer.fit_difficulty(task.features, task.given)

    return score


def own_loss(task):
    """Loss of the student itself after half of its epochs."""
    every = np.arange(len(task.given))
    return _student_loss(task, every, every)


def own_loss_out_of_fold(task):
    """Loss of students that have not seen the sample."""
    values = np.zeros(len(task.given))
    folds = StratifiedKFold(5, shuffle=True, random_state=task.seed)
    for rows, held_out in folds.split(task.given, task.given):
        values[held_out] = _student_loss(task, rows, held_out)
    return values


def _student_loss(task, rows, judged):
    target = torch.from_numpy(task.given)
    plan = Plan(cross_entropy_loss, target, rows=torch.from_numpy(rows))
    net = train(task, plan, Settings(n_epochs=10), seed=task.seed + 500, watch=False).net
    logits = logits_of(net, task.inputs["train"])[judged]
    return cross_entropy_loss(logits, target[judged], reduction="none").numpy()


def flipped(task):
    """The oracle: 1 for a wrong label."""
    return (task.given != task.true).astype(float)


# Guides to the difficulty of images: a network, and where a task has its features.
GUIDES = {
    "EfficientNet-Lite": "pretrained", "rotation": "rotation", "ResNet-20": "features",
}  # fmt: skip
# To that of training images: no network here learned the classes from all others of them.
OF_TRAINING = {**dict(list(GUIDES.items())[:2]), "ResNet-8": "features"}
BY_GUIDE = {
    f"{kind} by {name}, left out": guided(features, relative=kind == "RMD")
    for name, features in (GUIDES | OF_TRAINING).items()
    for kind in ("RMD", "Mahalanobis")
}
DIFFICULTIES = {
    "RMD": distance(),
    "RMD, out-of-fold": rmd_out_of_fold,
    "RMD without label": distance(labeled=False),
    "RMD by rotation": distance(features="rotation"),
    "Mahalanobis": distance(relative=False),
    "k-means": k_means,
    "loss, in-sample": loss(None),
    "loss, out-of-fold": loss(3),
    "own loss, in-sample": own_loss,
    "own loss, out-of-fold": own_loss_out_of_fold,
    "oracle": flipped,
} | BY_GUIDE
