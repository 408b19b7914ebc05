"""A model of how labels go wrong: the pooled predictions of the judges, and a matrix of flips.

Judge s gives the distance of sample x to every class, d_s(x). Before the label is seen, the pooled
judges give class k the probability q_k (the prior), and how often a label is wrong depends only on
the true class:

    P(y | x) = sum_k q_k(x) T_ky,    q = softmax(-1/2 sum_s w_s d_s(x)),    w_s >= 0.

T_ky is the rate at which samples of class k get the label y: a label other than k is a flip. The
weights w and T maximize the likelihood of the given labels, by EM. The posterior
r_k = q_k T_ky / P(y | x) gives the expected counts N_ky of the flips, and the gradient for w_s is
that of a logistic regression with targets r: -1/2 sum_k (r_k - q_k) d_sk.

A label that the judges find unlikely has four possible explanations:

- *common*: flips at one rate, whatever the classes;
- *near*: some flips follow the judges instead: the label is drawn from the probabilities of the
  other classes, q_y / (1 - q_k);
- *flips*: every pair of classes has a rate, shrunk toward the common one,
  T_k ~ Dirichlet(alpha m_k);
- *confusions*: the judges mix up classes (a matrix scaling of their scores); flips are common.

With flips, even the samples that the judges are surest of have some wrong labels; with confusions,
they have none. The likelihood of labels left out decides between the four.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit, logit, softmax
from scipy.stats import chi2

from ._constants import (
    BLOCK_ELEMENTS,
    FEWEST_OF_A_CLASS,
    LOG_ODDS,
    MOST_CLASSES_OF_A_MATRIX,
    N_FOLDS,
    SHRINKAGE,
    SOME_SAMPLES,
    STEPS,
)

# Bounds and tolerances of the search; they decide nothing.
_SMALLEST_RATE, _LARGEST_RATE, _TINY, _TOLERANCE = 1e-6, 0.9, 1e-300, 1e-6


class NoiseFit(NamedTuple):
    """The fitted parameters of one explanation."""

    weights: NDArray[np.float64]  # (n_judges + 1,) the last one is that of the class frequencies
    flips: NDArray[np.float64]  # (n_classes, n_classes) from the true class to the label
    log_likelihood: float  # mean over the samples
    rate: float  # of all flips, including near ones
    near: float = 0.0  # rate of near flips


class Explained(NamedTuple):
    """Probabilities of the true class, without and with the label."""

    prior: NDArray  # (n, K) q
    posterior: NDArray  # (n, K) r
    log_likelihood: NDArray[np.float64]  # (n,)
    near: NDArray  # (n, K) the part of r that is near flips; (1, K) zeros without any


def prior_of(distances: list[NDArray], weights: NDArray[np.float64]) -> NDArray:
    """Return q, the probabilities of the pooled judges before the label is seen."""
    pooled = pool(distances, weights)
    pooled -= row_minima(pooled)[:, None]
    pooled *= -0.5
    proba = np.exp(pooled, out=pooled)
    proba /= row_sums(proba)[:, None]
    return proba


def row_minima(values: NDArray) -> NDArray:
    """Return the minimum of every row; numpy is slow where rows are short."""
    if values.shape[1] > 64:
        return values.min(axis=1)
    result = values[:, 0].copy()
    for column in values.T[1:]:
        np.minimum(result, column, out=result)
    return result


def row_sums(values: NDArray) -> NDArray:
    """Return the sum of every row; numpy is slow where rows are short."""
    return values @ np.ones(values.shape[1], dtype=values.dtype)


def explain(
    prior: NDArray,
    codes: NDArray[np.intp],
    verified: NDArray[np.bool_],
    flips: NDArray,
    near: float = 0.0,
) -> Explained:
    """Update the prior q by the labels (Bayes' rule).

    A verified label is the true one: its posterior is 1 and its likelihood q_y.
    """
    rows, part = np.arange(len(codes)), np.zeros((1, prior.shape[1]))
    if _are_common(flips):
        joint = prior * prior.dtype.type((1.0 - near) * flips[0, 1])
        joint[rows, codes] = prior[rows, codes] * prior.dtype.type((1.0 - near) * flips[0, 0])
    else:
        joint = prior * ((1.0 - near) * flips.T).astype(prior.dtype)[codes]
    if near:
        part = near * prior * prior[rows, codes, None] / _complement(prior)
        part[rows, codes] = part[verified] = 0.0
        joint += part
    if verified.any():
        known, label = np.flatnonzero(verified), codes[verified]
        joint[known] = 0.0
        joint[known, label] = prior[known, label]
    likelihood = row_sums(joint).astype(np.float64)
    # Where the likelihood rounds to 0, the label tells nothing: the posterior is the prior.
    lost = likelihood <= 0
    if lost.any():
        joint[lost] = prior[lost]
        joint[lost & verified] = 0.0
        joint[lost & verified, codes[lost & verified]] = 1.0
    joint /= row_sums(joint)[:, None]
    likelihood = np.maximum(likelihood, _TINY)
    return Explained(prior, joint, np.log(likelihood), part / likelihood[: len(part), None])


def _of_others(values: NDArray, prior: NDArray) -> NDArray:
    """Return the sum over all other classes, exact also where one class outweighs the rest."""
    top = prior > 0.5
    rest = np.where(top, 0.0, values)
    of_top = row_sums(values * top)[:, None]
    return row_sums(rest)[:, None] - rest + np.where(top, 0.0, of_top)


def _complement(prior: NDArray) -> NDArray:
    """Return 1 - q, exact also where q rounds to 1, and above 0."""
    top = prior > 0.5
    rest = np.where(top, 0.0, prior)
    return np.maximum(np.where(top, row_sums(rest)[:, None], 1.0 - rest), 1e-35)


def pool(distances: list[NDArray], weights: NDArray[np.float64]) -> NDArray:
    """Return the weighted sum of the distances; the last ones are those of class frequencies."""
    total = distances[0] * distances[0].dtype.type(weights[0])
    for judge, weight in zip(distances[1:], weights[1:]):
        if weight:
            total += judge * total.dtype.type(weight)
    return total


def _preference(fit: NoiseFit) -> tuple[bool, float]:
    """Return the key by which fits are compared: most labels are right, then the likelihood."""
    return fit.rate < 0.5, fit.log_likelihood


def common_flips(rate: float, n_classes: int) -> NDArray[np.float64]:
    """Return the matrix of flips with the same rate between all classes."""
    flips = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(flips, 1.0 - rate)
    return flips


def _are_common(flips: NDArray) -> bool:
    return int((flips == flips[0, 1]).sum()) == flips.size - len(flips)


class LabelLikelihood:
    """Likelihood of the given labels, as a function of the judges' weights and of the flips.

    There is one array of distances per judge, (n_samples, n_classes), and a last one for the class
    frequencies, (1, n_classes). A verified label counts for the weights and not for the flips.
    """

    def __init__(
        self,
        distances: list[NDArray],
        codes: NDArray[np.intp],
        weight: NDArray[np.float64],
        verified: NDArray[np.bool_],
    ) -> None:
        order = np.argsort(codes, kind="stable")  # one class after the other, for `_flips_step`
        self.distances = rows_of(distances, order)
        self.codes, self.weight, self.verified = codes[order], weight[order], verified[order]
        self.n_classes = distances[0].shape[1]
        self.total = float(weight.sum())
        self._given, self._starts = np.unique(self.codes, return_index=True)
        # Subtracted from the log-likelihood of all samples: 1/2 sum_s precision_s w_s^2.
        self._precision = np.array([spread_of(d) ** 2 for d in self.distances]) / LOG_ODDS**2

    def part(self, mask: NDArray[np.bool_]) -> LabelLikelihood:
        """Return the likelihood of some samples."""
        rows = np.flatnonzero(mask)
        distances = rows_of(self.distances, rows)
        return LabelLikelihood(distances, self.codes[rows], self.weight[rows], self.verified[rows])

    def log_likelihood(self, weights: NDArray, flips: NDArray, near: float = 0.0) -> float:
        """Return the mean log-likelihood of a sample."""
        if not near and _are_common(flips):
            own = prior_of(self.distances, weights)[np.arange(len(self.codes)), self.codes]
            likelihood = flips[0, 1] + (flips[0, 0] - flips[0, 1]) * own.astype(np.float64)
            likelihood = np.where(self.verified, own, likelihood)
            return float(self.weight @ np.log(np.maximum(likelihood, _TINY))) / self.total
        explained = self.explained(weights, flips, near)
        return float(self.weight @ explained.log_likelihood) / self.total

    def explained(self, weights: NDArray, flips: NDArray, near: float = 0.0) -> Explained:
        """Return prior, posterior and log-likelihood of every sample."""
        return explain(prior_of(self.distances, weights), self.codes, self.verified, flips, near)

    def common_rate(self) -> NoiseFit:
        """Return the most likely weights with flips at a common rate.

        The same labels may be explained by unsure judges or by flips, and each may be a local
        maximum. A search from unsure judges and few flips finds the first one, a search from sure
        judges and many flips the second. The higher one counts.
        """
        fits = [
            self.fit(start, None) for start in (self.search_start(), self.search_start(2.0, 0.3))
        ]
        return max(fits, key=_preference)

    def near_flips(self, common: NoiseFit) -> NoiseFit:
        """Return the most likely weights with near flips and flips at a common rate."""
        starts = [start._replace(near=0.1) for start in (common, self.search_start(2.0, 0.05))]
        return max((common, *(self.fit(start, None) for start in starts)), key=_preference)

    def flip_matrix(self, fit: NoiseFit) -> NDArray[np.float64]:
        """Return the expected fraction of the samples of a class (row) with a label (column)."""
        if not fit.near:
            return fit.flips
        prior = prior_of(self.distances, fit.weights).astype(np.float64)
        near = (prior / _complement(prior)).T @ (prior * self.weight[:, None])
        np.fill_diagonal(near, 0.0)
        near /= np.maximum(near.sum(axis=1, keepdims=True), _TINY)
        return (1.0 - fit.near) * fit.flips + fit.near * near

    def search_start(self, sharpness: float = 0.3, rate: float = 0.05) -> NoiseFit:
        """Return where a search starts: judges of equal weights, unsure by default; few flips."""
        n_judges = len(self.distances) - 1
        weights = np.append(np.full(n_judges, sharpness / n_judges), 0.5)
        return NoiseFit(weights, common_flips(rate, self.n_classes), -np.inf, rate)

    def fit(self, start: NoiseFit, shrinkage: float | None, *, noise: bool = True) -> NoiseFit:
        """Return the most likely weights and flips; with ``noise=False``, only the weights."""
        weights, flips, rate, near, damping = *start[:2], start.rate, start.near, 0.1
        if not noise:
            rate, flips, near = 0.0, common_flips(1e-12, self.n_classes), 0.0
        last = -np.inf
        for step in range(STEPS):
            weights, damping, value = self._newton_step(weights, flips, damping, near)
            if noise:
                flips, rate, near = self._flips_step(weights, flips, shrinkage, near)
            if value - last < _TOLERANCE and step > 2:
                break
            last = value
        value = self.log_likelihood(weights, flips, near)
        return NoiseFit(weights, flips, value, rate, near)

    def _newton_step(
        self, weights: NDArray, flips: NDArray, damping: float, near: float = 0.0
    ) -> tuple[NDArray[np.float64], float, float]:
        """Return weights with a higher likelihood, the next step's damping, and the likelihood.

        The information matrix is the mean outer product of the samples' gradients (Berndt, Hall,
        Hall, Hausman 1974). A weight stays at its bound where the gradient points beyond it.
        """
        explained = self.explained(weights, flips, near)
        penalty = self._precision / self.total
        here = float(self.weight @ explained.log_likelihood) / self.total
        here -= 0.5 * float(penalty @ weights**2)
        residual = explained.posterior - explained.prior
        if near:  # the rates of near flips, q_y / (1 - q_k), depend on the weights as well
            part = explained.near / _complement(explained.prior)
            residual[np.arange(len(part)), self.codes] += explained.near.sum(axis=1)
            residual -= explained.prior * _of_others(part, explained.prior)
        columns = [np.einsum("nk,nk->n", residual, np.broadcast_to(d, residual.shape))
                   for d in self.distances]  # fmt: skip
        scores = -0.5 * np.stack(columns, axis=1).astype(np.float64)
        gradient = self.weight @ scores / self.total - penalty * weights
        information = (scores * self.weight[:, None]).T @ scores / self.total + np.diag(penalty)
        highest = np.append(np.full(len(weights) - 1, np.inf), 1.0)
        free = np.where(gradient < 0, weights > 0, weights < highest)
        for _ in range(8):
            damped = information[np.ix_(free, free)]
            damped = damped + np.diag(damping * np.diag(damped) + 1e-9)
            moved = weights.copy()
            moved[free] += np.linalg.solve(damped, gradient[free])
            moved = np.clip(moved, 0.0, highest)
            there = self.log_likelihood(moved, flips, near) - 0.5 * float(penalty @ moved**2)
            if there > here:
                return moved, 0.2 * damping, there
            damping = 5.0 * max(damping, 1e-3)
        return weights, damping, here

    def _flips_step(
        self, weights: NDArray, flips: NDArray, shrinkage: float | None, near: float
    ) -> tuple[NDArray[np.float64], float, float]:
        """Return flips, their rate and the rate of near ones, after two EM steps."""
        prior = prior_of(self.distances, weights)
        unverified = np.where(self.verified, 0.0, self.weight)[:, None]
        rate = 0.0
        for _ in range(2):
            explained = explain(prior, self.codes, self.verified, flips, near)
            counted = explained.posterior * unverified
            counts = np.zeros((self.n_classes, self.n_classes))
            counts[:, self._given] = np.add.reduceat(counted, self._starts, axis=0).T
            total = max(counts.sum(), _TINY)
            rate = float(np.clip(1.0 - np.trace(counts) / total, _SMALLEST_RATE, _LARGEST_RATE))
            if near:
                near = min(float((self.weight @ explained.near).sum()) / total, rate)
            elsewhere = max((rate - near) / (1.0 - near), _SMALLEST_RATE)
            common = flips = common_flips(elsewhere, self.n_classes)
            if shrinkage is not None:
                flips = counts + shrinkage * common
                flips /= counts.sum(axis=1, keepdims=True) + shrinkage
        return flips, rate, near


class Choice(NamedTuple):
    """Explanations of the same labels, compared by the likelihood of labels left out."""

    fits: dict[str, NoiseFit]  # "common"; "near" and "flips" if asked for
    # Mean log-likelihood of labels left out, and by how many standard errors an explanation is
    # ahead of "common" or "confusions", whichever is better.
    left_out: dict[str, float]
    ahead: dict[str, float]

    @property
    def gain_of_flips(self) -> float:
        """Mean log-likelihood of labels left out, by "flips" less by "common"."""
        return self.left_out.get("flips", 0.0) - self.left_out.get("common", 0.0)


def choose(likelihood: LabelLikelihood, kinds: tuple[str, ...], *, compare: bool) -> Choice:
    """Fit explanations of the labels, and compare them by cross-validation."""
    fits = {"common": likelihood.common_rate()}
    n_classes = likelihood.n_classes
    if "near" in kinds and n_classes > 2:  # with two, near and common flips are the same
        fits["near"] = likelihood.near_flips(fits["common"])
    if "flips" in kinds:
        # Flexible judges have learned the flips, and a fit that starts from few flips keeps few.
        # The second start trusts the judges: what they get wrong are flips.
        starts = fits["common"], likelihood.search_start(2.0, 0.3)
        fits["flips"] = max(
            (likelihood.fit(start, SHRINKAGE) for start in starts), key=_preference
        )
    fits = {kind: fit for kind, fit in fits.items() if kind == "common" or fit.rate < 0.5}
    if len(fits) == 1 or not compare:
        return Choice(fits, {}, {})
    left_out, weight = _left_out(likelihood, fits), likelihood.weight / likelihood.total
    mean = {name: float(weight @ values) for name, values in left_out.items()}
    simple = left_out[max(("common", "confusions"), key=mean.__getitem__)]
    ahead = {}
    for kind in fits.keys() - {"common"}:
        gain = float(weight @ (left_out[kind] - simple))
        error = np.sqrt(weight @ (left_out[kind] - simple - gain) ** 2 / likelihood.total)
        ahead[kind] = gain / max(float(error), _TINY)
    return Choice(fits, mean, ahead)


def _left_out(
    likelihood: LabelLikelihood, fits: dict[str, NoiseFit]
) -> dict[str, NDArray[np.float64]]:
    """Return log-likelihoods of labels left out, by every explanation."""
    n_samples = len(likelihood.codes)
    result = {name: np.empty(n_samples) for name in (*fits, "confusions")}
    fold = np.random.default_rng(0).integers(0, N_FOLDS, n_samples)
    for number in range(N_FOLDS):
        held = fold == number
        if not held.any():
            continue
        train, test = likelihood.part(~held), likelihood.part(held)
        for kind, start in fits.items():
            shrinkage = SHRINKAGE if kind == "flips" else None
            fit = train.fit(start, shrinkage)
            result[kind][held] = test.explained(fit.weights, fit.flips, fit.near).log_likelihood
            if kind == "common":
                result["confusions"][held] = _confusions(train, test, fit)
    return result


def _confusions(
    train: LabelLikelihood, test: LabelLikelihood, common: NoiseFit
) -> NDArray[np.float64]:
    """Return the log-likelihoods of `test` if the judges confuse classes.

    With pooled scores z, q = softmax(W z + b), and flips have a common rate. A penalty draws W to
    the identity and b to 0.
    """
    n_classes, weight = train.n_classes, train.weight
    scores, rows = _scores(train, common), np.arange(len(train.codes))
    identity = np.append(np.eye(n_classes).ravel(), np.zeros(n_classes))

    def of(x: NDArray) -> tuple[float, NDArray[np.float64]]:
        prior, own, likelihood = _confused(scores, train.codes, x)
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

    start = np.append(identity, logit(common.rate))
    x = minimize(of, start, jac=True, method="L-BFGS-B", options={"maxiter": 25}).x
    return np.log(_confused(_scores(test, common), test.codes, x)[2])


def _confused(
    scores: NDArray, codes: NDArray[np.intp], x: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return q = softmax(W z + b), q of the labels, and their likelihood; x is W, b, log-odds."""
    n_classes = scores.shape[1]
    matrix, offset = x[: -1 - n_classes].reshape(n_classes, n_classes), x[-1 - n_classes : -1]
    rate = expit(x[-1])
    prior = softmax(scores @ matrix + offset, axis=1)
    own = prior[np.arange(len(codes)), codes]
    likelihood = (1.0 - rate) * own + rate / (n_classes - 1) * (1.0 - own)
    return prior, own, np.maximum(likelihood, _TINY)


def _scores(likelihood: LabelLikelihood, fit: NoiseFit) -> NDArray[np.float64]:
    scores = -0.5 * pool(likelihood.distances, fit.weights).astype(np.float64)
    return scores - scores.mean(axis=1, keepdims=True)


def rows_to_fit(weight: NDArray[np.float64], n_classes: int) -> NDArray[np.intp]:
    """Return the samples that the model is fitted to: all, or a random part of very many."""
    counted = np.flatnonzero(weight > 0)
    return counted[positions_to_fit(len(counted), n_classes)]


def positions_to_fit(n_counted: int, n_classes: int) -> NDArray[np.intp]:
    """Return their positions among the samples of positive weight, in rising order."""
    fewest = 2 * FEWEST_OF_A_CLASS * min(n_classes, MOST_CLASSES_OF_A_MATRIX)
    n_kept = max(SOME_SAMPLES, fewest, BLOCK_ELEMENTS // n_classes)
    if n_counted <= n_kept:
        return np.arange(n_counted)
    return np.sort(np.random.default_rng(0).choice(n_counted, n_kept, replace=False))


def spread_of(distances: NDArray) -> float:
    """Return the standard deviation of the log-odds that a judge of weight 1 gives."""
    some = distances[:10_000].astype(np.float64)
    possible = some < 1e5  # farther are classes of one sample, to which no other can belong
    mean = np.mean(some, axis=1, where=possible, keepdims=True)
    return 0.5 * float(np.std(some - mean, where=possible))


def rows_of(distances: list[NDArray], rows: slice | NDArray) -> list[NDArray]:
    """Return the distances of some samples; a single row (class frequencies) is for all."""
    return [d if d.shape[0] == 1 else d[rows] for d in distances]


def rate_interval(
    likelihood: LabelLikelihood, fit: NoiseFit, confidence_level: float = 0.95
) -> tuple[float, float]:
    """Return the profile likelihood interval of the rate of flips.

    One factor multiplies the odds of all flips, and the weights of the judges are fitted again.
    The interval holds the rates at which the log-likelihood is below its maximum by at most half a
    quantile of chi-squared (Wilks).
    """
    allowed = 0.5 * chi2.ppf(confidence_level, df=1) / likelihood.total
    best = likelihood._newton_step(fit.weights, fit.flips, 0.1, fit.near)[2]  # penalized
    odds = fit.flips / np.diag(fit.flips)[:, None]
    wrong = ~np.eye(len(odds), dtype=bool)
    frequency = np.bincount(likelihood.codes, likelihood.weight, len(odds)) / likelihood.total

    def scaled(shift: float) -> tuple[NDArray[np.float64], float]:
        flips = np.where(wrong, odds * np.exp(shift), odds)
        total = flips.sum(axis=1, keepdims=True)
        # Near flips come with a common rate: all totals are equal.
        near_odds = fit.near / (1.0 - fit.near) / fit.flips[0, 0] * np.exp(shift)
        return flips / total, near_odds / (near_odds + total[0, 0])

    ends = []
    for direction in (-1.0, 1.0):
        weights = fit.weights

        def is_likely(shift: float) -> bool:
            nonlocal weights  # start from those of the last call
            (flips, near), damping = scaled(shift), 0.1
            for _ in range(3):
                weights, damping, value = likelihood._newton_step(weights, flips, damping, near)
            return value > best - allowed

        # Double the step, from about one standard error of the log-odds, then bisect.
        step = 1.0 / np.sqrt(max(likelihood.total * fit.rate, 1.0))
        inside, outside = 0.0, step
        while outside < 20.0 and is_likely(direction * outside):
            inside, step = outside, 2.0 * step
            outside += step
        for _ in range(5):
            middle = 0.5 * (inside + outside)
            inside, outside = (middle, outside) if is_likely(direction * middle) else (
                inside, middle)  # fmt: skip
        flips, near = scaled(direction * outside)
        ends.append(1.0 - (1.0 - near) * float(frequency @ np.diag(flips)))
    return ends[0], ends[1]


def least_rate(
    likelihood: LabelLikelihood, own: NDArray[np.float64], confidence_level: float = 0.95
) -> float:
    """Return the lower end of the likelihood interval of the common rate, for a fixed prior.

    `own` is q_y, the prior of each given label.
    """
    weight = likelihood.weight * ~likelihood.verified
    other = (1.0 - own) / (likelihood.n_classes - 1)

    def loss(rate: float) -> float:
        return -float(weight @ np.log(np.maximum(own + rate * (other - own), _TINY)))

    best = minimize_scalar(loss, bounds=(0.0, _LARGEST_RATE), method="bounded")
    most = best.fun + 0.5 * chi2.ppf(confidence_level, df=1)
    return brentq(lambda rate: loss(rate) - most, 0.0, best.x) if loss(0.0) > most else 0.0


def no_flips(likelihood: LabelLikelihood, fit: NoiseFit) -> NoiseFit:
    """Return the most likely weights where no label is wrong."""
    # Start from the judges of the fit with flips, and from unsure ones.
    fits = [likelihood.fit(start, None, noise=False) for start in (fit, likelihood.search_start())]
    return max(fits, key=lambda fit: fit.log_likelihood)
