"""The base class of all losses, and the checks of their parameters.

A loss that needs more than logits and target has an attribute named ``uses_`` and the keyword of
that input: ``uses_difficulty_weight``, ``uses_history``. The user guide shows a training loop that
passes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

# The largest value of a parameter without an upper limit: its products stay finite in float32.
LARGEST = 1e30

_NEEDED = {
    "difficulty_weight": "a tensor of one value per sample: pass it with every batch (a net takes "
    "it in fit)",
    "history": "the fraction of past epochs in which each sample was right: pass "
    "CorrectnessHistory.fraction_correct(index) with every batch, or zeros for samples without a "
    "past",
}
_USERS = {"difficulty_weight": "DifficultyAwareLoss", "history": "CorrectnessRankingLoss"}


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
    """Raise if the parameter `name` is not a bool."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be a bool, got {value!r}.")


def check_option(name: str, value: object, options: tuple[str, ...]) -> None:
    """Raise if the parameter `name` is not one of `options`."""
    if not isinstance(value, str) or value not in options:
        words = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {words}, got {value!r}.")


def extremes(values: Tensor) -> tuple[float, float] | None:
    """Return the least and the largest value, NaN if one is; None where values are not read.

    To read them would block an accelerator, and a tensor within torch.compile or vmap has none.
    """
    hidden = torch.compiler.is_compiling() or torch.jit.is_tracing()
    if hidden or values.device.type != "cpu":
        return None
    try:
        low, high = torch.aminmax(values.detach())
        return low.item(), high.item()
    except RuntimeError:  # within torch.func.vmap
        return None


def check_reduction(reduction: object) -> None:
    """Raise unless `reduction` is "none", "sum" or "mean"."""
    check_option("reduction", reduction, ("none", "sum", "mean"))


def check_tensor(name: str, value: object) -> Tensor:
    """Return `value` if it is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}.")
    return value


def check_non_negative(name: str, value: Tensor) -> None:
    """Raise if a weight is negative, infinite or NaN."""
    found = extremes(value)
    if found is not None and not 0 <= found[0] <= found[1] < math.inf:
        raise ValueError(
            f"{name} must be finite and not negative, got values from {found[0]:g} to "
            f"{found[1]:g}."
        )


def check_class_weight(weight: object) -> Tensor:
    """Return `weight` if it is a tensor of one non-negative number per class."""
    tensor = check_tensor("weight", weight)
    if tensor.is_complex() or tensor.ndim != 1:
        raise ValueError(
            "weight must be a real tensor of shape (K,), one value per class, got "
            f"{tensor.dtype} of shape {tuple(tensor.shape)}."
        )
    check_non_negative("weight", tensor)
    return tensor


def check_ignore_index(ignore_index: object) -> None:
    """Raise unless `ignore_index` is a label or None."""
    whole = isinstance(ignore_index, Integral) and not isinstance(ignore_index, bool)
    if ignore_index is not None and not whole:
        raise ValueError(f"ignore_index must be an integer or None, got {ignore_index!r}.")


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
        check_reduction(reduction)
        check_ignore_index(parameters.get("ignore_index"))
        self._names = (*parameters, "reduction")
        for name, value in (*parameters.items(), ("reduction", reduction)):
            setattr(self, name, value)
        if parameters.get("weight") is not None:
            del self.weight
            # A buffer moves to a device with the module, as that of torch's cross-entropy does.
            self.register_buffer("weight", check_class_weight(parameters["weight"]))

    def forward(
        self,
        logits: Tensor,
        target: Tensor,
        *,
        difficulty_weight: Tensor | None = None,
        history: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        logits : Tensor of shape (n, K), (n, K, ...) or (n,)
            Scores before the softmax; (n,) are the log-odds of the second of two classes. Half
            precision is cast to float32. A large negative score masks a class. So does -inf
            where the target holds class indices of other classes, except for label smoothing and
            the norm of the logits, which are infinite then.
        target : Tensor of shape (n,) or (n, ...), or of that of `logits`
            Class indices; or class probabilities (summing to 1 over the classes), where the loss
            takes them.
        difficulty_weight : Tensor of shape (n,) or (n, ...), default=None
            For the losses with ``uses_difficulty_weight``, which need it; an error for the others.
        history : Tensor of shape (n,), default=None
            Fraction of the epochs so far in which each sample was right, for the losses with
            ``uses_history``, which need it; an error for the others.
        sample_weight : Tensor of shape (n,) or (n, ...), default=None
            Non-negative weights; the mean becomes ``sum(w * l) / sum(w)``. They also weight the
            means inside of MMCE.

        Returns
        -------
        loss : Tensor of shape () or, with ``reduction="none"``, (n,) or (n, ...)
            Smaller = better.

        Raises
        ------
        TypeError, ValueError
            If an input or a parameter is not as described. On an accelerator and in compiled code
            only types and shapes are checked, not values.
        """
        inputs: dict[str, Any] = {"sample_weight": sample_weight}
        for name, value in (("difficulty_weight", difficulty_weight), ("history", history)):
            if getattr(self, f"uses_{name}"):
                if value is None:
                    raise ValueError(f"{type(self).__name__} needs {name}, {_NEEDED[name]}.")
                inputs[name] = value
            elif value is not None:
                raise ValueError(
                    f"{type(self).__name__} makes no use of {name}: leave it out, or choose a "
                    f"loss that uses it, such as {_USERS[name]}."
                )
        # Read at every call, and checked by the function: a schedule may set them during training.
        inputs.update((option, getattr(self, option)) for option in self._names)
        return type(self)._function(logits, target, **inputs)

    def extra_repr(self) -> str:
        values = {name: getattr(self, name) for name in self._names}
        absent = {name for name in ("weight", "ignore_index") if values.get(name) is None}
        return ", ".join(f"{k}={v!r}" for k, v in values.items() if k not in absent)


class WeightedLoss(CalibrationLoss):
    """A loss function without parameters of its own."""

    def __init__(
        self,
        *,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
