"""Base of the calibrators that map one class at a time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils.computing._cells import cells_of
from ._base import PostHocCalibrator
from ._in_chunks import ScoresInChunks


class OneVsRestCalibrator(PostHocCalibrator):
    """Base of the calibrators that calibrate every class against the rest.

    With two classes, only the probability of the second is mapped. With more, the mapped
    probabilities of a row are divided by their sum; a row of zeros becomes uniform.

    A subclass implements ``_fit_class(p, positive, sample_weight)``, which returns the map of one
    class, and ``_map_class(learned, p)``, which applies it.
    """

    calibrators_: list[Any]

    @abstractmethod
    def _fit_class(
        self, p: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray | None
    ) -> Any:
        """Return the map of one class, by its probabilities and which samples are of the class."""

    @abstractmethod
    def _map_class(self, learned: Any, p: NDArray) -> NDArray:
        """Return the calibrated probabilities of one class."""

    def _fit_chunks(self, data: ScoresInChunks) -> None:
        self.calibrators_ = [self._fit_sums(sums) for sums in data.sum(_sums_of_classes)]

    def _class_sums(self, p: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray) -> Any:
        """Return sums over samples, from which `_fit_sums` learns the map of one class."""
        summands = np.where(positive, sample_weight, 0), sample_weight, sample_weight * p
        return cells_of(p, np.array(summands), are_proba=True)

    def _fit_sums(self, sums: Any) -> Any:
        """Return the map of one class, as :meth:`_fit_class` does.

        A cell counts as two weighted samples, one of each outcome, at its mean probability.
        """
        positives, total, of_p = sums.sums
        return self._fit_class(*as_samples(of_p / total, positives, total))

    def _formula(self) -> dict[str, Any]:
        return {"kind": "each class", "curves": [*map(self._formula_of_class, self.calibrators_)]}

    def _formula_of_class(self, learned: Any) -> dict[str, Any]:
        """Return the map of one class in plain numbers, in the format of `to_json`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no formula for other programs; implement "
            "_formula_of_class, which returns one in the format of to_json."
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


def as_samples(
    values: NDArray, positives: NDArray, total: NDArray
) -> tuple[NDArray, NDArray[np.bool_], NDArray[np.float64]]:
    """Return values, outcomes and weights of two samples per cell, without those of weight 0."""
    weight = np.concatenate([positives, total - positives])
    positive = np.arange(len(weight)) < len(positives)
    used = weight > 0
    return np.concatenate([values, values])[used], positive[used], weight[used]


def _sums_of_classes(
    calibrator: OneVsRestCalibrator, scores: NDArray, y: NDArray, weight: NDArray
) -> list[Any]:
    proba = calibrator._as_proba(scores.astype(np.float64))
    return [calibrator._class_sums(proba[:, k], y == k, weight) for k in calibrator._columns()]
