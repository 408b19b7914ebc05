"""Judges: who says how far every sample is from every class, without having seen its label.

Distances of Gaussians leave one sample out in closed form, neighbors do not count the sample
itself, a forest asks the trees that have not seen it, and any other classifier is fitted on the
other folds. Probabilities p are distances -2 log p.
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
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_array, gen_batches

from ..difficulty import RelativeMahalanobisScorer
from ..difficulty.gaussian import gaussians_without
from ..utils.checking._guard import tell_of_order
from ..utils.checking._labels import as_labels, class_positions, match_columns, shown
from ..utils.checking._proba import LOSS_FLOOR, check_proba_matrix, holds_proba
from ..utils.meta._estimators import (
    Folds,
    class_columns,
    fit_clone,
    folds_of,
    group_params,
    last_step,
    out_of_fold,
    weight_params,
)
from ..utils.meta._private import _safe_indexing
from ..utils.meta._warnings import collecting, ignoring, warn
from ._limits import (
    BLOCK_ELEMENTS,
    LARGEST_RATIO,
    MOST_OF_FOREST,
    MOST_OF_NEIGHBORS,
    MOST_OF_REGRESSION,
    N_TREES,
    NUMBERS_OF_NEIGHBORS,
    SOME_SAMPLES,
)

# The families of classifiers for which it matters that columns differ in scale.
_SCALE_MATTERS = tuple(
    f"sklearn.{family}" for family in ("linear_model", "neighbors", "neural_network", "svm")
)

# Stands for an infinite distance: beyond it no probability is left, and 0 times it is 0.
FAR = 1e6


@dataclass
class ByRows:
    """A matrix of shape (n_samples, n_classes) whose rows are computed whenever they are read."""

    of_rows: Callable[[Any], NDArray]
    shape: tuple[int, int]

    def __getitem__(self, rows: slice | NDArray) -> NDArray:
        return self.of_rows(rows)

    def filled(self) -> NDArray:
        """Return the matrix as an array."""
        result = np.empty(self.shape, dtype=self[:1].dtype)
        for rows in blocks_of(self.shape):
            result[rows] = self[rows]
        return result


def blocks_of(shape: tuple) -> Iterator[slice]:
    """Yield blocks of the rows of a matrix."""
    return gen_batches(shape[0], max(1, BLOCK_ELEMENTS // shape[1]))


class Judge(Protocol):
    """Says how far samples are from classes; `fitted` is the estimator behind it, if any."""

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray | ByRows:
        """Return (n_samples, n_classes), each sample left out of a fit to these labels."""

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return (n_new, n_classes) of new samples, by the last fit."""


class LeaveOneOut:
    """Distances by a scorer of Gaussians, or by a Pipeline that ends in one.

    The only judge whose distances tell how far a sample is from all classes.

    The samples pass through the transformers of the Pipeline once.
    """

    def __init__(self, estimator: Any, X: Any, y: NDArray, weight: NDArray | None) -> None:
        self.X, self.fitted = X, clone(estimator)
        self.weight = np.ones(len(y)) if weight is None else weight
        if weight is not None:
            _check_counts(y, weight)
        # A Pipeline at the end of a Pipeline is one: its transformers are at work one by one.
        self.scorer, self.transformers = self.fitted, []  # type: Any, list[Any]
        while isinstance(self.scorer, Pipeline):
            pipeline, self.scorer = self.scorer, self.scorer[-1]
            if len(pipeline) > 1:
                transformers = pipeline[:-1]
                self.X = transformers.fit_transform(self.X, y)
                self.transformers.append(transformers)
                # With memory, a Pipeline fits copies of its steps.
                pipeline.steps[:-1] = transformers.steps

    def distances(self, labels: NDArray, classes: NDArray) -> ByRows:
        """Return the distances by a fit to these labels; infinite to classes without any.

        Distances to means of few samples become those of a new sample. The mean of m samples errs
        by 1/m of the variance, which widens the Gaussian of a new sample by 1 + 1/m: its distance
        shrinks. (The logarithm of its determinant grows as well. That is left out: the sizes of
        classes mean little where labels are wrong.)
        """
        with collecting() as notes:
            self.scorer.fit(self.X, labels, self.weight)
        for note in notes:
            # Here, a sample that is alone in its class is left out, and found suspicious.
            if " have a single sample" not in note:
                warn(note)
        # The background is a constant of the sample until distances are scaled. What is left out
        # is left out of the sums of the fit, so that another parameter needs no other fit.
        plain = copy(self.scorer).set_params(relative=False)
        gaussians, *fitted = gaussians_without(plain, self.X, labels, self.weight)
        member = (class_positions(labels, plain.classes_) >= 0) & (self.weight > 0)
        size, (_, own, lost) = plain.class_count_, fitted
        factor, rest = size / (size + 1.0), size[own] - lost
        # The own class is without the sample. With no rest, the distance is infinite and a factor
        # of 0 would make it NaN.
        of_own = np.where(member & (rest > 0), rest / (rest + 1.0), factor[own])
        # One sample does not make a class that others could belong to.
        penalty = np.where(size > 1.0, 0.0, np.inf)
        columns = class_positions(plain.classes_, classes)
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
        found = plain.transform(transformed(X, self.transformers))
        result = np.full((len(found), len(classes)), np.inf, dtype=found.dtype)
        result[:, columns] = found * factor + penalty
        return result


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
    """Distances by the out-of-fold probabilities of a classifier.

    A frozen classifier is asked as it is: it has to be one that has not seen the samples.
    `n_votes` is what its probabilities are counted from, see `_of_votes`.
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
        self.params = {} if weight is None else weight_params(estimator, weight)
        self.params |= group_params(estimator, groups)

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        """Return the distances by fits to these labels; large to classes that a fit lacks."""
        self.labels = labels
        if isinstance(self.estimator, FrozenEstimator):
            proba = class_columns(self.estimator, self.X, classes, leave_out=True)
        else:
            proba = out_of_fold(
                self.estimator,
                self.X,
                labels,
                self.folds,
                classes=classes,
                params=self.params,
                leave_out=True,
            )
        return _of_votes(proba, self.n_votes)

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return the distances of new samples, by a fit to all samples."""
        frozen = isinstance(self.estimator, FrozenEstimator)
        model = self.estimator if frozen else self.fitted
        return _of_votes(class_columns(model, X, classes, leave_out=True), self.n_votes)

    @property
    def fitted(self) -> Any:
        """The classifier, fitted on all samples with the labels of the last fits."""
        return fit_clone(self.estimator, self.X, self.labels, params=self.params)


class _Regression(OutOfFold):
    """A logistic regression on standardized features; it need not have settled."""

    def __init__(self, X: Any, weight: NDArray | None, folds: Folds) -> None:
        super().__init__(LogisticRegression(C=0.1, max_iter=60, tol=1e-3), X, weight, folds)

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        with ignoring(ConvergenceWarning):
            return super().distances(labels, classes)

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        with ignoring(ConvergenceWarning):
            return super().of_new(X, classes)


class OutOfBag:
    """Distances by the votes of those trees of a forest that have not seen the sample."""

    def __init__(self, forest: Any, X: NDArray, weight: NDArray | None) -> None:
        self.forest, self.X, self.weight = forest, X, weight

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        """Return the distances by a forest that is fitted to these labels."""
        # A sample that all trees have seen is left to the other judges: NaN below.
        with ignoring(UserWarning, "Some inputs do not have OOB scores"):
            forest = self.forest.set_params(oob_score=True).fit(self.X, labels, self.weight)
        proba = np.zeros((len(labels), len(classes)))
        proba[:, class_positions(forest.classes_, classes)] = np.nan_to_num(
            forest.oob_decision_function_, nan=1.0 / len(forest.classes_)
        )
        return _of_votes(proba, N_TREES)

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return the distances of new samples, by all trees."""
        return _of_votes(class_columns(self.forest, X, classes, leave_out=True), N_TREES)


class OutOfBagByGroup:
    """Distances by the votes of those trees of a forest that have not seen the sample's group."""

    def __init__(
        self, forest: Any, X: NDArray, weight: NDArray | None, groups: NDArray[np.intp]
    ) -> None:
        self.forest, self.X, self.groups = forest, X, groups
        self.weight = np.ones(len(X)) if weight is None else weight

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        """Return the distances by trees that are fitted to these labels."""
        self.labels, rng = labels, np.random.default_rng(0)
        codes, n_groups = class_positions(labels, classes), int(self.groups.max()) + 1
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
        # A sample that all trees have seen is left to the other judges.
        proba = np.where(total > 0, votes / np.maximum(total, 1.0), 1.0 / len(classes))
        return _of_votes(proba, N_TREES)

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return the distances of new samples, by a forest that has seen all groups."""
        return _of_votes(class_columns(self.fitted, X, classes, leave_out=True), N_TREES)

    @property
    def fitted(self) -> Any:
        """The forest, fitted on all samples."""
        return clone(self.forest).fit(self.X, self.labels, self.weight)


class Neighbors:
    """Distances by the labels of the nearest samples of other groups; their number by likelihood.

    Without groups every other sample is one.
    """

    def __init__(
        self, X: NDArray, weight: NDArray | None, groups: NDArray[np.intp] | None = None
    ) -> None:
        number = min(max(NUMBERS_OF_NEIGHBORS), len(X) - 1)
        self.X, self.nearest = X, nearest_others(X, number, groups)
        self.weight = np.ones(len(X)) if weight is None else weight

    def distances(self, labels: NDArray, classes: NDArray) -> NDArray:
        """Return the distances by votes for these labels."""
        codes = class_positions(labels, classes)
        rows = np.arange(len(codes))
        votes = np.zeros((len(codes), len(classes)), dtype=np.float32)
        best, result, done = -np.inf, votes, 0
        for number in NUMBERS_OF_NEIGHBORS:
            voters = self.nearest[:, done:number]
            np.add.at(votes, (rows[:, None], codes[voters]), self.weight[voters])
            done = number
            total = votes.sum(axis=1, keepdims=True)
            found = _of_votes(votes / np.maximum(total, 1e-30), 0.5 * number)
            likelihood = -float(self.weight @ found[rows, codes])
            if likelihood > best:
                best, result, self._best = likelihood, found, (number, codes)
        return result

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return the distances of new samples, by as many neighbors."""
        number, codes = self._best
        number = min(number, len(self.X))
        search = NearestNeighbors(n_neighbors=number, algorithm="brute").fit(self.X)
        voters = search.kneighbors(X, return_distance=False)
        votes = np.zeros((len(voters), len(classes)), dtype=np.float32)
        np.add.at(votes, (np.arange(len(voters))[:, None], codes[voters]), self.weight[voters])
        total = votes.sum(axis=1, keepdims=True)
        return _of_votes(votes / np.maximum(total, 1e-30), 0.5 * number)


def nearest_others(
    X: NDArray, n_neighbors: int, groups: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Return positions of the nearest other samples, (n_samples, n_neighbors).

    With `groups`, those of other groups: as many are searched for as the largest group could hide.
    """
    if groups is None:
        search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(X)
        return search.kneighbors(return_distance=False)
    size = np.bincount(groups)
    n_neighbors = min(n_neighbors, len(X) - int(size.max()))
    search = NearestNeighbors(algorithm="brute").fit(X)
    found = search.kneighbors(n_neighbors=n_neighbors + int(size.max()) - 1, return_distance=False)
    # Members of the own group go last; the order of the others is kept.
    own = groups[found] == groups[:, None]
    order = np.argsort(own, axis=1, kind="stable")[:, :n_neighbors]
    return np.take_along_axis(found, order, axis=1)


def features_of(judges: dict[str, Any], rows: NDArray[np.intp]) -> NDArray | None:
    """Return standardized features of some samples, of the first judge; None without numbers."""
    X = getattr(next(iter(judges.values())), "X", None)
    if getattr(X, "ndim", 0) != 2 or issparse(X):
        return None
    array = np.asarray(_safe_indexing(X, rows))
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        return None
    return StandardScaler().fit_transform(array)


class Precomputed:
    """Distances by probabilities that are given; nothing is fitted."""

    fitted = None

    def __init__(self, X: Any, labels: NDArray, *, name: str = "y") -> None:
        self.proba = check_proba_matrix(X, name="X")
        n_columns = self.proba.shape[1]
        names = np.asarray(getattr(X, "columns", np.arange(n_columns)))
        # Names that are not 0..K-1 are those of a DataFrame, and have to be the labels.
        named = None if np.array_equal(names, np.arange(len(names))) else names
        seen = np.unique(labels)
        counts = seen.dtype.kind in "iub" and seen[0] >= 0 and seen[-1] < n_columns
        if not (counts or hasattr(X, "columns") or len(seen) == n_columns):
            raise ValueError(
                "labels must name the columns of X, as in a DataFrame, where there is not one for "
                f"each class in {name}, got {n_columns} columns and {len(seen)} classes, "
                f"{shown(seen)}."
            )
        codes, classes = match_columns(
            as_labels(labels, name=name),
            labels=named,
            n_columns=n_columns,
            y_name=name,
            columns_name="X",
            proba=self.proba,
            numbered=named is None and hasattr(X, "columns"),
        )
        remedy = "If so, reorder them, or name the columns of a DataFrame by the labels."
        tell_of_order(self.proba, codes, classes, name="X", remedy=remedy)
        self.order = np.argsort(classes, kind="stable")
        self.classes = classes[self.order]

    def distances(self, labels: NDArray, classes: NDArray) -> ByRows:
        """Return the distances, whatever the labels."""
        columns = self.order[class_positions(classes, self.classes)]
        shape = len(labels), len(classes)
        return ByRows(lambda rows: _of_votes(self.proba[rows][:, columns], np.inf), shape)

    def without_samples(self) -> Precomputed:
        """Return a judge of new samples alone."""
        judge = copy(self)
        judge.proba = self.proba[:0]
        return judge

    def of_new(self, X: Any, classes: NDArray) -> NDArray:
        """Return the distances by the probabilities of new samples."""
        proba = check_proba_matrix(X, name="X")
        if proba.shape[1] != len(self.order):
            raise ValueError(
                f"X must have {len(self.order)} columns of probabilities, as in fit, got "
                f"{proba.shape[1]}."
            )
        return _of_votes(proba[:, self.order[class_positions(classes, self.classes)]], np.inf)


def precomputed_of_votes(
    X: Any, sample: NDArray[np.intp], labels: NDArray
) -> dict[str, Precomputed]:
    """Return the judges of probabilities at hand, whose columns the labels of votes name."""
    judges: dict[str, Precomputed] = {}
    for name, matrix in (X if isinstance(X, dict) else {"precomputed": X}).items():
        judge = Precomputed(_safe_indexing(matrix, sample), labels, name="votes")
        judge.proba = check_proba_matrix(matrix, name="X")
        judges[str(name)] = judge
    return judges


def _of_votes(proba: NDArray, n_votes: float) -> NDArray:
    """Return -2 log p; of probabilities that are fractions of votes, one more vote for all."""
    if n_votes < np.inf:
        proba = (n_votes * proba + 1.0 / proba.shape[1]) / (n_votes + 1.0)
    dtype = np.result_type(proba.dtype, np.float32)
    return -2.0 * np.log(np.maximum(proba, LOSS_FLOOR, dtype=dtype))


def judges_of(
    estimator: Any,
    X: Any,
    labels: NDArray,
    weight: NDArray[np.float64] | None,
    cv: Any,
    groups: NDArray[np.intp] | None,
    *,
    asked: bool,
) -> dict[str, Any]:
    """Return the judges by their names; `groups` are codes of samples that belong together.

    `asked` tells whether somebody has asked for the groups: a scorer that leaves out single
    samples is refused then, and does not mind a few equal rows of unlike labels.
    """
    if isinstance(estimator, str):  # "precomputed"
        if asked:
            raise ValueError("groups must be None for probabilities at hand, got groups.")
        matrices = X if isinstance(X, dict) else {estimator: X}
        return {str(name): Precomputed(matrix, labels) for name, matrix in matrices.items()}
    if estimator is None:
        return _default_judges(X, labels, weight, cv, groups, asked=asked)
    several = estimator if isinstance(estimator, list) else [estimator]
    judges: dict[str, Any] = {}
    folds = None
    for judge in several:
        last = last_step(judge)[0]
        name = base = type(last).__name__
        number = 1
        while name in judges:
            number += 1
            name = f"{base}_{number}"
        if isinstance(last, RelativeMahalanobisScorer):  # leaves samples out itself
            if asked:
                raise ValueError(
                    f"groups must be None for a {base}, which leaves out single samples, got "
                    "groups."
                )
            judges[name] = LeaveOneOut(judge, X, labels, weight)
            continue
        if folds is None:  # by the given labels, so that all judges and refits share them
            folds = folds_of(cv, X, labels, groups, find_copies=False)
        judges[name] = OutOfFold(judge, X, weight, folds, groups=groups if asked else None)
    return judges


def _default_judges(
    X: Any,
    labels: NDArray,
    weight: NDArray | None,
    cv: Any,
    groups: NDArray[np.intp] | None,
    *,
    asked: bool,
) -> dict[str, Any]:
    """Return those that the number of samples, features and classes allows."""
    scorer = make_pipeline(StandardScaler(), RelativeMahalanobisScorer(shrinkage="auto"))
    distances = LeaveOneOut(scorer, _as_numbers(X), labels, weight)
    features, n_classes = np.asarray(distances.X), len(np.unique(labels))
    n_samples, n_features = features.shape
    searched = n_samples**2 * n_features <= MOST_OF_NEIGHBORS and n_samples > 2
    # With groups, single samples left out would be judged by others of their group.
    judges: dict[str, Any] = {} if asked else {"distances": distances}
    folds = _folds_of_default(features, labels, cv, groups)
    small = n_samples * n_features * n_classes <= MOST_OF_REGRESSION
    if folds is not None and (small or asked):
        judges["logistic regression"] = _Regression(features, weight, folds)
    if searched:
        judges["neighbors"] = Neighbors(features, weight, groups)
    if n_samples * n_classes * n_features**0.5 <= MOST_OF_FOREST:
        forest = RandomForestClassifier(N_TREES, min_samples_leaf=2, random_state=0)
        judges["forest"] = (
            OutOfBag(forest, features, weight)
            if groups is None
            else OutOfBagByGroup(forest, features, weight, groups)
        )
    for judge in judges.values():
        if judge is not distances:  # they see standardized features, of new samples as well
            judge.transformers = distances.transformers
    return judges


def _folds_of_default(
    X: NDArray, labels: NDArray, cv: Any, groups: NDArray[np.intp] | None
) -> Folds | None:
    """Return folds of a judge that nobody has asked for; None if one may lack a second class."""
    if not isinstance(cv, Integral):
        return folds_of(cv, X, labels, groups, find_copies=False)
    second, largest = np.sort(np.unique(labels, return_counts=True)[1])[-2:]
    if second < 2:
        return None
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(min(int(cv), int(largest)), shuffle=True, random_state=0)
    with ignoring(UserWarning, "The least populated class"):
        return folds_of(splitter, X, labels, groups, find_copies=False)


def distances_of_new(
    judges: dict[str, Judge], X: Any, n_samples: int, classes: NDArray
) -> tuple[list[NDArray], NDArray[np.float64]]:
    """Return every judge's distances of samples that it has not seen, and the nearest class's.

    X is a dict where every judge looks at something else. The distance to the nearest class is
    that of the first Gaussian judge, NaN without one.
    """
    distances, novelty = [], np.full(n_samples, np.nan)
    for name, judge in judges.items():
        seen_by_it = X[name] if isinstance(X, dict) else X
        if not isinstance(judge, LeaveOneOut):  # which transforms by itself
            seen_by_it = transformed(seen_by_it, getattr(judge, "transformers", []))
        distances.append(np.array(judge.of_new(seen_by_it, classes)))
        if isinstance(judge, LeaveOneOut) and np.isnan(novelty).all():
            novelty = distances[-1].min(axis=1).astype(np.float64)
    return distances, novelty


def transformed(X: Any, transformers: list[Any]) -> Any:
    """Return samples as transformers make them, one after the other."""
    for transformer in transformers:
        X = transformer.transform(X)
    return X


def _as_numbers(X: Any) -> Any:
    """Return X where it holds numbers; texts get an error that says what to do."""
    try:
        check_array(X, dtype=[np.float64, np.float32], input_name="X")
    except (ValueError, TypeError) as error:
        if np.ndim(X) == 1 and isinstance(next(iter(X), None), str):
            raise ValueError(
                "X must hold numbers where estimator is None, got texts; "
                "make_pipeline(TfidfVectorizer(), TruncatedSVD(100)).fit_transform(X) turns them "
                "into numbers."
            ) from error
        kinds = X.dtypes.items() if np.ndim(X) == 2 and hasattr(X, "dtypes") else ()
        text = [name for name, kind in kinds if kind.kind not in "biuf"]
        if not text:
            raise
        raise ValueError(
            f"X must hold numbers where estimator is None, got column {text[0]!r} of other "
            "values; make_pipeline(ColumnTransformer(...), LabelIssueFinder()) turns columns into "
            "numbers first."
        ) from error
    return X


def remarks_on(estimator: Any, X: Any, labels: NDArray) -> list[str]:
    """Return what is odd: features that look like probabilities, or are of unequal scales."""
    array: Any = np.asarray(X) if getattr(X, "ndim", 0) == 2 or isinstance(X, list) else None
    if array is None or array.ndim != 2 or array.dtype.kind not in "iuf":
        return []
    judges = estimator if isinstance(estimator, list) else [estimator]
    remarks = []
    as_it_is = isinstance(estimator, RelativeMahalanobisScorer) or estimator is None
    if as_it_is and array.shape[1] == len(np.unique(labels)) and holds_proba(array):
        remarks.append(
            "X looks like class probabilities and is taken for features; with "
            "estimator='precomputed' it is taken for the probabilities of a model."
        )
    sensitive = [judge for judge in judges if _scale_matters(judge)]
    scale = array[:SOME_SAMPLES].std(axis=0, dtype=np.float64) if sensitive else np.ones(1)
    scale = scale[scale > 0]
    ratio = scale.max() / scale.min() if len(scale) else 1.0
    if ratio > LARGEST_RATIO:
        remarks.append(
            f"The scales of the columns of X differ by a factor of {ratio:.0e}, so that a few "
            f"decide what {type(sensitive[0]).__name__} says; put a StandardScaler before it "
            "(make_pipeline)."
        )
    return remarks


def _scale_matters(estimator: Any) -> bool:
    """Tell whether columns of large numbers outweigh others; a Pipeline scales them itself."""
    if isinstance(estimator, RelativeMahalanobisScorer):
        return estimator.shrinkage is not None
    return type(estimator).__module__.startswith(_SCALE_MATTERS)
