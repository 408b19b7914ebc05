"""Ensemble temperature scaling: a mixture of scaled, raw and uniform probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils.computing._temperature import (
    DEFAULT_BOUNDS,
    TemperatureProblem,
    best_beta,
    fit_temperature,
    label_terms,
    softmax_at,
)
from ._base import (
    PostHocCalibrator,
    chance_level,
    linear_formula,
    mixture_formula,
    simplex_weights,
)

# Last step in beta: the error after it is of the order of the square.
_TOLERANCE = 1e-4
# Weights above this are not at their bound 0.
_LEAST_FREE = 1e-6


class EnsembleTemperatureScaling(PostHocCalibrator):
    """Mix the probabilities at a fitted temperature, the raw ones and the uniform ones.

    The probabilities are ``w1 softmax(z / T) + w2 softmax(z) + w3 / n_classes``; the weights are
    >= 0 and sum to 1 [1]_. T and the weights are fitted together, by least log-loss: if T were
    fitted first, a few labels that the model calls nearly impossible could dominate it. The map is
    more flexible than one temperature, and like it never changes the predicted class.

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
        Labels, number and names of the columns of X.

    See Also
    --------
    TemperatureScaling : Without the raw component.
    StackedCalibration : A mixture of more flexible maps, weighted out-of-fold.
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
        start, _ = fit_temperature(
            logits, y, weight, DEFAULT_BOUNDS, uniform=True, pseudo_errors=1.0
        )
        mixture = _Mixture(logits, y, weight)
        bounds = 1 / DEFAULT_BOUNDS[1], 1 / DEFAULT_BOUNDS[0]
        beta = best_beta(mixture, bounds, 1 / start, _TOLERANCE)
        self.temperature_ = float(np.clip(1 / beta, *DEFAULT_BOUNDS))
        # The last step was too short to change the weights.
        self.weights_ = mixture.weights

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


class _Mixture(TemperatureProblem):
    """The log-loss as a function of beta = 1 / T, minimized over the three weights."""

    def __init__(self, logits: NDArray, y: NDArray, weight: NDArray) -> None:
        super().__init__(logits, y, weight, False, 1.0)
        self.weights = np.full(3, 1 / 3)
        # The probability of the label by every component; the first depends on beta.
        raw = softmax_at(logits, 1.0)[np.arange(len(y)), y].astype(np.float64)
        uniform = np.broadcast_to(chance_level(logits), raw.shape)
        self.of_label = np.column_stack([raw, raw, uniform])

    def slope_and_curvature(self, beta: float) -> tuple[float, float]:
        terms = np.empty((3, len(self.y)))
        for rows, *found in label_terms(self.logits, self.y, beta):
            terms[:, rows] = found
        scaled, (by_beta, twice) = np.exp(-terms[0]), terms[1:]
        self.of_label[:, 0] = scaled
        # Start inside the simplex: a weight of 0 may become positive at another beta.
        start = 0.99 * self.weights + 0.01 / 3
        self.weights = w = simplex_weights(self.of_label, self.weight, start=start)
        ratio = self.of_label / (self.of_label @ w)[:, None]
        # Posterior probability that a label comes from the first component.
        r = w[0] * ratio[:, 0]
        slope = float(self.weight @ (r * by_beta))
        curvature = float(self.weight @ (r * twice - r * (1 - r) * by_beta**2))
        # The best weights change with beta and keep their sum, which lowers the curvature.
        cross = np.append((self.weight * r * by_beta) @ -ratio, 0.0)
        cross[0] += float(self.weight @ (ratio[:, 0] * by_beta))
        free = np.append(w > _LEAST_FREE, True)
        bend = np.ones((4, 4))
        bend[:3, :3], bend[3, 3] = (ratio * self.weight[:, None]).T @ ratio, 0.0
        moved = np.linalg.lstsq(bend[np.ix_(free, free)], cross[free], rcond=None)[0]
        curvature -= max(float(cross[free] @ moved), 0.0)
        pseudo = self.weight * r
        pseudo /= max(float(pseudo.sum()), 10.0)
        return self._with_pseudo_errors(beta, slope, curvature, pseudo)
