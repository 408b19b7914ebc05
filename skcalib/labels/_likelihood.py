"""The likelihood of given labels under the noise model, its gradient, and the posterior.

A scorer believes that class k is the true one with probability q_k, where q is
``softmax(-distances / (2 t))``. The given label y is the true one with probability
``1 - r_u - r_n``; otherwise it is any other class (random flips, r_u) or one that is near the
sample (near flips, r_n):

    P(y | k) = r_u / (K - 1) + r_n f_y / (1 - f_k),    f = softmax(-distances / (2 t b)),  y != k.

Unknown are the temperature t, the two rates, and the spread b >= 1. Systematic flips, if there are
any, are given: see `_systematic`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from ._systematic import LEAST_BELIEF, Believed, SystematicFlips

# Elements of a chunk of distances: the few arrays of this size stay in cache.
_CHUNK_ELEMENTS = 2**16
# Stands for infinity: its exponential is 0, and so is the product of both.
_FAR = 1e30


@dataclass(frozen=True)
class NoiseParameters:
    """The four numbers; for random flips alone, `near_rate` is 0 and `spread` has no effect."""

    temperature: float
    random_rate: float
    near_rate: float = 0.0
    spread: float = 1.0

    @property
    def rate(self) -> float:
        """Probability that a label is wrong."""
        return self.random_rate + self.near_rate


class _Gaps(NamedTuple):
    """Distances less the smallest of each sample.

    The nearest class is kept apart: one minus its probability would lose all digits, the sum of
    the others does not.
    """

    gap: NDArray[np.float64]  # (n, K), `_FAR` at the nearest class
    second: NDArray[np.float64]  # (n,) gap of the second-nearest class
    own: NDArray[np.float64]  # (n,) gap of the given label
    codes: NDArray[np.intp]  # (n,) the given label
    nearest: NDArray[np.intp]  # (n,) the nearest class


class _Belief(NamedTuple):
    """The softmax q."""

    others: NDArray[np.float64]  # (n, K), 0 at the nearest class
    nearest: NDArray[np.float64]  # (n,)
    own: NDArray[np.float64]  # (n,)
    mean_gap: NDArray[np.float64]  # (n,) mean of the gaps by q


class _Near(NamedTuple):
    """The softmax f, and g = f / (1 - f_nearest), the same over all classes but the nearest."""

    others: NDArray[np.float64]  # (n, K) f, 0 at the nearest class
    odds: NDArray[np.float64]  # (n, K) 1 / (1 - f)
    own: NDArray[np.float64]  # (n,) f of the given label
    own_g: NDArray[np.float64]  # (n,) g of the given label, 0 if it is the nearest class
    mean_gap: NDArray[np.float64]  # (n,) by f
    mean_gap_g: NDArray[np.float64]  # (n,) by g


class _Terms(NamedTuple):
    """Likelihood of each sample and its derivatives, all of shape (n,)."""

    likelihood: NDArray[np.float64]
    by_log_temperature: NDArray[np.float64]  # at fixed width
    by_random_rate: NDArray[np.float64]
    by_near_rate: NDArray[np.float64]
    by_log_width: NDArray[np.float64]  # width = t b


def _gaps(distances: NDArray, codes: NDArray[np.intp]) -> _Gaps:
    samples = np.arange(len(distances))
    nearest = distances.argmin(axis=1)
    gap = distances.astype(np.float64)
    gap -= gap[samples, nearest][:, None]
    np.minimum(gap, _FAR, out=gap)
    # Before the nearest class is set apart: as a label, its gap is 0.
    own = gap[samples, codes]
    gap[samples, nearest] = _FAR
    return _Gaps(gap, gap.min(axis=1), own, codes, nearest)


def _belief(gaps: _Gaps, p: NoiseParameters) -> _Belief:
    half = -0.5 / p.temperature
    others = np.exp(gaps.gap * half)
    # The nearest class has gap 0, and 1 as its exponential.
    nearest = 1.0 / (1.0 + others.sum(axis=1))
    others *= nearest[:, None]
    mean_gap = np.einsum("ij,ij->i", others, gaps.gap)
    return _Belief(others, nearest, np.exp(gaps.own * half) * nearest, mean_gap)


def _near(gaps: _Gaps, p: NoiseParameters) -> _Near:
    half = -0.5 / (p.temperature * p.spread)
    # In units of the second-nearest class, the sum over the others is 1 at least.
    unscaled = np.exp((gaps.gap - gaps.second[:, None]) * half)
    total = unscaled.sum(axis=1)
    step = np.exp(gaps.second * half)
    # f_j = unscaled_j step f_nearest, and 1 - f_nearest = step total f_nearest. So g is
    # unscaled / total, which keeps its digits where step underflows.
    nearest = 1.0 / (1.0 + step * total)
    mean_gap_g = np.einsum("ij,ij->i", unscaled, gaps.gap) / total
    is_nearest = gaps.codes == gaps.nearest
    exponent = np.where(is_nearest, -np.inf, (gaps.own - gaps.second) * half)
    others = np.multiply(unscaled, (step * nearest)[:, None], out=unscaled)
    return _Near(
        others,
        1.0 / (1.0 - others),
        np.exp(gaps.own * half) * nearest,
        np.exp(exponent) / total,
        step * total * nearest * mean_gap_g,
        mean_gap_g,
    )


def _random_terms(gaps: _Gaps, q: _Belief, p: NoiseParameters) -> _Terms:
    """Return the terms of labels that are true, or flipped at random."""
    n_others = gaps.gap.shape[1] - 1
    likelihood = q.own * (1.0 - p.rate) + (1.0 - q.own) * (p.random_rate / n_others)
    # dq / d log t = q (gap - mean gap) / (2 t); where the gap is infinite, q is 0.
    own = np.where(gaps.own < _FAR, gaps.own, 0.0)
    slope = q.own * (own - q.mean_gap) / (2.0 * p.temperature)
    # By near_rate: what true labels lose. What near flips add comes in `_with_near_terms`.
    return _Terms(
        likelihood,
        slope * (1.0 - p.rate - p.random_rate / n_others),
        (1.0 - q.own) / n_others - q.own,
        -q.own,
        np.zeros(len(likelihood)),
    )


def _with_near_terms(gaps: _Gaps, q: _Belief, p: NoiseParameters, terms: _Terms) -> _Terms:
    """Add ``r_n sum_k q_k f_y / (1 - f_k)`` over k != y, and its derivatives."""
    near = _near(gaps, p)
    own = np.where(gaps.own < _FAR, gaps.own, 0.0)
    # The nearest class as the true one, where it is not the label: f_y / (1 - f_nearest) is g_y.
    from_nearest = q.nearest * near.own_g
    # The others as the true one, where they are not the label.
    weighted = q.others * near.odds
    weighted[np.arange(len(own)), gaps.codes] = 0.0
    from_others = near.own * weighted.sum(axis=1)
    # The nearest class has gap 0 and adds nothing here.
    by_q = near.own * np.einsum("ij,ij->i", weighted, gaps.gap)
    # d log(1 / (1 - f_k)) / d log width = f_k / (1 - f_k) (gap_k - mean gap) / (2 width)
    curved = np.multiply(weighted, near.others, out=weighted)
    curved *= near.odds
    curve = np.einsum("ij,ij->i", curved, gaps.gap) - curved.sum(axis=1) * near.mean_gap

    value = from_nearest + from_others
    by_temperature = by_q - value * q.mean_gap
    # The product rule: by g_y, by f_y, and by 1 / (1 - f_k).
    by_width = from_nearest * (own - near.mean_gap_g)
    by_width += from_others * (own - near.mean_gap) + near.own * curve
    # The derivatives so far lack 1 / (2 t) and 1 / (2 width).
    half_rate = 0.5 * p.near_rate / p.temperature
    return _Terms(
        terms.likelihood + p.near_rate * value,
        terms.by_log_temperature + half_rate * by_temperature,
        terms.by_random_rate,
        terms.by_near_rate + value,
        half_rate / p.spread * by_width,
    )


def _with_systematic_terms(
    gaps: _Gaps, q: _Belief, p: NoiseParameters, terms: _Terms, flips: SystematicFlips
) -> _Terms:
    """Add what systematic flips change in ``(1 - r) sum_k q_k P(y | k)``, and its derivatives."""
    sample, column, change = flips.changes(gaps.codes)
    is_nearest = column == gaps.nearest[sample]
    part = change * np.where(is_nearest, q.nearest[sample], q.others[sample, column])
    gap = np.where(is_nearest, 0.0, gaps.gap[sample, column])
    # Where the gap is infinite, q is 0 and the product 0 as well.
    slope = part * (gap - q.mean_gap[sample]) * (0.5 / p.temperature)
    n_samples = len(gaps.codes)
    changed = np.bincount(sample, part, n_samples)
    return terms._replace(
        likelihood=terms.likelihood + (1.0 - p.rate) * changed,
        by_log_temperature=terms.by_log_temperature
        + (1.0 - p.rate) * np.bincount(sample, slope, n_samples),
        by_random_rate=terms.by_random_rate - changed,
        by_near_rate=terms.by_near_rate - changed,
    )


class NoiseLikelihood:
    """Log-likelihood of given labels as a function of the parameters.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_classes)
        Of each sample to every class, infinite where a class has no other sample.
    codes : ndarray of shape (n_samples,)
        Given labels, as columns of `distances`.
    weight : ndarray of shape (n_samples,)
        Weights of the samples.
    verified : ndarray of shape (n_samples,), dtype bool
        Samples whose label is known to be true. They tell about the temperature and not about
        the rates, since it is not known what was verified, and what corrected.
    flips : SystematicFlips, default=None
        Systematic flips, taken as they are.
    """

    def __init__(
        self,
        distances: NDArray,
        codes: NDArray[np.intp],
        weight: NDArray[np.float64],
        verified: NDArray[np.bool_],
        flips: SystematicFlips | None = None,
    ) -> None:
        self.total_weight, self.flips = float(weight.sum()), flips
        self.n_classes = distances.shape[1]
        self._chunks = [
            (_gaps(distances[rows], codes[rows]), weight[rows], verified[rows])
            for rows in _batches(distances)
        ]

    def with_flips(self, flips: SystematicFlips | None) -> NoiseLikelihood:
        """Return the likelihood of the same labels with these systematic flips."""
        other = copy(self)
        other.flips = flips
        return other

    def value_and_gradient(self, p: NoiseParameters) -> tuple[float, NDArray[np.float64]]:
        """Return the mean log-likelihood and its derivatives by (log t, r_u, r_n, log b)."""
        value, gradient = 0.0, np.zeros(4)
        for gaps, weight, verified in self._chunks:
            likelihood, *slopes = _terms(gaps, verified, p, self.flips)
            likelihood = np.maximum(likelihood, np.finfo(np.float64).tiny)
            value += float(weight @ np.log(likelihood))
            # In the order of the fields of `_Terms`; d log L = dL / L.
            gradient += np.stack(slopes) @ (weight / likelihood)
        # At fixed b, the width t b changes with t.
        gradient[0] += gradient[3]
        return value / self.total_weight, gradient / self.total_weight


def _terms(
    gaps: _Gaps,
    verified: NDArray[np.bool_],
    p: NoiseParameters,
    flips: SystematicFlips | None = None,
) -> _Terms:
    q = _belief(gaps, p)
    terms = _random_terms(gaps, q, p)
    if p.near_rate > 0:
        terms = _with_near_terms(gaps, q, p, terms)
    if flips is not None:
        terms = _with_systematic_terms(gaps, q, p, terms, flips)
    if not verified.any():
        return terms
    # A verified label is the true one with probability q_y, whatever the rates.
    known = _random_terms(gaps, q, NoiseParameters(p.temperature, 0.0))
    none = np.zeros(len(verified))
    known = known._replace(by_random_rate=none, by_near_rate=none)
    return _Terms(*(np.where(verified, k, t) for k, t in zip(known, terms)))


def label_posterior(
    distances: NDArray,
    codes: NDArray[np.intp],
    verified: NDArray[np.bool_],
    p: NoiseParameters,
    flips: SystematicFlips | None = None,
) -> NDArray:
    """Return the probability of every class to be the true one, (n_samples, n_classes).

    Proportional to ``q_k P(y | k)``; 1 for the label of a verified sample.
    """
    out = np.empty(distances.shape, dtype=distances.dtype)
    for rows in _batches(distances):
        label, known = codes[rows], verified[rows]
        _, joint = _joint(_gaps(distances[rows], label), p, flips)
        joint[known] = 0.0
        joint[np.flatnonzero(known), label[known]] = 1.0
        out[rows] = joint / joint.sum(axis=1, keepdims=True)
    return out


def _joint(
    gaps: _Gaps, p: NoiseParameters, flips: SystematicFlips | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return q_k, and q_k P(y | k)."""
    samples = np.arange(len(gaps.codes))
    q = _belief(gaps, p)
    given = np.full(gaps.gap.shape, p.random_rate / (gaps.gap.shape[1] - 1))
    if p.near_rate > 0:
        near = _near(gaps, p)
        given += p.near_rate * near.own[:, None] * near.odds
        # `odds` is 1 at the nearest class, which `others` leaves out: f_y becomes g_y.
        given[samples, gaps.nearest] += p.near_rate * (near.own_g - near.own)
    given[samples, gaps.codes] = 1.0 - p.rate
    if flips is not None:
        sample, column, change = flips.changes(gaps.codes)
        given[sample, column] += (1.0 - p.rate) * change
    belief = q.others
    belief[samples, gaps.nearest] = q.nearest
    return belief, np.multiply(given, belief, out=given)


def believed_classes(
    distances: NDArray,
    codes: NDArray[np.intp],
    verified: NDArray[np.bool_],
    p: NoiseParameters,
) -> Believed:
    """Return the classes that samples may belong to; of verified samples, none."""
    parts = []
    for rows in _batches(distances):
        belief, joint = _joint(_gaps(distances[rows], codes[rows]), p, None)
        likelihood = np.maximum(joint.sum(axis=1), np.finfo(np.float64).tiny)
        is_kept = belief >= LEAST_BELIEF
        is_kept[np.arange(len(belief)), codes[rows]] = True
        is_kept[verified[rows]] = False
        sample, column = np.nonzero(is_kept)
        ratio = (1.0 - p.rate) * belief[sample, column] / likelihood[sample]
        parts.append((sample + rows.start, column, ratio))
    return Believed(*(np.concatenate(part) for part in zip(*parts)))


def _batches(distances: NDArray) -> list[slice]:
    return list(gen_batches(len(distances), max(1, _CHUNK_ELEMENTS // distances.shape[1])))
