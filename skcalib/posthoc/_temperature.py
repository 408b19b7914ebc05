"""Temperature scaling: one number that makes a model as confident as it should be."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from ..utils._private import Interval, StrOptions
from ..utils._temperature import DEFAULT_BOUNDS, fit_temperature
from ._base import PostHocCalibrator
from ._temperature_grid import least_calibration_error

# That of the paper that searches by ECE.
_GRID = np.arange(1, 101) / 10


class TemperatureScaling(PostHocCalibrator):
    """Divide the logits of a model by one temperature, fitted on held-out samples.

    The probabilities are ``softmax(logits / T)`` [1]_. T > 1 makes an overconfident model less
    confident, T < 1 an underconfident one more confident; the predicted class never changes.

    Parameters
    ----------
    criterion : {"nll", "ece"}, default="nll"
        What the temperature minimizes on the samples given to `fit`. "nll" is the log-loss, which
        is convex in 1 / T and solved to the precision of the data. "ece" takes the temperature of
        least expected calibration error (top label, `n_bins` equal-width bins) from `grid` [2]_;
        of several equally good ones the one nearest to 1. It is the best of the whole grid, though
        only a few of its temperatures have to be tried.
    input : {"logits", "proba"}, default="logits"
        What X holds. Probabilities turn into logits by their logarithm; those below 1e-12 count
        as 1e-12.
    bounds : tuple of two floats, default=(1e-3, 1e3)
        Smallest and largest temperature that "nll" may return. Where every sample is predicted
        right the log-loss falls all the way to T = 0 and the lower bound is returned; where the
        logits say the opposite of the truth, the upper one. Either comes with a warning.
    grid : array-like of shape (n_temperatures,), default=None
        Temperatures that "ece" tries; None means 0.1, 0.2, ..., 10.
    n_bins : int, default=15
        Number of bins of the calibration error that "ece" minimizes.
    classes : array-like of shape (n_classes,), default=None
        Labels of the columns of X. None means the sorted labels of `y`; give it where a class may
        have no sample in `y`.

    Attributes
    ----------
    temperature_ : float
        The temperature.
    classes_ : ndarray of shape (n_classes,)
        Labels of the columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of X, where they are all strings.

    Warns
    -----
    SkcalibWarning
        If "nll" ends at a bound.

    See Also
    --------
    sklearn.calibration.CalibratedClassifierCV : Calibrates an estimator by cross-validation.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.
    EnsembleTemperatureScaling : A mixture of scaled, raw and uniform probabilities.
    VectorScaling : A slope and an intercept for every class.
    choose_calibrator : Which calibrator for how many samples.

    Notes
    -----
    For two classes X may be the one logit of the second class (shape ``(n_samples,)`` or
    ``(n_samples, 1)``): its probability is ``expit(X / T)``. X of float32 or float64 is worked on
    in its own precision and summed in float64, so that both give the same temperature.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On Calibration of Modern Neural Networks",
       ICML 2017.
    .. [2] J. Mukhoti, V. Kulharia, A. Sanyal, S. Golodetz, P. H. S. Torr, P. K. Dokania,
       "Calibrating Deep Neural Networks using Focal Loss", NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.posthoc import TemperatureScaling
    >>> logits = np.array([[6.0, 0.0], [5.0, 0.0], [0.0, 4.0], [7.0, 0.0]])
    >>> y = ["cat", "cat", "dog", "dog"]
    >>> scaling = TemperatureScaling().fit(logits, y)
    >>> round(scaling.temperature_, 3)
    7.477
    >>> scaling.predict_proba([[6.0, 0.0]]).round(3)
    array([[0.691, 0.309]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        "criterion": [StrOptions({"nll", "ece"})],
        "bounds": [tuple, list],
        "grid": ["array-like", None],
        "n_bins": [Interval(Integral, 1, None, closed="left")],
    }

    temperature_: float

    def __init__(
        self,
        *,
        criterion: str = "nll",
        input: str = "logits",
        bounds: tuple[float, float] = DEFAULT_BOUNDS,
        grid: ArrayLike | None = None,
        n_bins: int = 15,
        classes: ArrayLike | None = None,
    ) -> None:
        self.criterion = criterion
        self.input = input
        self.bounds = bounds
        self.grid = grid
        self.n_bins = n_bins
        self.classes = classes

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        logits = self._as_logits(scores)
        if self.criterion == "nll":
            bounds = _check_bounds(self.bounds)
            self.temperature_ = fit_temperature(logits, y, sample_weight, bounds)
        else:
            grid = _GRID if self.grid is None else _check_grid(self.grid)
            self.temperature_ = least_calibration_error(
                logits, y, sample_weight, grid, self.n_bins
            )

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        return softmax(logits / logits.dtype.type(self.temperature_), axis=1)


def _check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    numbers = np.asarray(bounds, dtype=np.float64)
    if numbers.shape != (2,) or not 0 < numbers[0] <= numbers[1] < np.inf:
        raise ValueError(f"bounds must be two numbers with 0 < low <= high < inf, got {bounds!r}.")
    return float(numbers[0]), float(numbers[1])


def _check_grid(grid: ArrayLike) -> NDArray:
    numbers = np.asarray(grid, dtype=np.float64)
    if numbers.ndim != 1 or not numbers.size or not np.all((numbers > 0) & (numbers < np.inf)):
        raise ValueError(f"grid must be a list of positive, finite temperatures, got {grid!r}.")
    return numbers
