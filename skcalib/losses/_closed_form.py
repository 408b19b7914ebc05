"""The training step of a loss: value and gradient computed at once, in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._base import REDUCTIONS, check_option, check_per_sample, reduce_loss
from ._softmax import SHORT_ROW, is_eager

Formula = Callable[..., Tensor]
Solution = Callable[..., tuple[Tensor, Tensor]]


def _row_share(values: Tensor, sample_weight: Tensor | None, reduction: str) -> Tensor | None:
    """Return what the rows count in the sum, shape () or (n, 1); None if that is 1."""
    if sample_weight is None:
        return values.new_full((), 1 / len(values)) if reduction == "mean" else None
    share = sample_weight.unsqueeze(1)
    if reduction == "mean":
        share = share / share.sum().clamp_min(torch.finfo(share.dtype).tiny)
    return share


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
        share = _row_share(values, sample_weight, reduction)
        ctx.save_for_backward(logits, gradient, share)
        ctx.formula, ctx.inputs = formula, (target, *parameters)
        ctx.sample_weight, ctx.reduction = sample_weight, reduction
        if reduction == "none":
            # Not a view: the caller could not change it in place.
            return values[:, 0].clone() if share is None else values[:, 0] * share[:, 0]
        if share is None:
            return values.sum()
        return (values * share).sum() if share.ndim else values.sum().mul_(share)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, gradient, share = ctx.saved_tensors
        if torch.is_grad_enabled():
            values = ctx.formula(logits, *ctx.inputs)
            value = reduce_loss(values, ctx.sample_weight, ctx.reduction)
            (total,) = torch.autograd.grad(value, logits, grad, create_graph=True)
        else:
            grad = grad.unsqueeze(1) if grad.ndim else grad
            total = (grad if share is None else grad * share) * gradient
        return total, None, None, None, None, None, None


def evaluate(
    formula: Formula,
    solution: Solution,
    logits: Tensor,
    target: Tensor,
    parameters: tuple[Any, ...],
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
        in its row of logits, shape (n, K); of their sum, if rows are compared with each other,
        which then must count alike. It runs on class indices; nothing in it is recorded.
    logits, target : Tensor
        As :func:`check_inputs` returns them.
    parameters : tuple
        Further arguments, constants for the gradient.
    sample_weight : Tensor of shape (n,) or None
        Weights.
    reduction : {"none", "sum", "mean"}
        As for :func:`reduce_loss`.
    """
    check_option("reduction", reduction, REDUCTIONS)
    if sample_weight is not None:
        sample_weight = check_per_sample("sample_weight", sample_weight, logits)
    learned = sample_weight is not None and sample_weight.requires_grad
    training = logits.requires_grad and torch.is_grad_enabled() and is_eager()
    if target.is_floating_point() or learned or not training:
        return reduce_loss(formula(logits, target, *parameters), sample_weight, reduction)
    return _ClosedForm.apply(
        logits, target, formula, solution, parameters, sample_weight, reduction
    )


def arg_max(values: Tensor) -> Tensor:
    """Return the position of the largest value of each row, shape (n, 1); not differentiable.

    On the CPU numpy takes an eighth of the time of torch along 1000 columns.
    """
    if values.device.type == "cpu" and values.shape[1] >= SHORT_ROW:
        return torch.from_numpy(values.detach().numpy().argmax(1)).unsqueeze(1)
    return values.argmax(1, keepdim=True)


def probability_from(residual: Tensor, index: Tensor, label: Tensor) -> Tensor:
    """Return the probabilities of the classes `index`, shape (n, 1), from p - t."""
    return residual.gather(1, index).add_(index == label)


def move_probability(
    residual: Tensor, index: Tensor, label: Tensor, rate: Tensor, slope: Tensor | float
) -> Tensor:
    """Return ``slope (p - t) + rate (e_index - p)``.

    The second term is the derivative of p at `index` where `rate` is p times what is wanted of it.
    """
    # p = residual + e_label. Moved on zeros, so that nothing remains where index is the label.
    moved = torch.zeros_like(residual).scatter_(1, index, rate)
    moved.scatter_add_(1, label, -rate)
    return moved.addcmul_(residual, slope - rate)


def power_and_root(base: Tensor, exponent: float) -> tuple[Tensor, Tensor]:
    """Return ``base^exponent`` and ``base^(exponent - 1)``, both finite at 0."""
    if exponent < 1:
        base = base.clamp_min(torch.finfo(base.dtype).tiny)
    root = base.pow(exponent - 1)
    return root * base, root
