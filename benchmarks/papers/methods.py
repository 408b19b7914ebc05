"""The methods: what each does with a task, and the candidates that it may choose from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from skcalib import losses

from .students import Plan


@dataclass(frozen=True)
class Method:
    """A name, the options to choose from, and the plan that they make of a task."""

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
    return Plan(losses.cross_entropy_loss, task.given, weight_decay=weight_decay)


def mixed(task, mixup_alpha):
    return Plan(losses.cross_entropy_loss, task.given, mixup_alpha=mixup_alpha)


def with_decay(method, weight_decay):
    """Return the method with weight decay besides, as the papers train everything."""

    def plan(task, weight_decay, **options):
        return replace(method.plan(task, **options), weight_decay=weight_decay)

    candidates = tuple({**one, "weight_decay": weight_decay} for one in method.candidates)
    return Method(method.name, plan, candidates)


def ranked(task, weight):
    loss = partial(losses.correctness_ranking_loss, weight=weight)
    return Plan(loss, task.given, uses_history=True)


def aware(source="RMD", scale="rank", control=None):
    """Difficulty-aware entropy regularization."""

    def plan(task, alpha, temperature):
        weights = task.weights(source, temperature=temperature, scale=scale, control=control)
        loss = partial(losses.difficulty_aware_loss, alpha=alpha)
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
        return Plan(losses.cross_entropy_loss, task.given, rows=rows)

    return plan


def cleaned(action):
    """Cross-entropy on labels cleaned by LabelIssueFinder; nothing is chosen."""

    def plan(task):
        issues, loss = task.finder.issues_, losses.cross_entropy_loss
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
    return Plan(losses.cross_entropy_loss, task.true)


CE = Method("cross-entropy", by_loss(losses.cross_entropy_loss))
DECAYS = (0.01, 0.03, 0.1, 0.3)
DECAY = Method("cross-entropy, weight decay", decayed, grid(weight_decay=DECAYS))
AWARE = tuple(
    {"temperature": t, "alpha": a} for t, a in ((0.1, 0.3), (0.1, 1.0), (0.3, 0.3), (0.3, 0.6))
)
# From the smallest alpha of the paper's Table 5 on. T = .3 and .1 are ours, for ranks.
AWARE_FROM_SMALL = tuple(
    {"temperature": t, "alpha": a} for t, a in ((0.3, 0.05), (0.3, 0.15), (0.3, 0.4), (0.1, 1.0))
)
MINMAX = tuple(
    {"temperature": t, "alpha": a} for t, a in ((0.7, 0.15), (0.7, 0.3), (0.3, 0.3), (0.3, 1.0))
)
FRACTIONS = grid(fraction=(0.05, 0.1, 0.2, 0.4))
GAMMAS = (0.5, 1.0, 2.0, 4.0)
LS = Method(
    "label smoothing",
    by_loss(losses.label_smoothing_loss),
    grid(alpha=(0.01, 0.03, 0.1, 0.2)),
)
FOCAL = Method("focal", by_loss(losses.focal_loss), grid(gamma=GAMMAS))

RMD = (
    CE,
    DECAY,
    LS,
    FOCAL,
    Method(
        "L1 of logits",
        by_loss(losses.logit_norm_loss),
        grid(alpha=(1e-4, 3e-4, 1e-3, 3e-3)),
    ),
    Method(
        "entropy regularization",
        by_loss(losses.entropy_regularized_loss),
        grid(alpha=(0.02, 0.05, 0.1, 0.2)),
    ),
    Method("Poly-1", by_loss(losses.poly_loss), grid(epsilon=(-0.5, 1.0, 2.0, 4.0))),
    Method("correctness ranking", ranked, grid(weight=(0.3, 0.5, 1.0, 3.0))),
    Method("difficulty-aware", aware(), AWARE),
    Method("difficulty-aware, min-max", aware(scale="minmax"), MINMAX),
    Method("difficulty-aware, shuffled", aware(control="shuffled"), AWARE),
    Method("difficulty-aware, inverted", aware(control="inverted"), AWARE),
    Method("drop the hardest", dropping(), FRACTIONS),
    Method("drop at random", dropping("random"), FRACTIONS),
    Method("label issues: drop", cleaned("drop")),
    Method("label issues: relabel", cleaned("relabel")),
    Method("label issues: soft", cleaned("soft")),
    Method("label issues: weight", cleaned("weight")),
    Method("true labels", oracle),
)

PAIRS = ((1.0, 0.5), (2.0, 1.0), (3.0, 2.0), (5.0, 3.0))
FLSD = grid(gammas=PAIRS)
GRA = (
    CE,
    DECAY,
    Method("Brier", by_loss(losses.brier_loss)),
    Method("MMCE", by_loss(losses.mmce_loss), grid(weight=(1.0, 2.0, 4.0, 8.0))),
    FOCAL,
    Method("FLSD", by_loss(losses.sample_dependent_focal_loss), FLSD),
    Method("FLSD-GRA", by_loss(losses.sample_dependent_focal_loss, detach_weight=True), FLSD),
    Method("dual focal", by_loss(losses.dual_focal_loss), grid(gamma=GAMMAS)),
    Method(
        "dual focal-GRA",
        by_loss(losses.dual_focal_loss, detach_weight=True),
        grid(gamma=GAMMAS),
    ),
    Method("BSCE", by_loss(losses.bsce_loss), grid(exponent=(0.5, 1.0, 2.0, 4.0))),
    Method("BSCE-GRA", by_loss(losses.bsce_gra_loss), grid(exponent=(0.5, 1.0, 2.0, 4.0))),
    Method("FLSD-53, as published", by_loss(losses.sample_dependent_focal_loss)),
    Method("dual focal 5, as published", by_loss(losses.dual_focal_loss)),
    Method("BSCE-GRA 4, as published", by_loss(losses.bsce_gra_loss)),
)


def _with(methods, grids, dropped=()):
    """Return the methods with other candidates where there are any, without those dropped."""
    return tuple(
        replace(method, candidates=grids.get(method.name, method.candidates))
        for method in methods
        if method.name not in dropped
    )


# Images: ten classes, and a student that is far more overconfident.
AWARE_IMAGES = tuple(
    {"temperature": t, "alpha": a} for t, a in ((0.1, 1.0), (0.3, 0.6), (0.3, 1.2), (0.3, 2.4))
)
GRIDS = {
    "cross-entropy, weight decay": grid(weight_decay=(0.1, 0.3, 1.0, 3.0)),
    "label smoothing": grid(alpha=(0.05, 0.1, 0.2, 0.3)),
    "L1 of logits": grid(alpha=(0.01, 0.03, 0.1, 0.3)),
    "entropy regularization": grid(alpha=(0.1, 0.2, 0.4, 0.8)),
    "correctness ranking": grid(weight=(0.5, 1.0, 3.0, 6.0)),
    **{name: AWARE_IMAGES for name in (m.name for m in RMD) if name.startswith("difficulty")},
}
RMD_IMAGES = _with(
    (*RMD[:9], Method("difficulty-aware by rotation", aware("RMD by rotation"), AWARE), *RMD[9:]),
    GRIDS | {"difficulty-aware by rotation": AWARE_IMAGES},
    (
        "difficulty-aware, min-max", "drop at random", "label issues: drop",
        "label issues: relabel", "label issues: weight",
    ),
)  # fmt: skip
GRA_IMAGES = _with(GRA, GRIDS)


def sources_of_weights(names, fraction):
    """Difficulty-aware training by every source, and dropping as many as are wrong."""
    for name in names:
        yield Method(f"difficulty-aware by {name}", aware(name), AWARE[::2])
        yield Method(f"drop by {name}", dropping(name), grid(fraction=(fraction,)))
