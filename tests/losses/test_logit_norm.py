"""Penalty on the norm of the logits."""

import pytest
import torch

from skcalib.losses.functional import cross_entropy_loss, logit_norm_loss

LOGITS = 2 * torch.randn(8, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABEL = torch.arange(8) % 4


@pytest.mark.parametrize("p", [1, 1.5, 2, 4, float("inf")])
def test_value(p):
    expected = cross_entropy_loss(LOGITS, LABEL, reduction="none")
    expected = expected + 0.1 * (
        LOGITS.abs().amax(1) if p == float("inf") else (LOGITS.abs() ** p).sum(1) ** (1 / p)
    )
    ours = logit_norm_loss(LOGITS, LABEL, strength=0.1, p=p, reduction="none")
    torch.testing.assert_close(ours, expected)


def test_gradient_of_the_1_norm():
    z = LOGITS.clone().requires_grad_()
    logit_norm_loss(z, LABEL, strength=0.1, reduction="sum").backward()
    residual = torch.softmax(LOGITS, 1) - torch.nn.functional.one_hot(LABEL, 4)
    torch.testing.assert_close(z.grad, residual + 0.1 * LOGITS.sign())


@pytest.mark.parametrize("p", [1, 1.5, 2, float("inf")])
def test_no_slope_at_zero(p):
    z = torch.zeros(1, 4, requires_grad=True)
    logit_norm_loss(z, torch.tensor([0]), strength=5.0, p=p).backward()
    torch.testing.assert_close(z.grad, torch.tensor([[-0.75, 0.25, 0.25, 0.25]]))


def test_strength_zero_is_the_cross_entropy():
    value = logit_norm_loss(LOGITS, LABEL, strength=0)
    torch.testing.assert_close(value, cross_entropy_loss(LOGITS, LABEL))
