"""The training step of a loss: value and gradient computed at once, in closed form."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._base import check_per_sample, reduce_loss
from ._softmax import is_eager

Formula = Callable[..., Tensor]
Solution = Callable[..., tuple[Tensor, Tensor]]


class _ClosedForm(torch.autograd.Function):
    """A reduced loss whose gradient is ready before the backward pass asks for it.

    If the gradient is to be differentiated again, autograd computes it from the formula.
    """

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        target: Tensor,
        formula: Formula,
        solution: Solution,
        parameters: tuple[Any, ...],
        sample_weight: Tensor | None,
        reduction: str,
    ) -> Tensor:
        values, gradient = solution(logits, target.unsqueeze(1), *parameters)
        ctx.save_for_backward(logits, gradient)
        ctx.formula, ctx.inputs = formula, (target, *parameters)
        ctx.sample_weight, ctx.reduction = sample_weight, reduction
        if reduction == "none" or sample_weight is not None:
            values = values.squeeze(1).clone()  # a view would be read-only for the caller
        return reduce_loss(values, sample_weight, reduction)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, gradient = ctx.saved_tensors
        if torch.is_grad_enabled():
            values = ctx.formula(logits, *ctx.inputs)
            value = reduce_loss(values, ctx.sample_weight, ctx.reduction)
            (total,) = torch.autograd.grad(value, logits, grad, create_graph=True)
        else:
            grad = _of_rows(grad, ctx.sample_weight, ctx.reduction, len(gradient))
            total = grad * gradient
        return (total, *[None] * 6)


def _of_rows(grad: Tensor, sample_weight: Tensor | None, reduction: str, n: int) -> Tensor:
    """Pull the gradient back through :func:`reduce_loss`; return a scalar or shape (n, 1)."""
    if sample_weight is not None:
        if reduction == "mean":
            grad = grad / sample_weight.sum().clamp_min(torch.finfo(grad.dtype).tiny)
        grad = grad * sample_weight
    elif reduction == "mean":
        grad = grad / n
    return grad.unsqueeze(1) if grad.ndim else grad


def evaluate(
    formula: Formula,
    solution: Solution,
    logits: Tensor,
    target: Tensor,
    *parameters: Any,
    sample_weight: Tensor | None,
    reduction: str,
) -> Tensor:
    """Compute a loss from its formula or, in a training step on class indices, its solution.

    On a small batch most of the time goes into recording operations, of which there is one for a
    solution, however many it takes.

    Parameters
    ----------
    formula : function of (logits, target, *parameters)
        Returns the loss of each row, shape (n,), differentiable as often as needed.
    solution : function of (logits, label, *parameters)
        Returns the same in the shape (n, 1), that of `label` too, and the derivative of each loss
        in its row of logits, shape (n, K). It runs on class indices; nothing in it is recorded.
    logits, target : Tensor
        As :func:`check_inputs` returns them.
    *parameters
        Further arguments, of which no derivative is taken.
    sample_weight : Tensor of shape (n,) or None
        Weights.
    reduction : {"none", "sum", "mean"}
        As for :func:`reduce_loss`.
    """
    if sample_weight is not None:
        sample_weight = check_per_sample("sample_weight", sample_weight, logits)
    training = torch.is_grad_enabled() and logits.requires_grad and is_eager()
    if target.is_floating_point() or not training or _is_learned(sample_weight):
        return reduce_loss(formula(logits, target, *parameters), sample_weight, reduction)
    return _ClosedForm.apply(
        logits, target, formula, solution, parameters, sample_weight, reduction
    )


def _is_learned(weight: Tensor | None) -> bool:
    return weight is not None and weight.requires_grad
