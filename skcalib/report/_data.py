"""What a report is about: checked labels, probabilities, weights, groups and samples to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ..utils._labels import as_labels
from ..utils._validation import check_predictions, check_same_length


@dataclass(frozen=True)
class ReportData:
    """Checked input of a report. Samples of weight 0 are none, and have been left out.

    ``codes`` are the columns of the true classes, ``numbers`` the positions of the samples in
    what was given; ``features``, ``shown`` and ``groups`` are None where nothing was given.
    """

    codes: NDArray[np.intp]
    proba: NDArray[Any]
    weight: NDArray[np.float64] | None
    classes: NDArray[Any]
    numbers: NDArray[np.intp]
    seed: int
    n_given: int
    model: str | None = None
    features: Any = None
    shown: Any = None
    scorer: Any = None
    groups: Mapping[str, NDArray[Any]] | None = None

    @property
    def predictions(self) -> dict[str, Any]:
        """Arguments of a metric that judges the top label."""
        return {
            "y_true": self.codes,
            "y_proba": self.proba,
            "sample_weight": self.weight,
            "labels": np.arange(len(self.classes)),
        }

    @property
    def of_positive_class(self) -> dict[str, Any]:
        """Arguments of a metric that judges the second of two classes."""
        return {**self.predictions, "y_proba": self.proba[:, 1]}

    @cached_property
    def predicted(self) -> NDArray[np.intp]:
        """Columns of the largest probabilities."""
        return self.proba.argmax(axis=1)

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """Largest probability of every sample."""
        return self.proba.max(axis=1).astype(np.float64)

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the predicted class is the label."""
        return self.predicted == self.codes

    @cached_property
    def mass(self) -> NDArray[np.float64]:
        """Weights as numbers of samples, ones without weights."""
        return np.ones(len(self.codes)) if self.weight is None else self.weight

    def label(self, code: int) -> Any:
        """Return the label of a column as a Python object."""
        return self.classes[code : code + 1].tolist()[0]


def read_data(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None,
    pos_label: Any = None,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
    **others: Any,
) -> ReportData:
    """Check the arguments of a report; `others` are fields of :class:`ReportData`, as given."""
    checked = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, labels=labels, pos_label=pos_label
    )
    proba, weight = checked.proba, checked.counts
    if proba.ndim == 1:
        # Both columns: what is said of two classes does not depend on the form of the input.
        proba = np.column_stack([1 - proba.astype(np.float64), proba])
    n_given = len(proba)
    _check_lengths(n_given, others)
    kept = np.arange(n_given) if weight is None else np.flatnonzero(weight)
    return ReportData(
        codes=checked.codes[kept],
        proba=proba[kept],
        weight=None if weight is None else weight[kept],
        classes=checked.classes,
        numbers=kept,
        seed=_seed(random_state),
        n_given=n_given,
        groups=_read_groups(groups, n_given, kept),
        **others,
    )


def _check_lengths(n_samples: int, others: dict[str, Any]) -> None:
    for field, name in (("features", "X"), ("shown", "images")):
        value = others.get(field)
        if value is None:
            continue
        if name == "images" and (isinstance(value, Mapping) or not hasattr(value, "__len__")):
            raise TypeError(
                f"images must be a sequence, one entry a sample, got {type(value).__name__}."
            )
        length = value.shape[0] if hasattr(value, "shape") else len(value)
        if length != n_samples:
            raise ValueError(f"{name} must hold {n_samples} samples, got {length}.")


def _read_groups(
    groups: Any, n_samples: int, kept: NDArray[np.intp]
) -> dict[str, NDArray[Any]] | None:
    """Return columns of groups by name; a single array has the name "group"."""
    if groups is None:
        return None
    named = isinstance(groups, Mapping) or hasattr(groups, "columns")
    columns = groups.items() if named else [(getattr(groups, "name", None) or "group", groups)]
    read: dict[str, NDArray[Any]] = {}
    for name, values in columns:
        if str(name) in read:
            raise ValueError(f"groups must have distinct names, got {str(name)!r} twice.")
        array = as_labels(values, name="groups")
        check_same_length(groups=array, y_true=np.empty(n_samples))
        read[str(name)] = array[kept]
    return read or None


def _seed(random_state: Any) -> int:
    """Return one seed, the integer that was given where it is one: every number starts from it."""
    try:
        if isinstance(random_state, bool):  # for scikit-learn the number 1
            raise ValueError
        rng = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            "random_state must be an int in [0, 2**32 - 1], a RandomState instance or None, "
            f"got {random_state!r}."
        ) from None
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(rng.randint(np.iinfo(np.int32).max))
