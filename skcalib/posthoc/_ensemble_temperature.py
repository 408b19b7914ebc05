"""Ensemble temperature scaling: a mixture of three calibration maps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from ..utils._temperature import DEFAULT_BOUNDS, fit_temperature
from ._base import PostHocCalibrator


class EnsembleTemperatureScaling(PostHocCalibrator):
    """Mix the probabilities at a fitted temperature, the raw ones and the uniform ones.

    The probabilities are ``w1 softmax(z / T) + w2 softmax(z) + w3 / n_classes``. T is that of
    :class:`TemperatureScaling`; the weights, which are >= 0 and sum to 1, minimize the log-loss
    [1]_.
    More expressive than one temperature, it still never changes the predicted class.

    Parameters
    ----------
    input : {"logits", "proba"}, default="logits"
        What X holds. Probabilities turn into logits by their logarithm; those below 1e-12 count
        as 1e-12.
    classes : array-like of shape (n_classes,), default=None
        Labels of the columns of X. None means 0, ..., n_classes - 1 or, for other labels, the
        sorted labels of `y`; give it where a class may have no sample in `y`.

    Attributes
    ----------
    temperature_ : float
        The temperature T.
    weights_ : ndarray of shape (3,)
        The weights w1, w2, w3.
    classes_ : ndarray of shape (n_classes,)
        Labels of the columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of X, where they are all strings.

    See Also
    --------
    TemperatureScaling : The first component alone.
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

    def __init__(self, *, input: str = "logits", classes: ArrayLike | None = None) -> None:
        self.input = input
        self.classes = classes

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        logits = self._as_logits(scores).astype(np.float64)
        self.temperature_ = fit_temperature(logits, y, sample_weight, DEFAULT_BOUNDS)
        label = np.arange(len(y)), y
        # Of each component the log-loss sees the probability of the label alone.
        of_label = np.column_stack([part[label] for part in self._components(logits)])
        self.weights_ = _mixture_weights(of_label, sample_weight)

    def _predict_proba(self, scores: NDArray) -> NDArray:
        parts = self._components(self._as_logits(scores))
        return sum(weight * part for weight, part in zip(self.weights_, parts))

    def _components(self, logits: NDArray) -> list[NDArray]:
        return [
            softmax(logits / self.temperature_, axis=1),
            softmax(logits, axis=1),
            np.full_like(logits, 1 / logits.shape[1]),
        ]


def _mixture_weights(of_label: NDArray, sample_weight: NDArray | None) -> NDArray:
    """Return the weights on the simplex that maximize the mean log of ``of_label @ weights``."""
    weight = np.ones(len(of_label)) if sample_weight is None else sample_weight
    fraction = weight / weight.sum()

    def loss_and_gradient(weights: NDArray) -> tuple[float, NDArray]:
        # -log of a linear function is convex: no other minimum than the global one.
        mixed = of_label @ weights
        return -float(fraction @ np.log(mixed)), -(fraction / mixed) @ of_label

    solution = minimize(
        loss_and_gradient,
        np.array([0.8, 0.1, 0.1]),
        jac=True,
        method="SLSQP",
        # The uniform component keeps the logarithm finite.
        bounds=[(0, 1), (0, 1), (1e-12, 1)],
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    # The solver meets bounds and sum up to rounding.
    weights = np.maximum(solution.x, 0)
    return weights / weights.sum()
