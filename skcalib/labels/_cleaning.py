"""Train a classifier on labels that have been cleaned."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..utils import SkcalibWarning
from ..utils._arrays import as_features
from ..utils._estimators import (
    check_fit_takes,
    common_input_tags,
    fit_router,
    inner_fit_params,
    show_inner,
)
from ..utils._features import samples_and_labels
from ..utils._labels import class_positions
from ..utils._private import (
    HasMethods,
    StrOptions,
    _check_method_params,
    _estimator_has,
    _fit_context,
    _routing_enabled,
    _safe_indexing,
)
from ..utils._validation import check_weights
from ._issues import LabelIssueFinder

# Part of the probability of a sample that its soft labels hold.
_SOFT_MASS = 0.99


class LabelCleaningClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Classifier trained on cleaned labels.

    `fit` judges the labels of the training samples of this very call, cleans them, and fits the
    classifier on the result. Under cross-validation, nothing leaks from the validation fold, whose
    labels are the given ones.

    Parameters
    ----------
    estimator : classifier
        The classifier. A clone is fitted.
    finder : LabelIssueFinder, default=None
        What judges the labels. A clone is fitted; None means ``LabelIssueFinder()``. Its scorer
        may be a Pipeline that embeds the samples first.
    action : {"soft", "relabel", "drop", "weight"}, default="soft"
        What happens to the labels:

        - "soft": every sample is learned with all labels that it may have, weighted by their
          probabilities. A classifier whose `fit` has a parameter ``target_proba``, as
          :class:`~skcalib.nets.CalibratedNetClassifier` has, gets the probabilities of all
          classes and the labels as given. For any other, a sample is repeated with the most
          probable labels that together have a probability of .99.
        - "relabel": issues get their suggested label.
        - "drop": issues are left out.
        - "weight": every sample keeps its label, weighted by the probability that it is right.

        "weight" needs a classifier whose `fit` takes ``sample_weight``, and so does "soft"
        without ``target_proba``.

    Attributes
    ----------
    finder_ : LabelIssueFinder
        The fitted finder; samples of weight 0 are left out of it.
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Of `estimator_`, where it has them.

    See Also
    --------
    LabelIssueFinder : The labels alone.
    skcalib.difficulty.DifficultyAwareClassifier : Weights that follow difficulty.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcalib.datasets import flip_labels
    >>> from skcalib.difficulty import RMDScorer
    >>> from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder
    >>> X, y = load_digits(return_X_y=True)
    >>> given, _ = flip_labels(y[:900], fraction=0.4, random_state=0)
    >>> plain = LogisticRegression(C=1e-3, max_iter=1000)
    >>> finder = LabelIssueFinder(make_pipeline(PCA(30, random_state=0), RMDScorer()))
    >>> cleaning = LabelCleaningClassifier(plain, finder)
    >>> for model in (plain, cleaning):
    ...     print(round(model.fit(X[:900], given).score(X[900:], y[900:]), 2))
    0.87
    0.91
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "finder": [LabelIssueFinder, None],
        "action": [StrOptions({"soft", "relabel", "drop", "weight"})],
    }

    def __init__(
        self, estimator: Any, finder: LabelIssueFinder | None = None, *, action: str = "soft"
    ) -> None:
        self.estimator = estimator
        self.finder = finder
        self.action = action

    # The parameters of the classifier and of the finder are theirs to validate.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        verified: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Judge and clean the labels, then fit the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of n_samples objects
            Whatever the finder and the classifier take.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, for the finder and for the classifier.
        verified : array-like of shape (n_samples,), dtype bool, default=None
            Samples whose label is known to be right; for the finder.
        **fit_params : dict
            Further parameters of ``estimator.fit``; those with one entry a sample go along with
            the samples.

        Returns
        -------
        self : LabelCleaningClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If the classifier does not take the weights that it needs.

        Warns
        -----
        SkcalibWarning
            If no sample of a class is left; its probability will be 0.
        """
        X, labels = samples_and_labels(X, y)
        weight = check_weights(sample_weight, len(labels))
        # With metadata routing, this is where weights that nobody has asked for are refused.
        to_route = weight if _routing_enabled() else None
        params = inner_fit_params(self, "estimator", to_route, fit_params)
        target_name = _target_parameter(self.estimator) if self.action == "soft" else None
        repeats = self.action == "soft" and target_name is None
        if weight is not None or repeats or self.action == "weight":
            weight_name = _weight_parameter(self.estimator)
            # The weights come in again below, for the samples that are learned.
            params.pop(weight_name, None)
        used = np.arange(len(labels)) if weight is None else np.flatnonzero(weight)
        self.finder_ = self._fitted_finder(X, labels, weight, verified, used)
        self.classes_ = self.finder_.classes_
        rows, cleaned, factor = self._cleaned(labels[used], repeats=repeats)
        rows = used[rows]
        params = _check_method_params(X, params, indices=rows)
        if factor is not None or weight is not None:
            given = 1.0 if weight is None else weight[rows]
            params[weight_name] = given * (1.0 if factor is None else factor)
        if target_name is not None:
            params[target_name] = self.finder_.label_proba_
        self._warn_of_lost(cleaned)
        self.estimator_ = clone(self.estimator).fit(_safe_indexing(X, rows), cleaned, **params)
        show_inner(self, self.estimator_)
        return self

    def _fitted_finder(
        self,
        X: Any,
        labels: NDArray[Any],
        weight: NDArray[np.float64] | None,
        verified: ArrayLike | None,
        used: NDArray[np.intp],
    ) -> LabelIssueFinder:
        finder = LabelIssueFinder() if self.finder is None else clone(self.finder)
        if len(used) == len(labels):
            return finder.fit(X, labels, weight, verified)
        return finder.fit(
            _safe_indexing(X, used),
            labels[used],
            None if weight is None else weight[used],
            None if verified is None else np.asarray(verified)[used],
        )

    def _cleaned(
        self, labels: NDArray[Any], *, repeats: bool
    ) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[np.float64] | None]:
        """Return the samples to learn (some of them repeatedly), their labels, and weights."""
        issues, everything = self.finder_.issues_, np.arange(len(labels))
        issue = issues["is_issue"].astype(bool)
        if self.action == "drop":
            return everything[~issue], labels[~issue], None
        if self.action == "relabel":
            suggested = issues["suggested_label"].astype(labels.dtype)
            return everything, np.where(issue, suggested, labels), None
        if self.action == "weight":
            return everything, labels, issues["p_label_correct"].astype(np.float64)
        if not repeats:
            return everything, labels, None
        rows, columns, weights = soft_labels(self.finder_.label_proba_)
        return rows, self.finder_.classes_[columns], weights

    def _warn_of_lost(self, cleaned: NDArray[Any]) -> None:
        lost = np.setdiff1d(self.classes_, cleaned)
        if len(lost):
            warnings.warn(
                f"No sample of class {', '.join(map(repr, lost.tolist()))} is left after the "
                "cleaning; its probability will be 0.",
                SkcalibWarning,
                stacklevel=4,
            )

    @available_if(_estimator_has("predict"))
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict with the fitted classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        return self.estimator_.predict(as_features(X))

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Class probabilities of the fitted classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`; 0 for a class of which no sample was left.
        """
        check_is_fitted(self)
        proba = self.estimator_.predict_proba(as_features(X))
        if proba.shape[1] == len(self.classes_):
            return proba
        # The classifier has columns for the classes that were left; they move to their places.
        full = np.zeros((len(proba), len(self.classes_)), dtype=proba.dtype)
        full[:, class_positions(self.estimator_.classes_, self.classes_)] = proba
        return full

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Decision function of the fitted classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            As the classifier defines them, for ``estimator_.classes_``.
        """
        check_is_fitted(self)
        return self.estimator_.decision_function(as_features(X))

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            `sample_weight` and `verified` are used by this object; further metadata of `fit` goes
            to the classifier, as it requests.
        """
        return fit_router(self, estimator=self.estimator)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        finder = LabelIssueFinder() if self.finder is None else self.finder
        tags.input_tags = common_input_tags(self.estimator, finder)
        tags.classifier_tags = get_tags(self.estimator).classifier_tags
        return tags


def soft_labels(
    label_proba: NDArray, mass: float = _SOFT_MASS
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Return (samples, classes, weights) of the most probable labels of each sample.

    As many as have a probability of `mass` together; the weights of a sample add up to one.
    """
    order = np.argsort(-label_proba, axis=1, kind="stable")
    ranked = np.take_along_axis(label_proba, order, axis=1).astype(np.float64)
    # What stands before a label decides whether it is still needed: the first always is.
    before = np.cumsum(ranked, axis=1) - ranked
    kept = before < mass
    ranked[~kept] = 0.0
    ranked /= ranked.sum(axis=1, keepdims=True)
    samples, places = np.nonzero(kept)
    return samples, order[samples, places], ranked[samples, places]


def _weight_parameter(estimator: Any) -> str:
    """Return the name under which `fit` takes the weights of the samples."""
    hint = " (action='relabel' and action='drop' need none)"
    final, prefix = _final_step(estimator)
    check_fit_takes(final, "sample_weight", hint)
    return prefix + "sample_weight"


def _target_parameter(estimator: Any) -> str | None:
    """Return the name under which `fit` takes probabilities as targets; None if it does not."""
    final, prefix = _final_step(estimator)
    if isinstance(final, Pipeline):  # it passes on what its steps request
        requested = get_routing_for_object(final).consumes("fit", ["target_proba"])
        return "target_proba" if requested else None
    # By its name: what ``**fit_params`` would do with it is anybody's guess.
    return prefix + "target_proba" if has_fit_parameter(final, "target_proba") else None


def _final_step(estimator: Any) -> tuple[Any, str]:
    """Return the last step of a Pipeline, and the prefix of its parameters of `fit`.

    With metadata routing, the Pipeline itself, which takes them without a prefix.
    """
    final, prefix = estimator, ""
    while isinstance(final, Pipeline) and not _routing_enabled():
        step, final = final.steps[-1]
        prefix += f"{step}__"
    return final, prefix
