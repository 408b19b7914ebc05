"""Scorers for ``GridSearchCV(scoring=...)``; scikit-learn's own registry is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from ..utils.checking._labels import cut
from ..utils.meta._private import LabeledProbaScorer
from ._calibration_error import (
    debiased_calibration_error,
    expected_calibration_error,
    ks_calibration_error,
    maximum_calibration_error,
)
from ._classwise import classwise_calibration_error
from ._decomposition import refined_log_loss, score_decomposition
from ._names import BY_NAME
from ._risk_coverage import (
    accuracy_at_coverage,
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    coverage_at_risk,
    excess_area_under_risk_coverage,
)
from ._smooth import smooth_calibration_error

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
        raise ValueError(f"scoring must be one of {get_scorer_names()}, got {cut(scoring)}.")
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
