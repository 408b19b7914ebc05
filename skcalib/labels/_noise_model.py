"""A model of label noise: the log-linear pool of the base models, and a noise matrix.

Base model s gives the distance of sample x to every class, d_s(x). Before the label is observed,
the log-linear pool gives class k the probability q_k (the prior), and how often a label is wrong
depends only on the true class:

    P(y | x) = sum_k q_k(x) T_ky,    q = softmax(-1/2 sum_s w_s d_s(x)),    w_s >= 0.

The noise matrix T_ky is the rate at which samples of class k get the label y. The weights w and T
maximize the likelihood of the given labels, by EM. The posterior r_k = q_k T_ky / P(y | x) gives
the expected counts N_ky of the labels, and the gradient for w_s is that of a logistic regression
with targets r: -1/2 sum_k (r_k - q_k) d_sk.

A label that the base models find unlikely has four possible explanations:

- *uniform* noise: labels are wrong at one rate, whatever the classes;
- *confusion-dependent* noise: some wrong labels are drawn from the predicted probabilities of the
  other classes, q_y / (1 - q_k), and the others are uniform;
- *class-dependent* noise: every pair of classes has a rate, shrunk toward the uniform one,
  T_k ~ Dirichlet(alpha m_k);
- *matrix scaling*: the base models confuse classes, and a matrix scaling of their scores corrects
  it; noise is uniform.

With noise, even the samples that the base models are surest of have some wrong labels; with matrix
scaling, they have none. The likelihood of labels left out decides between the four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit, logit
from scipy.stats import chi2
from sklearn.utils import gen_batches

from ._base_models import LARGEST_DISTANCE, BaseModel, ByRows, compute_new_distances
from ._constants import (
    BLOCK_ELEMENTS,
    FEWEST_OF_A_CLASS,
    LOG_ODDS,
    MIN_GAIN_Z,
    MOST_CLASSES_OF_A_MATRIX,
    N_FOLDS,
    SHRINKAGE,
    SOME_SAMPLES,
    STEPS,
)

# Bounds and tolerances of the search; they decide nothing. Gains are in nats per sample.
_SMALLEST_RATE, _LARGEST_RATE, _TINY, _TOLERANCE, _NO_GAIN = 1e-6, 0.9, 1e-300, 1e-6, 1e-9
# Probabilities in a block, so that intermediate results stay in cache; for speed and memory.
_BLOCK = 2**14
# Mean log-likelihood that a step of the weights alone gains when the rates join.
_LITTLE = 1e-3
# Of the ends of an interval, in log-odds.
_FARTHEST_SHIFT, _SHIFT_TOLERANCE, _MOST_SECANTS = 20.0, 0.01, 16


@dataclass(frozen=True, eq=False)
class FittedNoiseModel:
    """Fitted parameters of one kind of noise; with the base models, it scores new labels."""

    weights: NDArray[np.float64]  # (n_base_models + 1,), the last one is of the class frequencies
    matrix: NDArray[np.float64]  # (n_classes, n_classes) from the true class to the label
    log_likelihood: float  # mean over the samples
    rate: float  # of all wrong labels, including confusion-dependent ones
    confusion_rate: float = 0.0  # of confusion-dependent wrong labels
    # Set for the model that is chosen:
    base_models: dict[str, BaseModel] = field(default_factory=dict)
    frequency: NDArray = field(default_factory=lambda: np.zeros((1, 1)))  # its distances
    p_any_wrong: float = 1.0  # probability that there are wrong labels at all
    noninformative: float = 0.0  # fraction of labels that say nothing beyond the prior

    def score(
        self,
        X: Any,
        codes: NDArray[np.intp],
        classes: NDArray,
        verified: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return probabilities of the classes, margins, log-losses and novelty of new samples.

        X is a dict if every base model has its own input; ``verified=None`` means no verified
        labels.
        """
        prior, proba, pooled, novelty = self.score_informative(X, codes, classes, verified)
        rows = np.arange(len(codes))
        margin = pooled[rows, codes] - pooled.min(axis=1)
        loss = -np.log(np.maximum(prior[rows, codes], np.finfo(prior.dtype).tiny))
        self.add_noninformative(proba, prior, verified)
        return proba, margin, loss, novelty

    def score_informative(
        self,
        X: Any,
        codes: NDArray[np.intp],
        classes: NDArray,
        verified: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return prior, posterior, pooled distances and novelty, before `add_noninformative`."""
        found, novelty = compute_new_distances(self.base_models, X, len(codes), classes)
        distances = [compute_excess(raw, slice(None)) for raw in found]
        pooled = log_linear_pool([*distances, self.frequency], self.weights)
        prior = compute_prior([pooled], np.ones(1))
        known = np.zeros(len(codes), dtype=bool) if verified is None else verified
        proba = update_prior(prior, codes, known, self.matrix, self.confusion_rate)[0]
        proba = mix_with_none_wrong(proba, codes, self.p_any_wrong)
        return prior, proba, pooled, novelty

    def add_noninformative(
        self, proba: NDArray, prior: NDArray, verified: NDArray[np.bool_] | None = None
    ) -> None:
        """Mix the posterior with the prior, in place: some labels carry no information."""
        part = self.noninformative * (prior - proba)
        proba += part if verified is None else part * ~verified[:, None]


def mix_with_none_wrong(proba: NDArray, codes: NDArray[np.intp], p_any_wrong: float) -> NDArray:
    """Mix the posterior with "no label is wrong", by its probability, in place."""
    proba *= p_any_wrong
    proba[np.arange(len(codes)), codes] += 1.0 - p_any_wrong
    return proba


def compute_excess(distances: NDArray | ByRows, rows: slice | NDArray) -> NDArray:
    """Return distances less the smallest of each row, capped; in place if they are an array."""
    block = distances[rows]
    block -= block.min(axis=1, keepdims=True)
    return np.minimum(block, LARGEST_DISTANCE, out=block)


def compute_prior(
    distances: list[NDArray], weights: NDArray[np.float64], out: NDArray | None = None
) -> NDArray:
    """Return q, the probabilities by the log-linear pool before the label is observed."""
    pooled = log_linear_pool(distances, weights, out)
    pooled -= compute_row_minima(pooled)[:, None]
    pooled *= -0.5
    proba = np.exp(pooled, out=pooled)
    proba /= compute_row_sums(proba)[:, None]
    return proba


def compute_row_minima(values: NDArray) -> NDArray:
    """Return the minimum of every row; numpy is slow where rows are short."""
    if values.shape[1] > 64:
        return values.min(axis=1)
    result = values[:, 0].copy()
    for column in values.T[1:]:
        np.minimum(result, column, out=result)
    return result


def compute_row_sums(values: NDArray) -> NDArray:
    """Return the sum of every row; numpy is slow where rows are short."""
    return values @ np.ones(values.shape[1], dtype=values.dtype)


def update_prior(
    prior: NDArray,
    codes: NDArray[np.intp],
    verified: NDArray[np.bool_],
    matrix: NDArray,
    confusion_rate: float = 0.0,
    complement: NDArray | None = None,
) -> tuple[NDArray, NDArray[np.float64], NDArray]:
    """Update the prior q by the labels (Bayes' rule).

    A verified label is the true one: its posterior is 1 and its likelihood q_y. `complement` is
    1 - q where it is known.

    Returns
    -------
    posterior : ndarray of shape (n_samples, n_classes)
    log_likelihood : ndarray of shape (n_samples,)
    by_confusion : ndarray of shape (n_samples, n_classes), or (1, n_classes) without any
        The part of the posterior that is confusion-dependent noise.
    """
    rows, part = np.arange(len(codes)), np.zeros((1, prior.shape[1]))
    if _is_uniform(matrix):
        joint = prior * prior.dtype.type((1.0 - confusion_rate) * matrix[0, 1])
        joint[rows, codes] = prior[rows, codes] * prior.dtype.type(
            (1.0 - confusion_rate) * matrix[0, 0]
        )
    else:
        joint = prior * ((1.0 - confusion_rate) * matrix.T).astype(prior.dtype)[codes]
    if confusion_rate:
        complement = _compute_complement(prior) if complement is None else complement
        part = prior / complement
        part *= (confusion_rate * prior[rows, codes])[:, None]
        part[rows, codes] = part[verified] = 0.0
        joint += part
    if verified.any():
        known, label = np.flatnonzero(verified), codes[verified]
        joint[known] = 0.0
        joint[known, label] = prior[known, label]
    likelihood = compute_row_sums(joint).astype(np.float64)
    # Where the likelihood rounds to 0, the label says nothing: the posterior is the prior.
    lost = likelihood <= 0
    if lost.any():
        joint[lost] = prior[lost]
        joint[lost & verified] = 0.0
        joint[lost & verified, codes[lost & verified]] = 1.0
    joint /= compute_row_sums(joint)[:, None]
    likelihood = np.maximum(likelihood, _TINY)
    return joint, np.log(likelihood), part / likelihood[: len(part), None]


def _sum_of_others(values: NDArray, prior: NDArray) -> NDArray:
    """Return the sum over all other classes, exact also where one class outweighs the rest."""
    top = prior > 0.5
    rest = np.where(top, 0.0, values)
    of_top = compute_row_sums(values * top)[:, None]
    return compute_row_sums(rest)[:, None] - rest + np.where(top, 0.0, of_top)


def _compute_complement(prior: NDArray) -> NDArray:
    """Return 1 - q, exact also where q rounds to 1, and above 0."""
    top = prior > 0.5
    rest = np.where(top, 0.0, prior)
    return np.maximum(np.where(top, compute_row_sums(rest)[:, None], 1.0 - rest), 1e-35)


def log_linear_pool(
    distances: list[NDArray], weights: NDArray[np.float64], out: NDArray | None = None
) -> NDArray:
    """Return the weighted sum of the distances; the last ones are those of class frequencies."""
    total = np.multiply(distances[0], distances[0].dtype.type(weights[0]), out=out)
    for distance, weight in zip(distances[1:], weights[1:]):
        if weight:
            total += distance * total.dtype.type(weight)
    return total


def _compute_preference(fit: FittedNoiseModel) -> tuple[bool, float]:
    """Return the key by which fits are compared: most labels are right, then the likelihood."""
    return fit.rate < 0.5, fit.log_likelihood


def make_uniform_matrix(rate: float, n_classes: int) -> NDArray[np.float64]:
    """Return the noise matrix with the same rate between all classes."""
    matrix = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(matrix, 1.0 - rate)
    return matrix


def _is_uniform(matrix: NDArray) -> bool:
    return int((matrix == matrix[0, 1]).sum()) == matrix.size - len(matrix)


class LabelLikelihood:
    """Likelihood of the given labels, as a function of weights and noise matrix.

    There is one array of distances per base model, (n_samples, n_classes), and a last one for the
    class frequencies, (1, n_classes). The likelihood is of the samples `rows`, all by default. A
    verified label counts for the weights and not for the noise matrix.
    """

    def __init__(
        self,
        distances: list[NDArray],
        codes: NDArray[np.intp],
        weight: NDArray[np.float64],
        verified: NDArray[np.bool_],
        rows: NDArray[np.intp] | None = None,
    ) -> None:
        rows = np.arange(len(codes)) if rows is None else rows
        # One class after the other, for `_of_labels`.
        order = rows[np.argsort(codes[rows], kind="stable")]
        # One column after the other: numpy is slow where rows are short.
        self.distances = [_take_by_columns(d, order) for d in distances]
        self.codes, self.weight, self.verified = codes[order], weight[order], verified[order]
        self.n_classes = distances[0].shape[1]
        self.total = float(self.weight.sum())
        given, starts = np.unique(self.codes, return_index=True)
        self._rows_by_label = list(zip(given, map(slice, starts, [*starts[1:], len(order)])))
        self._label_distances = [self._take_labels(d) for d in self.distances]
        self._prior_at: _Prior | None = None
        self._proba: NDArray | None = None  # its memory, used again for other weights
        # Subtracted from the log-likelihood of all samples: 1/2 sum_s precision_s w_s^2.
        self._precision = np.array([compute_spread(d) ** 2 for d in self.distances]) / LOG_ODDS**2

    def _take_labels(self, values: NDArray) -> NDArray:
        """Return the values of the labels."""
        n = len(self.codes)
        return np.broadcast_to(values, (n, self.n_classes))[np.arange(n), self.codes]

    def part(self, mask: NDArray[np.bool_]) -> LabelLikelihood:
        """Return the likelihood of some samples."""
        rows = np.flatnonzero(mask)
        return LabelLikelihood(self.distances, self.codes, self.weight, self.verified, rows)

    def forget_prior(self) -> None:
        """Give back the memory of the latest prior."""
        self._prior_at = self._proba = None

    def predict(self, weights: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the class that the pooled base models predict."""
        blocks = gen_batches(len(self.codes), max(1, _BLOCK // self.n_classes))
        parts = (take_rows(self.distances, rows) for rows in blocks)
        return np.concatenate([log_linear_pool(part, weights).argmin(axis=1) for part in parts])

    def _compute_prior(self, weights: NDArray[np.float64]) -> _Prior:
        """Return the prior; it is kept until the weights change, as each step needs it often."""
        if self._prior_at is None or not np.array_equal(self._prior_at.weights, weights):
            self._prior_at = None
            self._proba = compute_prior(self.distances, weights, self._proba)
            own = self._take_labels(self._proba).astype(np.float64)
            self._prior_at = _Prior(weights, self.distances, self._proba, own, self.codes)
        return self._prior_at

    def log_likelihood(
        self, weights: NDArray, matrix: NDArray, confusion_rate: float = 0.0
    ) -> float:
        """Return the mean log-likelihood of a sample."""
        each = self.log_likelihoods(weights, matrix, confusion_rate)
        return float(self.weight @ each) / self.total

    def log_likelihoods(
        self, weights: NDArray, matrix: NDArray, confusion_rate: float = 0.0
    ) -> NDArray[np.float64]:
        """Return the log-likelihood of every sample."""
        return np.log(self._label_likelihoods(weights, matrix, confusion_rate))

    def _label_likelihoods(
        self, weights: NDArray, matrix: NDArray, confusion_rate: float = 0.0
    ) -> NDArray[np.float64]:
        """Return P(y | x), at least `_TINY`."""
        prior = self._compute_prior(weights)
        if _is_uniform(matrix):
            likelihood = (matrix[0, 0] - matrix[0, 1]) * prior.own + matrix[0, 1]
        else:
            likelihood = self._of_labels(prior.proba, matrix)
        if confusion_rate:
            likelihood += confusion_rate * (prior.by_confusion - likelihood)
        if self.verified.any():
            likelihood[self.verified] = prior.own[self.verified]
        return np.maximum(likelihood, _TINY, out=likelihood)

    def _of_labels(
        self, proba: NDArray, matrix: NDArray, distances: NDArray | None = None
    ) -> NDArray[np.float64]:
        """Return sum_k q_ik T_ky of every sample i, y its label; with distances q_ik d_ik T_ky."""
        result, columns = np.empty(len(proba)), matrix.astype(proba.dtype)
        for label, rows in self._rows_by_label:
            values = proba[rows]
            if distances is not None:
                values = values * (distances if len(distances) == 1 else distances[rows])
            result[rows] = values @ columns[:, label]
        return result

    def fit_uniform(self) -> FittedNoiseModel:
        """Return the most likely weights with uniform noise.

        The same labels may be explained by unsure base models or by wrong labels, and each may be
        a local maximum. A search from unsure base models and few wrong labels finds the first one,
        a search from sure base models and many wrong labels the second. The higher one counts.
        """
        starts = (self.search_start(*start) for start in ((0.3, 0.05), (2.0, 0.3)))
        return max((self.fit(start, None) for start in starts), key=_compute_preference)

    def fit_confusion_dependent(self, uniform: FittedNoiseModel) -> FittedNoiseModel:
        """Return the most likely weights with confusion-dependent and uniform noise."""
        starts = [
            replace(start, confusion_rate=0.1) for start in (uniform, self.search_start(2.0, 0.05))
        ]
        return max(
            (uniform, *(self.fit(start, None) for start in starts)), key=_compute_preference
        )

    def noise_matrix(self, fit: FittedNoiseModel) -> NDArray[np.float64]:
        """Return the expected fraction of the samples of a class (row) with a label (column)."""
        if not fit.confusion_rate:
            return fit.matrix
        prior = self._compute_prior(fit.weights).proba.astype(np.float64)
        by_confusion = (prior / _compute_complement(prior)).T @ (prior * self.weight[:, None])
        np.fill_diagonal(by_confusion, 0.0)
        by_confusion /= np.maximum(by_confusion.sum(axis=1, keepdims=True), _TINY)
        return (1.0 - fit.confusion_rate) * fit.matrix + fit.confusion_rate * by_confusion

    def search_start(self, sharpness: float = 0.3, rate: float = 0.05) -> FittedNoiseModel:
        """Return where a search starts: equal weights, unsure by default; few wrong labels."""
        n_models = len(self.distances) - 1
        weights = np.append(np.full(n_models, sharpness / n_models), 0.5)
        return FittedNoiseModel(weights, make_uniform_matrix(rate, self.n_classes), -np.inf, rate)

    def fit(
        self, start: FittedNoiseModel, shrinkage: float | None, *, noise: bool = True
    ) -> FittedNoiseModel:
        """Return the most likely weights and noise matrix; with ``noise=False``, only weights.

        Newton's steps change weights and rates together; with `shrinkage`, steps for the weights
        and EM steps for the matrix take turns.
        """
        weights, matrix, damping = start.weights, start.matrix, 0.1
        n_rates = 1 + (start.confusion_rate > 0) if noise and shrinkage is None else 0
        uniform_rate = (1.0 - start.confusion_rate) * (1.0 - matrix[0, 0])
        rates = np.array([uniform_rate, start.confusion_rate])[:n_rates]
        if not noise:
            matrix = make_uniform_matrix(1e-12, self.n_classes)
        rate, last = 0.0, -np.inf
        joint = n_rates > 0 and start.log_likelihood > -np.inf
        for step in range(STEPS):
            if joint:
                weights, rates, damping, value = self._joint_step(weights, rates, damping)
            else:
                # Without the rates at first, until that gains little: where the base models
                # contradict most labels, their weights become 0, while a rate above one half would
                # explain that as well.
                weights, damping, value = self._newton_step(
                    weights, matrix, damping, start.confusion_rate if noise else 0.0, noise=noise
                )
            if shrinkage is not None:
                matrix, rate = self._matrix_step(weights, matrix, shrinkage)
            if n_rates and not joint:
                joint = value - last < _LITTLE
            elif value - last < _TOLERANCE and step > (2 if shrinkage is not None else 1):
                break
            last = value
        confusion_rate = 0.0
        if n_rates:
            rate = float(rates.sum())
            matrix, confusion_rate = self._split_rates(rates)
        value = self.log_likelihood(weights, matrix, confusion_rate)
        return FittedNoiseModel(weights, matrix, value, rate, confusion_rate)

    def _split_rates(self, rates: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Return the matrix of uniform noise, and the rate of confusion-dependent noise.

        `rates` are fractions of all samples: of uniform noise, and of the other if it is fitted.
        """
        confusion_rate = float(rates[1:].sum())
        uniform_rate = float(rates[0]) / (1.0 - confusion_rate)
        return make_uniform_matrix(uniform_rate, self.n_classes), confusion_rate

    def _newton_step(
        self,
        weights: NDArray,
        matrix: NDArray,
        damping: float,
        confusion_rate: float = 0.0,
        *,
        noise: bool = True,
    ) -> tuple[NDArray[np.float64], float, float]:
        """Return weights with a higher likelihood, the next step's damping, and the likelihood."""
        value, scores = self._score(weights, matrix, confusion_rate)

        def log_likelihood(weights: NDArray) -> float:
            return self.log_likelihood(weights, matrix, confusion_rate)

        information = None if noise else self._compute_prior(weights).information(self.weight)
        return self._ascend(weights, value, scores, damping, log_likelihood, information)

    def _joint_step(
        self, weights: NDArray, rates: NDArray, damping: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
        """Return what `_newton_step` does, and the rates, which move together with the weights.

        P(y | x) is linear in the rates, so that the information matrix is exact for them.
        """
        n_weights, noise = len(weights), self._split_rates(rates)
        value, scores = self._score(weights, *noise, n_rates=len(rates))

        def log_likelihood(x: NDArray) -> float:
            return self.log_likelihood(x[:n_weights], *self._split_rates(x[n_weights:]))

        start = np.append(weights, rates)
        x, damping, value = self._ascend(start, value, scores, damping, log_likelihood)
        return x[:n_weights], x[n_weights:], damping, value

    def _ascend(
        self,
        x: NDArray[np.float64],
        here: float,
        scores: NDArray[np.float64],
        damping: float,
        log_likelihood: Callable[[NDArray], float],
        information: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.float64], float, float]:
        """Return parameters with a higher likelihood, the next step's damping, the likelihood.

        The parameters are the weights, and the rates if they move; `here` is the mean
        log-likelihood at x. The information matrix is the
        mean outer product of the samples' gradients (Berndt, Hall, Hall, Hausman 1974) unless it
        is known. A parameter stays at its bound where the gradient points beyond it. The scores,
        a row for each parameter, are overwritten.
        """
        n_weights = len(self.distances)
        lower, upper = np.zeros(len(x)), np.full(len(x), _LARGEST_RATE)
        lower[n_weights : n_weights + 1] = _SMALLEST_RATE
        upper[: n_weights - 1], upper[n_weights - 1] = np.inf, 1.0
        penalty = np.append(self._precision, np.zeros(len(x) - n_weights)) / self.total
        here -= 0.5 * float(penalty @ x**2)
        fraction = self.weight / self.total
        gradient = scores @ fraction - penalty * x
        scores *= np.sqrt(fraction)
        information = scores @ scores.T if information is None else information / self.total
        information = information + np.diag(penalty)
        free = np.where(gradient < 0, x > lower, x < upper)
        for _ in range(8):
            damped = information[np.ix_(free, free)]
            damped = damped + np.diag(damping * np.diag(damped) + 1e-9)
            step = np.linalg.solve(damped, gradient[free])
            if step @ gradient[free] < _NO_GAIN:
                break
            moved = x.copy()
            moved[free] += step
            moved = np.clip(moved, lower, upper)
            moved[n_weights:] *= min(_LARGEST_RATE / max(moved[n_weights:].sum(), _TINY), 1.0)
            there = log_likelihood(moved) - 0.5 * float(penalty @ moved**2)
            gained = (there - here) / (0.5 * float(step @ gradient[free]))  # 1 if quadratic
            if gained > 0.0:
                if gained > 0.75:
                    damping *= 0.2
                elif gained < 0.25:
                    damping = 4.0 * max(damping, 0.1)
                return moved, damping, there
            damping = 5.0 * max(damping, 1e-3)
        return x, damping, here

    def _score(
        self, weights: NDArray, matrix: NDArray, confusion_rate: float, n_rates: int = 0
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the mean log-likelihood, and its gradients for the weights and for the rates.

        The gradients (n_weights + n_rates, n_samples) are those of every sample.

        The gradient of q_k for w_s is -1/2 q_k (d_sk - m_s), with m_s = sum_k q_k d_sk. So that of
        log P is -1/2 (sum_k q_k T_ky d_sk / P - m_s), and with uniform noise, whose other labels
        have the rate T_0, it is -1/2 (1 - T_0 / P) (d_sy - m_s).
        """
        prior = self._compute_prior(weights)
        likelihood = self._label_likelihoods(weights, matrix, confusion_rate)
        scores = np.empty((len(weights) + n_rates, len(likelihood)))
        inverse = -0.5 / likelihood
        if _is_uniform(matrix):
            factor = (1.0 - confusion_rate) * (matrix[0, 0] - matrix[0, 1]) * prior.own * inverse
            for score, of_label, mean in zip(scores, self._label_distances, prior.means):
                score[:] = factor * (of_label - mean)
            if confusion_rate:
                inverse *= confusion_rate
                for score, slope in zip(scores, prior.confusion_slopes):
                    score += inverse * slope
        else:
            for score, of_model, mean in zip(scores, self.distances, prior.means):
                score[:] = inverse * self._of_labels(prior.proba, matrix, of_model) + 0.5 * mean
        for score, of_label, mean in zip(scores, self._label_distances, prior.means):
            score[likelihood <= _TINY] = 0.0
            score[self.verified] = -0.5 * (of_label - mean)[self.verified]
        unverified = ~self.verified / likelihood
        if n_rates > 0:
            scores[len(weights)] = (1.0 - prior.own) / (self.n_classes - 1) - prior.own
            scores[len(weights)] *= unverified
        if n_rates > 1:
            scores[len(weights) + 1] = (prior.by_confusion - prior.own) * unverified
        return float(self.weight @ np.log(likelihood)) / self.total, scores

    def _matrix_step(
        self, weights: NDArray, matrix: NDArray, shrinkage: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return noise matrix and rate of wrong labels after two EM steps."""
        prior = self._compute_prior(weights).proba
        unverified = np.where(self.verified, 0.0, self.weight)
        total = max(float(unverified.sum()), _TINY)
        for _ in range(2):
            # N_ky = sum w q_k T_ky / P(y | x), the expected counts of class k and label y.
            each = (unverified / self._label_likelihoods(weights, matrix)).astype(prior.dtype)
            counts = np.zeros((self.n_classes, self.n_classes))
            for label, rows in self._rows_by_label:
                counts[:, label] = matrix[:, label] * (each[rows] @ prior[rows])
            wrong = float(counts.sum() - np.trace(counts))
            rate = float(np.clip(wrong / total, _SMALLEST_RATE, _LARGEST_RATE))
            matrix = counts + shrinkage * make_uniform_matrix(rate, self.n_classes)
            matrix /= counts.sum(axis=1, keepdims=True) + shrinkage
        return matrix, rate


@dataclass(eq=False)
class _Prior:
    """The prior at some weights, and what the likelihood needs of it, computed when asked for."""

    weights: NDArray[np.float64]
    distances: list[NDArray]
    proba: NDArray  # q_k, (n_samples, n_classes)
    own: NDArray[np.float64]  # q_y
    codes: NDArray[np.intp]  # y

    @cached_property
    def means(self) -> list[NDArray[np.float64]]:
        """m_s = sum_k q_k d_sk, by base model."""
        return [_compute_row_products(self.proba, d) for d in self.distances]

    def information(self, sample_weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the information of the weights without noise, 1/4 sum of covariances of d."""
        result = np.zeros((len(self.distances), len(self.distances)))
        n, k = self.proba.shape
        for rows in gen_batches(n, max(1, _BLOCK // k)):
            proba, distances = self.proba[rows], take_rows(self.distances, rows)
            for row, of_row in zip(result, distances):
                weighted = proba * of_row
                row += [
                    sample_weight[rows] @ _compute_row_products(weighted, d) for d in distances
                ]
        means = np.stack(self.means)
        return 0.25 * (result - (means * sample_weight) @ means.T)

    def _iter_confusion(self) -> Iterator[tuple[slice, NDArray, NDArray, NDArray]]:
        """Yield rows, their q_k, 1 - q_k and o_k = q_k / (1 - q_k), 0 for the label."""
        n, k = self.proba.shape
        for rows in gen_batches(n, max(1, _BLOCK // k)):
            proba = self.proba[rows]
            complement = _compute_complement(proba).astype(np.float64)
            odds = proba / complement
            odds[np.arange(len(odds)), self.codes[rows]] = 0.0
            yield rows, proba, complement, odds

    @cached_property
    def by_confusion(self) -> NDArray[np.float64]:
        """P(y | x) if all noise is confusion-dependent, q_y sum_{k != y} o_k."""
        total = np.empty(len(self.proba))
        for rows, _, _, odds in self._iter_confusion():
            total[rows] = compute_row_sums(odds)
        return self.own * total

    @cached_property
    def confusion_slopes(self) -> list[NDArray[np.float64]]:
        """Gradients of `by_confusion` for the weights, times -2.

        With b_k = o_k / (1 - q_k) and b_y = 0, they are q_y sum_k o_k (d_sy - m_s) and
        q_y sum_k b_k (d_sk - m_s) = q_y sum_k (o_k - q_k sum_{j != k} b_j) d_sk for k != y.
        """
        slopes = [np.empty(len(self.proba)) for _ in self.distances]
        for rows, proba, complement, odds in self._iter_confusion():
            total = compute_row_sums(odds)
            residual = odds - proba * _sum_of_others(odds / complement, proba)
            residual -= proba * total[:, None]
            residual[np.arange(len(odds)), self.codes[rows]] += total
            residual *= self.own[rows, None]
            for slope, distances in zip(slopes, take_rows(self.distances, rows)):
                slope[rows] = _compute_row_products(residual, distances)
        return slopes


def _compute_row_products(values: NDArray, distances: NDArray) -> NDArray[np.float64]:
    """Return the sum of the products of every row."""
    if len(distances) == 1:
        return (values @ distances[0].astype(values.dtype)).astype(np.float64)
    return np.einsum("nk,nk->n", values, distances).astype(np.float64)


class Choice(NamedTuple):
    """Kinds of noise fitted to the same labels, compared by the likelihood of labels left out."""

    fits: dict[str, FittedNoiseModel]  # "uniform", and those asked for
    # Mean log-likelihood of labels left out, and by how many standard errors a kind of noise
    # is better than "uniform" and "matrix scaling".
    left_out: dict[str, float]
    gain_z: dict[str, float]

    @property
    def gain_of_matrix(self) -> float:
        """Mean log-likelihood of labels left out, class-dependent less uniform noise."""
        return self.left_out.get("class-dependent", 0.0) - self.left_out.get("uniform", 0.0)


def choose_noise_model(
    likelihood: LabelLikelihood, kinds: tuple[str, ...], *, compare: bool
) -> Choice:
    """Fit kinds of noise to the labels, and compare them by cross-validation."""
    uniform = likelihood.fit_uniform()
    fits = {"uniform": uniform}
    if "confusion-dependent" in kinds and likelihood.n_classes > 2:  # with two, it is uniform
        fit = likelihood.fit_confusion_dependent(uniform)
        # One parameter more has to gain one unit (Akaike), or labels left out lose by it.
        if likelihood.total * (fit.log_likelihood - uniform.log_likelihood) > 1.0:
            fits["confusion-dependent"] = fit
    if "class-dependent" in kinds:
        # Flexible base models have learned wrong labels, and a fit that starts from few keeps few.
        # The second start trusts the base models: labels that they do not predict are wrong.
        starts = uniform, likelihood.search_start(2.0, 0.3)
        fits["class-dependent"] = max(
            (likelihood.fit(start, SHRINKAGE) for start in starts), key=_compute_preference
        )
    fits = {kind: fit for kind, fit in fits.items() if kind == "uniform" or fit.rate < 0.5}
    if len(fits) == 1 or not compare:
        return Choice(fits, {}, {})
    likelihood.forget_prior()
    folds = _Folds(likelihood, uniform)
    left_out = folds.score_noise(fits)
    weight = likelihood.weight / likelihood.total
    simple, others = left_out["uniform"], fits.keys() - {"uniform"}
    gain_z = {kind: folds.compare(left_out[kind], simple) for kind in others}
    # Matrix scaling, which takes longest, has no say where no kind of noise beats the uniform one.
    if max(gain_z.values()) > MIN_GAIN_Z:
        left_out["matrix scaling"] = folds.score_matrix_scaling()
        if weight @ left_out["matrix scaling"] > weight @ simple:
            simple = left_out["matrix scaling"]
            gain_z = {
                kind: min(z, folds.compare(left_out[kind], simple)) for kind, z in gain_z.items()
            }
    return Choice(fits, {name: float(weight @ each) for name, each in left_out.items()}, gain_z)


class _Folds:
    """Log-likelihoods of labels left out of the fits."""

    def __init__(self, likelihood: LabelLikelihood, uniform: FittedNoiseModel) -> None:
        self.likelihood, self.uniform = likelihood, uniform

    def _iter_held(self) -> Iterator[NDArray[np.bool_]]:
        """Yield which samples are left out."""
        fold = np.random.default_rng(0).integers(0, N_FOLDS, len(self.likelihood.codes))
        fold = fold.astype(np.int8)
        for number in range(N_FOLDS):
            held = fold == number
            if held.any():
                yield held

    def score_noise(self, starts: dict[str, FittedNoiseModel]) -> dict[str, NDArray[np.float64]]:
        """Return log-likelihoods by kinds of noise; fits start from those to all samples."""
        result = {kind: np.empty(len(self.likelihood.codes)) for kind in starts}
        for held in self._iter_held():
            train = self.likelihood.part(~held)
            fits = {
                kind: train.fit(start, SHRINKAGE if kind == "class-dependent" else None)
                for kind, start in starts.items()
            }
            del train  # before the next part is made
            test = self.likelihood.part(held)
            for kind, fit in fits.items():
                noise = fit.matrix, fit.confusion_rate
                result[kind][held] = test.log_likelihoods(fit.weights, *noise)
            del test
        return result

    def score_matrix_scaling(self) -> NDArray[np.float64]:
        """Return log-likelihoods by matrix scaling of the pooled scores."""
        result = np.empty(len(self.likelihood.codes))
        for held in self._iter_held():
            train, test = self.likelihood.part(~held), self.likelihood.part(held)
            result[held] = _fit_matrix_scaling(train, test, train.fit(self.uniform, None))
            del train, test
        return result

    def compare(self, better: NDArray[np.float64], simple: NDArray[np.float64]) -> float:
        """Return the mean gain of labels left out in standard errors."""
        weight, gain = self.likelihood.weight / self.likelihood.total, better - simple
        mean = float(weight @ gain)
        error = np.sqrt(weight @ (gain - mean) ** 2 / self.likelihood.total)
        return mean / max(float(error), _TINY)


def _fit_matrix_scaling(
    train: LabelLikelihood, test: LabelLikelihood, uniform: FittedNoiseModel
) -> NDArray[np.float64]:
    """Return the log-likelihoods of `test` if the base models confuse classes.

    With pooled scores z, q = softmax(W z + b), and noise is uniform. A penalty draws W to the
    identity and b to 0.
    """
    n_classes, weight = train.n_classes, train.weight
    scores, rows = _compute_pooled_scores(train, uniform), np.arange(len(train.codes))
    identity = np.append(np.eye(n_classes).ravel(), np.zeros(n_classes))

    def of(x: NDArray) -> tuple[float, NDArray[np.float64]]:
        prior, own, likelihood = _scale_by_matrix(scores, train.codes, x)
        rate, change = expit(x[-1]), x[:-1] - identity
        wrong = rate / (n_classes - 1)
        # d log P / d score_k = q_k (T_ky / P - 1)
        slope = prior * (wrong / likelihood - 1.0)[:, None]
        slope[rows, train.codes] = own * ((1.0 - rate) / likelihood - 1.0)
        slope *= weight[:, None]
        by_map = np.append((scores.T @ slope).ravel(), slope.sum(axis=0))
        by_rate = weight @ (((1.0 - own) / (n_classes - 1) - own) / likelihood)
        value = float(weight @ np.log(likelihood)) - 0.5 * SHRINKAGE * float(change @ change)
        gradient = np.append(by_map - SHRINKAGE * change, by_rate * rate * (1.0 - rate))
        return -value / train.total, -gradient / train.total

    start = np.append(identity, logit(uniform.rate))
    x = minimize(of, start, jac=True, method="L-BFGS-B", options={"maxiter": 25}).x
    return np.log(_scale_by_matrix(_compute_pooled_scores(test, uniform), test.codes, x)[2])


def _scale_by_matrix(
    scores: NDArray, codes: NDArray[np.intp], x: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return q = softmax(W z + b), q of the labels, and their likelihood; x is W, b, log-odds."""
    n_classes = scores.shape[1]
    matrix, offset = x[: -1 - n_classes].reshape(n_classes, n_classes), x[-1 - n_classes : -1]
    rate = expit(x[-1])
    distances = (-2.0 * matrix.T @ scores.T - 2.0 * offset[:, None]).T
    prior = compute_prior([distances], np.ones(1))
    own = prior[np.arange(len(codes)), codes]
    likelihood = (1.0 - rate) * own + rate / (n_classes - 1) * (1.0 - own)
    return prior, own, np.maximum(likelihood, _TINY)


def _compute_pooled_scores(
    likelihood: LabelLikelihood, fit: FittedNoiseModel
) -> NDArray[np.float64]:
    scores = -0.5 * log_linear_pool(likelihood.distances, fit.weights).astype(np.float64)
    return scores - scores.mean(axis=1, keepdims=True)


def choose_rows_to_fit(weight: NDArray[np.float64], n_classes: int) -> NDArray[np.intp]:
    """Return the samples that the model is fitted to: all, or a random part of very many."""
    counted = np.flatnonzero(weight > 0)
    return counted[choose_positions_to_fit(len(counted), n_classes)]


def choose_positions_to_fit(n_counted: int, n_classes: int) -> NDArray[np.intp]:
    """Return their positions among the samples of positive weight, in rising order."""
    fewest = 2 * FEWEST_OF_A_CLASS * min(n_classes, MOST_CLASSES_OF_A_MATRIX)
    n_kept = max(SOME_SAMPLES, fewest, BLOCK_ELEMENTS // n_classes)
    if n_counted <= n_kept:
        return np.arange(n_counted)
    return np.sort(np.random.default_rng(0).choice(n_counted, n_kept, replace=False))


def compute_spread(distances: NDArray | ByRows) -> float:
    """Return the standard deviation of the log-odds by a base model of weight 1."""
    count, squares = 0, 0.0
    for rows in gen_batches(min(distances.shape[0], 10_000), max(1, _BLOCK // distances.shape[1])):
        some = distances[rows].astype(np.float64)
        possible = some < 1e5  # farther are classes of one sample, to which no other can belong
        some -= np.mean(some, axis=1, where=possible, keepdims=True)
        count += int(possible.sum())
        squares += float(np.square(some, out=some).sum(where=possible))
    return 0.5 * float(np.sqrt(squares / count))


def _take_by_columns(distances: NDArray | ByRows, rows: NDArray[np.intp]) -> NDArray:
    """Return some rows, stored by columns; a single row (class frequencies) is for all."""
    if distances.shape[0] == 1:
        return distances[:1]
    if isinstance(distances, ByRows):
        return np.asfortranarray(distances[rows])
    return np.take(distances.T, rows, axis=1).T


def take_rows(distances: list[NDArray], rows: slice | NDArray) -> list[NDArray]:
    """Return the distances of some samples; a single row (class frequencies) is for all."""
    return [d if d.shape[0] == 1 else d[rows] for d in distances]


def compute_rate_interval(
    likelihood: LabelLikelihood, fit: FittedNoiseModel, confidence_level: float = 0.95
) -> tuple[float, float]:
    """Return the profile likelihood interval of the rate of wrong labels.

    One factor multiplies the odds of all wrong labels, and the weights are fitted again.
    The interval holds the rates at which the log-likelihood is below its maximum by at most half a
    quantile of chi-squared (Wilks).
    """
    allowed = 0.5 * chi2.ppf(confidence_level, df=1) / likelihood.total
    best = likelihood._newton_step(fit.weights, fit.matrix, 0.1, fit.confusion_rate)[
        2
    ]  # penalized
    odds = fit.matrix / np.diag(fit.matrix)[:, None]
    frequency = np.bincount(likelihood.codes, likelihood.weight, len(odds)) / likelihood.total

    def scaled(shift: float) -> tuple[NDArray[np.float64], float]:
        matrix = odds * np.exp(shift)
        np.fill_diagonal(matrix, 1.0)
        total = matrix.sum(axis=1, keepdims=True)
        matrix /= total
        # Confusion-dependent noise comes with uniform noise: all totals are equal.
        confusion_odds = (
            fit.confusion_rate / (1.0 - fit.confusion_rate) / fit.matrix[0, 0] * np.exp(shift)
        )
        return matrix, confusion_odds / (confusion_odds + total[0, 0])

    def find_end(direction: float) -> float:
        """Return the rate at which the log-likelihood has fallen by what is allowed."""
        weights = fit.weights

        def excess(shift: float) -> float:
            """Return the root of the fall less that of what is allowed: nearly a straight line."""
            nonlocal weights  # start from those of the last likely call
            (matrix, confusion_rate), moved, damping = scaled(direction * shift), weights, 0.1
            for _ in range(3):
                moved, damping, value = likelihood._newton_step(
                    moved, matrix, damping, confusion_rate
                )
            if value > best - allowed:
                weights = moved
            return float(np.sqrt(max(best - value, 0.0)) - np.sqrt(allowed))

        standard_error = 1.0 / np.sqrt(max(likelihood.total * fit.rate, 1.0))
        shift = _find_root(excess, -float(np.sqrt(allowed)), 2.0 * standard_error)
        matrix, confusion_rate = scaled(direction * shift)
        return 1.0 - (1.0 - confusion_rate) * float(frequency @ np.diag(matrix))

    return find_end(-1.0), find_end(1.0)


def _find_root(function: Callable[[float], float], at_zero: float, step: float) -> float:
    """Return where a rising function is 0, at most `_FARTHEST_SHIFT`, by secants and halves.

    It is `at_zero` < 0 at 0, and `step` is about where it becomes positive.
    """
    inside, below, outside = 0.0, at_zero, step
    while (above := function(outside)) < 0.0:
        if outside >= _FARTHEST_SHIFT:
            return outside
        slope = max(above - below, _TINY) / (outside - inside)
        inside, below = outside, above
        outside = min(outside + min(-1.1 * above / slope, 2.0 * outside), _FARTHEST_SHIFT)
    for number in range(_MOST_SECANTS):
        part = 0.5 if number % 2 else below / (below - above)
        middle = inside + part * (outside - inside)
        value = function(middle)
        if abs(value) < -_SHIFT_TOLERANCE * at_zero:
            return middle
        if value < 0.0:
            inside, below = middle, value
        else:
            outside, above = middle, value
    return outside


def compute_least_rate(
    likelihood: LabelLikelihood, own: NDArray[np.float64], confidence_level: float = 0.95
) -> float:
    """Return the lower end of the likelihood interval of the uniform rate, for a fixed prior.

    `own` is q_y, the prior of each given label.
    """
    weight = likelihood.weight * ~likelihood.verified
    other = (1.0 - own) / (likelihood.n_classes - 1)

    def loss(rate: float) -> float:
        return -float(weight @ np.log(np.maximum(own + rate * (other - own), _TINY)))

    best = minimize_scalar(loss, bounds=(0.0, _LARGEST_RATE), method="bounded")
    most = best.fun + 0.5 * chi2.ppf(confidence_level, df=1)
    return brentq(lambda rate: loss(rate) - most, 0.0, best.x) if loss(0.0) > most else 0.0


def fit_without_noise(likelihood: LabelLikelihood, fit: FittedNoiseModel) -> FittedNoiseModel:
    """Return the most likely weights where no label is wrong."""
    return likelihood.fit(fit, None, noise=False)
