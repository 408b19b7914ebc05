"""Rounds: judges are fitted, the noise is explained, labels are believed, judges are refitted."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..utils.checking._proba import binomial_interval
from ..utils.meta._progress import Telling, silent
from ._judges import FAR, ByRows, Judge, LeaveOneOut, blocks_of, distances_of_new
from ._limits import (
    AHEAD,
    FEWEST_OF_A_CLASS,
    HIDDEN,
    KEPT_ELEMENTS,
    MOST_CLASSES_OF_A_MATRIX,
    WEAK,
    WEIGHT_OF_FIRST,
)
from ._noise_model import (
    Choice,
    LabelLikelihood,
    NoiseFit,
    believe,
    choose,
    least_rate,
    no_flips,
    pool,
    rows_of,
    rows_to_fit,
    seen,
    spread_of,
)

# Explanations that compete with flips at a common rate. Those between classes come first: that
# they have to be ahead once more, after all refits, tells them from flips to near classes.
_KINDS = ("flips", "near")


class Given(NamedTuple):
    """What is to be judged, and who judges."""

    codes: NDArray[np.intp]  # labels as positions among the classes
    classes: NDArray
    weight: NDArray[np.float64]
    verified: NDArray[np.bool_]
    judges: dict[str, Judge]
    mixed: bool  # whether some flips may be more frequent than others
    refits: bool = True  # whether judges can be fitted to other labels
    step: Telling = silent

    @property
    def hidden(self) -> float:
        """Part of the labels that tell nothing of the true class; 0 if flips are at random."""
        return HIDDEN if self.mixed else 0.0


class Explanation(NamedTuple):
    """What a fit has learned, for new samples."""

    judges: dict[str, Judge]
    frequency: NDArray  # distances by the frequencies of the classes, (1, n_classes)
    fit: NoiseFit
    believed: float  # probability that there are wrong labels at all
    hidden: float

    def judged(
        self,
        X: Any,
        codes: NDArray[np.intp],
        classes: NDArray,
        verified: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return probabilities of the classes, margins, log-losses and novelty, as for `fit`.

        X is a dict where every judge looks at something else. None means that nobody has verified
        a label.
        """
        belief, proba, pooled, novelty = self.beliefs(X, codes, classes, verified)
        rows = np.arange(len(codes))
        margin = pooled[rows, codes] - pooled.min(axis=1)
        loss = -np.log(np.maximum(belief[rows, codes], np.finfo(belief.dtype).tiny))
        self.add_hidden(proba, belief, verified)
        return proba, margin, loss, novelty

    def beliefs(
        self,
        X: Any,
        codes: NDArray[np.intp],
        classes: NDArray,
        verified: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return beliefs without and with the labels, pooled distances, and novelty.

        That is before labels that tell nothing.
        """
        found, novelty = distances_of_new(self.judges, X, len(codes), classes)
        distances = [_excess(raw, slice(None)) for raw in found]
        pooled = pool([*distances, self.frequency], self.fit.weights)
        belief = believe([*distances, self.frequency], self.fit.weights)
        known = np.zeros(len(codes), dtype=bool) if verified is None else verified
        proba = seen(belief, codes, known, self.fit.flips, self.fit.near).posterior
        return belief, with_none_wrong(proba, codes, self.believed), pooled, novelty

    def add_hidden(
        self, proba: NDArray, belief: NDArray, verified: NDArray[np.bool_] | None = None
    ) -> None:
        """Mix probabilities with what the judges believe whatever the label, in place."""
        part = self.hidden * (belief - proba)
        proba += part if verified is None else part * ~verified[:, None]


def with_none_wrong(proba: NDArray, codes: NDArray[np.intp], believed: float) -> NDArray:
    """Return a mixture with "no label is wrong", in place; `believed` is the other part."""
    proba *= believed
    proba[np.arange(len(codes)), codes] += 1.0 - believed
    return proba


class Round:
    """What the judges say after a fit to the labels believed, and what explains those given."""

    def __init__(
        self,
        given: Given,
        believed: NDArray[np.intp],
        kinds: tuple[str, ...],
        *,
        compare: bool,
        number: int = 0,
    ) -> None:
        stage = f"refit {number}" if number else "fit"
        self.given, self.believed, classes = given, believed, given.classes
        labels, self.shape = classes[believed], (len(believed), len(classes))
        self.distances: list[Any] = []
        self.measured: NDArray | ByRows | None = None  # of the first judge that tells how far
        for name, judge in given.judges.items():
            with given.step(f"{stage}: {name}"):
                raw = judge.distances(labels, classes)
                if self.measured is None and isinstance(judge, LeaveOneOut):
                    self.measured = raw
                found = ByRows(partial(_excess, raw), self.shape)
                is_large = len(labels) * len(classes) > KEPT_ELEMENTS
                self.distances.append(found if is_large else found.filled())
        # Distances take all classes for equally frequent; how far frequencies count is fitted.
        # Probabilities at hand know them.
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
            belief = believe(rows_of(self.distances, rows), fit.weights)
            return seen(belief, codes[rows], verified[rows], fit.flips, fit.near).posterior

        return ByRows(of_rows, self.shape)

    def add_hidden(self, proba: NDArray, fit: NoiseFit) -> None:
        """Mix probabilities with what the judges believe whatever the label, in place."""
        for rows in blocks_of(self.shape):
            belief = believe(rows_of(self.distances, rows), fit.weights)
            unknown = ~self.given.verified[rows, None]
            proba[rows] += self.given.hidden * unknown * (belief - proba[rows])

    def judged(self, fit: NoiseFit) -> tuple[NDArray[np.float64], ...]:
        """Return margins of the pooled distances, log-losses of the labels by them, and novelty.

        Novelty is the distance to the nearest class; NaN where no judge tells how far that is.
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

    def strength(self, kind: str) -> float:
        """Return how often the judges expect the label, beyond which labels are wrong.

        The root is halfway: weak judges take their own mistakes for wrong labels.
        """
        fit = self.choice.fits[kind]
        return self.agreement(fit) / float(np.sqrt(1.0 - fit.rate))

    def surprising(self, fit: NoiseFit) -> float:
        """Return how many labels nobody verified may be other than the judges expect.

        That is the upper end of the interval of this fraction. What people get wrong are hard
        samples, which judges get wrong as well: labels alone do not tell these mistakes apart, so
        that all of them may be wrong labels. Where the judges are probabilities at hand, it is
        how many labels they do not expect by their own word, if that is more: the given labels
        may say that they are surer than they claim because they have learned wrong ones.
        """
        part = self.likelihood
        weight = part.weight * ~part.verified
        if not weight.any():
            return 0.0
        weight /= weight.sum()
        fraction = weight @ (pool(part.distances, fit.weights).argmin(axis=1) != part.codes)
        if not self.given.refits:
            fraction = max(fraction, weight @ (1.0 - self._by_their_word()))
        n_samples = np.asarray(part.total * np.average(~part.verified, weights=part.weight))
        return float(binomial_interval(np.asarray(fraction), n_samples, 0.95)[1])

    def least_wrong(self) -> float:
        """Return how many labels are wrong at least, by probabilities at hand taken at their word.

        That they are surer, and wrong labels more, is what the given labels suggest; so do right
        ones that the model misfits. 1 where features are judged.
        """
        return 1.0 if self.given.refits else least_rate(self.likelihood, self._by_their_word())

    def _by_their_word(self) -> NDArray[np.float64]:
        """Return the probability of every label as the judges say it, on average."""
        part = self.likelihood
        rows = np.arange(len(part.codes))
        of_label = [believe([d], np.ones(1))[rows, part.codes] for d in part.distances[:-1]]
        return np.mean(of_label, axis=0, dtype=np.float64)


def _excess(distances: NDArray | ByRows, rows: slice | NDArray) -> NDArray:
    """Return what counts: the excess over the least, in place where there is an array."""
    block = distances[rows]
    block -= block.min(axis=1, keepdims=True)
    return np.minimum(block, FAR, out=block)


class Judged(NamedTuple):
    """The last round that was kept."""

    last: Round
    fit: NoiseFit
    proba: ByRows  # (n_samples, n_classes)
    gain: float  # mean log-likelihood of the labels over that without any flips
    believed: float  # probability that there are wrong labels at all, in (0, 1)
    strength: float  # how often judges expect the label, before refits, of those that are right


def judge(given: Given, n_refits: int) -> Judged:
    """Judge the labels, and refit the judges to the labels believed.

    Flips between classes and near flips are believed where they make labels left out more likely,
    by the same number of standard errors, than a common rate and confusions of the judges do. A
    flexible judge learns flips between classes and foretells them in part; only judges that are
    fitted to believed labels show all of them. A refit believes in its own mistakes, though: weak
    judges find flips after it in labels that are right. So these have to be ahead once more.
    """
    few = len(given.classes) <= MOST_CLASSES_OF_A_MATRIX
    kinds = _KINDS if given.mixed and few else ()
    first = Round(given, given.codes, kinds, compare=True)
    choice = first.choice
    for kind in _KINDS:
        # Flips excuse all that weak judges get wrong.
        if choice.ahead.get(kind, 0.0) <= AHEAD or first.strength(kind) < WEAK:
            continue
        judged = _refitted(first, n_refits, kind)
        if kind != "flips" or judged.last.choice.ahead.get(kind, 0.0) > AHEAD:
            return judged
    return _refitted(first, n_refits, "common")


def _refitted(first: Round, n_refits: int, kind: str) -> Judged:
    """Refit the judges to the labels believed while that explains the given ones better."""
    given, last, mixed = first.given, first, kind == "flips"
    before = proba = first.posterior(first.choice.fits[kind])
    believed = _likeliest(before)
    for number in range(n_refits if given.refits else 0):
        outside = len(believed) - np.bincount(believed).max()
        # Every fold needs two classes to learn.
        if (believed == last.believed).all() or outside < FEWEST_OF_A_CLASS:
            break
        after = Round(given, believed, (kind,), compare=mixed, number=number + 1)
        if kind not in after.choice.fits or _value(after, kind) <= _value(last, kind):
            break
        found = after.posterior(after.choice.fits[kind])
        again = _likeliest(found)
        if _takes_back(given.codes, believed, again):
            break
        last, proba, believed = after, found, again
    if proba is not before:
        # A refit believes its own mistakes, the more the fewer samples a class has.
        n_each = given.weight.sum() / len(np.unique(given.codes[given.weight > 0]))
        part, later = WEIGHT_OF_FIRST / (WEIGHT_OF_FIRST + n_each), proba
        proba = ByRows(lambda rows: part * before[rows] + (1.0 - part) * later[rows], first.shape)
    fit = last.choice.fits[kind]
    simple = last.choice.fits["common"] if mixed else fit
    gain = simple.log_likelihood - _of_none(first, last, kind)
    gain += max(last.choice.gain_of_flips, 0.0) if mixed else 0.0
    # By Akaike's weights: flips are one number more, which has to gain one unit. (Half a logarithm
    # of the sample size is too strict: flexible judges foretell wrong labels, and hide them.)
    belief = float(expit(last.likelihood.total * gain - 1.0))
    return Judged(last, fit, proba, gain, belief, first.strength(kind))


def _likeliest(proba: ByRows) -> NDArray[np.intp]:
    return np.concatenate([proba[rows].argmax(axis=1) for rows in blocks_of(proba.shape)])


def _of_none(first: Round, last: Round, kind: str) -> float:
    """Return the likelihood if no label is wrong: judges are fitted to the given ones then.

    Those of the last round, fitted to others, would make flips look surer than they are.
    """
    return no_flips(first.likelihood, first.choice.fits[kind]).log_likelihood


def _takes_back(
    given: NDArray[np.intp], fitted_to: NDArray[np.intp], believed: NDArray[np.intp]
) -> bool:
    """Tell whether a refit believes most of the labels right that it was fitted to be wrong.

    Where classes are far apart, judges that have seen no wrong label explain them by doubt that
    is equal for all samples as well as by flips. But then they would have been fitted otherwise.
    """
    moved = fitted_to != given
    return bool((believed[moved] == given[moved]).mean() > 0.5)


def _value(judged: Round, kind: str) -> float:
    """Return the likelihood that refits have to raise: that of labels left out, of a matrix."""
    choice = judged.choice
    return choice.left_out["flips"] if kind == "flips" else choice.fits[kind].log_likelihood
