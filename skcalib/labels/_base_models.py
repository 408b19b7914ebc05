"""Base models: how far is every sample from every class, predicted without its label?

Gaussians leave one sample out in closed form, neighbors do not count the sample itself, a forest
uses the trees that were not trained on it, and any other classifier is fitted on the other folds.
A probability p counts as the distance -2 log p.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_array, gen_batches

from ..difficulty import RelativeMahalanobisScorer
from ..difficulty._mahalanobis import make_gaussians_without
from ..metrics import check_alignment
from ..utils._arrays import reword
from ..utils._compat import StratifiedGroupKFold, _safe_indexing
from ..utils._estimators import (
    Folds,
    fit_clone,
    get_group_params,
    get_last_step,
    get_weight_params,
    make_folds,
    predict_columns,
    predict_out_of_fold,
)
from ..utils._labels import as_labels, find_positions, format_labels, match_columns
from ..utils._output import collecting, format_count, ignoring, warn
from ..utils._proba import LOSS_FLOOR, check_proba_matrix, holds_proba
from ._constants import (
    LARGEST_RATIO,
    MOST_OF_FOREST,
    MOST_OF_NEIGHBORS,
    MOST_OF_REGRESSION,
    N_TREES,
    NUMBERS_OF_NEIGHBORS,
    SOME_SAMPLES,
)

# Classifiers for which the scales of the columns matter.
_SCALE_MATTERS = tuple(
    f"sklearn.{family}" for family in ("linear_model", "neighbors", "neural_network", "svm")
)
# Numbers in a block of rows; only for memory.
_BLOCK = 2**17
# Stands for an infinite distance: exp(-FAR / 2) is 0, and so is 0 * FAR.
LARGEST_DISTANCE = 1e6


@dataclass
class ByRows:
    """A lazy matrix of shape (n_samples, n_classes): rows are computed each time they are read."""

    of_rows: Callable[[Any], NDArray]
    shape: tuple[int, int]

    def __getitem__(self, rows: slice | NDArray) -> NDArray:
        return self.of_rows(rows)

    def filled(self) -> NDArray:
        """Return the matrix as an array."""
        result = np.empty(self.shape, dtype=self[:1].dtype)
        for rows in iter_blocks(self.shape):
            result[rows] = self[rows]
        return result


def iter_blocks(shape: tuple) -> Iterator[slice]:
    """Yield blocks of the rows of a matrix."""
    return gen_batches(shape[0], max(1, _BLOCK // shape[1]))


class BaseModel(Protocol):
    """A model that gives distances to classes; `fitted` is its fitted estimator or None."""

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray | ByRows:
        """Fit to these labels; return (n_samples, n_classes), each sample left out of its fit."""

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return distances of new samples, (n_new, n_classes), by the last fit."""


class LeaveOneOut:
    """Distances by a RelativeMahalanobisScorer, or by a Pipeline that ends in one.

    This is the only base model with `novelty`: its distances also say whether a sample is far from
    all classes. The transformers of the Pipeline are fitted once."""

    def __init__(self, estimator: Any, X: Any, y: NDArray, weight: NDArray | None) -> None:
        self.X, self.fitted = X, clone(estimator)
        self.weight = np.ones(len(y)) if weight is None else weight
        if weight is not None:
            _check_counts(y, weight)
        # Also look into a Pipeline that ends in a Pipeline.
        self.scorer, self.transformers = self.fitted, []  # type: Any, list[Any]
        while isinstance(self.scorer, Pipeline):
            pipeline, self.scorer = self.scorer, self.scorer[-1]
            if len(pipeline) > 1:
                transformers = pipeline[:-1]
                self.X = transformers.fit_transform(self.X, y)
                self.transformers.append(transformers)
                # A Pipeline with `memory` fits copies of its steps: keep the fitted ones.
                pipeline.steps[:-1] = transformers.steps

    def distances(self, labels: NDArray, classes: NDArray) -> ByRows:
        """Return the distances by a fit to these labels; infinite to classes without a sample.

        Distances are corrected for classes with few samples. The mean of m samples has 1/m of the
        variance of a sample, so a new sample is distributed around it with 1 + 1/m times the
        variance: its squared distance is divided by that, a factor of m / (m + 1). (The log
        determinant would grow too. It is left out: class sizes mean little if labels are wrong.)
        """
        with collecting() as notes:
            self.scorer.fit(self.X, labels, self.weight)
        for note in notes:
            # No warning: here, the only sample of a class is left out, and becomes suspicious.
            if " have a single sample" not in note:
                warn(note)
        # Without the background distance: it is the same for all classes of a sample, and the
        # factors below would scale it. `relative` has no effect on the fitted sums, so a copy with
        # another value needs no second fit.
        plain = copy(self.scorer).set_params(relative=False)
        gaussians, *fitted = make_gaussians_without(plain, self.X, labels, self.weight)
        member = (find_positions(labels, plain.classes_) >= 0) & (self.weight > 0)
        size, (_, own, lost) = plain.class_count_, fitted
        factor, rest = size / (size + 1.0), size[own] - lost
        # The own class has lost the sample: m is `rest`. If it is 0, the distance is infinite, and
        # a factor of 0 would give NaN.
        of_own = np.where(member & (rest > 0), rest / (rest + 1.0), factor[own])
        # No other sample can belong to a class of one sample.
        penalty = np.where(size > 1.0, 0.0, np.inf)
        columns = find_positions(plain.classes_, classes)
        self._of_classes = plain, factor, penalty, columns

        def of_rows(rows: slice | NDArray) -> NDArray:
            found = gaussians.to_all(*(values[rows] for values in fitted))
            samples, label = np.arange(len(found)), own[rows]
            to_own = found[samples, label] * of_own[rows]
            found *= factor.astype(found.dtype)
            found[samples, label] = to_own
            found += penalty.astype(found.dtype)
            result = np.full((len(found), len(classes)), np.inf, dtype=found.dtype)
            result[:, columns] = found
            return result

        return ByRows(of_rows, (len(labels), len(classes)))

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return the distances of new samples."""
        plain, factor, penalty, columns = self._of_classes
        found = plain.transform(apply_transformers(X, self.transformers))
        result = np.full((len(found), len(classes)), np.inf, dtype=found.dtype)
        result[:, columns] = found * factor + penalty
        return result


def _check_counts(y: NDArray, weight: NDArray[np.float64]) -> None:
    """Raise an error unless two classes have a total weight above 1: weights count samples."""
    classes, codes = np.unique(y, return_inverse=True)
    total = np.bincount(codes, weight, minlength=len(classes))
    if np.count_nonzero(total > 1) < 2:
        raise ValueError(
            "sample_weight must count samples, more than one in at least two classes (weights "
            f"that sum to 1 do not), got a total of {format_count(total.max())} in the largest "
            "class."
        )


class OutOfFold:
    """Distances by the out-of-fold probabilities of a classifier.

    A frozen classifier is not fitted: it must not have been trained on the samples. `n_votes`: see
    `_compute_distances_of_proba`.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        weight: NDArray | None,
        folds: Folds,
        n_votes: float = np.inf,
        groups: NDArray[np.intp] | None = None,
    ) -> None:
        self.X, self.estimator, self.folds, self.n_votes = X, estimator, folds, n_votes
        self.params = {} if weight is None else get_weight_params(estimator, weight)
        self.params |= get_group_params(estimator, groups)

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        """Return the distances by fits to these labels; large to classes that a fold lacks."""
        self.labels = labels
        if isinstance(self.estimator, FrozenEstimator):
            proba = predict_columns(self.estimator, self.X, classes, leave_out=True)
        else:
            proba = predict_out_of_fold(
                self.estimator,
                self.X,
                labels,
                self.folds,
                classes=classes,
                params=self.params,
                leave_out=True,
            )
            proba = self.folds.average(proba)
        return _compute_distances_of_proba(proba, self.n_votes)

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return the distances of new samples, by a fit to all samples."""
        frozen = isinstance(self.estimator, FrozenEstimator)
        model = self.estimator if frozen else self.fitted
        return _compute_distances_of_proba(
            predict_columns(model, X, classes, leave_out=True), self.n_votes
        )

    @property
    def fitted(self) -> Any:
        """The classifier, fitted to all samples with the labels of the last fit."""
        return fit_clone(self.estimator, self.X, self.labels, params=self.params)


class _Regression(OutOfFold):
    """A logistic regression on standardized features; it need not converge."""

    def __init__(self, X: Any, weight: NDArray | None, folds: Folds) -> None:
        super().__init__(LogisticRegression(C=0.1, max_iter=60, tol=1e-3), X, weight, folds)

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        with ignoring(ConvergenceWarning):
            return super().distances(labels, classes)

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        with ignoring(ConvergenceWarning):
            return super().of_new(X, classes)


class OutOfBag:
    """Distances by the trees of a forest that were not trained on the sample."""

    def __init__(self, forest: Any, X: NDArray, weight: NDArray | None) -> None:
        self.forest, self.X, self.weight = forest, X, weight

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        """Return the distances by a forest fitted to these labels."""
        # A sample that is in all bags has NaN below: equal probabilities, no opinion.
        with ignoring(UserWarning, "Some inputs do not have OOB scores"):
            forest = self.forest.set_params(oob_score=True).fit(self.X, labels, self.weight)
        proba = np.zeros((len(labels), len(classes)))
        proba[:, find_positions(forest.classes_, classes)] = np.nan_to_num(
            forest.oob_decision_function_, nan=1.0 / len(forest.classes_)
        )
        return _compute_distances_of_proba(proba, N_TREES)

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return the distances of new samples, by all trees."""
        return _compute_distances_of_proba(
            predict_columns(self.forest, X, classes, leave_out=True), N_TREES
        )


class OutOfBagByGroup:
    """Distances by the trees of a forest that were not trained on the sample's group."""

    def __init__(
        self, forest: Any, X: NDArray, weight: NDArray | None, groups: NDArray[np.intp]
    ) -> None:
        self.forest, self.X, self.groups = forest, X, groups
        self.weight = np.ones(len(X)) if weight is None else weight

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        """Return the distances by trees fitted to these labels."""
        self.labels, rng = labels, np.random.default_rng(0)
        codes, n_groups = find_positions(labels, classes), int(self.groups.max()) + 1
        votes = np.zeros((len(codes), len(classes)))
        for _ in range(N_TREES):
            drawn = np.bincount(rng.integers(n_groups, size=n_groups), minlength=n_groups)
            count = drawn[self.groups]
            tree = DecisionTreeClassifier(
                max_features="sqrt", min_samples_leaf=2, random_state=int(rng.integers(2**31))
            ).fit(self.X, codes, count * self.weight)
            out = np.flatnonzero(count == 0)
            votes[np.ix_(out, tree.classes_)] += tree.predict_proba(self.X[out])
        total = votes.sum(axis=1, keepdims=True)
        # A sample that is in all bags gets equal probabilities: no opinion.
        proba = np.where(total > 0, votes / np.maximum(total, 1.0), 1.0 / len(classes))
        return _compute_distances_of_proba(proba, N_TREES)

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return the distances of new samples, by a forest fitted to all groups."""
        return _compute_distances_of_proba(
            predict_columns(self.fitted, X, classes, leave_out=True), N_TREES
        )

    @property
    def fitted(self) -> Any:
        """The forest, fitted to all samples."""
        return clone(self.forest).fit(self.X, self.labels, self.weight)


class Neighbors:
    """Distances by the labels of the nearest neighbors, whose number maximizes the likelihood.

    With groups, neighbors are samples of other groups.
    """

    def __init__(
        self, X: NDArray, weight: NDArray | None, groups: NDArray[np.intp] | None = None
    ) -> None:
        number = min(max(NUMBERS_OF_NEIGHBORS), len(X) - 1)
        self.X, self.nearest = X, find_neighbors(X, number, groups)
        self.weight = np.ones(len(X)) if weight is None else weight

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        """Return the distances by these labels of the neighbors."""
        codes = find_positions(labels, classes)
        rows = np.arange(len(codes))
        votes = np.zeros((len(codes), len(classes)), dtype=np.float32)
        best, result, done = -np.inf, votes, 0
        for number in NUMBERS_OF_NEIGHBORS:
            voters = self.nearest[:, done:number]
            np.add.at(votes, (rows[:, None], codes[voters]), self.weight[voters])
            done = number
            total = votes.sum(axis=1, keepdims=True)
            found = _compute_distances_of_proba(votes / np.maximum(total, 1e-30), 0.5 * number)
            likelihood = -float(self.weight @ found[rows, codes])
            if likelihood > best:
                best, result, self._best = likelihood, found, (number, codes)
        return result

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return the distances of new samples, by the same number of neighbors."""
        number, codes = self._best
        number = min(number, len(self.X))
        search = NearestNeighbors(n_neighbors=number, algorithm="brute").fit(self.X)
        voters = search.kneighbors(X, return_distance=False)
        votes = np.zeros((len(voters), len(classes)), dtype=np.float32)
        np.add.at(votes, (np.arange(len(voters))[:, None], codes[voters]), self.weight[voters])
        total = votes.sum(axis=1, keepdims=True)
        return _compute_distances_of_proba(votes / np.maximum(total, 1e-30), 0.5 * number)


def find_neighbors(
    X: NDArray, n_neighbors: int, groups: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Return positions of the nearest other samples, (n_samples, n_neighbors).

    With `groups`, they are of other groups. The search asks for more neighbors then, by the size
    of the largest group, so that enough are left.
    """
    if groups is None:
        search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(X)
        return search.kneighbors(return_distance=False)
    size = np.bincount(groups)
    n_neighbors = min(n_neighbors, len(X) - int(size.max()))
    search = NearestNeighbors(algorithm="brute").fit(X)
    found = search.kneighbors(n_neighbors=n_neighbors + int(size.max()) - 1, return_distance=False)
    # Put members of the own group last, and keep the order of the others.
    own = groups[found] == groups[:, None]
    order = np.argsort(own, axis=1, kind="stable")[:, :n_neighbors]
    return np.take_along_axis(found, order, axis=1)


def get_features(base_models: dict[str, Any], rows: NDArray[np.intp]) -> NDArray | None:
    """Return standardized features of some samples; None if the base models have no numbers."""
    X = getattr(next(iter(base_models.values())), "X", None)
    if getattr(X, "ndim", 0) != 2 or issparse(X):
        return None
    array = np.asarray(_safe_indexing(X, rows))
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        return None
    return StandardScaler().set_output(transform="default").fit_transform(array)


class Precomputed:
    """Distances by precomputed probabilities; nothing is fitted."""

    fitted = None

    def __init__(self, X: Any, labels: NDArray, *, name: str = "y") -> None:
        self.proba = check_proba_matrix(X, name="X")
        n_columns = self.proba.shape[1]
        names = np.asarray(getattr(X, "columns", np.arange(n_columns)))
        # Column names other than 0..K-1 are those of a DataFrame, and must be the labels.
        named = None if np.array_equal(names, np.arange(len(names))) else names
        seen = np.unique(labels)
        counts = seen.dtype.kind in "iub" and seen[0] >= 0 and seen[-1] < n_columns
        if not (counts or named is not None or len(seen) == n_columns):
            raise ValueError(
                f"X must have one column for each class in {name}, or be a DataFrame with columns "
                f"named after the labels, got {n_columns} columns and {len(seen)} classes, "
                f"{format_labels(seen)}."
            )
        _, classes = match_columns(
            as_labels(labels, name=name),
            labels=named,
            n_columns=n_columns,
            y_name=name,
            columns_name="X",
        )
        self.order = np.argsort(classes, kind="stable")
        self.classes = classes[self.order]

    def distances(self, labels: NDArray, classes: NDArray) -> ByRows:
        """Return the distances; they do not depend on the labels."""
        columns = self.order[find_positions(classes, self.classes)]
        shape = len(labels), len(classes)
        return ByRows(
            lambda rows: _compute_distances_of_proba(self.proba[rows][:, columns], np.inf), shape
        )

    def without_samples(self) -> Precomputed:
        """Return a copy for new samples only."""
        result = copy(self)
        result.proba = self.proba[:0]
        return result

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return the distances by the probabilities of new samples."""
        proba = check_proba_matrix(X, name="X")
        if proba.shape[1] != len(self.order):
            raise ValueError(
                f"X must have {len(self.order)} columns of probabilities, as in fit, got "
                f"{proba.shape[1]}."
            )
        return _compute_distances_of_proba(
            proba[:, self.order[find_positions(classes, self.classes)]], np.inf
        )


def warn_of_order(X: Any, labels: Any, *, name: str = "y") -> None:
    """Warn where precomputed probabilities and labels seem to be in another order."""
    words = {"y_true": name, "y_proba": "X"} | {
        "pass labels= in the order of the columns": "reorder them, or name the columns of a "
        "DataFrame by the labels"
    }
    for matrix in X.values() if isinstance(X, dict) else [X]:
        for finding in check_alignment(labels, matrix):
            warn(reword(finding, words))


def make_precomputed_of_votes(
    X: Any, sample: NDArray[np.intp], labels: NDArray
) -> dict[str, Precomputed]:
    """Return precomputed base models whose columns belong to the labels of the votes."""
    base_models: dict[str, Precomputed] = {}
    for name, matrix in (X if isinstance(X, dict) else {"precomputed": X}).items():
        of_votes = _safe_indexing(matrix, sample)
        base_model = Precomputed(of_votes, labels, name="votes")
        warn_of_order(of_votes, labels, name="votes")
        base_model.proba = check_proba_matrix(matrix, name="X")
        base_models[str(name)] = base_model
    return base_models


def _compute_distances_of_proba(proba: NDArray, n_votes: float) -> NDArray:
    """Return -2 log p; fractions of `n_votes` votes get one more vote, shared by all classes."""
    if n_votes < np.inf:
        proba = (n_votes * proba + 1.0 / proba.shape[1]) / (n_votes + 1.0)
    dtype = np.result_type(proba.dtype, np.float32)
    return -2.0 * np.log(np.maximum(proba, LOSS_FLOOR, dtype=dtype))


def make_base_models(
    estimator: Any,
    X: Any,
    labels: NDArray,
    weight: NDArray[np.float64] | None,
    cv: Any,
    groups: NDArray[np.intp] | None,
    *,
    has_groups: bool,
) -> dict[str, Any]:
    """Return the base models by name; `groups` are codes of samples that belong together.

    `has_groups` is True if the user passed groups: then a scorer that leaves out single samples is
    an error. It is False if the groups are only equal rows, or near-duplicates, that were found.
    """
    if isinstance(estimator, str):  # "precomputed"
        if has_groups:
            raise ValueError("groups must be None for precomputed probabilities, got groups.")
        matrices = X if isinstance(X, dict) else {estimator: X}
        return {str(name): Precomputed(matrix, labels) for name, matrix in matrices.items()}
    if estimator is None:
        return _make_default_base_models(X, labels, weight, cv, groups, has_groups=has_groups)
    several = estimator if isinstance(estimator, list) else [estimator]
    base_models: dict[str, Any] = {}
    folds = None
    for model in several:
        last = get_last_step(model)[0]
        name = base = type(last).__name__
        number = 1
        while name in base_models:
            number += 1
            name = f"{base}_{number}"
        if isinstance(last, RelativeMahalanobisScorer):  # leaves samples out itself
            if has_groups:
                raise ValueError(
                    f"groups must be None for a {base}, which leaves out single samples, got "
                    "groups."
                )
            base_models[name] = LeaveOneOut(model, X, labels, weight)
            continue
        if folds is None:  # by the given labels: all base models and refits use them
            folds = _make_folds(cv, X, labels, groups)
        base_models[name] = OutOfFold(
            model, X, weight, folds, groups=groups if has_groups else None
        )
    return base_models


def _make_default_base_models(
    X: Any,
    labels: NDArray,
    weight: NDArray | None,
    cv: Any,
    groups: NDArray[np.intp] | None,
    *,
    has_groups: bool,
) -> dict[str, Any]:
    """Return the base models of ``estimator=None`` that the size of the data allows."""
    scorer = make_pipeline(StandardScaler(), RelativeMahalanobisScorer(shrinkage="auto"))
    distances = LeaveOneOut(scorer, _as_numbers(X), labels, weight)
    features, n_classes = np.asarray(distances.X), len(np.unique(labels))
    n_samples, n_features = features.shape
    # Leaving out single samples would let a group predict itself.
    base_models: dict[str, Any] = {} if has_groups else {"distances": distances}
    folds = _make_folds_of_default(features, labels, cv, groups)
    small = n_samples * n_features * n_classes <= MOST_OF_REGRESSION
    if folds is not None and (small or has_groups):
        base_models["logistic regression"] = _Regression(features, weight, folds)
    if n_samples > 2 and n_samples**2 * n_features <= MOST_OF_NEIGHBORS:
        base_models["neighbors"] = Neighbors(features, weight, groups)
    if n_samples * n_classes * n_features**0.5 <= MOST_OF_FOREST:
        forest = RandomForestClassifier(N_TREES, min_samples_leaf=2, random_state=0)
        base_models["forest"] = (
            OutOfBag(forest, features, weight)
            if groups is None
            else OutOfBagByGroup(forest, features, weight, groups)
        )
    for model in base_models.values():
        if model is not distances:  # it gets standardized features, of new samples too
            model.transformers = distances.transformers
    return base_models


def _make_folds(cv: Any, X: Any, labels: NDArray, groups: NDArray[np.intp] | None) -> Folds:
    """Return folds that leave out every sample, at least once."""
    folds = make_folds(cv, X, labels, groups)
    n_left_out = len(np.unique(folds.rows))
    if n_left_out < len(labels):
        raise ValueError(
            "cv must leave out every sample, so that its label is compared with the others, got "
            f"folds that leave out {n_left_out} of {len(labels)}."
        )
    return folds


def _make_folds_of_default(
    X: NDArray, labels: NDArray, cv: Any, groups: NDArray[np.intp] | None
) -> Folds | None:
    """Return folds for a default base model; None if a fold could lack a second class."""
    if not isinstance(cv, Integral):
        return _make_folds(cv, X, labels, groups)
    second, largest = np.sort(np.unique(labels, return_counts=True)[1])[-2:]
    if second < 2:
        return None
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(min(int(cv), int(largest)), shuffle=True, random_state=0)
    with ignoring(UserWarning, "The least populated class"):
        return make_folds(splitter, X, labels, groups)


def compute_new_distances(
    base_models: dict[str, BaseModel], X: Any, n_samples: int, classes: NDArray
) -> tuple[list[NDArray], NDArray[np.float64]]:
    """Return every base model's distances of new samples, and their novelty.

    X is a dict if every base model has its own input. Novelty is the distance to the nearest class
    by the first `LeaveOneOut`, NaN without one.
    """
    distances, novelty = [], np.full(n_samples, np.nan)
    for name, model in base_models.items():
        inputs = X[name] if isinstance(X, dict) else X
        if not isinstance(model, LeaveOneOut):  # which transforms its input itself
            inputs = apply_transformers(inputs, getattr(model, "transformers", []))
        distances.append(np.array(model.of_new(inputs, classes)))
        if isinstance(model, LeaveOneOut) and np.isnan(novelty).all():
            novelty = distances[-1].min(axis=1).astype(np.float64)
    return distances, novelty


def apply_transformers(X: Any, transformers: list[Any]) -> Any:
    """Return the samples after all transformers."""
    for transformer in transformers:
        X = transformer.transform(X)
    return X


def holds_numbers(X: Any) -> bool:
    """Return whether the base models of ``estimator=None`` take X."""
    try:
        _as_numbers(X)
    except (ValueError, TypeError):
        return False
    return True


def find_other_columns(X: Any) -> list[Any]:
    """Return the names of the columns of a frame that are no numbers."""
    kinds = X.dtypes.items() if np.ndim(X) == 2 and hasattr(X, "dtypes") else ()
    return [name for name, kind in kinds if kind.kind not in "biuf"]


def _as_numbers(X: Any) -> Any:
    """Return X if it holds numbers; for all else, the error says what to do."""
    if issparse(X):
        raise TypeError(
            "X must be dense if estimator is None, got a sparse array; "
            "TruncatedSVD(100).fit_transform(X) makes it dense, or pass a base model that takes "
            "it, as in LabelIssueFinder(LogisticRegression())."
        )
    try:
        check_array(X, dtype=[np.float64, np.float32], input_name="X")
    except (ValueError, TypeError) as error:
        if np.ndim(X) == 1 and isinstance(next(iter(X), None), str):
            raise ValueError(
                "X must hold numbers if estimator is None, got texts; "
                "make_pipeline(TfidfVectorizer(), TruncatedSVD(100)).fit_transform(X) turns them "
                "into numbers."
            ) from error
        others = find_other_columns(X)
        if not others:
            raise
        raise ValueError(
            f"X must hold numbers if estimator is None, got column {others[0]!r} of other "
            "values; make_pipeline(ColumnTransformer(...), LabelIssueFinder()) turns columns into "
            "numbers first."
        ) from error
    return X


def diagnose_features(estimator: Any, X: Any, labels: NDArray) -> list[str]:
    """Return warnings: features that look like probabilities, or have unequal scales."""
    array: Any = np.asarray(X) if getattr(X, "ndim", 0) == 2 or isinstance(X, list) else None
    if array is None or array.ndim != 2 or array.dtype.kind not in "iuf":
        return []
    several = estimator if isinstance(estimator, list) else [estimator]
    remarks = []
    as_it_is = isinstance(estimator, RelativeMahalanobisScorer) or estimator is None
    if as_it_is and array.shape[1] == len(np.unique(labels)) and holds_proba(array):
        remarks.append(
            "X looks like class probabilities but is used as features; pass "
            "estimator='precomputed' to use it as the probabilities of a model."
        )
    sensitive = [model for model in several if _scale_matters(model)]
    scale = array[:SOME_SAMPLES].std(axis=0, dtype=np.float64) if sensitive else np.ones(1)
    scale = scale[scale > 0]
    ratio = scale.max() / scale.min() if len(scale) else 1.0
    if ratio > LARGEST_RATIO:
        remarks.append(
            f"The scales of the columns of X differ by a factor of {ratio:.0e}, so that a few "
            f"columns decide what {type(sensitive[0]).__name__} predicts; put a StandardScaler "
            "before it (make_pipeline)."
        )
    return remarks


def _scale_matters(estimator: Any) -> bool:
    """Return whether columns with large numbers outweigh others (a Pipeline may scale them)."""
    if isinstance(estimator, RelativeMahalanobisScorer):
        return estimator.shrinkage is not None
    return type(estimator).__module__.startswith(_SCALE_MATTERS)
