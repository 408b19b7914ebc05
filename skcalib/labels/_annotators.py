"""How often every annotator is right, with an interval.

The votes of an annotator are compared with what the other annotators and the judges say about the
same samples. For a vote y of annotator a, let r(z, k) be the posterior of the sample without that
vote (z: easy or hard, k: the class), and s the log-odds that a is right on an easy sample:

    P(y | s) = sum_z r(z, y) T_z(s) + (1 - T_z(s)) sum_k r(z, k) C_ky,
    T_z(s) = sigmoid(s - delta_z),

The product over the votes of a, times a prior worth VOTES_OF_PRIOR votes of average accuracy, is
the posterior of s on a grid. The accuracy of a is the mean of T_z over easy and hard samples.
An error that all annotators share is added: if the likelihood is right, these accuracies and the
posterior probabilities of all votes have the same mean, and their difference widens the intervals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy
from scipy.stats import beta as beta_distribution

from ._limits import VOTES_OF_PRIOR
from ._votes import Others, VoteModel, Votes, left_out

# Points of the grid: ends of intervals are within .003 of those of 513 points.
_POINTS = 65
# Ends of the first grid in log-odds: accuracies below .001 and above .99999.
_LEAST = -8.0
_MOST = 12.0
# The second grid leaves out points whose log-density is below the largest by more than this.
_FAR = 8.0


def accuracies(
    votes: Votes,
    p_correct: NDArray[np.float64],
    proba: NDArray,
    weight: NDArray[np.float64],
    model: VoteModel | None,
) -> tuple[NDArray, ...]:
    """Return for every annotator: n_votes, accuracy, low, high, and the class with most mistakes.

    Accuracies are shrunk to the mean by VOTES_OF_PRIOR votes. Votes on copies count once.
    """
    n, own = votes.n_annotators, weight[votes.sample]
    number, count = np.bincount(votes.annotator, minlength=n), (weight > 0).astype(np.float64)
    if model is not None:
        np.divide(model.evidence.weight, weight, out=count, where=weight > 0)
    counts = count[votes.sample]
    mean = float(np.average(p_correct, weights=own * counts)) if own.sum() > 0 else 0.5
    counted = np.bincount(votes.annotator, counts, n)
    right = np.bincount(votes.annotator, p_correct * counts, n)
    accuracy = (right + VOTES_OF_PRIOR * mean) / (counted + VOTES_OF_PRIOR)
    if model is None:
        low, high = _of_labels(votes, p_correct, own > 0, accuracy)
    else:
        # The model has only the votes on samples of positive weight.
        others = left_out(model, proba)
        counts = count[model.votes.sample].astype(np.float64)
        low, high = _of_others(model.votes, others, accuracy, mean, counts)
    worst = np.zeros(n, dtype=np.intp)
    lowest = np.full(n, np.inf)
    for k in range(votes.n_classes):
        p_class = proba[votes.sample, k] * (own > 0)
        of_class = np.bincount(votes.annotator, p_class, n)
        right_of_class = np.bincount(votes.annotator, p_class * (votes.label == k), n)
        rate = (right_of_class + VOTES_OF_PRIOR * accuracy) / (of_class + VOTES_OF_PRIOR)
        worst, lowest = np.where(rate < lowest, k, worst), np.minimum(rate, lowest)
    return number, accuracy, low, high, worst


def _of_labels(
    votes: Votes,
    p_correct: NDArray[np.float64],
    used: NDArray[np.bool_],
    accuracy: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return intervals if every sample has one vote: by the probabilities of the votes alone."""
    counted = np.bincount(votes.annotator, used, votes.n_annotators)
    # A vote that is right with probability p has the variance p (1 - p): that part of its
    # information is missing.
    variance = np.bincount(votes.annotator, p_correct * (1 - p_correct) * used, votes.n_annotators)
    of_known = np.maximum(accuracy * (1.0 - accuracy), 1e-12)
    known = np.maximum(counted - variance / of_known, 0.0) + VOTES_OF_PRIOR
    low, high = (
        beta_distribution.ppf(q, known * accuracy, known * (1.0 - accuracy))
        for q in (0.025, 0.975)
    )
    return np.nan_to_num(low), np.nan_to_num(high, nan=1.0)


class _Grid(NamedTuple):
    """The posterior of every annotator's accuracy."""

    accuracy: NDArray[np.float64]  # (n_annotators, n_points), rising
    mass: NDArray[np.float64]

    def at(self, quantile: float) -> NDArray[np.float64]:
        below = self.mass.cumsum(axis=1) - self.mass / 2
        return np.array([np.interp(quantile, b, a) for b, a in zip(below, self.accuracy)])


def _of_others(
    votes: Votes,
    others: Others,
    accuracy: NDArray[np.float64],
    mean: float,
    counts: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return intervals by the posteriors of the samples without the annotator's votes.

    `counts` are the weights of the votes, at most 1.
    """
    n_votes = np.bincount(votes.annotator, counts, votes.n_annotators)
    # Half a right vote and half a wrong one keep the prior mean away from 0 and 1.
    total = n_votes.sum()
    grid = _posterior(votes, others, (mean * total + 0.5) / (total + 1.0), counts)
    center = (grid.accuracy * grid.mass).sum(axis=1)
    variance = ((grid.accuracy - center[:, None]) ** 2 * grid.mass).sum(axis=1)
    # The error that all annotators share is one more variance, shared^2.
    shared = float(np.average(center - accuracy, weights=n_votes))
    wider = np.sqrt(1.0 + shared**2 / np.maximum(variance, 1e-12))
    low, high = (center + wider * (grid.at(q) - center) for q in (0.025, 0.975))
    return (
        np.clip(np.minimum(low, accuracy), 0.0, 1.0),
        np.clip(np.maximum(high, accuracy), 0.0, 1.0),
    )


def _posterior(
    votes: Votes,
    others: Others,
    mean: float,
    counts: NDArray[np.float64],
) -> _Grid:
    """Return the posterior of every annotator's accuracy."""
    named, elsewhere, hard, delta = others
    n, who = votes.n_annotators, votes.annotator
    counted = np.bincount(who, counts, n) + VOTES_OF_PRIOR
    share = (np.bincount(who, counts * hard, n) + VOTES_OF_PRIOR * hard.mean()) / counted
    share = share[:, None]
    start, end = np.full(n, _LEAST), np.full(n, _MOST)
    for _ in range(2):  # on the whole grid, then on the part that holds the posterior
        points = np.linspace(start, end, _POINTS, axis=1)
        on_easy, on_hard = expit(points), expit(points - delta)
        right = (1.0 - share) * on_easy + share * on_hard
        slope = (1.0 - share) * on_easy * (1.0 - on_easy) + share * on_hard * (1.0 - on_hard)
        # The prior: a beta density of the accuracy, times its slope in log-odds.
        value = xlogy(VOTES_OF_PRIOR * mean - 1.0, right) + np.log(np.maximum(slope, 1e-300))
        value += (VOTES_OF_PRIOR * (1.0 - mean) - 1.0) * np.log1p(-right)
        for j in range(_POINTS):
            chance = elsewhere.sum(axis=0)
            for level, of_level in enumerate((on_easy, on_hard)):
                chance += of_level[who, j] * (named[level] - elsewhere[level])
            value[:, j] += np.bincount(who, counts * np.log(np.maximum(chance, 1e-300)), n)
        value -= value.max(axis=1, keepdims=True)
        near = value > -_FAR
        step = (end - start) / (_POINTS - 1)
        first, last = near.argmax(axis=1), _POINTS - 1 - near[:, ::-1].argmax(axis=1)
        start, end = (
            start + step * np.maximum(first - 1, 0),
            start + step * np.minimum(last + 1, _POINTS - 1),
        )
    mass = np.exp(value)
    return _Grid(right, mass / mass.sum(axis=1, keepdims=True))
