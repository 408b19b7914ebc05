"""Weights of classes, as weights of their samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._labels import encode, shown
from ..utils._validation import check_numbers, check_weights


def weigh_classes(
    class_weight: Mapping[Any, float] | str,
    y: NDArray[Any] | None,
    classes: NDArray[Any],
    sample_weight: ArrayLike | None,
) -> NDArray[np.float64]:
    """Return the weights of the samples times those of their classes.

    Parameters
    ----------
    class_weight : dict or "balanced"
        Weights by label, 1 for a label that is missing; or weights with which every class of `y`
        has the same total, and all samples that which they had.
    y : ndarray of shape (n_samples,) or None
        Labels; None where a dataset does not show them.
    classes : ndarray of shape (n_classes,)
        All labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples.
    """
    if y is None:
        raise ValueError(f"class_weight must be None without y, got {class_weight!r}.")
    label = encode(y, classes)
    given = check_weights(sample_weight, len(label))
    weight = np.ones(len(label)) if given is None else given
    if isinstance(class_weight, str):
        of_class = _balanced(label, weight, len(classes))
    else:
        of_class = _by_label(class_weight, classes)
    weighted = weight * of_class[label]
    if not weighted.any():
        raise ValueError(
            f"class_weight must leave a sample with a weight above 0, got {class_weight!r}."
        )
    return weighted


def _balanced(
    label: NDArray[np.intp], weight: NDArray[np.float64], n_classes: int
) -> NDArray[np.float64]:
    total = np.bincount(label, weight, minlength=n_classes)
    present = total > 0  # the other classes have nothing to weigh
    return np.divide(total.sum() / present.sum(), total, out=np.zeros(n_classes), where=present)


def _by_label(class_weight: Mapping[Any, float], classes: NDArray[Any]) -> NDArray[np.float64]:
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in set(labels)]
    # As in scikit-learn: a fold may lack a class that has a weight; but where a class has no
    # weight either, a misspelled label is more likely.
    if unknown and not class_weight.keys() >= set(labels):
        raise ValueError(
            f"class_weight must have keys among the labels, {shown(classes)}, got {unknown[0]!r}."
        )
    values = check_numbers(
        [class_weight.get(label, 1.0) for label in labels], "class_weight", ndim=(1,)
    )
    if (values < 0).any():
        raise ValueError(f"class_weight must not be negative, got {values.min():g}.")
    return values
