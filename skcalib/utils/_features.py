"""The X and y of an estimator: scikit-learn's checks, and errors that name the argument."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray
from sklearn.utils import indexable
from sklearn.utils import validation as sklearn_validation

from ._arrays import as_features, naming
from ._labels import check_class_labels


def validate_data(
    estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool = True, **options: Any
) -> Any:
    """Validate as the function of scikit-learn does, which it calls.

    Tensors are read; masks, dates and durations, which scikit-learn reads as numbers, are errors.
    """
    X = as_features(X)
    with naming("X", "y"):
        return sklearn_validation.validate_data(estimator, X, y, reset=reset, **options)


def samples_and_labels(X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
    """Return what a meta-estimator was given: X that can be indexed, and its class labels."""
    labels = check_class_labels(y)
    with naming("X", "y"):
        X, labels = indexable(as_features(X), labels)
    return X, labels
