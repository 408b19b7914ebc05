"""What the papers claim, as comparisons that the JSON files decide.

A claim names what is compared with what, where, in which metric and direction, and the effect that
the paper states; where it states none, the smallest effect of interest, one for all claims of a
metric. Every comparison has a 95 % interval of the differences paired by seed (Student's t), or of
a bootstrap. With the gain counted in the direction of the claim:

- holds: every interval is above zero. (Each has to be, so no correction is needed.)
- holds in part: some comparisons are significant in that direction after Holm's correction.
- does not hold here: every interval excludes the effect, from below.
- undecided: some interval holds zero and the effect. More seeds would decide.

A claim that nothing is lost holds where every interval excludes a loss of that size, and does not
hold where all show a loss that may be as large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from skcalib.utils._groups import holm

from .statistics import interval
from .tables import CALIBRATION, COLUMNS, LEVEL, NONE, Column

VERDICTS = ("holds", "holds in part", "undecided", "does not hold here", "not testable here")
METRICS = {column.metric: column for column in (*COLUMNS, *CALIBRATION)} | {
    "ECE": Column("ECE", "ECE, %", 100, 1, -1),
    "AUROC of flips": Column("", "AUROC of flips, %", 100, 1, 1),
    "gain": Column("gain", "Spearman", 1, 3, 1),
    "value": Column("value", "Spearman or accuracy", 1, 3, 1),
    "correlation": Column("correlation", "correlation", 1, 3, 1),
    "range of ece": Column("", "range of the ECE, %", 100, 1, -1),
    "log margin": Column("log margin", "logarithm of the median input margin", 1, 2, 1),
    "depth": Column("depth", "mean depth, layers", 1, 2, -1),
}
# The smallest effects of interest, in the units of the columns.
OF_INTEREST = {
    "accuracy": 1.0, "ece": 1.0, "ece_scaled": 1.0, "ECE": 1.0, "classwise": 0.05, "nll": 0.02,
    "nll_scaled": 0.02, "aurc": 0.5, "errors_auroc": 1.0, "ood_auroc": 1.0, "human_kl": 0.02,
    "human_kl_scaled": 0.02, "AUROC of flips": 1.0, "gain": 0.02, "value": 0.1,
    "correlation": 0.01, "range of ece": 1.0, "log margin": 0.1, "depth": 0.1,
}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """`method` against every one of `rivals`, or against zero, in every one of `settings`."""

    text: str
    part: str  # of the study: the file with the results
    method: str
    rivals: tuple[str, ...]
    metric: str
    settings: tuple[str, ...]
    point: str = "last"
    # The metric of the rivals where it is another one: before scaling against after.
    rival_metric: str = ""
    # Replaces the direction of the metric: 1 where the claim says "larger".
    better: int = 0
    # What the paper finds, in the unit of the column and in words.
    effect: float = 0.0
    paper: str = ""
    # Whether the claim is that no more than the effect is lost.
    no_loss: bool = False
    # The setting of the overview, where the claim is one of its lines.
    headline: str = ""
    # Why nothing here can test it.
    reason: str = ""


def about(part, method="", metric="", rivals=(), settings=()):
    """Return a function that makes claims about a part, these values being its defaults.

    A single rival or setting may stand as a string.
    """

    def claim(text, metric=metric, rivals=rivals, settings=settings, method=method, **options):
        rivals, settings = ((v,) if isinstance(v, str) else tuple(v) for v in (rivals, settings))
        return Claim(text, part, method, rivals, metric, settings, **options)

    return claim


def untested(text, reason):
    """Return a claim that nothing here can test, and why."""
    return Claim(text, "", "", (), "accuracy", (), reason=reason)


class Result(NamedTuple):
    """A comparison: mean and 95 % interval of the gain, in the unit of the column."""

    setting: str
    rival: str
    mean: float
    low: float
    high: float
    p: float


class Judgement(NamedTuple):
    """A verdict, the comparisons behind it, and what they are of."""

    verdict: str
    results: list[Result]
    column: Column
    effect: float


def judge(claim, settings):
    """Judge a claim by the settings of its study."""
    column = METRICS[claim.metric]
    column = replace(column, better=claim.better or column.better)
    effect = claim.effect or OF_INTEREST[claim.metric]
    names = {claim.method, *claim.rivals}
    results = [
        _result(claim, settings[setting], setting, rival, column)
        for setting in claim.settings
        if names <= settings.get(setting, {}).keys()
        for rival in claim.rivals or ("",)
    ]
    if not results:
        return Judgement("not testable here", [], column, effect)
    return Judgement(verdict_of(results, effect, claim.no_loss), results, column, effect)


def _result(claim, methods, setting, rival, column):
    values = methods[claim.method][claim.point][claim.metric]
    if claim.metric == "gain":  # (mean, standard error) of a bootstrap
        mean, low, high, p = interval(None, mean_and_error=values)
    elif rival:
        other = methods[rival][claim.point][claim.rival_metric or claim.metric]
        n = min(len(values), len(other))
        mean, low, high, p = interval(np.subtract(values[:n], other[:n]))
    else:
        mean, low, high, p = interval(np.asarray(values, dtype=float))
    scale = column.factor * column.better
    return Result(setting, rival, scale * mean, *sorted((scale * low, scale * high)), p)


def verdict_of(results, effect, no_loss):
    if no_loss:
        holds = [r.low > -effect for r in results]
        fails = [r.high < 0 and r.low <= -effect for r in results]
        part = holds
    else:
        holds = [r.low > 0 for r in results]
        fails = [r.high < effect for r in results]
        adjusted = holm(np.array([r.p for r in results]))
        part = [r.mean > 0 and p < LEVEL for r, p in zip(results, adjusted)]
    if all(holds):
        return "holds"
    if any(part):
        return "holds in part"
    return "does not hold here" if all(fails) else "undecided"


def number(value, column):
    return f"{value:+.{column.digits}f}"


def written(result, column):
    """Return "+1.2 [+0.3, +2.1]"."""
    mean, low, high = (number(v, column) for v in (result.mean, result.low, result.high))
    return f"{mean} [{low}, {high}]"


def hardest(judgement):
    """Return one result a setting: of several rivals the one that is hardest to beat."""
    by_setting = {r.setting: r for r in sorted(judgement.results, key=lambda r: -r.low)}
    return [by_setting[s] for s in dict.fromkeys(r.setting for r in judgement.results)]


def sentence(claim, judgement):
    """Return what was found, by setting."""
    if not judgement.results:
        return claim.reason or "these runs were not made"
    column, parts = judgement.column, []
    for least in hardest(judgement):
        here = [r for r in judgement.results if r.setting == least.setting]
        text = f"{least.setting}: {written(least, column)}"
        if len(here) > 1:
            better, worse = sum(r.low > 0 for r in here), sum(r.high < 0 for r in here)
            text += f" against {least.rival}; above {better} and below {worse} of {len(here)}"
        parts.append(text)
    return f"{column.header}; " + "; ".join(parts)


def stated(claim, judgement):
    """Return what the paper finds, or the effect that is asked for."""
    if claim.reason:
        return NONE
    unit = number(judgement.effect, judgement.column).lstrip("+")
    if claim.no_loss:
        return claim.paper or f"lost less than {unit}"
    return claim.paper or f"of interest: {unit}"
