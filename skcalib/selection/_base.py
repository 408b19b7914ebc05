"""Base of the selectors: scores, how many samples to choose, and which."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..utils.meta._estimators import MetaMixin

# Fraction to choose if neither `fraction` nor `n_samples` is given.
DEFAULT_FRACTION = 0.7


class BaseSelector(MetaMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of estimators that score samples and choose some of them by their scores."""

    random_state: int | np.random.RandomState | None
    support_: NDArray[np.bool_]

    @abstractmethod
    def _score(self, X: Any) -> NDArray[np.floating]:
        """Return one score per sample."""

    @abstractmethod
    def _inside(self) -> dict[str, Any]:
        """Return the inner estimators, by the name of their parameter."""

    def transform(self, X: Any) -> NDArray[np.floating]:
        """Score every sample, without its label; the number of rows stays the same.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, in the form that `fit` got.

        Returns
        -------
        scores : ndarray of shape (n_samples, 1)
            Larger = harder, or more informative.
        """
        check_is_fitted(self)
        return self._score(X)[:, None]

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Return which samples of `fit` were chosen.

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
        """Return the name of the column of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Ignored; for the interface of scikit-learn.

        Returns
        -------
        names : ndarray of str objects
            The name of the score, one column.
        """
        check_is_fitted(self)
        return np.asarray([getattr(self, "criterion", "difficulty")], dtype=object)

    def _draw_seed(self) -> int:
        """Return a seed to keep, so that `select` draws the same samples as `fit`."""
        return check_random_state(self.random_state).randint(np.iinfo(np.int32).max)


def count_to_choose(n: int, *, fraction: float | None, n_samples: int | None) -> int:
    """Return how many of n samples to choose: `n_samples`, or a `fraction`, 0.7 by default."""
    if n_samples is None:
        # Round halves up: round() would round them to even.
        return max(1, int((DEFAULT_FRACTION if fraction is None else fraction) * n + 0.5))
    if fraction is not None:
        raise ValueError(
            f"n_samples must be None if fraction is given, got n_samples={n_samples!r} and "
            f"fraction={fraction!r}."
        )
    if n_samples > n:
        raise ValueError(f"n_samples must be at most the number of rows, {n}, got {n_samples}.")
    return n_samples


def drawn_scores(weights: NDArray[np.floating], uniform: NDArray[np.floating]) -> NDArray:
    """Return scores whose n largest are a draw without replacement, in proportion to weights.

    The scores are log weights plus Gumbel noise, made from uniform numbers in [0, 1).
    """
    # Samples of weight 0 come last, in random order.
    weights = np.maximum(weights, np.finfo(weights.dtype).tiny)
    return np.log(weights) - np.log(-np.log(uniform))


def top_rows(
    scores: NDArray[np.floating], *, fraction: float | None, n_samples: int | None
) -> NDArray[np.bool_]:
    """Return the mask of the largest scores, :func:`count_to_choose` many.

    Ties at the cut are broken by row order.
    """
    n = len(scores)
    count = count_to_choose(n, fraction=fraction, n_samples=n_samples)
    # The count-th largest score: choose all larger ones, and the first ones that equal it.
    cut = np.partition(scores, n - count)[n - count]
    chosen = scores > cut
    ties = np.flatnonzero(scores == cut)
    chosen[ties[: count - chosen.sum()]] = True
    return chosen
