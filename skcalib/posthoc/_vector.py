"""Vector scaling: a slope and an intercept for every class."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from ..utils._private import Interval
from ..utils._temperature import DEFAULT_BOUNDS, minimize_log_loss
from ._base import PostHocCalibrator
from ._vector_newton import fit_vector


class VectorScaling(PostHocCalibrator):
    """Scale and shift the logit of every class, by least log-loss.

    The probabilities are ``softmax(v * logits + b)`` [1]_. Unlike one temperature, the intercepts
    correct a model that likes some classes too much; the predicted class may change.

    Parameters
    ----------
    input : {"logits", "proba"}, default="logits"
        What X holds. Probabilities turn into logits by their logarithm; those below 1e-12 count
        as 1e-12.
    max_iter : int, default=200
        Most iterations of the solver, Newton's method.
    classes : array-like of shape (n_classes,), default=None
        Labels of the columns of X. None means 0, ..., n_classes - 1 or, for other labels, the
        sorted labels of `y`; give it where a class may have no sample in `y`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes,)
        The slopes v.
    intercept_ : ndarray of shape (n_classes,)
        The intercepts b; their sum is 0.
    n_iter_ : int
        Number of iterations of the solver.
    classes_ : ndarray of shape (n_classes,)
        Labels of the columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of X, where they are all strings.

    Warns
    -----
    ConvergenceWarning
        If the solver stops at `max_iter`.

    See Also
    --------
    TemperatureScaling : One slope for all classes, no intercept.
    MatrixScaling : The logit of a class from those of all.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

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
    >>> scaling.coef_.round(1)
    array([0.7, 0.6, 0.7])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        input: str = "logits",
        max_iter: int = 200,
        classes: ArrayLike | None = None,
    ) -> None:
        self.input = input
        self.max_iter = max_iter
        self.classes = classes

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        logits = self._as_logits(scores)
        # The start alone: like every temperature it may be a bound.
        temperature = minimize_log_loss(logits, y, sample_weight, DEFAULT_BOUNDS)
        self.coef_, self.intercept_, self.n_iter_ = fit_vector(
            logits, y, sample_weight, self.max_iter, temperature
        )

    def _predict_proba(self, scores: NDArray) -> NDArray:
        return softmax(self._as_logits(scores) * self.coef_ + self.intercept_, axis=1)
