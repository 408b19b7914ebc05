"""Mixup: train on convex combinations of rows and of their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot


@dataclass(frozen=True)
class Mixup:
    """One draw: every row i of a batch becomes ``share * i + (1 - share) * partner[i]``.

    As in the paper, the share is drawn from Beta(alpha, alpha) once a batch.

    References
    ----------
    Zhang et al., mixup: Beyond Empirical Risk Minimization, ICLR 2018.
    """

    share: float
    partner: Tensor

    @classmethod
    def draw(cls, alpha: float, n_rows: int) -> Mixup:
        """Draw share and partners from torch's generator."""
        share = torch.distributions.Beta(alpha, alpha).sample().item()
        return cls(share, torch.randperm(n_rows))

    def inputs(self, X: Any) -> Any:
        """Mix the tensors of a batch, in dicts and sequences as well."""
        if isinstance(X, Mapping):
            return {name: self.inputs(value) for name, value in X.items()}
        if isinstance(X, list | tuple):
            return type(X)(self.inputs(value) for value in X)
        if not X.is_floating_point():
            raise ValueError(f"mixup_alpha needs X of floating-point numbers; got {X.dtype}.")
        return self._mix(X)

    def targets(self, target: Tensor, n_classes: int) -> Tensor:
        """Mix class indices into class probabilities, shape (n_rows, n_classes)."""
        return self._mix(one_hot(target, n_classes).float())

    def row_values(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Mix weights and the like in the same shares."""
        return {name: self._mix(value) for name, value in values.items()}

    def _mix(self, values: Tensor) -> Tensor:
        return torch.lerp(values[self.partner.to(values.device)], values, self.share)
