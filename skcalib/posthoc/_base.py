"""What every post-hoc calibrator shares: reading scores, labels and weights; predicting."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import Tags, assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..utils._private import StrOptions, _fit_context
from ..utils._proba import check_values
from ..utils._validation import check_weights

# Where a probability is 0 its logit is unknown, not infinite: a model that counts votes or
# rounds would otherwise let a single such row decide the whole fit.
SMALLEST_PROBABILITY = 1e-12


class PostHocCalibrator(ClassifierMixin, TransformerMixin, BaseEstimator):
    """Base of the calibrators that map the scores of a trained model to probabilities.

    A subclass implements ``_fit(scores, y, sample_weight)``, with `scores` as the user gave them
    and `y` the column of every label, and ``_predict_proba(scores)``. It asks :meth:`_logits`
    or :meth:`_proba` for the form of the scores that it needs.
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "input": [StrOptions({"logits", "proba"})],
        "classes": ["array-like", None],
    }

    input: str
    classes: ArrayLike | None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the calibrator to scores of rows that the model was not trained on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Logits, or probabilities where ``input="proba"``, one column a class in the
            order of `classes_`; for two classes also the score of the second class alone.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a weight of k counts as k equal rows.

        Returns
        -------
        self : object
            The fitted calibrator.
        """
        scores = self._read_scores(X, reset=True)
        self.classes_, codes = self._read_labels(y, max(2, scores.shape[1]))
        check_consistent_length(scores, codes)
        weight = check_weights(sample_weight, len(codes))
        if weight is not None:
            used = weight > 0
            scores, codes, weight = scores[used], codes[used], weight[used]
        self._fit(scores, codes, weight)
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the form that `fit` was given.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`; rows sum to 1.
        """
        check_is_fitted(self)
        return self._predict_proba(self._read_scores(X, reset=False))

    def transform(self, X: ArrayLike) -> NDArray:
        """Return calibrated probabilities, as :meth:`predict_proba` does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the form that `fit` was given.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`.
        """
        return self.predict_proba(X)

    def predict(self, X: ArrayLike) -> NDArray:
        """Return the class of the largest calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the form that `fit` was given.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted labels.
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Return the names of the columns of :meth:`transform`: ``proba_<class>``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Not used.

        Returns
        -------
        names : ndarray of shape (n_classes,)
            Names of the columns.
        """
        check_is_fitted(self)
        return np.asarray([f"proba_{label}" for label in self.classes_], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Columns of features are not scores of classes: nothing could be learned from them.
        tags.classifier_tags.poor_score = True
        return tags

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        raise NotImplementedError

    def _predict_proba(self, scores: NDArray) -> NDArray:
        raise NotImplementedError

    def _read_scores(self, X: ArrayLike, reset: bool) -> NDArray:
        n_axes = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
        if n_axes == 1 and (reset or self.n_features_in_ == 1):
            X = np.asarray(X).reshape(-1, 1)
        scores = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])
        if self.input == "proba":
            proba = scores[:, 0] if scores.shape[1] == 1 else scores
            check_values(proba, name="X")
        return scores

    def _read_labels(self, y: ArrayLike, n_classes: int) -> tuple[NDArray, NDArray]:
        """Return the label of every column and the column of every row's label."""
        target = column_or_1d(y, warn=True)
        assert_all_finite(target, input_name="y")
        check_classification_targets(target)
        labels = np.unique(target)
        if self.classes is not None:
            return self._look_up(target, labels, n_classes)
        numbers = labels.dtype.kind in "iuf" and len(labels) > 1
        if numbers and np.isin(labels, np.arange(n_classes)).all():
            return np.arange(n_classes, dtype=labels.dtype), target.astype(np.intp)
        if len(labels) != n_classes:
            raise ValueError(
                f"X must have one column per class: got {n_classes} classes in X and "
                f"{len(labels)} class{'es' * (len(labels) > 1)} in y. Where y lacks a class, "
                "name all of them in `classes`."
            )
        return labels, np.searchsorted(labels, target)

    def _look_up(
        self, target: NDArray, labels: NDArray, n_classes: int
    ) -> tuple[NDArray, NDArray]:
        classes = column_or_1d(self.classes)
        column = {label: k for k, label in enumerate(classes.tolist())}
        if len(column) != n_classes or len(classes) != n_classes:
            raise ValueError(
                f"classes must hold {n_classes} distinct labels, one per class of X; "
                f"got {classes.tolist()}."
            )
        unknown = [label for label in labels.tolist() if label not in column]
        if unknown:
            raise ValueError(f"y must hold labels of `classes` alone; got {unknown[0]!r}.")
        columns = np.array([column[label] for label in labels.tolist()])
        return classes, columns[np.searchsorted(labels, target)]

    def _logits(self, scores: NDArray) -> NDArray:
        """Return one logit a class, up to a constant of the row."""
        if self.input == "logits":
            return _with_zero_column(scores) if scores.shape[1] == 1 else scores
        floor = scores.dtype.type(SMALLEST_PROBABILITY)
        if scores.shape[1] == 1:
            scores = np.hstack([1 - scores, scores])
        return np.log(np.maximum(scores, floor))

    def _proba(self, scores: NDArray) -> NDArray:
        """Return one probability a class."""
        if self.input == "logits":
            return softmax(self._logits(scores), axis=1)
        return np.hstack([1 - scores, scores]) if scores.shape[1] == 1 else scores


def _with_zero_column(scores: NDArray) -> NDArray:
    return np.hstack([np.zeros_like(scores), scores])
