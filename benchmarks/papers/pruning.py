"""Which samples to train on, once: [RMD] and records of a training as guides to pruning.

CLINC150, all 15 000 texts, true labels or a fifth of them flipped uniformly. A student of the
settings above learns what is left of them for 12 epochs. Difficulty is the relative Mahalanobis
distance of the sentence embeddings, or comes from the record of one training of the same student
on all texts: DUAL (mean over windows of five epochs of deviation times one minus mean of the
label's probability; Cho et al., ICML 2025) and the area under the margin. "Stratified" and "beta"
are those of `DifficultySelector`, the hardest tenth cut off with "stratified"; "DUAL, beta as
published" draws in proportion to the score and to a Beta density of the mean probability. As
finders of wrong labels, records come from 20 samples a class and 20 epochs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from scipy.stats import beta
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score

from skcalib.difficulty import DifficultyMixin, area_under_margin, el2n
from skcalib.losses import cross_entropy_loss
from skcalib.selection import DifficultySelector

from .compare import compare
from .measures import proba_of
from .methods import Method
from .records import Records
from .students import Plan, Settings, Trainer, logits_of
from .texts import Clinc, text_task

SETTINGS = {20: Settings(n_epochs=20), 100: Settings(n_epochs=12)}
PRUNED = (0.5, 0.7, 0.9)
WINDOW = 5


class Given(DifficultyMixin, BaseEstimator):
    """A scorer whose samples are their difficulties."""

    def fit(self, X, y=None):
        return self

    def difficulty(self, X, y=None):
        return X[:, 0]


def recorded(task, settings):
    """Return probabilities (epochs, n, K) that a student goes through."""
    torch.manual_seed(task.seed + 900)
    plan = Plan(cross_entropy_loss, task.given)
    trainer, epochs = Trainer(task.net(), task.inputs["train"], plan, settings), []
    for _ in range(settings.n_epochs):
        for batch in torch.randperm(len(task.given)).split(settings.batch_size):
            trainer.step(batch)
        logits = logits_of(trainer.net, task.inputs["train"]).numpy()
        epochs.append(proba_of(logits).astype(np.float32))
    return np.stack(epochs)


def dual(of_label):
    """DUAL from the probabilities of the label (epochs, n); larger = more worth training on."""
    windows = np.lib.stride_tricks.sliding_window_view(of_label, WINDOW, axis=0)
    return (windows.std(axis=-1, ddof=1) * (1 - windows.mean(axis=-1))).mean(axis=0)


def scores(task, settings):
    """Return difficulties by name, and the mean probability of the label."""
    proba, every = recorded(task, settings), np.arange(len(task.given))
    of_label = proba[:, every, task.given]
    return {
        "RMD": task.difficulty("RMD"),
        "DUAL": dual(of_label),
        "AUM": -area_under_margin(np.log(np.maximum(proba, 1e-12)), task.given),
        "EL2N": el2n(proba[len(proba) // 4], task.given),
        "mean probability": of_label.mean(axis=0),
    }


def _cached(task, settings):
    if not hasattr(task, "scores"):
        task.scores = scores(task, settings)
    return task.scores


def pruned_by(score, **options):
    def plan(task, pruned):
        n_kept = round((1 - pruned) * len(task.given))
        rng = np.random.default_rng([task.seed, 7])
        if score == "random":
            rows = rng.permutation(len(task.given))[:n_kept]
        elif options.get("sampling") == "published":
            rows = as_published(_cached(task, SETTINGS[100]), pruned, n_kept, rng)
        else:
            values = _cached(task, SETTINGS[100])[score]
            selector = DifficultySelector(
                Given(), n_samples=n_kept, random_state=task.seed, **options
            )
            rows = selector.fit(values[:, None]).get_support(indices=True)
        return Plan(cross_entropy_loss, task.given, rows=np.sort(rows))

    return plan


def as_published(found, pruned, n_kept, rng):
    """DUAL times a Beta density of the mean probability, which moves to easy ones (C = 15)."""
    score, mean = found["DUAL"], np.clip(found["mean probability"], 1e-6, 1 - 1e-6)
    b = 15 * (1 - mean[score.argmax()]) * (1 - pruned**2)
    log_weight = np.log(score + 1e-12) + beta.logpdf(mean, 15 - b, b)
    return np.argsort(-(log_weight + rng.gumbel(size=len(score))))[:n_kept]


WAYS = {
    "random": ("random", {}),
    "RMD, easiest": ("RMD", {}),
    "RMD, hardest": ("RMD", {"keep": "hardest"}),
    "RMD, stratified": ("RMD", {"sampling": "stratified", "cutoff": 0.1}),
    "RMD, beta": ("RMD", {"sampling": "beta"}),
    "DUAL, highest": ("DUAL", {"keep": "hardest"}),
    "DUAL, stratified": ("DUAL", {"sampling": "stratified"}),
    "DUAL, beta as published": ("DUAL", {"sampling": "published"}),
    "AUM, stratified": ("AUM", {"sampling": "stratified", "cutoff": 0.1}),
    "AUM, beta": ("AUM", {"sampling": "beta"}),
}
METHODS = tuple(Method(name, pruned_by(score, **how)) for name, (score, how) in WAYS.items())


def run(options):
    clinc, records = Clinc(options.data, options.out), Records(options.out / "pruning.jsonl")
    for noise in options.noise or ("clean", "U20"):
        tasks = {}

        def make(seed, noise=noise, tasks=tasks):
            # The record of a training is made once for all fractions.
            return tasks.setdefault(seed, text_task(clinc, 100, noise, seed))

        for pruned in PRUNED:
            methods = tuple(replace(m, candidates=({"pruned": pruned},)) for m in METHODS)
            setting = f"{noise}, {100 * pruned:.0f} % pruned"
            compare(
                records, make, methods, SETTINGS[100], setting, range(options.seeds), every=True,
                stops=False,
            )  # fmt: skip
        for seed in range(options.seeds):
            key = {"setting": noise, "method": "AUROC of flips", "seed": seed}
            if noise != "clean":
                records.get(key, partial(_flips, clinc, noise, seed))


def _flips(clinc, noise, seed):
    task = text_task(clinc, 20, noise, seed)
    found = scores(task, SETTINGS[20])
    found["mean margin"] = found.pop("AUM")
    found["mean probability"] *= -1
    found["label issues"] = -task.finder.issues_["p_label_correct"]
    wrong = task.given != task.true
    return {"auroc": {name: roc_auc_score(wrong, value) for name, value in found.items()}}
