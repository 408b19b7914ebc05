"""Call a criterion with the values that it takes; values that it would ignore are errors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..utils.computing._tensors import plain_module
from ..utils.meta._estimators import takes

_KEYWORDS = ("sample_weight", "difficulty_weight", "history")

# These do not read the module's output as the logits of all classes.
_NOT_ON_LOGITS = (nn.NLLLoss, nn.BCELoss, nn.BCEWithLogitsLoss)


def check_criterion(criterion: Any) -> frozenset[str]:
    """Return which values of a sample, such as its weight, the criterion's forward takes."""
    if isinstance(criterion, _NOT_ON_LOGITS):
        raise ValueError(
            "criterion must take the logits of all classes, as torch.nn.CrossEntropyLoss does, "
            f"got {type(criterion).__name__}."
        )
    forward = criterion.forward if isinstance(criterion, nn.Module) else criterion
    return frozenset(name for name in _KEYWORDS if takes(forward, name))


def uses(criterion: Any, *names: str) -> bool:
    """Tell whether a loss of :mod:`skcalib.losses` needs one of these keywords."""
    return any(getattr(criterion, f"uses_{name}", False) for name in names)


def check_takes_proba(criterion: Any, name: str) -> None:
    """Raise if a loss takes no class probabilities, which the parameter `name` needs."""
    indices_only = isinstance(criterion, nn.MultiMarginLoss)
    if indices_only or not getattr(criterion, "takes_soft_target", True):
        raise ValueError(
            f"criterion must take class probabilities as target for {name}, got "
            f"{type(criterion).__name__}, which takes class indices alone."
        )


def criterion_loss(
    criterion: Any,
    logits: Tensor,
    target: Tensor,
    given: dict[str, Tensor],
    accepted: frozenset[str],
) -> Tensor:
    """Return the loss of a batch; `given` are values of its samples, by `accepted` keywords."""
    refused = set(given) - accepted
    if not refused:
        return criterion(logits, target, **given)
    plain = plain_module(criterion)
    if refused == {"sample_weight"} and getattr(plain, "reduction", None) in ("mean", "sum"):
        # torch's own criteria take no sample weights, but return one loss for every sample.
        weight = given["sample_weight"]
        others = {name: value for name, value in given.items() if name != "sample_weight"}
        return _weighted(plain, logits, target, weight, others)
    raise ValueError(
        f"criterion must take what fit is given, got {type(plain).__name__}, which has no use "
        f"for {' and '.join(sorted(refused))}."
    )


def _weighted(
    criterion: nn.Module, logits: Tensor, target: Tensor, weight: Tensor, others: dict[str, Tensor]
) -> Tensor:
    """Return the weighted sum or mean of the losses of the samples, as `reduction` has it."""
    reduction = criterion.reduction
    criterion.reduction = "none"  # type: ignore[assignment]
    try:
        losses = criterion(logits, target, **others)
    finally:
        criterion.reduction = reduction
    if losses.shape != weight.shape:
        raise ValueError(
            "criterion must give one loss for every sample where fit is given sample_weight, got "
            f"{type(criterion).__name__} with shape {tuple(losses.shape)} for {len(weight)} "
            "samples."
        )
    total = (weight * losses).sum()
    if reduction == "sum":
        return total
    class_weight = getattr(criterion, "weight", None)
    # A number of that name is something else, such as the strength of a penalty.
    if isinstance(class_weight, Tensor) and class_weight.ndim == 1 and target.ndim == 1:
        weight = weight * class_weight[target]  # torch's mean is weighted by the classes, too
    return total / weight.sum().clamp_min(torch.finfo(losses.dtype).tiny)
