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

from functools import partial

import numpy as np
import torch
from scipy.stats import beta
from sklearn.base import BaseEstimator

from skcalib.difficulty import DifficultyMixin
from skcalib.difficulty.training_dynamics import area_under_margin, el2n
from skcalib.losses.functional import cross_entropy_loss
from skcalib.selection import DifficultySelector

from .claims import DIRECTION, OWN, about
from .measures import proba_of
from .methods import Method
from .needs import TEXTS
from .results import Part, Study, described
from .rmd import SETTINGS, flips_found
from .runner import compare
from .students import Plan, Trainer, logits_of
from .tables import FLIPS
from .texts import Clinc, text_task

NOISES = ("clean", "U20")
PRUNED = (0.3, 0.5, 0.7, 0.9)
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
    trainer = Trainer(task.net(), task.inputs["train"], plan, settings)
    return np.stack([
        proba_of(logits_of(trainer.net, task.inputs["train"]).numpy()).astype(np.float32)
        for _ in trainer.epochs(settings.n_epochs)
    ])  # fmt: skip


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


def kept_rows(task, score, pruned, options):
    """Return the samples that are left; the record of a training is made once for a task."""
    n_kept = round((1 - pruned) * len(task.given))
    rng = np.random.default_rng([task.seed, 7])
    if score == "random":
        return rng.permutation(len(task.given))[:n_kept]
    if not hasattr(task, "scores"):
        task.scores = scores(task, SETTINGS[100])
    if options.get("sampling") == "published":
        return as_published(task.scores, pruned, n_kept, rng)
    selector = DifficultySelector(Given(), n_samples=n_kept, random_state=task.seed, **options)
    return selector.fit(task.scores[score][:, None]).get_support(indices=True)


def as_published(found, pruned, n_kept, rng):
    """DUAL times a Beta density of the mean probability, which moves to easy ones."""
    score, mean = found["DUAL"], np.clip(found["mean probability"], 1e-6, 1 - 1e-6)
    b = 15 * (1 - mean[score.argmax()]) * (1 - pruned**4)  # the authors' 4 is for CIFAR-100
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


def pruning_methods(pruned):
    def plan_by(score, options):
        def plan(task):
            rows = np.sort(kept_rows(task, score, pruned, options))
            return Plan(cross_entropy_loss, task.given, rows=rows)

        return plan

    return [Method(name, plan_by(*how)) for name, how in WAYS.items()]


def run(options, records):
    clinc = Clinc(options.data, options.out)
    for noise in options.noise or NOISES:
        for seed in options.seeds:
            task = text_task(clinc, 100, noise, seed)
            for pruned in PRUNED:
                compare(
                    records, lambda seed, task=task: task, pruning_methods(pruned), SETTINGS[100],
                    f"{noise}, {100 * pruned:.0f} % pruned", [seed], every=True, stops=False,
                )  # fmt: skip
            if noise != "clean":
                key = {"setting": noise, "method": FLIPS, "seed": seed}
                records.get(key, partial(_flips, clinc, noise, seed))


def _flips(clinc, noise, seed):
    task = text_task(clinc, 20, noise, seed)
    values = scores(task, SETTINGS[20])
    values["mean margin"] = values.pop("AUM")
    values["mean probability"] *= -1
    values["label issues"] = -task.finder.issues_["p_label_correct"]
    return flips_found(task, noise, values)


PUBLISHED = "DUAL, beta as published"
_pruned = about("pruning", metric="accuracy")
_finds = about("pruning", "RMD", FLIPS, settings="flips, U20")
CLAIMS = (
    *(_pruned(f"With {labels} labels, {text}", method=method, rivals=rival,
              settings=[f"{noise}, {100 * pruned:.0f} % pruned" for pruned in PRUNED], paper=paper)
      for noise, labels in (("U20", "wrong"), ("clean", "true"))
      for text, method, rival, paper in (
          ("the easiest samples by RMD beat random ones.", "RMD, easiest", "random", OWN),
          ("strata of RMD beat random samples.", "RMD, stratified", "random", OWN),
          ("a Beta draw by RMD beats random samples.", "RMD, beta", "random", OWN),
          ("DUAL with its Beta draw beats random samples.", PUBLISHED, "random", DIRECTION),
          ("DUAL with its Beta draw beats a Beta draw by RMD, which needs no training.",
           PUBLISHED, "RMD, beta", OWN),
          ("DUAL with its Beta draw beats the highest DUAL scores.", PUBLISHED, "DUAL, highest",
           DIRECTION),
      )),
    *(_finds(f"RMD finds flipped labels better than {name} of a training.", rivals=name)
      for name in ("mean margin", "mean probability", "DUAL", "EL2N")),
    _finds("The finder does better than the mean margin.", rivals="mean margin",
           method="label issues"),
)  # fmt: skip

SHOWN = ("accuracy", "nll_scaled")
STUDY = Study(
    "pruning", {"pruning": Part(run, shown=SHOWN, files=TEXTS)}, CLAIMS, described(__doc__)
)
