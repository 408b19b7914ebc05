"""Relative Mahalanobis distance to class Gaussians that share one covariance."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from numbers import Real
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..utils._arrays import check_readable, check_weights, warn_if_normalized
from ..utils._backends import UnitRows, align_chunks, is_chunked, map_chunks, reduce_chunks
from ..utils._compat import (
    Interval,
    StrOptions,
    _check_feature_names_in,
    _fit_context,
    _num_samples,
)
from ..utils._estimators import VersionMixin, show_inner, validate_rows
from ..utils._labels import (
    as_labels,
    check_class_labels,
    encode,
    find_positions,
    format_labels,
    merge_classes,
)
from ..utils._output import name_argument
from ._base import DifficultyMixin
from ._distances import ClassDistances, LeftOut, compute_class_distances, warn_of_limits
from ._gaussians import GaussianStatistics, choose_working_dtype, shrink

_DTYPES = [np.float64, np.float32, np.float16]


class RelativeMahalanobisScorer(
    DifficultyMixin, ClassifierMixin, TransformerMixin, VersionMixin, BaseEstimator
):
    """Difficulty as the relative Mahalanobis distance of a sample to its class.

    Every class is a Gaussian with its own mean and a covariance shared by all. The background is
    one Gaussian over all samples. The difficulty of (x, y) is the squared Mahalanobis distance of
    x to class y, minus that to the background:

    .. math::

        (x - \\mu_y)^T \\Sigma^{-1} (x - \\mu_y)
        - (x - \\mu_{agn})^T \\Sigma_{agn}^{-1} (x - \\mu_{agn})

    **Larger means harder.** A sample deep in its own class, in directions that separate the
    classes, is easy. The features should come from a pre-trained model [1]_.

    Equations 5 to 7 of [1]_ carry a minus sign that contradicts the text and the figures of the
    paper, where small values are the easy samples. The text is right, and this class follows it.

    Parameters
    ----------
    relative : bool, default=True
        Subtract the background distance. False gives the plain squared Mahalanobis distance. Take
        it to find inputs far from all classes, such as noise: the difference hardly detects them.
    shrinkage : float in [0, 1] or "auto", default=None
        Shrinkage of both covariances toward the identity times their mean variance. "auto" takes
        the oracle approximating coefficient of each (see :func:`sklearn.covariance.oas`): use it
        with fewer than about 5 samples per feature. None does not shrink.
    tol : float, default=None
        Directions with no more variance than this, in units in which every feature has
        variance one, count as unsupported. None derives it from the precision of the input and of
        the sums over it.
    normalize : bool, default=False
        Scale every sample to unit length first, in the fit and in queries [2]_: the length of a
        network's features differs between classes, which Gaussians fit badly. A sample of zeros
        has no direction, and is an error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_count_ : ndarray of shape (n_classes,)
        Number of samples of each class, or the sum of their weights.
    means_ : ndarray of shape (n_classes, n_features)
        Class means. NaN for a class announced to `partial_fit` but not seen so far.
    mean_ : ndarray of shape (n_features,)
        Mean of all samples.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance about the class means, normalized by the number of samples, after shrinkage.
    background_covariance_ : ndarray of shape (n_features, n_features)
        Covariance about `mean_`, normalized by the number of samples, after shrinkage.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of features and, where the input has them, their names.

    See Also
    --------
    KMeansPrototypeScorer : Difficulty without labels, from prototypes.
    LossScorer : Difficulty as the loss of a classifier.
    KNNScorer : Distance to the nearest training samples.
    difficulty_weights : From difficulty to weights.
    score_difficulty : Difficulty by a Pipeline that ends in a scorer.

    Notes
    -----
    A singular covariance (more features than samples, constant or duplicate columns) is replaced
    by its pseudo-inverse: each distance uses the directions in which its own Gaussian has
    variance, and the part of a sample outside of them is ignored. On the fitted samples the mean
    difficulty is the rank of `covariance_` minus that of `background_covariance_`: zero where
    the supports agree.

    Sums of squares in float32 cannot distinguish a direction of very little variance from
    rounding. `fit` then computes them again in float64; `partial_fit` cannot, and the first use
    warns. An update that raises, in `partial_fit` or `merge`, leaves the scorer as it was.

    A torch tensor on a GPU stays there, see :ref:`tensors`: products run on the device, in the
    precision of the tensor and never in TensorFloat-32.

    `predict` is linear discriminant analysis with equal priors.

    References
    ----------
    .. [1] P. Cui, D. Zhang, Z. Deng, Y. Dong, J. Zhu, "Learning Sample Difficulty from
       Pre-trained Models for Reliable Prediction", NeurIPS 2023. Calls: :ref:`paper-rmd`.
    .. [2] M. Mueller, M. Hein, "Mahalanobis++: Improving OOD Detection via Feature
       Normalization", ICML 2025.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.difficulty import RelativeMahalanobisScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = RelativeMahalanobisScorer().fit(X, y)
    >>> difficulty = scorer.difficulty(X, y)
    >>> int(difficulty.argmax()), bool(abs(difficulty.mean()) < 1e-9)
    (118, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "relative": ["boolean"],
        "shrinkage": [None, Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "tol": [None, Interval(Real, 0, None, closed="left")],
        "normalize": ["boolean"],
    }

    classes_: NDArray[Any]
    _statistics: GaussianStatistics
    _announced: bool
    _distances: ClassDistances | None

    def __init__(
        self,
        *,
        relative: bool = True,
        shrinkage: float | str | None = None,
        tol: float | None = None,
        normalize: bool = False,
    ) -> None:
        self.relative = relative
        self.shrinkage = shrinkage
        self.tol = tol
        self.normalize = normalize

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the class Gaussians and the background.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Features. float16 and float32 are processed in float32, chunk by chunk, unless that
            loses directions: see Notes. A memory map stays on disk, and the chunks of a dask
            array stay where they are.
        y : array-like or dask array of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight k stands for k copies of a sample, weight 0 removes it.

        Returns
        -------
        self : RelativeMahalanobisScorer
            The fitted scorer.

        Raises
        ------
        ValueError
            If there is only one class and `relative` is True, or if no class varies, for instance
            because every class has a single sample.

        Warns
        -----
        SkcalibWarning
            If a class has a single sample, or if all samples together are too few for the
            covariance of the features without shrinkage; with ``shrinkage="auto"``, if weights sum
            to less than half of the number of samples.
        """
        data = self._update(X, y, None, sample_weight, reset=True)
        distances = self._new_distances(data)
        if distances.n_unresolved:  # by sums in float32
            data = self._update(X, y, None, sample_weight, reset=True, work=np.float64)
            distances = self._new_distances(data)
        self._use(distances)
        return self

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
        with name_argument("X"):
            is_empty = not is_chunked(X) and _num_samples(X) == 0
        if is_empty:
            self._see_no_samples(X, classes, is_first)
        else:
            self._update(X, y, classes, sample_weight, reset=is_first)
        return self

    def merge(self, other: RelativeMahalanobisScorer) -> Self:
        """Add the samples that another scorer was fitted on, as if fitted on the union.

        Parameters
        ----------
        other : RelativeMahalanobisScorer
            A scorer fitted on other samples of the same features, with the same `normalize`; left
            unchanged. A scorer that is not fitted, `other` or this one, counts as one without
            samples. The parameters remain those of this scorer.

        Returns
        -------
        self : RelativeMahalanobisScorer
            The updated scorer.
        """
        if not isinstance(other, RelativeMahalanobisScorer):
            raise TypeError(f"other must be such a scorer, got {type(other).__name__}.")
        if self.normalize != getattr(other, "_normalized", other.normalize):
            raise ValueError(
                f"other must have normalize={self.normalize}, as this scorer has, got "
                f"{getattr(other, '_normalized', other.normalize)}."
            )
        if not hasattr(other, "classes_"):
            return self
        if not hasattr(self, "classes_"):
            show_inner(self, other)
            names = ("classes_", "_statistics", "_announced")
            self._set_state(**{name: vars(other)[name] for name in names})
            return self
        features, other_features = _name_features(self), _name_features(other)
        if features != other_features:
            raise ValueError(
                f"other must have the features of this scorer, {features}, got {other_features}."
            )
        self._add_statistics(other)
        return self

    def _add_statistics(self, other: RelativeMahalanobisScorer) -> None:
        """Add the statistics of another scorer, and its classes."""
        classes = merge_classes(self.classes_, other.classes_, name="other")
        merged = self._laid_out(classes).merged(other._laid_out(classes))
        self._set_state(classes_=classes, _statistics=merged)

    def __add__(self, other: Any) -> Self:
        """Return a scorer of the samples of both, with the parameters of the left one."""
        known = isinstance(other, RelativeMahalanobisScorer)
        return copy(self).merge(other) if known else NotImplemented

    def __radd__(self, other: Any) -> Self:
        """Return a copy for the 0 that `sum` begins with."""
        return copy(self) if isinstance(other, int) and other == 0 else NotImplemented

    def finalize(self) -> Self:
        """Compute now what scoring needs, before the scorer is sent to many processes.

        Otherwise the first call does so, and again in every copy that was pickled before it. The
        result is pickled with the scorer, and dropped when samples are added.

        Returns
        -------
        self : RelativeMahalanobisScorer
            The scorer itself. Its scores are the same before and after.
        """
        check_is_fitted(self)
        single = self._statistics.input_eps > np.finfo(np.float64).eps
        self._fitted_distances().prepare(np.float32 if single else np.float64)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Return the relative squared distance to every class.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Features.

        Returns
        -------
        distances : ndarray or dask array of shape (n_samples, n_classes)
            Of dtype float32 for float16 and float32 input, float64 otherwise. Plain squared
            distances with ``relative=False``. Lazy where X is a dask array.
        """
        check_is_fitted(self)
        if is_chunked(X):
            shape = {"dtype": choose_working_dtype(X.dtype), "n_columns": len(self.classes_)}
            return self._in_chunks(RelativeMahalanobisScorer.transform, X, **shape)
        data, distances = self._query(X)
        return distances.to_all_classes(data)

    def difficulty(self, X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.float64]:
        """Distance to the class of `y`, or to the nearest class; larger means harder.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Features.
        y : array-like or dask array of shape (n_samples,), default=None
            Labels, each among `classes_`. None takes the minimum over the classes.

        Returns
        -------
        difficulty : ndarray or dask array of shape (n_samples,)
            Larger means harder. Lazy where X is a dask array.
        """
        check_is_fitted(self)
        if is_chunked(X):
            return self._in_chunks(RelativeMahalanobisScorer.difficulty, X, y, dtype=np.float64)
        if y is None:
            data, distances = self._query(X)
            return distances.to_nearest_class(data).astype(np.float64)
        labels = check_class_labels(y)
        data, labels = self._read(X, labels, reset=False)
        return self._fitted_distances(data).to_own_class(data, encode(labels, self.classes_))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Nearest class in relative distance.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Features.

        Returns
        -------
        labels : ndarray or dask array of shape (n_samples,)
            Class labels. Lazy where X is a dask array.
        """
        check_is_fitted(self)
        if is_chunked(X):
            return self._in_chunks(RelativeMahalanobisScorer.predict, X, dtype=self.classes_.dtype)
        data, distances = self._query(X)
        return self.classes_[distances.nearest_class(data)]

    def fit_difficulty(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[np.float64]:
        """Fit to the samples and return their difficulty, each scored without itself.

        Parameters
        ----------
        X, y : of :meth:`fit`
        **fit_params : dict
            `sample_weight`, which :meth:`fit` takes.

        Returns
        -------
        difficulty : ndarray of shape (n_samples,)
            That of `leave_one_out_difficulty`; larger means harder. Infinite for a sample that is
            the only one of its class, of which `fit` warns.
        """
        check_readable(X, name="X")  # in chunks, which `fit` takes
        fitted = self.fit(X, y, **fit_params)
        return fitted.leave_one_out_difficulty(X, y, **fit_params)

    def fit_ranking(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[np.float64]:
        """Fit to the samples and return their difficulties as if they were new.

        They rank wrong labels better than those with the sample left out. The only sample of a
        class would be the easiest of all; it is infinitely hard here as well.

        Parameters
        ----------
        X, y, **fit_params : of :meth:`fit_difficulty`

        Returns
        -------
        difficulty : ndarray of shape (n_samples,)
            Larger means harder.
        """
        check_readable(X, name="X")  # in chunks, which `fit` takes
        fitted = self.fit(X, y, **fit_params)
        codes = encode(check_class_labels(y), self.classes_)
        weight = fit_params.get("sample_weight")
        left_out = np.minimum(1.0 if weight is None else np.asarray(weight), 1.0)
        alone = (self._statistics.weight[codes] - left_out <= 0) & (left_out > 0)
        return np.where(alone, np.inf, fitted.difficulty(X, y))

    def leave_one_out_difficulty(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Difficulty of the fitted samples, each left out of the fit; larger means harder.

        The result of ``fit`` on all others and ``difficulty`` of this one, in closed form. The
        only sample of a class is infinitely far from it. Weight k stands for k copies, one of
        which is left out. With shrinkage, the multiple of the identity in both covariances
        remains that of all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples of the fit.
        y : array-like of shape (n_samples,)
            Their labels in the fit.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights in the fit. Samples of weight 0 are scored, too.

        Returns
        -------
        difficulty : ndarray of shape (n_samples,)
            Larger means harder.

        Raises
        ------
        ValueError
            If the weights of the classes show that these are not the samples of the fit.
        """
        gaussians, *fitted = make_gaussians_without(self, X, y, sample_weight)
        return gaussians.to_own(*fitted)

    def leave_one_out_transform(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NDArray:
        """Return distances of the fitted samples to every class, each left out of the fit.

        Parameters
        ----------
        X, y, sample_weight : of :meth:`leave_one_out_difficulty`

        Returns
        -------
        distances : ndarray of shape (n_samples, n_classes)
            What ``fit`` on the other samples and ``transform`` of this one give.
        """
        gaussians, *fitted = make_gaussians_without(self, X, y, sample_weight)
        return gaussians.to_all(*fitted)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Return the names of the columns of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X, only compared with those of `fit`.

        Returns
        -------
        names : ndarray of str objects
            ``rmd_<class>``, or ``mahalanobis_<class>`` with ``relative=False``.
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        prefix = "rmd" if self.relative else "mahalanobis"
        return np.asarray([f"{prefix}_{label}" for label in self.classes_], dtype=object)

    @property
    def class_count_(self) -> NDArray[np.float64]:
        """Sum of the weights of each class."""
        return self._statistics.weight.copy()

    @property
    def means_(self) -> NDArray[np.float64]:
        """Class means."""
        return self._statistics.means()

    @property
    def mean_(self) -> NDArray[np.float64]:
        """Mean of all samples."""
        return self._statistics.mean()

    @property
    def covariance_(self) -> NDArray[np.float64]:
        """Covariance about the class means."""
        statistics = self._statistics
        return shrink(statistics.within_covariance(), self.shrinkage, statistics.total_weight)

    @property
    def background_covariance_(self) -> NDArray[np.float64]:
        """Covariance about the mean of all samples."""
        statistics, root = self._statistics, self._statistics.between_root()
        total = statistics.within_covariance() + root.T @ root
        return shrink(total, self.shrinkage, statistics.total_weight)

    def _read(self, X: Any, y: Any = "no_validation", *, reset: bool, **options: Any) -> Any:
        """Return checked samples, or samples and labels; normalized as they are read."""
        before = vars(self).get("_normalized", self.normalize)  # none in the first call
        if not reset and self.normalize != before:
            raise ValueError(
                f"normalize must be {before} as when samples were added, got {self.normalize}; "
                "fit a new scorer."
            )
        read = validate_rows(self, X, y, reset=reset, dtype=_DTYPES, **options)
        if not self.normalize:
            return read
        return (UnitRows(read[0]), read[1]) if isinstance(read, tuple) else UnitRows(read)

    def _see_no_samples(self, X: Any, classes: ArrayLike | None, is_first: bool) -> None:
        """Check the features and classes of a call without samples; keep announced classes."""
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
        # Not `check_class_labels`, which warns where all entries are distinct.
        announced = np.unique(as_labels(classes, name="classes"))
        if not is_first and not np.array_equal(announced, self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {format_labels(self.classes_)}, "
                f"got {format_labels(announced)}."
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
    ) -> Any:
        """Add samples to the statistics, new ones with `reset`; products run in `work`.

        Return the samples as they were read, None for those in chunks.
        """
        if is_chunked(X):
            self._update_from_chunks(X, y, classes, sample_weight, reset=reset, work=work)
            return None
        # NaN and infinity show in the sums, which are checked below: X is read only once. Samples
        # of weight 0 are not in the sums, and normalized ones are divided first.
        check_first = self.normalize or sample_weight is not None
        data, labels = self._read(
            X, check_class_labels(y), reset=reset, ensure_all_finite=check_first
        )
        weight = check_weights(sample_weight, len(data))
        if weight is not None and self.shrinkage == "auto" and work is None:
            warn_if_normalized(weight)  # the amount follows from the number of samples
        found = np.unique(labels if weight is None else labels[weight > 0])
        announced = self._check_announced(classes, reset)
        is_final = announced is not None if reset else self._announced
        if reset:
            new_classes = found if announced is None else announced
            statistics = GaussianStatistics.empty(len(new_classes), data.shape[1])
        else:
            joined = merge_classes(self.classes_, found, name="y")
            new_classes = self.classes_ if is_final else joined
            statistics = self._laid_out(new_classes)
        # A sample of weight 0 may have a label of its own.
        labels = labels if weight is None else np.where(weight > 0, labels, found[0])
        statistics = statistics.with_samples(data, encode(labels, new_classes), weight, work=work)
        if not np.isfinite(statistics.sums).all():
            self._read(X, reset=False)
        self._set_state(classes_=new_classes, _statistics=statistics, _announced=is_final)
        return data

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
        """Add the samples of dask arrays, as `_update` does."""
        X, y, sample_weight = align_chunks(True, X=X, y=y, sample_weight=sample_weight)
        # Checks names, number and type of the features before anything is computed.
        self._read(np.zeros((1, *X.shape[1:]), dtype=X.dtype), reset=reset)
        announced = self._check_announced(classes, reset)
        if not reset and self._announced:
            announced = self.classes_
        of_chunk = partial(_fit_chunk, clone(self), announced, work)
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
        """Set attributes, and drop the distances computed from earlier samples."""
        # In one step, so that an interruption leaves the old state or the new one. The distances
        # are computed on demand: a stream takes a single decomposition.
        state |= {"_distances": None, "_distances_by": None, "_normalized": self.normalize}
        self.__dict__.update(state)

    def _in_chunks(self, method: Callable[..., Any], X: Any, y: Any = None, **shape: Any) -> Any:
        """Return the results of a method for every chunk, lazily, with the samples seen so far."""
        X, *labels = align_chunks(X=X, **({} if y is None else {"y": y}))
        self._read(np.zeros((1, *X.shape[1:]), dtype=X.dtype), reset=False)
        return map_chunks(method, copy(self.finalize()), X, *labels, **shape)

    def _query(self, X: ArrayLike) -> tuple[NDArray, ClassDistances]:
        """Return checked samples, and the distances to compute for them."""
        data = self._read(X, reset=False)
        return data, self._fitted_distances(data)

    def _fitted_distances(self, samples: Any = None) -> ClassDistances:
        """Return the distances, computed again if samples or parameters have changed."""
        # `set_params` takes effect at the next call.
        if self._distances is None or self._distances_by != self._settings():
            return self._use(self._new_distances(samples))
        return self._distances

    def _settings(self) -> tuple[Any, ...]:
        return self.relative, self.shrinkage, self.tol

    def _new_distances(self, samples: Any = None) -> ClassDistances:
        """Return the distances, computed where the samples are."""
        return compute_class_distances(
            self._statistics,
            relative=self.relative,
            shrinkage=self.shrinkage,
            tol=self.tol,
            samples=samples,
        )

    def _use(self, distances: ClassDistances) -> ClassDistances:
        """Keep the distances, warn of their limits, and return them."""
        self.__dict__.update(_distances=distances, _distances_by=self._settings())
        # A weight of 2 or more stands for copies: the label does not occur only once.
        alone = (self._statistics.count == 1) & (self._statistics.weight < 2)
        n_free = int(self._statistics.count.sum()) - len(self.classes_)
        too_few = self.shrinkage is None and distances.form.rank >= n_free
        warn_of_limits(distances, self.classes_[alone], too_few)
        return distances


def make_gaussians_without(
    scorer: RelativeMahalanobisScorer,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
) -> tuple[LeftOut, NDArray, NDArray[np.intp], NDArray[np.float64]]:
    """Return the Gaussians of a fit, its samples, their classes and the weights to leave out.

    The last three, or the same rows of each, are what the distances of :class:`LeftOut` take.
    """
    check_is_fitted(scorer)
    samples, labels = scorer._read(X, y, reset=False)
    given = check_weights(sample_weight, len(samples))
    weight = np.ones(len(samples)) if given is None else given
    encode(labels[weight > 0], scorer.classes_)
    # A sample of weight 0 may have a label that the fit lacks.
    codes = np.maximum(find_positions(labels, scorer.classes_), 0)
    statistics = scorer._statistics
    seen = np.bincount(codes, weight, len(scorer.classes_))
    if not np.allclose(seen, statistics.weight, rtol=1e-6, atol=0.0):
        raise ValueError(
            "X, y and sample_weight must be those of the fit, got classes of other weights."
        )
    gaussians = LeftOut(statistics, scorer.relative, scorer.shrinkage, scorer.tol, samples)
    return gaussians, samples, codes, np.minimum(weight, 1.0)


def _fit_chunk(
    unfitted: RelativeMahalanobisScorer,
    classes: NDArray[Any] | None,
    work: type[np.floating] | None,
    X: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
) -> RelativeMahalanobisScorer:
    """Return a scorer of the samples of a chunk; of no samples if all weights are 0."""
    scorer = clone(unfitted)
    if sample_weight is not None and len(sample_weight) == len(X) and not sample_weight.any():
        X, y = X[:0], y[:0]
    if len(X):
        scorer._update(X, y, classes, sample_weight, reset=True, work=work)
    else:
        scorer._see_no_samples(X, classes, True)
    return scorer


def _name_features(scorer: Any) -> list[str] | str:
    """Return the names of the features or, without names, their number in words."""
    if hasattr(scorer, "feature_names_in_"):
        return scorer.feature_names_in_.tolist()
    return f"{scorer.n_features_in_} unnamed ones"


RMDScorer = RelativeMahalanobisScorer
