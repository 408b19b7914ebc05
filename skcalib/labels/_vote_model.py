"""Several annotators label every sample: the likelihood of their votes, and their accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import digamma, expit, log_expit
from scipy.stats import beta as beta_distribution

from ._constants import (
    MIN_GAIN_OF_ROWS,
    SHARED_ERRORS,
    SHARED_ERRORS_WITH_MODELS,
    VOTES_OF_PRIOR,
)

# Several people label every sample: the likelihood of their votes.
#
# Annotator a labels a sample of class k with the probabilities T_a[k, :], which differ between
# people as much as the votes show: T_a[k, :] ~ Dirichlet(c M_k), where the population's rows M and
# the concentration c are found (a Dirichlet-multinomial, Minka 2000). An annotator with few votes
# is the population. Given the class, votes are still not independent, because people err together
# on hard samples. So a sample is easy (z = 0) or hard (z = 1), for all annotators and base models:
#
#     P(votes | x) = sum_z pi_z(x) sum_k q_z(k | x) prod_a T_az(k, y_a),
#     T_a0 = T_a,    T_a1(k, l) = g T_a(k, l) + (1 - g) u_l,    0 < g < 1,
#     q_z = softmax(w_z sum_s v_s s_s + b),    w_0 = 1, 0 <= w_1 <= 1, v_s >= 0,
#     logit pi_1 = h_0 + h_1 H,
#
# s_s(x) the log-probabilities of base model s, H the standardized entropy of their pool, and u the
# frequencies of the labels. So nobody does worse than chance on a hard sample. Without base
# models, q holds the frequencies of the classes. All is found by variational EM, which starts at
# the fractions of the votes.
#
# Few votes do not separate full rows from frequencies of classes. So rows have to make votes left
# out more likely than the plain model does, by MIN_GAIN_OF_ROWS standard errors beyond a unit for
# every parameter more: there, an annotator is right equally often in all classes, and these are
# equally frequent; a majority is overruled only by people who are right more often.
#
# The fitted model is still overconfident, as some dependence is left: two exponents correct it
# (:meth:`VoteModel.temper`). What all people get wrong together shows in no vote: in a fraction
# of the samples the votes say no more than their fractions do (SHARED_ERRORS).

# Prior tables of every row M_k: one on the diagonal, one over all classes.
_ON_DIAGONAL, _EVERYWHERE = 1.0, 1.0
# Bounds of the concentration: there, rows of people are drawn anew, or all alike.
_CONCENTRATIONS = 0.5, 200.0
# Prior standard deviation of the class offsets b of base models: two votes on two classes hardly
# distinguish b from errors.
_OFFSET = 0.3
# Prior mean and standard deviation of h: a quarter of the samples is hard.
_HARD, _HARD_DEVIATION = np.array([-1.0, 0.5]), 2.0
_MOST_STEPS = 100
# Stop where no posterior probability changes by more than this.
_LEAST_CHANGE = 1e-3
# Steps between two searches for the pool, and steps of a search.
_POOL_EVERY = 4
_SHORT_SEARCH = {"maxiter": 4}
# Samples x classes that exponents, weights of base models, and a first fit are computed on.
_ELEMENTS = 2**18
_BLOCK_ELEMENTS = 2**19
TINY = 1e-300


class Votes(NamedTuple):
    """Sample, annotator and label of every vote, all as positions; sorted by sample."""

    sample: NDArray[np.intp]  # (n_votes,)
    annotator: NDArray[np.intp]
    label: NDArray[np.intp]
    n_samples: int
    n_annotators: int
    n_classes: int
    power: NDArray[np.float64] | None = None  # how much every vote counts; None: 1

    def powers(self) -> NDArray[np.float64]:
        """Return how much every vote counts: less than 1 if it may repeat another's."""
        return np.ones(len(self.sample)) if self.power is None else self.power

    def counts(self) -> NDArray[np.float64]:
        """Return the number of votes for every class, (n_samples, n_classes)."""
        shape = self.n_samples, self.n_classes
        flat = np.bincount(
            self.sample * self.n_classes + self.label, self.power, shape[0] * shape[1]
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
            power=None if self.power is None else self.power[kept],
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
    weight: NDArray[np.float64]  # (n_samples,)
    known: NDArray[np.intp]  # (n_samples,) the class of a verified label, else -1

    def of(self, rows: NDArray[np.intp]) -> Evidence:
        """Return the evidence of some samples."""
        return Evidence(self.scores[:, rows], self.weight[rows], self.known[rows])


def make_evidence(
    scores: list[NDArray], votes: Votes, weight: NDArray[np.float64], known: NDArray[np.intp]
) -> Evidence:
    """Return the evidence of base models, of which there may be none."""
    return Evidence(stack_scores(scores, votes.n_samples, votes.n_classes), weight, known)


def stack_scores(scores: list[NDArray], n_samples: int, n_classes: int) -> NDArray[np.float64]:
    """Return scores of base models, of which there may be none, as one array."""
    return np.array(scores, dtype=np.float64).reshape(len(scores), n_samples, n_classes)


class Pool(NamedTuple):
    """What the base models say of new samples; without any, the frequencies of the classes."""

    factors: NDArray[np.float64]  # (n_base_models,) v
    offset: NDArray[np.float64]  # (n_classes,) b
    blur: float  # w_1
    hard: NDArray[np.float64]  # h_0, h_1
    mean: float  # of the entropy of the pool
    spread: float  # its standard deviation

    def pooled(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_s v_s s_s, (n_samples, n_classes)."""
        return np.tensordot(self.factors, scores, 1)

    def entropy(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the entropy of the pool's prediction."""
        log_proba = self.pooled(scores)
        log_proba -= log_sum(log_proba, 1)
        return -(np.exp(log_proba) * log_proba).sum(axis=1)

    def log_odds_hard(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-odds of a hard sample."""
        if not len(self.factors):
            return np.full(scores.shape[1], self.hard[0])
        return self.hard[0] + self.hard[1] * (self.entropy(scores) - self.mean) / self.spread

    def log_q_and_pi(
        self, scores: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log q (2, n_samples, n_classes), and log pi (2, n_samples)."""
        pooled, odds = self.pooled(scores), self.log_odds_hard(scores)
        log_q = np.stack([pooled, self.blur * pooled])
        log_q += self.offset
        log_q -= log_sum(log_q, 2)
        return log_q, np.stack([log_expit(-odds), log_expit(odds)])


class VoteModel:
    """The likelihood of votes, its maximum, and the posterior.

    `climb` finds the parameters, `temper` the exponents of votes and of base models, `fit` both.
    With `plain`, an annotator is right equally often in all classes.
    """

    def __init__(self, votes: Votes, evidence: Evidence, *, plain: bool = False) -> None:
        self.votes, self.evidence, self.plain = votes, evidence, plain
        self.vote_power, self.score_power = 1.0, 1.0
        n_models, n_classes = len(evidence.scores), votes.n_classes
        scale = np.array([max(float(s.std()), TINY) for s in evidence.scores])
        self.scale = np.minimum(scale, 1e12) if n_models else scale
        self.pool = Pool(
            1.0 / (max(n_models, 1) * scale), np.zeros(n_classes), 0.5, _HARD, 0.0, 1.0
        )
        self.rows = _make_plain_rows(0.7, n_classes)  # M
        self.concentration = 4.0  # c
        self.informed = 0.5  # g
        self.value = -np.inf  # log-likelihood per sample
        # An entry for every annotator and label that he or she has given.
        key, self.entry = np.unique(votes.annotator * n_classes + votes.label, return_inverse=True)
        self.who, self.label = np.divmod(key, n_classes)
        self.own = csr_array(
            (votes.powers(), (votes.sample, self.entry)),
            (votes.n_samples, len(key)),
        )
        self.frequency = evidence.weight @ votes.counts() + 1.0  # u
        self.frequency /= self.frequency.sum()
        if plain:
            self.frequency = np.full(n_classes, 1.0 / n_classes)
        # Expected counts of the votes of every entry by class, and of every annotator's.
        self.counts = np.zeros((len(key), n_classes))
        self.totals = np.zeros((votes.n_annotators, n_classes))

    def fit(self) -> VoteModel:
        """Find the parameters, then the exponents."""
        return self.climb().temper()

    def climb(self) -> VoteModel:
        """Maximize the likelihood; with many samples, on a part of them first."""
        rows, steps = _draw_some(self.votes), _MOST_STEPS
        if len(rows) < self.votes.n_samples:
            part = VoteModel(self.votes.of(rows), self.evidence.of(rows), plain=self.plain)
            part.climb()
            self.rows, self.concentration = part.rows, part.concentration
            self.informed, self.pool = part.informed, part.pool
            steps = 15
        fraction = self.votes.counts() + 1.0 / self.votes.n_classes
        fraction /= fraction.sum(axis=1, keepdims=True)
        posterior = np.stack([0.7 * fraction, 0.3 * fraction])
        informed = np.full(self.counts.shape, self.informed)
        weight, total = self.evidence.weight, max(float(self.evidence.weight.sum()), TINY)
        back = self.own.T.tocsr()
        for step in range(steps):
            easy, hard = (back @ (weight[:, None] * level) for level in posterior)
            self.counts = easy + informed * hard
            self.totals = self._sum_by_annotator(self.counts)
            known, asked = float((informed * hard).sum()), float(hard.sum())
            self.informed = (known + 0.5) / (asked + 1.0)
            self._find_rows()
            if step % _POOL_EVERY == 0 or step < 3:
                self._find_pool(posterior)
            tables = self.tables()
            informed = np.exp(np.log(self.informed) + tables[0] - tables[1])
            joint = self._joint(tables)
            chance = log_sum(joint, (0, 2))
            joint -= chance
            new = np.exp(joint, out=joint)
            change = np.abs(new - posterior).max()
            posterior = new
            if change < _LEAST_CHANGE:
                break
        self.value = float(weight @ chance[0, :, 0]) / total
        self._last = posterior, informed
        return self

    def _sum_by_annotator(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        result = np.zeros((self.votes.n_annotators, self.votes.n_classes))
        np.add.at(result, self.who, values)
        return result

    # The rows of confusion: population and annotators.

    def _find_rows(self) -> None:
        """Make a step to the most likely rows M and concentration c."""
        tables, ratio = self._expect_tables(self.concentration)
        # Newton's step for log c; Minka's fixed point creeps where annotators are nearly alike.
        slope = (self._expect_tables(1.1 * self.concentration)[1] - ratio) / np.log(1.1)
        step = -ratio / slope if slope < 0.0 else np.sign(ratio)
        c = self.concentration * np.exp(np.clip(step, -1.0, 1.0))
        self.concentration = float(np.clip(c, *_CONCENTRATIONS))
        n_classes = self.votes.n_classes
        if self.plain:
            right = tables[0] + _ON_DIAGONAL + _EVERYWHERE / n_classes
            total = tables.sum() + _ON_DIAGONAL + _EVERYWHERE
            self.rows = _make_plain_rows(float(right / total), n_classes)
        else:
            rows = tables + _EVERYWHERE / n_classes
            rows[np.diag_indices(n_classes)] += _ON_DIAGONAL
            self.rows = rows / rows.sum(axis=1, keepdims=True)

    def _expect_tables(self, c: float) -> tuple[NDArray[np.float64], float]:
        """Return the sums of Minka's fixed point, and the logarithm of its factor of c.

        The sums are votes that count for the population: all if people are alike (c is large),
        and one per annotator and label if they are drawn anew. They have the shape of M; with
        `plain` they are those of right and wrong votes.
        """
        if self.plain:
            p, counts = self.rows[0, 0], np.stack(self._count_right())
            prior = c * np.array([[p], [1.0 - p]])
            tables = (prior * (digamma(counts + prior) - digamma(prior))).sum(axis=1)
            totals = counts.sum(axis=0)
        else:
            prior = c * self.rows.T[self.label]
            each = prior * (digamma(self.counts + prior) - digamma(prior))
            tables, totals = np.zeros(self.rows.shape), self.totals
            np.add.at(tables, self.label, each)
            tables = tables.T
        expected = c * float((digamma(totals + c) - digamma(c)).sum())
        return tables, float(np.log(tables.sum() / max(expected, TINY))) if expected else 0.0

    def _count_right(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the expected number of every annotator's right and wrong votes."""
        own = self.counts[np.arange(len(self.label)), self.label]
        right = np.bincount(self.who, own, self.votes.n_annotators).astype(np.float64)
        return right, np.maximum(self.totals.sum(axis=1) - right, 0.0)

    def _pseudo_counts(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the parameters of every entry's Dirichlet rows, and the sums of the rows."""
        c = self.concentration
        if not self.plain:
            return self.counts + c * self.rows.T[self.label], (self.totals + c)[self.who]
        right, wrong = self._count_right()
        p = self.rows[0, 0]
        is_right = self.label[:, None] == np.arange(self.votes.n_classes)
        count = np.where(
            is_right, (right + c * p)[self.who, None], (wrong + c * (1.0 - p))[self.who, None]
        )
        return count, np.broadcast_to((right + wrong + c)[self.who, None], count.shape)

    def tables(self) -> NDArray[np.float64]:
        """Return log T of every entry given level and class, (2, n_entries, n_classes)."""
        count, total = self._pseudo_counts()
        easy = digamma(count) - digamma(total)
        if self.plain:
            is_wrong = self.label[:, None] != np.arange(self.votes.n_classes)
            easy -= is_wrong * np.log(max(self.votes.n_classes - 1, 1))
        return np.stack([easy, self._mix_hard(easy)])

    def _mix_hard(self, easy: NDArray[np.float64]) -> NDArray[np.float64]:
        uninformed = np.log1p(-self.informed) + np.log(self.frequency[self.label])
        return np.logaddexp(np.log(self.informed) + easy, uninformed[:, None])

    def table_of_average(self) -> NDArray[np.float64]:
        """Return T of a new annotator, (2, n_classes, n_classes)."""
        hard = self.informed * self.rows + (1.0 - self.informed) * self.frequency
        return np.stack([self.rows, hard])

    # The classes: base models or frequencies.

    def _find_pool(self, posterior: NDArray[np.float64]) -> None:
        """Make some steps to the most likely pool of base models, and fraction of hard samples."""
        scores, weight = self.evidence.scores, self.evidence.weight
        if not len(scores):
            count = weight @ posterior.sum(axis=0) + 1.0
            if self.plain:
                count = np.ones(self.votes.n_classes)
            hard = float(np.clip(weight @ posterior[1].sum(axis=1) / weight.sum(), 0.01, 0.99))
            odds = np.array([np.log(hard) - np.log1p(-hard), 0.0])
            self.pool = self.pool._replace(offset=digamma(count) - digamma(count.sum()), hard=odds)
            return
        rows = np.random.default_rng(0).permutation(len(weight))
        rows = np.sort(rows[: max(_ELEMENTS // self.votes.n_classes, 2000)])
        if len(rows) < len(weight):
            posterior, scores, weight = posterior[:, rows], scores[:, rows], weight[rows]
        n, total = len(scores), max(float(weight.sum()), TINY)
        flat, part = scores.reshape(n, -1), weight / total
        level = posterior.sum(axis=2)

        def of(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            factors, blur, offset = x[:n] / self.scale, x[n], x[n + 1 :]
            pooled = (factors @ flat).reshape(scores.shape[1:])
            value, gradient = 0.0, np.zeros_like(x)
            for z, w in enumerate((1.0, blur)):
                log_q = w * pooled + offset
                log_q -= log_sum(log_q, 1)
                residual = (posterior[z] - level[z][:, None] * np.exp(log_q)) * part[:, None]
                value += float(part @ (posterior[z] * log_q).sum(axis=1))
                gradient[:n] += w * (flat @ residual.ravel()) / self.scale
                gradient[n + 1 :] += residual.sum(axis=0)
                if z:
                    gradient[n] = np.vdot(residual, pooled)
            prior = _OFFSET**-2.0 / total
            gradient[n + 1 :] -= prior * offset
            return -value + 0.5 * prior * float(offset @ offset), -gradient

        pool, free = self.pool, (0.0, 0.0) if self.plain else (None, None)
        start = np.concatenate([pool.factors * self.scale, [pool.blur], pool.offset])
        bounds = [(0.0, None)] * n + [(0.0, 1.0)] + [free] * len(pool.offset)
        x = minimize(
            of, start, jac=True, method="L-BFGS-B", bounds=bounds, options=_SHORT_SEARCH
        ).x
        pool = pool._replace(factors=x[:n] / self.scale, blur=float(x[n]), offset=x[n + 1 :])
        entropy = pool.entropy(scores)
        pool = pool._replace(mean=float(entropy.mean()), spread=float(entropy.std()) or 1.0)
        hardness = (entropy - pool.mean) / pool.spread

        def of_hard(h: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            odds = h[0] + h[1] * hardness
            value = part @ (level[1] * log_expit(odds) + level[0] * log_expit(-odds))
            residual = part * (level[1] - expit(odds))
            away = (h - _HARD) / _HARD_DEVIATION**2 / total
            gradient = np.array([residual.sum(), residual @ hardness]) - away
            return -float(value) + 0.5 * float(away @ (h - _HARD)), -gradient

        found = minimize(of_hard, pool.hard, jac=True, method="L-BFGS-B", options=_SHORT_SEARCH)
        self.pool = pool._replace(hard=found.x)

    # The posterior.

    def _joint(
        self,
        tables: NDArray[np.float64],
        vote_power: float = 1.0,
        score_power: float = 1.0,
        rows: NDArray[np.intp] | None = None,
    ) -> NDArray[np.float64]:
        """Return the logarithm of pi q^rho (prod T)^beta, (2, n_samples, n_classes)."""
        own, evidence = self.own, self.evidence
        if rows is not None and len(rows) < self.votes.n_samples:
            own, evidence = own[rows], evidence.of(rows)
        log_q, log_pi = self.pool.log_q_and_pi(evidence.scores)
        joint = np.stack([own @ table for table in tables])
        joint *= vote_power
        joint += score_power * log_q
        joint += log_pi[:, :, None]
        known = np.flatnonzero(evidence.known >= 0)
        if len(known):
            label = evidence.known[known]
            kept = joint[:, known, label]
            joint[:, known] = -np.inf
            joint[:, known, label] = kept
        return joint

    def joint(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the tempered posterior of level and class, (2, n_rows, n_classes)."""
        joint = self._joint(self.tables(), self.vote_power, self.score_power, rows)
        joint -= log_sum(joint, (0, 2))
        return np.exp(joint, out=joint)

    def posterior(self, *, share_errors: bool = True) -> NDArray[np.float64]:
        """Return the probability of every class, (n_samples, n_classes).

        In a fraction of the samples people err together, more than their votes can show: there
        the classes have the fractions of the votes and one vote of the base models.
        """
        proba = np.concatenate([self.joint(rows).sum(axis=0) for rows in self.blocks()])
        return self.mix_shared_errors(proba, self.votes.counts()) if share_errors else proba

    def mix_shared_errors(
        self, proba: NDArray[np.float64], counts: NDArray[np.float64], rows: Any = slice(None)
    ) -> NDArray[np.float64]:
        """Return probabilities of some samples that allow for errors that people share."""
        scores, known = self.evidence.scores[:, rows], self.evidence.known[rows]
        return np.where(known[:, None] >= 0, proba, self._mix(proba, counts, scores))

    def _mix(
        self, proba: NDArray[np.float64], counts: NDArray[np.float64], scores: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        prior: Any = 1.0 / self.votes.n_classes
        fraction = SHARED_ERRORS
        if len(scores):
            prior, fraction = self.prior_proba(scores), SHARED_ERRORS_WITH_MODELS
        votes = (counts + prior) / (counts.sum(axis=1, keepdims=True) + 1.0)
        mixed = (1.0 - fraction) * proba + fraction * votes
        return mixed / mixed.sum(axis=1, keepdims=True)

    def predict(self, scores: NDArray[np.float64], label: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return class probabilities of new samples, each with a vote of an average annotator."""
        log_q, log_pi = self.pool.log_q_and_pi(scores)
        table = np.log(np.maximum(self.table_of_average(), TINY))
        joint = self.vote_power * table[:, :, label].transpose(0, 2, 1)
        joint += self.score_power * log_q + log_pi[:, :, None]
        joint = np.exp(joint - log_sum(joint, (0, 2)))
        counts = 1.0 * (label[:, None] == np.arange(self.votes.n_classes))
        return self._mix(joint.sum(axis=0), counts, scores)

    def shared_error(self) -> float:
        """Return the standard deviation of an error that the accuracies of all people share.

        The fraction of samples with shared errors is a guess: it may be none, or twice as large.
        """
        votes, weight = self.votes, self.evidence.weight[self.votes.sample]
        if not weight.sum():
            return 0.0
        each = self.posterior(share_errors=False)[votes.sample, votes.label]
        each -= self.posterior()[votes.sample, votes.label]
        return abs(float(np.average(each, weights=weight)))

    def prior_proba(self, scores: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the probabilities of the base models alone, without any vote."""
        log_q, log_pi = self.pool.log_q_and_pi(self.evidence.scores if scores is None else scores)
        log_q *= self.score_power
        log_q -= log_sum(log_q, 2)
        return (np.exp(log_q) * np.exp(log_pi)[:, :, None]).sum(axis=0)

    # The exponents.

    def temper(self) -> VoteModel:
        """Find the exponents with which the other votes on a sample predict a vote best.

        The posterior becomes pi_z q_z(k)^rho (prod_a T_az(k, y_a))^beta, where beta is the worth
        of one more vote. A vote that repeats another is no evidence of the class. So each vote is
        drawn from an urn: with a probability that is fitted along, it repeats another vote on the
        sample, at random. Without two votes on any sample, both exponents are 1.
        """
        left_out = _LeftOut(self)
        if not len(left_out.chosen):
            return self
        total = max(float(left_out.weight.sum()), TINY)

        def of(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            # N(0, 1) on the log-odds of beta and on the logarithm of rho, in votes
            beta, rho = float(expit(x[0])), float(np.exp(x[1]))
            each, gradient = left_out.log_likelihoods(beta, rho, float(x[2]))
            gradient *= [beta * (1.0 - beta), rho, 1.0]
            gradient[:2] -= x[:2]
            value = float(left_out.weight @ each) - 0.5 * float(x[:2] @ x[:2])
            return -value / total, -gradient / total

        bounds = [(-8.0, 8.0), (-8.0, 8.0), (0.0, 0.99)]
        found = minimize(of, np.array([0.0, 0.0, 0.1]), jac=True, method="L-BFGS-B", bounds=bounds)
        self.vote_power, self.score_power = float(expit(found.x[0])), float(np.exp(found.x[1]))
        each = left_out.log_likelihoods(self.vote_power, self.score_power, float(found.x[2]))[0]
        if self.plain:
            each = left_out.match_frequencies(each, self.vote_power, self.score_power)
        self.left_out = np.zeros(self.votes.n_samples)
        np.add.at(self.left_out, left_out.sample, left_out.weight * each)
        return self

    left_out: NDArray[np.float64] | None = None  # log-likelihood of every sample's votes left out

    def gain_of_a_vote(self) -> NDArray[np.float64]:
        """Return by how much one more vote would raise the largest probability, on average.

        The vote is that of an average annotator, and counts as votes do in the posterior.
        """
        table = self.table_of_average()
        gains = [
            compute_gain_of_vote(self.joint(rows), table, self.vote_power)
            for rows in self.blocks()
        ]
        return np.concatenate(gains)

    def score_fractions(self) -> NDArray[np.float64]:
        """Return the fraction of the pooled scores' spread that comes from each base model."""
        part = self.pool.factors * self.scale
        return part / max(float(part.sum()), TINY)

    def blocks(self, n_each: float = 1.0) -> Iterator[NDArray[np.intp]]:
        """Yield blocks of samples, each of which takes `n_each` rows of memory."""
        step = max(1, int(_BLOCK_ELEMENTS // (self.votes.n_classes * max(n_each, 1.0))))
        for start in range(0, self.votes.n_samples, step):
            yield np.arange(start, min(start + step, self.votes.n_samples))


def fit_votes(votes: Votes, evidence: Evidence) -> VoteModel:
    """Return the model with full rows of confusion, or the plain one if votes do not need rows."""
    plain = VoteModel(votes, evidence, plain=True).fit()
    if plain.left_out is None:
        return plain
    full = VoteModel(votes, evidence).fit()
    # Kinds of errors that occur, for one accuracy.
    errors = np.zeros(full.rows.shape)
    np.add.at(errors, full.label, full.counts)
    np.fill_diagonal(errors, 0.0)
    n_more = float(np.minimum(errors, 1.0).sum()) - 1.0
    gain, error = compare_left_out(full, plain)
    return full if gain - n_more > MIN_GAIN_OF_ROWS * error else plain


def compare_left_out(new: VoteModel, old: VoteModel) -> tuple[float, float]:
    """Return by how much votes left out are more likely by the new model, and standard error."""
    if new.left_out is None or old.left_out is None:
        return new.value - old.value, 0.0
    gain = new.left_out - old.left_out
    return float(gain.sum()), float(np.sqrt(np.square(gain - gain.mean()).sum()))


def log_sum(values: NDArray[np.float64], axis: Any) -> NDArray[np.float64]:
    """Return the logarithm of the sum of exponentials; the axes stay."""
    largest = values.max(axis=axis, keepdims=True)
    return largest + np.log(np.exp(values - largest).sum(axis=axis, keepdims=True))


def _make_plain_rows(right: float, n_classes: int) -> NDArray[np.float64]:
    rows = np.full((n_classes, n_classes), (1.0 - right) / max(n_classes - 1, 1))
    np.fill_diagonal(rows, right)
    return rows


def compute_gain_of_vote(
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
        after /= np.maximum(after.sum(axis=1, keepdims=True), TINY)
        expected += chance * after.max(axis=1)
    return expected - posterior.sum(axis=0).max(axis=1)


def _count_most_rows(votes: Votes) -> int:
    return max(2000, _ELEMENTS // votes.n_classes)


def _draw_some(votes: Votes) -> NDArray[np.intp]:
    """Return the samples of a first fit: a random part of many, or all."""
    most = 2 * _count_most_rows(votes)
    if votes.n_samples <= 2 * most:
        return np.arange(votes.n_samples)
    return np.sort(np.random.default_rng(0).permutation(votes.n_samples)[:most])


class _LeftOut:
    """How well the base models and the other votes on a sample predict each vote.

    All is computed on samples with two votes or more: all, or a random part of many.
    """

    def __init__(self, model: VoteModel, rows: NDArray[np.intp] | None = None) -> None:
        votes, evidence = model.votes, model.evidence
        if rows is None:
            several = np.bincount(votes.sample, minlength=votes.n_samples) >= 2
            rows = np.flatnonzero(several & (evidence.weight > 0) & (evidence.known < 0))
            rows = np.sort(np.random.default_rng(0).permutation(rows)[: _count_most_rows(votes)])
        is_of = np.zeros(votes.n_samples, dtype=bool)
        is_of[rows] = True
        self.chosen = np.flatnonzero(is_of[votes.sample])  # positions of the votes
        self.sample, self.rows = votes.sample[self.chosen], rows
        self.place = np.searchsorted(rows, self.sample)
        power = votes.powers()[self.chosen]
        self.weight = evidence.weight[self.sample] * power
        entry, label = model.entry[self.chosen], votes.label[self.chosen]
        tables = model.tables()
        self.log_t = power[:, None] * tables[:, entry]
        self.log_votes = np.stack([model.own[rows] @ table for table in tables])[:, self.place]
        log_q, log_pi = model.pool.log_q_and_pi(evidence.scores[:, rows])
        self.log_q, self.log_pi = log_q[:, self.place], log_pi[:, self.place]
        # T without the vote itself.
        posterior, informed = model._last
        own = posterior[0, self.sample] + posterior[1, self.sample] * informed[entry]
        own *= self.weight[:, None]
        count, total = model._pseudo_counts()
        if model.plain:
            is_right = label[:, None] == np.arange(votes.n_classes)
            right = own[np.arange(len(label)), label][:, None]
            all_own = own.sum(axis=1, keepdims=True)
            part = np.where(is_right, right, all_own - right)
            easy = (count[entry] - part) / (total[entry] - all_own)
            easy /= np.where(is_right, 1.0, max(votes.n_classes - 1, 1))
            self.right = np.where(is_right, easy, 0.0).max(axis=1)
        else:
            easy = (count[entry] - own) / (total[entry] - own)
        easy = np.clip(easy, 1e-12, 1.0)
        chance = (1.0 - model.informed) * model.frequency[label]
        self.t = np.stack([easy, model.informed * easy + chance[:, None]])
        self.label, self.informed, self.frequency = label, model.informed, model.frequency
        # Other votes on the sample, and those of them for the same label.
        counts = votes.counts()
        self.n_others = counts.sum(axis=1)[self.sample] - power
        self.n_same = counts[self.sample, label] - power

    def posterior(self, vote_power: float, score_power: float) -> NDArray[np.float64]:
        """Return the posterior of every vote's sample without it, (2, n_votes, n_classes)."""
        joint = score_power * self.log_q + vote_power * (self.log_votes - self.log_t)
        joint += self.log_pi[:, :, None]
        joint -= joint.max(axis=(0, 2))[:, None]
        joint = np.exp(joint, out=joint)
        joint /= joint.sum(axis=(0, 2))[:, None]
        return joint

    def log_likelihoods(
        self, vote_power: float, score_power: float, repeats: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the log-likelihood of every vote, predicted without itself, and the gradient.

        The gradient is that of the weighted sum. `repeats` is the probability that the second
        vote on a sample repeats the first.
        """
        without = self.posterior(vote_power, score_power)
        chance = np.einsum("znk,znk->n", without, self.t)
        urn = 1.0 + (self.n_others - 1.0) * repeats
        predicted = np.maximum(((1.0 - repeats) * chance + repeats * self.n_same) / urn, TINY)
        part = self.weight / (predicted * urn)
        without *= (self.t - chance[:, None]) * part[:, None]
        gradient = np.array([
            (1.0 - repeats) * np.vdot(without, self.log_votes - self.log_t),
            (1.0 - repeats) * np.vdot(without, self.log_q),
            part @ (self.n_same - chance - (self.n_others - 1.0) * predicted),
        ])  # fmt: skip
        return np.log(predicted), gradient

    def match_frequencies(
        self, each: NDArray[np.float64], vote_power: float, score_power: float
    ) -> NDArray[np.float64]:
        """Return the log-likelihoods of `plain`, with a factor for every label.

        The factors give the labels their frequencies, which the plain model knows nothing of. So
        it loses to full rows only where these predict the labels of single votes.
        """
        without, n_classes = self.posterior(vote_power, score_power), self.log_q.shape[2]
        right = self.right[:, None]
        wrong = (1.0 - right) / max(n_classes - 1, 1)
        chance = np.zeros(without.shape[1:])
        for level, informed in zip(without, (1.0, self.informed)):
            total = level.sum(axis=1, keepdims=True)
            chance += informed * (level * (right - wrong) + total * wrong)
            chance += (1.0 - informed) * total * self.frequency
        observed = np.bincount(self.label, self.weight, n_classes) + 1.0
        factors = np.ones(n_classes)
        for _ in range(20):
            scaled = chance * factors
            scaled /= scaled.sum(axis=1, keepdims=True)
            factors *= observed / (self.weight @ scaled + 1.0)
        rows = np.arange(len(self.label))
        return each + np.log(scaled[rows, self.label]) - np.log(chance[rows, self.label])


# How often every annotator is right, with an interval.
#
# The votes of an annotator are compared with what the other annotators and the base models say
# about the same samples. For a vote y of annotator a, let r(k) be the posterior of the sample
# without that vote, and s the probability that a is right:
#
#     P(y | s) = s r(y) + (1 - s) sum_{k != y} r(k) C_ky,
#
# C the errors of the population. The product over the votes of a, times a prior worth c votes of
# average accuracy, is the posterior of s on a grid. An error that all annotators share is added:
# if the likelihood is right, these accuracies and the posterior probabilities of all votes have
# the same mean, and their difference widens the intervals. So does the fraction of samples on
# which people err together (SHARED_ERRORS), which no vote shows: it may be none, or twice as many.

# Points of the grid: ends of intervals are within .003 of those of 513 points.
_POINTS = 65
# Ends of the first grid in log-odds: accuracies below .001 and above .99999.
_LEAST = -8.0
_MOST = 12.0
# The second grid leaves out points whose log-density is below the largest by more than this.
_FAR = 8.0


def leave_out_votes(
    model: VoteModel, proba: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return r(y) and sum_k r(k) C_ky of every vote, r without that vote.

    `proba` are the current probabilities of the classes: where checks have changed them, that is
    evidence from outside the votes.
    """
    errors = model.rows.copy()
    np.fill_diagonal(errors, 0.0)
    errors /= np.maximum(errors.sum(axis=1, keepdims=True), TINY)
    votes, before, parts = model.votes, model.posterior(), []
    counts = votes.counts()
    for rows in model.blocks(len(votes.label) / votes.n_samples):
        of = _LeftOut(model, rows)
        label = votes.label[of.chosen]
        each = np.arange(len(label))
        fewer = counts[of.sample]
        fewer[each, label] -= votes.powers()[of.chosen]
        without = of.posterior(model.vote_power, model.score_power).sum(axis=0)
        without = model.mix_shared_errors(without, fewer, of.sample)
        without *= proba[of.sample] / np.maximum(before[of.sample], TINY)
        without /= np.maximum(without.sum(axis=1, keepdims=True), TINY)
        elsewhere = np.einsum("nk,nk->n", without, errors[:, label].T)
        parts.append((without[each, label], elsewhere))
    named, elsewhere = (np.concatenate(part) for part in zip(*parts))
    return named, elsewhere


def estimate_accuracies(
    votes: Votes,
    p_correct: NDArray[np.float64],
    proba: NDArray,
    weight: NDArray[np.float64],
    model: VoteModel | None,
) -> tuple[NDArray, ...]:
    """Return for every annotator: n_votes, accuracy, low, high, and the class with most mistakes.

    Accuracies are shrunk to the mean, the more so the more annotators are alike. Votes on
    duplicates count once.
    """
    n, own = votes.n_annotators, weight[votes.sample]
    number, count = np.bincount(votes.annotator, minlength=n), (weight > 0).astype(np.float64)
    prior = VOTES_OF_PRIOR
    if model is not None:
        np.divide(model.evidence.weight, weight, out=count, where=weight > 0)
        prior = model.concentration
    counts = count[votes.sample]
    mean = float(np.average(p_correct, weights=own * counts)) if own.sum() > 0 else 0.5
    counted = np.bincount(votes.annotator, counts, n)
    right = np.bincount(votes.annotator, p_correct * counts, n)
    accuracy = (right + prior * mean) / (counted + prior)
    if model is None:
        low, high = _compute_of_labels(votes, p_correct, own > 0, accuracy)
    else:
        # The model has only the votes on samples of positive weight.
        counts = count[model.votes.sample].astype(np.float64)
        low, high = _compute_of_others(
            model, leave_out_votes(model, proba), accuracy, mean, counts
        )
    worst = np.zeros(n, dtype=np.intp)
    lowest = np.full(n, np.inf)
    for k in range(votes.n_classes):
        p_class = proba[votes.sample, k] * (own > 0)
        of_class = np.bincount(votes.annotator, p_class, n)
        right_of_class = np.bincount(votes.annotator, p_class * (votes.label == k), n)
        rate = (right_of_class + prior * accuracy) / (of_class + prior)
        worst, lowest = np.where(rate < lowest, k, worst), np.minimum(rate, lowest)
    return number, accuracy, low, high, worst


def _compute_of_labels(
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
    weight: NDArray[np.float64]

    def at(self, quantile: float) -> NDArray[np.float64]:
        below = self.weight.cumsum(axis=1) - self.weight / 2
        return np.array([np.interp(quantile, b, a) for b, a in zip(below, self.accuracy)])


def _compute_of_others(
    model: VoteModel,
    others: tuple[NDArray[np.float64], NDArray[np.float64]],
    accuracy: NDArray[np.float64],
    mean: float,
    counts: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return intervals by the posteriors of the samples without the annotator's votes.

    `counts` are the weights of the votes, at most 1.
    """
    votes = model.votes
    n_votes = np.bincount(votes.annotator, counts, votes.n_annotators)
    # Half a right vote and half a wrong one keep the prior mean away from 0 and 1.
    total = n_votes.sum()
    mean = (mean * total + 0.5) / (total + 1.0)
    grid = _compute_posterior(votes, others, mean, model.concentration, counts)
    center = (grid.accuracy * grid.weight).sum(axis=1)
    variance = ((grid.accuracy - center[:, None]) ** 2 * grid.weight).sum(axis=1)
    # The error that all annotators share is one more variance.
    shared = float(np.average(center - accuracy, weights=n_votes)) ** 2
    shared += model.shared_error() ** 2
    wider = np.sqrt(1.0 + shared / np.maximum(variance, 1e-12))
    low, high = (center + wider * (grid.at(q) - center) for q in (0.025, 0.975))
    return (
        np.clip(np.minimum(low, accuracy), 0.0, 1.0),
        np.clip(np.maximum(high, accuracy), 0.0, 1.0),
    )


def _compute_posterior(
    votes: Votes,
    others: tuple[NDArray[np.float64], NDArray[np.float64]],
    mean: float,
    prior: float,
    counts: NDArray[np.float64],
) -> _Grid:
    """Return the posterior of every annotator's accuracy."""
    (named, elsewhere), n, who = others, votes.n_annotators, votes.annotator
    start, end = np.full(n, _LEAST), np.full(n, _MOST)
    for _ in range(2):  # on the whole grid, then on the part that holds the posterior
        points = np.linspace(start, end, _POINTS, axis=1)
        right = expit(points)
        # The prior: a beta density of the accuracy, times its slope in log-odds.
        value = prior * (mean * log_expit(points) + (1.0 - mean) * log_expit(-points))
        for j in range(_POINTS):
            chance = elsewhere + right[who, j] * (named - elsewhere)
            value[:, j] += np.bincount(who, counts * np.log(np.maximum(chance, TINY)), n)
        value -= value.max(axis=1, keepdims=True)
        near = value > -_FAR
        step = (end - start) / (_POINTS - 1)
        first, last = near.argmax(axis=1), _POINTS - 1 - near[:, ::-1].argmax(axis=1)
        start, end = (
            start + step * np.maximum(first - 1, 0),
            start + step * np.minimum(last + 1, _POINTS - 1),
        )
    weight = np.exp(value)
    return _Grid(right, weight / weight.sum(axis=1, keepdims=True))
