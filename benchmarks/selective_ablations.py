"""The study `selective` for benchmarks.ablations: what every number of the guarantee is worth.

Confidences are drawn from populations whose error rate above any threshold is known. A set says
how many samples are declined, in the mean over its draws, and how much more often than delta the
error rate of those that are accepted exceeds the promised one. Sets of single samples with
labels that people share count once more, as "declined of shares": bets are for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks._ablation import Loss, Rule, Study
from skcalib.selection._risk_control import control_risk

CONTROL = "skcalib.selection._risk_control."
DELTAS, N_DRAWS = (0.1, 0.01), 60
SIZES, RISKS = (100, 500, 2000), (0.05, 0.1)
N_OF_POPULATION = 200_000


class Kind(NamedTuple):
    """Samples alone, in groups that err together, or with labels that people share."""

    name: str
    group_size: int = 1
    together: float = 0.0  # correlation of the errors of a group
    shares: bool = False


KINDS = (
    Kind("alone"),
    Kind("groups of 5", 5, 0.3),
    Kind("groups of 10", 10, 0.8),
    Kind("groups of 25", 25, 0.5),
    Kind("shares", shares=True),
    Kind("shares in groups", 5, 0.3, shares=True),
)
# How often the model is wrong, by its confidence between 0 and 1 and the limit. The second always
# breaks the promise where it answers.
CURVES = {
    "errors fade": lambda u, risk: 0.4 * (1 - u) ** 2,
    "at the limit": lambda u, risk: np.full(len(u), 1.002 * risk),
    "errors stay": lambda u, risk: 0.02 + 0.3 * (1 - u),
}
# Single samples with shares meet more of them: errors of all kinds that fade.
FADING = {
    f"fading {number}": partial(
        lambda u, risk, a, b, c: a * risk + b * (1 - u) ** c, a=a, b=b, c=c
    )
    for number, (a, b, c) in enumerate(
        np.random.default_rng(45).uniform([0.1, 0.05, 1], [0.8, 0.8, 6], size=(14, 3))
    )
}


def drawn(kind, often, risk, n, rng):
    """Return confidences, who is right or the share of people who agree, and groups."""
    u = rng.random(n)
    groups = np.arange(n) // kind.group_size
    wrong = often(u, risk)
    if kind.together:
        # A group has a rank of its own, which its members take or draw anew.
        own = rng.random(n) < kind.together**0.5
        rank = np.where(own, rng.random(n)[groups], rng.random(n))
    else:
        rank = rng.random(n)
    if kind.shares:
        # 2 * wrong of the samples are disputed: there, five people disagree half the time.
        correct = 1 - rng.binomial(5, np.where(rank < 2 * wrong, 0.5, 0.0)) / 5
    else:
        correct = rank >= wrong
    return u, correct, groups if kind.group_size > 1 else None


def losses(folder: Path) -> Iterator[Loss]:
    """Yield the losses of all populations; no number was chosen on them."""
    u = np.sort(np.random.default_rng(0).random(N_OF_POPULATION))[::-1]
    curves = CURVES | FADING
    for curve, kind, n, risk, delta in product(curves, KINDS, SIZES, RISKS, DELTAS):
        alone = kind.name == "shares"
        if curve in FADING and not alone:
            continue
        true_rate = np.cumsum(curves[curve](u, risk)) / np.arange(1, len(u) + 1)
        rng, declined, exceeded = np.random.default_rng(0), [], []
        for _ in range(N_DRAWS):
            confidence, correct, groups = drawn(kind, curves[curve], risk, n, rng)
            found = control_risk(confidence, correct, risk=risk, delta=delta, groups=groups)
            accepted = int(np.searchsorted(-u, -found.threshold))
            declined.append(1 - accepted / len(u))
            exceeded.append(accepted > 0 and true_rate[accepted - 1] > risk)
        values = {
            "declined": float(np.mean(declined)),
            "exceeded": max(float(np.mean(exceeded)) - delta, 0.0),
        }
        if alone:
            values["declined of shares"] = values["declined"]
        yield Loss(f"{curve}, {kind.name}", True, values)


RULES = [
    Rule("_LARGEST_START", "how far sequences begin (here none)", {CONTROL + "_LARGEST_START": 0}),
    Rule("_FEWEST_THAT_ERR", "when groups count (here 1)", {CONTROL + "_FEWEST_THAT_ERR": 1}),
    Rule("_PRIOR_PART", "first bets (here .002)", {CONTROL + "_PRIOR_PART": 0.002}),
    Rule("_MOST_TESTED", "thresholds of losses (here 20)", {CONTROL + "_MOST_TESTED": 20}),
    Rule("n*", "groups as one sample each", {CONTROL + "_FEWEST_THAT_ERR": 10**9}),
]
STUDY = Study(RULES, losses)
