"""Data whose truth is known: predictions with a known distortion, and labels flipped at random."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.utils import check_random_state

from .utils._compat import Interval, validate_params
from .utils._labels import check_class_labels, check_several_classes, encode
from .utils._output import fill_docstrings

# Predictions whose calibration is known.


__all__ = ["flip_labels", "make_predictions"]


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
    :class:`~skcalib.posthoc.TemperatureScaling` has to divide by to correct them exactly.

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


# Replace a fraction of labels, and remember which.

# Key of the random stream that belongs to a seed here. train_test_split, KFold and others permute
# samples by the seed itself: from that stream, an equal seed would change labels on one side only.
_STREAM = 0x666C6970


@validate_params(
    {
        "y": ["array-like"],
        "fraction": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
    }
)
def flip_labels(
    y: Any, *, fraction: float, random_state: int | np.random.RandomState | None = None
) -> tuple[Any, NDArray[np.bool_]]:
    """Replace the labels of random samples by another class, drawn uniformly.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class labels of any one kind, at least two classes.
    fraction : float in [0, 1]
        Fraction of the samples to flip, rounded to the nearest count. Every one of them gets a
        label different from its own.
    random_state : int, RandomState instance or None, default=None
        Seed; pass an int for repeatable noise. It is independent of how
        :func:`~sklearn.model_selection.train_test_split` and the like split with the same int.

    Returns
    -------
    y_flipped : ndarray or Series of shape (n_samples,)
        The labels after flipping; `y` is left as it is. A Series if `y` is one, with its index,
        name and dtype.
    flipped : ndarray of shape (n_samples,), dtype bool
        The samples whose label was replaced.

    Raises
    ------
    ValueError
        If `y` has a single class, or holds NaN, infinity, fractions or labels of several types.

    See Also
    --------
    skcalib.labels.LabelIssueFinder : Finds wrong labels.
    make_predictions : Predictions whose calibration is known.

    Examples
    --------
    >>> from skcalib.datasets import flip_labels
    >>> y, flipped = flip_labels(["a", "b", "c", "a"], fraction=0.5, random_state=0)
    >>> y.tolist(), flipped.tolist()
    (['a', 'a', 'b', 'a'], [False, True, True, False])
    """
    labels = check_class_labels(y)
    classes = np.unique(labels)
    check_several_classes(classes)
    rng = _make_generator(random_state)
    n_flipped = int(fraction * len(labels) + 0.5)
    rows = rng.choice(len(labels), size=n_flipped, replace=False)
    other = encode(labels[rows], classes) + rng.randint(1, len(classes), size=n_flipped)
    flipped = np.zeros(len(labels), dtype=bool)
    flipped[rows] = True
    new_labels = classes[other % len(classes)]
    if hasattr(y, "iloc") and y.ndim == 1:
        series = y.copy()
        series.iloc[rows] = new_labels
        return series, flipped
    noisy = labels.copy()
    noisy[rows] = new_labels
    return noisy, flipped


def _make_generator(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    """Return the given generator, or that of a stream of the seed that only this file uses."""
    if not isinstance(random_state, Integral):
        return check_random_state(random_state)
    seeds = np.random.SeedSequence(int(random_state), spawn_key=(_STREAM,))
    return np.random.RandomState(np.random.MT19937(seeds))


fill_docstrings(globals())
