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

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..utils._threads import for_chunks
from ._newton import Derivatives
from ._systematic import LEAST_BELIEF, Believed, SystematicFlips

# Elements of a chunk of distances. In smaller chunks, two threads wait for each other: with 1000
# classes, chunks of 2**17 take half as long again. Larger ones gain nothing.
_CHUNK_ELEMENTS = 2**19
# Stands for infinity: its exponential is 0, and so is the product of both. Exact in every dtype.
_FAR = 2.0**100


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
    """How much farther each class is than the two nearest ones of a sample.

    The nearest class is kept apart: one minus its probability would lose all digits, the sum of
    the others does not. Measured from the second-nearest, the largest of their exponentials is 1:
    nothing is lost in the precision of the distances, which may be single.
    """

    excess: NDArray  # (n, K) over the second-nearest class, `_FAR` at the nearest class
    second: NDArray[np.float64]  # (n,) gap of the second-nearest class to the nearest
    own: NDArray[np.float64]  # (n,) gap of the given label to the nearest class
    codes: NDArray[np.intp]  # (n,) the given label
    nearest: NDArray[np.intp]  # (n,) the nearest class

    def of(self, rows: slice) -> _Gaps:
        """Return those of some samples."""
        return _Gaps(
            self.excess[rows], self.second[rows], self.own[rows], self.codes[rows],
            self.nearest[rows],
        )  # fmt: skip


class _Softmax(NamedTuple):
    """The softmax q or f.

    "Of the others" is the same over all classes but the nearest, divided by 1 - nearest.
    """

    unscaled: NDArray  # (n, K) exp(-excess / (2 width)), 0 at the nearest class
    scale: NDArray[np.float64]  # (n,) of `unscaled`, which makes it the softmax
    nearest: NDArray[np.float64]  # (n,) of the nearest class
    own: NDArray[np.float64]  # (n,) of the given label
    own_of_others: NDArray[np.float64]  # (n,) 0 if the label is the nearest class
    mean_gap: NDArray[np.float64]  # (n,)
    mean_gap_of_others: NDArray[np.float64]  # (n,)

    def without_nearest(self) -> NDArray:
        """Return the softmax, (n, K), with 0 in the place of the nearest class."""
        return self.unscaled * self.scale[:, None].astype(self.unscaled.dtype)


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
    smallest = distances[samples, nearest].astype(np.float64)
    # A row to compare with: four times as fast as a number.
    excess = np.minimum(distances, np.full(distances.shape[1], _FAR, dtype=distances.dtype))
    # Before the nearest class is set apart: as a label, its gap is 0.
    own = excess[samples, codes] - smallest
    excess[samples, nearest] = _FAR
    second = excess[samples, excess.argmin(axis=1)]
    excess -= second[:, None]
    excess[samples, nearest] = _FAR
    return _Gaps(excess, second - smallest, own, codes, nearest)


def _softmax(gaps: _Gaps, width: float) -> _Softmax:
    """Return ``softmax(-distances / (2 width))``."""
    half = -0.5 / width
    unscaled = gaps.excess * half
    np.exp(unscaled, out=unscaled)
    total, step = _sum(unscaled), np.exp(gaps.second * half)
    # The nearest class has gap 0, and 1 as its exponential.
    nearest = 1.0 / (1.0 + step * total)
    # Of the others, it is unscaled / total, which keeps its digits where step underflows.
    mean_gap_of_others = gaps.second + _dot(unscaled, gaps.excess) / total
    is_nearest = gaps.codes == gaps.nearest
    exponent = np.where(is_nearest, -np.inf, (gaps.own - gaps.second) * half)
    return _Softmax(
        unscaled,
        step * nearest,
        nearest,
        np.exp(gaps.own * half) * nearest,
        np.exp(exponent) / total,
        step * total * nearest * mean_gap_of_others,
        mean_gap_of_others,
    )


def _sum(values: NDArray) -> NDArray[np.float64]:
    """Return the sum over the classes."""
    return _dot(values, np.ones(values.shape[1], dtype=values.dtype))


def _dot(values: NDArray, others: NDArray) -> NDArray[np.float64]:
    """Return the sum of products over the classes."""
    # One product of the BLAS a row: twice as fast as einsum.
    return np.matmul(values[:, None], others[..., None])[:, 0, 0].astype(np.float64)


def _random_terms(gaps: _Gaps, q: _Softmax, p: NoiseParameters) -> _Terms:
    """Return the terms of labels that are true, or flipped at random."""
    n_others = gaps.excess.shape[1] - 1
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


def _with_near_terms(gaps: _Gaps, q: _Softmax, p: NoiseParameters, terms: _Terms) -> _Terms:
    """Add ``r_n sum_k q_k f_y / (1 - f_k)`` over k != y, and its derivatives."""
    f = _softmax(gaps, p.temperature * p.spread)
    own = np.where(gaps.own < _FAR, gaps.own, 0.0)
    # The nearest class as the true one, where it is not the label.
    from_nearest = q.nearest * f.own_of_others
    # The others as the true one, where they are not the label.
    near = f.without_nearest()
    rest = 1.0 - near
    weighted = q.unscaled / rest
    weighted[np.arange(len(own)), gaps.codes] = 0.0
    factor = f.own * q.scale
    from_others = factor * _sum(weighted)
    # The nearest class has gap 0 and adds nothing here.
    by_q = factor * _dot(weighted, gaps.excess) + from_others * gaps.second
    # d log(1 / (1 - f_k)) / d log width = f_k / (1 - f_k) (gap_k - mean gap) / (2 width)
    curved = weighted * (near / rest)
    curve = _dot(curved, gaps.excess) + _sum(curved) * (gaps.second - f.mean_gap)

    value = from_nearest + from_others
    by_temperature = by_q - value * q.mean_gap
    # The product rule: by f_y / (1 - f_nearest), by f_y, and by 1 / (1 - f_k).
    by_width = from_nearest * (own - f.mean_gap_of_others)
    by_width += from_others * (own - f.mean_gap) + factor * curve
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
    gaps: _Gaps, q: _Softmax, p: NoiseParameters, terms: _Terms, flips: SystematicFlips
) -> _Terms:
    """Add what systematic flips change in ``(1 - r) sum_k q_k P(y | k)``, and its derivatives."""
    sample, column, change = flips.changes(gaps.codes)
    is_nearest = column == gaps.nearest[sample]
    others = q.scale[sample] * q.unscaled[sample, column]
    part = change * np.where(is_nearest, q.nearest[sample], others)
    gap = np.where(is_nearest, 0.0, gaps.second[sample] + gaps.excess[sample, column])
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
        self._gaps, self._weight, self._verified = _gaps(distances, codes), weight, verified

    def with_flips(self, flips: SystematicFlips | None) -> NoiseLikelihood:
        """Return the likelihood of the same labels with these systematic flips."""
        other = copy(self)
        other.flips = flips
        return other

    def derivatives(self, p: NoiseParameters) -> Derivatives:
        """Return the mean log-likelihood and its derivatives by (log t, r_u, r_n, log b)."""

        def of_chunk(rows: slice) -> NDArray[np.float64]:
            weight = self._weight[rows]
            terms = _terms(self._gaps.of(rows), self._verified[rows], p, self.flips)
            likelihood, *slopes = terms
            likelihood = np.maximum(likelihood, np.finfo(np.float64).tiny)
            # In the order of the fields of `_Terms`; d log L = dL / L.
            slope = np.stack(slopes) / likelihood
            # At fixed b, the width t b changes with t.
            slope[0] += slope[3]
            value = weight @ np.log(likelihood)
            return np.concatenate([[value], slope @ weight, (slope * weight @ slope.T).ravel()])

        total = np.sum(_of_chunks(of_chunk, self._gaps.excess), axis=0) / self.total_weight
        return Derivatives(float(total[0]), total[1:5], total[5:].reshape(4, 4))


def _terms(
    gaps: _Gaps,
    verified: NDArray[np.bool_],
    p: NoiseParameters,
    flips: SystematicFlips | None = None,
) -> _Terms:
    q = _softmax(gaps, p.temperature)
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
    out: NDArray | None = None,
) -> NDArray:
    """Return the probability of every class to be the true one, (n_samples, n_classes).

    Proportional to ``q_k P(y | k)``; 1 for the label of a verified sample. `out` may be the
    distances.
    """
    out = np.empty_like(distances) if out is None else out

    def fill(rows: slice) -> None:
        label, known = codes[rows], verified[rows]
        _, joint = _joint(_gaps(distances[rows], label), p, flips)
        joint[known] = 0.0
        joint[np.flatnonzero(known), label[known]] = 1.0
        np.divide(joint, joint.sum(axis=1, keepdims=True), out=out[rows])

    _of_chunks(fill, distances)
    return out


def _joint(
    gaps: _Gaps, p: NoiseParameters, flips: SystematicFlips | None
) -> tuple[NDArray, NDArray]:
    """Return q_k, and q_k P(y | k)."""
    samples = np.arange(len(gaps.codes))
    q = _softmax(gaps, p.temperature)
    random = p.random_rate / (gaps.excess.shape[1] - 1)
    if p.near_rate > 0:
        f = _softmax(gaps, p.temperature * p.spread)
        near = (p.near_rate * f.own)[:, None].astype(f.unscaled.dtype)
        given = random + near / (1.0 - f.without_nearest())
        given[samples, gaps.nearest] = random + p.near_rate * f.own_of_others
    else:
        given = np.full_like(gaps.excess, random)
    given[samples, gaps.codes] = 1.0 - p.rate
    if flips is not None:
        sample, column, change = flips.changes(gaps.codes)
        given[sample, column] += (1.0 - p.rate) * change
    belief = q.without_nearest()
    belief[samples, gaps.nearest] = q.nearest
    return belief, belief * given


def believed_classes(
    distances: NDArray,
    codes: NDArray[np.intp],
    verified: NDArray[np.bool_],
    p: NoiseParameters,
) -> Believed:
    """Return the classes that samples may belong to; of verified samples, none."""

    def of_chunk(rows: slice) -> Believed:
        belief, joint = _joint(_gaps(distances[rows], codes[rows]), p, None)
        likelihood = np.maximum(_sum(joint), np.finfo(np.float64).tiny)
        is_kept = belief >= LEAST_BELIEF
        is_kept[np.arange(len(belief)), codes[rows]] = True
        is_kept[verified[rows]] = False
        # Ten times as fast as the non-zeros of a matrix.
        sample, column = np.divmod(np.flatnonzero(is_kept), is_kept.shape[1])
        ratio = (1.0 - p.rate) * belief[sample, column] / likelihood[sample]
        return Believed(sample + rows.start, column, ratio)

    parts = _of_chunks(of_chunk, distances)
    return Believed(*(np.concatenate(part) for part in zip(*parts)))


def _of_chunks(compute: Callable[[slice], Any], of_classes: NDArray) -> list[Any]:
    """Return ``compute(rows)`` for every chunk of the rows of (n_samples, n_classes)."""
    n_samples, n_classes = of_classes.shape
    results: list[Any] = []
    for_chunks(compute, n_samples, max(1, _CHUNK_ELEMENTS // n_classes), results.append)
    return results
