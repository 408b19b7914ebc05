"""Rounds: judges are fitted, the noise is explained, labels are believed, judges are refitted.

And whether the result can be trusted.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import entropy

from ..utils.checking._proba import binomial_interval
from ._judges import ByRows, Judge, blocks_of, features_of, nearest_others
from ._noise_model import (
    Choice,
    LabelLikelihood,
    NoiseFit,
    believe,
    choose,
    expected_labels,
    no_flips,
    pool,
    rows_of,
    rows_to_fit,
    seen,
    spread_of,
)

# Samples per class at which the probabilities before all refits count as much as those after.
# CLINC150, 5 samples per class, calibration error after, and of the mean: 40 % random flips .101,
# .051; 20 % nearest-class flips .075, .048. With 20 samples, 40 % random: .006, .010.
_WEIGHT_OF_FIRST = 5.0
# At least, where flips are between classes: a refit confirms them too well. Of 62 claims, 7, 6, 4
# are off by more than .25 with none, a quarter, half; log-loss of "is wrong" .191, .181, .180.
_PART_OF_FIRST = 1 / 3
# A refit to labels that have hardly changed would say the same.
_FEWEST_CHANGED = 0.002
# Samples outside the largest class, so that every fold has two classes to learn.
_FEWEST_OUTSIDE = 10
_LEAST_OF_RATE = 0.9
# Stands for an infinite distance: beyond it no probability is left, and 0 times it is 0.
_FAR = 1e6
# Distances of more elements are computed again for every use.
_KEPT_ELEMENTS = 2**24
# Below, the labels are about as likely without any wrong one.
SURE = 0.9
# Standard errors by which flips between classes have to be ahead: before refits, and before and
# after them together. On 14 sets with labels as published, .4 lets weak judges find flips; 1.6
# misses those of people. In 20 runs below 3 together, claims off are 7 with such flips, 4 without.
_AHEAD, _AHEAD_TOGETHER = 0.674, 3.0
# Units of log-likelihood by which near flips have to be ahead. On 139 sets with labels as
# published they gain 4.3 at most; with a fifth of such flips 15 to 450.
_NEAR_AHEAD = 5.0
# Near flips need judges that agree with right labels more often than this.
_SELDOM = 0.75
# Judges of this strength (see `_refitted`) count in full, and least; what log-odds lose there;
# and the weakness that is worth a doubt. Of 495 claims on 261 sets, 72 are too high by .25 or
# more and 44 too low; without the discount, 82 and 39.
_STRONG, _WEAKEST, _DISCOUNT, _TOO_WEAK = 0.85, 0.55, 0.6, 0.7
# The same for ready probabilities, which come without features, so that nobody can ask whether
# surprises lie side by side. Of 115 claims between the two on 112 sets, 66 are too high by .25.
_TOO_WEAK_ALONE = 0.4
# Units of log-likelihood that judges who know anything gain over the class frequencies: those of
# noise gain 7 in 1 of 169 runs. With few issues, they also explain a tenth of the entropy.
_KNOWN, _LEAST_EXPLAINED = 7.0, 0.1
_SEVERAL = 5  # issues that may all be right
# The least rate of flips that are not believed, and worth a doubt.
_HINTED = 0.08
# Surprises of neighbors: how many of them, of how many samples at most, and a correlation, in
# itself and in standard errors, that judges who fit the classes do not show.
_N_NEIGHBORS, _MOST_OF_SURPRISES = 15, 5000
_CORRELATED, _SURELY = 0.06, 4.0
_ADVICE = "Check some labels (draw_samples_to_check, recalibrate), or leave them as they are."


class Given(NamedTuple):
    """What is to be judged, and who judges."""

    codes: NDArray[np.intp]  # labels as positions among the classes
    classes: NDArray
    weight: NDArray[np.float64]
    verified: NDArray[np.bool_]
    judges: dict[str, Judge]
    mixed: bool  # whether some flips may be more frequent than others


class Round:
    """What the judges say after a fit to the labels believed, and what explains those given."""

    def __init__(self, given: Given, believed: NDArray[np.intp], *, mixed: bool) -> None:
        self.given, self.believed, classes = given, believed, given.classes
        labels, self.shape = classes[believed], (len(believed), len(classes))
        self.distances: list[Any] = []
        for judge in given.judges.values():
            found = ByRows(partial(_excess, judge.distances(labels, classes)), self.shape)
            is_large = len(labels) * len(classes) > _KEPT_ELEMENTS
            self.distances.append(found if is_large else found.filled())
        # Distances take all classes for equally frequent; how far frequencies count is fitted.
        size = np.bincount(given.codes, given.weight, len(classes))
        frequency = (size + 1.0) / (size.sum() + len(classes))
        self.distances.append(-2.0 * np.log(frequency)[None])
        rows = rows_to_fit(given.weight, len(classes))
        of_samples = given.codes[rows], given.weight[rows], given.verified[rows]
        self.likelihood = LabelLikelihood(rows_of(self.distances, rows), *of_samples)
        self.choice: Choice = choose(self.likelihood, mixed=mixed)
        common = self.plain = self.near = self.choice.common
        if given.mixed:
            self.near = self.likelihood.near_flips(common)
            gain = self.near.log_likelihood - common.log_likelihood
            gain -= max(self.choice.gain_of_doubt, 0.0)
            # High rates make weak judges look strong: near flips explain all their mistakes.
            least = _SELDOM * max(1.0 - self.near.rate, 0.8)
            strong = self.agreement(self.near) > least
            if strong and self.likelihood.total * gain > _NEAR_AHEAD:
                self.plain = self.near

    def posterior(self, fit: NoiseFit) -> ByRows:
        """Return the probability of every class to be the true one, (n_samples, n_classes)."""
        codes, verified = self.given.codes, self.given.verified

        def of_rows(rows: slice) -> NDArray:
            belief = believe(rows_of(self.distances, rows), fit.weights)
            return seen(belief, codes[rows], verified[rows], fit.flips, fit.near).posterior

        return ByRows(of_rows, self.shape)

    def judged(self, fit: NoiseFit) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return margins of the pooled distances, and log-losses of the pooled belief."""
        margin, loss = np.empty((2, len(self.given.codes)))
        for rows in blocks_of(self.shape):
            pooled = pool(rows_of(self.distances, rows), fit.weights)
            own = np.take_along_axis(pooled, self.given.codes[rows, None], axis=1)[:, 0]
            smallest = pooled.min(axis=1, keepdims=True)
            margin[rows] = own - smallest[:, 0]
            total = np.exp(-0.5 * (pooled - smallest)).sum(axis=1)
            loss[rows] = 0.5 * margin[rows] + np.log(total)
        return margin, loss

    def shares(self, fit: NoiseFit) -> dict[str, float]:
        """Return how much every judge moves the pooled distances; the sum is one."""
        some = next(blocks_of(self.shape))
        judges = zip(self.distances[:-1], fit.weights)
        spread = [weight * spread_of(judge[some]) for judge, weight in judges]
        total = sum(spread) or 1.0
        return {name: float(part / total) for name, part in zip(self.given.judges, spread)}

    def agreement(self, fit: NoiseFit) -> float:
        """Return how often the pooled judges believe in the given label most."""
        part = self.likelihood
        nearest = pool(part.distances, fit.weights).argmin(axis=1)
        return float(part.weight @ (nearest == part.codes)) / part.total

    def disagreement(self, fit: NoiseFit) -> float:
        """Return how many labels nobody verified may be other than the pooled judges expect.

        That is the upper end of the interval of this fraction. What people get wrong are hard
        samples, which judges get wrong as well: labels alone do not tell these mistakes apart, so
        that all of them may be wrong labels.
        """
        part = self.likelihood
        weight = part.weight * ~part.verified
        if not weight.any():
            return 0.0
        nearest = pool(part.distances, fit.weights).argmin(axis=1)
        fraction = np.asarray(weight @ (nearest != part.codes) / weight.sum())
        return float(binomial_interval(fraction, np.asarray(weight.sum()), 0.95)[1])

    def surprises(self, fit: NoiseFit) -> tuple[float, float]:
        """Return the correlation of surprises between neighbors, and its standard error.

        The surprise of a label is the label, as a unit vector, minus the probabilities of all
        labels. Where these are right, surprises of different samples are uncorrelated, whatever
        labels are flipped; judges that fit the classes badly are surprised in the same places.
        (0, 0) without features, and where neighbors are judges and have had their say.
        """
        rows = np.flatnonzero((self.given.weight > 0) & ~self.given.verified)
        rows = np.random.default_rng(0).permutation(rows)[:_MOST_OF_SURPRISES]
        features = features_of(self.given.judges, rows)
        if features is None or "neighbors" in self.given.judges or len(rows) <= _N_NEIGHBORS:
            return 0.0, 0.0
        belief = believe(rows_of(self.distances, rows), fit.weights)
        surprise = -expected_labels(belief, fit.flips, fit.near)
        surprise[np.arange(len(rows)), self.given.codes[rows]] += 1.0
        around = np.zeros_like(surprise)
        for column in nearest_others(features, _N_NEIGHBORS).T:
            around += surprise[column]
        products = np.einsum("nk,nk->n", surprise, around) / _N_NEIGHBORS
        total = np.einsum("nk,nk->", surprise, surprise)
        # Nearly all pairs of neighbors are counted twice.
        error = np.sqrt(2.0 * products @ products)
        return float(products.sum() / total), float(error / total)


def _excess(distances: NDArray | ByRows, rows: slice | NDArray) -> NDArray:
    """Return what counts: the excess over the least, in place where there is an array."""
    block = distances[rows]
    block -= block.min(axis=1, keepdims=True)
    return np.minimum(block, _FAR, out=block)


class Judged(NamedTuple):
    """The last round that was kept."""

    last: Round
    fit: NoiseFit
    proba: ByRows  # (n_samples, n_classes)
    gain: float  # mean log-likelihood of the labels over that without any flips
    believed: float  # probability that there are wrong labels at all, in (0, 1)
    weakness: float  # from 0 for judges that know the classes to 1 for those that hardly do
    hinted: float = 0.0  # rate of flips between classes that are not believed, nor excluded


def judge(given: Given, n_refits: int) -> Judged:
    """Judge the labels, and refit the judges to the labels believed.

    A flexible judge learns flips between classes and foretells them in part; only judges that are
    fitted to believed labels show all of them. A refit believes in its own mistakes, though: weak
    judges find flips after it in labels that are right. So flips have to stand out before all
    refits, and clearly so before and after them together. Else they are near, or at a common rate.
    """
    first = Round(given, given.codes, mixed=given.mixed)
    if first.choice.z > _AHEAD:
        judged = _refitted(first, n_refits, mixed=True)
        z = judged.last.choice.z
        if z > 0 and first.choice.z + z > _AHEAD_TOGETHER:
            return judged
    judged = _refitted(first, n_refits, mixed=False)
    flips = first.choice.flips if first.choice.z > 0 else None
    return judged if flips is None else judged._replace(hinted=flips.rate)


def _refitted(first: Round, n_refits: int, *, mixed: bool) -> Judged:
    """Refit the judges to the labels believed while that explains the given ones better."""
    last, fit, value = first, *_explanation(first, mixed=mixed)
    before = proba = first.posterior(fit)
    for _ in range(0 if "precomputed" in first.given.judges else n_refits):
        believed = np.concatenate([proba[rows].argmax(axis=1) for rows in blocks_of(first.shape)])
        outside = len(believed) - np.bincount(believed).max()
        if np.mean(believed != last.believed) < _FEWEST_CHANGED or outside < _FEWEST_OUTSIDE:
            break
        after = Round(first.given, believed, mixed=mixed)
        fit_after, value_after = _explanation(after, mixed=mixed)
        # A refit makes judges surer. One that finds fewer flips has traded flips for doubt.
        traded = not mixed and fit_after.rate < _LEAST_OF_RATE * fit.rate
        if value_after <= value or traded:
            break
        last, fit, value = after, fit_after, value_after
        proba = after.posterior(fit)
    if proba is not before:
        # A refit believes its own mistakes, the more the fewer samples a class has.
        given = first.given
        n_each = given.weight.sum() / len(np.unique(given.codes[given.weight > 0]))
        first_part = _WEIGHT_OF_FIRST / (_WEIGHT_OF_FIRST + n_each)
        part = float(max(first_part, _PART_OF_FIRST * (mixed or fit.near > 0)))
        later = proba
        proba = ByRows(lambda rows: part * before[rows] + (1.0 - part) * later[rows], first.shape)
    choice = last.choice
    simple = choice.common if fit is choice.flips else fit
    gain = simple.log_likelihood - no_flips(last.likelihood, simple).log_likelihood
    gain += max(choice.gain_of_flips, 0.0) if fit is choice.flips else 0.0
    # By Akaike's weights: flips are one number more, which has to gain one unit. (Half a logarithm
    # of the sample size is too strict: flexible judges foretell wrong labels, and hide them.)
    belief = float(expit(last.likelihood.total * gain - 1.0))
    # Weak judges find too many wrong labels: these excuse about half of what judges disagree.
    strength = first.agreement(first.plain) / np.sqrt(1.0 - fit.rate)
    weakness = float(np.clip((_STRONG - strength) / (_STRONG - _WEAKEST), 0.0, 1.0))
    return Judged(last, fit, proba, gain, belief, weakness)


def _explanation(judged: Round, *, mixed: bool) -> tuple[NoiseFit, float]:
    """Return what explains the labels, and the likelihood that refits have to raise."""
    choice = judged.choice
    if not mixed or choice.flips is None:
        return judged.plain, judged.plain.log_likelihood
    return choice.flips, choice.left_out + choice.gain_of_flips


def discount(proba: NDArray, codes: NDArray[np.intp], weakness: float) -> None:
    """Make labels less improbable where judges are weak, in place.

    Likelihood cannot tell gross mistakes of judges from flips, and weak judges make more of them.
    The odds of a label against the likeliest class shrink, so that this class stays the likeliest,
    and issues at the threshold .5 stay issues.
    """
    own, top = proba[np.arange(len(codes)), codes], proba.max(axis=1)
    proba[np.arange(len(codes)), codes] = top * (own / top) ** (1.0 - _DISCOUNT * weakness)
    proba /= proba.sum(axis=1, keepdims=True)


def missed_rate(hinted: float, highest: float) -> float:
    """Return a rate that is not believed, nor excluded, where it is above all others, or 0."""
    return hinted if max(_HINTED, highest) < hinted < 0.5 else 0.0


def doubts_of(judged: Judged, missed: float, n_issues: int) -> tuple[str, ...]:
    """Return the reasons to doubt the probabilities; `missed` as of `missed_rate`."""
    last, part, doubts = judged.last, judged.last.likelihood, []
    if missed:
        doubts.append(
            f"That {missed:.0%} of the labels are wrong explains them about as well as what is "
            f"believed, so that many may be missed. {_ADVICE}"
        )
    # A sample counts once, whatever it weighs: a weight need not be a number of samples.
    of_labels = float(entropy(np.bincount(part.codes, part.weight)))
    explained, few = of_labels + judged.fit.log_likelihood, n_issues < _SEVERAL
    if len(part.codes) * explained < _KNOWN or (few and explained < _LEAST_EXPLAINED * of_labels):
        doubts.append(
            "The judges foretell the labels hardly better than the frequencies of the classes do, "
            f"so that they cannot find wrong ones; other features or judges could help. {_ADVICE}"
        )
    if few:
        return tuple(doubts)
    if judged.believed < SURE:
        doubts.append(
            f"The {n_issues} issues may all be right: the labels are about as likely "
            f"without any wrong one (probability of any {judged.believed:.2f}). {_ADVICE}"
        )
    if judged.weakness > (_TOO_WEAK_ALONE if "precomputed" in last.given.judges else _TOO_WEAK):
        doubts.append(
            f"The judges expect only {last.agreement(judged.fit):.0%} of the labels: they know "
            f"too little of the classes, so that many issues may be right. {_ADVICE}"
        )
    if last.choice.gain_of_doubt > judged.gain:
        doubts.append(
            "Confusions of the judges explain the labels better than wrong labels do, so that "
            f"many issues may be right; other features or judges could help. {_ADVICE}"
        )
    correlation, error = last.surprises(judged.fit)
    if correlation > max(_CORRELATED, _SURELY * error):
        doubts.append(
            "Labels that surprise the judges lie side by side (correlation of neighbors "
            f"{correlation:.2f}), as they do where judges know too little of the classes, so that "
            f"many issues may be right. {_ADVICE}"
        )
    return tuple(doubts)
