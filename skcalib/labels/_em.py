"""Iterations that fit base models and noise model in turn, and reasons not to trust the result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import entropy
from sklearn.frozen import FrozenEstimator

from ..utils._numeric import binomial_interval
from ._base_models import (
    FAR,
    ByRows,
    Judge,
    LeaveOneOut,
    OutOfFold,
    blocks_of,
    distances_of_new,
    features_of,
    nearest_others,
)
from ._constants import (
    AHEAD,
    FEW,
    FEWEST_OF_A_CLASS,
    HIDDEN,
    KEPT_ELEMENTS,
    KNOWN,
    MOST_CLASSES_OF_A_MATRIX,
    NUMBERS_OF_NEIGHBORS,
    SOME_SAMPLES,
    SURE,
    WEAK,
    WEIGHT_OF_FIRST,
)
from ._noise_model import (
    Choice,
    LabelLikelihood,
    NoiseFit,
    choose,
    explain,
    least_rate,
    no_flips,
    pool,
    prior_of,
    rows_of,
    rows_to_fit,
    spread_of,
)

# Rounds: fit the judges and the noise model, estimate the true labels, refit to these.

# Explanations to try before "common" (see `_noise_model`). "flips" comes first: it has to win once
# more after the refits, which it does not where flips go to near classes.
_KINDS = ("flips", "near")


class Given(NamedTuple):
    """The labels to judge, and the judges."""

    codes: NDArray[np.intp]  # labels as positions among the classes
    classes: NDArray
    weight: NDArray[np.float64]
    verified: NDArray[np.bool_]
    judges: dict[str, Judge]
    mixed: bool  # whether rates of flips may differ between classes
    refits: bool = True  # False for precomputed probabilities
    step: Callable[[str], Any] = nullcontext  # a context that prints the seconds of a step

    @property
    def hidden(self) -> float:
        """Fraction of labels that carry no information (see HIDDEN); 0 for ``noise="random"``."""
        return HIDDEN if self.mixed else 0.0


class Explanation(NamedTuple):
    """What `fit` has learned, to judge labels of new samples."""

    judges: dict[str, Judge]
    frequency: NDArray  # distances of class frequencies, (1, n_classes)
    fit: NoiseFit
    p_any_wrong: float  # probability that there are wrong labels at all
    hidden: float  # see `Given`

    def judged(
        self,
        X: Any,
        codes: NDArray[np.intp],
        classes: NDArray,
        verified: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return probabilities of the classes, margins, log-losses and novelty, as `fit` does.

        X is a dict if every judge has its own input; ``verified=None`` means no verified labels.
        """
        prior, proba, pooled, novelty = self.before_hidden(X, codes, classes, verified)
        rows = np.arange(len(codes))
        margin = pooled[rows, codes] - pooled.min(axis=1)
        loss = -np.log(np.maximum(prior[rows, codes], np.finfo(prior.dtype).tiny))
        self.add_hidden(proba, prior, verified)
        return proba, margin, loss, novelty

    def before_hidden(
        self,
        X: Any,
        codes: NDArray[np.intp],
        classes: NDArray,
        verified: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return prior, posterior, pooled distances and novelty, before `add_hidden`."""
        found, novelty = distances_of_new(self.judges, X, len(codes), classes)
        distances = [_excess(raw, slice(None)) for raw in found]
        pooled = pool([*distances, self.frequency], self.fit.weights)
        prior = prior_of([pooled], np.ones(1))
        known = np.zeros(len(codes), dtype=bool) if verified is None else verified
        proba = explain(prior, codes, known, self.fit.flips, self.fit.near).posterior
        proba = mix_with_none_wrong(proba, codes, self.p_any_wrong)
        return prior, proba, pooled, novelty

    def add_hidden(
        self, proba: NDArray, prior: NDArray, verified: NDArray[np.bool_] | None = None
    ) -> None:
        """Mix the posterior with the prior, in place: some labels carry no information."""
        part = self.hidden * (prior - proba)
        proba += part if verified is None else part * ~verified[:, None]


def mix_with_none_wrong(proba: NDArray, codes: NDArray[np.intp], p_any_wrong: float) -> NDArray:
    """Mix the posterior with "no label is wrong", by its probability, in place."""
    proba *= p_any_wrong
    proba[np.arange(len(codes)), codes] += 1.0 - p_any_wrong
    return proba


class Round:
    """Judges fitted to estimated true labels, and the noise model fitted to the given labels."""

    def __init__(
        self,
        given: Given,
        estimated: NDArray[np.intp],
        kinds: tuple[str, ...],
        *,
        compare: bool,
        number: int = 0,
    ) -> None:
        stage = f"refit {number}" if number else "fit"
        self.given, self.fitted_to, classes = given, estimated, given.classes
        labels, self.shape = classes[estimated], (len(estimated), len(classes))
        self.distances: list[Any] = []
        self.measured: NDArray | ByRows | None = None  # distances of the first LeaveOneOut
        for name, judge in given.judges.items():
            with given.step(f"{stage}: {name}"):
                raw = judge.distances(labels, classes)
                if self.measured is None and isinstance(judge, LeaveOneOut):
                    self.measured = raw
                found = ByRows(partial(_excess, raw), self.shape)
                is_large = len(labels) * len(classes) > KEPT_ELEMENTS
                self.distances.append(found if is_large else found.filled())
        # Distances ignore class frequencies; their weight is fitted like that of a judge.
        # Precomputed probabilities know them already: all frequencies are equal then.
        size = np.bincount(given.codes, given.weight, len(classes)) * float(given.refits)
        frequency = (size + 1.0) / (size.sum() + len(classes))
        self.distances.append(-2.0 * np.log(frequency)[None])
        rows = rows_to_fit(given.weight, len(classes))
        of_samples = given.codes[rows], given.weight[rows], given.verified[rows]
        with given.step(f"{stage}: how labels go wrong"):
            self.likelihood = LabelLikelihood(rows_of(self.distances, rows), *of_samples)
            self.choice: Choice = choose(self.likelihood, kinds, compare=compare)

    def posterior(self, fit: NoiseFit) -> ByRows:
        """Return the probability of every class to be the true one, (n_samples, n_classes)."""
        codes, verified = self.given.codes, self.given.verified

        def of_rows(rows: slice) -> NDArray:
            prior = prior_of(rows_of(self.distances, rows), fit.weights)
            return explain(prior, codes[rows], verified[rows], fit.flips, fit.near).posterior

        return ByRows(of_rows, self.shape)

    def add_hidden(self, proba: NDArray, fit: NoiseFit) -> None:
        """Mix the posterior with the prior, in place: some labels carry no information."""
        for rows in blocks_of(self.shape):
            prior = prior_of(rows_of(self.distances, rows), fit.weights)
            unknown = ~self.given.verified[rows, None]
            proba[rows] += self.given.hidden * unknown * (prior - proba[rows])

    def judged(self, fit: NoiseFit) -> tuple[NDArray[np.float64], ...]:
        """Return margins, log-losses of the labels by the prior, and novelty.

        Novelty is the distance to the nearest class; NaN without a judge that has distances.
        """
        margin, loss, novelty = np.full((3, len(self.given.codes)), np.nan)
        for rows in blocks_of(self.shape):
            if self.measured is not None:
                novelty[rows] = self.measured[rows].min(axis=1)
            pooled = pool(rows_of(self.distances, rows), fit.weights)
            own = np.take_along_axis(pooled, self.given.codes[rows, None], axis=1)[:, 0]
            smallest = pooled.min(axis=1, keepdims=True)
            margin[rows] = own - smallest[:, 0]
            total = np.exp(-0.5 * (pooled - smallest)).sum(axis=1)
            loss[rows] = 0.5 * margin[rows] + np.log(total)
        return margin, loss, novelty

    def shares(self, fit: NoiseFit) -> dict[str, float]:
        """Return the fraction of the pooled distances' spread that comes from each judge."""
        some = next(blocks_of(self.shape))
        judges = zip(self.distances[:-1], fit.weights)
        spread = [weight * spread_of(judge[some]) for judge, weight in judges]
        total = sum(spread) or 1.0
        return {name: float(part / total) for name, part in zip(self.given.judges, spread)}

    def agreement(self, fit: NoiseFit) -> float:
        """Return how often the pooled judges predict the given label."""
        part = self.likelihood
        nearest = pool(part.distances, fit.weights).argmin(axis=1)
        return float(part.weight @ (nearest == part.codes)) / part.total

    def accuracy(self, kind: str) -> float:
        """Return an estimate of how often the judges predict a label that is right.

        Their agreement with the given labels over the fraction of right ones, 1 - rate, would be
        exact if they never predicted a wrong label and `rate` were true. Weak judges count their
        own mistakes into the rate, and the quotient is too high: the square root goes halfway.
        """
        fit = self.choice.fits[kind]
        return self.agreement(fit) / float(np.sqrt(1.0 - fit.rate))

    def upper_rate(self, fit: NoiseFit) -> float:
        """Return the highest plausible fraction of wrong labels among unverified ones.

        It is the upper end of the interval of how many labels the judges do not predict. People
        err on hard samples, where judges err as well. Labels alone cannot tell these mistakes
        apart, so every label that is not predicted may be wrong. Precomputed probabilities may
        expect more mistakes than that, 1 - p on average: then this counts. A fit that makes them
        surer may only show that their model has learned wrong labels.
        """
        part = self.likelihood
        weight = part.weight * ~part.verified
        if not weight.any():
            return 0.0
        weight /= weight.sum()
        fraction = weight @ (pool(part.distances, fit.weights).argmin(axis=1) != part.codes)
        if not self.given.refits:
            fraction = max(fraction, weight @ (1.0 - self._claimed()))
        n_samples = np.asarray(part.total * np.average(~part.verified, weights=part.weight))
        return float(binomial_interval(np.asarray(fraction), n_samples, 0.95)[1])

    def lower_rate(self) -> float:
        """Return the lowest plausible fraction of wrong labels if precomputed probabilities hold.

        The fit may make them surer, and find more wrong labels: but so do right labels that their
        model misfits. 1, which is no limit, for judges that are fitted.
        """
        return 1.0 if self.given.refits else least_rate(self.likelihood, self._claimed())

    def _claimed(self) -> NDArray[np.float64]:
        """Return the probability that the judges give each label as they are, on average."""
        part = self.likelihood
        rows = np.arange(len(part.codes))
        of_label = [prior_of([d], np.ones(1))[rows, part.codes] for d in part.distances[:-1]]
        return np.mean(of_label, axis=0, dtype=np.float64)


def _excess(distances: NDArray | ByRows, rows: slice | NDArray) -> NDArray:
    """Return distances less the smallest of each row, capped; in place if they are an array."""
    block = distances[rows]
    block -= block.min(axis=1, keepdims=True)
    return np.minimum(block, FAR, out=block)


class Judged(NamedTuple):
    """The result: the last round that was kept, its fit, and the posterior."""

    last: Round
    fit: NoiseFit
    proba: ByRows  # (n_samples, n_classes)
    gain: float  # mean log-likelihood of the labels, less that without any flips
    p_any_wrong: float  # probability that there are wrong labels at all, in (0, 1)
    accuracy: float  # of the judges of the first round, on right labels


def judge(given: Given, n_refits: int) -> Judged:
    """Choose the explanation of the labels, and refit the judges to the estimated true labels.

    "flips" and "near" have to make labels left out more likely than "common" and "confusions" do,
    by AHEAD standard errors. A flexible judge has learned some of the flips and predicts them;
    only judges fitted to the estimated labels show all. But a refit confirms its own mistakes:
    weak judges then find flips in right labels. So "flips" has to be ahead after the refits too.
    """
    has_matrix = len(given.classes) <= MOST_CLASSES_OF_A_MATRIX
    kinds = _KINDS if given.mixed and has_matrix else ()
    first = Round(given, given.codes, kinds, compare=True)
    choice = first.choice
    for kind in _KINDS:
        # Weak judges would explain all their mistakes by flips.
        if choice.ahead.get(kind, 0.0) <= AHEAD or first.accuracy(kind) < WEAK:
            continue
        judged = _refitted(first, n_refits, kind)
        if kind != "flips" or judged.last.choice.ahead.get(kind, 0.0) > AHEAD:
            return judged
    return _refitted(first, n_refits, "common")


def _refitted(first: Round, n_refits: int, kind: str) -> Judged:
    """Refit the judges to the estimated labels while that makes the given ones more likely."""
    given, last, mixed = first.given, first, kind == "flips"
    before = proba = first.posterior(first.choice.fits[kind])
    estimated = _likeliest(before)
    for number in range(n_refits if given.refits else 0):
        outside = len(estimated) - np.bincount(estimated).max()
        # Stop where nothing has changed, or where a fold could lack a second class.
        if (estimated == last.fitted_to).all() or outside < FEWEST_OF_A_CLASS:
            break
        after = Round(given, estimated, (kind,), compare=mixed, number=number + 1)
        if kind not in after.choice.fits or _value(after, kind) <= _value(last, kind):
            break
        found = after.posterior(after.choice.fits[kind])
        again = _likeliest(found)
        if _takes_back(given.codes, estimated, again):
            break
        last, proba, estimated = after, found, again
    if proba is not before:
        # A refit confirms its own mistakes, the more so the fewer samples a class has.
        n_each = given.weight.sum() / len(np.unique(given.codes[given.weight > 0]))
        part, later = WEIGHT_OF_FIRST / (WEIGHT_OF_FIRST + n_each), proba
        proba = ByRows(lambda rows: part * before[rows] + (1.0 - part) * later[rows], first.shape)
    fit = last.choice.fits[kind]
    simple = last.choice.fits["common"] if mixed else fit
    gain = simple.log_likelihood - _of_none(first, last, kind)
    gain += max(last.choice.gain_of_flips, 0.0) if mixed else 0.0
    # Akaike's weights: the rate of flips is one parameter more, and has to gain one unit. (BIC is
    # too strict: flexible judges predict some of the wrong labels, which hides them.)
    p_any_wrong = float(expit(last.likelihood.total * gain - 1.0))
    return Judged(last, fit, proba, gain, p_any_wrong, first.accuracy(kind))


def _likeliest(proba: ByRows) -> NDArray[np.intp]:
    return np.concatenate([proba[rows].argmax(axis=1) for rows in blocks_of(proba.shape)])


def _of_none(first: Round, last: Round, kind: str) -> float:
    """Return the log-likelihood if no label is wrong, by judges fitted to the given labels.

    The judges of the last round, fitted to other labels, would put "no label is wrong" at a
    disadvantage. (`last` is unused here; an ablation measures that.)
    """
    return no_flips(first.likelihood, first.choice.fits[kind]).log_likelihood


def _takes_back(
    given: NDArray[np.intp], fitted_to: NDArray[np.intp], estimated: NDArray[np.intp]
) -> bool:
    """Tell whether a refit restores most of the labels that were changed for it.

    Judges fitted to labels without any wrong one may explain the wrong ones by being less sure of
    all samples, and not by flips. But then they should not have been fitted to changed labels.
    """
    moved = fitted_to != given
    return bool((estimated[moved] == given[moved]).mean() > 0.5)


def _value(judged: Round, kind: str) -> float:
    """Return the log-likelihood that a refit has to raise: for "flips" that of labels left out."""
    choice = judged.choice
    return choice.left_out["flips"] if kind == "flips" else choice.fits[kind].log_likelihood


# `caveats_`: reasons not to trust the probabilities, a sentence each.

ADVICE = (
    "Check some labels (draw_samples_to_check, update_with_checks), or leave them as they are."
)


def doubts_of(judged: Judged, n_issues: int) -> tuple[str, ...]:
    """Return the sentences of `caveats_` after `fit`."""
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
