"""Estimators inside estimators: checks of X and y, clones, folds, metadata, scorers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import Parameter, signature
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from scipy.stats import binom
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedGroupKFold,
    check_cv,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import InputTags, Tags, assert_all_finite, gen_batches, get_tags, indexable
from sklearn.utils import validation as sklearn_validation
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ._arrays import (
    as_features,
    as_numeric_features,
    check_has,
    check_not_nested,
)
from ._backends import TensorRows, by_chunks, is_on_accelerator
from ._compat import (
    _check_method_params,
    _estimator_has,
    _num_samples,
    _routing_enabled,
    _safe_indexing,
    available_if,
)
from ._labels import (
    check_class_labels,
    encode,
    encode_groups,
    find_positions,
    format_labels,
)
from ._numeric import BLOCK_SIZE
from ._output import name_argument, warn
from ._proba import TOLERANCE, check_values


def validate_data(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    ensure_all_finite: bool = True,
    **options: Any,
) -> Any:
    """Validate by scikit-learn's function of the same name.

    Tensors are read. Masks, dates and durations, which scikit-learn would misread, are errors.
    """
    X = as_numeric_features(X)
    check_not_nested(X, name="X")
    is_half = isinstance(X, np.ndarray) and X.dtype == np.float16
    by_sum = ensure_all_finite and not is_half
    with name_argument("X", "y"):
        validated = sklearn_validation.validate_data(
            estimator, X, y, ensure_all_finite=by_sum, **options
        )
        if ensure_all_finite and is_half and not get_config()["assume_finite"]:
            _check_half_finite(X, type(estimator).__name__)
    return validated


def validate_rows(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    ensure_all_finite: bool = True,
    **options: Any,
) -> Any:
    """Validate as `validate_data` does; on an accelerator a tensor stays, as `TensorRows`."""
    if not is_on_accelerator(X) or (X.ndim != 2 and not options.get("allow_nd")):
        return validate_data(estimator, X, y, ensure_all_finite=ensure_all_finite, **options)
    # scikit-learn checks everything but the values on a matrix of that shape without memory.
    stand_in = np.broadcast_to(np.zeros((), complex if X.is_complex() else float), X.shape)
    with name_argument("X", "y"):
        validated = sklearn_validation.validate_data(
            estimator, stand_in, y, ensure_all_finite=False, **options
        )
    rows = TensorRows(X)
    if ensure_all_finite:
        rows.check_finite(estimator_name=type(estimator).__name__, input_name="X")
    return (rows, validated[1]) if isinstance(validated, tuple) else rows


def _check_half_finite(X: NDArray[np.float16], estimator_name: str) -> None:
    """Raise what scikit-learn would raise for NaN and infinity in float16.

    It adds up all values, which overflows, and then makes a mask as large as the data.
    """
    for rows in gen_batches(len(X), max(1, BLOCK_SIZE // X.shape[1])):
        if not np.isfinite(X[rows]).all():
            assert_all_finite(X[rows], estimator_name=estimator_name, input_name="X")


# Calls of the estimators inside a meta-estimator, in one place.
#
# - They get labels as the user gave them, in folds too: `class_weight={"a": 2}` works there.
# - Their probabilities and scores come back in the order of the classes that the caller names
#   (:func:`predict_columns`), whatever the order of `estimator.classes_`.
# - A frozen estimator is never trained; a fitted one that will be trained again brings a warning.
# - Samples that belong together (`groups`) stay together in all folds.


def has_argument(function: Any, name: str) -> bool:
    """Return whether a function takes an argument of that name, or any by ``**kwargs``."""
    parameters = signature(function).parameters.values()
    return any(p.kind is Parameter.VAR_KEYWORD or p.name == name for p in parameters)


def get_last_step(estimator: Any) -> tuple[Any, str]:
    """Return the last step of nested Pipelines, and the prefix that its `fit` parameters have."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return estimator, prefix


def warn_if_fitted(**estimators: Any) -> None:
    """Warn about fitted estimators that are not frozen: clones of them will be trained anew.

    Also about those inside an estimator that is not fitted, such as the classifier of a selector.
    """
    for name, estimator in estimators.items():
        if isinstance(estimator, FrozenEstimator | type) or not hasattr(estimator, "fit"):
            continue
        if _has_learned(estimator):
            warn(
                f"{name} is a fitted {type(estimator).__name__} and will be trained again on the "
                f"samples of this fit; sklearn.frozen.FrozenEstimator({name}) keeps it as it is."
            )
        elif hasattr(estimator, "get_params"):
            inside = estimator.get_params(deep=False)
            warn_if_fitted(**{f"{name}.{key}": value for key, value in inside.items()})


def _has_learned(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
        return get_tags(estimator).requires_fit
    except (NotFittedError, TypeError, AttributeError):  # the last two: no scikit-learn estimator
        return False


def fit_clone(
    estimator: Any,
    X: Any,
    y: NDArray | None,
    rows: NDArray[np.intp] | None = None,
    params: dict[str, Any] | None = None,
) -> Any:
    """Return a clone fitted on all samples or on `rows`; a frozen estimator stays as it is.

    Parameters of `fit` that have one entry for every sample are cut to the rows.
    """
    params = params or {}
    if rows is not None:
        params = _check_method_params(X, params, indices=rows)
        X, y = _safe_indexing(X, rows), None if y is None else y[rows]
    return clone(estimator).fit(X, y, **params)


# Classes, and the columns of probabilities and scores

# Samples on which the decision values of a classifier are compared with its predictions, and the
# level of that test: by chance, one fit in a thousand would be refused.
_SAMPLE_ROWS, _LEAST_P_VALUE = 500, 1e-3
_ONE_SCORE_PER_CLASS = (
    "; a support vector machine returns them with decision_function_shape='ovr', and "
    'response_method="predict_proba" reads probabilities instead'
)


def join_classes(estimator: Any, labels: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted union of the classes of `labels` and of a fitted estimator.

    The classes of a frozen one must include all labels; another may have seen only some of them.
    """
    known = np.unique(_find_classes(estimator, np.unique(labels)))
    if isinstance(estimator, FrozenEstimator):
        encode(labels, known)
        return known
    present = np.unique(labels)
    return present if np.isin(known, present).all() else np.union1d(present, known)


def _find_classes(estimator: Any, default: NDArray[Any]) -> NDArray[Any]:
    # Without `classes_`, columns are in the order of the sorted labels, as in scikit-learn.
    return np.asarray(getattr(estimator, "classes_", default))


def _check_given(values: NDArray[Any], estimator: Any, X: Any) -> None:
    """Raise for invalid probabilities, with the name of the classifier that returned them."""
    try:
        check_values(values, name=f"predict_proba of {type(estimator).__name__}")
    except ValueError as error:
        half = getattr(X, "dtype", None) in (np.float16, np.float32)
        hint = " Features in float64 may help." if half else ""
        raise ValueError(f"{error}{hint}") from None


def predict_columns(
    estimator: Any,
    X: Any,
    classes: NDArray[Any],
    method: str = "predict_proba",
    *,
    leave_out: bool = False,
) -> NDArray[np.floating]:
    """Return the `method` of a fitted classifier, with the columns in the order of `classes`.

    `method` is "predict_proba", "predict_log_proba" or "decision_function"; scores of two classes
    in one column, (n_samples,), are those of ``classes[1]``. A class that the classifier lacks has
    probability 0, or the least possible score. A class of the classifier that `classes` lacks is
    an error or, with `leave_out`, left out: then rows of probabilities may sum to less than 1.
    """
    values = np.asarray(getattr(estimator, method)(X))
    if method == "predict_proba" and values.ndim == 2 and len(values):
        _check_given(values, estimator, X)
    known = _find_classes(estimator, classes)
    position = find_positions(known, classes)
    if leave_out and values.ndim == 2 and values.shape[1] == len(known):
        values, known = values[:, position >= 0], known[position >= 0]
        position = position[position >= 0]
    if (position < 0).any():
        raise ValueError(
            f"{type(estimator).__name__} must know no other classes than "
            f"{format_labels(classes)}, "
            f"got {format_labels(known[position < 0])}."
        )
    if values.ndim == 1:  # the score of the second of two classes, against the first
        if len(classes) == 2:
            return values if position[0] == 0 else -values
        values = np.column_stack([-values, values])
    if values.shape[1] != len(known):
        hint = _ONE_SCORE_PER_CLASS if method == "decision_function" else ""
        raise ValueError(
            f"{method} of {type(estimator).__name__} must return one column for every class, "
            f"{len(known)}, got shape {values.shape}{hint}."
        )
    if np.array_equal(position, np.arange(len(classes))):
        return values
    # The least score is finite because scikit-learn's checks refuse infinity.
    dtype = np.result_type(values, np.float16)
    absent = {"predict_proba": 0.0, "predict_log_proba": -np.inf}
    fill = absent.get(method, np.finfo(dtype).min)
    columns = np.full((len(values), len(classes)), fill, dtype=dtype)
    columns[:, position] = values
    return columns


def draw_rows(X: Any) -> Any:
    """Return at most `_SAMPLE_ROWS` samples of X, evenly spread."""
    n_samples = _num_samples(X)
    return _safe_indexing(X, np.unique(np.linspace(0, n_samples - 1, _SAMPLE_ROWS).astype(int)))


def check_class_scores(estimator: Any, X: Any, classes: NDArray[Any]) -> None:
    """Raise if the largest of the decision values of some samples X is not the predicted class.

    A support vector machine predicts by votes, of which a few are tied; scores of pairs of classes
    agree with `predict` no more often than by chance. The limit is half the way between the two.
    """
    if len(classes) < 3 or not hasattr(estimator, "predict"):
        return
    scores = predict_columns(estimator, X, classes, "decision_function")
    largest, predicted = classes[scores.argmax(axis=1)], predict_labels(estimator, X)
    by_chance = 1 - sum((largest == k).mean() * (predicted == k).mean() for k in classes)
    n, n_other = len(largest), int((largest != predicted).sum())
    if binom.sf(n_other - 1, n, by_chance / 2) < _LEAST_P_VALUE:
        raise ValueError(
            f"decision_function of {type(estimator).__name__} must return a score for every "
            f"class, of which the largest belongs to the class that predict returns, got another "
            f"class in {n_other} of {n} samples{_ONE_SCORE_PER_CLASS}."
        )


def returns_logits(estimator: Any, X: Any, classes: NDArray[Any]) -> bool:
    """Return whether predict_proba of some samples X is the softmax of decision_function.

    Otherwise the unit of the decision values means nothing.
    """
    if not hasattr(estimator, "predict_proba"):
        return False
    scores = predict_columns(estimator, X, classes, "decision_function").astype(np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    proba = predict_columns(estimator, X, classes)
    return bool(np.abs(softmax(scores, axis=1) - proba).max() < TOLERANCE)


def predict_labels(estimator: Any, X: Any) -> NDArray[Any]:
    """Return predicted labels (n_samples,), also from classifiers that return a column."""
    return np.ravel(estimator.predict(X))


# Folds


@dataclass(frozen=True)
class Folds:
    """Training and test rows of every fold, of `n_samples` samples.

    Folds may leave out some samples never (ordered in time) or several times (repeated). Values of
    samples left out come in the order of `rows`, which for any other folds are all samples.
    """

    parts: list[tuple[NDArray[np.intp], NDArray[np.intp]]]
    n_samples: int

    def __iter__(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """The samples that are left out, sorted, each as often as it is left out."""
        return np.sort(np.concatenate([test for _, test in self.parts]))

    @cached_property
    def is_partition(self) -> bool:
        """Whether every sample is left out once."""
        return np.array_equal(self.rows, np.arange(self.n_samples))

    def join(self, values: list[NDArray]) -> NDArray:
        """Return values that are given fold by fold in the order of `rows`."""
        order = np.argsort(np.concatenate([test for _, test in self.parts]), kind="stable")
        return np.concatenate(values)[order]

    def average(self, values: NDArray) -> NDArray:
        """Return the mean value of every sample, NaN if no fold leaves it out."""
        if self.is_partition:
            return values
        mean = np.full((self.n_samples, *values.shape[1:]), np.nan)
        left_out, start = np.unique(self.rows, return_index=True)
        count = np.bincount(self.rows, minlength=self.n_samples)[left_out]
        total = np.add.reduceat(values.astype(np.float64), start, axis=0)
        mean[left_out] = total / count.reshape(-1, *[1] * (values.ndim - 1))
        return mean

    def warn_of_rows(self) -> None:
        """Warn unless every sample is left out once."""
        if self.is_partition:
            return
        n_left_out = len(np.unique(self.rows))
        often = f", {len(self.rows)} times in all" if len(self.rows) > n_left_out else ""
        warn(
            f"The folds of cv leave out {n_left_out} of {self.n_samples} samples{often}: only "
            "these are evaluated."
        )

    def describe_missing(self, labels: NDArray[Any], least: int = 1) -> str | None:
        """Return which class of `least` samples or more the training part of which fold lacks.

        None if there is none.
        """
        classes, codes, count = np.unique(labels, return_inverse=True, return_counts=True)
        for number, (train, _) in enumerate(self.parts):
            found = np.bincount(codes[train], minlength=len(classes))
            lacking = np.flatnonzero((found == 0) & (count >= least))
            if len(lacking):
                return (
                    f"a training part that lacks class {format_labels(classes[lacking])} in fold "
                    f"{number} of cv, whose classifier gives it probability 0"
                )
        return None


def make_folds(
    cv: Any,
    X: Any,
    labels: NDArray | None,
    groups: Any = None,
    *,
    duplicates: NDArray[np.intp] | None = None,
    missing: str = "warn",
    least: int = 1,
) -> Folds:
    """Return the folds of `cv`; warn unless they leave out every sample once.

    An int is a number of folds, stratified by labels where there are any. With `groups`, the
    samples of a group are left out together. So are samples of equal codes in `duplicates` (n,);
    folds of a splitter are left as it draws them, and training parts lose the duplicates of test
    rows. `missing` says what a training part that lacks a class of `least` samples or more is:
    "warn", "raise" or "ignore".
    """
    n_samples = _num_samples(X)
    if groups is not None and is_list_of_folds(cv):
        raise ValueError("groups must be None where cv lists the folds, got groups.")
    codes = None if groups is None else encode_groups(groups, n_samples)[1]
    splitter = check_cv(_make_group_splits(cv, groups), labels, classifier=labels is not None)
    try:
        if duplicates is None:
            parts = list(splitter.split(X, labels, codes))
        elif cv is None or isinstance(cv, Integral):
            parts = _make_folds_of_distinct(splitter, X, labels, duplicates)
        else:
            given = splitter.split(X, labels, codes)
            parts = [
                (train[~np.isin(duplicates[train], duplicates[test])], test)
                for train, test in given
            ]
    except ValueError as error:
        raise ValueError(f"cv must fit the samples, got folds that do not: {error}") from error
    folds = Folds([(np.asarray(train), np.asarray(test)) for train, test in parts], n_samples)
    if not len(folds) or not len(folds.rows):
        raise ValueError("cv must leave out samples, got folds that leave out none.")
    folds.warn_of_rows()
    lacking = (
        None if labels is None or missing == "ignore" else folds.describe_missing(labels, least)
    )
    if lacking is not None and missing == "raise":
        raise ValueError(
            "y must hold samples of every class in all training parts, got "
            f"{lacking}; use other folds or groups, or more samples of the class."
        )
    if lacking is not None:
        warn(f"The folds have {lacking}: what follows from it says nothing about these samples.")
    return folds


def is_list_of_folds(cv: Any) -> bool:
    """Return whether `cv` is neither a number nor a splitter, but the folds themselves."""
    return not (cv is None or isinstance(cv, Integral) or hasattr(cv, "split"))


def _make_folds_of_distinct(
    splitter: Any, X: Any, labels: NDArray | None, duplicates: NDArray[np.intp]
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return folds drawn for the first of each set of duplicates; the others join its part."""
    first = np.unique(duplicates, return_index=True)[1]
    some = None if labels is None else labels[first]
    folds = []
    for train, test in splitter.split(_safe_indexing(X, first), some):
        parts = [np.flatnonzero(np.isin(duplicates, part)) for part in (train, test)]
        folds.append((parts[0], parts[1]))
    return folds


def _make_group_splits(cv: Any, groups: Any) -> Any:
    """Return `cv` or, for a number of folds with groups, a StratifiedGroupKFold."""
    if groups is None or not (cv is None or isinstance(cv, Integral)):
        return cv
    return StratifiedGroupKFold(5 if cv is None else int(cv))


def run_folds(
    of_fold: Callable[..., NDArray],
    folds: Folds,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> NDArray:
    """Return the rows of ``of_fold(train, test)`` of all folds, in the order of ``folds.rows``.

    `of_fold` has to be picklable for the processes of `n_jobs`: not a function inside a function.
    """
    parts = Parallel(n_jobs=n_jobs, verbose=verbose)(delayed(of_fold)(*fold) for fold in folds)
    return folds.join(parts)


def predict_out_of_fold(
    estimator: Any,
    X: Any,
    y: NDArray,
    folds: Folds,
    *,
    classes: NDArray[Any],
    method: str = "predict_proba",
    params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    leave_out: bool = False,
    verbose: int = 0,
) -> NDArray[np.floating]:
    """Return :func:`predict_columns` of ``folds.rows``, by clones fitted on the other folds."""
    columns = partial(predict_columns, classes=classes, method=method, leave_out=leave_out)
    of_fold = partial(_predict_fold, estimator, X, y, columns, params)
    return run_folds(of_fold, folds, n_jobs, verbose)


def _predict_fold(
    estimator: Any,
    X: Any,
    y: NDArray,
    columns: Callable[..., NDArray],
    params: dict[str, Any] | None,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> NDArray[np.floating]:
    """Return the columns of the samples `test` by a clone fitted on `train`."""
    return columns(fit_clone(estimator, X, y, train, params), _safe_indexing(X, test))


# What an outer estimator takes over from the inner one, and passes on to it


def show_inner(outer: Any, inner: Any) -> None:
    """Copy `n_features_in_` and `feature_names_in_` of the fitted `inner`, where it has them."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(inner, name):
            setattr(outer, name, getattr(inner, name))


def combine_input_tags(estimator: Any, *others: Any) -> InputTags:
    """Return the input tags of `estimator`; sparse and NaN only where the others take them too."""
    tags = get_tags(estimator).input_tags
    for other in others:
        if hasattr(other, "__sklearn_tags__"):
            theirs = get_tags(other).input_tags
            tags.sparse = tags.sparse and theirs.sparse
            tags.allow_nan = tags.allow_nan and theirs.allow_nan
    return tags


def check_fit_takes(
    estimator: Any, parameter: str, hint: str = "", *, name: str = "estimator"
) -> None:
    """Raise unless ``estimator.fit`` accepts `parameter`; `name` is what holds the estimator."""
    if not has_argument(estimator.fit, parameter):
        raise ValueError(
            f"{name} must have the parameter {parameter!r} in its fit{hint}, got "
            f"{type(estimator).__name__}."
        )


def fit_router(owner: Any, *, cv: Any = "no folds", **inner: Any) -> MetadataRouter:
    """Return the metadata routing of `owner`, whose `fit` calls the `fit` of `inner`.

    The estimators inside are passed by the names of the parameters that hold them. `groups` go to
    `cv`, the folds of `owner`.
    """
    router = MetadataRouter(owner=owner).add_self_request(owner)
    for name, estimator in inner.items():
        fit_to_fit = MethodMapping().add(caller="fit", callee="fit")
        router.add(method_mapping=fit_to_fit, **{name: estimator})
    splitter = _make_group_splits(cv, ())
    if hasattr(splitter, "split") and not isinstance(cv, str):
        fit_to_split = MethodMapping().add(caller="fit", callee="split")
        router.add(splitter=splitter, method_mapping=fit_to_split)
    return router


def get_inner_fit_params(
    owner: Any,
    name: str,
    sample_weight: NDArray | None,
    fit_params: dict[str, Any],
    groups: ArrayLike | None = None,
) -> dict[str, Any]:
    """Return the parameters that the `fit` of an inner estimator gets from the `fit` of `owner`.

    `name` is the parameter of `owner` that holds the estimator. With metadata routing, it gets
    what it requests, and `groups` are an error unless something requests them. Without, it gets
    everything, `groups` where it takes them, and in a Pipeline the last step gets both.
    """
    if _routing_enabled():
        given = {"sample_weight": sample_weight, "groups": groups}
        given = {key: value for key, value in given.items() if value is not None}
        return dict(process_routing(owner, "fit", **fit_params, **given)[name]["fit"])
    inner = getattr(owner, name)
    params = {**fit_params, **get_group_params(inner, groups)}
    if sample_weight is not None:
        params |= get_weight_params(inner, sample_weight, name=name)
    return params


def get_weight_params(
    estimator: Any, sample_weight: NDArray, *, name: str = "estimator"
) -> dict[str, Any]:
    """Return the parameter of ``estimator.fit`` that takes weights.

    In a Pipeline, the weights go to the last step; with metadata routing, to the Pipeline itself.
    """
    final, prefix = (estimator, "") if _routing_enabled() else get_last_step(estimator)
    check_fit_takes(final, "sample_weight", name=name)
    return {f"{prefix}sample_weight": sample_weight}


def get_group_params(estimator: Any, groups: ArrayLike | None) -> dict[str, Any]:
    """Return the parameter of ``estimator.fit`` that takes groups, {} if it takes none.

    Then its own folds keep groups together too. ``**kwargs`` do not count, except for a search
    whose folds a splitter draws.
    """
    if groups is None:
        return {}
    final, prefix = (estimator, "") if _routing_enabled() else get_last_step(estimator)
    is_search = isinstance(final, GridSearchCV | RandomizedSearchCV) and hasattr(final.cv, "split")
    if is_search or "groups" in signature(final.fit).parameters:
        return {f"{prefix}groups": groups}
    return {}


class PredictByProba:
    """Mixin with `predict`: the class of the largest probability."""

    classes_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of the largest probability.

        Parameters
        ----------
        X : array-like or dask array of n_samples samples
            What `predict_proba` takes.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Class labels.
        """
        proba = self.predict_proba(X)  # type: ignore[attr-defined]
        return _choose_largest(self.classes_, proba)  # which there are after a fit only


@by_chunks
def _choose_largest(classes: NDArray[Any], proba: NDArray) -> NDArray[Any]:
    return classes[proba.argmax(axis=1)]


class MetaMixin(MetaEstimatorMixin):
    """Routing and input tags of whatever fits other estimators inside."""

    estimator: Any
    cv: Any = "no folds"

    def _inside(self) -> dict[str, Any]:
        """Return the estimators inside, by the names of the parameters that hold them."""
        return {"estimator": self.estimator}

    def _keep(self, fitted: Any, labels: NDArray[Any]) -> None:
        """Set `estimator_`, `classes_` (with those of `labels`) and the attributes of features."""
        self.estimator_ = fitted
        self.classes_ = join_classes(fitted, labels)
        show_inner(self, fitted)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the router: `fit` passes on what the estimators inside and `cv` request."""
        return fit_router(self, cv=self.cv, **self._inside())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inside = self._inside()
        if inside:
            tags.input_tags = combine_input_tags(*inside.values())
        if set(inside) == {"scorer"}:  # the scorer alone decides whether labels are needed
            tags.target_tags.required = get_tags(inside["scorer"]).target_tags.required
        return tags


# The key of the version in the state of an estimator.
_VERSION = "_skcalib_version"


class VersionMixin:
    """Stores the version of skcalib in pickles, and warns where another one loads them.

    scikit-learn does so for its own estimators alone.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, _VERSION: _get_version()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        of_file, here = state.get(_VERSION), _get_version()
        if of_file != here:
            by = "an unknown version of skcalib" if of_file is None else f"skcalib {of_file}"
            warn(
                f"{type(self).__name__} was pickled by {by} and is loaded by {here}, which may "
                "miss its attributes or read them otherwise: fit it again. ONNX and to_json are "
                "for models that outlast a version."
            )
        kept = {name: value for name, value in state.items() if name != _VERSION}
        super().__setstate__(kept)  # type: ignore[misc]


def _get_version() -> str:
    from .. import __version__

    return __version__


class MetaClassifier(MetaMixin, ClassifierMixin, VersionMixin, BaseEstimator):
    """A classifier around a classifier, `estimator`, and possibly other estimators."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = get_tags(self._inside()["estimator"]).classifier_tags
        # Trees and neighbors take several labels a sample; what is around them does not.
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        return tags


class DelegatingClassifier(MetaClassifier):
    """A classifier whose predictions are those of the fitted classifier inside, `estimator_`.

    `fit` sets `estimator_` and `classes_`, which may hold more classes than those that
    `estimator_` was fitted on.
    """

    estimator_: Any
    classes_: NDArray[Any]

    @available_if(_estimator_has("predict"))
    @by_chunks
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        return predict_labels(self.estimator_, as_features(X))

    @available_if(_estimator_has("predict_proba"))
    @by_chunks
    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Return the class probabilities of the fitted classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y_proba : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`; 0 for a class that the classifier was not
            fitted on.
        """
        check_is_fitted(self)
        return predict_columns(self.estimator_, as_features(X), self.classes_)

    @available_if(_estimator_has("predict_log_proba"))
    @by_chunks
    def predict_log_proba(self, X: Any) -> NDArray[np.floating]:
        """Return the logarithms of the class probabilities of the fitted classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; -inf for a class that the classifier was not fitted on.
        """
        check_is_fitted(self)
        return predict_columns(self.estimator_, as_features(X), self.classes_, "predict_log_proba")

    @available_if(_estimator_has("decision_function"))
    @by_chunks
    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Return the decision values of the fitted classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            In the order of `classes_`, for two classes the value of the second; the least
            possible number for a class that the classifier was not fitted on.
        """
        check_is_fitted(self)
        return predict_columns(self.estimator_, as_features(X), self.classes_, "decision_function")


def as_indexable(X: Any, y: ArrayLike | None) -> tuple[Any, NDArray[Any] | None, int]:
    """Return the X of a meta-estimator in a form that can be indexed, the labels and n_samples."""
    X = as_features(X)
    with name_argument("X"):
        (X,) = indexable(X)
        n_samples = _num_samples(X)
    return (X, None, n_samples) if y is None else (*read_samples(X, y), n_samples)


def read_samples(X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
    """Return the X of a meta-estimator in a form that can be indexed, and its class labels."""
    labels = check_class_labels(y)
    with name_argument("X", "y"):
        X, labels = indexable(as_features(X), labels)
    return X, labels


# Calls of a difficulty scorer, or of a Pipeline that ends in one, for meta-estimators.


def fit_difficulty(
    scorer: Any, X: Any, y: ArrayLike | None = None, **fit_params: Any
) -> tuple[Any, NDArray]:
    """Fit a scorer, or a Pipeline that ends in one, and rank the samples that it was fitted on.

    The samples pass through the transformers of a Pipeline once, by `fit_transform`, which
    ``memory=`` can cache. `fit_params` go to the scorer itself. Where a step resamples, the scorer
    is fitted on what the step returns, and the given samples are scored as new ones. Fits in
    place: pass a clone. Return the fitted scorer or Pipeline, and the difficulty (n_samples,).
    """
    if isinstance(scorer, FrozenEstimator):
        return scorer, compute_difficulty(scorer, X, y)
    if not isinstance(scorer, Pipeline):
        _check_scores(scorer, "fit_difficulty")
        # A scorer without the mixin may lack `fit_ranking`.
        ranked = getattr(scorer, "fit_ranking", scorer.fit_difficulty)
        return scorer, ranked(X, y, **fit_params)
    if any(_is_sampler(step) for _, step in scorer.steps[:-1]):
        if fit_params:
            raise ValueError(
                f"{', '.join(fit_params)} must be None where a step of the Pipeline resamples, "
                "got values for the samples before it."
            )
        return scorer, compute_difficulty(scorer.fit(X, y), X, y)
    *steps, (name, final) = scorer.steps
    # With memory, a Pipeline fits copies of its transformers and puts them into its steps.
    before = Pipeline([*steps, (name, "passthrough")], memory=scorer.memory)
    final, difficulty = fit_difficulty(final, before.fit_transform(X, y), y, **fit_params)
    return Pipeline([*before.steps[:-1], (name, final)], memory=scorer.memory), difficulty


def _is_sampler(step: Any) -> bool:
    """Return whether a step is a sampler, as in imbalanced-learn, which acts in `fit` alone."""
    return hasattr(step, "fit_resample")


def compute_difficulty(scorer: Any, X: Any, y: ArrayLike | None = None) -> NDArray:
    """Return the difficulty of samples by a fitted scorer, or by a Pipeline that ends in one."""
    while isinstance(scorer, Pipeline):
        for _, step in scorer.steps[:-1]:
            if step not in (None, "passthrough") and not _is_sampler(step):
                X = step.transform(X)
        scorer = scorer[-1]
    _check_scores(scorer, "difficulty")
    return scorer.difficulty(X, y)


def fit_difficulty_of_used(
    scorer: Any, X: Any, y: NDArray | None, used: NDArray[np.intp], params: dict[str, Any]
) -> tuple[Any, NDArray]:
    """Return the scorer fitted on the samples `used` alone, and the difficulty (n_samples,).

    It is NaN for the others, such as samples of weight 0, which some scorers cannot score.
    """
    n_samples = _num_samples(X)
    if len(used) < n_samples:
        params = _check_method_params(X, params, indices=used)
        X, y = _safe_indexing(X, used), None if y is None else y[used]
    difficulty = np.full(n_samples, np.nan)
    fitted, difficulty[used] = fit_difficulty(scorer, X, y, **params)
    return fitted, difficulty


def _check_scores(scorer: Any, method: str) -> None:
    what = "a difficulty scorer or a Pipeline that ends in one"
    check_has(scorer, method, name="scorer", what=what)
