"""Temperature scaling and ensemble temperature scaling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics import expected_calibration_error
from ..metrics._registry import AnyMetric, choose_metric
from ..metrics._temperature_fit import (
    DEFAULT_BOUNDS,
    TemperatureFit,
    TemperatureProblem,
    compute_softmax_at,
    compute_temperature_sums,
    find_beta,
    fit_temperature,
    fit_temperature_by_sums,
    label_terms,
    log_softmax_at,
    warn_of_bound,
)
from ..utils._compat import Interval
from ..utils._numeric import compute_row_max, compute_row_sum, iter_blocks
from ..utils._output import collecting
from ..utils._proba import FLOAT32_ROUNDING
from ._base import (
    LOWEST_LOG_PROBA,
    PostHocCalibrator,
    add_uniform_formula,
    compute_chance,
    find_unit,
    fit_simplex_weights,
    make_linear_formula,
    make_mixture_formula,
    mix_with_uniform,
)
from ._dask import Samples, ScoresInChunks, ScoresOnDevice, sum_weights

# Temperature scaling, and the base of calibrators that apply another map after it.
#
# In a stack, such calibrators share one temperature: it is fitted once, and all of them get the
# scaled probabilities. A fit to a fold starts from the fit to all samples.

# The grid of the paper that minimizes the ECE.
_GRID = np.arange(1, 101) / 10
# Rows of which the bounds of a temperature are found.
_SAMPLE_ROWS = 2048
# Numbers in a block, so that its probabilities by all maps stay in cache; only for speed.
_BLOCK = 2**15


class AtTemperature:
    """Probabilities after temperature scaling: softmax(logits / T), computed where they are read.

    ``uniform_weight`` is that of the uniform component that was fitted along; it is not mixed in.
    """

    def __init__(self, logits: NDArray, temperature: float, uniform_weight: float) -> None:
        self.logits, self.temperature, self.uniform_weight = logits, temperature, uniform_weight

    @cached_property
    def _both(self) -> tuple[NDArray, NDArray]:
        return log_softmax_at(self.logits, self.temperature)

    @property
    def proba(self) -> NDArray:
        return self._both[0]

    @property
    def log_proba(self) -> NDArray:
        return self._both[1]

    @cached_property
    def clipped(self) -> NDArray:
        """Log-probabilities, at least log(1e-7)."""
        return np.maximum(self.log_proba, LOWEST_LOG_PROBA)

    def take(self, rows: slice) -> AtTemperature:
        return AtTemperature(self.logits[rows], self.temperature, self.uniform_weight)

    def iter_blocks(self) -> Iterator[tuple[slice, AtTemperature]]:
        """Yield (rows, part): a fit needs no more than a block of probabilities at a time."""
        step = max(1, _BLOCK // self.logits.shape[1])
        for start in range(0, len(self.logits), step):
            rows = slice(start, start + step)
            yield rows, self.take(rows)


def iter_by_columns(logits: NDArray) -> Iterator[tuple[slice, NDArray]]:
    """Yield (rows, block): blocks of rows in float32 or float64, stored by columns.

    With few columns, that makes operations along the rows fast.
    """
    step = max(1, _BLOCK // logits.shape[1])
    for start in range(0, len(logits), step):
        rows = slice(start, start + step)
        dtype = np.result_type(logits.dtype, np.float32)
        yield rows, np.asarray(logits[rows], dtype=dtype, order="F")


def find_bounds(logits: NDArray, sample_weight: NDArray | None) -> tuple[float, float]:
    """Return the default bounds of the temperature: those of `DEFAULT_BOUNDS` times the unit.

    So they do not depend on the unit of the logits.
    """
    some = slice(None, None, max(1, len(logits) // _SAMPLE_ROWS))
    unit = find_unit(logits[some], None if sample_weight is None else sample_weight[some])
    low, high = DEFAULT_BOUNDS
    return low * unit, high * unit


def fit_at_temperature(
    logits: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
    *,
    mix_uniform: bool,
    bounds: tuple[float, float] | None = None,
    near: float | None = None,
) -> AtTemperature:
    """Fit the temperature; the search starts at `near`, that of nearly the same samples."""
    temperature, weight = fit_temperature(
        logits,
        y,
        sample_weight,
        bounds or find_bounds(logits, sample_weight),
        uniform=mix_uniform,
        pseudo_errors=float(mix_uniform),
        near=near,
    )
    return AtTemperature(logits, temperature, weight or 0.0)


class AfterTemperature(PostHocCalibrator):
    """Base of calibrators that apply a map after temperature scaling.

    A subclass implements ``_fit_at(at, y, sample_weight, near)``, which learns from an
    `AtTemperature`, and ``_predict_at(at)``. `near` is None, or a fitted calibrator of the same
    class from which the search may start.
    """

    temperature_: float
    uniform_weight_: float

    # Whether a uniform component is fitted with the temperature.
    mix_uniform: bool

    def _shares_temperature(self) -> bool:
        """Whether its temperature is the common one: least log-loss, with a uniform component."""
        return self.mix_uniform

    def _warn_of_lower_bound(self, temperature: float, bounds: tuple[float, float]) -> None:
        """Warn where every sample is predicted right, so that no temperature is the best.

        At the upper bound the scores mislead, which the map that follows may correct.
        """
        if temperature == bounds[0]:
            warn_of_bound(temperature, bounds)

    @abstractmethod
    def _fit_at(
        self,
        at: AtTemperature,
        y: NDArray,
        sample_weight: NDArray | None,
        near: Self | None = None,
    ) -> None:
        """Learn from probabilities after temperature scaling."""

    @abstractmethod
    def _predict_at(self, at: AtTemperature) -> NDArray:
        """Return calibrated probabilities, from those after temperature scaling."""

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        self._fit_at(self._find_temperature(scores, y, sample_weight), y, sample_weight)

    def _find_temperature(
        self, scores: NDArray, y: NDArray, sample_weight: NDArray | None
    ) -> AtTemperature:
        logits = self._as_logits(scores)
        bounds = find_bounds(logits, sample_weight)
        at = fit_at_temperature(
            logits, y, sample_weight, mix_uniform=self.mix_uniform, bounds=bounds
        )
        self._warn_of_lower_bound(at.temperature, bounds)
        return at

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        proba = np.empty(logits.shape, dtype=np.result_type(logits.dtype, np.float32))
        for rows, block in iter_by_columns(logits):
            at = AtTemperature(block, self.temperature_, self.uniform_weight_)
            proba[rows] = self._predict_at(at)
        return proba


class TemperatureScaling(AfterTemperature):
    """Divide the logits of a model by one temperature, fitted on held-out samples.

    The probabilities are ``softmax(logits / T)``, with the T of least mean log-loss [1]_. T > 1
    makes an overconfident model less confident, T < 1 an underconfident one more confident; the
    predicted class never changes.

    A few labels that the model calls nearly impossible can dominate this T, and if every sample is
    predicted right, there is none: the log-loss falls all the way to T = 0. With
    ``mix_uniform=True`` the probabilities are ``(1 - w) softmax(logits / T) + w / n_classes``, and
    w is fitted together with T, under weak priors.

    Parameters
    ----------
    criterion : {"log_loss", "ece"}, default="log_loss"
        What the temperature minimizes on the samples given to `fit`: the log-loss, or with "ece"
        the expected calibration error (top label, `n_bins` bins of equal width), minimized over
        `grid` [2]_; of equally good temperatures, the one nearest to 1 is taken, and
        `mix_uniform` is ignored. "ece" fits the noise of the bins: with 200 samples, it raised the
        log-loss on new samples by .029 and even the debiased calibration error by .012, on average
        over the data sets of the guide. Full names, functions and scorers of the two are accepted,
        too.
    mix_uniform : bool, default=False
        Whether to mix the map with a uniform component, fitted with the temperature. A
        pseudo-error is spread over the samples: the runner-up of each counts as its label, with a
        total weight of one sample (of n / 10 if n < 10). So T stays above 0 if all samples are
        predicted right. A pseudo-sample, which is of the uniform component with probability 1 / (n
        + 1), keeps w above 0. Both are this package's own, not the paper's. ``calibrator="auto"``
        (:class:`StackedCalibration`) sets it.
    bounds : tuple of two floats, default=None
        Smallest and largest temperature that "log_loss" may return. None means 1e-3 and 1e3 times
        the median difference between the largest and the second-largest logit. The lower bound is
        returned, unless `mix_uniform`, if every sample is predicted right. The upper bound is,
        with a warning, if equal probabilities are better than the logits at any T: these then
        contradict the labels, as in about half of the samples of a model without skill (an area
        under the ROC curve of .5), and no finite T is best.
    grid : array-like of shape (n_temperatures,), default=None
        Temperatures for "ece"; None means 0.1, 0.2, ..., 10.
    n_bins : int, default=15
        Number of bins of the calibration error that "ece" minimizes.
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    temperature_ : float
        The temperature T.
    uniform_weight_ : float
        The weight w of the uniform component; 0 unless `mix_uniform`.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    Warns
    -----
    SkcalibWarning
        If "log_loss" ends at a bound.

    See Also
    --------
    sklearn.calibration.CalibratedClassifierCV : Calibrates an estimator by cross-validation.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.
    EnsembleTemperatureScaling : A mixture of scaled, raw and uniform probabilities.
    VectorScaling : A slope and an intercept for every class.
    StackedCalibration : Mixes it with more flexible maps.

    Notes
    -----
    For two classes X may be the logit of the second class alone (shape
    ``(n_samples,)`` or ``(n_samples, 1)``), whose probability is ``expit(X / T)``. X keeps its
    precision, float32 or float64, and sums are in float64, so both give the same temperature.

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
        "criterion": [str, callable],
        "mix_uniform": ["boolean"],
        "bounds": [tuple, list, None],
        "grid": ["array-like", None],
        "n_bins": [Interval(Integral, 1, None, closed="left")],
    }

    _takes_missing_options = True
    _keeps_order = True

    def __init__(
        self,
        *,
        criterion: AnyMetric = "log_loss",
        mix_uniform: bool = False,
        input: str = "logits",
        bounds: tuple[float, float] | None = None,
        grid: ArrayLike | None = None,
        n_bins: int = 15,
        classes: ArrayLike | None = None,
    ) -> None:
        self.criterion = criterion
        self.mix_uniform = mix_uniform
        self.input = input
        self.bounds = bounds
        self.grid = grid
        self.n_bins = n_bins
        self.classes = classes

    def _minimizes_log_loss(self) -> bool:
        chosen = choose_metric(self.criterion, ("log_loss", "ece"), argument="criterion")
        return chosen.name == "log_loss"

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        logits = self._as_logits(scores)
        if self._minimizes_log_loss():
            bounds, mix_uniform = self._bounds(logits, sample_weight), self.mix_uniform
            self.temperature_, weight = fit_temperature(
                logits,
                y,
                sample_weight,
                bounds,
                uniform=mix_uniform,
                pseudo_errors=float(mix_uniform),
            )
            warn_of_bound(self.temperature_, bounds)
            self.uniform_weight_ = weight or 0.0
        else:
            grid = np.asarray(_GRID if self.grid is None else self.grid, dtype=np.float64)
            if grid.ndim != 1 or not grid.size or not np.all((grid > 0) & (grid < np.inf)):
                raise ValueError(
                    f"grid must be a list of positive, finite temperatures, got {self.grid!r}."
                )
            self.temperature_ = fit_temperature_to_ece(logits, y, sample_weight, grid, self.n_bins)
            self.uniform_weight_ = 0.0

    def _bounds(self, logits: NDArray, sample_weight: NDArray | None) -> tuple[float, float]:
        if self.bounds is None:
            return find_bounds(logits, sample_weight)
        return _check_bounds(self.bounds)

    def _sums_on_device(self) -> bool:
        return self._minimizes_log_loss()

    def _fit_chunks(self, data: ScoresInChunks | ScoresOnDevice) -> None:
        if not self._minimizes_log_loss():
            raise ValueError(
                f"criterion must be 'log_loss' where X is a dask array, got {self.criterion!r}."
            )
        sample = data.sample()
        bounds = self._bounds(self._as_logits(sample[0]), sample[2])
        self.temperature_, weight = fit_temperature_in_chunks(
            data, sample, bounds, mix_uniform=self.mix_uniform
        )
        warn_of_bound(self.temperature_, bounds)
        self.uniform_weight_ = weight or 0.0

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        proba = compute_softmax_at(logits, self.temperature_)
        return mix_with_uniform(proba, self.uniform_weight_, logits)

    def _formula(self) -> dict[str, Any]:
        return add_uniform_formula(make_linear_formula(self.temperature_), self.uniform_weight_)

    def _shares_temperature(self) -> bool:
        return self._minimizes_log_loss() and self.mix_uniform and self.bounds is None

    def _fit_at(
        self,
        at: AtTemperature,
        y: NDArray,
        sample_weight: NDArray | None,
        near: Self | None = None,
    ) -> None:
        self.temperature_, self.uniform_weight_ = at.temperature, at.uniform_weight

    def _predict_at(self, at: AtTemperature) -> NDArray:
        return mix_with_uniform(at.proba.copy(), self.uniform_weight_, at.logits)


def fit_temperature_in_chunks(
    data: ScoresInChunks | ScoresOnDevice,
    sample: Samples,
    bounds: tuple[float, float],
    *,
    mix_uniform: bool,
) -> TemperatureFit:
    """Return the temperature of all samples, and the weight of the uniform component."""
    n, pseudo_errors = float(data.sum(sum_weights)), float(mix_uniform)
    scores, y, weight = sample
    start = fit_temperature(
        data.calibrator._as_logits(scores),
        y,
        weight,
        bounds,
        uniform=mix_uniform,
        pseudo_errors=pseudo_errors,
    )

    def sums_at(beta: float, w: float | None) -> NDArray[np.float64]:
        return data.sum(_sum_chunk, beta, w, n, pseudo_errors)

    return fit_temperature_by_sums(sums_at, start, n, bounds, pseudo_errors=pseudo_errors)


def _sum_chunk(
    calibrator: PostHocCalibrator, scores: Any, y: Any, weight: Any, *state: Any
) -> Any:
    return compute_temperature_sums(calibrator._as_logits(scores), y, weight, *state)


def _check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    numbers = np.asarray(bounds, dtype=np.float64)
    if numbers.shape != (2,) or not 0 < numbers[0] <= numbers[1] < np.inf:
        raise ValueError(f"bounds must be two numbers with 0 < low <= high < inf, got {bounds!r}.")
    return float(numbers[0]), float(numbers[1])


def fit_temperature_to_ece(
    logits: NDArray, y: NDArray, sample_weight: NDArray | None, grid: NDArray, n_bins: int
) -> float:
    """Return the T in `grid` with the least ECE of softmax(logits / T); of ties, nearest to 1.

    Only a few temperatures are evaluated. The gap, mean confidence less accuracy, falls as T
    rises, and the ECE is at least the absolute gap, whatever the bins. So bisection finds where
    the gap changes its sign; from there the search goes in both directions, until the absolute gap
    exceeds the smallest ECE so far: no temperature farther away can be better.
    """
    correct = logits.argmax(axis=1) == y
    temperatures = np.unique(grid)
    tried: dict[int, tuple[float, float]] = {}

    def gap_and_error(index: int) -> tuple[float, float]:
        if index not in tried:
            confidence = compute_top_confidence(logits, temperatures[index])
            gap = np.average(confidence - correct, weights=sample_weight)
            # Without the metric's warnings: these labels are hits, not the user's.
            with collecting():
                error = expected_calibration_error(
                    correct, confidence, n_bins=n_bins, sample_weight=sample_weight
                )
            tried[index] = float(gap), error
        return tried[index]

    low, high = 0, len(temperatures) - 1
    while low < high:
        middle = (low + high) // 2
        if gap_and_error(middle)[0] > 0:
            low = middle + 1
        else:
            high = middle
    for direction, start in ((1, low), (-1, low - 1)):
        index = start
        while 0 <= index < len(temperatures):
            gap, _ = gap_and_error(index)
            if direction * -gap > min(error for _, error in tried.values()) + FLOAT32_ROUNDING:
                break
            index += direction
    # Nearest to 1 first: `min` takes a later one only if it is better.
    order = sorted(tried, key=lambda i: abs(np.log(temperatures[i])))
    return float(temperatures[min(order, key=lambda i: tried[i][1])])


def compute_top_confidence(logits: NDArray, temperature: float) -> NDArray:
    """Return the largest probability of every row of softmax(logits / T)."""
    confidence = np.empty(len(logits), dtype=np.result_type(logits.dtype, np.float32))
    for rows, block in iter_blocks(logits):
        # exp(0) / sum_k exp((z_k - z_top) / T).
        below_top = block - compute_row_max(block)[:, None]
        below_top /= below_top.dtype.type(temperature)
        confidence[rows] = 1 / compute_row_sum(np.exp(below_top, out=below_top))
    return confidence


# Ensemble temperature scaling: a mixture of scaled, raw and uniform probabilities.

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
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

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
        low, high = find_bounds(logits, sample_weight)
        start, _ = fit_temperature(
            logits, y, weight, (low, high), uniform=True, pseudo_errors=1.0, roughly=True
        )
        mixture = _Mixture(logits, y, weight)
        beta = find_beta(mixture, (1 / high, 1 / low), 1 / start, _TOLERANCE)
        self.temperature_ = float(np.clip(1 / beta, low, high))
        # The last step was too short to change the weights.
        self.weights_ = mixture.weights

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        first, second, third = self.weights_
        mixed = first * compute_softmax_at(logits, self.temperature_).astype(np.float64)
        mixed += second * compute_softmax_at(logits, 1.0)
        mixed += third * np.broadcast_to(compute_chance(logits), len(logits))[:, None]
        mixed[np.isneginf(logits)] = 0
        return mixed.astype(np.result_type(logits.dtype, np.float32), copy=False)

    def _formula(self) -> dict[str, Any]:
        parts = [
            make_linear_formula(self.temperature_),
            make_linear_formula(),
            {"kind": "uniform"},
        ]
        return make_mixture_formula(self.weights_, parts)


class _Mixture(TemperatureProblem):
    """The log-loss as a function of beta = 1 / T, minimized over the three weights."""

    def __init__(self, logits: NDArray, y: NDArray, weight: NDArray) -> None:
        super().__init__(logits, y, weight, False, 1.0)
        self.weights = np.full(3, 1 / 3)
        # The probability of the label by every component; the first depends on beta.
        raw = compute_softmax_at(logits, 1.0)[np.arange(len(y)), y].astype(np.float64)
        uniform = np.broadcast_to(compute_chance(logits), raw.shape)
        self.of_label = np.stack([raw, raw, uniform])

    def slope_and_curvature(self, beta: float) -> tuple[float, float]:
        terms = np.empty((3, len(self.y)))
        for rows, *found in label_terms(self.logits, self.y, beta):
            terms[:, rows] = found
        scaled, (by_beta, twice) = np.exp(-terms[0]), terms[1:]
        self.of_label[0] = scaled
        # Start inside the simplex: a weight of 0 may become positive at another beta.
        start = 0.99 * self.weights + 0.01 / 3
        self.weights = w = fit_simplex_weights(self.of_label, self.weight, start=start)
        ratio = self.of_label / (w @ self.of_label)
        # Posterior probability that a label comes from the first component.
        r = w[0] * ratio[0]
        slope = float(self.weight @ (r * by_beta))
        curvature = float(self.weight @ (r * twice - r * (1 - r) * by_beta**2))
        # The best weights change with beta and keep their sum, which lowers the curvature.
        cross = np.append(-ratio @ (self.weight * r * by_beta), 0.0)
        cross[0] += float(self.weight @ (ratio[0] * by_beta))
        free = np.append(w > _LEAST_FREE, True)
        bend = np.ones((4, 4))
        bend[:3, :3], bend[3, 3] = ratio * self.weight @ ratio.T, 0.0
        moved = np.zeros(4)
        moved[free] = np.linalg.lstsq(bend[np.ix_(free, free)], -cross[free], rcond=None)[0]
        curvature += min(float(cross @ moved), 0.0)
        # The posterior changes with beta and the weights, and with it the pseudo-errors.
        change = ratio[0] * moved[0] - r * (moved[:3] @ ratio) - r * (1 - r) * by_beta
        pseudo, change = self.weight * r, self.weight * change
        total = float(pseudo.sum())
        if total > 10:
            change -= pseudo * (change.sum() / total)
        pseudo, change = pseudo / max(total, 10.0), change / max(total, 10.0)
        return self._with_pseudo_errors(beta, slope, curvature, pseudo, change)
