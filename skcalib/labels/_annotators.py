"""How often every annotator is right, and how sure that is.

Annotators are judged without their own votes: these are compared with what the other people and
the judges say of the same samples. With r(z, k) the posterior of a sample without the vote y of
annotator a, and s by how much a is better than others, in log-odds,

    P(y | s) = sum_z r(z, y) T_z(s) + (1 - T_z(s)) sum_k r(z, k) C_ky,
    T_z(s) = sigmoid(s - delta_z),

whose product over the votes of a, with votes of average accuracy before them, is the posterior
of s on a grid; his accuracy is the mean of T_z over easy and hard samples. What all annotators
have in common is estimated too: the mean of these accuracies and the mean of the posterior of all
votes are the same number if the likelihood is right, and their difference is an error more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy
from scipy.stats import beta as beta_distribution

from ._limits import VOTES_OF_PRIOR
from ._votes import Others, VoteModel, Votes, left_out

# Points of a grid: ends of intervals are within .003 of those of 513 points.
_POINTS = 65
# Where the grid begins, in log-odds: right votes of less than .001 and more than .99999.
_LEAST = -8.0
_MOST = 12.0
# What is less likely than the most likely point by this, in logarithms, is left out.
_FAR = 8.0


def accuracies(
    votes: Votes,
    p_correct: NDArray[np.float64],
    proba: NDArray,
    weight: NDArray[np.float64],
    model: VoteModel | None,
) -> tuple[NDArray, ...]:
    """Return number of votes, accuracy, its interval, and the class they get wrong most, each.

    A few votes of average accuracy come before the own ones. Votes on copies count once.
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
        # Those of the model are the votes that count.
        others = left_out(model, proba)
        counts = count[model.votes.sample].astype(np.float64)
        low, high = _of_others(model.votes, others, accuracy, mean, counts)
    worst = np.zeros(n, dtype=np.intp)
    lowest = np.full(n, np.inf)
    for k in range(votes.n_classes):
        belief = proba[votes.sample, k] * (own > 0)
        of_class = np.bincount(votes.annotator, belief, n)
        right_of_class = np.bincount(votes.annotator, belief * (votes.label == k), n)
        rate = (right_of_class + VOTES_OF_PRIOR * accuracy) / (of_class + VOTES_OF_PRIOR)
        worst, lowest = np.where(rate < lowest, k, worst), np.minimum(rate, lowest)
    return number, accuracy, low, high, worst


def _of_labels(
    votes: Votes,
    p_correct: NDArray[np.float64],
    used: NDArray[np.bool_],
    accuracy: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return intervals where no sample has two votes, and nobody else judges a sample."""
    counted = np.bincount(votes.annotator, used, votes.n_annotators)
    # A vote of which nobody is sure tells less of the annotator.
    doubt = np.bincount(votes.annotator, p_correct * (1 - p_correct) * used, votes.n_annotators)
    chance = np.maximum(accuracy * (1.0 - accuracy), 1e-12)
    known = np.maximum(counted - doubt / chance, 0.0) + VOTES_OF_PRIOR
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
    """Return intervals by what is believed of the samples without the own votes.

    Every vote counts as a part of one, or as one.
    """
    n_votes = np.bincount(votes.annotator, counts, votes.n_annotators)
    # Half of a vote that is right and half of one that is wrong: never sure of all.
    total = n_votes.sum()
    grid = _posterior(votes, others, (mean * total + 0.5) / (total + 1.0), counts)
    center = (grid.accuracy * grid.mass).sum(axis=1)
    variance = ((grid.accuracy - center[:, None]) ** 2 * grid.mass).sum(axis=1)
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
    named, elsewhere, hard, delta = others
    n, who = votes.n_annotators, votes.annotator
    counted = np.bincount(who, counts, n) + VOTES_OF_PRIOR
    share = (np.bincount(who, counts * hard, n) + VOTES_OF_PRIOR * hard.mean()) / counted
    share = share[:, None]
    start, end = np.full(n, _LEAST), np.full(n, _MOST)
    for _ in range(2):  # over all of it, then where the posterior is
        points = np.linspace(start, end, _POINTS, axis=1)
        easy, hardly = expit(points), expit(points - delta)
        right = (1.0 - share) * easy + share * hardly
        slope = (1.0 - share) * easy * (1.0 - easy) + share * hardly * (1.0 - hardly)
        # Votes of average accuracy, as a density of log-odds.
        value = xlogy(VOTES_OF_PRIOR * mean - 1.0, right) + np.log(np.maximum(slope, 1e-300))
        value += (VOTES_OF_PRIOR * (1.0 - mean) - 1.0) * np.log1p(-right)
        for j in range(_POINTS):
            chance = elsewhere.sum(axis=0)
            for level, of_level in enumerate((easy, hardly)):
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
