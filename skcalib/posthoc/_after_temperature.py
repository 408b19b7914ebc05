"""Maps of the probabilities at a temperature, which several of them can share.

A stack fits one temperature to some samples and hands the probabilities there to every map of this
kind. Between two sets of nearly the same samples a fit goes on where the other one ended.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..utils.computing._temperature import DEFAULT_BOUNDS, fit_temperature, log_softmax_at
from ._base import LOWEST_LOG_PROBA, PostHocCalibrator

# Numbers beyond which memory counts more than the digits that single precision lacks.
_MANY = 5 * 10**7
# Numbers of a block whose probabilities by all maps stay in cache.
_BLOCK = 2**15


@dataclass(frozen=True)
class AtTemperature:
    """Probabilities at the temperature T of least log-loss beside a uniform component."""

    logits: NDArray
    proba: NDArray  # softmax(logits / T)
    log_proba: NDArray
    temperature: float
    uniform_weight: float

    @cached_property
    def clipped(self) -> NDArray[np.float64]:
        """Log-probabilities of at least log(1e-7), which several maps share."""
        return np.maximum(self.log_proba, LOWEST_LOG_PROBA, dtype=np.float64)


def by_columns(logits: NDArray) -> Iterator[tuple[slice, NDArray]]:
    """Yield (rows, block): few rows, in double precision, whose columns lie together in memory.

    That way what is done to every row costs little where there are few columns.
    """
    step = max(1, _BLOCK // logits.shape[1])
    for start in range(0, len(logits), step):
        rows = slice(start, start + step)
        yield rows, np.asarray(logits[rows], dtype=np.float64, order="F")


def at_temperature(logits: NDArray, temperature: float, uniform_weight: float) -> AtTemperature:
    """Return the probabilities of other samples, at a temperature that is known."""
    if logits.size <= _MANY:
        logits = logits.astype(np.float64, copy=False)
    found = log_softmax_at(logits, temperature)
    return AtTemperature(logits, *found, temperature, uniform_weight)


def fit_at_temperature(
    logits: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
    *,
    uniform: bool = True,
    near: float | None = None,
) -> AtTemperature:
    """Fit the temperature; `near` is that of nearly the same samples."""
    temperature, weight = fit_temperature(
        logits,
        y,
        sample_weight,
        DEFAULT_BOUNDS,
        uniform=uniform,
        pseudo_errors=float(uniform),
        near=near,
    )
    return at_temperature(logits, temperature, weight or 0.0)


class AfterTemperature(PostHocCalibrator):
    """Base of calibrators that map the probabilities at a temperature.

    A subclass implements ``_fit_at(at, y, sample_weight, near)``, which learns from an
    `AtTemperature`, and ``_predict_at(at)``. `near` is None, or a calibrator of the same kind that
    was fitted to nearly the same samples.
    """

    temperature_: float
    uniform_weight_: float

    # Whether a uniform component is fitted with the temperature.
    uniform: bool = True

    def _shares_temperature(self) -> bool:
        """Whether its temperature is the one of least log-loss beside a uniform component."""
        return self.uniform

    @abstractmethod
    def _fit_at(
        self,
        at: AtTemperature,
        y: NDArray,
        sample_weight: NDArray | None,
        near: Self | None = None,
    ) -> None:
        """Learn from probabilities at the temperature."""

    @abstractmethod
    def _predict_at(self, at: AtTemperature) -> NDArray:
        """Return calibrated probabilities, from those at the temperature."""

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        logits = self._as_logits(scores)
        at = fit_at_temperature(logits, y, sample_weight, uniform=self.uniform)
        self._fit_at(at, y, sample_weight)

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        proba = np.empty(logits.shape, dtype=np.result_type(logits.dtype, np.float32))
        for rows, block in by_columns(logits):
            at = at_temperature(block, self.temperature_, self.uniform_weight_)
            proba[rows] = self._predict_at(at)
        return proba
