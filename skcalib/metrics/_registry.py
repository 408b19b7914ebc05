"""Metrics by name, function or scorer. Every metric registers itself; none is imported here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..utils._compat import LabeledProbaScorer
from ..utils._estimators import has_argument
from ..utils._labels import shorten
from ..utils._output import sort_by_similarity

# The type of a parameter `metric`: a function, a name, or a scorer, which is callable, too.
AnyMetric: TypeAlias = Callable[..., float] | str
Function = TypeVar("Function", bound=Callable[..., Any])
# Losses under every possible label, (n, K), of probabilities of shape (n,) or (n, K), and of the
# options of a metric.
LossesOfLabels: TypeAlias = Callable[..., NDArray[Any]]


@dataclass(frozen=True)
class Metric:
    """A metric of this package, a function of (y_true, y_proba) and options that returns a number.

    `greater_is_better` is None where the best value lies between others. `losses` is given for
    means of losses of single samples.
    """

    name: str
    function: Callable[..., Any]
    greater_is_better: bool | None
    losses: LossesOfLabels | None

    @property
    def full_name(self) -> str:
        """Name of the function, such as "expected_calibration_error"."""
        return self.function.__name__

    @property
    def scorer_name(self) -> str:
        """The full name, with the prefix "neg_" where smaller = better."""
        return self.full_name if self.greater_is_better else f"neg_{self.full_name}"


_BY_NAME: dict[str, Metric] = {}  # by short names
# Functions that return weighted means of losses of single samples, of scikit-learn too.
_LOSSES: dict[Callable[..., Any], LossesOfLabels] = {}


def register(
    name: str, *, greater_is_better: bool | None = False, losses: LossesOfLabels | None = None
) -> Callable[[Function], Function]:
    """Register a metric under a short name; the name of the function is its full name."""

    def add(function: Function) -> Function:
        _BY_NAME[name] = Metric(name, function, greater_is_better, losses)
        if losses is not None:
            register_losses(function, losses)
        return function

    return add


def register_losses(function: Callable[..., Any], losses: LossesOfLabels) -> None:
    """Register the losses that a function of (y_true, y_proba) returns the weighted mean of."""
    _LOSSES[function] = losses


def find_losses(
    function: Callable[..., Any], options: dict[str, Any], proba: NDArray[Any]
) -> NDArray[np.float64] | None:
    """Return the losses under every label, (n, K), that a function averages; None if unknown."""
    losses = _LOSSES.get(function) if isinstance(function, Hashable) else None
    if losses is None or not all(has_argument(losses, name) for name in options):
        return None
    return losses(proba, **options)


def find_metric(metric: Any) -> Metric | None:
    """Return the metric of this package that a name, a function or a scorer without options names.

    Names are short or full, and may have the prefix "neg_" where smaller = better.
    """
    while isinstance(metric, partial) and not (metric.args or metric.keywords):
        metric = metric.func
    if isinstance(metric, LabeledProbaScorer) and not metric.options:
        metric = metric.name
    for found in _BY_NAME.values():
        if metric is found.function:
            return found
        if isinstance(metric, str):
            short = metric if found.greater_is_better is not False else metric.removeprefix("neg_")
            if short in (found.name, found.full_name):
                return found
    return None


def get_metric(metric: Any, *, argument: str = "metric") -> Any:
    """Return the function of a metric given by name or by scorer, also in a partial.

    Options of a scorer or partial stay with it. Other functions are returned as they are.
    """
    if isinstance(metric, partial):
        return partial(get_metric(metric.func), *metric.args, **metric.keywords)
    if isinstance(metric, LabeledProbaScorer):
        return partial(get_metric(metric.name), **metric.options)
    found = find_metric(metric)
    if found is not None:
        return found.function
    if isinstance(metric, str):
        raise ValueError(
            f"{argument} must be a function or one of "
            f"{sort_by_similarity(sorted(_BY_NAME), metric)}, got {shorten(metric)}."
        )
    return metric


def choose_metric(metric: Any, names: Iterable[str], *, argument: str = "metric") -> Metric:
    """Return the metric that is meant, which must be one of those with the short names `names`."""
    found, names = find_metric(metric), list(names)
    if found is None or found.name not in names:
        got = metric if found is None else found.name
        raise ValueError(
            f"{argument} must be one of {sort_by_similarity(names, got)}, got {shorten(got)}."
        )
    return found


def list_metrics_to_minimize() -> list[str]:
    """Return the short names of the metrics where smaller = better."""
    return [name for name, metric in _BY_NAME.items() if metric.greater_is_better is False]


# Scorers for ``GridSearchCV(scoring=...)``; scikit-learn's own registry is left alone.


class ProbabilityScorer(LabeledProbaScorer):
    """Score `predict_proba` of a fitted classifier: larger = better."""

    def __init__(self, metric: Metric, options: dict[str, Any]) -> None:
        larger_is_better = bool(metric.greater_is_better)
        super().__init__(metric.function, larger_is_better=larger_is_better, options=options)
        self.name = metric.scorer_name

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"<scorer {self.name}({options})>"


def get_scorer(scoring: AnyMetric, **options: Any) -> ProbabilityScorer:
    """Return the scorer of a metric of this package, for ``GridSearchCV(scoring=...)``.

    A scorer passes the classes of the estimator to the metric, so a fold may lack a class. As with
    the scorers of scikit-learn, larger = better, and with two classes the metric gets the
    probability of the **positive class**, the second of ``estimator.classes_`` unless `pos_label`
    is given; with more classes it gets all columns and evaluates the **top label**. So for two
    classes, the score differs from the metric of ``estimator.predict_proba(X)``, which has two
    columns.

    Parameters
    ----------
    scoring : str or callable
        One of :func:`get_scorer_names`, with or without its prefix ``"neg_"``, a short name such
        as ``"ece"``, a metric of this package, or one of its scorers. ``"neg_miscalibration"`` and
        ``"discrimination"`` are parts of :func:`score_decomposition`.
    **options : dict
        Options of the metric, such as ``n_bins``.

    Returns
    -------
    scorer : callable
        A scorer of scikit-learn, larger = better, called as
        ``scorer(estimator, X, y, sample_weight=None)``. The estimator needs `predict_proba` and
        ``classes_``.

    Raises
    ------
    ValueError
        If there is no scorer of this name, or none of this metric: the best overconfidence is 0.

    See Also
    --------
    sklearn.metrics.get_scorer : The scorers of scikit-learn.
    get_scorer_names : The names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skcalib.metrics import get_scorer
    >>> scorer = get_scorer("neg_expected_calibration_error", n_bins=10)
    >>> search = GridSearchCV(
    ...     LogisticRegression(max_iter=1000), {"C": [0.01, 1.0]}, scoring=scorer
    ... )
    >>> search.fit(*load_iris(return_X_y=True)).best_params_
    {'C': 1.0}
    """
    given: Any = scoring
    while isinstance(given, partial) and not given.args:
        given, options = given.func, given.keywords | options
    if isinstance(given, LabeledProbaScorer):
        given, options = given.name, given.options | options
    metric = find_metric(given)
    if metric is None or metric.greater_is_better is None:
        known = sorted(name for name, m in _BY_NAME.items() if m.greater_is_better is not None)
        known = sort_by_similarity(known, scoring)
        raise ValueError(
            f"scoring must be one of {known} or of get_scorer_names(), got {shorten(scoring)}."
        )
    return ProbabilityScorer(metric, options)


def get_scorer_names() -> list[str]:
    """Return the names that :func:`get_scorer` takes.

    Returns
    -------
    names : list of str
        Sorted names; ``"neg_"`` marks metrics where smaller = better.

    See Also
    --------
    get_scorer : The scorer of a name.

    Examples
    --------
    >>> from skcalib.metrics import get_scorer_names
    >>> "neg_expected_calibration_error" in get_scorer_names()
    True
    """
    return sorted(
        metric.scorer_name for metric in _BY_NAME.values() if metric.greater_is_better is not None
    )
