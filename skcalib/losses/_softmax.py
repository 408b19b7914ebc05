"""The softmax terms every loss is made of, exact where ``log_softmax`` has lost all digits.

``log_softmax`` subtracts nearly equal numbers where the label is far ahead: its absolute error is
one unit in the last place of 1, so a cross-entropy below 1e-16 (float32: 6e-8, a lead of 17
logits) comes out as 0, and 1 - p_y with it. Sums of the small probabilities keep every digit.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch
from torch import Tensor

from ..utils._private import is_traced


def is_eager() -> bool:
    """Tell whether operations just run, and nobody records or transforms them."""
    return not (torch.compiler.is_compiling() or torch.jit.is_tracing() or is_traced())


# Along rows shorter than its vectors the softmax of the CPU takes the numbers one by one.
SHORT_ROW = 16


def _by_softmax(logits: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    lag = logits.gather(1, label) - logits.amax(1, keepdim=True)
    proba = torch.softmax(logits, 1)
    top, own = proba.amax(1, keepdim=True), proba.gather(1, label)
    others = proba.scatter_(1, label, torch.zeros_like(own)).sum(1, keepdim=True)
    # Where the label is on top the difference is 0, and the others keep every digit.
    excess = own.sub_(top).add_(others).div_(top)
    return proba, others, excess.log1p_().sub_(lag)


def _by_exp(logits: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    odds = logits - logits.amax(1, keepdim=True)
    lag = odds.gather(1, label)
    others = odds.exp_().scatter_(1, label, torch.zeros_like(lag)).sum(1, keepdim=True)
    total = lag.exp().add_(others)
    loss = lag.expm1().add_(others).log1p_().sub_(lag)
    return odds.div_(total), others.div_(total), loss


def label_softmax(
    logits: Tensor, label: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the cross-entropy against smoothed labels t, the residual p - t, and ``1 - p_y``.

    For where no derivative is recorded; :func:`cross_entropy_terms` is differentiable. All but the
    residual have the shape (n, 1), and so must have `label`. The cross-entropy is
    ``log(sum_k p_k / p_top) - log(p_y / p_top)``: neither term is negative, so no digits are lost.
    """
    short = logits.shape[1] < SHORT_ROW and logits.device.type == "cpu"
    residual, miss, loss = (_by_exp if short else _by_softmax)(logits, label)
    hit = -miss
    if smoothing:
        residual.sub_(smoothing / logits.shape[1])
        hit.add_(smoothing * (1 - 1 / logits.shape[1]))
        margin = logits.gather(1, label).sub_(logits.mean(1, keepdim=True))
        loss.add_(margin, alpha=smoothing)
    return loss, residual.scatter_(1, label, hit), miss


class _LabelSoftmax(torch.autograd.Function):
    """:func:`label_softmax` with its derivatives.

    The residual is the gradient of the cross-entropy, so nothing is left to compute in the
    backward pass. It is an output, not a saved intermediate, so that second derivatives and
    ``torch.func`` see it. There is no ``jvp``: ``torch.compile`` refuses a function with one.
    """

    @staticmethod
    def forward(logits: Tensor, target: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        loss, residual, _ = label_softmax(logits, target.unsqueeze(1), smoothing)
        return loss.squeeze(1), residual

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, float], output: tuple[Tensor, Tensor]
    ) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(output[1], inputs[1])
        ctx.smoothing = inputs[2]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None]:
        residual, target = ctx.saved_tensors
        grad_loss, grad_residual = grads
        if grad_residual is None:
            return None if grad_loss is None else grad_loss.unsqueeze(1) * residual, None, None
        grad = _softmax_product(residual, target.unsqueeze(1), ctx.smoothing, grad_residual)
        if grad_loss is not None:
            multiply_add = Tensor.addcmul if torch.is_grad_enabled() else Tensor.addcmul_
            grad = multiply_add(grad, grad_loss.unsqueeze(1), residual)
        return grad, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, int | None, None],
        logits: Tensor,
        target: Tensor,
        smoothing: float,
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        """Treat the mapped dimension as more rows."""
        logits, target = (
            value.expand(info.batch_size, *value.shape) if dim is None else value.movedim(dim, 0)
            for value, dim in zip((logits, target), in_dims[:2], strict=True)
        )
        flat = _LabelSoftmax.apply(logits.flatten(0, 1), target.flatten(0, 1), smoothing)
        return (flat[0].view(target.shape), flat[1].view(logits.shape)), (0, 0)


# Function.apply binds its arguments to this signature; computing it there, at every step, takes
# as long as the softmax of a small batch.
_LabelSoftmax.forward.__signature__ = inspect.signature(  # type: ignore[attr-defined]
    _LabelSoftmax.forward
)


def _softmax_product(residual: Tensor, label: Tensor, smoothing: float, vector: Tensor) -> Tensor:
    """Return the Jacobian of the softmax times `vector`, ``p * (v - sum_k p_k v_k)``.

    With ``p = residual + t``, p itself need not be formed. In place unless the result must be
    differentiated again: at (512, 1000) the temporaries would cost more than the arithmetic.
    """
    # Measured from the label: where p_y is nearly 1, nothing is left of v_y minus the mean.
    vector = vector - vector.gather(1, label)
    mean = (residual * vector).sum(1, keepdim=True)
    if smoothing:
        mean = mean + smoothing * vector.mean(1, keepdim=True)
        residual = residual + smoothing / residual.shape[1]
    centered = vector - mean
    at_label = (smoothing - 1) * mean
    if torch.is_grad_enabled():
        return (centered * residual).scatter_add(1, label, at_label)
    return centered.mul_(residual).scatter_add_(1, label, at_label)


def class_nll(logits: Tensor) -> Tensor:
    """Return -log p_k of every class, shape (n, K), with a small relative error."""
    top = logits.argmax(1, keepdim=True)
    gap = logits.gather(1, top) - logits
    rest = (-gap).exp().scatter(1, top, 0.0).sum(1, keepdim=True)
    return gap + rest.log1p()


def cross_entropy_terms(
    logits: Tensor, target: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy, shape (n,), and the residual p - t, shape (n, K).

    Both are differentiable, twice and more. `smoothing` moves that share of t to the uniform
    distribution. The residual is exact however small, for one-hot probabilities too.
    """
    if not target.is_floating_point():
        if is_eager() and not (torch.is_grad_enabled() and logits.requires_grad):
            return _LabelSoftmax.forward(logits, target, smoothing)
        return _LabelSoftmax.apply(logits, target, smoothing)
    if smoothing:
        target = (1 - smoothing) * target + smoothing / logits.shape[1]
    nll = class_nll(logits)
    likely = torch.expm1(-nll) + (1 - target)
    residual = torch.where(nll < math.log(2), likely, (-nll).exp() - target)
    return (target * nll).sum(1), residual


def target_nll(logits: Tensor, target: Tensor) -> Tensor:
    """Return -log p of the label, shape (n,), or of every class, (n, K), for soft targets."""
    if target.is_floating_point():
        return class_nll(logits)
    return cross_entropy_terms(logits, target)[0]


def probability_at(logits: Tensor, index: Tensor, target: Tensor, nll: Tensor) -> Tensor:
    """Return the probabilities of the classes `index`, shape (n, m), without another softmax.

    `nll` is the cross-entropy of the target, shape (n,).
    """
    if target.is_floating_point():
        at_target = (target * logits).sum(1, keepdim=True)
    else:
        at_target = logits.gather(1, target.unsqueeze(1))
    return (logits.gather(1, index) - at_target - nll.unsqueeze(1)).exp()


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
