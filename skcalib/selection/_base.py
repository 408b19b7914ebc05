"""What the selectors share: a column of scores, and a mask of the fitted samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..utils._estimators import MetaMixin


class BaseSelector(MetaMixin, TransformerMixin, BaseEstimator, ABC):
    """A selector scores samples, and chooses some of them by their scores."""

    random_state: int | np.random.RandomState | None
    support_: NDArray[np.bool_]

    @abstractmethod
    def _score(self, X: Any) -> NDArray[np.floating]:
        """Return one score a sample."""

    @abstractmethod
    def _inside(self) -> dict[str, Any]:
        """Return what is fitted inside, by the name of the parameter that holds it."""

    def transform(self, X: Any) -> NDArray[np.floating]:
        """Score every sample, without labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples, 1)
            Larger = harder, or more informative.
        """
        check_is_fitted(self)
        return self._score(X)[:, None]

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Tell which of the fitted samples were chosen.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return row numbers in ascending order instead of a mask.

        Returns
        -------
        support : ndarray of shape (n_samples,) or (n_chosen,)
            Mask, or row numbers.
        """
        check_is_fitted(self)
        return np.flatnonzero(self.support_) if indices else self.support_

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the column of `transform`.

        Parameters
        ----------
        input_features : None
            Not used; here for the scikit-learn interface.

        Returns
        -------
        names : ndarray of shape (1,)
            "difficulty", or the criterion of uncertainty.
        """
        check_is_fitted(self)
        return np.asarray([getattr(self, "criterion", "difficulty")], dtype=object)

    def _draw_seed(self) -> int:
        """Return a seed to keep: the same samples are drawn in `fit` and in `select`."""
        return check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
