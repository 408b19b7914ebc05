"""Whether the probabilities of the model can be trusted: reasons for doubt, a sentence each."""

from __future__ import annotations

import numpy as np
from scipy.stats import entropy
from sklearn.frozen import FrozenEstimator

from ..utils.checking._proba import binomial_interval
from ._judges import OutOfFold, features_of, nearest_others
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
        doubts.append(
            "The features hardly predict the labels, no better than the frequencies of the "
            "classes do, so that wrong ones cannot be found; other features could help. "
            f"{ADVICE}"
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
    return tuple(doubts)


def of_seen_labels(last: Round) -> list[str]:
    """Return a doubt for every frozen classifier that seems to have been trained on these labels.

    A label that the majority of its neighbors does not have is wrong or hard. A classifier that
    has not seen it expects it now and then; one that was trained on it, nearly always.
    """
    number, doubts = NUMBERS_OF_NEIGHBORS[1], []
    rows = np.flatnonzero((last.given.weight > 0) & ~last.given.verified)
    rows = np.random.default_rng(0).permutation(rows)[:SOME_SAMPLES]
    codes = last.given.codes[rows]
    for (name, judge), distances in zip(last.given.judges.items(), last.distances):
        is_frozen = isinstance(judge, OutOfFold) and isinstance(judge.estimator, FrozenEstimator)
        features = features_of({name: judge}, rows) if is_frozen else None
        if features is None or len(rows) <= number:
            continue
        votes = np.zeros((len(rows), len(last.given.classes)))
        for column in nearest_others(features, number).T:
            votes[np.arange(len(rows)), codes[column]] += 1.0
        unlike = votes.argmax(axis=1) != codes
        expected = (distances[rows].argmin(axis=1) == codes)[unlike]
        if not len(expected):
            continue
        low = binomial_interval(expected.mean(), np.asarray(len(expected)), 0.95)[0]
        if low > WEAK:
            doubts.append(
                f"{name} expects {expected.mean():.0%} of the {len(expected)} labels that "
                "differ from those of their neighbors: it has probably been trained on these "
                "labels, and then it defends wrong ones. Pass the classifier itself, which is "
                "fitted out-of-fold, or one that has not seen these samples."
            )
    return doubts
