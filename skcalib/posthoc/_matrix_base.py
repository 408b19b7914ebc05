"""A temperature, then a matrix near the identity: what the matrix calibrators share."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from ..utils._private import Interval
from ..utils._temperature import DEFAULT_BOUNDS, minimize_log_loss
from ._base import PostHocCalibrator
from ._linear import Ridge, fit_matrix

# Its square, times a fraction of the weight, is a number in float32.
_LARGEST = 1e15


class MatrixCalibrator(PostHocCalibrator):
    """Base of ``softmax(x @ W.T + b)``, x the scores at their temperature, W near the identity.

    Without the temperature a penalty would draw the matrix to the raw, overconfident scores.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    max_iter: int

    def _ridge(self) -> Ridge:
        return Ridge()

    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        logits = self._as_logits(scores)
        # Not fit_temperature, which warns of a bound: here the temperature is a first step.
        self.temperature_ = minimize_log_loss(logits, y, sample_weight, DEFAULT_BOUNDS)
        self.coef_, self.intercept_, self.n_iter_ = fit_matrix(
            self._at_temperature(scores), y, sample_weight, self.max_iter, self._ridge()
        )

    def _predict_proba(self, scores: NDArray) -> NDArray:
        return softmax(self._at_temperature(scores) @ self.coef_.T + self.intercept_, axis=1)

    def _at_temperature(self, scores: NDArray) -> NDArray[np.float64]:
        """Return the log-probabilities at the temperature."""
        return log_softmax(self._scaled(scores), axis=1)

    def _scaled(self, scores: NDArray) -> NDArray[np.float64]:
        """Return the logits at the temperature, so small that the fit can square them."""
        scaled = self._as_logits(scores).astype(np.float64) / self.temperature_
        largest = np.abs(scaled).max()
        if largest > _LARGEST:
            raise ValueError(
                f"X must hold logits of at most {_LARGEST:g} at their temperature, "
                f"{self.temperature_:g}, got {largest:g}."
            )
        return scaled
