"""Calibrators that map the probability of one class at a time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._base import PostHocCalibrator


class OneVsRestCalibrator(PostHocCalibrator):
    """Base of the calibrators that calibrate every class against the rest.

    With two classes only the probability of the second is mapped. With more, the mapped
    probabilities of a row are divided by their sum; a row of zeros becomes uniform.

    A subclass implements ``_fit_class(p, positive, sample_weight)``, which returns what is learned
    of one class, and ``_map_class(learned, p)``.
    """

    calibrators_: list[Any]

    @abstractmethod
    def _fit_class(
        self, p: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray | None
    ) -> Any:
        """Return the map of one class, learned from its probabilities and who belongs to it."""

    @abstractmethod
    def _map_class(self, learned: Any, p: NDArray) -> NDArray:
        """Return the calibrated probabilities of one class."""

    def _formula(self) -> dict[str, Any]:
        return {"kind": "each class", "curves": [*map(self._formula_of_class, self.calibrators_)]}

    def _formula_of_class(self, learned: Any) -> dict[str, Any]:
        """Return the map of one class in plain numbers, in the words of `to_json`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no formula for other programs; a method _formula_of_class "
            "of it may return one in the words of to_json."
        )

    def _columns(self) -> range:
        # With two classes, one probability determines the other.
        return range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        proba = self._as_proba(scores.astype(np.float64))
        self.calibrators_ = [
            self._fit_class(proba[:, k], y == k, sample_weight) for k in self._columns()
        ]

    def _predict_proba(self, scores: NDArray) -> NDArray:
        proba = self._as_proba(scores.astype(np.float64))
        pairs = zip(self.calibrators_, self._columns())
        mapped = np.column_stack([self._map_class(learned, proba[:, k]) for learned, k in pairs])
        if len(self.classes_) == 2:
            return np.hstack([1 - mapped, mapped])
        # 0 / 0 in a row of zeros, which becomes uniform.
        total = mapped.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.where(total > 0, mapped / total, 1 / mapped.shape[1])
