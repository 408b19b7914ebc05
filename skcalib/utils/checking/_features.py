"""The X and y of an estimator: scikit-learn's checks, and errors that name the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import assert_all_finite, gen_batches
from sklearn.utils import validation as sklearn_validation

from ..computing._blocks import BLOCK_SIZE
from ..computing._tensors import TensorRows, on_accelerator
from ._arrays import as_features, naming, refuse_nested


def validate_data(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    ensure_all_finite: bool = True,
    **options: Any,
) -> Any:
    """Validate as the function of scikit-learn does, which it calls.

    Tensors are read. Masks, dates and durations, which scikit-learn would misread, are errors.
    """
    X = as_features(X)
    refuse_nested(X, name="X")
    is_half = isinstance(X, np.ndarray) and X.dtype == np.float16
    by_sum = ensure_all_finite and not is_half
    with naming("X", "y"):
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
    if not on_accelerator(X) or (X.ndim != 2 and not options.get("allow_nd")):
        return validate_data(estimator, X, y, ensure_all_finite=ensure_all_finite, **options)
    # scikit-learn checks everything but the values on a matrix of that shape without memory.
    stand_in = np.broadcast_to(np.zeros((), complex if X.is_complex() else float), X.shape)
    with naming("X", "y"):
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
