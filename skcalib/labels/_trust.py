"""`doubts_`: reasons not to trust the probabilities, a sentence each."""

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
    """Return the sentences of `doubts_` after `fit`."""
    last, part, doubts = judged.last, judged.last.likelihood, []
    # Every sample counts once here: a weight need not be a number of samples.
    entropy_of_labels = float(entropy(np.bincount(part.codes, part.weight)))
    if len(part.codes) * (entropy_of_labels + judged.fit.log_likelihood) < KNOWN:
        inputs, better = (
            ("features", "other features")
            if last.given.refits
            else ("probabilities", "those of another model")
        )
        doubts.append(
            f"The {inputs} hardly predict the labels, no better than class frequencies do, so "
            f"wrong labels cannot be found; {better} could help. {ADVICE}"
        )
    doubts += of_seen_labels(last)
    if n_issues < FEW:
        return tuple(doubts)
    if judged.p_any_wrong < SURE:
        doubts.append(
            f"The {n_issues} issues may all be right: the probability that any label is wrong is "
            f"only {judged.p_any_wrong:.2f}. {ADVICE}"
        )
    if judged.accuracy < WEAK:
        doubts.append(
            f"The model predicts only {last.agreement(judged.fit):.0%} of the labels: it knows "
            f"too little about the classes, so that many issues may be right. {ADVICE}"
        )
    doubts += of_misfits(judged)
    return tuple(doubts)


def of_seen_labels(last: Round) -> list[str]:
    """Return a doubt for every frozen classifier that seems to have been trained on these labels.

    A label that differs from those of most neighbors is wrong, or the sample is hard. A classifier
    that has not seen the label predicts it now and then; one trained on it, nearly always.
    """
    rows, doubts = _asked(last), []
    codes = last.given.codes[rows]
    for (name, judge), distances in zip(last.given.judges.items(), last.distances):
        is_frozen = isinstance(judge, OutOfFold) and isinstance(judge.estimator, FrozenEstimator)
        around = _label_around(last, {name: judge}, rows) if is_frozen else None
        if around is None:
            continue
        predicted = (distances[rows].argmin(axis=1) == codes)[around != codes]
        if len(predicted) and _lower_end(predicted) > WEAK:
            doubts.append(
                f"{name} predicts {predicted.mean():.0%} of the {len(predicted)} labels that "
                "differ from those of their neighbors: it has probably been trained on these "
                "labels, and then it predicts wrong ones too. Pass the classifier without "
                "FrozenEstimator, to fit it out-of-fold, or one trained on other samples."
            )
    return doubts


def of_misfits(judged: Judged) -> list[str]:
    """Return a doubt if too many labels that the model calls wrong agree with their neighbors.

    A wrong label differs from those of its neighbors. A right label that a judge gets wrong
    because the class has another shape, such as two clusters, agrees with them. Nothing is tested
    if neighbors are among the judges.
    """
    last = judged.last
    rows = _asked(last)
    judges = last.given.judges
    around = None if "neighbors" in judges else _label_around(last, judges, rows)
    if around is None:
        return []
    codes, proba = last.given.codes[rows], judged.proba[rows]
    p_correct = proba[np.arange(len(rows)), codes]
    wrong = proba.argmax(axis=1) != codes
    if not wrong.any():
        return []
    agree = (around == codes)[wrong]
    if _lower_end(agree) <= p_correct[wrong].mean():
        return []
    return [
        f"Of the labels that the model calls wrong, {agree.mean():.0%} are those of most "
        f"neighbors; by its probabilities, only {p_correct[wrong].mean():.0%} are right. It may "
        f"misfit the classes there, as a Gaussian misfits two clusters. {ADVICE}"
    ]


def _asked(last: Round) -> NDArray[np.intp]:
    """Return the samples that the tests look at: all, or a random part of very many."""
    rows = np.flatnonzero((last.given.weight > 0) & ~last.given.verified)
    return np.random.default_rng(0).permutation(rows)[:SOME_SAMPLES]


def _label_around(last: Round, judges: dict[str, Judge], rows: NDArray[np.intp]) -> NDArray | None:
    """Return the most frequent label among each sample's neighbors; None without features."""
    number = NUMBERS_OF_NEIGHBORS[1]
    features = features_of(judges, rows) if len(rows) > number else None
    if features is None:
        return None
    votes = np.zeros((len(rows), len(last.given.classes)))
    for column in nearest_others(features, number).T:
        votes[np.arange(len(rows)), last.given.codes[rows][column]] += 1.0
    return votes.argmax(axis=1)


def _lower_end(flags: NDArray[np.bool_]) -> float:
    """Return the lower end of the 95 % interval of how often a flag is set."""
    return float(binomial_interval(flags.mean(), np.asarray(len(flags)), 0.95)[0])
