"""What meta-estimators share: attributes, tags and metadata of the estimators inside."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import InputTags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ._private import _routing_enabled


def show_inner(
    outer: Any, inner: Any, names: tuple[str, ...] = ("n_features_in_", "feature_names_in_")
) -> None:
    """Give `outer` those of the learned attributes that the fitted `inner` has."""
    for name in names:
        if hasattr(inner, name):
            setattr(outer, name, getattr(inner, name))


def common_input_tags(estimator: Any, *others: Any) -> InputTags:
    """Return the input tags of `estimator`; sparse and NaN only where the others take them too."""
    tags = get_tags(estimator).input_tags
    for other in others:
        if hasattr(other, "__sklearn_tags__"):
            theirs = get_tags(other).input_tags
            tags.sparse = tags.sparse and theirs.sparse
            tags.allow_nan = tags.allow_nan and theirs.allow_nan
    return tags


def split_folds(
    cv: Any, X: Any, labels: NDArray | None
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return (train, test) of all folds; an int is a number of folds, stratified by labels."""
    splitter = check_cv(cv, labels, classifier=labels is not None)
    try:
        return list(splitter.split(X, labels))
    except ValueError as error:
        raise ValueError(f"cv must fit the samples, got folds that do not: {error}") from error


def check_fit_takes(
    estimator: Any, parameter: str, hint: str = "", *, name: str = "estimator"
) -> None:
    """Raise unless ``estimator.fit`` accepts `parameter`; `name` is what holds the estimator."""
    if not fit_takes(estimator, parameter):
        raise ValueError(
            f"{name} must have the parameter {parameter!r} in its fit{hint}, got "
            f"{type(estimator).__name__}."
        )


def fit_takes(estimator: Any, parameter: str) -> bool:
    """Tell whether ``estimator.fit`` accepts `parameter`, by its name or by ``**kwargs``."""
    parameters = signature(estimator.fit).parameters.values()
    return any(p.kind is Parameter.VAR_KEYWORD or p.name == parameter for p in parameters)


def fit_router(owner: Any, **inner: Any) -> MetadataRouter:
    """Return the metadata routing of a meta-estimator whose `fit` calls that of `inner`.

    Parameters
    ----------
    owner : estimator
        The meta-estimator, which may use metadata itself.
    **inner : estimators
        The estimators inside, by the names of the parameters that hold them.
    """
    router = MetadataRouter(owner=owner).add_self_request(owner)
    for name, estimator in inner.items():
        fit_to_fit = MethodMapping().add(caller="fit", callee="fit")
        router.add(method_mapping=fit_to_fit, **{name: estimator})
    return router


def inner_fit_params(
    owner: Any, name: str, sample_weight: NDArray | None, fit_params: dict[str, Any]
) -> dict[str, Any]:
    """Return what the `fit` of an estimator inside gets of what that of `owner` was given.

    With metadata routing, what the estimator requests; without, everything.

    Parameters
    ----------
    owner : estimator
        The meta-estimator.
    name : str
        The parameter of `owner` that holds the estimator.
    sample_weight : ndarray of shape (n_samples,) or None
        Checked weights.
    fit_params : dict
        Further parameters of ``owner.fit``.
    """
    if sample_weight is not None:
        # With routing it is the request of the estimator that decides.
        if not _routing_enabled():
            check_fit_takes(getattr(owner, name), "sample_weight", name=name)
        fit_params = {**fit_params, "sample_weight": sample_weight}
    if not _routing_enabled():
        return dict(fit_params)
    return dict(process_routing(owner, "fit", **fit_params)[name]["fit"])
