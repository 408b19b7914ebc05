"""Softmax, cross-entropy and their gradient without cancellation, for all losses.

The cross-entropy in steps
--------------------------
``log_softmax`` subtracts nearly equal numbers where the label has by far the largest logit: its
error is one unit in the last place of 1, so that a cross-entropy below 6e-8 (float32; a label 17
logits above the others) comes out as 0, and ``1 - p_y``, the weight of a focal loss, with it.
Nothing here subtracts nearly equal numbers. For logits z with the largest ``z_top`` and the label
y:

1. ``p = softmax(z)`` is exact for every class, however small.
2. ``1 - p_y`` is the sum of the other probabilities, which adds numbers >= 0.
3. ``others = (1 - p_y) / p_top`` and ``d = z_y - z_top <= 0``; ``exp(d) + others`` is
   ``1 / p_top``.
4. ``-log p_y = log(exp(d) + others) - d``. Two cases:

   - the label is on top: d = 0, and the logarithm is ``log1p(others)``;
   - it is not: others >= 1, d < 0, and neither term is negative.

   One formula serves both: ``log1p(expm1(d) + others) - d``.
5. The gradient ``p - t`` is ``p_k`` for the other classes and ``-(1 - p_y)`` at the label. The
   forward pass has computed it already.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch
from torch import Tensor


def add_vmap(function: type[torch.autograd.Function]) -> type[torch.autograd.Function]:
    """Add to a function of autograd, of tensors with one row per sample, what ``vmap`` needs.

    Also store the signature of its forward pass: torch looks it up in every call, which takes a
    third of the time of a small batch unless ``__signature__`` is set.
    """

    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> Any:
        """Treat the mapped dimension as more rows."""
        mapped = [
            value.expand(info.batch_size, *value.shape) if dim is None else value.movedim(dim, 0)
            for value, dim in zip(inputs, in_dims, strict=True)
        ]
        outputs = function.apply(*(value.flatten(0, 1) for value in mapped))
        shape = mapped[0].shape[:2]
        return tuple(value.unflatten(0, shape) for value in outputs), (0,) * len(outputs)

    function.vmap = staticmethod(vmap)  # type: ignore[method-assign]
    signature = inspect.signature(function.forward)
    function.forward.__signature__ = signature  # type: ignore[attr-defined]
    return function


@add_vmap
class ExactSoftmax(torch.autograd.Function):
    """Cross-entropy of class indices, shape (n,), and the residual p - t, shape (n, K).

    The residual is the gradient of the cross-entropy, so nothing is left to compute in the
    backward pass. It is an output, not a saved intermediate, so that second derivatives and
    ``torch.func`` see it. There is no ``jvp``: ``torch.compile`` refuses a function with one.
    """

    @staticmethod
    def forward(logits: Tensor, label: Tensor) -> tuple[Tensor, ...]:
        # The steps at the head of this file. One buffer of shape (n, K) holds the probabilities
        # and then the residual.
        label = label.unsqueeze(1)
        proba = logits.softmax(1)
        p_top = proba.amax(1, keepdim=True)
        one_minus_p = proba.scatter_(1, label, 0.0).sum(1, keepdim=True)
        below_top = logits.gather(1, label).sub_(logits.amax(1, keepdim=True))  # z_y - z_top
        nll = below_top.expm1().add_(one_minus_p / p_top).log1p_().sub_(below_top)
        return nll.squeeze(1), proba.scatter_(1, label, one_minus_p.neg_())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)  # None, not zeros, for an output that the loss ignores
        ctx.save_for_backward(*inputs[1:], *output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        label, _, residual = ctx.saved_tensors
        grad_nll, cotangent = grads
        if cotangent is None:
            return compute_nll_gradient(residual, grad_nll), None
        parts = measure_from_label(residual, label, cotangent)
        return compute_softmax_vjp(residual, label, *parts, grad_nll), None


def compute_nll_gradient(residual: Tensor, grad: Tensor | None) -> Tensor | None:
    """Return the gradient of the cross-entropy: `grad` (n,) times the residual, or None."""
    return None if grad is None else grad.unsqueeze(1) * residual


def measure_from_label(
    residual: Tensor, label: Tensor, cotangent: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the cotangent v less its entry of the label, (n, K), and its mean ``sum_k p_k v_k``.

    Measured from the label, where v becomes 0, the mean needs the other classes only, and there p
    is the residual.
    """
    difference = cotangent - cotangent.gather(1, label.unsqueeze(1))
    # A copy: the product keeps the difference for second derivatives.
    return difference.clone(), (difference * residual).sum(1)


def compute_softmax_vjp(
    residual: Tensor,
    label: Tensor,
    difference: Tensor,
    mean: Tensor,
    grad_nll: Tensor | None = None,
) -> Tensor:
    """Return the Jacobian of the softmax times a cotangent v, plus `grad_nll` times the residual.

    `difference` and `mean` are v measured from the label, see :func:`measure_from_label`; the
    product is ``p * (v - mean)``, with ``p_y = residual_y + 1`` at the label. `difference` is
    overwritten: on the CPU, new memory costs more time than the product.
    """
    shift = add_gradients(grad_nll, -mean).unsqueeze(1)
    product = difference.add_(shift).mul_(residual)
    return product.scatter_add_(1, label.unsqueeze(1), -mean.unsqueeze(1))


def add_gradients(first: Tensor | None, second: Tensor) -> Tensor:
    """Return the sum of two gradients; None stands for 0."""
    return second if first is None else first + second


def compute_class_nll(logits: Tensor) -> Tensor:
    """Return -log p_k of every class, shape (n, K), with a small relative error."""
    # -log p_k = (z_top - z_k) + log(1 + rest), rest = sum of exp(z_j - z_top) over all j but top.
    # Neither term is negative, so nothing cancels; a class that ties with top counts 1 in rest.
    top = logits.argmax(1, keepdim=True)
    gap = logits.gather(1, top) - logits
    rest = (-gap).exp().scatter(1, top, 0.0).sum(1, keepdim=True)
    return gap + rest.log1p()


def compute_cross_entropy(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy, shape (n,), and the residual p - t, shape (n, K).

    Both are differentiable, twice and more. The residual is exact however small, for one-hot
    probabilities too.
    """
    if not target.is_floating_point():
        return ExactSoftmax.apply(logits, target)
    nll = compute_class_nll(logits)
    likely = torch.expm1(-nll) + (1 - target)  # p - t where p > 1/2 and both may be near 1
    # Both branches are finite, so the one not taken adds a gradient of 0, not NaN.
    residual = torch.where(nll < math.log(2), likely, (-nll).exp() - target)
    return (target * nll).sum(1), residual


def compute_target_nll(logits: Tensor, target: Tensor) -> Tensor:
    """Return -log p of the label, shape (n,), or of every class, (n, K), for soft targets."""
    if target.is_floating_point():
        return compute_class_nll(logits)
    return compute_cross_entropy(logits, target)[0]


def take_target_logit(logits: Tensor, target: Tensor) -> Tensor:
    """Return the logit of the label, shape (n,); for soft targets the mean over them."""
    if target.is_floating_point():
        return (target * logits).sum(1)
    return logits.gather(1, target.unsqueeze(1)).squeeze(1)


def average_over_target(values: Tensor, target: Tensor) -> Tensor:
    """Return the mean over the target of what :func:`compute_target_nll` led to, shape (n,)."""
    return (target * values).sum(1) if target.is_floating_point() else values


def compute_largest_probabilities(
    logits: Tensor, target: Tensor, nll: Tensor, n_largest: int = 1
) -> Tensor:
    """Return the largest probabilities of each row, shape (n, n_largest), without a new softmax.

    `nll` is what :func:`compute_target_nll` returned: of every class for a soft target; of the
    label for a hard one, and then ``log p_k = log p_y + z_k - z_y``.
    """
    if target.is_floating_point():
        return (-nll.topk(n_largest, largest=False).values).exp()
    top = logits.topk(n_largest).values
    return (top - logits.gather(1, target.unsqueeze(1)) - nll.unsqueeze(1)).exp()


def compute_answer_residual(
    logits: Tensor, label: Tensor, residual: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the confidence minus the correctness of every row, and the correctness, shape (n,).

    A row is correct if no class is above its label. Then the difference is ``p_y - 1``, else the
    largest probability: in both cases the residual of the predicted class, exact however small.
    """
    fixed, label = logits.detach(), label.unsqueeze(1)
    top, answer = fixed.max(1, keepdim=True)
    correct = fixed.gather(1, label) == top
    answer = torch.where(correct, label, answer)  # of a tie, the label
    return residual.gather(1, answer).squeeze(1), correct.squeeze(1)


def compute_one_minus_p(nll: Tensor) -> Tensor:
    """Return 1 - p from -log p, exact however small."""
    return -torch.expm1(-nll)


def compute_power(base: Tensor, exponent: float) -> Tensor:
    """Return ``base ** exponent`` for base >= 0, with a finite gradient at 0."""
    return clamp_base(base, exponent) ** exponent


def clamp_base(base: Tensor, exponent: float) -> Tensor:
    """Return a base whose power with an exponent in (0, 1) has a finite slope at 0.

    The slope is infinite there; it is taken as 0, the limit of its product with the cross-entropy,
    which vanishes with the base.
    """
    return base.clamp_min(torch.finfo(base.dtype).tiny) if 0 < exponent < 1 else base


def compute_norm(values: Tensor, order: float) -> Tensor:
    """Return the norm of each row, (n,), without over- or underflow of powers."""
    # A sum alone: no power, nothing to scale. The slope of abs at 0 is 0.
    if order == 1:
        return values.abs().sum(1)
    # norm(v) = s norm(v / s) for every s > 0, so its derivative by s is 0: s may be a constant.
    scale = values.detach().abs().amax(1, keepdim=True)
    scale = scale.clamp_min(torch.finfo(scale.dtype).tiny)
    return torch.linalg.vector_norm(values / scale, order, dim=1) * scale.squeeze(1)
