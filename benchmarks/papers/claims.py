"""What the papers claim, as comparisons that the JSON files decide.

A claim names what is compared with what, where, in which metric and direction, and what the paper
prints of it. Every comparison has a 95 % interval of the differences paired by seed (Student's t),
or of a bootstrap. Where the paper prints a calibration error, the change is in percent of what the
rival has. The effect is the smallest gain that the paper prints for the comparison; where it
prints none, the smallest effect of interest, one for all claims of a metric. With the gain counted
in the direction of the claim, in this order:

- holds: every interval is above zero. (Each has to be, so no correction is needed.)
- holds, smaller: so it is, and some interval excludes the effect, from below.
- holds in part: some comparisons are significant in that direction after Holm's correction.
- does not hold here: every interval excludes the effect, from below.
- undecided: else, mostly because an interval holds zero and the effect. More seeds would decide.

For a claim that less than an amount is lost, that loss takes the place of zero and of the effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from skcalib.metrics._groupwise import correct_by_holm

from .printed import Printed
from .results import settings_of
from .statistics import interval, ratio_interval
from .tables import CALIBRATION, COLUMNS, LEVEL, NONE, Column

# What stands for the figure of a paper: it has none, or never asked.
DIRECTION, OWN = "direction only", "our question"
VERDICTS = (
    "holds", "holds, smaller", "holds in part", "undecided", "does not hold here",
    "not testable here",
)  # fmt: skip
METRICS = {column.metric: column for column in (*COLUMNS, *CALIBRATION)} | {
    "ECE": Column("ECE", "ECE, %", 100, 1, -1),
    "AUROC of flips": Column("", "AUROC of flips, %", 100, 1, 1),
    "gain": Column("gain", "Spearman", 1, 3, 1),
    "value": Column("value", "Spearman or accuracy", 1, 3, 1),
    "correlation": Column("correlation", "correlation", 1, 3, 1),
    "range of ece": Column("", "range of the ECE, %", 100, 1, -1),
    "output margin": Column("output margin", "mean output margin, powers of ten", 1, 2, 1),
    "log margin": Column("log margin", "logarithm of the median input margin", 1, 2, 1),
    "rise": Column("rise", "rise of RMD, standard deviations", 1, 2, 1),
    "trend": Column("trend", "Spearman of group and error", 1, 2, -1),
    "hardest": Column("hardest", "errors of the hardest, %", 100, 1, 1),
    "wrong_entropy": Column("wrong_entropy", "entropy of wrong predictions, %", 100, 1, 1),
    "wrong_confidence": Column("wrong_confidence", "confidence of wrong ones, %", 100, 1, -1),
    "follows": Column("follows", "Spearman of gradient and Brier score", 1, 3, 1),
    "ece_by_ece": Column("ece_by_ece", "ECE of equal width, T by ECE, %", 100, 2, -1),
    "ece_width_scaled": Column("ece_width_scaled", "ECE of equal width, scaled, %", 100, 2, -1),
    "depth": Column("depth", "mean depth, layers", 1, 2, -1),
    "layer 1": Column("layer 1", "accuracy of probes in the first layer, %", 100, 1, 1),
    "hidden probes": Column("hidden probes", "accuracy of probes in hidden layers, %", 100, 1, 1),
}
# The smallest effects of interest, in the units of the columns.
OF_INTEREST = {
    "accuracy": 1.0, "ece": 1.0, "ece_scaled": 1.0, "ece_width": 1.0, "ECE": 1.0,
    "classwise": 0.05, "nll": 0.02, "nll_scaled": 0.02, "aurc": 0.5,
    "errors_auroc": 1.0, "ood_auroc": 1.0, "ood_fpr": 1.0, "human_kl": 0.02,
    "human_kl_scaled": 0.02, "AUROC of flips": 1.0, "gain": 0.02, "value": 0.1,
    "correlation": 0.01, "range of ece": 1.0, "output margin": 0.3, "log margin": 0.1,
    "depth": 0.1, "hidden probes": 1.0, "layer 1": 1.0, "rise": 0.1, "trend": 0.1, "hardest": 1.0,
    "wrong_entropy": 1.0, "wrong_confidence": 1.0, "follows": 0.01, "ece_by_ece": 0.2,
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
    # The effect in the unit of the column, if not the one of interest; what the paper prints.
    effect: float = 0.0
    paper: Printed | str = OWN
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


def untested(text, reason, paper=DIRECTION):
    """Return a claim that nothing here can test, and why."""
    return Claim(text, "", "", (), "accuracy", (), reason=reason, paper=paper)


def comparable(claim):
    """Whether the paper's changes are of what the claim compares, so that one is the effect."""
    if claim.no_loss or not isinstance(claim.paper, Printed):
        return False
    return not claim.rivals or claim.paper.figures[0].before is not None


class Result(NamedTuple):
    """A comparison: mean and 95 % interval of the gain, in the unit of the judgement."""

    setting: str
    rival: str
    mean: float
    low: float
    high: float
    p: float  # that there is no gain, or that all of the amount is lost
    n_seeds: int = 0
    before: float = np.nan  # what the rival has and what the method has, in the unit of the column
    after: float = np.nan


class Judgement(NamedTuple):
    """A verdict, the comparisons behind it, and what they are of."""

    verdict: str
    results: list[Result]
    column: Column
    effect: float
    least: float = 0.0  # what a gain has to exceed
    asked: float = 0.0  # below what the claim does not hold
    in_percent: bool = False


def judge(claim, settings):
    """Judge a claim by the settings of its study."""
    column = METRICS[claim.metric]
    column = replace(column, better=claim.better or column.better)
    of_paper = claim.paper.effect(column.better) if comparable(claim) else 0.0
    effect = of_paper or claim.effect or OF_INTEREST[claim.metric]
    in_percent = comparable(claim) and claim.paper.unit == "%" and bool(claim.rivals)
    lost = effect if claim.no_loss else 0.0
    names = {claim.method, *claim.rivals}
    results = [
        _result(claim, settings[setting], setting, rival, column, lost, in_percent)
        for setting in claim.settings
        if names <= settings.get(setting, {}).keys()
        for rival in claim.rivals or ("",)
    ]
    if not results:
        return Judgement("not testable here", [], column, effect)
    ends = (-effect, -effect) if claim.no_loss else (0.0, effect)
    return Judgement(verdict_of(results, *ends), results, column, effect, *ends, in_percent)


@cache
def judged(claim):
    """Judge a claim by the results of its part that the repository keeps."""
    return judge(claim, settings_of(claim.part))


def _result(claim, methods, setting, rival, column, lost, in_percent):
    values = np.array(methods[claim.method][claim.point][claim.metric], dtype=float)
    scale, before = column.factor * column.better, np.nan
    after = column.factor * np.nanmean(values)
    if claim.metric == "gain":  # (mean, standard error) of a bootstrap
        found, after = interval(None, mean_and_error=values), np.nan
    elif rival:
        other = methods[rival][claim.point][claim.rival_metric or claim.metric]
        n = min(len(values), len(other))
        values, other = values[:n], np.array(other[:n], dtype=float)
        before, after = (column.factor * np.mean(part) for part in (other, values))
        if in_percent:
            found, scale = ratio_interval(values, other), 100 * column.better
        else:
            found = interval(values - other + lost / scale)
    else:
        found = interval(values + lost / scale)
    mean, low, high = (scale * value - lost for value in found[:3])
    n_seeds = np.sum(~np.isnan(values))
    return Result(setting, rival, mean, *sorted((low, high)), found[3], n_seeds, before, after)


def verdict_of(results, least, asked):
    if all(r.low > least for r in results):
        return "holds, smaller" if any(r.high < asked for r in results) else "holds"
    adjusted = correct_by_holm(np.array([r.p for r in results]))
    if any(r.mean > least and p < LEVEL for r, p in zip(results, adjusted)):
        return "holds in part"
    return "does not hold here" if all(r.high < asked for r in results) else "undecided"


def number(value, column):
    return f"{value:+.{column.digits}f}"


def written(result, judgement):
    """Return what the rival and the method have, and the change with its interval.

    "3.1 → 1.5, -52 % [-60, -44]"; the sign is that of the change, as in the papers.
    """
    column, better = judgement.column, judgement.column.better
    ends = sorted(better * value for value in (result.low, result.high))
    digits = 0 if judgement.in_percent else column.digits
    mean, low, high = (f"{v:+.{digits}f}" for v in (better * result.mean, *ends))
    values = ""
    if np.isfinite(result.before):
        before, after = (f"{v:.{column.digits}f}" for v in (result.before, result.after))
        values = f"{before} → {after}, "
    return f"{values}{mean}{' %' * judgement.in_percent} [{low}, {high}]"


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
        text = f"{least.setting}: {written(least, judgement)}"
        if len(here) > 1:
            better, worse = sum(r.low > 0 for r in here), sum(r.high < 0 for r in here)
            text += f" against {least.rival}; better than {better} and worse than {worse}"
            text += f" of {len(here)}"
        parts.append(text)
    least, asked = judgement.least, judgement.asked
    if judgement.verdict == "undecided":  # until intervals are too short to hold both ends
        seeds = max(
            r.n_seeds * ((r.high - r.low) / (asked - least or 2 * (r.mean - least))) ** 2
            for r in judgement.results if r.high >= asked
        )  # fmt: skip
        needed = f"about {float(f'{seeds:.2g}'):.0f} seeds would decide"
        if claim.metric == "gain":  # of two numbers, a mean and its error over samples
            needed = f"about {seeds / 2:.1f} times as many samples would decide"
        parts.append(needed)
    excluded = excludes(claim, judgement)
    if excluded:
        parts.append(f"excludes {' and '.join(excluded)}")
    return f"{column.header}; " + "; ".join(parts)


def excludes(claim, judgement):
    """Return the data sets of the paper with a gain that every interval excludes, from below."""
    if not comparable(claim):
        return []
    highest = max(r.high for r in judgement.results)
    gains = claim.paper.gains(judgement.column.better)
    smallest: dict = {}
    for label, gain in gains:
        smallest[label] = min(gain, smallest.get(label, np.inf))
    excluded = [label for label, gain in smallest.items() if gain > max(highest, 0)]
    return ["the paper's figures"] if excluded and len(excluded) == len(smallest) else excluded


def stated(claim, judgement):
    """Return what the paper prints, and the effect that is asked for where it prints none."""
    if claim.reason:
        return claim.paper.text() if isinstance(claim.paper, Printed) else NONE
    unit = number(judgement.effect, judgement.column).lstrip("+")
    asked = f"{'loss below' if claim.no_loss else 'effect'} {unit}"
    if not isinstance(claim.paper, Printed):
        return f"{claim.paper}; {asked}"
    if not comparable(claim) or not claim.paper.effect(judgement.column.better):
        return f"{claim.paper.text()}; {asked}"
    return claim.paper.text()
