"""What every loss shares: the checks of its inputs, the weighted mean and the module.

A loss that needs more than logits and target says so by an attribute named ``uses_`` and the
keyword that brings it: ``uses_difficulty_weight``, ``uses_history``. The user guide shows the
training loop that feeds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

REDUCTIONS = ("none", "sum", "mean")
# The largest value of a parameter without an upper limit: its products stay finite in float32.
LARGEST = 1e30
# How far the sum of a soft target may be from 1, as in the metrics, and a probability below 0.
SUM_TOLERANCE = 1e-3
NEGATIVE_TOLERANCE = 1e-5


def check_range(name: str, value: object, low: float, high: float = LARGEST) -> float:
    """Return the parameter `name` as a float if it is a number in [low, high]."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an integer beyond float64
            number = math.inf if value > 0 else -math.inf  # type: ignore[operator]
    # NaN compares as False, here and below: every range is written so that it fails.
    if not low <= number <= high:
        raise ValueError(f"{name} must be a number in [{low:g}, {high:g}], got {value!r}.")
    return number


def check_flag(name: str, value: object) -> None:
    """Raise one sentence if the parameter `name` is not a bool."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be a bool, got {value!r}.")


def check_option(name: str, value: object, options: tuple[str, ...]) -> None:
    """Raise one sentence if the parameter `name` is not one of `options`."""
    if not isinstance(value, str) or value not in options:
        words = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {words}, got {value!r}.")


def extremes(values: Tensor) -> tuple[float, float] | None:
    """Return the least and the largest value (NaN if one is), None where none can be seen.

    An accelerator would have to stop for it, and a tensor that torch compiles or maps has none.
    """
    hidden = torch.compiler.is_compiling() or torch.jit.is_tracing()
    if hidden or values.device.type != "cpu":
        return None
    try:
        low, high = torch.aminmax(values.detach())
        return low.item(), high.item()
    except RuntimeError:  # within torch.func.vmap
        return None


def check_tensor(name: str, value: object) -> Tensor:
    """Return `value` if it is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}.")
    return value


def check_inputs(logits: Tensor, target: Tensor, *, soft: bool = True) -> tuple[Tensor, Tensor]:
    """Check a batch, and lift half precision to float32.

    Shapes and types are checked always, the values of the target on the CPU.

    Returns
    -------
    logits : Tensor of shape (n, K), float32 or float64
    target : int64 Tensor of shape (n,) or Tensor of shape (n, K) with the type of `logits`
    """
    check_tensor("logits", logits)
    check_tensor("target", target)
    if logits.ndim != 2 or 0 in logits.shape or not logits.is_floating_point():
        raise ValueError(
            "logits must be a floating-point tensor of shape (n, K) with at least one row and one "
            f"class, got {logits.dtype} of shape {tuple(logits.shape)}."
        )
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    if target.is_floating_point():
        return logits, _check_soft_target(target, logits, soft)
    if target.dtype == torch.bool or target.is_complex() or target.shape != logits.shape[:1]:
        raise ValueError(
            f"target must be an integer tensor of shape ({logits.shape[0]},) of class indices or "
            f"a floating-point tensor of shape {tuple(logits.shape)} of class probabilities, got "
            f"{target.dtype} of shape {tuple(target.shape)}."
        )
    found = extremes(target)
    if found is not None and not 0 <= found[0] <= found[1] < logits.shape[1]:
        raise ValueError(
            f"target must hold class indices in [0, {logits.shape[1] - 1}], one for each column "
            f"of logits, got values from {found[0]} to {found[1]}."
        )
    return logits, target.long()


def _check_soft_target(target: Tensor, logits: Tensor, soft: bool) -> Tensor:
    if not soft:
        raise ValueError(
            "target must hold class indices: this loss is not defined for soft targets, "
            f"got {target.dtype} of shape {tuple(target.shape)}."
        )
    if target.shape != logits.shape:
        raise ValueError(
            f"target must have the shape {tuple(logits.shape)} of logits if it is a floating-"
            f"point tensor of class probabilities, got shape {tuple(target.shape)}."
        )
    found = extremes(target)
    if found is not None and not found[0] >= -NEGATIVE_TOLERANCE:
        raise ValueError(f"target must hold class probabilities, got {found[0]:g}.")
    # eps is 1e-3 in float16 and 8e-3 in bfloat16: such rows miss a sum of 1 by as much.
    tolerance = max(SUM_TOLERANCE, 2 * torch.finfo(target.dtype).eps)
    target = target.to(logits.dtype)
    found = extremes(target.sum(1) - 1)
    if found is not None and not -tolerance <= found[0] <= found[1] <= tolerance:
        raise ValueError(
            "target must hold class probabilities, rows that sum to 1, got sums from "
            f"{1 + found[0]:g} to {1 + found[1]:g}."
        )
    return target


def check_per_sample(name: str, value: object, values: Tensor) -> Tensor:
    """Check that `value` has one number for each of `values`; return it in their type."""
    tensor = check_tensor(name, value)
    if tensor.is_complex() or tensor.shape != values.shape[:1]:
        raise ValueError(
            f"{name} must be a real tensor of shape ({values.shape[0]},), one value a sample, "
            f"got {tensor.dtype} of shape {tuple(tensor.shape)}."
        )
    return tensor.to(values.dtype)


def check_non_negative(name: str, value: Tensor) -> None:
    """Raise one sentence if a weight is negative, infinite or NaN."""
    found = extremes(value)
    if found is not None and not 0 <= found[0] <= found[1] < math.inf:
        raise ValueError(
            f"{name} must be finite and not negative, got values from {found[0]:g} to "
            f"{found[1]:g}."
        )


def check_unit_interval(name: str, value: object, values: Tensor, advice: str = "") -> Tensor:
    """Check that `value` has one number in [0, 1] for each of `values`."""
    fraction = check_per_sample(name, value, values)
    found = extremes(fraction)
    if found is not None and not 0 <= found[0] <= found[1] <= 1:
        raise ValueError(
            f"{name} must be in [0, 1]{advice}, got values from {found[0]:g} to {found[1]:g}."
        )
    return fraction


def check_difficulty_weight(value: object, values: Tensor) -> Tensor:
    """Check that `value` has one weight in [0, 1] for each of `values`."""
    advice = ", as skcalib.difficulty.difficulty_weights makes it of a difficulty"
    return check_unit_interval("difficulty_weight", value, values, advice)


def check_sample_weight(value: object, values: Tensor) -> Tensor | None:
    """Check that `value` is None or has one weight >= 0 for each of `values`."""
    if value is None:
        return None
    weight = check_per_sample("sample_weight", value, values)
    check_non_negative("sample_weight", weight)
    return weight


def reduce_loss(values: Tensor, sample_weight: Tensor | None, reduction: str) -> Tensor:
    """Weight and reduce the losses of a batch.

    "mean" is ``sum(w * l) / sum(w)``, and 0 where every weight of the batch is 0.
    """
    check_option("reduction", reduction, REDUCTIONS)
    weight = check_sample_weight(sample_weight, values)
    if weight is None and reduction == "mean":
        return values.mean()
    weighted = values if weight is None else weight * values
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    # With weights of 0 alone this is 0 / tiny = 0, with a gradient of 0.
    total = weight.sum().clamp_min(torch.finfo(values.dtype).tiny)  # type: ignore[union-attr]
    return weighted.sum() / total


class CalibrationLoss(torch.nn.Module):
    """A loss function with its parameters.

    A subclass names the function in `_function` and passes its parameters to ``__init__`` by
    keyword; they become attributes of the same names.
    """

    uses_difficulty_weight: bool = False
    uses_history: ClassVar[bool] = False
    takes_soft_target: ClassVar[bool] = True
    _function: ClassVar[Callable[..., Tensor]]
    reduction: str

    def __init__(self, *, reduction: str, **parameters: Any) -> None:
        super().__init__()
        check_option("reduction", reduction, REDUCTIONS)
        self._names = (*parameters, "reduction")
        for name, value in (*parameters.items(), ("reduction", reduction)):
            setattr(self, name, value)

    def forward(
        self,
        logits: Tensor,
        target: Tensor,
        *,
        difficulty_weight: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        logits : Tensor of shape (n, K)
            Finite scores before the softmax. Half precision is lifted to float32. To mask a class,
            give it a large negative finite score.
        target : Tensor of shape (n,) or (n, K)
            Class indices, or class probabilities (rows summing to 1) where the loss takes them.
        difficulty_weight : Tensor of shape (n,), default=None
            For the losses with ``uses_difficulty_weight``, which need it; an error for the others.
        sample_weight : Tensor of shape (n,), default=None
            Non-negative weights; the mean becomes ``sum(w * l) / sum(w)``.

        Returns
        -------
        loss : Tensor of shape () or, with ``reduction="none"``, (n,)
        """
        return self._evaluate(logits, target, difficulty_weight, sample_weight=sample_weight)

    def _evaluate(
        self, logits: Tensor, target: Tensor, difficulty_weight: Tensor | None, **inputs: Any
    ) -> Tensor:
        name = type(self).__name__
        if self.uses_difficulty_weight:
            if difficulty_weight is None:
                raise ValueError(
                    f"{name} needs difficulty_weight, a tensor of one value a sample: pass it "
                    "with every batch (a net takes it in fit)."
                )
            inputs["difficulty_weight"] = difficulty_weight
        elif difficulty_weight is not None:
            raise ValueError(
                f"{name} makes no use of difficulty_weight: leave it out, or choose a loss that "
                "uses it, such as DifficultyAwareLoss."
            )
        # Read at every call, and checked by the function: a schedule may set them during training.
        inputs.update((option, getattr(self, option)) for option in self._names)
        return type(self)._function(logits, target, **inputs)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
