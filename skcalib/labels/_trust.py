"""Whether the probabilities of the model can be trusted: reasons for doubt, a sentence each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import entropy
from sklearn.frozen import FrozenEstimator

from ..utils.checking._proba import binomial_interval
from ._judges import Judge, OutOfFold, features_of, nearest_others
from ._limits import (
    FEW,
    KNOWN,
    NUMBERS_OF_NEIGHBORS,
    SOME_SAMPLES,
    SURE,
    WEAK,
)
from ._rounds import Judged, Round

ADVICE = "Check some labels (draw_samples_to_check, recalibrate), or leave them as they are."


def doubts_of(judged: Judged, n_issues: int) -> tuple[str, ...]:
    """Return the reasons to doubt the probabilities."""
    last, part, doubts = judged.last, judged.last.likelihood, []
    # A sample counts once, whatever it weighs: a weight need not be a number of samples.
    of_labels = float(entropy(np.bincount(part.codes, part.weight)))
    if len(part.codes) * (of_labels + judged.fit.log_likelihood) < KNOWN:
        judge, better = (
            ("features", "other features")
            if last.given.refits
            else ("probabilities", "those of another model")
        )
        doubts.append(
            f"The {judge} hardly predict the labels, no better than the frequencies of the "
            f"classes do, so that wrong ones cannot be found; {better} could help. {ADVICE}"
        )
    doubts += of_seen_labels(last)
    if n_issues < FEW:
        return tuple(doubts)
    if judged.believed < SURE:
        doubts.append(
            f"The {n_issues} issues may all be right: the labels are about as likely "
            f"without any wrong one (probability of any {judged.believed:.2f}). {ADVICE}"
        )
    if judged.strength < WEAK:
        doubts.append(
            f"The model expects only {last.agreement(judged.fit):.0%} of the labels: it knows too "
            f"little of the classes, so that many issues may be right. {ADVICE}"
        )
    doubts += of_misfits(judged)
    return tuple(doubts)


def of_seen_labels(last: Round) -> list[str]:
    """Return a doubt for every frozen classifier that seems to have been trained on these labels.

    A label that the majority of its neighbors does not have is wrong or hard. A classifier that
    has not seen it expects it now and then; one that was trained on it, nearly always.
    """
    rows, doubts = _asked(last), []
    codes = last.given.codes[rows]
    for (name, judge), distances in zip(last.given.judges.items(), last.distances):
        is_frozen = isinstance(judge, OutOfFold) and isinstance(judge.estimator, FrozenEstimator)
        around = _around(last, {name: judge}, rows) if is_frozen else None
        if around is None:
            continue
        expected = (distances[rows].argmin(axis=1) == codes)[around != codes]
        if len(expected) and _at_least(expected) > WEAK:
            doubts.append(
                f"{name} expects {expected.mean():.0%} of the {len(expected)} labels that "
                "differ from those of their neighbors: it has probably been trained on these "
                "labels, and then it defends wrong ones. Pass the classifier itself, which is "
                "fitted out-of-fold, or one that has not seen these samples."
            )
    return doubts


def of_misfits(judged: Judged) -> list[str]:
    """Return a doubt where neighbors defend more of the labels called wrong than are expected to.

    A wrong label differs from those of its neighbors; one that a judge gets wrong because the
    class has another shape, such as several clusters, is among its like. Neighbors that are
    judges have had their say.
    """
    last = judged.last
    rows = _asked(last)
    around = None if "neighbors" in last.given.judges else _around(last, last.given.judges, rows)
    if around is None:
        return []
    codes, proba = last.given.codes[rows], judged.proba[rows]
    p_correct = proba[np.arange(len(rows)), codes]
    wrong = proba.argmax(axis=1) != codes
    if not wrong.any():
        return []
    defended = (around == codes)[wrong]
    if _at_least(defended) <= p_correct[wrong].mean():
        return []
    return [
        f"Of the labels that the model takes for wrong, {defended.mean():.0%} are those of most "
        f"neighbors, where it takes {p_correct[wrong].mean():.0%} for right: it may misfit the "
        f"classes there, as a Gaussian misfits two clusters. {ADVICE}"
    ]


def _asked(last: Round) -> NDArray[np.intp]:
    """Return samples whose labels are looked at: of very many, a random part."""
    rows = np.flatnonzero((last.given.weight > 0) & ~last.given.verified)
    return np.random.default_rng(0).permutation(rows)[:SOME_SAMPLES]


def _around(last: Round, judges: dict[str, Judge], rows: NDArray[np.intp]) -> NDArray | None:
    """Return the label that most neighbors of each sample have; None without features."""
    number = NUMBERS_OF_NEIGHBORS[1]
    features = features_of(judges, rows) if len(rows) > number else None
    if features is None:
        return None
    votes = np.zeros((len(rows), len(last.given.classes)))
    for column in nearest_others(features, number).T:
        votes[np.arange(len(rows)), last.given.codes[rows][column]] += 1.0
    return votes.argmax(axis=1)


def _at_least(flags: NDArray[np.bool_]) -> float:
    """Return the lower end of the interval of how often a flag is set."""
    return float(binomial_interval(flags.mean(), np.asarray(len(flags)), 0.95)[0])
