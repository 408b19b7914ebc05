"""Poly-1."""

import pytest
import torch

from skcalib.losses.functional import cross_entropy_loss, poly_loss

LOGITS = 2 * torch.randn(8, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABEL = torch.arange(8) % 4


@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 1.0, 6.0])
def test_gradient_in_closed_form(epsilon):
    z = LOGITS.clone().requires_grad_()
    poly_loss(z, LABEL, epsilon=epsilon, reduction="sum").backward()
    proba = torch.softmax(LOGITS, 1)
    p = proba.gather(1, LABEL[:, None])
    residual = proba - torch.nn.functional.one_hot(LABEL, 4)
    torch.testing.assert_close(z.grad, (1 + epsilon * p) * residual)


def test_it_changes_the_first_coefficient_of_the_series():
    miss = 1 - torch.softmax(LOGITS, 1).gather(1, LABEL[:, None]).squeeze(1)
    keep = miss < 0.9
    series = sum((1 + 2.0 * (j == 1)) * miss**j / j for j in range(1, 400))
    ours = poly_loss(LOGITS, LABEL, epsilon=2.0, reduction="none")
    torch.testing.assert_close(ours[keep], series[keep])


def test_epsilon_zero_and_soft_targets():
    torch.testing.assert_close(
        poly_loss(LOGITS, LABEL, epsilon=0), cross_entropy_loss(LOGITS, LABEL)
    )
    soft = torch.softmax(LOGITS.flip(1), 1)
    proba = torch.softmax(LOGITS, 1)
    expected = (soft * (1 - proba - proba.log())).sum(1)
    torch.testing.assert_close(poly_loss(LOGITS, soft, reduction="none"), expected)
