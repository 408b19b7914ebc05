"""Ensemble temperature scaling: a mixture of three calibration maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils.computing._temperature import DEFAULT_BOUNDS, fit_temperature, softmax_at
from ._base import (
    PostHocCalibrator,
    chance_level,
    linear_formula,
    mixture_formula,
    simplex_weights,
)

_MOST_ROUNDS = 30
# Of log T from one round to the next.
_TOLERANCE = 1e-4


class EnsembleTemperatureScaling(PostHocCalibrator):
    """Mix the probabilities at a fitted temperature, the raw ones and the uniform ones.

    The probabilities are ``w1 softmax(z / T) + w2 softmax(z) + w3 / n_classes``; the weights are
    >= 0 and sum to 1 [1]_. EM fits T and the weights together, by least log-loss. If T were fitted
    first, a few labels that the model calls nearly impossible could dominate it, and the weights
    would come too late. More expressive than one temperature, it still never changes the predicted
    class.

    Parameters
    ----------
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    temperature_ : float
        The temperature T.
    weights_ : ndarray of shape (3,)
        The weights w1, w2, w3.
    classes_, n_features_in_, feature_names_in_ : ndarray, int and ndarray of str
        Labels, number and names of the columns of X, as for :class:`PostHocCalibrator`.

    See Also
    --------
    TemperatureScaling : The first and the last component.
    StackedCalibration : Weighs richer maps as well, out-of-fold.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

    References
    ----------
    .. [1] J. Zhang, B. Kailkhura, T. Y.-J. Han, "Mix-n-Match: Ensemble and Compositional Methods
       for Uncertainty Calibration in Deep Learning", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.posthoc import EnsembleTemperatureScaling
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 2000)
    >>> logits = 4 * np.eye(3)[y] + rng.normal(size=(2000, 3))
    >>> noisy = np.where(rng.random(2000) < 0.3, rng.integers(0, 3, 2000), y)
    >>> scaling = EnsembleTemperatureScaling().fit(logits, noisy)
    >>> bool(scaling.weights_[2] > 0.2)
    True
    """

    _takes_missing_options = True
    _keeps_order = True

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        logits = self._as_logits(scores)
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        label = np.arange(len(y)), y
        # Of each component the log-loss sees the probability of the label alone.
        raw, uniform = softmax_at(logits, 1.0)[label], chance_level(logits)
        self.temperature_, _ = fit_temperature(
            logits, y, weight, DEFAULT_BOUNDS, uniform=True, pseudo_errors=1.0
        )
        self.weights_ = np.full(3, 1 / 3)
        for _ in range(_MOST_ROUNDS):
            scaled = softmax_at(logits, self.temperature_)[label]
            of_label = np.column_stack([scaled, raw, np.broadcast_to(uniform, raw.shape)])
            self.weights_ = simplex_weights(of_label, weight, start=self.weights_)
            # EM: a sample counts for the temperature as far as that component explains it.
            trust = self.weights_[0] * scaled / (of_label @ self.weights_)
            before = self.temperature_
            self.temperature_, _ = fit_temperature(
                logits, y, weight * trust, DEFAULT_BOUNDS, pseudo_errors=1.0
            )
            if abs(np.log(self.temperature_ / before)) < _TOLERANCE:
                break

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        first, second, third = self.weights_
        mixed = first * softmax_at(logits, self.temperature_).astype(np.float64)
        mixed += second * softmax_at(logits, 1.0)
        mixed += third * np.broadcast_to(chance_level(logits), len(logits))[:, None]
        mixed[np.isneginf(logits)] = 0
        return mixed.astype(np.result_type(logits.dtype, np.float32), copy=False)

    def _formula(self) -> dict[str, Any]:
        parts = [linear_formula(self.temperature_), linear_formula(), {"kind": "uniform"}]
        return mixture_formula(self.weights_, parts)
