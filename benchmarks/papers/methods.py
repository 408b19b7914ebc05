"""Methods: what each does with a task, and the candidates that it may choose from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from skcalib.losses import functional

from .students import Plan


@dataclass(frozen=True)
class Method:
    """A name, the plan that options make of a task, and the options to choose from."""

    name: str
    plan: Callable[..., Plan]
    candidates: tuple[dict, ...] = ({},)


def grid(**values):
    return tuple(dict(zip(values, chosen)) for chosen in product(*values.values()))


def by_loss(function, **fixed):
    def plan(task, **options):
        return Plan(partial(function, **fixed, **options), task.given)

    return plan


def decayed(task, weight_decay):
    return Plan(functional.cross_entropy_loss, task.given, weight_decay=weight_decay)


def mixed(task, mixup_alpha):
    return Plan(functional.cross_entropy_loss, task.given, mixup_alpha=mixup_alpha)


def penalized_logits(task, alpha):
    loss = partial(functional.logit_norm_loss, strength=alpha)
    return Plan(loss, task.given)


def ranked(task, weight):
    loss = partial(functional.correctness_ranking_loss, strength=weight)
    return Plan(loss, task.given, uses_history=True)


def aware(source="RMD", scale="rank", control=None):
    """Difficulty-aware entropy regularization."""

    def plan(task, alpha, temperature):
        weights = task.weights(source, temperature=temperature, scale=scale, control=control)
        loss = partial(functional.difficulty_aware_loss, alpha=alpha)
        return Plan(loss, task.given, per_sample={"difficulty_weight": weights})

    return plan


def dropping(source="RMD"):
    """Cross-entropy without the hardest fraction of the samples, or without random ones."""

    def plan(task, fraction):
        if source == "random":
            difficulty = np.random.default_rng([task.seed, 3]).random(len(task.given))
        else:
            difficulty = task.difficulty(source)
        n_kept = len(difficulty) - round(fraction * len(difficulty))
        rows = np.sort(np.argsort(difficulty, kind="stable")[:n_kept])
        return Plan(functional.cross_entropy_loss, task.given, rows=rows)

    return plan


def cleaned(action):
    """Cross-entropy on labels cleaned by LabelIssueFinder; nothing is chosen."""

    def plan(task):
        issues, loss = task.finder.issues_, functional.cross_entropy_loss
        issue = issues["is_issue"].astype(bool)
        if action == "drop":
            return Plan(loss, task.given, rows=np.flatnonzero(~issue))
        if action == "relabel":
            return Plan(loss, np.where(issue, issues["suggested_label"], task.given))
        if action == "weight":
            weight = np.maximum(issues["p_label_correct"], 1e-6)
            return Plan(loss, task.given, per_sample={"sample_weight": weight})
        return Plan(loss, task.finder.label_proba_.astype(np.float32))

    return plan


def oracle(task):
    return Plan(functional.cross_entropy_loss, task.true)


def with_decay(method, weight_decay):
    """Return the method with weight decay besides, as the papers train everything."""

    def plan(task, weight_decay, **options):
        return replace(method.plan(task, **options), weight_decay=weight_decay)

    candidates = tuple({**one, "weight_decay": weight_decay} for one in method.candidates)
    return Method(method.name, plan, candidates)


def with_candidates(methods, grids, dropped=()):
    """Return the methods with other candidates where there are any, without those dropped."""
    return tuple(
        replace(method, candidates=grids.get(method.name, method.candidates))
        for method in methods
        if method.name not in dropped
    )


GAMMAS = (0.5, 1.0, 2.0, 4.0)
CE = Method("cross-entropy", by_loss(functional.cross_entropy_loss))
DECAY = Method("cross-entropy, weight decay", decayed, grid(weight_decay=(0.01, 0.03, 0.1, 0.3)))
LS = Method(
    "label smoothing",
    by_loss(functional.label_smoothing_loss),
    grid(alpha=(0.01, 0.03, 0.1, 0.2)),
)
FOCAL = Method("focal", by_loss(functional.focal_loss), grid(gamma=GAMMAS))
ENTROPY = Method(
    "entropy regularization",
    by_loss(functional.entropy_regularized_loss),
    grid(alpha=(0.02, 0.05, 0.1, 0.2)),
)
# Candidates for images, where a student of ten classes is far more overconfident.
IMAGE_GRIDS = {
    DECAY.name: grid(weight_decay=(0.1, 0.3, 1.0, 3.0)),
    LS.name: grid(alpha=(0.05, 0.1, 0.2, 0.3)),
    ENTROPY.name: grid(alpha=(0.1, 0.2, 0.4, 0.8)),
    "L1 of logits": grid(alpha=(0.01, 0.03, 0.1, 0.3)),
    "correctness ranking": grid(weight=(0.5, 1.0, 3.0, 6.0)),
}
