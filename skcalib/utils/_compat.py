"""Private names of scikit-learn and skorch, all in this file, and what follows their versions.

A release that moves one of them breaks this file alone. No private name of torch is in use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from functools import wraps
from importlib import import_module
from inspect import Signature, signature
from pkgutil import walk_packages
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.base import _fit_context as _checking_fit
from sklearn.metrics._scorer import _Scorer
from sklearn.model_selection import StratifiedGroupKFold as _StratifiedGroupKFold
from sklearn.utils import check_random_state
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import HasMethods, Hidden, Interval
from sklearn.utils._param_validation import StrOptions as _StrOptions
from sklearn.utils._param_validation import validate_params as _validate_params
from sklearn.utils._user_interface import _print_elapsed_time
from sklearn.utils.metaestimators import available_if as _available_if
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_method_params,
    _estimator_has,
    _num_samples,
    check_is_fitted,
)

from ._output import rename_argument, sort_by_similarity

# Every private name of scikit-learn and skorch in use.
#
# A release that moves one of them breaks this file alone. No private name of torch is in use.

# The type of a decorated function. scikit-learn's decorators have no types: without this, mypy and
# pyright would see neither a misspelled argument nor what `fit` returns.
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class StrOptions(_StrOptions):
    """A parameter that is one of several names; an error lists them, the nearest first."""

    _given: Any = None

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value is one of the names."""
        self._given = val if isinstance(val, str) else None
        return bool(super().is_satisfied_by(val))

    def __str__(self) -> str:
        names = sort_by_similarity(sorted(self.options), self._given)
        return f"a str among {{{', '.join(map(self._mark_if_deprecated, names))}}}"


def validate_params(
    constraints: dict[str, Any], *, prefer_skip_nested_validation: bool = True
) -> Callable[[Decorated], Decorated]:
    """Return scikit-learn's decorator that checks the arguments of a function.

    What the function calls is not checked again, unless it passes on arguments of the user. A call
    that leaves all of the constrained arguments at their defaults has nothing to check, and goes
    straight to the function: the check takes longer than the error of a thousand samples.
    The error of an argument that does not exist, or is missing, names the function.
    Tiny probabilities vanish beside others, also where the user has numpy raise for that.
    """
    check = _validate_params(
        constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
    )

    def decorate(function: Any) -> Any:
        checked = check(function)
        form = signature(function)
        parameters = list(form.parameters)
        n_free = min(parameters.index(name) for name in constraints)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with np.errstate(under="ignore"):
                if len(args) > n_free or not constraints.keys().isdisjoint(kwargs):
                    try:
                        return checked(*args, **kwargs)
                    except TypeError:
                        if _fits(form, args, kwargs):
                            raise
                # Where the arguments do not fit, this raises Python's error, with the name.
                return function(*args, **kwargs)

        return call

    return decorate


def _fits(form: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a function of this signature can be called with these arguments."""
    try:
        form.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def available_if(check: Callable[[Any], bool]) -> Callable[[Decorated], Decorated]:
    """Return scikit-learn's decorator of a method that exists only where `check` holds."""
    return _available_if(check)


@contextmanager
def restore_on_failure(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the block fails or is interrupted."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Decorated], Decorated]:
    """Return scikit-learn's decorator of `fit`; a fit that fails leaves the estimator as it was.

    `prefer_skip_nested_validation` is False where estimators inside validate their own parameters.
    As in :func:`validate_params`, numbers may underflow.
    """
    check = _checking_fit(prefer_skip_nested_validation=prefer_skip_nested_validation)

    def decorate(fit: Decorated) -> Decorated:
        @wraps(fit)
        def restoring(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            with restore_on_failure(estimator), np.errstate(under="ignore"):
                return fit(estimator, *args, **kwargs)

        return cast(Decorated, check(restoring))

    return decorate


class StratifiedGroupKFold(_StratifiedGroupKFold):
    """Folds of groups with the classes alike, shuffled as by scikit-learn 1.8.

    Earlier ones shuffle the classes of the groups and not the groups: they draw no other folds
    where all groups have the same classes, and folds with unlike classes elsewhere.
    """

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Any]:
        """Yield the training and test rows of every fold."""
        if not self.shuffle:
            return super().split(X, y, groups)
        codes = np.unique(groups, return_inverse=True)[1]
        order = check_random_state(self.random_state).permutation(codes.max() + 1)
        return _StratifiedGroupKFold(self.n_splits).split(X, y, np.argsort(order)[codes])


class LabeledProbaScorer(_Scorer):
    """A scorer of `predict_proba` that passes ``classes_`` to the metric as `labels`.

    For several metrics that are such scorers, scikit-learn predicts only once.
    """

    def __init__(
        self, metric: Callable[..., float], *, larger_is_better: bool, options: dict[str, Any]
    ) -> None:
        super().__init__(metric, 1 if larger_is_better else -1, options, "predict_proba")

    @property
    def options(self) -> dict[str, Any]:
        """Options of the metric."""
        return self._kwargs

    @rename_argument("y_true", "y")
    def _score(self, method_caller: Any, estimator: Any, *args: Any, **kwargs: Any) -> float:
        if not hasattr(estimator, "classes_"):
            check_is_fitted(estimator)
        # A copy: estimators with other classes may be scored at the same time. `labels` that the
        # user gives come last and override the classes.
        labeled = copy(self)
        labeled._kwargs = {"labels": estimator.classes_, **self._kwargs}
        return _Scorer._score(labeled, method_caller, estimator, *args, **kwargs)


def validate_parameters(estimator: BaseEstimator) -> None:
    """Check the parameters of an estimator against its `_parameter_constraints`.

    Called on the base class, since skorch's nets have a method of that name with other checks.
    """
    BaseEstimator._validate_params(estimator)


def set_training(net: Any, training: bool) -> None:
    """Switch the modules and the criterion of a skorch net to training or to evaluation."""
    net._set_training(training)


def clone_without_steps(net: Any) -> Any:
    """Return a clone of an MLPClassifier whose `partial_fit` draws weights and does not train."""
    untrained = clone(net)
    untrained._fit_stochastic = lambda *args, **kwargs: None
    return untrained


def predict_nonlinearity(net: Any) -> Any:
    """Return the function that a fitted skorch net applies to its output in `predict_proba`."""
    return net._get_predict_nonlinearity()


# The types that a stored model is made of.

# The packages of estimators that need neither torch nor matplotlib.
_PACKAGES = ("difficulty", "labels", "posthoc", "selection", "utils")


def trusted_types() -> list[str]:
    """Return the types of this package that fitted estimators are made of.

    skops, and MLflow with it, load only types that are passed as trusted. Besides types of numpy
    and scikit-learn, which they trust, an estimator of skcalib needs these. What you put into it,
    such as a classifier of another library, may need more: ``skops.io.get_untrusted_types`` names
    them.
    :class:`~skcalib.labels.LabelIssueFinder` by default also needs ``"sklearn.tree._tree.Tree"``.

    Returns
    -------
    names : list of str
        Sorted names of classes with their modules: estimators, and the small classes that hold
        what they have learned. Nets are not among them:
        :meth:`skcalib.nets.CalibratedNetClassifier.save` stores their numbers alone.

    See Also
    --------
    skcalib.posthoc.PostHocCalibratedClassifier : A model that may be stored like this.

    Examples
    --------
    >>> import skcalib
    >>> names = skcalib.trusted_types()
    >>> "skcalib.posthoc._temperature.TemperatureScaling" in names
    True

    In use: ``skops.io.load("model.skops", trusted=skcalib.trusted_types())``, and
    ``mlflow.sklearn.log_model(model, skops_trusted_types=skcalib.trusted_types())``.
    """
    root = __name__.partition(".")[0]
    names = set()
    for name in _PACKAGES:
        package = import_module(f"{root}.{name}")
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
            names |= {
                f"{module.name}.{value.__name__}"
                for value in vars(sys.modules[module.name]).values()
                if isinstance(value, type) and value.__module__ == module.name
            }
    return sorted(names)


# Progress of what takes long: its steps, printed with their seconds.


def print_elapsed(source: str, verbose: int, step: str) -> AbstractContextManager[None]:
    """Return a context that prints the seconds of a step, if `verbose`; none if it fails."""
    return _print_elapsed_time(source, step if verbose else None)
