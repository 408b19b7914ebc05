"""Selectors: choose samples by difficulty, or by what a model is least confident about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted

from ..utils._arrays import as_features, check_readable, check_weights
from ..utils._backends import align_chunks, is_chunked, map_chunks
from ..utils._compat import (
    HasMethods,
    Interval,
    StrOptions,
    _check_feature_names_in,
    _fit_context,
    _routing_enabled,
    _safe_indexing,
)
from ..utils._estimators import (
    MetaMixin,
    VersionMixin,
    as_indexable,
    check_fit_takes,
    compute_difficulty,
    fit_clone,
    fit_difficulty_of_used,
    get_inner_fit_params,
    get_last_step,
    show_inner,
    validate_data,
    warn_if_fitted,
)
from ..utils._labels import check_class_labels, check_several_classes
from ..utils._numeric import compute_row_entropy, compute_row_margin, compute_row_max
from ..utils._output import name_argument
from ..utils._proba import as_proba, check_proba_matrix, iter_proba_blocks

# Base of the selectors: scores, how many samples to choose, and which.


class BaseSelector(MetaMixin, TransformerMixin, VersionMixin, BaseEstimator, ABC):
    """Base of estimators that score samples and choose some of them by their scores."""

    random_state: int | np.random.RandomState | None
    support_: NDArray[np.bool_]

    @abstractmethod
    def _score(self, X: Any) -> NDArray[np.floating]:
        """Return one score per sample."""

    @abstractmethod
    def _inside(self) -> dict[str, Any]:
        """Return the inner estimators, by the name of their parameter."""

    def transform(self, X: Any) -> NDArray[np.floating]:
        """Score every sample, without its label; the number of rows stays the same.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, in the form that `fit` got.

        Returns
        -------
        scores : ndarray of shape (n_samples, 1)
            Larger = harder, or more informative.
        """
        check_is_fitted(self)
        return self._score(X)[:, None]

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Return which samples of `fit` were chosen.

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

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the name of the column of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X, only compared with those of `fit`.

        Returns
        -------
        names : ndarray of str objects
            The name of the score, one column.
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        return np.asarray([getattr(self, "criterion", "difficulty")], dtype=object)

    def _draw_seed(self) -> int:
        """Return a seed to keep, so that `select` draws the same samples as `fit`."""
        return check_random_state(self.random_state).randint(np.iinfo(np.int32).max)


def compute_n_chosen(n: int, *, fraction: float, n_samples: int | None) -> int:
    """Return how many of n samples to choose: `n_samples`, or if it is None, a `fraction`."""
    if n_samples is None:
        # Round halves up: round() would round them to even.
        return max(1, int(fraction * n + 0.5))
    if n_samples > n:
        raise ValueError(f"n_samples must be at most the number of rows, {n}, got {n_samples}.")
    return n_samples


def draw_scores(weights: NDArray[np.floating], uniform: NDArray[np.floating]) -> NDArray:
    """Return scores whose n largest are a draw without replacement, in proportion to weights.

    The scores are log weights plus Gumbel noise, made from uniform numbers in [0, 1).
    """
    # Samples of weight 0 come last, in random order.
    weights = np.maximum(weights, np.finfo(weights.dtype).tiny)
    return np.log(weights) - np.log(-np.log(uniform))


def choose_top(
    scores: NDArray[np.floating], *, fraction: float, n_samples: int | None
) -> NDArray[np.bool_]:
    """Return the mask of the largest scores, :func:`compute_n_chosen` many.

    Ties at the cut are broken by row order.
    """
    n = len(scores)
    count = compute_n_chosen(n, fraction=fraction, n_samples=n_samples)
    # The count-th largest score: choose all larger ones, and the first ones that equal it.
    cut = np.partition(scores, n - count)[n - count]
    chosen = scores > cut
    ties = np.flatnonzero(scores == cut)
    chosen[ties[: count - chosen.sum()]] = True
    return chosen


# Choose samples by their difficulty.

N_STRATA = 50
# Sum of the two parameters of the Beta density, as in the paper.
BETA_STRENGTH = 15.0


class DifficultySelector(BaseSelector):
    """Choose the easiest samples by a difficulty scorer, to train without the hardest.

    It helps against wrong labels, which are common among the hardest samples, and costs accuracy
    otherwise. On 96 small tasks with right labels, the default cost .020 accuracy on average and
    .12 at worst; with 10 or 20 % wrong labels it gained .023. A grid search over `fraction` finds
    out which is the case.

    :class:`~skcalib.selection.SubsetClassifier` trains a classifier on the chosen samples.

    Parameters
    ----------
    scorer : difficulty scorer or Pipeline ending in one
        For example :class:`~skcalib.difficulty.RMDScorer`. A clone is fitted on the samples, and
        its `fit_difficulty` scores them. A Pipeline can embed the samples first.
    fraction : float in (0, 1], default=0.9
        Fraction of the samples to keep, rounded to the nearest count, at least one. Ignored if
        `n_samples` is given.
    n_samples : int, default=None
        Number of samples to keep; None means the `fraction`.
    keep : {"easiest", "hardest"}, default="easiest"
        Which samples to keep. Use "hardest" if there are more samples than the classifier needs,
        with right labels [1]_. Only for ``sampling="top"``.
    sampling : {"top", "stratified", "beta"}, default="top"
        "top" keeps the easiest samples, or the hardest. At small fractions that is a biased
        sample; the other two draw from all difficulties. "stratified" draws the same number from
        each of 50 intervals of difficulty, or all samples of a smaller interval [2]_. "beta" draws
        by a Beta density of the rank of the difficulty. It is centered in the middle if most
        samples are kept, and moves to the easy end as fewer are kept [3]_.
    cutoff : float in [0, 1), default=0.0
        Fraction of the hardest samples, which often have wrong labels, that "stratified" and
        "beta" never draw.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Attributes
    ----------
    scorer_ : difficulty scorer or Pipeline
        The fitted scorer.
    difficulty_ : ndarray of shape (n_samples,)
        Difficulty of the samples of `fit`, larger = harder. NaN for samples of weight 0.
    support_ : ndarray of shape (n_samples,), dtype bool
        Which samples are kept. Ties at the cut are broken by the order of the samples.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number and names of features, if `scorer_` has them.

    See Also
    --------
    SubsetClassifier : Fit a classifier on the chosen samples.
    MaxEntropySelector : Choose the samples that a model is least confident about.
    skcalib.difficulty.DifficultyAwareClassifier : Weight the samples, and keep all.

    References
    ----------
    .. [1] B. Sorscher, R. Geirhos, S. Shekhar, S. Ganguli, A. Morcos, "Beyond neural scaling
       laws: beating power law scaling via data pruning", NeurIPS 2022.
    .. [2] H. Zheng, R. Liu, F. Lai, A. Prakash, "Coverage-centric Coreset Selection for High
       Pruning Rates", ICLR 2023.
    .. [3] Y. Cho, B. Shin, C. Kang, C. Yun, "Lightweight Dataset Pruning without Full Training via
       Example Difficulty and Prediction Uncertainty", ICML 2025, Sec. 3.3 (which has predictions
       in place of ranks).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.difficulty import RMDScorer
    >>> from skcalib.selection import DifficultySelector
    >>> X, y = load_iris(return_X_y=True)
    >>> y[[3, 70]] = 2, 0  # two wrong labels
    >>> selector = DifficultySelector(RMDScorer(), n_samples=148).fit(X, y)
    >>> (~selector.get_support()).nonzero()[0]
    array([ 3, 70])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scorer": [HasMethods(["fit"])],
        "fraction": [Interval(Real, 0, 1, closed="right")],
        "n_samples": [Interval(Integral, 1, None, closed="left"), None],
        "keep": [StrOptions({"easiest", "hardest"})],
        "sampling": [StrOptions({"top", "stratified", "beta"})],
        "cutoff": [Interval(Real, 0, 1, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        scorer: Any,
        *,
        fraction: float = 0.9,
        n_samples: int | None = None,
        keep: str = "easiest",
        sampling: str = "top",
        cutoff: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.scorer = scorer
        self.fraction = fraction
        self.n_samples = n_samples
        self.keep = keep
        self.sampling = sampling
        self.cutoff = cutoff
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Score the samples and choose among them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of n_samples objects
            Samples, in the form that the scorer takes.
        y : array-like of shape (n_samples,), default=None
            Labels; None if the scorer needs none.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights for the scorer. Samples of weight 0 are not counted and never kept; all others
            count as one sample.
        **fit_params : dict
            Further parameters of the scorer's `fit_difficulty`, such as the `groups` of
            :class:`~skcalib.difficulty.LossScorer`.

        Returns
        -------
        self : DifficultySelector
            The fitted selector.

        Raises
        ------
        ValueError
            If X has fewer samples than `n_samples`, if a weight is negative, if weights are given
            and the scorer takes none, or if a difficulty is NaN.
        TypeError
            If `scorer` is not a difficulty scorer or a Pipeline that ends in one.
        """
        X, labels, n = as_indexable(X, y)
        weight = check_weights(sample_weight, n)
        used = np.arange(n) if weight is None else np.flatnonzero(weight)
        # Raise for a bad count before the scorer is fitted.
        compute_n_chosen(len(used), **self._count())
        warn_if_fitted(scorer=self.scorer)
        params = self._scorer_params(weight, fit_params)
        self.scorer_, self.difficulty_ = fit_difficulty_of_used(
            clone(self.scorer), X, labels, used, params
        )
        show_inner(self, self.scorer_)
        self._seed = self._draw_seed()
        self.support_ = np.zeros(n, dtype=bool)
        self.support_[used] = self._chosen(self.difficulty_[used])
        return self

    def select(self, X: Any, y: ArrayLike | None = None, *arrays: Any) -> Any:
        """Choose among other samples, and return the chosen rows of X and of every array.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, which the fitted scorer scores.
        y : array-like of shape (n_samples,), default=None
            Their labels. None uses the difficulty without labels, which cannot notice wrong ones.
        *arrays : array-likes of length n_samples
            Further arrays with one entry per sample.

        Returns
        -------
        chosen : array, or list of arrays
            The chosen rows of X, in order. With `y` or `arrays`, a list of these rows of each.

        Raises
        ------
        ValueError
            If X, `y` and `arrays` differ in length.
        """
        check_is_fitted(self)
        given = [*([] if y is None else [y]), *arrays]
        with name_argument("X", "y", "arrays"):
            check_consistent_length(X, *given)
        X = as_features(X)
        labels = None if y is None else check_class_labels(y)
        rows = np.flatnonzero(self._chosen(compute_difficulty(self.scorer_, X, labels)))
        chosen = [_safe_indexing(array, rows) for array in (X, *given)]
        return chosen if given else chosen[0]

    def _score(self, X: Any) -> NDArray[np.floating]:
        return compute_difficulty(self.scorer_, as_features(X))

    def _inside(self) -> dict[str, Any]:
        return {"scorer": self.scorer}

    def _count(self) -> dict[str, Any]:
        return {"fraction": self.fraction, "n_samples": self.n_samples}

    def _scorer_params(self, weight: NDArray | None, fit_params: dict[str, Any]) -> dict[str, Any]:
        if weight is None or _routing_enabled():
            return get_inner_fit_params(self, "scorer", weight, fit_params)
        # In a Pipeline, the weights go to the last step.
        check_fit_takes(get_last_step(self.scorer)[0], "sample_weight", name="scorer")
        return {**fit_params, "sample_weight": weight}

    def _chosen(self, difficulty: NDArray[np.floating]) -> NDArray[np.bool_]:
        n_missing = int(np.isnan(difficulty).sum())
        if n_missing:
            raise ValueError(
                "scorer must give every sample a difficulty, got NaN for "
                f"{n_missing} of {len(difficulty)}."
            )
        if self.sampling == "top":
            return choose_top(
                -difficulty if self.keep == "easiest" else difficulty, **self._count()
            )
        n_chosen = compute_n_chosen(len(difficulty), **self._count())
        order = np.argsort(difficulty, kind="stable")
        n_left = len(order) - int(self.cutoff * len(order))
        if n_chosen > n_left:
            raise ValueError(
                f"cutoff must leave the {n_chosen} samples to keep, got {self.cutoff} of "
                f"{len(order)} samples."
            )
        uniform = np.random.RandomState(self._seed).uniform(size=n_left)
        draw = _draw_stratified if self.sampling == "stratified" else _draw_beta
        chosen = np.zeros(len(order), dtype=bool)
        chosen[order[:n_left][draw(difficulty[order[:n_left]], n_chosen, uniform)]] = True
        return chosen


def _draw_stratified(difficulty: NDArray, n_chosen: int, uniform: NDArray) -> NDArray[np.intp]:
    """Return positions, equally many from every interval of the (sorted) difficulty."""
    finite = difficulty[np.isfinite(difficulty)]
    low, high = (finite[0], finite[-1]) if len(finite) else (0.0, 1.0)
    edges = np.linspace(low, high, N_STRATA + 1)[1:-1]
    stratum = np.searchsorted(edges, difficulty, side="right")
    sizes = np.bincount(stratum, minlength=N_STRATA)
    # Start with the smallest strata: what they lack is shared among the others.
    counts = np.zeros(N_STRATA, dtype=int)
    for n_open, k in zip(range(N_STRATA, 0, -1), np.argsort(sizes, kind="stable")):
        counts[k] = min(sizes[k], (n_chosen - counts.sum()) // n_open)
    # Order by stratum, at random within each, and draw the first ones of each.
    order = np.lexsort([uniform, stratum])
    rank = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[stratum[order]]
    return order[rank < counts[stratum[order]]]


def _draw_beta(difficulty: NDArray, n_chosen: int, uniform: NDArray) -> NDArray[np.intp]:
    """Return positions, drawn by a Beta density of the rank; the difficulty is sorted."""
    n = len(difficulty)
    easiness = 1 - (np.arange(n) + 0.5) / n
    pruned = 1 - n_chosen / n
    # The mean of the density moves from the middle to the easy end as more is pruned.
    b = BETA_STRENGTH * 0.5 * (1 - pruned**2)
    density = beta.pdf(easiness, BETA_STRENGTH - b, b)
    return np.argsort(-draw_scores(density, uniform), kind="stable")[:n_chosen]


# Choose the samples that a model is least confident about.

# Scores of a block of probabilities, larger = more informative. The entropy is summed over sorted
# rows, so that rows with the same values in another order tie exactly.
_SCORES = {
    "entropy": lambda block: compute_row_entropy(np.sort(block, axis=1)),
    "margin": lambda block: -compute_row_margin(block),
    "least_confidence": lambda block: 1 - compute_row_max(block),
}


class MaxEntropySelector(BaseSelector):
    """Choose the samples that a classifier is least confident about, to train on fewer samples.

    Training on fewer samples costs accuracy if data are scarce. On 96 small tasks with right
    labels, the default (the least certain 70 %) changed accuracy by less than .005 on average and
    cost .12 at worst; a random 70 % cost .013 on average. The least certain 30 % cost .152 on
    average and .58 at worst; a random 30 % cost .073 on average.

    Each sample gets a score from its predicted class probabilities, larger = more informative, and
    the samples with the largest scores are chosen [1]_. :meth:`select` returns the chosen samples;
    :meth:`transform` returns the scores of all samples, as a step of a Pipeline must.
    :class:`~skcalib.selection.SubsetClassifier` trains a classifier on the chosen samples, also in
    a Pipeline or a grid search.

    Parameters
    ----------
    estimator : classifier with predict_proba, or None, default=None
        `fit` trains a clone and scores its ``predict_proba(X)``. Wrap a trained model in
        :class:`sklearn.frozen.FrozenEstimator` to use it without training. None means that X holds
        class probabilities, shape (n_samples, n_classes).
    fraction : float in (0, 1], default=0.7
        Fraction of the samples to choose, rounded to the nearest count, at least one. Ignored if
        `n_samples` is given.
    n_samples : int, default=None
        Number of samples to choose; None means the `fraction`.
    criterion : {"entropy", "margin", "least_confidence", "random"}, default="entropy"
        The score. "entropy": the entropy of the probabilities, in nats. "margin": minus the
        difference of the two largest probabilities. "least_confidence": one minus the largest
        probability. "random": uniform random numbers, a baseline for comparisons.
    sampling : {"top", "soft"}, default="top"
        "top" chooses the samples with the largest scores. "soft" draws without replacement, in
        proportion to the score (for "margin", one minus the margin). Use "soft" if some labels are
        wrong or some classes rare: the largest scores may be mostly theirs.
    random_state : int, RandomState instance or None, default=None
        Seed of ``criterion="random"`` and of ``sampling="soft"``.

    Attributes
    ----------
    estimator_ : classifier
        The fitted clone, or `estimator` itself if frozen. Not set with ``estimator=None``.
    scores_ : ndarray of shape (n_samples,)
        Scores of the samples of `fit`, larger = more informative.
    support_ : ndarray of shape (n_samples,), dtype bool
        Which samples are chosen. Ties at the cut are broken by the order of the samples; rows with
        the same probabilities in another order tie.
    n_features_in_ : int
        Number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of X, if they are all strings.

    See Also
    --------
    SubsetClassifier : Fit a classifier on the chosen samples.
    DifficultySelector : Choose the easiest samples, or the hardest.
    skcalib.nets.EpochPrioritizer : Choose again in every epoch of training.

    References
    ----------
    .. [1] G. Tata, G. K. Gudur, G. Chennupati, M. E. Khan, "Can Calibration Improve Sample
       Prioritization?", HITY Workshop, NeurIPS 2022, Sec. 3. Calls: :ref:`paper-prio`.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "fraction": [Interval(Real, 0, 1, closed="right")],
        "n_samples": [Interval(Integral, 1, None, closed="left"), None],
        "criterion": [StrOptions({"entropy", "margin", "least_confidence", "random"})],
        "sampling": [StrOptions({"top", "soft"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        fraction: float = 0.7,
        n_samples: int | None = None,
        criterion: str = "entropy",
        sampling: str = "top",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.fraction = fraction
        self.n_samples = n_samples
        self.criterion = criterion
        self.sampling = sampling
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Score the samples and choose among them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, or class probabilities with ``estimator=None``.
        y : array-like of shape (n_samples,), default=None
            Class labels to train `estimator`; not used otherwise.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights to train `estimator`. Samples of weight 0 are not counted and never chosen; all
            others count as one sample.
        **fit_params : dict
            Further parameters of ``estimator.fit``.

        Returns
        -------
        self : MaxEntropySelector
            The fitted selector.

        Raises
        ------
        ValueError
            If X must hold probabilities and does not, if X has fewer samples than `n_samples`, if
            `y` has a single class, if a weight is negative, or if `fit_params` are given without
            an estimator.
        """
        X, _, n = as_indexable(X, None)  # only the estimator uses labels
        weight = check_weights(sample_weight, n)
        rows = np.arange(n) if weight is None else np.flatnonzero(weight)
        # Raise for a bad count before the estimator is trained.
        compute_n_chosen(len(rows), fraction=self.fraction, n_samples=self.n_samples)
        if self.estimator is None:
            if fit_params:
                raise ValueError(
                    f"estimator must be given with fit parameters {sorted(fit_params)}, got None."
                )
            validate_data(self, X, skip_check_array=True)
        else:
            warn_if_fitted(estimator=self.estimator)
            labels = None if y is None else check_class_labels(y)
            params = get_inner_fit_params(self, "estimator", weight, fit_params)
            self.estimator_ = fit_clone(self.estimator, X, labels, params=params)
            check_several_classes(self.estimator_.classes_)
            show_inner(self, self.estimator_)
        self._seed = self._draw_seed()
        self.scores_ = self._score(X)
        self.support_ = np.zeros(n, dtype=bool)
        # Samples of weight 0 have a score, but do not count for the fraction.
        self.support_[rows] = self.choose(self.scores_[rows])
        return self

    def select(self, X: ArrayLike, *arrays: Any) -> Any:
        """Choose the most informative samples of X, and return these rows of X and every array.

        X need not be that of `fit`: its samples are scored here.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Samples, in the form that `fit` got.
        *arrays : array-likes or dask arrays of length n_samples
            Labels, weights or other arrays with one entry per sample.

        Returns
        -------
        chosen : array, or list of arrays
            The chosen rows of X, in order. With `arrays`, a list of these rows of each. If X is a
            dask array, they are lazy, in chunks of unknown size: the choice is made at once, by
            one process that holds one number per sample, and X is read again for the chosen rows.

        Raises
        ------
        ValueError
            If X and `arrays` differ in length.
        """
        check_is_fitted(self)
        if is_chunked(X):
            named = {f"arrays[{i}]": array for i, array in enumerate(arrays)}
            chunked = align_chunks(X=X, **named)
            chosen = choose_samples(self._choice, MaxEntropySelector._score, self, *chunked)
            return chosen if arrays else chosen[0]
        with name_argument("X", "arrays"):
            check_consistent_length(X, *arrays)
        rows = np.flatnonzero(self.choose(self._score(X)))
        chosen = [_safe_indexing(array, rows) for array in (X, *arrays)]
        return chosen if arrays else chosen[0]

    def score_proba(self, y_proba: ArrayLike, *, name: str = "y_proba") -> NDArray[np.floating]:
        """Score class probabilities; `fit` is not needed.

        Parameters
        ----------
        y_proba : array-like of shape (n_samples, n_classes)
            Class probabilities.
        name : str, default="y_proba"
            Name of the probabilities in error messages.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores of the criterion, larger = more informative.

        Raises
        ------
        ValueError
            If `criterion` is "random", or if `y_proba` holds no probabilities.
        """
        if self.criterion == "random":
            raise ValueError("criterion must not be 'random' for score_proba, got 'random'.")
        blocks = iter_proba_blocks(as_proba(y_proba, name=name), name=name)
        return np.concatenate([_SCORES[self.criterion](block) for _, block in blocks])

    def choose(self, scores: NDArray[np.floating], uniform: NDArray | None = None) -> NDArray:
        """Choose samples by given scores, as `fit` does.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            Scores of the criterion, larger = more informative.
        uniform : ndarray of shape (n_samples,), default=None
            Random numbers in [0, 1) for ``sampling="soft"``; None uses those of `fit`.

        Returns
        -------
        chosen : ndarray of shape (n_samples,), dtype bool
            True for chosen samples.
        """
        if self.sampling == "soft":
            if uniform is None:  # other numbers than those of criterion="random"
                check_is_fitted(self)
                uniform = np.random.RandomState(self._seed ^ 1).uniform(size=len(scores))
            # The margin's scores are in [-1, 0]; the others are not negative.
            weights = scores + 1 if self.criterion == "margin" else scores
            scores = draw_scores(weights, uniform)
        return choose_top(scores, fraction=self.fraction, n_samples=self.n_samples)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.estimator is not None
        return tags

    def _inside(self) -> dict[str, Any]:
        return {} if self.estimator is None else {"estimator": self.estimator}

    def _choice(self, scores: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Choose samples by scores that were computed chunk by chunk."""
        if self.criterion == "random":  # each chunk has drawn the same numbers
            scores = np.random.RandomState(self._seed).uniform(size=len(scores))
        return self.choose(scores)

    def _score(self, X: ArrayLike) -> NDArray[np.floating]:
        check_readable(X, name="X")
        if self.estimator is None:
            validate_data(self, X, reset=False, skip_check_array=True)
            name, values = "X", X
        else:
            name, values = "y_proba", self.estimator_.predict_proba(X)
        if self.criterion == "random":
            # Only the number of rows matters, but invalid probabilities are errors as usual.
            proba = check_proba_matrix(values, name=name)
            return np.random.RandomState(self._seed).uniform(size=len(proba))
        return self.score_proba(values, name=name)


def choose_samples(
    chosen: Callable[[Any], Any], of_chunk: Callable[..., Any], state: Any, X: Any, *others: Any
) -> list[Any]:
    """Return the samples of X and of the others in the mask ``chosen(scores)``, in chunks, lazily.

    The scores are ``of_chunk(state, X)``; one process gathers those of all samples. The mask is
    computed at once and stays with the workers.
    """
    import dask
    import dask.array as da

    if np.isnan(X.shape[0]):
        raise ValueError(
            "X must have chunks of known sizes, got unknown ones; compute_chunk_sizes() finds "
            "them."
        )
    scores = map_chunks(of_chunk, state, X, dtype=np.float64)
    whole = dask.delayed(chosen, traverse=False)(scores)
    mask = da.from_delayed(whole, shape=(len(X),), dtype=bool).rechunk((X.chunks[0],))
    # Within one graph, every chunk of X would be held until the last score is known.
    mask = mask.persist()
    return [array[mask] for array in (X, *others)]
