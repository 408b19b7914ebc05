"""Focal loss: limits, the gradient in closed form, soft targets."""

import math

import pytest
import torch

from skcalib.losses.functional import cross_entropy_loss, focal_loss

LOGITS = 2 * torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABEL = torch.arange(9) % 4


@pytest.mark.parametrize("detach", [False, True])
def test_gamma_zero_is_the_cross_entropy(detach):
    value = focal_loss(LOGITS, LABEL, gamma=0, detach_weight=detach)
    torch.testing.assert_close(value, cross_entropy_loss(LOGITS, LABEL))


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("detach", [False, True])
def test_gradient_in_closed_form(gamma, detach):
    z = LOGITS.clone().requires_grad_()
    focal_loss(z, LABEL, gamma=gamma, detach_weight=detach, reduction="sum").backward()
    proba = torch.softmax(LOGITS, 1)
    p = proba.gather(1, LABEL[:, None])
    factor = (1 - p) ** gamma
    if not detach:
        factor = factor - gamma * p * (1 - p) ** (gamma - 1) * p.log()
    torch.testing.assert_close(z.grad, factor * (proba - torch.nn.functional.one_hot(LABEL, 4)))


@pytest.mark.parametrize("gamma", [0.25, 0.5, 1.0, 3.0])
def test_certain_and_right_has_no_gradient(gamma):
    z = torch.tensor([[0.0, 500.0], [0.0, 60.0]], requires_grad=True)
    value = focal_loss(z, torch.tensor([1, 1]), gamma=gamma, reduction="none")
    value.sum().backward()
    assert value[0] == 0
    assert (z.grad[0] == 0).all()
    assert z.grad[1].isfinite().all()


def test_soft_targets_are_the_mean_over_labels():
    t = torch.tensor([[0.2, 0.5, 0.3, 0.0]], dtype=torch.float64)
    z = LOGITS[:1]
    per_label = focal_loss(z.expand(4, 4), torch.arange(4), gamma=3, reduction="none")
    torch.testing.assert_close(focal_loss(z, t, gamma=3), (t[0] * per_label).sum())


def test_values_in_closed_form():
    p = torch.softmax(LOGITS, 1)
    every = -((1 - p) ** 3) * p.log()
    ours = focal_loss(LOGITS, LABEL, gamma=3.0, reduction="none")
    torch.testing.assert_close(ours, every.gather(1, LABEL[:, None])[:, 0])
    soft = torch.full((9, 4), 0.25, dtype=torch.float64)
    ours = focal_loss(LOGITS, soft, gamma=3.0, reduction="none")
    torch.testing.assert_close(ours, every.mean(1))


def test_two_classes_by_hand():
    value = focal_loss(torch.tensor([[0.0, 0.0]]), torch.tensor([1]), gamma=2)
    assert value.item() == pytest.approx(0.25 * math.log(2))
