"""Entropy regularization: gradient in closed form, limits, and what difficulty does."""

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from skcalib.losses import DifficultyAwareLoss
from skcalib.losses.functional import (
    cross_entropy_loss,
    difficulty_aware_loss,
    entropy_regularized_loss,
)

LOGITS = 2 * torch.randn(8, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABEL = torch.arange(8) % 4
SOFT = torch.softmax(LOGITS.flip(1), 1)
STRENGTH = torch.linspace(0, 1, 8, dtype=torch.float64)


@pytest.mark.parametrize("target", [LABEL, SOFT], ids=["hard", "soft"])
def test_value(target):
    h = torch.from_numpy(entropy(torch.softmax(LOGITS, 1).numpy(), axis=1))
    ce = cross_entropy_loss(LOGITS, target, reduction="none")
    ours = entropy_regularized_loss(LOGITS, target, alpha=0.3, reduction="none")
    torch.testing.assert_close(ours, ce - 0.3 * h)
    ours = difficulty_aware_loss(
        LOGITS, target, difficulty_weight=STRENGTH, alpha=0.3, reduction="none"
    )
    torch.testing.assert_close(ours, ce - 0.3 * STRENGTH * h)


@pytest.mark.parametrize("target", [LABEL, SOFT], ids=["hard", "soft"])
def test_gradient_in_closed_form(target):
    z = LOGITS.clone().requires_grad_()
    difficulty_aware_loss(
        z, target, difficulty_weight=STRENGTH, alpha=0.3, reduction="sum"
    ).backward()
    p, lp = torch.softmax(LOGITS, 1), torch.log_softmax(LOGITS, 1)
    h = -(p * lp).sum(1, keepdim=True)
    t = target if target.ndim == 2 else torch.nn.functional.one_hot(target, 4)
    torch.testing.assert_close(z.grad, (p - t) + 0.3 * STRENGTH[:, None] * p * (lp + h))


def test_limits():
    ce = cross_entropy_loss(LOGITS, LABEL)
    torch.testing.assert_close(entropy_regularized_loss(LOGITS, LABEL, alpha=0), ce)
    for weight, alpha in [(torch.zeros(8), 0.3), (torch.ones(8), 0.0)]:
        value = difficulty_aware_loss(LOGITS, LABEL, difficulty_weight=weight, alpha=alpha)
        torch.testing.assert_close(value, ce)
    everywhere = difficulty_aware_loss(LOGITS, LABEL, difficulty_weight=torch.ones(8), alpha=0.2)
    uniform = entropy_regularized_loss(LOGITS, LABEL, alpha=0.2)
    torch.testing.assert_close(everywhere, uniform)


def test_uniform_prediction():
    value = entropy_regularized_loss(torch.zeros(1, 10), torch.tensor([0]), alpha=0.5)
    assert value.item() == pytest.approx(0.5 * np.log(10))


def test_difficulty_weight_is_a_constant():
    weight = torch.ones(8, dtype=torch.float64, requires_grad=True)
    z = LOGITS.clone().requires_grad_()
    DifficultyAwareLoss()(z, LABEL, difficulty_weight=weight).backward()
    assert weight.grad is None


@pytest.mark.slow
def test_harder_rows_end_less_confident():
    z = torch.zeros(2, 3, dtype=torch.float64)
    for _ in range(500):
        z.requires_grad_()
        loss = difficulty_aware_loss(
            z, torch.tensor([0, 0]), difficulty_weight=torch.tensor([0.1, 1.0]), alpha=0.5
        )
        z = (z - 2 * torch.autograd.grad(loss, z)[0]).detach()
    easy, hard = torch.softmax(z, 1)[:, 0]
    assert easy > hard > 1 / 3
