"""Train a classifier on labels that have been cleaned."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from ..utils._arrays import as_features, check_weights
from ..utils._compat import (
    HasMethods,
    StrOptions,
    _check_method_params,
    _fit_context,
    _routing_enabled,
    _safe_indexing,
    print_elapsed,
)
from ..utils._estimators import (
    DelegatingClassifier,
    check_fit_takes,
    fit_clone,
    fit_router,
    get_group_params,
    get_inner_fit_params,
    get_last_step,
    join_classes,
    read_samples,
    show_inner,
    warn_if_fitted,
)
from ..utils._labels import encode, format_labels
from ..utils._output import warn
from ._base_models import find_other_columns, holds_numbers
from ._constants import SOFT_LABEL_COVERAGE
from ._finder import LabelIssueFinder


class LabelCleaningClassifier(DelegatingClassifier):
    """Find wrong labels, correct or down-weight them, and train a classifier on the result.

    `fit` finds wrong labels with a :class:`LabelIssueFinder`, changes them according to `action`,
    and fits the classifier. All of this uses only the samples passed to `fit`, so nothing leaks in
    cross-validation; a validation fold keeps its labels as given.

    Parameters
    ----------
    estimator : classifier
        The classifier. A clone is fitted.
    finder : LabelIssueFinder, default=None
        Finds the wrong labels; None means ``LabelIssueFinder()`` or, where X is sparse, lacks
        values or has columns of dates, texts or categories, which only the classifier takes,
        ``LabelIssueFinder(estimator)``. A clone is fitted. Its estimator
        may be a Pipeline that embeds the samples first. A finder that was updated with checks of
        the samples of `fit` is used as it is, and so is one in a ``FrozenEstimator``.
    action : {"soft", "relabel", "drop", "weight"}, default="soft"
        What happens to the labels:

        - "soft": the classifier learns every sample with all its possible labels, weighted by
          their probabilities. If its `fit` has a parameter ``target_proba``, like that of
          :class:`~skcalib.nets.CalibratedNetClassifier`, it gets the probabilities of all classes
          there, and the given labels as `y`. Otherwise every sample is repeated with its most
          probable labels, up to a total probability of .99.
        - "relabel": issues get their suggested label.
        - "drop": issues are removed.
        - "weight": every sample keeps its label and is weighted by the probability that the label
          is right.

        "weight" needs a classifier whose `fit` takes ``sample_weight``, and so does "soft"
        without ``target_proba``.
    verbose : int, default=0
        Whether to print the seconds of the finder and of the classifier; 0 prints nothing. With
        ``finder=None``, the steps of the finder are printed as well.

    Attributes
    ----------
    finder_ : LabelIssueFinder
        The fitted finder; it was fitted without the samples of weight 0.
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted: those of `y`, and others that the classifier knows.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number and names of features, if `estimator_` has them.

    See Also
    --------
    LabelIssueFinder : Find wrong labels without training a classifier.
    skcalib.difficulty.DifficultyAwareClassifier : Weight samples by their difficulty.

    Examples
    --------
    >>> from sklearn.base import clone
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
    >>> cleaning = LabelCleaningClassifier(clone(plain), finder)
    >>> for model in (plain, cleaning):
    ...     print(round(model.fit(X[:900], given).score(X[900:], y[900:]), 2))
    0.87
    0.91
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "finder": [LabelIssueFinder, FrozenEstimator, None],
        "action": [StrOptions({"soft", "relabel", "drop", "weight"})],
        "verbose": ["verbose"],
    }

    def __init__(
        self, estimator: Any, finder: Any = None, *, action: str = "soft", verbose: int = 0
    ) -> None:
        self.estimator = estimator
        self.finder = finder
        self.action = action
        self.verbose = verbose

    # The parameters of the classifier and of the finder are theirs to validate.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        verified: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        votes: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Find wrong labels, clean them, then fit the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of n_samples objects
            Samples, in a form that both the finder and the classifier take.
        y : array-like of shape (n_samples,), default=None
            Their labels, some of which may be wrong. None, with votes, takes the most probable
            class by the votes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, for both the finder and the classifier.
        verified : array-like of shape (n_samples,), dtype bool, default=None
            True for samples whose label is known to be right; for the finder.
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together, such as those of a patient; for the folds of the
            finder, and for the classifier if its `fit` takes groups.
        votes : array-like of shape (n_samples, n_annotators), default=None
            Labels that several people gave each sample, NaN or None where somebody was not asked;
            the finder uses them to score `y` (see :meth:`LabelIssueFinder.fit`). With metadata
            routing, ``set_fit_request(votes=True)`` passes them on from a Pipeline or
            `cross_validate`, one row for each sample.
        **fit_params : dict
            Further parameters of ``estimator.fit``. Those with one entry per sample are sliced and
            repeated like the samples.

        Returns
        -------
        self : LabelCleaningClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If `action` needs weights and the classifier's `fit` takes none, or if a frozen finder
            was fitted to other labels.

        Warns
        -----
        SkcalibWarning
            If no sample of a class is left: the class will get probability 0.
        """
        of_rows = {"sample_weight": sample_weight, "verified": verified, "groups": groups}
        step = partial(print_elapsed, type(self).__name__, self.verbose)
        by_votes = y is None and votes is not None
        if by_votes:
            X = as_features(X)
            with step("finder"):
                self.finder_ = self._fitted_finder(X, None, None, **of_rows, votes=votes)
            y = self.finder_.issues_["label"]
        X, labels = read_samples(X, y)  # type: ignore[arg-type]  # None is an error there
        weight = check_weights(sample_weight, len(labels))
        warn_if_fitted(estimator=self.estimator)
        # With metadata routing, weights that nobody requested are an error here.
        to_route = weight if _routing_enabled() else None
        params = get_inner_fit_params(self, "estimator", to_route, fit_params, groups)
        target_name = _find_target_parameter(self.estimator) if self.action == "soft" else None
        repeats = self.action == "soft" and target_name is None
        if weight is not None or repeats or self.action == "weight":
            weight_name = _find_weight_parameter(self.estimator)
            # They come back below, for the samples that are learned.
            params.pop(weight_name, None)
        used = np.arange(len(labels)) if weight is None else np.flatnonzero(weight)
        if not by_votes:
            given = of_rows | {"sample_weight": weight, "votes": votes}
            rows = used if len(used) < len(labels) else None
            with step("finder"):
                self.finder_ = self._fitted_finder(X, labels, rows, **given)
        # A finder that is used as it is also holds the samples of weight 0.
        scored = used if len(self.finder_.issues_) == len(labels) else np.arange(len(used))
        # Do not learn a checked sample that belongs to no class.
        learned = np.flatnonzero(self.finder_.label_proba_[scored].any(axis=1))
        rows, cleaned, factor = self._cleaned(
            labels[used[learned]], scored[learned], repeats=repeats
        )
        rows = used[learned[rows]]
        params = _check_method_params(X, params, indices=rows)
        if repeats and groups is None and not _routing_enabled():
            # The classifier's own folds must keep the repeats of a sample together.
            params |= get_group_params(self.estimator, rows)
        if factor is not None or weight is not None:
            own = 1.0 if weight is None else weight[rows]
            params[weight_name] = own * (1.0 if factor is None else factor)
        if target_name is not None:
            params[target_name] = self._targets(scored[learned])
        with step("classifier"):
            self.estimator_ = fit_clone(
                self.estimator, _safe_indexing(X, rows), cleaned, params=params
            )
        self.classes_ = join_classes(self.estimator_, labels)
        _warn_of_lost(np.setdiff1d(labels, cleaned))
        show_inner(self, self.estimator_)
        return self

    def _fitted_finder(
        self,
        X: Any,
        labels: NDArray[Any] | None,
        rows: NDArray[np.intp] | None,
        **given: ArrayLike | None,
    ) -> LabelIssueFinder:
        """Return the finder, fitted on all samples or on `rows`; labels None: by votes alone."""
        finder = self.finder
        if finder is None:
            inner = None if holds_numbers(X) else self.estimator
            finder = LabelIssueFinder(inner, verbose=self.verbose)
        frozen = isinstance(finder, FrozenEstimator)
        fitted = finder.estimator if frozen else finder
        issues: Any = getattr(fitted, "issues_", None)
        as_it_is = issues is not None and (frozen or fitted.n_checks_)
        if as_it_is and labels is None:
            raise ValueError(
                "y must be finder.issues_['label'] where the finder is used as it is, got None."
            )
        if as_it_is and labels is not None and np.array_equal(issues["label"], labels):
            return fitted
        if frozen:
            raise ValueError(
                "finder must be fitted to the labels of this fit if it is frozen, got one that is "
                "not; unfreeze it to have it fitted here."
            )
        warn_if_fitted(finder=finder)
        params = {name: value for name, value in given.items() if value is not None}
        try:
            return fit_clone(finder, X, labels, rows, params)
        except (ValueError, TypeError) as error:
            others = find_other_columns(X)
            if self.finder is not None or not others or "could not convert" not in str(error):
                raise
            name = type(self.estimator).__name__
            raise ValueError(
                f"X must hold numbers for {name}, got column {others[0]!r} of other values; "
                f"make_pipeline(ColumnTransformer(...), {name}()) as estimator turns columns into "
                "numbers first."
            ) from error

    def _targets(self, scored: NDArray[np.intp]) -> NDArray[np.floating]:
        """Return the probabilities of the labels, with columns in the classifier's order."""
        proba, classes = self.finder_.label_proba_[scored], self.finder_.classes_
        # The columns of a skorch net follow its parameter `classes`.
        named = getattr(get_last_step(self.estimator)[0], "classes", None)
        if named is None:
            return proba
        targets = np.zeros((len(proba), len(named)), dtype=proba.dtype)
        targets[:, encode(classes, np.asarray(named))] = proba
        return targets

    def _cleaned(
        self, labels: NDArray[Any], scored: NDArray[np.intp], *, repeats: bool
    ) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[np.float64] | None]:
        """Return the samples to learn (some of them several times), their labels and weights."""
        issues, every = self.finder_.issues_[scored], np.arange(len(labels))
        is_issue = issues["is_issue"].astype(bool)
        if self.action == "drop":
            return every[~is_issue], labels[~is_issue], None
        if self.action == "relabel":
            suggested = issues["suggested_label"].astype(labels.dtype)
            return every, np.where(is_issue, suggested, labels), None
        if self.action == "weight":
            return every, labels, issues["p_label_correct"].astype(np.float64)
        if not repeats:
            return every, labels, None
        rows, columns, weights = make_soft_labels(self.finder_.label_proba_[scored])
        return rows, self.finder_.classes_[columns], weights

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            This object uses `sample_weight`, `verified`, `groups` and `votes`; further metadata
            of `fit` goes to the classifier, if it requests them.
        """
        return fit_router(self, estimator=self.estimator)

    def _inside(self) -> dict[str, Any]:
        # Without a finder, one is chosen that takes what the classifier takes.
        finder = LabelIssueFinder(self.estimator) if self.finder is None else self.finder
        return {"estimator": self.estimator, "finder": finder}


def make_soft_labels(
    label_proba: NDArray, coverage: float = SOFT_LABEL_COVERAGE
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Return (samples, classes, weights) of the most probable labels of each sample.

    They are as many as it takes for a total probability of `coverage`; the weights of a sample sum
    to one.
    """
    order = np.argsort(-label_proba, axis=1, kind="stable")
    ranked = np.take_along_axis(label_proba, order, axis=1).astype(np.float64)
    # A label is needed if those before it have less than `coverage`: the first always is.
    before = np.cumsum(ranked, axis=1) - ranked
    kept = before < coverage
    ranked[~kept] = 0.0
    ranked /= ranked.sum(axis=1, keepdims=True)
    samples, ranks = np.nonzero(kept)
    return samples, order[samples, ranks], ranked[samples, ranks]


def _find_weight_parameter(estimator: Any) -> str:
    """Return the name of the parameter of `fit` that takes the weights."""
    final, prefix = _find_receiver(estimator)
    check_fit_takes(final, "sample_weight", " (action='relabel' and action='drop' need none)")
    return prefix + "sample_weight"


def _find_target_parameter(estimator: Any) -> str | None:
    """Return the name of the parameter of `fit` that takes soft targets; None without one."""
    final, prefix = _find_receiver(estimator)
    if isinstance(final, Pipeline):  # with routing, it passes on what its steps request
        requested = get_routing_for_object(final).consumes("fit", ["target_proba"])
        return "target_proba" if requested else None
    # It must have this name: nobody knows what ``**fit_params`` would do with it.
    return prefix + "target_proba" if has_fit_parameter(final, "target_proba") else None


def _find_receiver(estimator: Any) -> tuple[Any, str]:
    """Return the estimator whose `fit` gets the parameters, and their prefix.

    That is the last step of a Pipeline or, with metadata routing, the Pipeline itself.
    """
    return (estimator, "") if _routing_enabled() else get_last_step(estimator)


def _warn_of_lost(classes: NDArray[Any]) -> None:
    if len(classes):
        warn(
            f"No sample of class {format_labels(classes)[1:-1]} is left after the cleaning; its "
            "probability will be 0."
        )
