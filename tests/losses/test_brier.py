"""Brier loss."""

import numpy as np
import pytest
import torch
from sklearn.metrics import brier_score_loss

from skcalib.losses.functional import brier_loss

LOGITS = 2 * torch.randn(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABEL = torch.arange(20) % 4
PROBA = torch.softmax(LOGITS, 1)


def test_agrees_with_scikit_learn():
    weight = np.arange(20) % 3 + 0.5
    expected = brier_score_loss(
        LABEL.numpy(), PROBA.numpy(), sample_weight=weight, scale_by_half=False, labels=range(4)
    )
    ours = brier_loss(LOGITS, LABEL, sample_weight=torch.from_numpy(weight))
    np.testing.assert_allclose(ours.item(), expected)


def test_gradient_in_closed_form():
    z = LOGITS.clone().requires_grad_()
    brier_loss(z, LABEL, reduction="sum").backward()
    r = PROBA - torch.nn.functional.one_hot(LABEL, 4)
    expected = 2 * PROBA * (r - (PROBA * r).sum(1, keepdim=True))
    torch.testing.assert_close(z.grad, expected)


def test_soft_targets_differ_from_the_mean_over_labels_by_a_constant():
    t = torch.softmax(LOGITS.flip(1), 1)
    per_label = torch.stack(
        [brier_loss(LOGITS, torch.full((20,), k), reduction="none") for k in range(4)], 1
    )
    mean = (t * per_label).sum(1)
    ours = brier_loss(LOGITS, t, reduction="none")
    torch.testing.assert_close(mean, ours + 1 - t.square().sum(1))


def test_bounds():
    logits = torch.tensor([[1000.0, 0.0], [1000.0, 0.0]])
    score = brier_loss(logits, torch.tensor([0, 1]), reduction="none")
    assert score.tolist() == [0, pytest.approx(2, rel=1e-6)]
