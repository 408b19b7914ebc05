"""Choose the rows a model is least sure about."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..metrics import confidence_score, predictive_entropy, probability_margin
from ..utils._blocks import top_rows
from ..utils._estimators import show_inner
from ..utils._labels import check_several_classes
from ..utils._private import HasMethods, Interval, StrOptions, _fit_context, _safe_indexing


class MaxEntropySelector(TransformerMixin, BaseEstimator):
    """Choose the most informative rows by the uncertainty of a classifier.

    Rows are ranked by a score of the predicted class probabilities, larger = more informative, and
    the first `fraction` of them is chosen. :meth:`transform` gives the scores and keeps every row,
    as a step of a Pipeline must; :meth:`select` gives the rows, and
    :class:`~skcalib.selection.SubsetClassifier` trains on them inside a Pipeline or a grid search.

    Parameters
    ----------
    estimator : classifier with predict_proba, or None, default=None
        `fit` trains a clone of it and scores its ``predict_proba(X)``; wrap a trained model in
        :class:`sklearn.frozen.FrozenEstimator` to use it as it is. With None, X holds the class
        probabilities themselves, shape (n_samples, n_classes).
    fraction : float in (0, 1], default=0.3
        Share of the rows to choose, rounded to the nearest count, at least one row.
    n_samples : int or None, default=None
        Number of rows to choose; takes the place of `fraction` when given.
    criterion : {"entropy", "margin", "least_confidence", "random"}, default="entropy"
        The score: Shannon entropy in nats, the negated difference of the two largest
        probabilities, one minus the largest probability, or uniform random numbers (the
        baseline that a comparison needs).
    random_state : int, RandomState instance or None, default=None
        Seed of ``criterion="random"``; the other criteria do not use it.

    Attributes
    ----------
    estimator_ : classifier
        The fitted clone, or `estimator` itself if frozen. Absent with ``estimator=None``.
    scores_ : ndarray of shape (n_samples,)
        Scores of the fitted rows, larger = more informative.
    support_ : ndarray of shape (n_samples,), dtype bool
        The chosen rows. Ties at the cut are broken by row order.
    n_features_in_ : int
        Number of columns of X seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, when X has string column names.

    See Also
    --------
    SubsetClassifier : Fit a classifier on the chosen rows.

    References
    ----------
    Tata et al., Can Calibration Improve Sample Prioritization?, 2022, Sec. 3.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.selection import MaxEntropySelector
    >>> proba = np.array([[0.9, 0.1], [0.5, 0.5], [0.6, 0.4], [1.0, 0.0]])
    >>> selector = MaxEntropySelector(fraction=0.5).fit(proba)
    >>> selector.get_support(indices=True)
    array([1, 2])
    >>> selector.transform(proba).round(2).ravel()
    array([0.33, 0.69, 0.67, 0.  ])
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "fraction": [Interval(Real, 0, 1, closed="right")],
        "n_samples": [Interval(Integral, 1, None, closed="left"), None],
        "criterion": [StrOptions({"entropy", "margin", "least_confidence", "random"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        fraction: float = 0.3,
        n_samples: int | None = None,
        criterion: str = "entropy",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.fraction = fraction
        self.n_samples = n_samples
        self.criterion = criterion
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **fit_params: Any) -> Self:
        """Score the rows of X and choose among them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, or class probabilities with ``estimator=None``.
        y : array-like of shape (n_samples,), default=None
            Class labels; needed to train `estimator`, not used otherwise.
        **fit_params : dict
            Passed to the fit of `estimator`, for instance ``sample_weight``.

        Returns
        -------
        self : MaxEntropySelector
            The fitted selector.

        Raises
        ------
        ValueError
            If X holds no probabilities where it must, if `n_samples` is larger than the number of
            rows, if `y` has one class only, or if `fit_params` are given without an estimator to
            take them.
        """
        if self.estimator is None:
            if fit_params:
                raise ValueError(
                    f"fit got {sorted(fit_params)}, but estimator=None has no use for them; "
                    "give an estimator or leave them out."
                )
            validate_data(self, X, skip_check_array=True)
        else:
            self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
            check_several_classes(self.estimator_.classes_)
            show_inner(self, self.estimator_)
        self._seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        self.scores_ = self._score(X)
        self.support_ = top_rows(self.scores_, fraction=self.fraction, n_samples=self.n_samples)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Score every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples, 1)
            Larger = more informative.
        """
        check_is_fitted(self)
        return self._score(X)[:, None]

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Tell which of the fitted rows were chosen.

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

    def select(self, X: ArrayLike, *arrays: Any) -> Any:
        """Return the most informative rows of X, and the same rows of every other array.

        The rows of this X are scored anew, so it may be other data than in `fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `fit`.
        *arrays : array-likes of length n_samples
            Labels, weights or whatever goes with the rows.

        Returns
        -------
        chosen : array, or list of arrays
            The chosen rows of X in their order, or a list of the chosen rows of X and of every
            other array.
        """
        check_is_fitted(self)
        check_consistent_length(X, *arrays)
        support = top_rows(self._score(X), fraction=self.fraction, n_samples=self.n_samples)
        rows = np.flatnonzero(support)
        chosen = [_safe_indexing(array, rows) for array in (X, *arrays)]
        return chosen if arrays else chosen[0]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the column of `transform`.

        Parameters
        ----------
        input_features : None
            Not used; here for the scikit-learn interface.

        Returns
        -------
        names : ndarray of shape (1,)
            The criterion.
        """
        check_is_fitted(self)
        return np.asarray([self.criterion], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.estimator is not None
        if self.estimator is not None:
            tags.input_tags = self.estimator.__sklearn_tags__().input_tags
        return tags

    def _score(self, X: ArrayLike) -> NDArray[np.floating]:
        if self.estimator is None:
            validate_data(self, X, reset=False, skip_check_array=True)
            proba = X
        else:
            proba = self.estimator_.predict_proba(X)
        if self.criterion == "entropy":
            return predictive_entropy(proba)
        if self.criterion == "margin":
            return -probability_margin(proba)
        confidence = confidence_score(proba)
        if self.criterion == "least_confidence":
            return 1 - confidence
        return np.random.RandomState(self._seed).uniform(size=len(confidence))
