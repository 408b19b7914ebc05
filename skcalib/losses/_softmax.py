"""The softmax terms every loss is made of, exact where ``log_softmax`` has lost all digits.

``log_softmax`` subtracts nearly equal numbers where the label is far ahead: its absolute error is
one unit in the last place of 1, so a cross-entropy below 1e-16 (float32: 6e-8, a lead of 17
logits) comes out as 0, and 1 - p_y with it. Sums of the small probabilities keep every digit.
"""

from typing import Any

import torch
from torch import Tensor


class _LabelSoftmax(torch.autograd.Function):
    """Cross-entropy and residual p - e_y of hard labels from one softmax.

    The residual is the gradient of the cross-entropy, so nothing is left to compute in the
    backward pass. It is an output, not a saved intermediate, so that second derivatives and
    ``torch.func`` see it.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        label = target.unsqueeze(1)
        proba = torch.softmax(logits, 1)
        lead = logits.amax(1) - logits.gather(1, label).squeeze(1)
        top = proba.amax(1)
        miss = proba.scatter(1, label, 0.0).sum(1)
        residual = proba.scatter(1, label, -miss.unsqueeze(1))
        # Each branch is a sum of terms of one sign where it is taken.
        loss = torch.where(miss < 0.5, -torch.log1p(-miss), lead - top.log())
        return loss, residual

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]
    ) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(output[1], inputs[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        residual, target = ctx.saved_tensors
        grad_loss, grad_residual = grads
        grad = None if grad_loss is None else grad_loss.unsqueeze(1) * residual
        if grad_residual is not None:
            through = _softmax_product(residual, target, grad_residual)
            grad = through if grad is None else grad + through
        return grad, None


def _softmax_product(residual: Tensor, target: Tensor, vector: Tensor) -> Tensor:
    """Product of the (symmetric) Jacobian of the softmax with a vector."""
    proba = residual.scatter_add(1, target.unsqueeze(1), torch.ones_like(residual[:, :1]))
    return proba * (vector - torch.linalg.vecdot(proba, vector).unsqueeze(1))


def class_nll(logits: Tensor) -> Tensor:
    """Return -log p_k of every class, shape (n, K), with a small relative error."""
    top = logits.argmax(1, keepdim=True)
    gap = logits.gather(1, top) - logits
    rest = (-gap).exp().scatter(1, top, 0.0).sum(1, keepdim=True)
    return gap + rest.log1p()


def cross_entropy_terms(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy, shape (n,), and the residual p - t, shape (n, K).

    Both are differentiable, twice and more. With class indices the residual of the label is
    -(1 - p_y), exact however small.
    """
    if not target.is_floating_point():
        return _LabelSoftmax.apply(logits, target)
    nll = class_nll(logits)
    return (target * nll).sum(1), torch.softmax(logits, 1) - target


def target_nll(logits: Tensor, target: Tensor) -> Tensor:
    """Return -log p of the label, shape (n,), or of every class, (n, K), for soft targets."""
    if target.is_floating_point():
        return class_nll(logits)
    return cross_entropy_terms(logits, target)[0]


def expectation(values: Tensor, target: Tensor) -> Tensor:
    """Return the mean over the target of what :func:`target_nll` led to, shape (n,)."""
    return (target * values).sum(1) if target.is_floating_point() else values


def miss_probability(nll: Tensor) -> Tensor:
    """Return 1 - p from -log p, exact however small."""
    return -torch.expm1(-nll)


def power(base: Tensor, exponent: float) -> Tensor:
    """Return ``base ** exponent`` for base >= 0, with a finite gradient at 0.

    Below an exponent of 1 the slope at 0 is infinite; it is taken as 0 there, the limit of its
    product with the cross-entropy, which vanishes with the base.
    """
    if 0 < exponent < 1:
        base = base.clamp_min(torch.finfo(base.dtype).tiny)
    return base**exponent
