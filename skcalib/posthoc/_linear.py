"""Linear calibrators: vector, matrix and Dirichlet scaling, free and structured."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ..metrics._temperature_fit import compute_softmax_in_place
from ..utils._compat import Interval
from ..utils._numeric import FEW_COLUMNS
from ._base import (
    LOWEST_LOG_PROBA,
    PostHocCalibrator,
    add_uniform_formula,
    make_linear_formula,
    mix_with_uniform,
)
from ._constants import INTERCEPTS
from ._dask import ScoresInChunks, sum_weights
from ._linear_fit import (
    LinearFit,
    LinearSums,
    Ridge,
    compute_linear_sums,
    fit_linear,
    fit_linear_by_sums,
)
from ._temperature import (
    AfterTemperature,
    AtTemperature,
    find_bounds,
    fit_temperature_in_chunks,
)

# Stands for -inf in JSON, as a bound of log-probabilities.
_NO_LEAST = -1e300


class LinearCalibrator(AfterTemperature):
    """Base of the maps ``softmax(x @ W.T + b)``, with x the scores after temperature scaling.

    Penalties draw W to the identity: without the temperature, they would draw the map to the raw,
    overconfident scores.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        "mix_uniform": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    _vector: ClassVar[bool] = False

    max_iter: int
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    n_iter_: int

    def __init__(
        self,
        *,
        mix_uniform: bool = False,
        input: str = "logits",
        max_iter: int = 200,
        classes: ArrayLike | None = None,
    ) -> None:
        self.mix_uniform = mix_uniform
        self.input = input
        self.max_iter = max_iter
        self.classes = classes

    def _ridge(self) -> Ridge:
        return Ridge(intercept=INTERCEPTS)

    def _features(self, at: AtTemperature) -> NDArray:
        """Return x: the log-probabilities after temperature scaling, at least log(1e-7)."""
        return at.clipped

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        at = self._find_temperature(scores, y, sample_weight)
        found = self._read_features(at), at.temperature, at.uniform_weight
        del at  # the logits, for memory
        self._fit_features(*found, y, sample_weight)

    def _fit_at(
        self,
        at: AtTemperature,
        y: NDArray,
        sample_weight: NDArray | None,
        near: Self | None = None,
    ) -> None:
        features = self._read_features(at)
        self._fit_features(features, at.temperature, at.uniform_weight, y, sample_weight, near)

    def _fit_features(
        self,
        features: NDArray,
        temperature: float,
        uniform_weight: float,
        y: NDArray,
        sample_weight: NDArray | None,
        near: Self | None = None,
    ) -> None:
        self.temperature_ = temperature
        start = None
        if near is not None:
            start = LinearFit(near.coef_, near.intercept_, near.uniform_weight_, near.n_iter_)
        self.coef_, self.intercept_, self.uniform_weight_, self.n_iter_ = fit_linear(
            features,
            y,
            sample_weight,
            self._ridge(),
            vector=self._vector,
            uniform_weight=uniform_weight if self.mix_uniform else None,
            max_iter=self.max_iter,
            near=start,
        )

    def _read_features(self, at: AtTemperature) -> NDArray:
        """Return x of all samples, with few classes stored by columns, as the search reads it."""
        few = at.logits.shape[1] <= FEW_COLUMNS
        dtype = self._features(at.take(slice(1))).dtype
        features = np.empty(at.logits.shape, dtype, order="F" if few else "C")
        for rows, part in at.iter_blocks():
            features[rows] = self._features(part)
        return features

    def _fit_chunks(self, data: ScoresInChunks) -> None:
        sample = scores, y, sample_weight = data.sample()
        bounds = find_bounds(self._as_logits(scores), sample_weight)
        self.temperature_, weight = fit_temperature_in_chunks(
            data, sample, bounds, mix_uniform=self.mix_uniform
        )
        self._warn_of_lower_bound(self.temperature_, bounds)
        self.coef_, self.intercept_, self.uniform_weight_, self.n_iter_ = fit_linear_by_sums(
            partial(data.sum, _sum_chunk),
            (self._features_of(scores), y, sample_weight),
            self._ridge(),
            data.sum(sum_weights),
            vector=self._vector,
            uniform_weight=weight,
            max_iter=self.max_iter,
        )

    def _features_of(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores).astype(np.float64, copy=False)
        return self._features(AtTemperature(logits, self.temperature_, 0.0))

    def _predict_at(self, at: AtTemperature) -> NDArray:
        features = self._features(at)
        coef, intercept = (part.astype(features.dtype) for part in (self.coef_, self.intercept_))
        mapped = features * coef if self._vector else (coef @ features.T).T
        mapped += intercept
        return mix_with_uniform(compute_softmax_in_place(mapped), self.uniform_weight_, at.logits)

    def _formula(self) -> dict[str, Any]:
        return self._formula_of(self.coef_, LOWEST_LOG_PROBA)

    def _formula_of(self, coef: NDArray, least: float | None = None) -> dict[str, Any]:
        part = make_linear_formula(
            self.temperature_, coef=coef, intercept=self.intercept_, least=least
        )
        return add_uniform_formula(part, self.uniform_weight_)


def _center_logits(at: AtTemperature) -> NDArray[np.float64]:
    """Return logits / T less the mean of each row, to which a softmax is invariant."""
    scaled = at.logits.astype(np.float64) / at.temperature
    scaled -= scaled.mean(axis=1, keepdims=True)
    return scaled


def _sum_chunk(
    calibrator: LinearCalibrator,
    scores: NDArray,
    y: NDArray,
    weight: NDArray,
    theta: NDArray,
    uniform_weight: float | None,
) -> LinearSums:
    features = calibrator._features_of(scores)
    return compute_linear_sums(
        features, y, weight, theta, uniform_weight, vector=calibrator._vector
    )


class VectorScaling(LinearCalibrator):
    """Scale and shift the logit of every class.

    The probabilities are ``softmax(v * z / T + b)``, fitted by least log-loss [1]_. z are the
    logits less their mean over the classes, so a constant added to all logits of a sample changes
    nothing. Unlike a temperature, the intercepts correct a model that favors some classes; the
    predicted class may change. The map has no penalty: with few samples per class,
    :class:`StructuredVectorScaling` is safer.

    Parameters
    ----------
    mix_uniform : bool, default=False
        Whether to mix the map with a uniform component of weight w, ``(1 - w) map + w /
        n_classes``, fitted along under a weak prior (as in :class:`TemperatureScaling`), so that a
        few labels that the model calls nearly impossible do not dominate the fit. It is this
        package's own, and no part of the published map.
    max_iter : int, default=200
        Maximum number of iterations of the solver, Newton's method with conjugate gradients.
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    temperature_ : float
        The temperature T, fitted first.
    coef_ : ndarray of shape (n_classes,)
        The slopes v; 1 is temperature scaling.
    intercept_ : ndarray of shape (n_classes,)
        The intercepts b; their sum is 0.
    uniform_weight_ : float
        The weight w of the uniform component; 0 unless `mix_uniform`.
    n_iter_ : int
        Number of iterations of the solver.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    Warns
    -----
    SkcalibWarning
        If the temperature is at its lower bound, because every sample is predicted right.
    ConvergenceWarning
        If the solver stops at `max_iter`.

    See Also
    --------
    TemperatureScaling : One slope for all classes, no intercept.
    StructuredVectorScaling : The same for log-probabilities, with a penalty.
    MatrixScaling : Every logit is a linear combination of all logits.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On Calibration of Modern Neural Networks",
       ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.posthoc import VectorScaling
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 2000)
    >>> logits = 2 * np.eye(3)[y] + rng.normal(size=(2000, 3))
    >>> scaling = VectorScaling().fit(3 * logits + [0, 1, 0], y)
    >>> (scaling.coef_ / scaling.temperature_).round(1)
    array([0.7, 0.6, 0.6])
    """

    _vector = True

    def _ridge(self) -> Ridge:
        return Ridge(0.0, 0.0, 0.0)

    def _features(self, at: AtTemperature) -> NDArray[np.float64]:
        return _center_logits(at)

    def _formula(self) -> dict[str, Any]:
        coef = np.diag(self.coef_) - self.coef_[:, None] / len(self.coef_)
        return self._formula_of(coef)


class StructuredVectorScaling(LinearCalibrator):
    """Temperature scaling, then a slope and intercept per class, as far as the data support them.

    The probabilities are ``softmax(v * log_softmax(logits / T) + b)``. A ridge penalty of K / n
    draws v to 1 [1]_, and one of K / (10 n) draws b to 0; K is the number of classes and n the sum
    of the sample weights. So with few samples this is temperature scaling, and there is nothing to
    tune. The paper has K / n for b too, which keeps few samples from correcting class frequencies.
    Use it for hundreds of classes, where a matrix has too many entries; with two classes it is
    beta calibration with a ridge.

    Parameters
    ----------
    mix_uniform, input, max_iter, classes : of :class:`VectorScaling`

    Attributes
    ----------
    temperature_ : float
        The temperature T, fitted first.
    coef_ : ndarray of shape (n_classes,)
        The slopes v; 1 is temperature scaling.
    intercept_ : ndarray of shape (n_classes,)
        The intercepts b; their sum is 0.
    uniform_weight_ : float
        The weight of the uniform component; 0 unless `mix_uniform`.
    n_iter_ : int
        Number of iterations of the solver.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    See Also
    --------
    StructuredMatrixScaling : The same with a matrix.
    BetaCalibration : The same map for two classes, without a ridge.
    StackedCalibration : Mixes it with the temperature and the matrix.

    References
    ----------
    .. [1] E. Berta, D. Holzmüller, M. I. Jordan, F. Bach, "Structured Matrix Scaling for
       Multi-Class Calibration", AISTATS 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.posthoc import StructuredVectorScaling
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 2000)
    >>> logits = 2 * np.eye(3)[y] + rng.normal(size=(2000, 3))
    >>> scaling = StructuredVectorScaling().fit(3 * logits + [0, 1, 0], y)
    >>> scaling.coef_.round(1)
    array([1.1, 1. , 1. ])
    """

    _vector = True


class StructuredMatrixScaling(LinearCalibrator):
    """Temperature scaling, then as much of a matrix as the data support.

    The probabilities are ``softmax(log_softmax(logits / T) @ W.T + b)``. With few samples this is
    temperature scaling, with more there are slopes and intercepts per class, with many a full
    matrix; there is nothing to tune. Ridge penalties draw W to the identity [1]_: K / n on the
    diagonal and K (K - 1) / n elsewhere, with K classes and n the sum of the sample weights. One
    of K / (10 n), where the paper has K / n, draws b to 0.

    Parameters
    ----------
    mix_uniform, input, max_iter, classes : of :class:`VectorScaling`

    Attributes
    ----------
    temperature_ : float
        The temperature T, fitted first.
    coef_ : ndarray of shape (n_classes, n_classes)
        The matrix W; row k gives the logit of class k. The identity is temperature scaling.
    intercept_ : ndarray of shape (n_classes,)
        The intercepts b; their sum is 0.
    uniform_weight_ : float
        The weight of the uniform component; 0 unless `mix_uniform`.
    n_iter_ : int
        Number of iterations of the solver.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    See Also
    --------
    TemperatureScaling : Only the first step.
    StructuredVectorScaling : A diagonal matrix.
    MatrixScaling : The same for logits, with penalties to choose.
    StackedCalibration : Mixes it with simpler maps.

    References
    ----------
    .. [1] E. Berta, D. Holzmüller, M. I. Jordan, F. Bach, "Structured Matrix Scaling for
       Multi-Class Calibration", AISTATS 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.posthoc import StructuredMatrixScaling
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 2000)
    >>> logits = 2 * np.eye(3)[y] + rng.normal(size=(2000, 3))
    >>> scaling = StructuredMatrixScaling().fit(3 * logits, y)
    >>> np.abs(scaling.coef_ - np.eye(3)).max() < 0.1
    np.True_
    """


class MatrixScaling(LinearCalibrator):
    """Map the logits, after temperature scaling, by a matrix and an intercept.

    The probabilities are ``softmax(z / T @ W.T + b)``, fitted by least log-loss [1]_; z are the
    logits less their mean over the classes. The map has K (K + 1) parameters for K classes and
    would overfit with few samples or many classes: so penalties draw W to the identity and b to 0,
    that is to temperature scaling, the more the fewer samples there are. The default strengths are
    those published for structured scaling [2]_, which maps log-probabilities; with all strengths 0
    this is multinomial logistic regression.

    Parameters
    ----------
    diagonal_penalty : float, default=1.0
        Strength, 0 or more, that draws the diagonal of the matrix to 1: K times this, times the
        sum of squared deviations from 1, is added to the summed log-loss.
    off_diagonal_penalty : float, default=1.0
        Strength, 0 or more, that draws the other entries to 0: K (K - 1) times this, times the sum
        of their squares, is added.
    intercept_penalty : float, default=1.0
        Strength, 0 or more, that draws the intercepts to 0: K times this, times the sum of their
        squares, is added.
    mix_uniform, input, max_iter, classes : of :class:`VectorScaling`

    Attributes
    ----------
    temperature_ : float
        The temperature T, fitted first.
    coef_ : ndarray of shape (n_classes, n_classes)
        The matrix W; row k gives the logit of class k. The identity is temperature scaling.
    intercept_ : ndarray of shape (n_classes,)
        The intercepts b; their sum is 0.
    uniform_weight_ : float
        The weight of the uniform component; 0 unless `mix_uniform`.
    n_iter_ : int
        Number of iterations of the solver.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    See Also
    --------
    VectorScaling : A diagonal matrix.
    StructuredMatrixScaling : The same for log-probabilities, with nothing to choose.
    DirichletCalibration : The same for log-probabilities, with a free diagonal.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On Calibration of Modern Neural Networks",
       ICML 2017.
    .. [2] E. Berta, D. Holzmüller, M. I. Jordan, F. Bach, "Structured Matrix Scaling for
       Multi-Class Calibration", AISTATS 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.posthoc import MatrixScaling
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 2000)
    >>> logits = 2 * np.eye(3)[y] + rng.normal(size=(2000, 3))
    >>> scaling = MatrixScaling().fit(3 * logits, y)
    >>> np.diag(scaling.coef_).round(1)
    array([1., 1., 1.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearCalibrator._parameter_constraints,
        "diagonal_penalty": [Interval(Real, 0, None, closed="left")],
        "off_diagonal_penalty": [Interval(Real, 0, None, closed="left")],
        "intercept_penalty": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        diagonal_penalty: float = 1.0,
        off_diagonal_penalty: float = 1.0,
        intercept_penalty: float = 1.0,
        mix_uniform: bool = False,
        input: str = "logits",
        max_iter: int = 200,
        classes: ArrayLike | None = None,
    ) -> None:
        super().__init__(mix_uniform=mix_uniform, input=input, max_iter=max_iter, classes=classes)
        self.diagonal_penalty = diagonal_penalty
        self.off_diagonal_penalty = off_diagonal_penalty
        self.intercept_penalty = intercept_penalty

    def _ridge(self) -> Ridge:
        return Ridge(self.diagonal_penalty, self.off_diagonal_penalty, self.intercept_penalty)

    def _features(self, at: AtTemperature) -> NDArray[np.float64]:
        return _center_logits(at)

    def _formula(self) -> dict[str, Any]:
        return self._formula_of(self.coef_ - self.coef_.mean(axis=1, keepdims=True))


class DirichletCalibration(MatrixScaling):
    """Map the log-probabilities by a matrix with a free diagonal, and an intercept.

    The probabilities are ``softmax(log(p) / T @ W.T + b)``; p are the probabilities of the model.
    This is the exact map if p has a Dirichlet distribution in every class [1]_. As in the paper,
    penalties act on the entries off the diagonal and on the intercepts, and not on the diagonal;
    :class:`StructuredMatrixScaling` penalizes all of them. With two classes and no penalties this
    is beta calibration.

    Parameters
    ----------
    diagonal_penalty : float, default=0.0
        Strength, 0 or more, that draws the diagonal of the matrix to 1.
    off_diagonal_penalty, intercept_penalty : of :class:`MatrixScaling`
    mix_uniform, input, max_iter, classes : of :class:`VectorScaling`

    Attributes
    ----------
    temperature_ : float
        The temperature T, fitted first.
    coef_ : ndarray of shape (n_classes, n_classes)
        The matrix W; row k gives the logit of class k. The identity is temperature scaling.
    intercept_ : ndarray of shape (n_classes,)
        The intercepts b; their sum is 0.
    uniform_weight_ : float
        The weight of the uniform component; 0 unless `mix_uniform`.
    n_iter_ : int
        Number of iterations of the solver.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    See Also
    --------
    StructuredMatrixScaling : Penalizes all entries.
    BetaCalibration : The same map for two classes.
    MatrixScaling : The same for logits.

    References
    ----------
    .. [1] M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach, "Beyond
       Temperature Scaling: Obtaining Well-calibrated Multiclass Probabilities with Dirichlet
       Calibration", NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.posthoc import DirichletCalibration
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 2000)
    >>> logits = 2 * np.eye(3)[y] + rng.normal(size=(2000, 3))
    >>> scaling = DirichletCalibration().fit(3 * logits, y)
    >>> np.diag(scaling.coef_).round(1)
    array([1., 1., 1.])
    """

    def __init__(
        self,
        *,
        diagonal_penalty: float = 0.0,
        off_diagonal_penalty: float = 1.0,
        intercept_penalty: float = 1.0,
        mix_uniform: bool = False,
        input: str = "logits",
        max_iter: int = 200,
        classes: ArrayLike | None = None,
    ) -> None:
        super().__init__(
            diagonal_penalty=diagonal_penalty,
            off_diagonal_penalty=off_diagonal_penalty,
            intercept_penalty=intercept_penalty,
            mix_uniform=mix_uniform,
            input=input,
            max_iter=max_iter,
            classes=classes,
        )

    def _features(self, at: AtTemperature) -> NDArray[np.float64]:
        logits = at.logits.astype(np.float64)
        return (logits - logsumexp(logits, axis=1, keepdims=True)) / at.temperature

    def _formula(self) -> dict[str, Any]:
        # In `to_json`, the logarithm comes after the temperature; here it comes before.
        part = make_linear_formula(
            coef=self.coef_ / self.temperature_, intercept=self.intercept_, least=_NO_LEAST
        )
        return add_uniform_formula(part, self.uniform_weight_)
