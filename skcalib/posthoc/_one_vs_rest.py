"""Calibrators that map one class at a time: isotonic, histogram binning, beta."""

from __future__ import annotations

from abc import abstractmethod
from itertools import product
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit
from sklearn.isotonic import IsotonicRegression
from sklearn.utils import gen_batches

from ..metrics._temperature_fit import compute_uniform_prior, find_uniform_weight
from ..utils._backends import compute_log_bins
from ..utils._compat import Interval, StrOptions
from ..utils._numeric import (
    bin_index,
    bin_sums,
    compute_quantile_edges,
    compute_quantile_sums,
    compute_uniform_edges,
    find_limits,
)
from ..utils._proba import FLOAT32_ROUNDING
from ._base import SMALLEST, PostHocCalibrator
from ._dask import ScoresInChunks

# Base of the calibrators that map one class at a time.


class OneVsRestCalibrator(PostHocCalibrator):
    """Base of the calibrators that calibrate every class against the rest.

    With two classes, only the probability of the second is mapped. With more, the mapped
    probabilities of a row are divided by their sum; a row of zeros becomes uniform.

    What is mapped are probabilities or, of logits and scores, log-odds against the rest: a
    probability of them rounds to 0 or 1, and loses their order, long before they are large.

    A subclass implements ``_fit_class(values, positive, sample_weight)``, which returns the map of
    one class, and ``_map_class(learned, values)``, which applies it.
    """

    calibrators_: list[Any]

    @abstractmethod
    def _fit_class(
        self, values: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray | None
    ) -> Any:
        """Return the map of one class, by its values and which samples are of the class."""

    @abstractmethod
    def _map_class(self, learned: Any, values: NDArray) -> NDArray:
        """Return the calibrated probabilities of one class."""

    def _fit_chunks(self, data: ScoresInChunks) -> None:
        self.calibrators_ = [self._fit_sums(sums) for sums in data.sum(_sum_classes)]

    def _values(self, scores: NDArray) -> NDArray[np.float64]:
        """Return what is mapped, a column for every class."""
        scores = scores.astype(np.float64)
        if self.input == "proba":
            return self._as_proba(scores)
        logits = self._as_logits(scores)
        if logits.shape[1] == 2:
            odds = logits[:, 1] - logits[:, 0]
            return np.column_stack([-odds, odds])
        return logits - _log_sum_of_others(logits)

    def _class_sums(
        self, values: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray
    ) -> Any:
        """Return sums over samples, from which `_fit_sums` learns the map of one class."""
        summands = np.where(positive, sample_weight, 0), sample_weight, sample_weight * values
        return compute_log_bins(values, np.array(summands), are_proba=self.input == "proba")

    def _fit_sums(self, sums: Any) -> Any:
        """Return the map of one class, as :meth:`_fit_class` does.

        A bin counts as two weighted samples, one of each outcome, at its mean value.
        """
        positives, total, of_values = sums.sums
        return self._fit_class(*as_samples(of_values / total, positives, total))

    def _formula(self) -> dict[str, Any]:
        return {
            "kind": "one_vs_rest",
            "of": "proba" if self._maps_proba() else "log_odds",
            "curves": [*map(self._formula_of_class, self.calibrators_)],
        }

    def _maps_proba(self) -> bool:
        """Return whether the curves of the formula take probabilities, not log-odds."""
        return self.input == "proba"

    def _formula_of_class(self, learned: Any) -> dict[str, Any]:
        """Return the map of one class in plain numbers, in the format of `to_json`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no formula for other programs; implement "
            "_formula_of_class, which returns one in the format of to_json."
        )

    def _make_class_map(self, *parts: Any) -> Any:
        """Return the map of one class, of what `_get_class_map` returned."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _make_class_map.")

    def _get_class_map(self, learned: Any) -> tuple[Any, ...]:
        """Return the map of one class in numbers and arrays."""
        return tuple(learned)

    def _get_fitted(self) -> dict[str, Any]:
        fitted = super()._get_fitted()
        if "calibrators_" in fitted:
            fitted["calibrators_"] = [*map(self._get_class_map, self.calibrators_)]
        return fitted

    def _set_fitted(self, fitted: dict[str, Any]) -> None:
        super()._set_fitted(fitted)
        if "calibrators_" in fitted:
            self.calibrators_ = [self._make_class_map(*parts) for parts in self.calibrators_]

    def _columns(self) -> range:
        # With two classes, one probability determines the other.
        return range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        values = self._values(scores)
        self.calibrators_ = [
            self._fit_class(values[:, k], y == k, sample_weight) for k in self._columns()
        ]

    def _predict_proba(self, scores: NDArray) -> NDArray:
        values = self._values(scores)
        mapped = np.empty((len(values), len(self.calibrators_)))
        for j, (learned, k) in enumerate(zip(self.calibrators_, self._columns())):
            mapped[:, j] = self._map_class(learned, values[:, k])
        if len(self.classes_) == 2:
            return np.hstack([1 - mapped, mapped])
        # 0 / 0 in a row of zeros, which becomes uniform.
        total = mapped.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.where(total > 0, mapped / total, 1 / mapped.shape[1])


def _log_sum_of_others(logits: NDArray) -> NDArray[np.float64]:
    """Return the logarithm of the summed exponentials of the other columns, for every column."""
    rows, top = np.arange(len(logits)), logits.argmax(axis=1)
    largest = logits[rows, top]
    terms = np.exp(logits - largest[:, np.newaxis])
    # Beside the largest term, 1, nothing is lost by subtracting another.
    rest = terms.sum(axis=1, keepdims=True) - terms
    rest[rows, top] = 1.0
    result = largest[:, np.newaxis] + np.log(rest)
    others = logits.copy()
    others[rows, top] = -np.inf
    runner_up = others.max(axis=1)
    start = np.where(np.isneginf(runner_up), 0, runner_up)  # of no other option that exists
    with np.errstate(divide="ignore", under="ignore"):
        total = np.exp(others - start[:, np.newaxis]).sum(axis=1)
        result[rows, top] = start + np.log(total)
    return result


def as_samples(
    values: NDArray, positives: NDArray, total: NDArray
) -> tuple[NDArray, NDArray[np.bool_], NDArray[np.float64]]:
    """Return values, outcomes and weights of two samples per bin, without those of weight 0."""
    weight = np.concatenate([positives, total - positives])
    positive = np.arange(len(weight)) < len(positives)
    used = weight > 0
    return np.concatenate([values, values])[used], positive[used], weight[used]


def _sum_classes(
    calibrator: OneVsRestCalibrator, scores: NDArray, y: NDArray, weight: NDArray
) -> list[Any]:
    values = calibrator._values(scores)
    return [calibrator._class_sums(values[:, k], y == k, weight) for k in calibrator._columns()]


# Isotonic calibration: the best increasing map of a probability or a score.


class IsotonicCalibration(OneVsRestCalibrator):
    """Map every probability by isotonic regression on the labels.

    The map is the increasing function with the least squared error, and also the least log-loss,
    on the samples given to `fit`; it is linear between them [1]_, in the probability or, for
    logits and scores, in the log-odds of the class. It needs many samples, and it
    gives probabilities of exactly 0 and 1: a single wrong one makes the log-loss infinite.

    With more than two classes each is calibrated against the rest, and the probabilities of a row
    are divided by their sum, so they are calibrated less well. With two classes there is one map.

    Parameters
    ----------
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrators_ : list of sklearn.isotonic.IsotonicRegression
        The map of every calibrated class.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    See Also
    --------
    BetaCalibration : A smooth increasing map with three parameters.
    skcalib.metrics.score_decomposition : The loss that isotonic calibration would save.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

    References
    ----------
    .. [1] B. Zadrozny, C. Elkan, "Transforming Classifier Scores into Accurate Multiclass
       Probability Estimates", KDD 2002.

    Examples
    --------
    >>> from skcalib.posthoc import IsotonicCalibration
    >>> proba, y = [0.1, 0.2, 0.7, 0.8, 0.9, 0.95], [0, 0, 1, 0, 1, 1]
    >>> isotonic = IsotonicCalibration(input="proba").fit(proba, y)
    >>> isotonic.predict_proba([0.15, 0.75, 0.99])
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """

    def _fit_class(
        self, values: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray | None
    ) -> IsotonicRegression:
        # Values beyond those given to fit take the probability at the nearer end.
        regression = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        return regression.fit(values, positive.astype(np.float64), sample_weight=sample_weight)

    def _map_class(self, learned: IsotonicRegression, values: NDArray) -> NDArray:
        # What `predict` computes, without its checks of every class.
        return np.interp(values, learned.X_thresholds_, learned.y_thresholds_)

    def _get_class_map(self, learned: IsotonicRegression) -> tuple[NDArray, NDArray]:
        return learned.X_thresholds_, learned.y_thresholds_

    def _make_class_map(self, x: NDArray, y: NDArray) -> IsotonicRegression:
        if (np.diff(x) <= 0).any():
            raise ValueError("the points of a line must increase")
        regression = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(x, y)
        regression.X_thresholds_, regression.y_thresholds_ = x, y
        return regression

    def _formula_of_class(self, learned: IsotonicRegression) -> dict[str, Any]:
        x, y = learned.X_thresholds_.tolist(), learned.y_thresholds_.tolist()
        return {"kind": "line", "x": x, "y": y}


# Histogram binning: a constant probability in every bin.


# Relative rounding of log-odds, which are logarithms of sums.
_ROUNDING_OF_ODDS = 1e-12


class BinMap(NamedTuple):
    """The map of one class: edges (n_bins + 1,), and the value of every bin (n_bins,).

    Edges are probabilities or, of quantiles of logits and scores, log-odds from -inf to inf.
    """

    edges: NDArray[np.float64]
    values: NDArray[np.float64]


def _make_bin_map(
    edges: NDArray[np.float64], sums: NDArray[np.float64], *, are_proba: bool = True
) -> BinMap:
    """Return the fraction of positives in every bin; `sums` are weight, confidence, positives."""
    weight, _, positives = sums
    # Empty bins get their midpoint, the constant closest to the identity.
    ends = edges if are_proba else expit(edges)
    values = (ends[1:] + ends[:-1]) / 2
    filled = weight > 0
    values[filled] = positives[filled] / weight[filled]
    return BinMap(edges, values)


class HistogramBinning(OneVsRestCalibrator):
    """Replace every probability by the fraction of positives in its bin.

    The probabilities of the samples given to `fit` are put into bins; a new probability becomes
    the fraction of the samples in its bin that belong to the class [1]_. Bins of equal mass are
    those of the log-odds where X holds logits or scores.

    With more than two classes each is calibrated against the rest, and the probabilities of a row
    are divided by their sum, so they are calibrated less well. With two classes there is one map.

    Parameters
    ----------
    n_bins : int, default=15
        Number of bins; "quantile" may make fewer.
    strategy : {"quantile", "uniform"}, default="quantile"
        "quantile" makes bins of equal mass, "uniform" bins of equal width. Equal probabilities
        always fall in one bin. A bin without samples gets its midpoint.
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrators_ : list of BinMap
        For every calibrated class the ``edges`` of the bins and their ``values``.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    See Also
    --------
    IsotonicCalibration : Bins that follow the data.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

    References
    ----------
    .. [1] B. Zadrozny, C. Elkan, "Obtaining Calibrated Probability Estimates from Decision Trees
       and Naive Bayesian Classifiers", ICML 2001.

    Examples
    --------
    >>> from skcalib.posthoc import HistogramBinning
    >>> proba, y = [0.1, 0.2, 0.7, 0.8, 0.9, 0.9], [0, 0, 1, 0, 1, 0]
    >>> binning = HistogramBinning(n_bins=2, input="proba").fit(proba, y)
    >>> binning.predict_proba([0.3, 0.95]).round(2)
    array([[0.67, 0.33],
           [0.67, 0.33]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OneVsRestCalibrator._parameter_constraints,
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions({"quantile", "uniform"})],
    }

    def __init__(
        self,
        *,
        n_bins: int = 15,
        strategy: str = "quantile",
        input: str = "logits",
        classes: ArrayLike | None = None,
    ) -> None:
        self.n_bins = n_bins
        self.strategy = strategy
        self.input = input
        self.classes = classes

    def _values(self, scores: NDArray) -> NDArray[np.float64]:
        if self.strategy == "uniform":
            return self._as_proba(scores.astype(np.float64))
        return super()._values(scores)

    def _maps_proba(self) -> bool:
        return self.strategy == "uniform" or super()._maps_proba()

    def _class_sums(
        self, values: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray
    ) -> Any:
        if self.strategy == "uniform":
            return bin_sums(values, positive, sample_weight, compute_uniform_edges(self.n_bins))
        return super()._class_sums(values, positive, sample_weight)

    def _fit_sums(self, sums: Any) -> BinMap:
        if self.strategy == "uniform":
            return _make_bin_map(compute_uniform_edges(self.n_bins), sums)
        # Edges are largest values of the fine bins, so none of these is split.
        positives, total, _ = sums.sums
        return self._fit_class(*as_samples(sums.largest, positives, total))

    def _fit_class(
        self, values: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray | None
    ) -> BinMap:
        if self.strategy == "uniform":
            edges = compute_uniform_edges(self.n_bins)
            return _make_bin_map(edges, bin_sums(values, positive, sample_weight, edges))
        if self._maps_proba():
            return _make_bin_map(
                *compute_quantile_sums(values, positive, sample_weight, self.n_bins)
            )
        edges = compute_quantile_edges(values, self.n_bins, sample_weight, (-np.inf, np.inf))
        # Edges are values of samples, and another program may round their logarithms otherwise.
        edges[1:-1] += _ROUNDING_OF_ODDS * np.maximum(np.abs(edges[1:-1]), 1)
        sums = bin_sums(values, positive, sample_weight, edges)
        return _make_bin_map(edges, sums, are_proba=False)

    def _map_class(self, learned: BinMap, values: NDArray) -> NDArray:
        return learned.values[bin_index(values, learned.edges)]

    def _make_class_map(self, edges: NDArray, values: NDArray) -> BinMap:
        return BinMap(edges, values)

    def _formula_of_class(self, learned: BinMap) -> dict[str, Any]:
        limits = find_limits(learned.edges, np.dtype(np.float64))
        return {"kind": "steps", "x": limits.tolist(), "y": learned.values.tolist()}


# Beta calibration: an increasing map with three parameters.

# Every parametrization as a design matrix: one row per parameter, with its coefficients of
# log p, -log(1 - p) and 1.
_DESIGNS = {
    "abm": np.eye(3),
    "am": np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    "ab": np.eye(3)[:2],
}
_MOST_ROUNDS = 30
# Newton's search: most steps and halves of a step, the gain in nats that ends it, by how much a
# step may move a margin and surely lowers the loss, the least of the farthest that it may move
# one, and what keeps a curvature invertible.
_MOST_STEPS, _MOST_HALVES, _LEAST_GAIN = 100, 30, 1e-11
_SURELY_LOWER, _FARTHEST = 1.79, 30.0
_RIDGE, _TINY = 1e-12, 1e-300
_LARGEST_EXPONENT = 700.0  # of a float64
_ELEMENTS = 2**15  # of a batch of classes
_TOLERANCE = 1e-5
# Largest slope at the start of a search, by a standard deviation of the column.
_LARGEST_START = 10.0


class BetaMap(NamedTuple):
    """The map of one class: ``expit(a log(p) - b log(1 - p) + c)``, mixed with w of uniform."""

    a: float
    b: float
    c: float
    uniform_weight: float = 0.0


class BetaCalibration(OneVsRestCalibrator):
    """Map every probability by the ratio of two beta densities.

    A probability p becomes ``expit(a log(p) - b log(1 - p) + c)`` with a, b >= 0, fitted by least
    log-loss [1]_. Unlike Platt scaling, the family contains the identity (a = b = 1, c = 0), so a
    calibrated model stays calibrated.

    With more than two classes each is calibrated against the rest, and the probabilities of a row
    are divided by their sum, so they are calibrated less well. With two classes there is one map.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}, default="abm"
        "abm" fits a, b and c; "am" sets a = b, which is Platt scaling of the logit; "ab" sets
        c = 0.
    mix_uniform : bool, default=False
        Whether to mix every map with a uniform component, ``(1 - w) expit(...) + w / n_classes``,
        fitted along under a weak prior, so that a few labels that the model calls nearly
        impossible do not dominate the fit. It is this package's own, and no part of the published
        map.
    input : {"logits", "proba", "scores"}, default="logits"
        What X holds, as in :class:`PostHocCalibrator`. Probabilities are clipped to [1e-7, 1 -
        1e-7].
    classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrators_ : list of BetaMap
        ``a``, ``b``, ``c`` and ``uniform_weight`` (w; 0 unless `mix_uniform`) of every calibrated
        class.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    See Also
    --------
    IsotonicCalibration : Fits any increasing map.
    DirichletCalibration : The same family for all classes at once.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

    Notes
    -----
    The log-loss is convex in (a, b, c) and is minimized under the bounds a, b >= 0; the paper
    drops a negative parameter and fits again.

    References
    ----------
    .. [1] M. Kull, T. Silva Filho, P. Flach, "Beta Calibration: a Well-founded and Easily
       Implemented Improvement on Logistic Calibration for Binary Classifiers", AISTATS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.posthoc import BetaCalibration
    >>> proba = np.array([0.1, 0.2, 0.3, 0.6, 0.8, 0.9, 0.99, 0.99])
    >>> beta = BetaCalibration(input="proba").fit(proba, [0, 0, 1, 0, 1, 1, 1, 0])
    >>> beta.predict_proba([0.3, 0.99]).round(2)
    array([[0.66, 0.34],
           [0.29, 0.71]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OneVsRestCalibrator._parameter_constraints,
        "parameters": [StrOptions(set(_DESIGNS))],
        "mix_uniform": ["boolean"],
    }

    def __init__(
        self,
        *,
        parameters: str = "abm",
        mix_uniform: bool = False,
        input: str = "logits",
        classes: ArrayLike | None = None,
    ) -> None:
        self.parameters = parameters
        self.mix_uniform = mix_uniform
        self.input = input
        self.classes = classes

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        if self.mix_uniform:
            super()._fit(scores, y, sample_weight)
            return
        values, design, self.calibrators_ = self._values(scores), _DESIGNS[self.parameters], []
        weight = np.ones(len(values)) if sample_weight is None else sample_weight
        theta, slopes = self._start()
        # Several classes at a time where samples are few.
        columns = np.array(self._columns())
        for batch in gen_batches(len(columns), max(_ELEMENTS // len(values), 1)):
            chosen = columns[batch]
            features = self._features(values[:, chosen].T)
            positive = y == chosen[:, np.newaxis]
            found = _fit_regressions(design @ features, positive, weight, theta, slopes) @ design
            self.calibrators_ += [BetaMap(*row) for row in found.tolist()]

    def _start(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the identity, a = b = 1 and c = 0, or the nearest map, and what is no intercept.

        The bounds of a and b are 0; c is free.
        """
        design = _DESIGNS[self.parameters]
        # Its rows are orthogonal.
        theta = design @ np.array([1.0, 1.0, 0.0]) / (design**2).sum(axis=1)
        return theta, design[:, 0] + design[:, 1] > 0

    def _fit_class(
        self, values: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray | None
    ) -> BetaMap:
        weight = np.ones(len(values)) if sample_weight is None else sample_weight
        return self._fit_features(self._features(values), positive, weight)

    def _class_sums(
        self, values: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray
    ) -> Any:
        of_features = sample_weight * self._features(values)[:2]
        summands = np.where(positive, sample_weight, 0), sample_weight, *of_features
        return compute_log_bins(values, np.array(summands), are_proba=self.input == "proba")

    def _fit_sums(self, sums: Any) -> BetaMap:
        positives, total, *of_features = sums.sums
        bin_index, positive, weight = as_samples(np.arange(len(total)), positives, total)
        features = np.stack([*(of_features / total), np.ones_like(total)])
        return self._fit_features(features[:, bin_index], positive, weight)

    def _fit_features(
        self, features: NDArray, positive: NDArray[np.bool_], weight: NDArray
    ) -> BetaMap:
        design = _DESIGNS[self.parameters]
        # One row per parameter: the logit is theta @ rows.
        rows = design @ features
        theta, slopes = self._start()

        def fit(weight: NDArray, theta: NDArray) -> NDArray[np.float64]:
            return _fit_regressions(rows[np.newaxis], positive, weight, theta, slopes)[0]

        if not self.mix_uniform:
            return BetaMap(*(fit(weight, theta) @ design).tolist())
        n, k = weight.sum(), len(self.classes_)
        chance = np.where(positive, 1 / k, 1 - 1 / k)
        # EM: r is the posterior probability that a label comes from the map, and not from the
        # uniform component.
        uniform_weight, r = compute_uniform_prior(n), np.ones(len(weight))
        for _ in range(_MOST_ROUNDS):
            theta, before = fit(weight * r, theta), theta
            of_label = expit(np.where(positive, 1, -1) * (theta @ rows))
            uniform_weight = find_uniform_weight(of_label, chance, weight / n, n, uniform_weight)
            mapped = (1 - uniform_weight) * of_label
            r = mapped / (mapped + uniform_weight * chance)
            if np.abs(theta - before).max() < _TOLERANCE:
                break
        a, b, c = map(float, theta @ design)
        return BetaMap(a, b, c, float(uniform_weight))

    def _map_class(self, learned: BetaMap, values: NDArray) -> NDArray:
        *theta, weight = learned
        return (1 - weight) * expit(np.array(theta) @ self._features(values)) + weight / len(
            self.classes_
        )

    def _features(self, values: NDArray) -> NDArray[np.float64]:
        """Return log p, -log(1 - p) and 1, for probabilities p or their log-odds.

        They are an axis before that of the samples.
        """
        if self.input == "proba":
            p = np.clip(values, SMALLEST, 1 - SMALLEST)
            return np.stack([np.log(p), -np.log1p(-p), np.ones_like(p)], axis=-2)
        of_p, of_rest = log_expit(values), -log_expit(-values)
        return np.stack([of_p, of_rest, np.ones_like(of_p)], axis=-2)

    def _make_class_map(self, *parts: Any) -> BetaMap:
        return BetaMap(*parts)

    def _formula_of_class(self, learned: BetaMap) -> dict[str, Any]:
        a, b, c, weight = learned
        zero = SMALLEST if self._maps_proba() else None
        return {"kind": "beta", "a": a, "b": b, "c": c, "w": weight, "zero": zero}


def _fit_regressions(
    rows: NDArray, positive: NDArray, weight: NDArray, start: NDArray, slopes: NDArray
) -> NDArray[np.float64]:
    """Return the theta of least log-loss of expit(theta @ rows), with `slopes` >= 0, of every map.

    `rows` are (n_maps, n_parameters, n_samples). Rows that vary by no more than rounding say
    nothing: beside an intercept, their slopes are 0.
    """
    fraction = weight / weight.sum()
    # Of rows of any scale, steps are about 1: they get the standard deviation 1 and, beside an
    # intercept, the mean 0.
    scale = np.where(slopes, np.maximum(rows.std(axis=2), FLOAT32_ROUNDING), 1.0)
    center, varied = np.zeros_like(scale), np.broadcast_to(slopes, scale.shape)
    if not slopes.all():
        center = np.where(slopes, rows @ fraction, 0.0)
        varied = slopes & (np.ptp(rows, axis=2) > FLOAT32_ROUNDING)
    # log(1 + exp(-margin)), of a margin that has the sign of the outcome.
    signed = (rows - center[:, :, np.newaxis]) / scale[:, :, np.newaxis]
    signed *= np.where(positive, 1.0, -1.0)[..., np.newaxis, :]
    theta = np.where(slopes & ~varied, 0.0, start)
    shift = (theta * center).sum(axis=1, keepdims=True)
    theta = np.where(slopes, np.minimum(theta * scale, _LARGEST_START), theta + shift)
    theta = _minimize_logistic_losses(signed, fraction, theta, slopes, varied) / scale
    return np.where(slopes, theta, theta - (theta * center).sum(axis=1, keepdims=True))


def _minimize_logistic_losses(
    rows: NDArray, fraction: NDArray, theta: NDArray, slopes: NDArray, varied: NDArray
) -> NDArray[np.float64]:
    """Return the theta of least ``fraction @ log(1 + exp(-theta @ rows))``, `slopes` >= 0.

    Newton's steps to the least value of a quadratic with the same bounds, for all maps at once
    until they are found. A step that moves no margin by more than M = 1.79 lowers the loss, since
    (exp(M) - M - 1) / M^2 < 1 (F. Bach, "Self-Concordant Analysis for Logistic Regression", 2010,
    Proposition 1). Others are halved until the loss falls.
    """
    free, bounded, diagonal = ~slopes | varied, slopes & varied, np.arange(theta.shape[1])
    active, margin = np.arange(len(theta)), _compute_products(theta, rows)
    for _ in range(_MOST_STEPS):
        wrong = 1 / (1 + np.exp(np.minimum(margin, _LARGEST_EXPONENT)))  # faster than expit
        weight = fraction * wrong
        gradient = -_compute_sums(rows, weight)
        weight *= 1 - wrong
        # Vector by vector: matrix products are slow where one side is short.
        curvature = _compute_sums(rows[:, np.newaxis], rows * weight[:, np.newaxis])
        # The ridge keeps it invertible where rows are alike.
        trace = np.trace(curvature, axis1=1, axis2=2)
        curvature[:, diagonal, diagonal] += _RIDGE * trace[:, np.newaxis] + _TINY
        step = _find_steps_within_bounds(
            gradient, curvature, theta[active], free[active], bounded[active]
        )
        change = _compute_products(step, rows)
        farthest = np.abs(change).max(axis=1)
        gain = -(gradient * step).sum(axis=1)
        far = np.flatnonzero(farthest > _SURELY_LOWER)
        if len(far):
            size, gain[far] = _shorten_steps(margin[far], change[far], farthest[far], fraction)
            step[far] *= size
            change[far] *= size
        theta[active] += step
        # What is left to gain is of the order of the square.
        left = gain > _LEAST_GAIN
        if not left.any():
            break
        margin += change
        if not left.all():
            active, margin, rows = active[left], margin[left], rows[left]
    return theta


def _compute_sums(rows: NDArray, weight: NDArray) -> NDArray[np.float64]:
    """Return the weighted sums of rows (..., n_rows, n_samples), for weights (..., n_samples)."""
    return (rows @ weight[..., np.newaxis])[..., 0]


def _compute_products(theta: NDArray, rows: NDArray) -> NDArray[np.float64]:
    """Return theta @ rows of every map."""
    return (theta[:, np.newaxis] @ rows)[:, 0]


def _shorten_steps(
    margin: NDArray, change: NDArray, farthest: NDArray, fraction: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the parts of steps that lower the losses, one per row, and by how much."""

    def compute_losses(margin: NDArray) -> NDArray[np.float64]:
        # log(1 + exp(-margin)), by functions that are faster than logaddexp.
        return (np.log(1 + np.exp(-np.abs(margin))) - np.minimum(margin, 0)) @ fraction

    # Where all margins are far from 0, the curvature is none, and the step without an end.
    size = np.minimum(1.0, (_FARTHEST + np.abs(margin).max(axis=1)) / farthest)[:, np.newaxis]
    losses = compute_losses(margin)
    for _ in range(_MOST_HALVES):
        gain = losses - compute_losses(margin + size * change)
        worse = gain < 0
        if not worse.any():
            break
        size[worse] /= 2
    return size, gain


def _find_steps_within_bounds(
    gradient: NDArray, curvature: NDArray, theta: NDArray, free: NDArray, bounded: NDArray
) -> NDArray[np.float64]:
    """Return the steps to the least values of quadratics in the `free` parameters, one per row.

    The `bounded` ones stay >= 0: which of them end at 0 is tried, where most steps meet no bound.
    """
    step = _solve(curvature, -gradient)
    outside = ~free.all(axis=1) | ((theta + step < 0) & bounded).any(axis=1)
    if not outside.any():
        return step
    parts = gradient, curvature, theta, free, bounded
    gradient, curvature, theta, free, bounded = (part[outside] for part in parts)
    # (n_choices, n_maps, n_parameters): which parameters end at 0, and what is left to move.
    ends = [(False, True) if column.any() else (False,) for column in bounded.T]
    choices = np.array([*product(*ends)])[:, np.newaxis]
    at_bound = choices & bounded
    moves = free & ~at_bound
    tried = np.where(at_bound, -theta, 0.0)
    slope = np.where(moves, gradient + (curvature @ tried[..., np.newaxis])[..., 0], 0.0)
    both = moves[..., np.newaxis] & moves[..., np.newaxis, :]
    tried += _solve(np.where(both, curvature, np.eye(theta.shape[1])), -slope)
    value = (tried * (gradient + (curvature @ tried[..., np.newaxis])[..., 0] / 2)).sum(axis=-1)
    value[((theta + tried < 0) & bounded).any(axis=-1)] = np.inf
    step[outside] = tried[value.argmin(axis=0), np.arange(len(theta))]
    return step


def _solve(matrices: NDArray, vectors: NDArray) -> NDArray[np.float64]:
    """Return the solution of every system of equations."""
    return np.linalg.solve(matrices, vectors[..., np.newaxis])[..., 0]
