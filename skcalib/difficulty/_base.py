"""The contract of difficulty scorers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags


class RequiresLabels:
    """An estimator whose `fit` needs labels."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        return tags


class DifficultyMixin(ABC):
    """Mixin for estimators that score how hard samples are.

    The contract of every scorer:

    - ``difficulty(X, y)`` is the difficulty of the pairs (x, y), ``difficulty(X)`` the
      label-free version. **Larger means harder.**
    - The value of a sample does not depend on the other samples of the call.
    - ``score_samples(X)`` is ``-difficulty(X)``: larger means more normal, as everywhere in
      scikit-learn, so it serves as an out-of-distribution score.

    A subclass defines ``fit`` and `difficulty`; without `difficulty` it cannot be instantiated.

    See Also
    --------
    RelativeMahalanobisScorer : A scorer of this contract.
    cross_val_difficulty : Out-of-fold difficulty by any scorer.
    NoveltyDetector : An outlier detector over any scorer.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from skcalib.difficulty import DifficultyMixin
    >>> class NormScorer(DifficultyMixin, BaseEstimator):
    ...     def fit(self, X, y=None):
    ...         return self
    ...     def difficulty(self, X, y=None):
    ...         return np.linalg.norm(X, axis=1)
    >>> NormScorer().fit([[0.0, 1.0]]).score_samples([[3.0, 4.0]])
    array([-5.])
    """

    @abstractmethod
    def difficulty(self, X: Any, y: ArrayLike | None = None) -> NDArray[np.floating]:
        """Difficulty of every sample; larger means harder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,), default=None
            Labels. None gives the label-free difficulty.

        Returns
        -------
        difficulty : ndarray of shape (n_samples,)
            Larger means harder.
        """

    def fit_difficulty(
        self, X: Any, y: ArrayLike | None = None, **fit_params: Any
    ) -> NDArray[np.floating]:
        """Fit to the samples and return their difficulty.

        For most scorers this is ``fit(X, y).difficulty(X, y)``. A scorer that scores its
        training samples differently, by cross-fitting for instance, overrides it, as
        ``TargetEncoder`` in scikit-learn overrides ``fit_transform``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,), default=None
            Labels.
        **fit_params : dict
            Passed to ``fit``.

        Returns
        -------
        difficulty : ndarray of shape (n_samples,)
            Larger means harder.
        """
        return self.fit(X, y, **fit_params).difficulty(X, y)  # type: ignore[attr-defined]

    def fit_ranking(
        self, X: Any, y: ArrayLike | None = None, **fit_params: Any
    ) -> NDArray[np.floating]:
        """Fit to the samples and return the difficulty by which weights and choices rank them.

        For most scorers this is :meth:`fit_difficulty`. A scorer overrides it where another value
        ranks wrong labels better than that of a sample left out.

        Parameters
        ----------
        X, y, **fit_params : of :meth:`fit_difficulty`

        Returns
        -------
        difficulty : ndarray of shape (n_samples,)
            Larger means harder.
        """
        return self.fit_difficulty(X, y, **fit_params)

    def score_samples(self, X: Any) -> NDArray[np.floating]:
        """Normality of every sample: minus its label-free difficulty.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Larger means more normal, that is, more in-distribution.
        """
        return -self.difficulty(X)
