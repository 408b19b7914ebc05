"""Distances of samples to all classes that owe nothing to the labels of the samples themselves."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ..difficulty import RelativeMahalanobisScorer
from ..utils import SkcalibWarning
from ..utils._estimators import (
    class_columns,
    fit_clone,
    folds_of,
    last_step,
    out_of_fold,
    weight_params,
)
from ..utils._labels import class_positions
from ..utils._proba import LOSS_FLOOR

# Part of the logarithm of the determinant that counts. All of it is right if the labels are: it
# is better for classes of unequal size (CLINC150, 3 to 90 samples a class: precision of near flips
# .76, .79, .82 with none, half, all of it) and worse for few samples with wrong labels, whose
# numbers mean less (5 a class, 20 % random flips: labels right after repair .940, .929, .920).
_DETERMINANT = 0.5


def scores_left_out(estimator: Any) -> bool:
    """Tell whether an estimator, or the last step of a Pipeline, leaves samples out itself."""
    return isinstance(last_step(estimator)[0], RelativeMahalanobisScorer)


class LeaveOneOut:
    """Distances by a scorer of Gaussians, or by a Pipeline that ends in one.

    The samples pass through the transformers of the Pipeline once.
    """

    def __init__(self, estimator: Any, X: Any, y: NDArray, weight: NDArray | None) -> None:
        self.X, self.fitted = X, clone(estimator)
        self.weight = np.ones(len(y)) if weight is None else weight
        if weight is not None:
            _check_counts(y, weight)
        # A Pipeline at the end of a Pipeline is one: its transformers are at work one by one.
        self.scorer = self.fitted
        while isinstance(self.scorer, Pipeline):
            pipeline, self.scorer = self.scorer, self.scorer[-1]
            if len(pipeline) > 1:
                transformers = pipeline[:-1]
                self.X = transformers.fit_transform(self.X, y)
                # With memory, a Pipeline fits copies of its steps.
                pipeline.steps[:-1] = transformers.steps

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        """Return the distances by a fit to these labels; infinite to classes without any."""
        self.labels = labels
        with warnings.catch_warnings():
            # Here, a sample that is alone in its class is left out, and found suspicious.
            warnings.filterwarnings("ignore", ".* have a single sample", SkcalibWarning)
            self.scorer.fit(self.X, labels, self.weight)
        # The background is a constant of the sample until distances are scaled. What is left out
        # is left out of the sums of the fit, so that another parameter needs no other fit.
        plain = copy(self.scorer).set_params(relative=False)
        left_out = plain.leave_one_out_transform(self.X, labels, self.weight)
        own = class_positions(labels, plain.classes_)
        self.own_distance = left_out[np.arange(len(own)), np.maximum(own, 0)].astype(np.float64)
        member = np.flatnonzero((own >= 0) & (self.weight > 0))
        self._predict(left_out, plain.class_count_, member, own[member])
        if len(plain.classes_) == len(classes):
            return left_out
        distances = np.full((len(labels), len(classes)), np.inf, dtype=left_out.dtype)
        distances[:, class_positions(plain.classes_, classes)] = left_out
        return distances

    def difficulty(self) -> NDArray[np.float64]:
        """Return the difficulty of the samples with the labels of the last fit."""
        # As `leave_one_out_difficulty` has it; the other half is known.
        return self.own_distance - self.scorer._leave_one_out_background(
            self.X, self.labels, self.weight
        )

    def _predict(
        self,
        left_out: NDArray,
        size: NDArray[np.float64],
        member: NDArray[np.intp],
        own: NDArray[np.intp],
    ) -> None:
        """Turn distances to means of few samples into those of a new sample, in place.

        The mean of m samples errs by 1/m of the variance, which widens the Gaussian of a new
        sample by 1 + 1/m: its distance shrinks, and the logarithm of its determinant grows.
        """
        left_out *= (size / (size + 1.0)).astype(left_out.dtype)
        # The own class is without the sample: rest / (rest + 1) instead of size / (size + 1). With
        # no rest, the distance is infinite and a factor of 0 would make it NaN.
        rest = size[own] - np.minimum(self.weight[member], 1.0)
        change = rest / (rest + 1.0) * (size[own] + 1.0) / size[own]
        left_out[member, own] *= np.where(rest > 0, change, 1.0)
        of_members = left_out[member, own]
        # Of independent features, this would be their number.
        n_features = np.median(of_members[np.isfinite(of_members)])
        penalty = _DETERMINANT * n_features * np.log1p(1.0 / size)
        left_out += penalty.astype(left_out.dtype)
        # One sample does not make a class that others could belong to.
        left_out[:, size <= 1.0] = np.inf


def _check_counts(y: NDArray, weight: NDArray[np.float64]) -> None:
    """Raise where weights, which count samples, leave fewer than two classes of several."""
    classes, codes = np.unique(y, return_inverse=True)
    total = np.bincount(codes, weight, minlength=len(classes))
    if np.count_nonzero(total > 1) < 2:
        raise ValueError(
            "sample_weight must count samples, more than one in at least two classes (weights "
            f"that sum to 1 do not), got a total of {total.max():.3g} in the largest class."
        )


class OutOfFold:
    """Distances -2 log p by the out-of-fold probabilities of a classifier.

    A frozen classifier is asked as it is: it has to be one that has not seen the samples.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: NDArray,
        weight: NDArray[np.float64] | None,
        cv: Any,
        groups: ArrayLike | None = None,
    ) -> None:
        self.X, self.estimator = X, estimator
        self.params = {} if weight is None else weight_params(estimator, weight)
        # By the given labels, so that all refits share their folds.
        self.folds = folds_of(cv, X, y, groups)

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        """Return the distances by fits to these labels; large to classes that a fit lacks."""
        self.labels = labels
        if isinstance(self.estimator, FrozenEstimator):
            proba = class_columns(self.estimator, self.X, classes)
        else:
            proba = out_of_fold(
                self.estimator, self.X, labels, self.folds, classes=classes, params=self.params
            )
        distances = -2.0 * np.log(np.maximum(proba, LOSS_FLOOR))
        self.log_loss = 0.5 * distances[np.arange(len(labels)), class_positions(labels, classes)]
        return distances

    @property
    def fitted(self) -> Any:
        """The classifier, fitted on all samples with the labels of the last fits."""
        return fit_clone(self.estimator, self.X, self.labels, params=self.params)

    def difficulty(self) -> NDArray[np.float64]:
        """Return the out-of-fold log-loss of the samples with the labels of the last fit."""
        return self.log_loss
