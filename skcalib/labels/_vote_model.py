"""Several annotators label every sample: the likelihood of their votes, and their accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax, xlogy
from scipy.stats import beta as beta_distribution

from ._constants import MIN_VOTE_POWER, VOTES_OF_PRIOR

# Several people label every sample: the likelihood of their votes.
#
# Given the class, votes are not independent, because people err together on hard samples. So a
# sample is easy (z = 0) or hard (z = 1), for all annotators and base models. With s_s(x) the
# log-probabilities of base model s, and y_a the vote of annotator a,
#
#     P(votes | x) = sum_z pi_z(x) sum_k q_z(k | x) prod_a T_az(k, y_a),
#     logit pi_1 = g0 + g1 H,    H the standardized entropy of the base models' mean prediction,
#     q_z = softmax(c_z sum_s w_s s_s + b),    c_0 = 1,
#     T_az(k, k) = sigmoid(t_a + t_k + t - delta_z),    delta_0 = 0 < delta_1,
#     T_az(k, l) = (1 - T_az(k, k)) C_kl.
#
# Only the diagonal of T depends on the annotator. So the cost of a pass grows with the number of
# votes, plus n_samples x n_classes exponentials, and not with the number of annotators. The
# fitted model is still overconfident, as some dependence is left: two exponents correct it
# (:meth:`VoteModel.temper`).

# Prior standard deviations: of annotators and of classes (log-odds of a right vote), of the class
# offsets b (two votes on two classes hardly distinguish b from errors), of all other parameters.
_ANNOTATORS, _CLASSES, _OFFSET, _OTHERS = 0.3, 0.7, 0.3, 1.0
_TEMPERATURES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0])
_MOST_STEPS = 200
# Stop where a step gains less than this of the log-likelihood.
_LEAST_GAIN = 0.1
# Samples x classes that the exponents and a first fit are computed on.
_ELEMENTS = 2**18
_BLOCK_ELEMENTS = 2**19
_TINY = 1e-300


class Votes(NamedTuple):
    """Sample, annotator and label of every vote, all as positions; sorted by sample."""

    sample: NDArray[np.intp]  # (n_votes,)
    annotator: NDArray[np.intp]
    label: NDArray[np.intp]
    n_samples: int
    n_annotators: int
    n_classes: int

    def counts(self) -> NDArray[np.float64]:
        """Return the number of votes for every class, (n_samples, n_classes)."""
        shape = self.n_samples, self.n_classes
        flat = np.bincount(
            self.sample * self.n_classes + self.label, minlength=shape[0] * shape[1]
        )
        return flat.reshape(shape).astype(np.float64)

    def alike(self) -> NDArray[np.intp]:
        """Return a number per sample; samples with the same votes by the same people share it."""
        key = self.annotator.astype(np.uint64) * np.uint64(self.n_classes)
        key += self.label.astype(np.uint64) + np.uint64(1)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
            key = (key ^ (key >> np.uint64(shift))) * np.uint64(factor)
        total = np.zeros(self.n_samples, dtype=np.uint64)
        start = np.flatnonzero(np.diff(self.sample, prepend=-1))
        total[self.sample[start]] = np.add.reduceat(key, start) if len(start) else 0
        return np.unique(total, return_inverse=True)[1].astype(np.intp)

    def of(self, rows: NDArray[np.intp]) -> Votes:
        """Return the votes on some samples, which are in rising order."""
        new = np.full(self.n_samples, -1)
        new[rows] = np.arange(len(rows))
        kept = new[self.sample] >= 0
        return self._replace(
            sample=new[self.sample[kept]],
            annotator=self.annotator[kept],
            label=self.label[kept],
            n_samples=len(rows),
        )

    def used(self, counts: NDArray[np.bool_]) -> Votes:
        """Return the votes on samples that count; the other samples stay, without a vote."""
        kept = counts[self.sample]
        return self._replace(
            sample=self.sample[kept], annotator=self.annotator[kept], label=self.label[kept]
        )


class Evidence(NamedTuple):
    """What is known about the samples besides the votes."""

    scores: NDArray[np.float64]  # (n_base_models, n_samples, n_classes) log-probabilities
    hardness: NDArray[np.float64]  # (n_samples,) H, standardized entropy of the base models
    weight: NDArray[np.float64]  # (n_samples,)
    known: NDArray[np.intp]  # (n_samples,) the class of a verified label, else -1

    def of(self, rows: NDArray[np.intp]) -> Evidence:
        """Return the evidence of some samples."""
        return Evidence(
            self.scores[:, rows], self.hardness[rows], self.weight[rows], self.known[rows]
        )


class Parameters(NamedTuple):
    """The parameters of the likelihood above; factors and delta_1 are logarithms."""

    hard: NDArray[np.float64]  # g0, g1
    base_models: NDArray[np.float64]  # log w_s
    hard_base_models: NDArray[np.float64]  # log c_1
    offset: NDArray[np.float64]  # b
    skill: NDArray[np.float64]  # t
    annotators: NDArray[np.float64]  # t_a
    classes: NDArray[np.float64]  # t_k
    harder: NDArray[np.float64]  # log delta_1
    confusion: NDArray[np.float64]  # logits of C, flat


def _centers(n_base_models: int, n_annotators: int, n_classes: int) -> Parameters:
    """Return the means of the priors, where the search starts."""
    return Parameters(
        hard=np.array([-1.0, 0.5]),
        base_models=np.full(n_base_models, -np.log(max(n_base_models, 1))),
        hard_base_models=np.array([-0.7]),
        offset=np.zeros(n_classes),
        skill=np.array([2.0]),
        annotators=np.zeros(n_annotators),
        classes=np.zeros(n_classes),
        harder=np.array([0.5]),
        confusion=np.zeros(n_classes**2),
    )


def _split(x: NDArray[np.float64], like: Parameters) -> Parameters:
    ends = np.cumsum([len(part) for part in like])
    return Parameters(*np.split(x, ends[:-1]))


class Scale(NamedTuple):
    """How scores of base models, of new samples too, become those of the likelihood."""

    factors: tuple[float, ...]  # one over the temperature of every base model
    mean: float  # of the entropy of their mean prediction
    spread: float  # its standard deviation

    def scores(self, scores: list[NDArray]) -> NDArray[np.float64]:
        """Return log-probabilities at these temperatures, of every base model."""
        return np.array([log_softmax(f * s, axis=1) for f, s in zip(self.factors, scores)])

    def hardness(self, tempered: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standardized entropy of the base models' mean prediction."""
        return (_entropy(tempered) - self.mean) / self.spread


def fit_scale(scores: list[NDArray], votes: Votes, weight: NDArray[np.float64]) -> Scale:
    """Return the scale: the temperature of every base model that fits the votes, and entropy."""
    shares = votes.counts()
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    shares *= weight[:, None]
    factors = tuple(_temperature(score, shares) for score in scores)
    if not factors:
        return Scale((), 0.0, 1.0)
    entropy = _entropy(Scale(factors, 0.0, 1.0).scores(scores))
    return Scale(factors, float(entropy.mean()), float(entropy.std()) or 1.0)


def _entropy(tempered: NDArray[np.float64]) -> NDArray[np.float64]:
    proba = softmax(tempered.mean(axis=0), axis=1)
    return -(proba * np.log(np.maximum(proba, _TINY))).sum(axis=1)


def make_evidence(
    scores: list[NDArray],
    votes: Votes,
    weight: NDArray[np.float64],
    known: NDArray[np.intp],
    scale: Scale | None = None,
) -> Evidence:
    """Return the evidence of the base models, at this scale or the one that fits the votes."""
    if not scores:
        shape = 0, votes.n_samples, votes.n_classes
        return Evidence(np.empty(shape), np.zeros(votes.n_samples), weight, known)
    scale = fit_scale(scores, votes, weight) if scale is None else scale
    tempered = scale.scores(scores)
    return Evidence(tempered, scale.hardness(tempered), weight, known)


def _temperature(score: NDArray, shares: NDArray[np.float64]) -> float:
    """Return the factor that makes the votes most likely, if a tenth of them is random."""
    some = np.random.default_rng(0).permutation(len(score))[: max(_ELEMENTS // score.shape[1], 1)]
    score, shares = score[some], shares[some]
    values = [
        (shares * np.log(0.9 * softmax(factor * score, axis=1) + 0.1 / score.shape[1])).sum()
        for factor in _TEMPERATURES
    ]
    return float(_TEMPERATURES[int(np.argmax(values))])


class VoteModel:
    """The likelihood of votes, its maximum, and the posterior.

    `climb` finds the parameters, `temper` the exponents of votes and of base models, `fit` both.
    """

    def __init__(self, votes: Votes, evidence: Evidence) -> None:
        self.votes, self.evidence = votes, evidence
        self.vote_power, self.score_power = 1.0, 1.0
        self.center = _centers(len(evidence.scores), votes.n_annotators, votes.n_classes)
        self.parameters = self.center
        self.value = -np.inf  # penalized log-likelihood, per sample

    def fit(self) -> VoteModel:
        """Find the parameters, then the exponents."""
        return self.climb().temper()

    def climb(self) -> VoteModel:
        """Maximize the likelihood; with many samples, on a part of them first."""
        rows = _some(self.votes)
        if len(rows) < self.votes.n_samples:
            part = VoteModel(self.votes.of(rows), self.evidence.of(rows)).climb()
            self.parameters = part.parameters
            self._climb(25)
        else:
            self._climb(_MOST_STEPS)
        return self

    def _climb(self, steps: int) -> None:
        passes = _Passes(self.votes, self.evidence)
        center = np.concatenate(self.center)
        deviation = Parameters(*(np.full(len(part), _OTHERS) for part in self.center))
        deviation.annotators[:], deviation.classes[:] = _ANNOTATORS, _CLASSES
        deviation.hard[:] = deviation.skill[:] = 2.0
        deviation.offset[:] = _OFFSET
        precision = np.concatenate(deviation) ** -2.0
        total = max(float(self.evidence.weight.sum()), _TINY)

        def of(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, gradient = passes.likelihood(_split(x, self.center))
            away = x - center
            value -= 0.5 * float(precision @ away**2)
            return -value / total, -(np.concatenate(gradient) - precision * away) / total

        start = np.concatenate(self.parameters)
        options = {"maxiter": steps, "ftol": _LEAST_GAIN / total, "gtol": 1e-6}
        found = minimize(of, start, jac=True, method="L-BFGS-B", options=options)
        self.parameters, self.value = _split(found.x, self.center), -float(found.fun)

    def joint(
        self, rows: NDArray[np.intp], power: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the posterior (2, n_rows, n_classes), and how likely every vote is right."""
        whole = len(rows) == self.votes.n_samples
        votes = self.votes if whole else self.votes.of(rows)
        evidence = self.evidence if whole else self.evidence.of(rows)
        exponents = (self.vote_power, self.score_power) if power else (1.0, 1.0)
        joint = _Passes(votes, evidence).joint(self.parameters, *exponents)
        if power:
            joint *= max(self.vote_power, min(MIN_VOTE_POWER / self.vote_power, 1.0))
        joint -= logsumexp(joint, axis=(0, 2), keepdims=True)
        posterior = np.exp(joint, out=joint)
        return posterior, posterior.sum(axis=0)[votes.sample, votes.label]

    def temper(self) -> VoteModel:
        """Find the exponents with which the other votes on a sample predict a vote best.

        The posterior becomes pi_z q_z(k)^rho (prod_a T_az(k, y_a))^beta, where beta is the worth
        of one more vote. A vote that repeats another is no evidence of the class. So each vote is
        drawn from an urn: with a probability that is fitted along, it repeats another vote on the
        sample, at random. Without two votes on any sample, both exponents are 1.

        This calibrates the prediction of the next vote. Mistakes that people share show in no
        vote: for the class, `joint` raises the posterior to the power beta once more.
        """
        passes = _LeftOut(*self._asked(), self.parameters)
        if not passes.n_votes:
            self.vote_power = self.score_power = 1.0
            return self
        total = max(float(passes.weight.sum()), _TINY)

        def of(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            # N(0, 1) on the log-odds of beta and on the logarithm of rho, in votes
            beta, rho = float(expit(x[0])), float(np.exp(x[1]))
            value, gradient = passes.likelihood(beta, rho, float(x[2]))
            gradient *= [beta * (1.0 - beta), rho, 1.0]
            gradient[:2] -= x[:2]
            return -(value - 0.5 * float(x[:2] @ x[:2])) / total, -gradient / total

        bounds = [(-8.0, 8.0), (-8.0, 8.0), (0.0, 0.99)]
        found = minimize(of, np.array([0.0, 0.0, 0.1]), jac=True, method="L-BFGS-B", bounds=bounds)
        self.vote_power, self.score_power = float(expit(found.x[0])), float(np.exp(found.x[1]))
        return self

    def _asked(self) -> tuple[Votes, Evidence]:
        """Return samples with two votes or more: all, or a random part of many."""
        several = np.bincount(self.votes.sample, minlength=self.votes.n_samples) >= 2
        rows = np.flatnonzero(several & (self.evidence.weight > 0) & (self.evidence.known < 0))
        rows = np.sort(np.random.default_rng(0).permutation(rows)[: _most_rows(self.votes)])
        return self.votes.of(rows), self.evidence.of(rows)

    def posterior(self, power: bool = True) -> NDArray[np.float64]:
        """Return the probability of every class, (n_samples, n_classes), tempered with `power`."""
        blocks = [self.joint(rows, power)[0].sum(axis=0) for rows in self.blocks()]
        proba = np.concatenate(blocks)
        return proba / proba.sum(axis=1, keepdims=True)

    def gain_of_a_vote(self) -> NDArray[np.float64]:
        """Return by how much one more vote would raise the largest probability, on average.

        The vote is that of an average annotator, and counts as votes do in the posterior.
        """
        table = _table(self.parameters)
        gains = [
            gain_of_a_vote(self.joint(rows, power=True)[0], table, self.vote_power)
            for rows in self.blocks()
        ]
        return np.concatenate(gains)

    def prior_log_proba(self) -> NDArray[np.float64]:
        """Return log-probabilities of the base models alone, without any vote."""
        log_q, log_pi = _Passes(self.votes, self.evidence).log_q_and_pi(self.parameters)
        log_q *= self.score_power
        return logsumexp(log_softmax(log_q, axis=2) + log_pi[:, :, None], axis=0)

    def score_fractions(self) -> NDArray[np.float64]:
        """Return the fraction of the pooled scores' spread that comes from each base model."""
        some = self.evidence.scores[:, :10_000]
        spread = np.array([score.std() for score in some])
        part = np.exp(self.parameters.base_models) * spread
        return part / max(part.sum(), _TINY)

    def blocks(self, n_each: float = 1.0) -> Iterator[NDArray[np.intp]]:
        """Yield blocks of samples, each of which takes `n_each` rows of memory."""
        step = max(1, int(_BLOCK_ELEMENTS // (self.votes.n_classes * max(n_each, 1.0))))
        for start in range(0, self.votes.n_samples, step):
            yield np.arange(start, min(start + step, self.votes.n_samples))


def gain_of_a_vote(
    posterior: NDArray, table: NDArray[np.float64], power: float = 1.0
) -> NDArray[np.float64]:
    """Return by how much one more vote would raise the largest probability, on average.

    The posterior is (n_levels, n_samples, n_classes). The table holds the probability of a vote
    (last axis) given level and true class, (n_levels, n_classes, n_classes).
    """
    expected = np.zeros(posterior.shape[1])
    for label in range(table.shape[2]):
        of_label = table[:, :, label]
        chance = np.einsum("znk,zk->n", posterior, of_label)
        after = np.einsum("znk,zk->nk", posterior, of_label**power)
        after /= np.maximum(after.sum(axis=1, keepdims=True), _TINY)
        expected += chance * after.max(axis=1)
    return expected - posterior.sum(axis=0).max(axis=1)


def _most_rows(votes: Votes) -> int:
    return max(2000, _ELEMENTS // votes.n_classes)


def _some(votes: Votes) -> NDArray[np.intp]:
    """Return the samples of a first fit: a random part of many, or all."""
    most = 2 * _most_rows(votes)
    if votes.n_samples <= 2 * most:
        return np.arange(votes.n_samples)
    return np.sort(np.random.default_rng(0).permutation(votes.n_samples)[:most])


def _log_odds(parameters: Parameters) -> NDArray[np.float64]:
    """Return the log-odds of a right vote, (2, n_annotators, n_classes)."""
    easy = parameters.skill + parameters.annotators[:, None] + parameters.classes
    return np.stack([easy, easy - np.exp(parameters.harder)])


def _log_confusion(parameters: Parameters) -> NDArray[np.float64]:
    """Return log C, with a diagonal of 0 so that right votes add nothing."""
    n_classes = len(parameters.classes)
    logits = parameters.confusion.reshape(n_classes, n_classes).copy()
    np.fill_diagonal(logits, -np.inf)
    result = log_softmax(logits, axis=1)
    np.fill_diagonal(result, 0.0)
    return result


def _table(parameters: Parameters) -> NDArray[np.float64]:
    """Return T of an average annotator, (2, n_classes, n_classes)."""
    of_average = parameters._replace(annotators=np.zeros(1))
    right = expit(_log_odds(of_average)[:, 0])
    table = (1.0 - right)[:, :, None] * np.exp(_log_confusion(parameters))
    diagonal = np.arange(table.shape[1])
    table[:, diagonal, diagonal] = right
    return table


class _Passes:
    """Sums over votes as products of sparse matrices."""

    def __init__(self, votes: Votes, evidence: Evidence) -> None:
        self.votes, self.evidence = votes, evidence
        n, classes, one = votes.n_samples, votes.n_classes, np.ones(len(votes.sample))
        # Votes on each sample: by annotator, by class, and by both (`own`).
        self.asked = csr_array((one, (votes.sample, votes.annotator)), (n, votes.n_annotators))
        self.counts = csr_array((one, (votes.sample, votes.label)), (n, classes))
        flat = votes.sample * classes + votes.label, votes.annotator * classes + votes.label
        self.own = csr_array((one, flat), (n * classes, votes.n_annotators * classes))
        self.asked_back, self.counts_back = self.asked.T.tocsr(), self.counts.T.tocsr()
        self.own_back = self.own.T.tocsr()

    def log_q_and_pi(
        self, parameters: Parameters
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log q (2, n_samples, n_classes), and log pi (2, n_samples)."""
        pooled = np.tensordot(np.exp(parameters.base_models), self.evidence.scores, 1)
        pooled = np.broadcast_to(pooled, (self.votes.n_samples, self.votes.n_classes))
        blurred = np.exp(parameters.hard_base_models) * pooled
        scores = np.stack([pooled, blurred])
        scores += parameters.offset
        hard = parameters.hard[0] + parameters.hard[1] * self.evidence.hardness
        return log_softmax(scores, axis=2), np.stack([log_expit(-hard), log_expit(hard)])

    def of_votes(self, parameters: Parameters) -> NDArray[np.float64]:
        """Return log prod_a T (2, n_samples, n_classes)."""
        elsewhere = self.counts @ _log_confusion(parameters).T
        result = np.empty((2, *elsewhere.shape))
        for level, odds in zip(result, _log_odds(parameters)):
            right, wrong = log_expit(odds), log_expit(-odds)
            level[:] = elsewhere + self.asked @ wrong
            level += (self.own @ (right - wrong).ravel()).reshape(level.shape)
        return result

    def joint(
        self, parameters: Parameters, vote_power: float = 1.0, score_power: float = 1.0
    ) -> NDArray[np.float64]:
        """Return the logarithm of pi q^rho (prod T)^beta, (2, n_samples, n_classes)."""
        return self._joint(parameters, self.log_q_and_pi(parameters), vote_power, score_power)

    def _joint(
        self,
        parameters: Parameters,
        priors: tuple[NDArray[np.float64], NDArray[np.float64]],
        vote_power: float = 1.0,
        score_power: float = 1.0,
    ) -> NDArray[np.float64]:
        joint, (log_q, log_pi) = self.of_votes(parameters), priors
        if vote_power != 1.0:
            joint *= vote_power
        joint += log_q if score_power == 1.0 else score_power * log_q
        joint += log_pi[:, :, None]
        known = np.flatnonzero(self.evidence.known >= 0)
        if len(known):
            label = self.evidence.known[known]
            kept = joint[:, known, label]
            joint[:, known] = -np.inf
            joint[:, known, label] = kept
        return joint

    def likelihood(self, parameters: Parameters) -> tuple[float, Parameters]:
        """Return the log-likelihood of all votes, and its gradient."""
        evidence, weight = self.evidence, self.evidence.weight
        log_q, log_pi = priors = self.log_q_and_pi(parameters)
        joint = self._joint(parameters, priors)
        largest = joint.max(axis=(0, 2))
        joint -= largest[:, None]
        posterior = np.exp(joint, out=joint)
        chance = posterior.sum(axis=(0, 2))
        total = largest + np.log(chance)
        posterior *= (weight / chance)[:, None]
        level = posterior.sum(axis=2)
        # By the log-odds of a right vote: posterior of right votes, less what is expected.
        by_odds = np.empty((2, *_log_odds(parameters).shape[1:]))
        for part, odds, r in zip(by_odds, _log_odds(parameters), posterior):
            right = (self.own_back @ r.ravel()).reshape(odds.shape)
            part[:] = right - expit(odds) * (self.asked_back @ r)
        # By the logits of a softmax (C, then q): posterior counts, less what is expected.
        logits, both = np.exp(_log_confusion(parameters)), posterior.sum(axis=0)
        np.fill_diagonal(logits, 0.0)
        counts = (self.counts_back @ both).T
        np.fill_diagonal(counts, 0.0)
        by_confusion = counts - counts.sum(axis=1, keepdims=True) * logits
        residual = posterior - level[:, :, None] * np.exp(log_q)
        blur = float(np.exp(parameters.hard_base_models[0]))
        by_base_model = np.einsum("znk,snk->zs", residual, evidence.scores, optimize=True)
        by_base_model *= np.exp(parameters.base_models)
        by_hard = level[1] - weight * np.exp(log_pi[1])
        gradient = Parameters(
            hard=np.array([by_hard.sum(), by_hard @ evidence.hardness]),
            base_models=by_base_model[0] + blur * by_base_model[1],
            hard_base_models=np.array([blur * by_base_model[1].sum()]),
            offset=residual.sum(axis=(0, 1)),
            skill=np.array([by_odds.sum()]),
            annotators=by_odds.sum(axis=(0, 2)),
            classes=by_odds.sum(axis=(0, 1)),
            harder=np.array([-by_odds[1].sum() * np.exp(parameters.harder[0])]),
            confusion=by_confusion.ravel(),
        )
        return float(weight @ total), gradient


class _LeftOut:
    """How well the base models and the other votes on a sample predict each vote."""

    def __init__(self, votes: Votes, evidence: Evidence, parameters: Parameters) -> None:
        passes = _Passes(votes, evidence)
        self.log_q, self.log_pi = passes.log_q_and_pi(parameters)
        self.log_votes, self.n_votes = passes.of_votes(parameters), len(votes.sample)
        self.sample, self.weight = votes.sample, evidence.weight[votes.sample]
        # log T of every vote, and T, (2, n_votes, n_classes)
        odds = _log_odds(parameters)[:, votes.annotator]
        self.log_t = log_expit(-odds) + _log_confusion(parameters)[:, votes.label].T
        rows = np.arange(self.n_votes)
        self.log_t[:, rows, votes.label] = log_expit(odds[:, rows, votes.label])
        self.t = np.exp(self.log_t)
        # Other votes on the sample, and those of them for the same label.
        self.n_others = np.bincount(votes.sample, minlength=votes.n_samples)[votes.sample] - 1.0
        self.n_same = votes.counts()[votes.sample, votes.label] - 1.0

    def likelihood(
        self, vote_power: float, score_power: float, repeats: float
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the log-likelihood of all votes, each predicted without itself, and its gradient.

        `repeats` is the probability that the second vote on a sample repeats the first.
        """
        whole = score_power * self.log_q + vote_power * self.log_votes + self.log_pi[:, :, None]
        # Dividing by T <= 1 of a vote only raises the largest value, which is 1: no sum is 0.
        whole -= whole.max(axis=(0, 2), keepdims=True)
        without = np.exp(whole)[:, self.sample] * np.exp(-vote_power * self.log_t)
        without /= without.sum(axis=(0, 2))[:, None]
        chance = np.einsum("znk,znk->n", without, self.t)
        urn = 1.0 + (self.n_others - 1.0) * repeats
        predicted = np.maximum(((1.0 - repeats) * chance + repeats * self.n_same) / urn, _TINY)
        part = self.weight / (predicted * urn)
        without *= (self.t - chance[:, None]) * part[:, None]
        gradient = np.array([
            (1.0 - repeats) * np.vdot(without, self.log_votes[:, self.sample] - self.log_t),
            (1.0 - repeats) * np.vdot(without, self.log_q[:, self.sample]),
            part @ (self.n_same - chance - (self.n_others - 1.0) * predicted),
        ])  # fmt: skip
        return float(self.weight @ np.log(predicted)), gradient


class Others(NamedTuple):
    """For every vote, the posterior r(z, k) of its sample without that vote."""

    named: NDArray[np.float64]  # r(z, y), (2, n_votes)
    elsewhere: NDArray[np.float64]  # sum_k r(z, k) C_ky, (2, n_votes)
    hard: NDArray[np.float64]  # probability that the sample is hard, (n_votes,)
    harder: float  # delta_1


def leave_out_votes(model: VoteModel, proba: NDArray) -> Others:
    """Return the posterior of the sample of every vote without that vote.

    `proba` are the current probabilities of the classes: where checks have changed them, that is
    evidence from outside the votes.
    """
    confusion = np.exp(_log_confusion(model.parameters))
    np.fill_diagonal(confusion, 0.0)
    beta, parts = model.vote_power, []
    for rows in model.blocks(len(model.votes.label) / model.votes.n_samples):
        votes = model.votes.of(rows)
        of = _LeftOut(votes, model.evidence.of(rows), model.parameters)
        whole = model.score_power * of.log_q + beta * of.log_votes + of.log_pi[:, :, None]
        whole -= whole.max(axis=(0, 2), keepdims=True)
        before = model.joint(rows, power=True)[0].sum(axis=0)
        changed = (proba[rows] / np.maximum(before, _TINY))[votes.sample]
        changed /= changed.max(axis=1, keepdims=True)
        without = np.exp(whole)[:, votes.sample] * np.exp(-beta * of.log_t) * changed
        without /= np.maximum(without.sum(axis=(0, 2)), _TINY)[:, None]
        named = without[:, np.arange(len(votes.label)), votes.label]
        elsewhere = np.einsum("znk,nk->zn", without, confusion[:, votes.label].T)
        parts.append((named, elsewhere, without[1].sum(axis=1)))
    named, elsewhere, hard = (np.concatenate(part, axis=-1) for part in zip(*parts))
    return Others(named, elsewhere, hard, float(np.exp(model.parameters.harder[0])))


# How often every annotator is right, with an interval.
#
# The votes of an annotator are compared with what the other annotators and the base models say
# about the same samples. For a vote y of annotator a, let r(z, k) be the posterior of the sample
# without that vote (z: easy or hard, k: the class), and s the log-odds that a is right on an easy
# sample:
#
#     P(y | s) = sum_z r(z, y) T_z(s) + (1 - T_z(s)) sum_k r(z, k) C_ky,
#     T_z(s) = sigmoid(s - delta_z),
#
# The product over the votes of a, times a prior worth VOTES_OF_PRIOR votes of average accuracy,
# is the posterior of s on a grid. The accuracy of a is the mean of T_z over easy and hard
# samples. An error that all annotators share is added: if the likelihood is right, these
# accuracies and the posterior probabilities of all votes have the same mean, and their
# difference widens the intervals.

# Points of the grid: ends of intervals are within .003 of those of 513 points.
_POINTS = 65
# Ends of the first grid in log-odds: accuracies below .001 and above .99999.
_LEAST = -8.0
_MOST = 12.0
# The second grid leaves out points whose log-density is below the largest by more than this.
_FAR = 8.0


def estimate_accuracies(
    votes: Votes,
    p_correct: NDArray[np.float64],
    proba: NDArray,
    weight: NDArray[np.float64],
    model: VoteModel | None,
) -> tuple[NDArray, ...]:
    """Return for every annotator: n_votes, accuracy, low, high, and the class with most mistakes.

    Accuracies are shrunk to the mean by VOTES_OF_PRIOR votes. Votes on duplicates count once.
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
        others = leave_out_votes(model, proba)
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
