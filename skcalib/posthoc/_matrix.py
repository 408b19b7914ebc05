"""Matrix scaling: the logit of every class from those of all."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._private import Interval
from ._linear import Ridge
from ._matrix_base import MatrixCalibrator


class MatrixScaling(MatrixCalibrator):
    """Map the logits, at their temperature, by a matrix and an intercept.

    The probabilities are ``softmax(logits / T @ W.T + b)`` [1]_, by least log-loss. A matrix has
    K (K + 1) parameters and would overfit on few samples or many classes: penalties draw it to
    the identity and thus to temperature scaling, the more the fewer samples there are. The default
    strengths are those of :class:`StructuredMatrixScaling` [2]_; with ``off_diagonal_penalty=0``
    and the others too, this is multinomial regression.

    Parameters
    ----------
    diagonal_penalty : float, default=1.0
        Strength, 0 or more, that draws the diagonal of the matrix to 1. The sum of the squared
        deviations, times K and this, is added to the summed log-loss.
    off_diagonal_penalty : float, default=1.0
        Strength, 0 or more, that draws the other entries to 0: the sum of their squares, times
        K (K - 1) and this, is added.
    intercept_penalty : float, default=1.0
        Strength, 0 or more, that draws the intercepts to 0: the sum of their squares, times K and
        this, is added.
    input : {"logits", "proba"}, default="logits"
        What X holds. Probabilities turn into logits by their logarithm; those below 1e-12 count
        as 1e-12.
    max_iter : int, default=200
        Most iterations of the solver, a Newton method with conjugate gradients.
    classes : array-like of shape (n_classes,), default=None
        Labels of the columns of X. None means 0, ..., n_classes - 1 or, for other labels, the
        sorted labels of `y`; give it where a class may have no sample in `y`.

    Attributes
    ----------
    temperature_ : float
        The temperature T, of least log-loss by itself.
    coef_ : ndarray of shape (n_classes, n_classes)
        The matrix W; row k gives the logit of class k. The identity where nothing is learned.
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
    VectorScaling : The diagonal of the matrix alone.
    StructuredMatrixScaling : The same on log-probabilities, with nothing to choose.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

    Notes
    -----
    The penalties weigh less the more samples there are: `sample_weight` counts samples here, so
    that doubling all weights halves them.

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
    >>> round(scaling.temperature_, 1)
    1.6
    >>> np.diag(scaling.coef_).round(1)
    array([1., 1., 1.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MatrixCalibrator._parameter_constraints,
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
        input: str = "logits",
        max_iter: int = 200,
        classes: ArrayLike | None = None,
    ) -> None:
        self.diagonal_penalty = diagonal_penalty
        self.off_diagonal_penalty = off_diagonal_penalty
        self.intercept_penalty = intercept_penalty
        self.input = input
        self.max_iter = max_iter
        self.classes = classes

    def _ridge(self) -> Ridge:
        return Ridge(self.diagonal_penalty, self.off_diagonal_penalty, self.intercept_penalty)

    def _at_temperature(self, scores: NDArray) -> NDArray[np.float64]:
        """Return the logits at the temperature; unlike log-probabilities their rows may shift."""
        return self._scaled(scores)
