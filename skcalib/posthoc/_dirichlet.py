"""Dirichlet calibration: a linear map of the logarithms of the probabilities."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from ..utils._private import Interval
from ._linear import Ridge
from ._matrix_base import MatrixCalibrator


class DirichletCalibration(MatrixCalibrator):
    """Map the log-probabilities, at their temperature, by a matrix and an intercept.

    The probabilities are ``softmax(log(p) @ W.T + b)``, p those at the temperature: the posterior
    of a model whose probabilities have a Dirichlet distribution in every class [1]_; with two
    classes and without penalties, beta calibration of p. Penalties draw the matrix to the identity
    and thus to temperature scaling, the more the fewer samples there are. Their strengths can be
    searched; with the default ones, those of Berta et al. [2]_, this is
    :class:`StructuredMatrixScaling`.

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
        What X holds. Logits turn into log-probabilities by their log-softmax. Probabilities below
        1e-12 count as 1e-12.
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
    MatrixScaling : The same on logits, which hold a constant of the row more.
    BetaCalibration : The map for two classes.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

    Notes
    -----
    The penalties weigh less the more samples there are: `sample_weight` counts samples here, so
    that doubling all weights halves them.

    References
    ----------
    .. [1] M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach, "Beyond
       Temperature Scaling: Obtaining Well-calibrated Multiclass Probabilities with Dirichlet
       Calibration", NeurIPS 2019.
    .. [2] E. Berta, D. Holzmüller, M. I. Jordan, F. Bach, "Structured Matrix Scaling for
       Multi-Class Calibration", AISTATS 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import softmax
    >>> from skcalib.posthoc import DirichletCalibration
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 2000)
    >>> proba = softmax(3 * (2 * np.eye(3)[y] + rng.normal(size=(2000, 3))), axis=1)
    >>> calibration = DirichletCalibration(input="proba").fit(proba, y)
    >>> round(calibration.temperature_, 1)
    1.6
    >>> np.diag(calibration.coef_).round(1)
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
