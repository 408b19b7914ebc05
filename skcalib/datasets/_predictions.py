"""Predictions whose calibration is known."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.utils import check_random_state

from ..utils.meta._private import Interval, validate_params


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_classes": [Interval(Integral, 2, None, closed="left")],
        "scale": [Interval(Real, 0, None, closed="neither")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }
)
def make_predictions(
    n_samples: int = 1000,
    *,
    n_classes: int = 3,
    scale: float = 2.0,
    temperature: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Draw labels from known probabilities, and state them with a known distortion.

    Logits are normal, labels are drawn from their softmax, and the predictions are the softmax of
    the logits times `temperature`: the temperature that
    :class:`~skcalib.posthoc.TemperatureScaling` has to divide by to repair them exactly.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.
    n_classes : int, default=3
        Number of classes, at least 2.
    scale : float, default=2.0
        Standard deviation of the logits; larger = more confident predictions.
    temperature : float, default=1.0
        1 states the probabilities as they are (perfectly calibrated), larger is overconfident,
        smaller underconfident.
    random_state : int, RandomState instance or None, default=None
        Seed; pass an int for repeatable samples.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Labels 0 to ``n_classes - 1``.
    y_proba : ndarray of shape (n_samples, n_classes)
        The predictions.
    true_proba : ndarray of shape (n_samples, n_classes)
        The probabilities that the labels were drawn from.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    See Also
    --------
    skcalib.metrics.expected_calibration_error : Measures what was put in.
    skcalib.plots.ReliabilityDisplay : Draws it.
    flip_labels : Label noise.

    Examples
    --------
    >>> from skcalib.datasets import make_predictions
    >>> from skcalib.metrics import expected_calibration_error
    >>> y, proba, truth = make_predictions(50_000, temperature=2.0, random_state=0)
    >>> round(expected_calibration_error(y, truth), 2)
    0.0
    >>> round(expected_calibration_error(y, proba), 2)
    0.12
    """
    rng = check_random_state(random_state)
    logits = log_softmax(rng.normal(scale=scale, size=(n_samples, n_classes)), axis=1)
    # The largest of log p + Gumbel noise is a draw from p.
    y_true = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    return y_true, softmax(logits * temperature, axis=1), np.exp(logits)
