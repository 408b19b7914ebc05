"""Scorers for ``GridSearchCV(scoring=...)``; scikit-learn's own registry is left alone."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from numpy.typing import ArrayLike

from ..utils._private import _Scorer
from ._calibration_error import expected_calibration_error, maximum_calibration_error
from ._classwise import classwise_calibration_error
from ._debiased import debiased_calibration_error
from ._decomposition import score_decomposition
from ._ks import ks_calibration_error
from ._selective import (
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    excess_area_under_risk_coverage,
)
from ._selective_points import accuracy_at_coverage, coverage_at_risk
from ._smooth import smooth_calibration_error


class _ProbaScorer(_Scorer):
    """Score `predict_proba`, and name its columns: a fold of `y` may lack a class."""

    def _score(
        self, method_caller: Callable, estimator: Any, X: Any, y_true: Any, **kwargs: Any
    ) -> float:
        y_proba = method_caller(
            estimator, "predict_proba", X, pos_label=self._kwargs.get("pos_label")
        )
        options = {"labels": estimator.classes_, **self._kwargs, **kwargs}
        return self._sign * self._score_func(y_true, y_proba, **options)


def _scorer(metric: Callable[..., Any], sign: int, **options: Any) -> _ProbaScorer:
    return _ProbaScorer(metric, sign, options, "predict_proba")


def _decomposition_part(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    part: str,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> float:
    parts = score_decomposition(y_true, y_proba, sample_weight=sample_weight, **options)
    return getattr(parts, part)


_SCORERS: dict[str, _ProbaScorer] = {
    "accuracy_at_coverage": _scorer(accuracy_at_coverage, 1),
    "coverage_at_risk": _scorer(coverage_at_risk, 1),
    "discrimination": _scorer(_decomposition_part, 1, part="discrimination"),
    "neg_miscalibration": _scorer(_decomposition_part, -1, part="miscalibration"),
    **{
        f"neg_{metric.__name__}": _scorer(metric, -1)
        for metric in (
            area_under_generalized_risk_coverage,
            area_under_risk_coverage,
            classwise_calibration_error,
            debiased_calibration_error,
            excess_area_under_risk_coverage,
            expected_calibration_error,
            ks_calibration_error,
            maximum_calibration_error,
            smooth_calibration_error,
        )
    },
}


def get_scorer(scoring: str, **options: Any) -> _ProbaScorer:
    """Return the scorer of a metric of this package, for ``GridSearchCV(scoring=...)``.

    A scorer hands the classes of the estimator to the metric, so a fold may lack a class. As
    with the scorers of scikit-learn, larger is better, and with two classes the metric gets the
    probability of the positive class, the second of ``estimator.classes_`` unless `pos_label` is
    given.

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
        Called as ``scorer(estimator, X, y, sample_weight=None)``. The estimator needs
        `predict_proba` and ``classes_``.

    Raises
    ------
    ValueError
        If there is no scorer of this name.

    See Also
    --------
    sklearn.metrics.get_scorer : The scorers of scikit-learn.

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
    if scoring not in _SCORERS:
        raise ValueError(f"scoring must be one of {get_scorer_names()}, got {scoring!r}.")
    scorer = deepcopy(_SCORERS[scoring])
    scorer._kwargs.update(options)
    return scorer


def get_scorer_names() -> list[str]:
    """Return the names that :func:`get_scorer` knows.

    Returns
    -------
    names : list of str
        Sorted names; ``"neg_"`` marks a metric of which smaller is better.

    Examples
    --------
    >>> from skcalib.metrics import get_scorer_names
    >>> "neg_expected_calibration_error" in get_scorer_names()
    True
    """
    return sorted(_SCORERS)
