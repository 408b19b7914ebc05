"""What the papers claim, as comparisons that the JSON files decide.

A claim names what is compared with what, where, in which metric and direction, and the effect that
the paper states; where it states none, the smallest effect of interest, one for all claims of a
metric. Every comparison has a 95 % interval of the differences paired by seed (Student's t), or of
a bootstrap. With the gain counted in the direction of the claim:

- holds: every interval is above zero. (Each has to be, so no correction is needed.)
- holds in part: some comparisons are significant in that direction after Holm's correction.
- does not hold here: every interval excludes the effect, from below.
- undecided: else, mostly because an interval holds zero and the effect. More seeds would decide.

For a claim that less than an amount is lost, that loss takes the place of zero and of the effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from skcalib.utils.checking._groups import holm

from .statistics import interval
from .tables import CALIBRATION, COLUMNS, LEVEL, NONE, Column

# What stands for the figure of a paper: it has none, or never asked.
DIRECTION, OWN = "direction only", "our question"
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
# Whose change in percent is written, too: papers have other networks and data.
RELATIVE = ("ece", "ece_scaled", "ECE", "classwise")


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
    # The effect in the unit of the column, if not the one of interest; what the paper finds.
    effect: float = 0.0
    paper: str = OWN
    # Whether the claim is that no more than the effect is lost.
    no_loss: bool = False
    # The setting of the overview, where the claim is one of its lines.
    headline: str = ""
    # Why nothing here can test it.
    reason: str = ""


def about(part, method="", metric="", rivals=(), settings=(), **defaults):
    """Return a function that makes claims about a part, these values being its defaults.

    A single rival or setting may stand as a string.
    """

    def claim(text, metric=metric, rivals=rivals, settings=settings, method=method, **options):
        rivals, settings = ((v,) if isinstance(v, str) else tuple(v) for v in (rivals, settings))
        return Claim(text, part, method, rivals, metric, settings, **(defaults | options))

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
    p: float  # that there is no gain, or that all of the amount is lost
    n_seeds: int = 0
    change: float = np.nan  # as a fraction of what the rival has


class Judgement(NamedTuple):
    """A verdict, the comparisons behind it, and what they are of."""

    verdict: str
    results: list[Result]
    column: Column
    effect: float
    least: float = 0.0  # what a gain has to exceed
    asked: float = 0.0  # below what the claim does not hold


def judge(claim, settings):
    """Judge a claim by the settings of its study."""
    column = METRICS[claim.metric]
    column = replace(column, better=claim.better or column.better)
    effect = claim.effect or OF_INTEREST[claim.metric]
    names = {claim.method, *claim.rivals}
    results = [
        _result(claim, settings[setting], setting, rival, column, effect)
        for setting in claim.settings
        if names <= settings.get(setting, {}).keys()
        for rival in claim.rivals or ("",)
    ]
    if not results:
        return Judgement("not testable here", [], column, effect)
    ends = (-effect, -effect) if claim.no_loss else (0.0, effect)
    return Judgement(verdict_of(results, *ends), results, column, effect, *ends)


def _result(claim, methods, setting, rival, column, effect):
    values = np.array(methods[claim.method][claim.point][claim.metric], dtype=float)
    scale, change, lost = column.factor * column.better, np.nan, 0.0
    if claim.metric == "gain":  # (mean, standard error) of a bootstrap
        found = interval(None, mean_and_error=values)
    else:
        if rival:
            other = methods[rival][claim.point][claim.rival_metric or claim.metric]
            n = min(len(values), len(other))
            change = np.mean(values[:n]) / np.mean(other[:n]) - 1
            values = np.subtract(values[:n], other[:n])
        lost = effect if claim.no_loss else 0.0
        found = interval(values + lost / scale)
    mean, low, high = (scale * value - lost for value in found[:3])
    n_seeds = np.sum(~np.isnan(values))
    return Result(setting, rival, mean, *sorted((low, high)), found[3], n_seeds, change)


def verdict_of(results, least, asked):
    if all(r.low > least for r in results):
        return "holds"
    adjusted = holm(np.array([r.p for r in results]))
    if any(r.mean > least and p < LEVEL for r, p in zip(results, adjusted)):
        return "holds in part"
    return "does not hold here" if all(r.high < asked for r in results) else "undecided"


def number(value, column):
    return f"{value:+.{column.digits}f}"


def written(result, column):
    """Return "+1.2 [+0.3, +2.1]", and of calibration errors the change in percent."""
    mean, low, high = (number(v, column) for v in (result.mean, result.low, result.high))
    change = f", {100 * result.change:+.0f} %" if column.metric in RELATIVE else ""
    return f"{mean} [{low}, {high}]{change}"


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
    least, asked = judgement.least, judgement.asked
    if judgement.verdict == "undecided":  # until intervals are too short to hold both ends
        seeds = max(
            r.n_seeds * ((r.high - r.low) / (asked - least or 2 * (r.mean - least))) ** 2
            for r in judgement.results if r.high >= asked
        )  # fmt: skip
        parts.append(f"about {float(f'{seeds:.2g}'):.0f} seeds would decide")
    if judgement.verdict == "holds" and any(r.high < asked for r in judgement.results):
        parts.append("less than the effect")
    return f"{column.header}; " + "; ".join(parts)


def stated(claim, judgement):
    """Return what the paper finds, and the effect that is asked for."""
    if claim.reason:
        return NONE
    unit = number(judgement.effect, judgement.column).lstrip("+")
    return f"{claim.paper}; {'loss below' if claim.no_loss else 'effect'} {unit}"
