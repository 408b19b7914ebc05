"""Temperature scaling: one number that makes a model as confident as it should be.

And the base of maps of the probabilities at a temperature, which several of them can share: a
stack fits one temperature to some samples and hands the probabilities there to every map of this
kind. Between two sets of nearly the same samples a fit goes on where the other one ended.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics import expected_calibration_error
from ..utils.checking._proba import FLOAT32_ROUNDING
from ..utils.computing._blocks import iter_blocks, row_max, row_sum
from ..utils.computing._temperature import (
    DEFAULT_BOUNDS,
    TemperatureFit,
    fit_temperature,
    fit_temperature_by_sums,
    log_softmax_at,
    softmax_at,
    temperature_sums,
    warn_of_bound,
)
from ..utils.meta._private import Interval, StrOptions
from ..utils.meta._warnings import collecting
from ._base import (
    LOWEST_LOG_PROBA,
    PostHocCalibrator,
    beside_uniform,
    linear_formula,
    mixed_with_uniform,
)
from ._in_chunks import ScoresInChunks, total_weight

# The grid of the paper that searches by ECE.
_GRID = np.arange(1, 101) / 10
# Numbers of a block whose probabilities by all maps stay in cache: it spares time alone.
_BLOCK = 2**15


@dataclass(frozen=True)
class AtTemperature:
    """Probabilities at the temperature T of least log-loss beside a uniform component."""

    logits: NDArray
    proba: NDArray  # softmax(logits / T)
    log_proba: NDArray
    temperature: float
    uniform_weight: float

    @cached_property
    def clipped(self) -> NDArray:
        """Log-probabilities of at least log(1e-7), which several maps share."""
        return np.maximum(self.log_proba, LOWEST_LOG_PROBA)


def by_columns(logits: NDArray) -> Iterator[tuple[slice, NDArray]]:
    """Yield (rows, block): few rows, float32 or float64, whose columns lie together in memory.

    That way what is done to every row costs little where there are few columns.
    """
    step = max(1, _BLOCK // logits.shape[1])
    for start in range(0, len(logits), step):
        rows = slice(start, start + step)
        dtype = np.result_type(logits.dtype, np.float32)
        yield rows, np.asarray(logits[rows], dtype=dtype, order="F")


def at_temperature(logits: NDArray, temperature: float, uniform_weight: float) -> AtTemperature:
    """Return the probabilities of other samples, at a temperature that is known."""
    return AtTemperature(logits, *log_softmax_at(logits, temperature), temperature, uniform_weight)


def fit_at_temperature(
    logits: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
    *,
    uniform: bool = True,
    near: float | None = None,
) -> AtTemperature:
    """Fit the temperature; `near` is that of nearly the same samples."""
    temperature, weight = fit_temperature(
        logits,
        y,
        sample_weight,
        DEFAULT_BOUNDS,
        uniform=uniform,
        pseudo_errors=float(uniform),
        near=near,
    )
    return at_temperature(logits, temperature, weight or 0.0)


class AfterTemperature(PostHocCalibrator):
    """Base of calibrators that map the probabilities at a temperature.

    A subclass implements ``_fit_at(at, y, sample_weight, near)``, which learns from an
    `AtTemperature`, and ``_predict_at(at)``. `near` is None, or a calibrator of the same kind that
    was fitted to nearly the same samples.
    """

    temperature_: float
    uniform_weight_: float

    # Whether a uniform component is fitted with the temperature.
    uniform: bool = True

    def _shares_temperature(self) -> bool:
        """Whether its temperature is the one of least log-loss beside a uniform component."""
        return self.uniform

    @abstractmethod
    def _fit_at(
        self,
        at: AtTemperature,
        y: NDArray,
        sample_weight: NDArray | None,
        near: Self | None = None,
    ) -> None:
        """Learn from probabilities at the temperature."""

    @abstractmethod
    def _predict_at(self, at: AtTemperature) -> NDArray:
        """Return calibrated probabilities, from those at the temperature."""

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        logits = self._as_logits(scores)
        at = fit_at_temperature(logits, y, sample_weight, uniform=self.uniform)
        self._fit_at(at, y, sample_weight)

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        proba = np.empty(logits.shape, dtype=np.result_type(logits.dtype, np.float32))
        for rows, block in by_columns(logits):
            at = at_temperature(block, self.temperature_, self.uniform_weight_)
            proba[rows] = self._predict_at(at)
        return proba


class TemperatureScaling(AfterTemperature):
    """Divide the logits of a model by one temperature, fitted on held-out samples.

    The probabilities are ``(1 - w) softmax(logits / T) + w / n_classes``. T > 1 makes an
    overconfident model less confident, T < 1 an underconfident one more confident; the predicted
    class never changes. Without the uniform component of weight w this is temperature scaling as
    published [1]_; with it, a few labels that the model calls nearly impossible do not
    dominate the temperature. T and w are fitted together.

    Parameters
    ----------
    criterion : {"nll", "ece"}, default="nll"
        What the temperature minimizes on the samples given to `fit`. "nll" is the log-loss. "ece"
        takes the temperature of least expected calibration error (top label, `n_bins` equal-width
        bins) from `grid` [2]_; of several equally good ones the one nearest to 1. It is the best
        of the whole grid, though only a few of its temperatures have to be tried; it has no
        uniform component. It follows the noise of the bins: fitted to 200 samples, it costs .029
        of the log-loss on others and .012 of the debiased calibration error itself, on average
        over the sets that it was measured on.
    uniform : bool, default=True
        Whether to fit a uniform component with the temperature, under weak priors: one
        pseudo-error is spread over the samples, so that T stays away from 0 where all of them are
        predicted right. False gives temperature scaling as published.
    bounds : tuple of two floats, default=(1e-3, 1e3)
        Smallest and largest temperature that "nll" may return. Where the logits say the opposite
        of the truth, the upper one is returned, with a warning; without a uniform component also
        the lower one, where every sample is predicted right.
    grid : array-like of shape (n_temperatures,), default=None
        Temperatures that "ece" tries; None means 0.1, 0.2, ..., 10.
    n_bins : int, default=15
        Number of bins of the calibration error that "ece" minimizes.
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    temperature_ : float
        The temperature T.
    uniform_weight_ : float
        The weight w of the uniform component, 0 where there is none.
    classes_, n_features_in_, feature_names_in_ : ndarray, int and ndarray of str
        Labels, number and names of the columns of X, as for :class:`PostHocCalibrator`.

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
    StackedCalibration : Weighs it against richer maps.

    Notes
    -----
    `sample_weight` counts samples: doubling all weights halves the influence of the priors.
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
    >>> from skcalib.datasets import make_predictions
    >>> from skcalib.posthoc import TemperatureScaling
    >>> y, proba, _ = make_predictions(2000, n_classes=3, temperature=2.0, random_state=0)
    >>> scaling = TemperatureScaling(input="proba").fit(proba, y)
    >>> round(scaling.temperature_, 2)
    2.02
    >>> scaling.predict_proba([[0.9, 0.1, 0.0]]).round(2)
    array([[0.75, 0.25, 0.  ]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        "criterion": [StrOptions({"nll", "ece"})],
        "uniform": ["boolean"],
        "bounds": [tuple, list],
        "grid": ["array-like", None],
        "n_bins": [Interval(Integral, 1, None, closed="left")],
    }

    _takes_missing_options = True
    _keeps_order = True

    def __init__(
        self,
        *,
        criterion: str = "nll",
        uniform: bool = True,
        input: str = "logits",
        bounds: tuple[float, float] = DEFAULT_BOUNDS,
        grid: ArrayLike | None = None,
        n_bins: int = 15,
        classes: ArrayLike | None = None,
    ) -> None:
        self.criterion = criterion
        self.uniform = uniform
        self.input = input
        self.bounds = bounds
        self.grid = grid
        self.n_bins = n_bins
        self.classes = classes

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        logits = self._as_logits(scores)
        if self.criterion == "nll":
            bounds, uniform = _check_bounds(self.bounds), self.uniform
            self.temperature_, weight = fit_temperature(
                logits, y, sample_weight, bounds, uniform=uniform, pseudo_errors=float(uniform)
            )
            warn_of_bound(self.temperature_, bounds)
            self.uniform_weight_ = weight or 0.0
        else:
            grid = np.asarray(_GRID if self.grid is None else self.grid, dtype=np.float64)
            if grid.ndim != 1 or not grid.size or not np.all((grid > 0) & (grid < np.inf)):
                raise ValueError(
                    f"grid must be a list of positive, finite temperatures, got {self.grid!r}."
                )
            self.temperature_ = least_calibration_error(
                logits, y, sample_weight, grid, self.n_bins
            )
            self.uniform_weight_ = 0.0

    def _fit_chunks(self, data: ScoresInChunks) -> None:
        if self.criterion != "nll":
            raise ValueError(
                f"criterion must be 'nll' where X is a dask array, got {self.criterion!r}."
            )
        bounds = _check_bounds(self.bounds)
        self.temperature_, weight = temperature_in_chunks(data, bounds, uniform=self.uniform)
        warn_of_bound(self.temperature_, bounds)
        self.uniform_weight_ = weight or 0.0

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        proba = softmax_at(logits, self.temperature_)
        return mixed_with_uniform(proba, self.uniform_weight_, logits)

    def _formula(self) -> dict[str, Any]:
        return beside_uniform(linear_formula(self.temperature_), self.uniform_weight_)

    def _shares_temperature(self) -> bool:
        bounds = _check_bounds(self.bounds)
        return self.criterion == "nll" and self.uniform and bounds == DEFAULT_BOUNDS

    def _fit_at(
        self,
        at: AtTemperature,
        y: NDArray,
        sample_weight: NDArray | None,
        near: Self | None = None,
    ) -> None:
        self.temperature_, self.uniform_weight_ = at.temperature, at.uniform_weight

    def _predict_at(self, at: AtTemperature) -> NDArray:
        return mixed_with_uniform(at.proba.copy(), self.uniform_weight_, at.logits)


def temperature_in_chunks(
    data: ScoresInChunks, bounds: tuple[float, float], *, uniform: bool
) -> TemperatureFit:
    """Return the temperature of all samples, and the weight of the uniform component."""
    n, pseudo_errors = data.sum(total_weight), float(uniform)
    scores, y, weight = data.sample()
    start = fit_temperature(
        data.calibrator._as_logits(scores),
        y,
        weight,
        bounds,
        uniform=uniform,
        pseudo_errors=pseudo_errors,
    )

    def sums_at(beta: float, w: float | None) -> NDArray[np.float64]:
        return data.sum(_temperature_sums, beta, w, n, pseudo_errors)

    return fit_temperature_by_sums(sums_at, start, n, bounds, pseudo_errors=pseudo_errors)


def _temperature_sums(
    calibrator: PostHocCalibrator, scores: NDArray, y: NDArray, weight: NDArray, *state: Any
) -> NDArray[np.float64]:
    return temperature_sums(calibrator._as_logits(scores), y, weight, *state)


def _check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    numbers = np.asarray(bounds, dtype=np.float64)
    if numbers.shape != (2,) or not 0 < numbers[0] <= numbers[1] < np.inf:
        raise ValueError(f"bounds must be two numbers with 0 < low <= high < inf, got {bounds!r}.")
    return float(numbers[0]), float(numbers[1])


def least_calibration_error(
    logits: NDArray, y: NDArray, sample_weight: NDArray | None, grid: NDArray, n_bins: int
) -> float:
    """Return the T in `grid` of least ECE of softmax(logits / T); of equals, the nearest to 1.

    The ECE is at least the absolute difference of mean confidence and accuracy, whatever the bins.
    That difference, signed, falls as T rises: it changes its sign once, and once it is beyond the
    least ECE so far, no temperature farther on that side can be better. So bisection finds the
    change of sign, and from there the grid is tried in both directions until the bound rules out
    the rest.
    """
    correct = logits.argmax(axis=1) == y
    temperatures = np.unique(grid)
    tried: dict[int, tuple[float, float]] = {}

    def difference_and_error(index: int) -> tuple[float, float]:
        if index not in tried:
            confidence = top_confidence(logits, temperatures[index])
            gap = np.average(confidence - correct, weights=sample_weight)
            # Not of the user: "confidence of what is right" is what is meant here.
            with collecting():
                error = expected_calibration_error(
                    correct, confidence, n_bins=n_bins, sample_weight=sample_weight
                )
            tried[index] = float(gap), error
        return tried[index]

    low, high = 0, len(temperatures) - 1
    while low < high:
        middle = (low + high) // 2
        if difference_and_error(middle)[0] > 0:
            low = middle + 1
        else:
            high = middle
    for direction, start in ((1, low), (-1, low - 1)):
        index = start
        while 0 <= index < len(temperatures):
            gap, _ = difference_and_error(index)
            if direction * -gap > min(error for _, error in tried.values()) + FLOAT32_ROUNDING:
                break
            index += direction
    # Nearest to 1 first: a later one is taken only if it is better.
    order = sorted(tried, key=lambda i: abs(np.log(temperatures[i])))
    return float(temperatures[min(order, key=lambda i: tried[i][1])])


def top_confidence(logits: NDArray, temperature: float) -> NDArray:
    """Return the largest probability of every row of softmax(logits / T)."""
    confidence = np.empty(len(logits), dtype=np.result_type(logits.dtype, np.float32))
    for rows, block in iter_blocks(logits):
        # exp(0) / sum_k exp((z_k - z_top) / T).
        below_top = block - row_max(block)[:, None]
        below_top /= below_top.dtype.type(temperature)
        confidence[rows] = 1 / row_sum(np.exp(below_top, out=below_top))
    return confidence
