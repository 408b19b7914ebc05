"""The base class of all losses, the checks of their parameters, and a batch in one form."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

# The base class of all losses, and the checks of their parameters.
#
# A loss that needs more than logits and target has an attribute named ``uses_`` and the keyword
# of that input: ``uses_difficulty_weight``, ``uses_history``. The user guide shows a training
# loop that passes them.

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


def find_extremes(values: Tensor) -> tuple[float, float] | None:
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
    found = find_extremes(value)
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


class CalibrationLoss(torch.nn.CrossEntropyLoss):
    """A loss function with its parameters.

    A subclass names the function in `_function` and passes its parameters to ``__init__`` by
    keyword; they become attributes of the same names.

    The logits and targets are those of torch's cross-entropy, of which it is a subclass by name
    alone: libraries ask for that class to learn that probabilities are the softmax of the logits,
    as skorch's own NeuralNetClassifier does.
    """

    uses_difficulty_weight: bool = False
    uses_history: ClassVar[bool] = False
    takes_soft_target: ClassVar[bool] = True
    _function: ClassVar[Callable[..., Tensor]]
    reduction: str

    def __init__(self, *, reduction: str, **parameters: Any) -> None:
        torch.nn.Module.__init__(self)  # not torch's parameters, of which some losses have none
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
            where the target gives the class no probability, except for label smoothing and the
            norm of the logits, which are infinite or beyond 1e25 then.
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


# A batch in the form of the formulas: one sample per row, with its weight.
#
# Inputs of torch's cross-entropy are converted to that form here, once for all losses, and the
# losses of the rows back to the shape of the labels::
#
#     logits          class indices    class probabilities    samples
#     (n, K)          (n,)             (n, K)                 n
#     (n, K, d, ...)  (n, d, ...)      (n, K, d, ...)         every position: n d ...
#     (n,)            (n,) of 0, 1     (n,) in [0, 1]         n; z stands for the two logits (0, z)
#
# The number of dimensions of the logits alone decides which form it is.

# How far the sum of a soft target may be from 1, as in the metrics, and a probability below 0.
SUM_TOLERANCE = 1e-3
NEGATIVE_TOLERANCE = 1e-5


# A logit of probability 0 in float32 whose multiples stay finite.
_MASKED = -1e30


class Batch(NamedTuple):
    """Rows of logits with their targets; ``weight`` is (rows,), or None where all weigh 1."""

    logits: Tensor  # (rows, K), float32 or float64
    target: Tensor  # (rows,) int64, or (rows, K) with the type of `logits`
    shape: torch.Size  # of the losses before they are reduced
    weight: Tensor | None = None

    @property
    def rows(self) -> tuple[Tensor, Tensor]:
        """Logits and target."""
        return self.logits, self.target

    def per_sample(self, name: str, value: object) -> Tensor:
        """Check that `value` has one number per sample or position; return one per row."""
        tensor = check_tensor(name, value)
        dense = len(self.shape) > 1
        if dense and tensor.shape == self.shape[:1]:  # of a sample, for all of its positions
            tensor = tensor.reshape(-1, *[1] * (len(self.shape) - 1)).expand(self.shape)
        if tensor.is_complex() or tensor.shape != self.shape:
            also = f" or {tuple(self.shape)}, one value a position" if dense else ""
            raise ValueError(
                f"{name} must be a real tensor of shape ({self.shape[0]},), one value per sample"
                f"{also}, got {tensor.dtype} of shape {tuple(tensor.shape)}."
            )
        return (tensor.reshape(-1) if dense else tensor).to(self.logits.dtype)

    def fraction(self, name: str, value: object, advice: str = "") -> Tensor:
        """Check that there is one number in [0, 1] per sample or position; return one per row."""
        fraction = self.per_sample(name, value)
        found = find_extremes(fraction)
        if found is not None and not 0 <= found[0] <= found[1] <= 1:
            raise ValueError(
                f"{name} must be in [0, 1]{advice}, got values from {found[0]:g} to {found[1]:g}."
            )
        return fraction

    def difficulty_weight(self, value: object) -> Tensor:
        """Check difficulty weights; return one per row."""
        advice = ", as skcalib.difficulty.difficulty_weights makes it of a difficulty"
        return self.fraction("difficulty_weight", value, advice)

    def reduce(self, values: Tensor, reduction: str) -> Tensor:
        """Weight and reduce the losses of the rows.

        "mean" is ``sum(w * l) / sum(w)``, and 0 where every weight of the batch is 0.
        """
        check_reduction(reduction)
        if self.weight is None and reduction == "mean":
            return values.mean()
        weighted = values if self.weight is None else self.weight * values
        if reduction == "none":
            # A copy, which callers may change: the backward pass may need the values.
            return (values.clone() if weighted is values else weighted).reshape(self.shape)
        if reduction == "sum":
            return weighted.sum()
        # With weights of 0 alone this is 0 / tiny = 0, with a gradient of 0.
        tiny = torch.finfo(values.dtype).tiny
        return weighted.sum() / self.weight.sum().clamp_min(tiny)  # type: ignore[union-attr]


def check_batch(
    logits: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    *,
    soft: bool = True,
    dense: bool = True,
) -> Batch:
    """Check a batch and return it as rows, with the product of all their weights.

    Without `soft` class probabilities are refused, without `dense` more than one position per
    sample. Shapes and types are always checked, values on the CPU only.
    """
    check_tensor("logits", logits)
    check_tensor("target", target)
    shape = logits.shape[:1]
    if logits.ndim == 1:
        logits, target = _make_two_columns(logits, target)
    elif logits.ndim > 2 and dense:
        logits, target, shape = _make_rows(logits, target)
    counts = _mask_counted(target, ignore_index)
    if counts is not None:
        target = target.masked_fill(~counts, 0)
    logits, target = check_inputs(logits, target, soft=soft)
    if target.is_floating_point():
        # A class without probability may be masked: 0 times its infinite loss would be NaN.
        masked = (logits == -torch.inf) & (target == 0)
        logits = logits.masked_fill(masked, _MASKED)
    batch, factors = Batch(logits, target, shape), []
    if counts is not None:
        # NaN or -inf of padding, times a weight of 0, would be NaN: logits are replaced as well.
        batch = Batch(logits.masked_fill(~counts.unsqueeze(1), 0), target, shape)
        factors.append(counts.to(logits.dtype))
    if weight is not None:
        factors.append(_weigh_labels(weight, batch))
    if sample_weight is not None:
        factors.append(batch.per_sample("sample_weight", sample_weight))
        check_non_negative("sample_weight", factors[-1])
    return Batch(*batch.rows, shape, reduce(torch.mul, factors)) if factors else batch


def _mask_counted(target: Tensor, ignore_index: int | None) -> Tensor | None:
    """Return the mask of labels other than `ignore_index`, None where all count."""
    check_ignore_index(ignore_index)
    if ignore_index is None:
        return None
    if target.is_floating_point():
        raise ValueError(
            f"ignore_index must be None for a target of class probabilities, got {ignore_index}."
        )
    return target.long() != ignore_index  # a uint8 would be compared with 256 - 100


def _make_two_columns(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return logits z as (0, z), whose softmax is (1 - sigmoid(z), sigmoid(z)), and the target."""
    _check_logits(logits)
    if target.shape != logits.shape:
        raise ValueError(
            f"target must have the shape {tuple(logits.shape)} of logits, which are those of the "
            f"second of two classes, got shape {tuple(target.shape)}."
        )
    if target.is_floating_point():
        found = find_extremes(target)
        if found is not None and not 0 <= found[0] <= found[1] <= 1:
            raise ValueError(
                "target must hold indices or probabilities of the second class, in [0, 1], got "
                f"values from {found[0]:g} to {found[1]:g}."
            )
        target = torch.stack([1 - target, target], 1)
    return torch.stack([torch.zeros_like(logits), logits], 1), target


def _make_rows(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor, torch.Size]:
    """Return logits and target with a row for every position, and the shape of the positions."""
    _check_logits(logits)
    shape = logits.shape[:1] + logits.shape[2:]
    soft = target.is_floating_point()
    if target.shape != (logits.shape if soft else shape):
        raise ValueError(
            f"target must be an integer tensor of shape {tuple(shape)} of class indices or a "
            f"floating-point tensor of shape {tuple(logits.shape)} of class probabilities, got "
            f"{target.dtype} of shape {tuple(target.shape)}."
        )
    target = _move_classes_last(target) if soft else target.flatten()
    return _move_classes_last(logits), target, shape


def _move_classes_last(values: Tensor) -> Tensor:
    """Return (n, K, d, ...) as (n d ..., K)."""
    return values.movedim(1, -1).flatten(0, -2)


def _weigh_labels(weight: Tensor, batch: Batch) -> Tensor:
    """Return the class weight of the label of every row."""
    logits, target = batch.rows
    if target.is_floating_point():
        raise ValueError(
            "weight must be None for a target of class probabilities, got class weights; give "
            "the samples a sample_weight."
        )
    of_class = check_class_weight(weight)
    if of_class.shape != logits.shape[1:]:
        raise ValueError(
            f"weight must have shape ({logits.shape[1]},), one value per class, got shape "
            f"{tuple(of_class.shape)}."
        )
    return of_class.to(logits.dtype)[target]


def check_inputs(logits: Tensor, target: Tensor, *, soft: bool = True) -> tuple[Tensor, Tensor]:
    """Check rows, and cast half precision to float32.

    Shapes and types are always checked, the values of the target on the CPU only.

    Returns
    -------
    logits : Tensor of shape (n, K), float32 or float64
    target : int64 Tensor of shape (n,) or Tensor of shape (n, K) with the type of `logits`
    """
    check_tensor("logits", logits)
    check_tensor("target", target)
    _check_logits(logits, fits=logits.ndim == 2)
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
    found = find_extremes(target)
    if found is not None and not 0 <= found[0] <= found[1] < logits.shape[1]:
        hint = " (a single logit for two classes has shape (n,))" if logits.shape[1] == 1 else ""
        raise ValueError(
            f"target must hold class indices in [0, {logits.shape[1] - 1}], one for each column "
            f"of logits{hint}, got values from {found[0]} to {found[1]}."
        )
    return logits, target.long()


def _check_logits(logits: Tensor, *, fits: bool = True) -> None:
    if not fits or 0 in logits.shape or not logits.is_floating_point():
        raise ValueError(
            "logits must be a floating-point tensor of shape (n, K) with at least one row and one "
            f"class, got {logits.dtype} of shape {tuple(logits.shape)}."
        )


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
    found = find_extremes(target)
    if found is not None and not found[0] >= -NEGATIVE_TOLERANCE:
        raise ValueError(f"target must hold class probabilities, got {found[0]:g}.")
    # eps is 1e-3 in float16 and 8e-3 in bfloat16: such rows miss a sum of 1 by as much.
    tolerance = max(SUM_TOLERANCE, 2 * torch.finfo(target.dtype).eps)
    target = target.to(logits.dtype)
    found = find_extremes(target.sum(1) - 1)
    if found is not None and not -tolerance <= found[0] <= found[1] <= tolerance:
        raise ValueError(
            "target must hold class probabilities, rows that sum to 1, got sums from "
            f"{1 + found[0]:g} to {1 + found[1]:g}."
        )
    return target
