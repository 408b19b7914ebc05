"""Isotonic calibration: the best increasing map of a probability, as it is or shrunk."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression, isotonic_regression

from ..utils.checking._proba import FLOAT32_ROUNDING
from ..utils.computing._blocks import row_max, row_sum
from ._base import SMALLEST, beside_uniform, linear_formula, mixed_with_uniform
from ._one_vs_rest import OneVsRestCalibrator
from ._temperature import AfterTemperature, AtTemperature


class IsotonicCalibration(OneVsRestCalibrator):
    """Map every probability by isotonic regression on the labels.

    The map is the increasing function of least squared error, and at the same time of least
    log-loss, on the samples given to `fit`, with straight lines between them [1]_. It needs many
    samples: it gives probabilities of exactly 0 and 1, and a single wrong one makes the log-loss
    infinite.

    With more than two classes each is calibrated against the rest, and the probabilities of a row
    are divided by their sum, which may spoil what was fitted. With two classes there is one map.

    Parameters
    ----------
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrators_ : list of sklearn.isotonic.IsotonicRegression
        The map of every calibrated class.
    classes_, n_features_in_, feature_names_in_ : ndarray, int and ndarray of str
        Labels, number and names of the columns of X, as for :class:`PostHocCalibrator`.

    See Also
    --------
    BetaCalibration : A smooth increasing map of three parameters.
    skcalib.metrics.score_decomposition : What isotonic calibration would save on given samples.
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
        self, p: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray | None
    ) -> IsotonicRegression:
        # Probabilities beyond those given to fit take the value at the nearer end.
        regression = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        return regression.fit(p, positive.astype(np.float64), sample_weight=sample_weight)

    def _map_class(self, learned: IsotonicRegression, p: NDArray) -> NDArray:
        return learned.predict(p)

    def _formula_of_class(self, learned: IsotonicRegression) -> dict[str, Any]:
        x, y = learned.X_thresholds_.tolist(), learned.y_thresholds_.tolist()
        return {"kind": "line", "x": x, "y": y}


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
