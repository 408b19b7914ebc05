"""Train a classifier on selected samples, also in a Pipeline or a grid search."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._arrays import check_weights
from ..utils._compat import HasMethods, _fit_context, _routing_enabled
from ..utils._estimators import (
    DelegatingClassifier,
    fit_clone,
    get_inner_fit_params,
    has_argument,
    read_samples,
    warn_if_fitted,
)
from ..utils._labels import check_several_classes, format_labels
from ..utils._output import warn


class SubsetClassifier(DelegatingClassifier):
    """Fit a classifier on the samples that a selector chooses.

    The transformers of a Pipeline cannot drop samples; this classifier, as its last step, can.

    Parameters
    ----------
    estimator : classifier
        The classifier. A clone is fitted on the chosen samples.
    selector : object with fit(X, y) and get_support()
        For example :class:`~skcalib.selection.MaxEntropySelector` or
        :class:`~skcalib.selection.DifficultySelector`. A clone is fitted on all samples.

    Attributes
    ----------
    selector_ : object
        The fitted selector.
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted: those of all samples, chosen or not, and others that the classifier
        knows.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number and names of features, if `estimator_` has them.

    See Also
    --------
    MaxEntropySelector : Choose the samples that a model is least confident about.
    DifficultySelector : Choose the easiest samples, or the hardest.
    skcalib.nets.EpochPrioritizer : Choose again in every epoch of training.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skcalib.selection import MaxEntropySelector, SubsetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500)
    >>> clf = SubsetClassifier(model, MaxEntropySelector(model, fraction=0.6)).fit(X, y)
    >>> int(clf.selector_.get_support().sum())
    90
    >>> round(clf.score(X, y), 2)
    0.98
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "selector": [HasMethods(["fit", "get_support"])],
    }

    def __init__(self, estimator: Any, selector: Any) -> None:
        self.estimator = estimator
        self.selector = selector

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **fit_params: Any
    ) -> Self:
        """Choose samples, then fit the classifier on them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, for `estimator`, and for `selector` if it takes weights. With
            metadata routing, each gets them if it requests them.
        **fit_params : dict
            Further parameters of ``estimator.fit``; those with one entry per sample are sliced to
            the chosen samples. With metadata routing, they go where they are requested.

        Returns
        -------
        self : SubsetClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If `y` has only one class or is not an array of class labels, if a weight is negative,
            or if weights are given and the classifier takes none.

        Warns
        -----
        SkcalibWarning
            If no sample of a class is chosen: the class will get probability 0.
        """
        X, labels = read_samples(X, y)
        weight = check_weights(sample_weight, len(labels))
        check_several_classes(np.unique(labels if weight is None else labels[weight > 0]))
        warn_if_fitted(estimator=self.estimator, selector=self.selector)
        params = get_inner_fit_params(self, "estimator", weight, fit_params)
        selector_params = self._selector_params(weight, fit_params)
        self.selector_ = fit_clone(self.selector, X, labels, params=selector_params)
        rows = self.selector_.get_support(indices=True)
        # A class without a chosen sample still has a column.
        self._keep(fit_clone(self.estimator, X, labels, rows, params), labels)
        lost = np.setdiff1d(labels, labels[rows])
        if lost.size:
            warn(
                f"No sample of class {format_labels(lost)[1:-1]} was selected; "
                "its probability will be 0. Select a larger fraction."
            )
        return self

    def _selector_params(
        self, weight: NDArray | None, fit_params: dict[str, Any]
    ) -> dict[str, Any]:
        # Without routing, `fit_params` are for the estimator only.
        if _routing_enabled():
            return get_inner_fit_params(self, "selector", weight, fit_params)
        if weight is None or not has_argument(self.selector.fit, "sample_weight"):
            return {}
        return {"sample_weight": weight}

    def _inside(self) -> dict[str, Any]:
        return {"estimator": self.estimator, "selector": self.selector}
