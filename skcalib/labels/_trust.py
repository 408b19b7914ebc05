"""Whether the probabilities of the model can be trusted: reasons for doubt, a sentence each."""

from __future__ import annotations

import numpy as np
from scipy.stats import entropy
from sklearn.frozen import FrozenEstimator

from ..utils.checking._proba import binomial_interval
from ._judges import OutOfFold, features_of, nearest_others
from ._limits import (
    CORRELATED,
    FEW,
    KNOWN,
    NUMBERS_OF_NEIGHBORS,
    SOME_SAMPLES,
    STANDARD_ERRORS,
    SURE,
    WEAK,
)
from ._noise_model import NoiseFit, believe, expected_labels, rows_of
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
    correlation, error = surprises(last, judged.fit)
    if correlation > max(CORRELATED, STANDARD_ERRORS * error):
        doubts.append(
            f"Unexpected labels cluster (neighbor correlation {correlation:.2f}): the model "
            f"misfits there, so that many issues may be right. {ADVICE}"
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


def surprises(last: Round, fit: NoiseFit) -> tuple[float, float]:
    """Return the correlation of surprises between neighbors, and its standard error.

    The surprise of a label is the label, as a unit vector, minus the probabilities of all
    labels. Where these are right, surprises of different samples are uncorrelated, whatever
    labels are flipped; judges that fit the classes badly are surprised in the same places.
    (0, 0) without features, and where neighbors are judges and have had their say.
    """
    number = NUMBERS_OF_NEIGHBORS[1]
    rows = np.flatnonzero((last.given.weight > 0) & ~last.given.verified)
    rows = np.random.default_rng(0).permutation(rows)[:SOME_SAMPLES]
    features = features_of(last.given.judges, rows)
    if features is None or "neighbors" in last.given.judges or len(rows) <= number:
        return 0.0, 0.0
    belief = believe(rows_of(last.distances, rows), fit.weights)
    surprise = -expected_labels(belief, fit.flips, fit.near)
    surprise[np.arange(len(rows)), last.given.codes[rows]] += 1.0
    around = np.zeros_like(surprise)
    for column in nearest_others(features, number).T:
        around += surprise[column]
    products = np.einsum("nk,nk->n", surprise, around) / number
    total = np.einsum("nk,nk->", surprise, surprise)
    # Nearly all pairs of neighbors are counted twice.
    error = np.sqrt(2.0 * products @ products)
    return float(products.sum() / total), float(error / total)
