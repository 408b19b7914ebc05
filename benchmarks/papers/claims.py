"""What the papers claim, as comparisons that the JSON files decide.

A claim names what is compared with what, where, in which metric and direction. Every comparison is
a t-test on differences paired by seed; Holm's correction runs over the comparisons of the claim.
"holds": all are significant in the direction claimed; "holds in part": some are, and the sentence
says where; "does not hold": none is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from scipy.stats import norm

from .statistics import holm, paired
from .tables import CALIBRATION, COLUMNS, LEVEL, Column

VERDICTS = ("holds", "holds in part", "does not hold", "not testable here")
WORDS = {1: "better", 0: "no difference", -1: "worse"}
# Where the rival is zero, there is nothing to be better than.
SIGNS = {1: "as claimed", 0: "not different from zero", -1: "the opposite"}
METRICS = {column.metric: column for column in (*COLUMNS, *CALIBRATION)} | {
    "ECE": Column("ECE", "ECE, %", 100, 1, -1),
    "AUROC of flips": Column("", "AUROC of flips, %", 100, 1, 1),
    "human_kl_scaled": Column("", "divergence from human labels, scaled", 1, 3, -1),
}


@dataclass(frozen=True)
class Claim:
    """`method` against every one of `rivals`, in every one of `settings`, at one point."""

    text: str
    study: str
    method: str
    rivals: tuple[str, ...]
    metric: str
    settings: tuple[str, ...]
    point: str = "last"
    # The metric of the rivals where it is another one: before scaling against after.
    rival_metric: str = ""
    # Replaces the direction of the metric: 1 where the claim says "larger".
    better: int = 0
    # 1: the method is better; 0: there is no difference (then no test may be significant).
    expects: int = 1


@dataclass(frozen=True)
class Bootstrapped:
    """RMD against other difficulties, by correlation with human entropy; normal tests."""

    text: str
    rivals: tuple[str, ...]
    study: str = "human:gains"


@dataclass(frozen=True)
class Untested:
    """A claim that nothing here can test, and why."""

    text: str
    reason: str


def judge(claim, settings):
    """Return (verdict, what was found) of a claim, from the settings of its study."""
    if isinstance(claim, Untested):
        return "not testable here", claim.reason
    if isinstance(claim, Bootstrapped):
        return _judge_gains(claim, settings)
    names = {claim.method, *claim.rivals}
    found = [s for s in claim.settings if names <= settings.get(s, {}).keys()]
    if not found:
        return "not testable here", "these runs were not made"
    column = METRICS.get(claim.metric, Column(claim.metric, claim.metric, 1, 2, 1))
    column = replace(column, better=claim.better or column.better)
    tests = [
        (setting, rival, *_test(settings[setting], claim, rival))
        for setting in found
        for rival in claim.rivals
    ]
    adjusted = holm([p for *_, p in tests])
    signs = [_sign(mean * column.better, p) for (_, _, mean, _, _), p in zip(tests, adjusted)]
    return _verdict(signs, claim.expects), _sentence(tests, signs, claim, column)


def _judge_gains(claim, gains):
    """Judge differences that come as (value, standard error)."""
    if not gains:
        return "not testable here", "these runs were not made"
    adjusted = holm([2 * norm.sf(abs(gains[n][0]) / gains[n][1]) for n in claim.rivals])
    signs = [_sign(gains[name][0], p) for name, p in zip(claim.rivals, adjusted)]
    parts = (
        f"minus {name}: {gains[name][0]:+.3f} ± {gains[name][1]:.3f} ({WORDS[sign]})"
        for name, sign in zip(claim.rivals, signs)
    )
    return _verdict(signs, 1), "Spearman; " + "; ".join(parts)


def _test(methods, claim, rival):
    first = methods[claim.method][claim.point][claim.metric]
    second = methods[rival][claim.point][claim.rival_metric or claim.metric]
    return paired(first, second)


def _sign(gain, p):
    if p >= LEVEL or gain == 0:
        return 0
    return 1 if gain > 0 else -1


def _verdict(signs, expected):
    right = sum(sign == expected for sign in signs)
    if right == len(signs):
        return "holds"
    return "holds in part" if right else "does not hold"


def _sentence(tests, signs, claim, column):
    parts, words = [], SIGNS if claim.rivals == ("zero",) else WORDS
    for setting in dict.fromkeys(test[0] for test in tests):
        here = [(test, sign) for test, sign in zip(tests, signs) if test[0] == setting]
        if len(claim.rivals) == 1:
            (_, _, mean, error, _), sign = here[0]
            factor, digits = column.factor, column.digits
            gain = f"{factor * mean:+.{digits}f} ± {factor * error:.{digits}f}"
            parts.append(f"{setting}: {gain} ({words[sign]})")
        else:
            counts = [sum(sign == s for _, sign in here) for s in (1, 0, -1)]
            parts.append(
                f"{setting}: better than {counts[0]}, like {counts[1]}, worse than {counts[2]} "
                f"of {len(here)}"
            )
    what = "" if claim.rivals == ("zero",) else f"{column.header}; "
    return what + "; ".join(parts)
