"""Gaussians whose samples come in parts, one after another or in many places at once."""

from __future__ import annotations

from copy import copy
from functools import partial
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ...utils._arrays import check_weights, is_chunked, naming
from ...utils._chunked import aligned, reduce_chunks
from ...utils._features import validate_rows
from ...utils._labels import check_class_labels, encode, joined_classes
from ...utils._private import _fit_context, _num_samples
from ...utils._tensors import UnitRows
from .._base import DifficultyMixin
from ._statistics import GaussianStatistics

_DTYPES = [np.float64, np.float32, np.float16]


class StreamingMixin(DifficultyMixin):
    """A scorer of Gaussians whose statistics add up; one that is not fitted has no samples."""

    classes_: NDArray[Any]
    normalize: bool
    _statistics: GaussianStatistics
    _announced: bool

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add samples to the fit: equal to `fit` on all so far, in any order and chunking.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Features.
        y : array-like or dask array of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            Labels to expect; one outside of them is an error. Read in the first call and, if
            given again, compared with it. None adds classes as they come.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        self : RelativeMahalanobisScorer
            The updated scorer. A chunk of no samples changes nothing.
        """
        is_first = not hasattr(self, "classes_")
        with naming("X"):
            is_empty = not is_chunked(X) and _num_samples(X) == 0
        if is_empty:
            self._see_no_samples(X, classes, is_first)
        else:
            self._update(X, y, classes, sample_weight, reset=is_first)
        return self

    def merge(self, other: StreamingMixin) -> Self:
        """Add the samples that another scorer was fitted on, as if fitted on the union.

        Parameters
        ----------
        other : RelativeMahalanobisScorer
            A scorer fitted on other samples of the same features; left unchanged. A scorer that
            is not fitted, `other` or this one, counts as one without samples. The parameters
            remain those of this scorer.

        Returns
        -------
        self : RelativeMahalanobisScorer
            The updated scorer.

        Raises
        ------
        ValueError
            If the features differ, or if only one of the scorers normalizes them.
        """
        if self.normalize != other.normalize:
            raise ValueError(
                f"other must have normalize={self.normalize}, as this scorer has, got "
                f"{other.normalize}."
            )
        if not hasattr(other, "classes_"):
            return self
        if not hasattr(self, "classes_"):
            learned = (
                "classes_",
                "n_features_in_",
                "feature_names_in_",
                "_statistics",
                "_announced",
            )
            self._set_state(
                **{name: vars(other)[name] for name in learned if hasattr(other, name)}
            )
            return self
        features, other_features = _features(self), _features(other)
        if features != other_features:
            raise ValueError(
                f"other must have the features of this scorer, {features}, got {other_features}."
            )
        self._add_statistics(other)
        return self

    def _add_statistics(self, other: StreamingMixin) -> None:
        classes = joined_classes(self.classes_, other.classes_, name="other")
        merged = self._laid_out(classes).merged(other._laid_out(classes))
        self._set_state(classes_=classes, _statistics=merged)

    def __add__(self, other: Any) -> Self:
        """Return a scorer of the samples of both, with the parameters of the left one."""
        return copy(self).merge(other) if isinstance(other, StreamingMixin) else NotImplemented

    def __radd__(self, other: Any) -> Self:
        """Return a copy for the 0 that `sum` begins with."""
        return copy(self) if isinstance(other, int) and other == 0 else NotImplemented

    def _read(self, X: Any, y: Any = "no_validation", *, reset: bool, **options: Any) -> Any:
        """Return checked samples, or samples and labels; normalized as they are read."""
        read = validate_rows(self, X, y, reset=reset, dtype=_DTYPES, **options)
        if not self.normalize:
            return read
        return (UnitRows(read[0]), read[1]) if isinstance(read, tuple) else UnitRows(read)

    def _see_no_samples(self, X: Any, classes: ArrayLike | None, is_first: bool) -> None:
        if is_first and classes is None:
            return  # Neither features nor classes are known yet.
        data = self._read(X, reset=is_first, ensure_min_samples=0)
        announced = self._check_announced(classes, is_first)
        if is_first and announced is not None:
            statistics = GaussianStatistics.empty(len(announced), data.shape[1])
            self._set_state(classes_=announced, _statistics=statistics, _announced=True)

    def _check_announced(self, classes: ArrayLike | None, is_first: bool) -> NDArray[Any] | None:
        """Return the classes announced in this call, sorted; those of the first call hold."""
        if classes is None:
            return None
        announced = np.unique(check_class_labels(classes))
        if not is_first and not np.array_equal(announced, self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {self.classes_.tolist()}, "
                f"got {announced.tolist()}."
            )
        return announced

    def _update(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        *,
        reset: bool,
        work: type[np.floating] | None = None,
    ) -> None:
        if is_chunked(X):
            self._update_from_chunks(X, y, classes, sample_weight, reset=reset, work=work)
            return
        # NaN and infinity show in the sums, which are checked below: X is read only once. Samples
        # of weight 0 are not in the sums, and normalized ones are divided first.
        check_first = self.normalize or sample_weight is not None
        data, labels = self._read(
            X, check_class_labels(y), reset=reset, ensure_all_finite=check_first
        )
        weight = check_weights(sample_weight, len(data))
        found = np.unique(labels if weight is None else labels[weight > 0])
        announced = self._check_announced(classes, reset)
        is_final = announced is not None if reset else self._announced
        if reset:
            new_classes = found if announced is None else announced
            statistics = GaussianStatistics.empty(len(new_classes), data.shape[1])
        else:
            joined = joined_classes(self.classes_, found, name="y")
            new_classes = self.classes_ if is_final else joined
            statistics = self._laid_out(new_classes)
        # A sample of weight 0 may have a label of its own.
        labels = labels if weight is None else np.where(weight > 0, labels, found[0])
        statistics = statistics.with_samples(data, encode(labels, new_classes), weight, work=work)
        if not np.isfinite(statistics.sums).all():
            self._read(X, reset=False)
        self._set_state(classes_=new_classes, _statistics=statistics, _announced=is_final)

    def _update_from_chunks(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None,
        sample_weight: Any,
        *,
        reset: bool,
        work: type[np.floating] | None,
    ) -> None:
        X, y, sample_weight = aligned(X=X, y=y, sample_weight=sample_weight)
        # Checks names, number and type of the features before anything is computed.
        self._read(np.zeros((1, *X.shape[1:]), dtype=X.dtype), reset=reset)
        announced = self._check_announced(classes, reset)
        if not reset and self._announced:
            announced = self.classes_
        of_chunk = partial(_fitted_to_chunk, clone(self), announced, work)
        whole = reduce_chunks(of_chunk, add, X, y, sample_weight)
        if not getattr(whole, "class_count_", np.zeros(1)).any():
            raise ValueError(
                f"X must have samples of positive weight, got none in {X.numblocks[0]} chunks."
            )
        if reset:
            self._set_state(
                classes_=whole.classes_,
                _statistics=whole._statistics,
                _announced=announced is not None,
            )
        else:
            self._add_statistics(whole)

    def _laid_out(self, classes: NDArray[Any]) -> GaussianStatistics:
        """Return the statistics with the classes of a superset of `classes_`."""
        if len(classes) == len(self.classes_):
            return self._statistics
        return self._statistics.with_classes(np.searchsorted(classes, self.classes_), len(classes))

    def _set_state(self, **state: Any) -> None:
        # In one step, so that an interruption leaves the old state or the new one. The distances
        # are computed on demand: a stream pays for one decomposition in all.
        self.__dict__.update(state, _distances=None)


def _fitted_to_chunk(
    unfitted: StreamingMixin,
    classes: NDArray[Any] | None,
    work: type[np.floating] | None,
    X: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
) -> StreamingMixin:
    """Return a scorer of the samples of a chunk; of no samples if all weights are 0."""
    scorer = clone(unfitted)
    if sample_weight is not None and len(sample_weight) == len(X) and not sample_weight.any():
        X, y = X[:0], y[:0]
    if len(X):
        scorer._update(X, y, classes, sample_weight, reset=True, work=work)
    else:
        scorer._see_no_samples(X, classes, True)
    return scorer


def _features(scorer: Any) -> list[str] | str:
    """Return the names of the features or, without names, their number in words."""
    if hasattr(scorer, "feature_names_in_"):
        return scorer.feature_names_in_.tolist()
    return f"{scorer.n_features_in_} unnamed ones"
