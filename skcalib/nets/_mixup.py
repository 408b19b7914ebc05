"""Mixup: train on convex combinations of two samples and of their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot


@dataclass(frozen=True)
class Mixup:
    """One draw: sample i of a batch becomes ``fraction * i + (1 - fraction) * partner[i]``.

    As in [1]_, the fraction is drawn from Beta(alpha, alpha) once a batch.

    References
    ----------
    .. [1] H. Zhang, M. Cisse, Y. N. Dauphin, D. Lopez-Paz, "mixup: Beyond Empirical Risk
       Minimization", ICLR 2018.
    """

    fraction: float
    partner: Tensor

    @classmethod
    def draw(cls, alpha: float, n_samples: int) -> Mixup:
        """Draw fraction and partners from torch's generator."""
        fraction = torch.distributions.Beta(alpha, alpha).sample().item()
        # Every sample is some other's partner once; a few may be their own.
        return cls(fraction, torch.randperm(n_samples))

    def inputs(self, X: Any) -> Any:
        """Mix the tensors of a batch, in dicts and sequences as well."""
        if isinstance(X, Mapping):
            return {name: self.inputs(value) for name, value in X.items()}
        if isinstance(X, list | tuple):
            return type(X)(self.inputs(value) for value in X)
        if not X.is_floating_point():
            raise ValueError(f"X must hold floating-point numbers for mixup_alpha, got {X.dtype}.")
        return self._mix(X)

    def targets(self, target: Tensor, n_classes: int) -> Tensor:
        """Mix class indices or probabilities into probabilities, (n_samples, n_classes)."""
        return self._mix(target if target.ndim == 2 else one_hot(target, n_classes).float())

    def batch_values(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Mix weights and the like in the same fractions."""
        return {name: self._mix(value) for name, value in values.items()}

    def _mix(self, values: Tensor) -> Tensor:
        # lerp(a, b, f) = a + f (b - a) = f b + (1 - f) a.
        return torch.lerp(values[self.partner.to(values.device)], values, self.fraction)
