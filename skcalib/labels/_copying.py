"""Annotators who copy another: pairs whose votes agree more than their classes explain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ._vote_model import Votes, log_sum

# Annotator b copies a: with the probability kappa, b repeats a's vote, else b votes by his or her
# own rows of confusion,
#
#     P(y_b | k, y_a) = (1 - kappa) T_b(k, y_b) + kappa [y_b = y_a].
#
# EM finds classes, rows and kappa together, since a pair that agrees too often is taken for the
# truth where it is independent. A pair is named if its likelihood gains more over independence
# than the number of pairs allows by chance, with a probability of _CHANCE. Hard samples raise the
# agreement of all pairs; so only pairs that agree more than the others are tried.
#
# Among four annotators, agreement does not say who copies. It is about the product of two skills,
# so that the products of opposite pairs are equal, s_ab s_cd = s_ac s_bd; the left is too large
# where a and b copy, and where c and d do. So if only two others, c and d, have voted with both, a
# and b have to gain as much over c and d: if all their votes are the same, they often do.

_CHANCE = 0.001
# Fewer common samples cannot gain enough: who always agrees where .7 is expected gains .36 each,
# and one of 20 ordered pairs has to gain log(20 / _CHANCE) = 10.
_FEWEST_COMMON = 30
_FEWEST_OTHERS = 2
# Time: pairs that are tried, the most unusual ones, and copiers that are found.
_TRIED = 10
_MOST_COPIERS = 10
_STEPS = 60
# Prior votes of every row, around the population's.
_PRIOR = 4.0


class Copy(NamedTuple):
    """An annotator who copies another, and how often."""

    copier: int
    source: int
    proba: float
    low: float  # 95 % interval
    high: float
    vote: NDArray[np.intp]  # the copier's votes that equal the source's
    is_copy: NDArray[np.float64]  # probability that each of them is copied


def find_copies(votes: Votes, weight: NDArray[np.float64]) -> list[Copy]:
    """Return the annotators who copy another; each copies one, and no two copy each other."""
    found: list[Copy] = []
    while len(found) < _MOST_COPIERS:
        power = weigh_copies(votes, found)
        pairs, n_pairs = _find_unusual_pairs(votes, power)
        if not pairs:
            break
        base = _fit(votes, power * weight[votes.sample])[0]
        least = np.log(max(n_pairs, 1) / _CHANCE)
        fitted: dict[tuple[int, int], Copy] = {}
        gains: dict[tuple[int, int], float] = {}
        for copier, source in pairs:
            if any(copier in (c.copier, c.source) or source == c.copier for c in found):
                continue
            value, copy = _fit(votes, power * weight[votes.sample], (copier, source))
            if copy is not None:
                fitted[copier, source] = copy
                gains[copier, source] = value - base
        enough = [
            pair
            for pair in fitted
            if gains[pair] > least + _compute_gain_of_others(pairs[pair], gains)
        ]
        if not enough:
            break
        found.append(fitted[max(enough, key=gains.__getitem__)])
    return found


def _compute_gain_of_others(others: list[int], gains: dict[tuple[int, int], float]) -> float:
    """Return what two others gain who may copy instead; three or more show who copies."""
    if len(others) > 2:
        return 0.0
    c, d = others
    return max(gains.get((c, d), np.inf), gains.get((d, c), np.inf), 0.0)


def weigh_copies(votes: Votes, copies: list[Copy]) -> NDArray[np.float64]:
    """Return how much every vote counts: the probability that it is no copy."""
    power = np.ones(len(votes.sample))
    for copy in copies:
        power[copy.vote] = 1.0 - copy.is_copy
    return power


def _find_unusual_pairs(
    votes: Votes, power: NDArray[np.float64]
) -> tuple[dict[tuple[int, int], list[int]], int]:
    """Return ordered pairs that agree more than others do, and the number of ordered pairs.

    Beside each pair are the others who have voted with both.
    """
    n, shape = votes.n_annotators, (votes.n_samples, votes.n_annotators)
    asked = csr_array((np.ones(len(power)), (votes.sample, votes.annotator)), shape)
    common = (asked.T @ asked).tocoo()
    enough = (common.row != common.col) & (common.data >= _FEWEST_COMMON)
    a, b, count = common.row[enough], common.col[enough], common.data[enough]
    meet = csr_array((np.ones(len(a)), (a, b)), (n, n))
    n_others = np.asarray((meet @ meet)[a, b]).ravel()
    upper = a < b
    a, b, count, n_others = a[upper], b[upper], count[upper], n_others[upper]
    comparable = n_others >= _FEWEST_OTHERS
    if not comparable.any():
        return {}, 0
    same = np.zeros(len(a))
    for k in range(votes.n_classes):
        of_class = votes.label == k
        given = csr_array(
            (power[of_class], (votes.sample[of_class], votes.annotator[of_class])), shape
        )
        same += np.asarray((given.T @ given).tocsr()[a, b]).ravel()
    frequency = np.bincount(votes.label, minlength=votes.n_classes) / len(votes.label)
    chance = min(float(frequency @ frequency), 0.999)
    # Agreement beyond chance is about the product of two skills.
    beyond, skill = (same / count - chance) / (1.0 - chance), np.full(n, 0.7)
    for _ in range(30):
        up = np.bincount(a, count * beyond * skill[b], n)
        up += np.bincount(b, count * beyond * skill[a], n)
        down = np.bincount(a, count * skill[b] ** 2, n) + np.bincount(b, count * skill[a] ** 2, n)
        skill = 0.5 * (skill + np.clip(up / np.maximum(down, 1e-9), 0.0, 1.0))
    expected = np.clip(chance + (1.0 - chance) * skill[a] * skill[b], 0.01, 0.99)
    z = (same / count - expected) / np.sqrt(expected * (1.0 - expected) / count)
    order = np.argsort(-np.where(comparable, z, -np.inf))[: min(_TRIED, int(comparable.sum()))]
    tried = {}
    for i, j in zip(a[order].tolist(), b[order].tolist()):
        met = np.intersect1d(meet[[i]].indices, meet[[j]].indices)
        tried[i, j] = tried[j, i] = met.tolist()
    return tried, 2 * int(comparable.sum())


def _find_common_votes(
    votes: Votes, copier: int, source: int
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the copier's votes where the source voted too, and whether they are the same."""
    label = np.full(votes.n_samples, -1)
    of_source = votes.annotator == source
    label[votes.sample[of_source]] = votes.label[of_source]
    mine = np.flatnonzero((votes.annotator == copier) & (label[votes.sample] >= 0))
    return mine, label[votes.sample[mine]] == votes.label[mine]


def _fit(
    votes: Votes, weight: NDArray[np.float64], pair: tuple[int, int] | None = None
) -> tuple[float, Copy | None]:
    """Return the penalized log-likelihood of all votes, and the copy if there is a pair."""
    n, n_classes = votes.n_annotators, votes.n_classes
    key, entry = np.unique(votes.annotator * n_classes + votes.label, return_inverse=True)
    who, label = np.divmod(key, n_classes)
    own = csr_array((weight, (votes.sample, entry)), (votes.n_samples, len(key)))
    back = own.T.tocsr()
    start = weight.copy()
    if pair is not None:
        mine, same = _find_common_votes(votes, *pair)
        rows, of_mine = votes.sample[mine], weight[mine]
        start[np.isin(votes.annotator, pair)] *= 0.5
    counts = np.full((votes.n_samples, n_classes), 0.3)
    np.add.at(counts, (votes.sample, votes.label), start)
    posterior = counts / counts.sum(axis=1, keepdims=True)
    kappa, last = 0.5, -np.inf
    copied = np.zeros((0, n_classes)) if pair is None else 0.5 * same[:, None] * np.ones(n_classes)
    for _ in range(_STEPS):
        each = back @ posterior
        if pair is not None:
            np.add.at(each, entry[mine], -posterior[rows] * copied * of_mine[:, None])
        population = np.full((n_classes, n_classes), 0.5) + 2.0 * np.eye(n_classes)
        np.add.at(population.T, label, each)
        population /= population.sum(axis=1, keepdims=True)
        total = np.zeros((n, n_classes))
        np.add.at(total, who, each)
        prior = _PRIOR * population.T[label]
        log_t = np.log((each + prior) / (total + _PRIOR)[who])
        frequency = posterior.sum(axis=0) + 1.0
        joint = own @ log_t + np.log(frequency / frequency.sum())
        if pair is not None:
            alone = np.exp(log_t[entry[mine]])
            both = (1.0 - kappa) * alone + kappa * same[:, None]
            copied = kappa * same[:, None] / both
            np.add.at(joint, rows, (np.log(both) - log_t[entry[mine]]) * of_mine[:, None])
        chance = log_sum(joint, 1)
        posterior = np.exp(joint - chance)
        # Rows without a vote are the population's; their prior is constant.
        value = float(chance.sum()) + float((prior * log_t).sum())
        if pair is not None:
            kappa = float((posterior[rows] * copied).sum() + 0.5) / (len(mine) + 2.0)
            kappa = min(max(kappa, 1e-3), 0.999)
        if abs(value - last) < 1e-3:
            break
        last = value
    if pair is None:
        return value, None
    score = (posterior[rows] * (same[:, None] - alone) / both).sum(axis=1)
    error = 1.96 / np.sqrt(max(float(score @ score), 1e-12))
    is_copy = (posterior[rows] * copied).sum(axis=1)[same]
    low, high = max(kappa - error, 0.0), min(kappa + error, 1.0)
    return value, Copy(*pair, kappa, low, high, mine[same], is_copy)
