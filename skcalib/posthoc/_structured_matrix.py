"""Structured matrix scaling: a temperature, then as much of a matrix as the samples can tell."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ._matrix_base import MatrixCalibrator


class StructuredMatrixScaling(MatrixCalibrator):
    """Temperature scaling, corrected by a matrix and intercepts under a ridge that fits n and K.

    Few samples give the temperature alone, more the class-wise slopes and intercepts, many the
    whole matrix: a ridge of K / n on slopes and intercepts and of K (K - 1) / n off the diagonal
    draws the matrix to the identity, so that there is nothing to tune. Of the calibrators for
    several classes it is the one to try first.

    The probabilities are ``softmax(log_softmax(logits / T) @ W.T + b)``.

    Parameters
    ----------
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
        The intercepts b.
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
    TemperatureScaling : The first step alone.
    MatrixScaling : A matrix under penalties that have to be chosen.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

    Notes
    -----
    The ridge shrinks with the number of samples: `sample_weight` counts samples here, so that
    doubling all weights halves it.

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
    >>> round(scaling.temperature_, 1)
    1.6
    >>> np.abs(scaling.coef_ - np.eye(3)).max() < 0.1
    np.True_
    """

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
