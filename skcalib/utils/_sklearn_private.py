"""Every private scikit-learn name in use: a release that moves one breaks this file alone."""

from sklearn.base import _fit_context
from sklearn.metrics._scorer import _Scorer
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import (
    HasMethods,
    Hidden,
    Interval,
    StrOptions,
    validate_params,
)
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_method_params,
    _check_sample_weight,
    _estimator_has,
)

__all__ = [
    "HasMethods",
    "Hidden",
    "Interval",
    "StrOptions",
    "_Scorer",
    "_check_feature_names_in",
    "_check_method_params",
    "_check_sample_weight",
    "_estimator_has",
    "_fit_context",
    "_routing_enabled",
    "_safe_indexing",
    "validate_params",
]
