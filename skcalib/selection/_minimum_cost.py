"""A classifier that takes the decision of least expected cost."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..metrics._expected_cost import check_costs, compute_costs_of_decisions
from ..utils._arrays import as_features, check_weights
from ..utils._backends import by_chunks
from ..utils._compat import HasMethods, _fit_context, _num_samples
from ..utils._estimators import (
    DelegatingClassifier,
    fit_clone,
    get_inner_fit_params,
    predict_columns,
    read_samples,
    warn_if_fitted,
)
from ..utils._labels import check_several_classes, encode, get_row_names, order_columns


class MinimumCostClassifier(DelegatingClassifier):
    """Predict the decision of least expected cost.

    For every sample, `predict` returns the decision d with the least ``sum_k costs[d, k] p_k``
    [1]_. Decisions are the classes, or others, of any number: a row of equal costs is asking a
    person, who is right and costs that much. The probabilities have to be right for this:
    calibrate the classifier, for instance
    ``MinimumCostClassifier(PostHocCalibratedClassifier(model), costs)``.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        The classifier, of which a clone is fitted. Pass a trained one as
        ``sklearn.frozen.FrozenEstimator(model)``.
    costs : array-like of shape (n_decisions, n_classes) or callable
        Cost of every decision for every true class, in the order of the sorted classes, in any
        unit; negative = gain. A callable takes X, as `predict` gets it, and returns one table for
        all samples or an array of shape (n_samples, n_decisions, n_classes), as where a fraud
        costs its amount. The columns of a frame that have names are matched to the classes by
        them.
    decisions : array-like of shape (n_decisions,), default=None
        What `predict` returns for the rows of `costs`. None means the names of the rows if `costs`
        is a frame that has such, else the classes, sorted, where there are as many rows.

    Attributes
    ----------
    decisions_ : ndarray of shape (n_decisions,)
        The decisions, in the order of the rows of `costs`.
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted: those of `y`, and others that the classifier knows.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number and names of features, if `estimator_` has them.

    See Also
    --------
    SelectiveClassifier : Declines to answer by a limit of the error rate, without costs.
    skcalib.metrics.expected_cost : What the decisions cost.
    skcalib.metrics.cost_summary : Beside constant decisions and a recalibrated model.
    skcalib.posthoc.PostHocCalibratedClassifier : Calibrates the probabilities.
    sklearn.model_selection.TunedThresholdClassifierCV : A threshold for two classes, found by
        cross-validation of a score.

    Notes
    -----
    `score` is minus the mean cost, so a search of scikit-learn minimizes the cost without
    `scoring`. Of decisions of equal expected cost, the first is taken.

    References
    ----------
    .. [1] C. Elkan, "The Foundations of Cost-Sensitive Learning", IJCAI 2001.

    Examples
    --------
    Missing a malignant tumor costs 50, a false alarm 5, asking an expert 1:

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skcalib.selection import MinimumCostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)  # 0 is malignant
    >>> model = make_pipeline(StandardScaler(), LogisticRegression())
    >>> clf = MinimumCostClassifier(
    ...     model, [[0, 5], [50, 0], [1, 1]], decisions=["malignant", "benign", "ask"]
    ... )
    >>> clf.fit(X[::2], y[::2]).predict(X[1::2])[:4].tolist()
    ['malignant', 'malignant', 'ask', 'malignant']
    >>> round(clf.score(X[1::2], y[1::2]), 2)
    -0.54
    """

    decisions_: NDArray[Any]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict", "predict_proba"])],
        "costs": ["array-like", callable],
        "decisions": ["array-like", None],
    }

    def __init__(self, estimator: Any, costs: Any, *, decisions: ArrayLike | None = None) -> None:
        self.estimator = estimator
        self.costs = costs
        self.decisions = decisions

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: ArrayLike, **fit_params: Any) -> Self:
        """Fit the classifier, unless it is frozen, and check the costs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Class labels.
        **fit_params : dict
            Passed to ``estimator.fit``, such as `sample_weight` or `groups`.

        Returns
        -------
        self : MinimumCostClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If `costs` has no column for every class, or `decisions` no entry for every row.
        """
        X, labels = read_samples(X, y)
        check_several_classes(np.unique(labels))
        warn_if_fitted(estimator=self.estimator)
        params = get_inner_fit_params(self, "estimator", None, fit_params)
        fitted = fit_clone(self.estimator, X, labels, None, params)
        self._keep(fitted, labels)
        table = self._costs(X)
        self.decisions_ = self._read_decisions(table.shape[-2])
        return self

    def _costs(self, X: Any) -> NDArray[np.float64]:
        """Return the costs, of all samples or of every one."""
        costs = self.costs(X) if callable(self.costs) else self.costs
        if not callable(self.costs) and np.ndim(costs) != 2:
            raise ValueError(
                "costs must have shape (n_decisions, n_classes), or be a function of X that "
                f"returns costs of every sample, got shape {np.shape(costs)}."
            )
        costs = order_columns(costs, self.classes_, name="costs")
        return check_costs(costs, _num_samples(X), len(self.classes_))

    def _read_decisions(self, n_decisions: int) -> NDArray[Any]:
        decisions = get_row_names(self.costs) if self.decisions is None else self.decisions
        if decisions is None:
            if n_decisions != len(self.classes_):
                raise ValueError(
                    "decisions must name the rows of costs unless they are the "
                    f"{len(self.classes_)} classes, got {n_decisions} rows."
                )
            return self.classes_
        decisions = np.asarray(decisions)
        if decisions.shape != (n_decisions,):
            raise ValueError(
                f"decisions must have one entry for every row of costs, {n_decisions}, "
                f"got shape {decisions.shape}."
            )
        return decisions

    @by_chunks
    def expected_costs(self, X: Any) -> NDArray[np.float64]:
        """Return the expected cost of every decision.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        costs : ndarray or dask array of shape (n_samples, n_decisions)
            In the order of `decisions_`. Lazy if X is a dask array.
        """
        check_is_fitted(self)
        X = as_features(X)
        return compute_costs_of_decisions(
            predict_columns(self.estimator_, X, self.classes_), self._costs(X)
        )

    @by_chunks
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the decision of least expected cost.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        decisions : ndarray or dask array of shape (n_samples,)
            Entries of `decisions_`. Lazy if X is a dask array.
        """
        check_is_fitted(self)
        return self.decisions_[self.expected_costs(X).argmin(axis=1)]

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the mean cost of the decisions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            In the unit of `costs`, larger = better.
        """
        check_is_fitted(self)
        X, labels = read_samples(X, y)
        codes = encode(labels, self.classes_)
        costs, decided = self._costs(X), self.expected_costs(X).argmin(axis=1)
        rows = np.arange(len(codes))
        of_samples = costs[decided, codes] if costs.ndim == 2 else costs[rows, decided, codes]
        weight = check_weights(sample_weight, len(codes))
        return -float(np.average(of_samples, weights=weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # `score` is a cost, not an accuracy.
        tags.classifier_tags.poor_score = True
        return tags
