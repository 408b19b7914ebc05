"""Cross-entropy and label smoothing against torch."""

import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot

from skcalib.losses.functional import cross_entropy_loss, label_smoothing_loss

LOGITS = 3 * torch.randn(9, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABEL = torch.arange(9) % 5
SOFT = torch.softmax(LOGITS.flip(0), 1)


@pytest.mark.parametrize("target", [LABEL, SOFT], ids=["hard", "soft"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.7, 1.0])
def test_agrees_with_torch(target, reduction, alpha):
    ours = label_smoothing_loss(LOGITS, target, alpha=alpha, reduction=reduction)
    expected = cross_entropy(LOGITS, target, label_smoothing=alpha, reduction=reduction)
    torch.testing.assert_close(ours, expected)
    if alpha == 0:
        assert cross_entropy_loss(LOGITS, target, reduction=reduction).equal(ours)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_gradient_is_p_minus_t(soft, alpha):
    z = LOGITS.clone().requires_grad_()
    label_smoothing_loss(z, SOFT if soft else LABEL, alpha=alpha, reduction="sum").backward()
    target = (1 - alpha) * (SOFT if soft else one_hot(LABEL, 5)) + alpha / 5
    torch.testing.assert_close(z.grad, torch.softmax(LOGITS, 1) - target)


def test_least_value_of_label_smoothing_is_the_entropy_of_the_labels():
    target = torch.tensor([0.9 + 0.1 / 3, 0.1 / 3, 0.1 / 3], dtype=torch.float64)
    value = label_smoothing_loss(target.log()[None], torch.tensor([0]), alpha=0.1)
    torch.testing.assert_close(value, -(target * target.log()).sum())
