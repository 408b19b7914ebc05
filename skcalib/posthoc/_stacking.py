"""A mixture of calibrators, weighted by out-of-fold likelihood."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit, softmax
from sklearn.base import clone

from ..utils._labels import compute_design_effect
from ..utils._numeric import compute_row_max, compute_row_sum
from ..utils._output import collecting, ignoring
from ..utils._proba import FLOAT32_ROUNDING
from ._base import (
    SMALLEST,
    PostHocCalibrator,
    add_uniform_formula,
    fit_simplex_weights,
    make_linear_formula,
    make_mixture_formula,
    mix_with_uniform,
)
from ._constants import (
    INTERCEPT_SPREADS,
    LEAST_POSTERIOR,
    LEAST_WEIGHT,
    MOST_NUMBERS,
    N_FOLDS,
    PRICE,
    SAMPLES_OF_FIRST,
    SAMPLES_OF_ONE_SPLIT,
)
from ._linear import StructuredMatrixScaling, StructuredVectorScaling
from ._linear_fit import Ridge
from ._shifts import compute_log_proba, fit_shifts
from ._temperature import (
    AfterTemperature,
    AtTemperature,
    TemperatureScaling,
    fit_at_temperature,
    iter_by_columns,
)

IDENTITY = "identity"
# By how much the next block of an isotonic map is above the one before: more than rounding.
_LEAST_RISE = 1e-12


class WeakRidgeMatrixScaling(StructuredMatrixScaling):
    """Structured matrix scaling with a tenth of the ridge off the diagonal.

    By itself it overfits more often, but then the stack drops it. It repairs models that
    confidently confuse classes, such as naive Bayes.
    """

    def _ridge(self) -> Ridge:
        ridge = super()._ridge()
        return ridge._replace(off_diagonal=ridge.intercept)


class ShrunkIsotonic(AfterTemperature):
    """Isotonic regression of the confidence after temperature scaling, slightly smoothed.

    It maps the probability of the second of two classes; with more classes, the largest one.
    Isotonic regression forms blocks of equal values. Every block gets one more sample, at its mean
    probability before the map, so no block has the value 0 or 1; between blocks the map is linear
    in log-odds. With more than two classes the other probabilities keep their ratios, and the
    largest probability stays the largest.

    Attributes
    ----------
    temperature_, uniform_weight_ : float
        The temperature T and the weight of the uniform component there.
    knots_, values_ : ndarray of shape (n_blocks,)
        Log-odds after temperature scaling, and the log-odds that they are mapped to.
    """

    mix_uniform = True

    def _fit_at(
        self,
        at: AtTemperature,
        y: NDArray,
        sample_weight: NDArray | None,
        near: Self | None = None,
    ) -> None:
        self.temperature_, self.uniform_weight_ = at.temperature, at.uniform_weight
        p, hit = np.empty((2, len(y)))
        for rows, part in at.iter_blocks():
            p[rows], mapped = _find_mapped(self._at_temperature(part))
            # If several classes share the largest probability, the hit counts for one of them.
            hit[rows] = mapped[np.arange(len(mapped)), y[rows]] / mapped.sum(axis=1)
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        odds = _compute_log_odds(p)
        # Round, so that equal values stay equal whatever the order of summation.
        _, of_sample = np.unique(odds.round(9), return_inverse=True)
        # Sums over samples with equal odds: weight, hits, probability, odds.
        sums = [np.bincount(of_sample, weight * part) for part in (1.0, hit, p, odds)]
        fitted = isotonic_regression(sums[1] / sums[0], weights=sums[0]).x
        # Blocks of one value up to rounding are one block.
        block = np.append(0, np.cumsum(np.diff(fitted) > _LEAST_RISE))
        total, hits, predicted, odds = (np.bincount(block, part) for part in sums)
        shrunk = (hits + predicted / total) / (total + 1)
        values = isotonic_regression(shrunk, weights=total).x
        self.knots_, self.values_ = odds / total, _compute_log_odds(values)

    def _predict_at(self, at: AtTemperature) -> NDArray:
        proba = self._at_temperature(at)
        p, mapped = _find_mapped(proba)
        latest = expit(np.interp(_compute_log_odds(p), self.knots_, self.values_))
        if proba.shape[1] == 2:
            proba[:, 0], proba[:, 1] = 1 - latest, latest
            return proba
        # The others keep their ratios and sum to 1 - count * latest. `latest` is raised until the
        # next largest stays below it.
        count = compute_row_sum(mapped.astype(proba.dtype))
        following = np.maximum(compute_row_max(proba - mapped), 0)
        sum_of_others = np.maximum(compute_row_sum(np.where(mapped, 0, proba)), SMALLEST)
        # Stay above it by more than rounding.
        following *= 1 + SMALLEST
        latest = np.maximum(latest, following / (sum_of_others + count * following))
        latest = np.minimum(latest, (1 - SMALLEST) / count)
        factor = (1 - count * latest) / sum_of_others
        proba *= np.where(mapped, (latest / p)[:, None], factor[:, None])
        proba /= compute_row_sum(proba)[:, None]
        return proba

    def _formula(self) -> dict[str, Any]:
        part = add_uniform_formula(make_linear_formula(self.temperature_), self.uniform_weight_)
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
        return mix_with_uniform(at.proba.astype(np.float64), self.uniform_weight_, at.logits)


def _find_mapped(proba: NDArray) -> tuple[NDArray, NDArray[np.bool_]]:
    """Return the probability to map, and a mask of the classes that have it (ties included).

    Equal shares of votes of trees or neighbors may differ by the rounding of float32.
    """
    if proba.shape[1] == 2:
        return proba[:, 1], np.broadcast_to([False, True], proba.shape)
    largest = compute_row_max(proba)
    return largest, proba >= (largest * (1 - FLOAT32_ROUNDING))[:, None]


def _compute_log_odds(p: NDArray) -> NDArray:
    return logit(np.clip(p, SMALLEST, 1 - SMALLEST))


class StackedCalibration(PostHocCalibrator):
    """Mix several calibrators and the unchanged probabilities, weighted by out-of-fold likelihood.

    Which calibrator is best depends on how the model errs and on the number of samples. So every
    calibrator is fitted on four fifths of the samples and predicts the rest, five times. The
    weights of the mixture, which sum to 1, maximize the likelihood of the labels left out, under a
    prior that counts as two samples: one shared by all components, one by the unchanged
    probabilities and the first calibrator. The calibrators are then fitted on all samples.

    The probabilities change only as far as the data support it: the mixture is mixed once more
    with the unchanged probabilities, by Akaike's weights. The mixture gets the weight 1/2 if it
    gains one nat of log-likelihood on the labels left out, and .98 if it gains five.

    Models trained with class weights, or on samples of which one class was drawn more often, give
    rare classes too much probability. Even a small part of such a model in a mixture would do so.
    So where the labels show that a temperature does not suffice, every class gets an intercept
    at the end, and mean probabilities follow the class frequencies.

    Parameters
    ----------
    calibrators : list of (str, PostHocCalibrator), default=None
        Names and calibrators, the simplest first; clones are fitted, with `input` and `classes`
        set to those of the stack. None means :class:`TemperatureScaling`,
        :class:`StructuredVectorScaling`, :class:`StructuredMatrixScaling` with a tenth of the
        ridge off the diagonal, all with ``mix_uniform=True``, and a smoothed isotonic map of the
        confidence at that temperature. With two classes the vector is left out, because the matrix
        is the same map. To save time, the matrix is left out if ``n_samples * n_classes**2``
        exceeds 5e7, and all but the temperature if ``n_samples * n_classes`` does. The unchanged
        probabilities always take part.
    input : {"logits", "proba", "scores"}, default="logits"
        What X holds, as in :class:`PostHocCalibrator`. A logit of -inf is an option that the
        sample does not have, and gets the probability 0. Where `fit` gets one, only the
        temperature of the default calibrators is used. Of scores, the unchanged probabilities are
        the softmax of the scores divided by `unit_`.
    classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrators_ : dict of str to PostHocCalibrator
        The calibrators in the mixture, fitted on all samples.
    weights_ : dict of str to float
        Their weights and that of the unchanged probabilities ("identity"), which sum to 1. A
        calibrator with less than .1 is dropped, and the first one gets its weight.
    log_losses_ : dict of str to float
        Mean out-of-fold log-loss of every component, including dropped ones, and of the mixture
        ("mixture").
    intercept_ : ndarray of shape (n_classes,)
        Added to the logarithms of the mixture before they are normalized. 0 with `calibrators` of
        your own, with logits of -inf, and if ``n_samples * n_classes**2`` exceeds 5e7.
    excluded_ : dict of str to str
        Calibrators that are not in the mixture, and why.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    See Also
    --------
    PostHocCalibratedClassifier : A classifier and this calibrator as one estimator.
    TemperatureScaling : The simplest of the calibrators.

    Notes
    -----
    The result is deterministic: the folds depend on the values of the samples, and not on their
    order or that of the classes. They are not stratified, because with few samples that would
    favor maps that learn class frequencies. With `groups`, no group is in two folds, and the
    number of samples is reduced by the design effect: thirty equal samples of one person count as
    one. A sample of weight k is in one fold, while k equal samples may be in several: the
    calibrators are the same, and the weights of the mixture differ a little. With more than 20 000
    samples, only one of the five folds is predicted.

    The intercepts are normal around 0 with a standard deviation of 0, .3, 1 or 3. Laplace's
    approximation gives the evidence of the four, beside the best temperature. As in the mixture,
    the last three are as probable as 0 where they gain one nat for each class but one.
    `intercept_` is the average of the most probable intercepts of the mixture. Class weights shift
    log-odds by the logarithm of their ratio, 3 for a class of 5 %, so after a few dozen samples
    the largest is nearly certain.

    The matrix can change the predicted class, and so can the isotonic map of two classes. Only the
    out-of-fold likelihood guards against changes for the worse; an additional rule cost log-loss
    and saved no predictions on the sets of the guide.

    Examples
    --------
    >>> from skcalib.datasets import make_predictions
    >>> from skcalib.posthoc import StackedCalibration
    >>> y, proba, _ = make_predictions(2000, n_classes=3, temperature=2.0, random_state=0)
    >>> stack = StackedCalibration(input="proba").fit(proba, y)
    >>> for name, loss in stack.log_losses_.items():
    ...     print(f"{name:18}{loss:.3f}")
    identity          0.733
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
                "groups must have at least two groups of positive weight, one to fit calibrators "
                "and another to weigh them, got one."
            )
        if len(y) < 2:
            raise ValueError(
                "X must hold at least two samples of positive weight, one to fit calibrators and "
                "another to weigh them, got one."
            )
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        raw, logits = self._as_proba(scores), self._as_logits(scores)
        given, scores = scores, self._of_maps(scores)
        if groups is not None:
            # Ten pictures of one person are not ten samples.
            losses = -np.log(np.maximum(raw[np.arange(len(y)), y], SMALLEST))
            effect = compute_design_effect(losses, groups, weight)
            weight = sample_weight = weight / effect
        n_effective = weight.sum() if groups is not None else len(y)
        candidates = self._candidates(scores)
        maps = self._fit_maps(candidates, scores, logits, y, sample_weight)
        n_numbers, has_all_options = logits.size, not np.isneginf(logits).any()
        del logits  # for memory: those of a fold are computed again
        folds = draw_folds(raw, y, weight, 0, groups).astype(np.int8)
        n_folds = 1 if n_effective > SAMPLES_OF_ONE_SPLIT else folds.max() + 1
        # The out-of-fold probability of each label, by every component.
        outside = [np.flatnonzero(folds == fold) for fold in range(n_folds)]
        predicted = np.concatenate(outside)
        p_label = {name: np.empty(len(predicted)) for name in (IDENTITY, *candidates)}
        p_label[IDENTITY][:] = raw[predicted, y[predicted]]
        start = 0
        for fold, out in enumerate(outside):
            rest, to = folds != fold, slice(start, start + len(out))
            fold_maps = self._fit_maps(
                candidates,
                scores,
                self._as_logits(given[rest]),
                y[rest],
                weight[rest],
                near=maps,
                rows=rest,
            )
            logits = self._as_logits(given[out])
            for name, proba in _iter_predictions(fold_maps, scores[out], logits):
                p_label[name][to] = proba[np.arange(len(out)), y[out]]
            start = to.stop
        self._weigh(p_label, weight[predicted])
        self.calibrators_ = {name: maps[name] for name in maps if name not in self.excluded_}
        k = raw.shape[1]
        self.intercept_ = np.zeros(k)
        if self.calibrators is None and has_all_options and n_numbers * k <= MOST_NUMBERS:
            self.intercept_ = _fit_intercept(
                lambda: maps["temperature"]._predict_proba(scores),
                lambda: self._predict_proba(given),
                y,
                weight,
            )

    def _weigh(self, p_label: dict[str, NDArray], weight: NDArray) -> None:
        """Find the weights of the components, by their out-of-fold probabilities of the labels.

        The first component is the unchanged model, the second one the first calibrator, if any.
        """
        components, has_calibrators = list(p_label), len(p_label) > 1
        proba = np.stack(list(p_label.values()))
        np.maximum(proba, np.finfo(np.float32).tiny, out=proba)  # no logarithm of 0
        # A prior of two samples: all components share one; the unchanged model and the first
        # calibrator share the other.
        prior = np.full(len(components), 1 / len(components))
        prior[[0, 1] if has_calibrators else [0]] += SAMPLES_OF_FIRST / (1 + has_calibrators)
        weights = fit_simplex_weights(proba, weight, prior)
        # Akaike's weights of the mixture and the unchanged model: a fitted parameter gains about
        # a nat by chance.
        gain = float(weight @ np.log(weights @ proba / proba[0])) - PRICE
        weights *= expit(gain)
        weights[0] += expit(-gain)
        if has_calibrators:
            # The first calibrator gets the weights of the components that are dropped.
            dropped = weights < LEAST_WEIGHT
            dropped[1] = False
            weights[1] += weights[dropped].sum()
            weights[dropped] = 0
        losses = -np.log(np.vstack([proba, weights @ proba]))
        means = np.average(losses, axis=1, weights=weight)
        self.log_losses_ = dict(zip([*components, "mixture"], means.tolist()))
        self.weights_ = dict(zip(components, weights.tolist()))
        for name in components[1:]:
            if not self.weights_[name]:
                self.excluded_[name] = f"its weight is below {LEAST_WEIGHT:.0%}"
                del self.weights_[name]

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        found = np.empty(logits.shape, dtype=np.result_type(scores.dtype, np.float32))
        factor = np.exp(self.intercept_).astype(found.dtype)
        given = self._of_maps(scores)
        for rows, block in iter_by_columns(logits):
            mixed = np.zeros_like(block)
            if self.weights_[IDENTITY]:
                mixed += self.weights_[IDENTITY] * self._as_proba(scores[rows])
            for name, proba in _iter_predictions(self.calibrators_, given[rows], block):
                mixed += self.weights_[name] * proba
            # A map that has seen no option missing would give it some probability.
            mixed[np.isneginf(block)] = 0
            mixed *= factor
            total = np.maximum(compute_row_sum(mixed), np.finfo(mixed.dtype).tiny)
            found[rows] = mixed / total[:, None]
        return found

    def _formula(self) -> dict[str, Any]:
        parts = {IDENTITY: {"kind": "identity"}}
        for name, calibrator in self.calibrators_.items():
            parts[name] = calibrator._formula()
        weights = [self.weights_[name] for name in parts]
        mixture = make_mixture_formula(weights, list(parts.values()))
        if not self.intercept_.any():
            return mixture
        return {"kind": "shifted", "part": mixture, "intercept": self.intercept_.tolist()}

    def _of_maps(self, scores: NDArray) -> NDArray:
        """Return what the calibrators get: scores in their unit are logits."""
        return self._as_logits(scores) if self.input == "scores" else scores

    def _candidates(self, scores: NDArray) -> dict[str, PostHocCalibrator]:
        """Return the calibrators to fit, and note in `excluded_` why others are not."""
        k = max(2, scores.shape[1])
        self.excluded_: dict[str, str] = {}
        chosen = self.calibrators
        if chosen is None:
            chosen = [("temperature", TemperatureScaling(mix_uniform=True))]
            numbers = scores.shape[0] * k
            others: list[tuple[str, PostHocCalibrator, int]] = [
                ("structured_vector", StructuredVectorScaling(mix_uniform=True), numbers),
                ("structured_matrix", WeakRidgeMatrixScaling(mix_uniform=True), numbers * k),
                ("isotonic", ShrunkIsotonic(), numbers),
            ]
            # With two classes, a vector is the same map as a matrix.
            for name, calibrator, numbers_per_pass in others[1:] if k == 2 else others:
                if np.isneginf(scores).any():
                    self.excluded_[name] = "it takes no logits of -inf"
                elif numbers_per_pass > MOST_NUMBERS:
                    self.excluded_[name] = f"{len(scores)} samples of {k} classes are too many"
                else:
                    chosen.append((name, calibrator))
        names = [name for name, _ in chosen]
        if len({*names, IDENTITY, "mixture"}) < len(names) + 2:
            raise ValueError(
                "calibrators must have distinct names other than 'identity' and 'mixture', got "
                f"{names}."
            )
        given = {
            "input": "proba" if self.input == "proba" else "logits",
            "classes": list(range(k)),
        }
        return {name: clone(calibrator).set_params(**given) for name, calibrator in chosen}

    def _fit_maps(
        self,
        candidates: dict[str, PostHocCalibrator],
        scores: NDArray,
        logits: NDArray,
        y: NDArray,
        weight: NDArray | None,
        near: dict[str, PostHocCalibrator] | None = None,
        rows: NDArray[np.bool_] | slice = slice(None),
    ) -> dict[str, PostHocCalibrator]:
        """Return fitted calibrators; the search starts at `near`, fits to nearly the same data.

        The logits, labels and weights are those of the `rows` of the scores.
        """
        at: AtTemperature | None = None
        fitted = {}
        for name, candidate in candidates.items():
            calibrator = fitted[name] = copy(candidate)
            if not _has_shared_temperature(calibrator):
                _fit_quietly(calibrator, scores[rows], y, weight)
                continue
            # What `fit` sets before `_fit`.
            calibrator.classes_, calibrator._zero = np.arange(logits.shape[1]), self._zero
            calibrator.n_features_in_ = scores.shape[1]
            before: Any = None if near is None else near[name]
            if at is None:
                start = None if before is None else before.temperature_
                at = fit_at_temperature(logits, y, weight, mix_uniform=True, near=start)
            calibrator._fit_at(at, y, weight, before)
        return fitted


def _fit_intercept(
    scaled: Callable[[], NDArray], mixed: Callable[[], NDArray], y: NDArray, weight: NDArray
) -> NDArray[np.float64]:
    """Return the intercepts of all classes, averaged over how much they may differ from 0.

    How much is decided by the probabilities `scaled` at the best temperature, beside which
    intercepts may be needed; those returned are of the probabilities `mixed`. The two are
    computed one after the other, for memory.
    """
    log_proba = compute_log_proba(scaled())
    n_classes = log_proba.shape[1]
    # Every intercept but one has to gain the price of the mixture.
    evidence = [
        fit_shifts(log_proba, y, weight, spread, 0.0)[1] - PRICE * (n_classes - 1)
        for spread in INTERCEPT_SPREADS
    ]
    posterior = softmax(np.append(evidence, np.log(len(evidence))))[:-1]
    intercept = np.zeros(n_classes)
    if posterior.max() > LEAST_POSTERIOR:
        del log_proba
        log_proba = compute_log_proba(mixed())
    for spread, probability in zip(INTERCEPT_SPREADS, posterior):
        if probability > LEAST_POSTERIOR:
            intercept += probability * fit_shifts(log_proba, y, weight, spread, 0.0)[0][:-1]
    return intercept


def _has_shared_temperature(calibrator: PostHocCalibrator) -> TypeGuard[AfterTemperature]:
    return isinstance(calibrator, AfterTemperature) and calibrator._shares_temperature()


def _iter_predictions(
    maps: dict[str, PostHocCalibrator], scores: NDArray, logits: NDArray
) -> Iterator[tuple[str, NDArray]]:
    """Yield the probabilities of every map; a shared temperature is applied once."""
    at: AtTemperature | None = None
    for name, calibrator in maps.items():
        if _has_shared_temperature(calibrator):
            if at is None:
                at = AtTemperature(logits, calibrator.temperature_, calibrator.uniform_weight_)
            yield name, calibrator._predict_at(at)
        else:
            yield name, calibrator._predict_proba(scores)


def _fit_quietly(
    calibrator: PostHocCalibrator, scores: NDArray, y: NDArray, weight: NDArray | None
) -> None:
    # Without warnings: of a temperature at its bound, which gets a low weight, and about the
    # labels, of which all were checked together.
    with collecting(), ignoring(UserWarning, "The number of unique classes is greater"):
        calibrator._check_and_fit(scores, y, weight, warns=False)


def draw_folds(
    proba: NDArray,
    y: NDArray,
    weight: NDArray,
    seed: int,
    groups: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Return the fold of every sample: random, but the same for any order of the samples.

    Samples are sorted by a hash of their values; groups are kept whole, and sorted by the means of
    their samples. The order of the classes does not matter either, unless two have the same count
    and the same mean squared probability. Folds are not stratified: with equal class frequencies
    in all folds, the intercepts of a map would be tested on the frequencies they were fitted to.
    """
    rng = np.random.default_rng(seed)
    k = proba.shape[1]
    # The smallest probabilities may underflow to 0.
    with np.errstate(under="ignore"):
        of_column = np.square(proba).mean(axis=0).round(9)
        rank = np.argsort(np.lexsort((of_column, np.bincount(y, minlength=k))))
        y, key = rank[y], (proba * rng.random(len(rank))[rank]).sum(axis=1)
    if groups is None:
        return _deal_in_turns(key, y, weight, rng)
    _, groups = np.unique(groups, return_inverse=True)
    size = np.bincount(groups)
    mean, of_y = (np.bincount(groups, values) / size for values in (key, y))
    return _deal_in_turns(mean.round(9), of_y.round(9), np.bincount(groups, weight), rng)[groups]


def _deal_in_turns(
    key: NDArray, y: NDArray, weight: NDArray, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Deal entries to the folds in turn, in a random order that depends on their values."""
    folds = np.empty(len(y), dtype=np.intp)
    folds[np.lexsort((weight, y, key))[rng.permutation(len(y))]] = np.arange(len(y)) % N_FOLDS
    return folds
