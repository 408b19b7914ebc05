"""Call a criterion with what it takes, and refuse what it would ignore."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ._data import takes

_ROW_VALUES = ("sample_weight", "difficulty_weight", "history")

# These read the module's output as something else than logits of every class.
_NOT_ON_LOGITS = (nn.NLLLoss, nn.BCELoss, nn.BCEWithLogitsLoss)


def check_criterion(criterion: Any) -> frozenset[str]:
    """Return which values of a row, such as ``sample_weight``, the criterion's forward takes."""
    if isinstance(criterion, _NOT_ON_LOGITS):
        raise ValueError(
            "criterion must take the logits of all classes, as torch.nn.CrossEntropyLoss does; "
            f"got {type(criterion).__name__}."
        )
    forward = criterion.forward if isinstance(criterion, nn.Module) else criterion
    return frozenset(name for name in _ROW_VALUES if takes(forward, name))


def needs_row_values(criterion: Any) -> bool:
    """Tell whether a loss of :mod:`skcalib.losses` needs more of a row than logits and target."""
    names = ("difficulty_weight", "history")
    return any(getattr(criterion, f"uses_{name}", False) for name in names)


def criterion_loss(
    criterion: Any,
    logits: Tensor,
    target: Tensor,
    given: dict[str, Tensor],
    accepted: frozenset[str],
) -> Tensor:
    """Return the loss of a batch, with the values of its rows that were `given`."""
    refused = set(given) - accepted
    if not refused:
        return criterion(logits, target, **given)
    plain = getattr(criterion, "_orig_mod", criterion)
    if refused == {"sample_weight"} and getattr(plain, "reduction", None) in ("mean", "sum"):
        weight = given["sample_weight"]
        rest = {name: value for name, value in given.items() if name != "sample_weight"}
        return _weighted(plain, logits, target, weight, rest)
    raise ValueError(
        f"fit got {' and '.join(sorted(refused))}, but criterion {type(plain).__name__} has no "
        "use for it; choose a loss of skcalib.losses that takes it, or leave it out."
    )


def _weighted(
    criterion: nn.Module, logits: Tensor, target: Tensor, weight: Tensor, rest: dict[str, Tensor]
) -> Tensor:
    reduction = criterion.reduction
    criterion.reduction = "none"  # type: ignore[assignment]
    try:
        losses = criterion(logits, target, **rest)
    finally:
        criterion.reduction = reduction
    if losses.shape != weight.shape:
        raise ValueError(
            f"fit got sample_weight, but criterion {type(criterion).__name__} gives no loss for "
            f"every row: shape {tuple(losses.shape)} for {len(weight)} rows."
        )
    total = (weight * losses).sum()
    if reduction == "sum":
        return total
    class_weight = getattr(criterion, "weight", None)
    if class_weight is not None and target.ndim == 1:
        weight = weight * class_weight[target]  # as torch's own mean over weighted classes
    return total / weight.sum().clamp_min(torch.finfo(losses.dtype).tiny)
