"""Metrics by function, by name or by scorer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from ..utils._compat import LabeledProbaScorer
from ..utils._labels import shorten
from ._calibration_error import (
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    ks_calibration_error,
    maximum_calibration_error,
)
from ._decomposition import refined_log_loss, score_decomposition
from ._selective import (
    accuracy_at_coverage,
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    coverage_at_risk,
    excess_area_under_risk_coverage,
)
from ._smooth import smooth_calibration_error

# Metrics by function, by name or by scorer.

# The type of a parameter `metric`: a function, a name, or a scorer, which is callable, too.
AnyMetric: TypeAlias = Callable[..., float] | str
# Metrics by name. `_scorer` fills it, since it imports the modules that look names up here.
BY_NAME: dict[str, Callable[..., Any]] = {}


def metric_of(metric: Any) -> Any:
    """Return the function of a metric that is given by name or by scorer, also in a partial.

    A function is returned as it is. The prefix "neg_" of a scorer is ignored.
    """
    if isinstance(metric, partial):
        return partial(metric_of(metric.func), *metric.args, **metric.keywords)
    if isinstance(metric, LabeledProbaScorer):
        return partial(metric_of(metric.name), **metric.options)
    if not isinstance(metric, str):
        return metric
    if (name := metric.removeprefix("neg_")) in BY_NAME:
        return BY_NAME[name]
    names = [name for name in BY_NAME if name.endswith("calibration_error")]
    raise ValueError(f"metric must be a function or one of {names}, got {shorten(metric)}.")


def metric_name(metric: Any) -> Any:
    """Return the name, without "neg_", of a metric that is given by name, function or scorer."""
    if isinstance(metric, LabeledProbaScorer) and not metric.options:
        metric = metric.name
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", metric)
    return name.removeprefix("neg_") if isinstance(name, str) else name


# Scorers for ``GridSearchCV(scoring=...)``; scikit-learn's own registry is left alone.

Metric = Callable[..., Any]  # a float, with the options that a scorer is given


class ProbabilityScorer(LabeledProbaScorer):
    """Score `predict_proba` of a fitted classifier: larger = better."""

    def __init__(self, name: str, metric: Metric, options: dict[str, Any]) -> None:
        super().__init__(metric, larger_is_better=not name.startswith("neg_"), options=options)
        self.name = name

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"<scorer {self.name}({options})>"


def _discrimination(y_true: ArrayLike, y_proba: ArrayLike, **options: Any) -> float:
    return score_decomposition(y_true, y_proba, **options).discrimination


def _miscalibration(y_true: ArrayLike, y_proba: ArrayLike, **options: Any) -> float:
    return score_decomposition(y_true, y_proba, **options).miscalibration


# By the names of the scorers; "neg_" marks metrics where smaller = better.
_METRICS: dict[str, Metric] = {
    "accuracy_at_coverage": accuracy_at_coverage,
    "coverage_at_risk": coverage_at_risk,
    "discrimination": _discrimination,
    "neg_area_under_generalized_risk_coverage": area_under_generalized_risk_coverage,
    "neg_area_under_risk_coverage": area_under_risk_coverage,
    "neg_classwise_calibration_error": classwise_calibration_error,
    "neg_debiased_calibration_error": debiased_calibration_error,
    "neg_excess_area_under_risk_coverage": excess_area_under_risk_coverage,
    "neg_expected_calibration_error": expected_calibration_error,
    "neg_ks_calibration_error": ks_calibration_error,
    "neg_maximum_calibration_error": maximum_calibration_error,
    "neg_miscalibration": _miscalibration,
    "neg_refined_log_loss": refined_log_loss,
    "neg_smooth_calibration_error": smooth_calibration_error,
}
BY_NAME.update((name.removeprefix("neg_"), metric) for name, metric in _METRICS.items())


def get_scorer(scoring: str, **options: Any) -> ProbabilityScorer:
    """Return the scorer of a metric of this package, for ``GridSearchCV(scoring=...)``.

    A scorer passes the classes of the estimator to the metric, so a fold may lack a class. As with
    the scorers of scikit-learn, larger = better, and with two classes the metric gets the
    probability of the **positive class**, the second of ``estimator.classes_`` unless `pos_label`
    is given; with more classes it gets all columns and evaluates the **top label**. So for two
    classes, the score differs from the metric of ``estimator.predict_proba(X)``, which has two
    columns.

    Parameters
    ----------
    scoring : str
        One of :func:`get_scorer_names`. ``"neg_miscalibration"`` and ``"discrimination"`` are
        parts of :func:`score_decomposition`.
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
        If there is no scorer of this name.

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
    if scoring not in _METRICS:
        raise ValueError(f"scoring must be one of {get_scorer_names()}, got {shorten(scoring)}.")
    return ProbabilityScorer(scoring, _METRICS[scoring], options)


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
    return sorted(_METRICS)
