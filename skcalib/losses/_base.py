"""What every loss shares: the checks of its inputs, the weighted mean and the module.

How a training loop, such as a net of :mod:`skcalib.nets`, feeds a loss
-----------------------------------------------------------------------
``loss(logits, target, *, difficulty_weight=None, sample_weight=None)`` is all that most losses
need. Two attributes of a loss say what else it must have, each named ``uses_`` and the keyword
that brings it; a criterion without them needs nothing else.

``uses_difficulty_weight``
    If True, `difficulty_weight` must come with every batch, one value a row, larger = harder; if
    False, a `difficulty_weight` is an error, because it would be dropped without a word.
``uses_history``
    If True, the loss also takes ``history``, one value a row: the share of the epochs so far in
    which the row was classified correctly. :class:`CorrectnessHistory` keeps it, and the training
    loop does three things::

        history = CorrectnessHistory(n_train)  # once a fit
        loss(logits, target, history=history.share(index))  # index: rows of the batch
        history.record(index, logits, target)  # after the step

    Rows that are not trained on (validation) have no history: give zeros, all equal, and nothing
    is ranked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import torch
from torch import Tensor

REDUCTIONS = ("none", "sum", "mean")
# Read here: older versions of torch.compile cannot trace the attribute.
_LARGEST = sys.float_info.max


def check_range(name: str, value: object, low: float, high: float | None = None) -> None:
    """Raise one sentence if the parameter `name` is not a finite number in [low, high].

    `high` may be infinity, which then is allowed too.
    """
    top = _LARGEST if high is None else high
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= top:
        interval = f"[{low}, inf)" if high is None else f"[{low}, {high}]"
        raise ValueError(f"{name} must be a number in {interval}, got {value!r}.")


def check_option(name: str, value: object, options: tuple[str, ...]) -> None:
    """Raise one sentence if the parameter `name` is not one of `options`."""
    if value not in options:
        words = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {words}, got {value!r}.")


def check_inputs(logits: Tensor, target: Tensor, *, soft: bool = True) -> tuple[Tensor, Tensor]:
    """Check the shapes and types of a batch, and lift half precision to float32.

    Only shapes and types are looked at, never values: a branch on a value would stop the device
    and break ``torch.compile``.

    Returns
    -------
    logits : Tensor of shape (n, K), float32 or float64
    target : int64 Tensor of shape (n,) or Tensor of shape (n, K) with the type of `logits`
    """
    for name, value in (("logits", logits), ("target", target)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}.")
    if logits.ndim != 2 or 0 in logits.shape or not logits.is_floating_point():
        raise ValueError(
            "logits must be a floating-point tensor of shape (n, K) with at least one row and one "
            f"class, got {logits.dtype} of shape {tuple(logits.shape)}."
        )
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    if target.is_floating_point():
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
        return logits, target.to(logits.dtype)
    if target.dtype == torch.bool or target.is_complex() or target.shape != logits.shape[:1]:
        raise ValueError(
            f"target must be an integer tensor of shape ({logits.shape[0]},) of class indices or "
            f"a floating-point tensor of shape {tuple(logits.shape)} of class probabilities, got "
            f"{target.dtype} of shape {tuple(target.shape)}."
        )
    return logits, target.long()


def check_per_sample(name: str, value: object, values: Tensor) -> Tensor:
    """Check that `value` has one number for each of `values`; return it in their type."""
    if not isinstance(value, Tensor) or value.is_complex() or value.shape != values.shape[:1]:
        what = (
            f"{value.dtype} of shape {tuple(value.shape)}"
            if isinstance(value, Tensor)
            else type(value).__name__
        )
        raise ValueError(
            f"{name} must be a real tensor of shape ({values.shape[0]},), one value a sample, "
            f"got {what}."
        )
    return value.to(values.dtype)


def reduce_loss(values: Tensor, sample_weight: Tensor | None, reduction: str) -> Tensor:
    """Weight and reduce the losses of a batch.

    "mean" is ``sum(w * l) / sum(w)``, and 0 where every weight of the batch is 0.
    """
    check_option("reduction", reduction, REDUCTIONS)
    if sample_weight is None:
        if reduction == "mean":
            return values.mean()
        return values.sum() if reduction == "sum" else values
    weight = check_per_sample("sample_weight", sample_weight, values)
    values = weight * values
    if reduction == "mean":
        return values.sum() / weight.sum().clamp_min(torch.finfo(values.dtype).tiny)
    return values.sum() if reduction == "sum" else values


class CalibrationLoss(torch.nn.Module):
    """A loss function with its parameters.

    A subclass names the function in `_function` and passes its parameters to ``__init__`` by
    keyword; they become attributes of the same names.
    """

    uses_difficulty_weight: bool = False
    uses_history: ClassVar[bool] = False
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
        inputs.update((option, getattr(self, option)) for option in self._names)
        return type(self)._function(logits, target, **inputs)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
