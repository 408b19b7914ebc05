"""Several calibrators, weighed by the labels of samples they were not fitted on."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.isotonic import isotonic_regression

from ..utils.checking._groups import design_effect
from ..utils.checking._guard import told
from ..utils.checking._proba import FLOAT32_ROUNDING
from ..utils.computing._blocks import row_max, row_sum
from ..utils.meta._warnings import collecting, ignoring
from ._base import (
    SMALLEST,
    PostHocCalibrator,
    beside_uniform,
    linear_formula,
    mixed_with_uniform,
    mixture_formula,
    simplex_weights,
)
from ._limits import (
    LEAST_WEIGHT,
    MOST_NUMBERS,
    N_FOLDS,
    PRICE,
    SAMPLES_OF_FIRST,
    SAMPLES_OF_ONE_SPLIT,
)
from ._linear import Ridge
from ._matrix import StructuredMatrixScaling, StructuredVectorScaling
from ._temperature import (
    AfterTemperature,
    AtTemperature,
    TemperatureScaling,
    at_temperature,
    by_columns,
    fit_at_temperature,
)

AS_IT_IS = "as it is"


class LooseMatrixScaling(StructuredMatrixScaling):
    """Structured matrix scaling that draws all but the slopes to 0 a tenth as strongly.

    Alone it overfits more often. In the stack, which leaves it out then, it repairs models that
    mix up classes and are sure of it, such as naive Bayes.
    """

    def _ridge(self) -> Ridge:
        ridge = super()._ridge()
        return ridge._replace(off_diagonal=ridge.intercept)


class ShrunkIsotonic(AfterTemperature):
    """Isotonic regression of the confidence, drawn to the probabilities at a temperature.

    The probability of the second of two classes, of several the largest one, is mapped. Isotonic
    regression forms blocks of equal values; the mean of every block counts one more sample at its
    mean probability at the temperature, so that no block says 0 or 1, and straight lines in
    log-odds join the blocks. With several classes the others share what is left as before, and the
    largest probability stays the largest: what is mapped tells nothing about the next one.

    Attributes
    ----------
    temperature_, uniform_weight_ : float
        The temperature T and the weight of the uniform component there.
    knots_, values_ : ndarray of shape (n_blocks,)
        Log-odds at the temperature, and those that they are mapped to.
    """

    def _fit_at(
        self,
        at: AtTemperature,
        y: NDArray,
        sample_weight: NDArray | None,
        near: Self | None = None,
    ) -> None:
        self.temperature_, self.uniform_weight_ = at.temperature, at.uniform_weight
        proba = self._at_temperature(at)
        p, mapped = _mapped(proba)
        # Of classes that share the largest probability each is right as often as the others.
        hit = mapped[np.arange(len(y)), y] / mapped.sum(axis=1)
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        odds = _log_odds(p)
        # Sums in another order differ by rounding, which must not split what is equal.
        _, of_sample = np.unique(odds.round(9), return_inverse=True)
        # Sums over the samples of equal odds: weight, hits, probability, odds.
        sums = [np.bincount(of_sample, weight * part) for part in (1.0, hit, p, odds)]
        fitted = isotonic_regression(sums[1] / sums[0], sample_weight=sums[0])
        block = np.append(0, np.cumsum(np.diff(fitted) > 0))
        total, hits, stated, odds = (np.bincount(block, part) for part in sums)
        shrunk = (hits + stated / total) / (total + 1)
        values = isotonic_regression(shrunk, sample_weight=total)
        self.knots_, self.values_ = odds / total, _log_odds(values)

    def _predict_at(self, at: AtTemperature) -> NDArray:
        proba = self._at_temperature(at)
        p, mapped = _mapped(proba)
        latest = expit(np.interp(_log_odds(p), self.knots_, self.values_))
        if proba.shape[1] == 2:
            proba[:, 0], proba[:, 1] = 1 - latest, latest
            return proba
        # The others share 1 - latest as they shared 1 - p: the next one stays below that way.
        count = row_sum(mapped.astype(proba.dtype))
        following = np.maximum(row_max(proba - mapped), 0)
        room = np.maximum(row_sum(np.where(mapped, 0, proba)), SMALLEST)
        # Above it by more than rounding.
        following *= 1 + SMALLEST
        latest = np.maximum(latest, following / (room + count * following))
        latest = np.minimum(latest, (1 - SMALLEST) / count)
        others = (1 - count * latest) / room
        proba *= np.where(mapped, (latest / p)[:, None], others[:, None])
        proba /= row_sum(proba)[:, None]
        return proba

    def _formula(self) -> dict[str, Any]:
        part = beside_uniform(linear_formula(self.temperature_), self.uniform_weight_)
        x, y = self.knots_.tolist(), self.values_.tolist()
        return {
            "kind": "confidence",
            "part": part,
            "zero": SMALLEST,
            "equal": FLOAT32_ROUNDING,
            "x": x,
            "y": y,
        }

    def _at_temperature(self, at: AtTemperature) -> NDArray[np.float64]:
        return mixed_with_uniform(at.proba.astype(np.float64), self.uniform_weight_)


def _mapped(proba: NDArray) -> tuple[NDArray, NDArray[np.bool_]]:
    """Return the probability that is mapped, and where it stands: at the top, ties included.

    Shares of the votes of trees or neighbors that are equal may differ by the rounding of float32.
    """
    if proba.shape[1] == 2:
        return proba[:, 1], np.broadcast_to([False, True], proba.shape)
    largest = row_max(proba)
    return largest, proba >= (largest * (1 - FLOAT32_ROUNDING))[:, None]


def _log_odds(p: NDArray) -> NDArray:
    return logit(np.clip(p, SMALLEST, 1 - SMALLEST))


class StackedCalibration(PostHocCalibrator):
    """Mix several calibrators and the probabilities as they are, weighed out-of-fold.

    Which calibrator is best depends on how the model errs and on how many samples there are, and
    neither is known. So every map is fitted on four fifths of the samples and judged on the rest.
    The weights of the mixture, which sum to 1, make the labels left out most likely, under a prior
    that counts as two samples: all components share one, the model as it is and the first
    calibrator share the other. The maps are then fitted on all samples.

    Nothing is changed without reason: the mixture counts as much as it is likely, by the labels
    left out, that the model should not stay as it is: 1/2 where the mixture gains one nat of
    log-likelihood, Akaike's price of a number that is fitted, and .98 where it gains five.

    Parameters
    ----------
    calibrators : list of (str, PostHocCalibrator), default=None
        Names and calibrators, simple ones first; clones are fitted, with the `input` and `classes`
        of this one. None means :class:`TemperatureScaling`, :class:`StructuredVectorScaling`,
        :class:`StructuredMatrixScaling` with a ridge off the diagonal that is a tenth as strong,
        and an isotonic map of the confidence that is drawn to the temperature. With two classes
        there is no vector, which says what the matrix does. For speed there is no matrix where
        ``n_samples * n_classes**2`` is above 5e7, and the temperature alone where ``n_samples *
        n_classes`` is. The probabilities as they are take part in any case.
    input : {"logits", "proba"}, default="logits"
        What X holds. A logit of -inf is an option that does not exist for the sample; of the
        default calibrators only the temperature takes it.
    classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrators_ : dict of str to PostHocCalibrator
        The calibrators that take part, fitted on all samples.
    weights_ : dict of str to float
        Their weights and that of the probabilities as they are, which sum to 1. What would have
        less than .1 leaves it to the first calibrator.
    log_losses_ : dict of str to float
        Mean log-loss out-of-fold of every component, of those left out after that as well, and of
        the mixture as "mixture".
    left_out_ : dict of str to str
        Calibrators that take no part, and why.
    classes_, n_features_in_, feature_names_in_ : ndarray, int and ndarray of str
        Labels, number and names of the columns of X, as for :class:`PostHocCalibrator`.

    See Also
    --------
    PostHocCalibratedClassifier : A classifier and this calibrator as one estimator.
    TemperatureScaling : The simplest of the maps.

    Notes
    -----
    The folds follow from the samples, not from their order or that of the classes, and nothing is
    random. Classes are not shared out alike: with few samples that would flatter maps that learn
    how frequent a class is. With `groups`, no group is in two folds, and samples count by how much
    their log-losses differ within groups: thirty alike of one person count as one. A sample of
    weight k is in one fold, k equal samples are in several: the maps are the same, and the weights
    of the mixture differ a little. Of more than 20 000 samples a fifth judges, instead of all in
    turn.

    A matrix can change the predicted class, and so can the isotonic map of two classes. No rule
    watches over that beside the likelihood of labels left out: one that did cost log-loss and
    saved no predictions on the sets of the guide.

    Examples
    --------
    >>> from skcalib.datasets import make_predictions
    >>> from skcalib.posthoc import StackedCalibration
    >>> y, proba, _ = make_predictions(2000, n_classes=3, temperature=2.0, random_state=0)
    >>> stack = StackedCalibration(input="proba").fit(proba, y)
    >>> for name, loss in stack.log_losses_.items():
    ...     print(f"{name:18}{loss:.3f}")
    as it is          0.733
    temperature       0.608
    structured_vector 0.609
    structured_matrix 0.608
    isotonic          0.612
    mixture           0.607
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        "calibrators": [list, None],
    }
    _takes_missing_options = True
    _has_folds = True

    def __init__(
        self,
        calibrators: list[tuple[str, PostHocCalibrator]] | None = None,
        *,
        input: str = "logits",
        classes: ArrayLike | None = None,
    ) -> None:
        self.calibrators = calibrators
        self.input = input
        self.classes = classes

    def _fit(
        self,
        scores: NDArray,
        y: NDArray,
        sample_weight: NDArray | None,
        groups: NDArray[np.intp] | None = None,
    ) -> None:
        if groups is not None and len(np.unique(groups)) < 2:
            raise ValueError(
                "groups must name at least two groups of positive weight, one to fit calibrators "
                "and another one to judge them, got one."
            )
        if len(y) < 2:
            raise ValueError(
                "X must hold a sample to fit calibrators and another one to judge them, both of "
                "positive weight, got one."
            )
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        raw, logits = self._as_proba(scores), self._as_logits(scores)
        if groups is not None:
            # Ten pictures of one person are not ten samples.
            of_label = np.maximum(raw[np.arange(len(y)), y], SMALLEST)
            effect = design_effect(-np.log(of_label), groups, weight)
            weight = sample_weight = weight / effect
        n_effective = weight.sum() if groups is not None else len(y)
        candidates = self._candidates(scores)
        maps = self._fit_maps(candidates, scores, logits, y, sample_weight)
        folds = folds_at_random(raw, y, weight, 0, groups)
        n_folds = 1 if n_effective > SAMPLES_OF_ONE_SPLIT else folds.max() + 1
        of_label = {name: np.empty(len(y)) for name in (AS_IT_IS, *candidates)}
        of_label[AS_IT_IS][:] = raw[np.arange(len(y)), y]
        for fold in range(n_folds):
            out, rest = np.flatnonzero(folds == fold), folds != fold
            judged = self._fit_maps(
                candidates, scores[rest], logits[rest], y[rest], weight[rest], near=maps
            )
            for name, proba in _predictions(judged, scores[out], logits[out]):
                of_label[name][out] = proba[np.arange(len(out)), y[out]]
        used = folds < n_folds
        self._weigh({name: part[used] for name, part in of_label.items()}, weight[used])
        self.calibrators_ = {name: maps[name] for name in maps if name not in self.left_out_}

    def _weigh(self, of_label: dict[str, NDArray], weight: NDArray) -> None:
        """Find the weights of the components by what they say of the labels left out."""
        # A probability of 0 would end the sum of logarithms.
        parts = np.column_stack(list(of_label.values()))
        np.maximum(parts, np.finfo(np.float32).tiny, out=parts)
        # A prior of two samples. All components share one; the model as it is and the first map,
        # which are the last to lose predictions, share the other.
        prior = np.full(len(of_label), 1 / len(of_label))
        prior[:2] += SAMPLES_OF_FIRST / len(prior[:2])
        weights = simplex_weights(parts, weight, prior)
        # How far to go from the model as it is: a number that is fitted, gains by chance too, and
        # costs a nat for that (Akaike). What is left are odds that the model should be changed.
        gain = float(weight @ np.log(parts @ weights / parts[:, 0])) - PRICE
        weights *= expit(gain)
        weights[0] += expit(-gain)
        small = weights < LEAST_WEIGHT
        small[1:2] = False
        weights[1:2] += weights[small].sum()
        weights[small] = 0
        losses = -np.log(np.column_stack([parts, parts @ weights]))
        means = np.average(losses, axis=0, weights=weight)
        self.log_losses_ = dict(zip([*of_label, "mixture"], means.tolist()))
        self.weights_ = dict(zip(of_label, weights.tolist()))
        for name in [name for name in of_label if name != AS_IT_IS and not self.weights_[name]]:
            self.left_out_[name] = f"its weight is below {LEAST_WEIGHT:.0%}"
            del self.weights_[name]

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        found = np.empty(logits.shape, dtype=np.result_type(scores.dtype, np.float32))
        for rows, block in by_columns(logits):
            mixed = np.zeros_like(block)
            if self.weights_[AS_IT_IS]:
                mixed += self.weights_[AS_IT_IS] * self._as_proba(scores[rows])
            for name, proba in _predictions(self.calibrators_, scores[rows], block):
                mixed += self.weights_[name] * proba
            found[rows] = mixed / row_sum(mixed)[:, None]
        return found

    def _formula(self) -> dict[str, Any]:
        parts = {AS_IT_IS: {"kind": "as it is"}}
        for name, calibrator in self.calibrators_.items():
            parts[name] = calibrator._formula()
        return mixture_formula([self.weights_[name] for name in parts], list(parts.values()))

    def _candidates(self, scores: NDArray) -> dict[str, PostHocCalibrator]:
        """Return unfitted calibrators that the data allow, and note why others are left out."""
        k = max(2, scores.shape[1])
        self.left_out_: dict[str, str] = {}
        chosen = self.calibrators
        if chosen is None:
            chosen = [("temperature", TemperatureScaling())]
            numbers = scores.shape[0] * k
            kinds: list[tuple[str, type[PostHocCalibrator], int]] = [
                ("structured_vector", StructuredVectorScaling, numbers),
                ("structured_matrix", LooseMatrixScaling, numbers * k),
                ("isotonic", ShrunkIsotonic, numbers),
            ]
            # With two classes a matrix says what a vector does.
            for name, kind, of_a_pass in kinds[1:] if k == 2 else kinds:
                if np.isneginf(scores).any():
                    self.left_out_[name] = "it cannot do without the logit of a missing option"
                elif of_a_pass > MOST_NUMBERS:
                    self.left_out_[name] = f"{len(scores)} samples of {k} classes are too many"
                else:
                    chosen.append((name, kind()))
        given = {"input": self.input, "classes": list(range(k))}
        return {name: clone(calibrator).set_params(**given) for name, calibrator in chosen}

    def _fit_maps(
        self,
        candidates: dict[str, PostHocCalibrator],
        scores: NDArray,
        logits: NDArray,
        y: NDArray,
        weight: NDArray | None,
        near: dict[str, PostHocCalibrator] | None = None,
    ) -> dict[str, PostHocCalibrator]:
        """Return the calibrators, fitted; `near` holds those of nearly the same samples."""
        at: AtTemperature | None = None
        fitted = {}
        for name, candidate in candidates.items():
            calibrator = fitted[name] = copy(candidate)
            if not _shares_temperature(calibrator):
                _quietly_fit(calibrator, scores, y, weight)
                continue
            # What `fit` learns of scores and labels before the map itself.
            calibrator.classes_, calibrator._zero = np.arange(logits.shape[1]), self._zero
            calibrator.n_features_in_ = scores.shape[1]
            before: Any = None if near is None else near[name]
            if at is None:
                start = None if before is None else before.temperature_
                at = fit_at_temperature(logits, y, weight, near=start)
            calibrator._fit_at(at, y, weight, before)
        return fitted


def _shares_temperature(calibrator: PostHocCalibrator) -> TypeGuard[AfterTemperature]:
    return isinstance(calibrator, AfterTemperature) and calibrator._shares_temperature()


def _predictions(
    maps: dict[str, PostHocCalibrator], scores: NDArray, logits: NDArray
) -> Iterator[tuple[str, NDArray]]:
    """Yield the probabilities of every map; the temperature that some share is applied once."""
    at: AtTemperature | None = None
    for name, calibrator in maps.items():
        if _shares_temperature(calibrator):
            if at is None:
                at = at_temperature(logits, calibrator.temperature_, calibrator.uniform_weight_)
            yield name, calibrator._predict_at(at)
        else:
            yield name, calibrator._predict_proba(scores)


def _quietly_fit(
    calibrator: PostHocCalibrator, scores: NDArray, y: NDArray, weight: NDArray | None
) -> None:
    # A temperature at its bound gets the weight that it deserves. Four fifths of the samples may
    # look like numbers to regress on; all of them were checked.
    with (
        collecting(),
        told(),
        ignoring(UserWarning, "The number of unique classes is greater"),
    ):
        calibrator._check_and_fit(scores, y, weight)


def folds_at_random(
    proba: NDArray,
    y: NDArray,
    weight: NDArray,
    seed: int,
    groups: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Return the fold of every sample, whole groups in one: they take turns, in random order.

    The order of the samples does not matter, nor that of classes unlike in count and mean squared
    probability. Folds of equal class frequencies would judge the intercepts of a map by the very
    frequencies that it was fitted to.
    """
    rng = np.random.default_rng(seed)
    k = proba.shape[1]
    # The smallest probabilities may underflow to 0.
    with np.errstate(under="ignore"):
        of_column = np.square(proba).mean(axis=0).round(9)
        rank = np.argsort(np.lexsort((of_column, np.bincount(y, minlength=k))))
        y, key = rank[y], (proba * rng.random(len(rank))[rank]).sum(axis=1)
    if groups is None:
        return _in_turns(key, y, weight, rng)
    # A group stands for its samples by their means.
    _, groups = np.unique(groups, return_inverse=True)
    size = np.bincount(groups)
    mean, of_y = (np.bincount(groups, values) / size for values in (key, y))
    return _in_turns(mean.round(9), of_y.round(9), np.bincount(groups, weight), rng)[groups]


def _in_turns(
    key: NDArray, y: NDArray, weight: NDArray, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return folds in which entries take turns, in a random order that their values determine."""
    folds = np.empty(len(y), dtype=np.intp)
    folds[np.lexsort((weight, y, key))[rng.permutation(len(y))]] = np.arange(len(y)) % N_FOLDS
    return folds
