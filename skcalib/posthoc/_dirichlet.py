"""Dirichlet calibration: a linear map of the logarithms of the probabilities."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax

from ..utils._private import Interval
from ._base import PostHocCalibrator
from ._linear import fit_matrix


class DirichletCalibration(PostHocCalibrator):
    """Map the log-probabilities by a matrix and an intercept, by penalized least log-loss.

    The probabilities are ``softmax(log(p) @ W.T + b)``: the posterior of a model whose
    probabilities have a Dirichlet distribution in every class [1]_. It holds the identity, and
    beta calibration where there are two classes. The penalty of the off-diagonal entries and of
    the intercepts (ODIR) keeps it from overfitting.

    Parameters
    ----------
    off_diagonal_penalty : float, default=1.0
        Penalty of the mean squared off-diagonal entry of the matrix, in units of the mean
        log-loss (lambda of ODIR).
    intercept_penalty : float, default=1.0
        Penalty of the mean squared intercept (mu of ODIR).
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
    coef_ : ndarray of shape (n_classes, n_classes)
        The matrix W; row k gives the logit of class k.
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

    References
    ----------
    .. [1] M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach, "Beyond
       Temperature Scaling: Obtaining Well-calibrated Multiclass Probabilities with Dirichlet
       Calibration", NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import softmax
    >>> from skcalib.posthoc import DirichletCalibration
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 2000)
    >>> proba = softmax(3 * (2 * np.eye(3)[y] + rng.normal(size=(2000, 3))), axis=1)
    >>> calibration = DirichletCalibration(input="proba").fit(proba, y)
    >>> np.diag(calibration.coef_ - calibration.coef_.mean(axis=0)).round(1)
    array([0.4, 0.4, 0.4])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        "off_diagonal_penalty": [Interval(Real, 0, None, closed="left")],
        "intercept_penalty": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        off_diagonal_penalty: float = 1.0,
        intercept_penalty: float = 1.0,
        input: str = "logits",
        max_iter: int = 200,
        classes: ArrayLike | None = None,
    ) -> None:
        self.off_diagonal_penalty = off_diagonal_penalty
        self.intercept_penalty = intercept_penalty
        self.input = input
        self.max_iter = max_iter
        self.classes = classes

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        self.coef_, self.intercept_, self.n_iter_ = fit_matrix(
            self._log_proba(scores),
            y,
            sample_weight,
            self.max_iter,
            (self.off_diagonal_penalty, self.intercept_penalty),
        )

    def _predict_proba(self, scores: NDArray) -> NDArray:
        return softmax(self._log_proba(scores) @ self.coef_.T + self.intercept_, axis=1)

    def _log_proba(self, scores: NDArray) -> NDArray:
        # For probabilities too: with the floor of the logarithm their rows sum to 1 only nearly.
        return log_softmax(self._as_logits(scores).astype(np.float64), axis=1)
