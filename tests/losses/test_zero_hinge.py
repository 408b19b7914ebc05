"""0-hinge loss."""

import torch

from skcalib.losses.functional import zero_hinge_loss

LOGITS = 2 * torch.randn(12, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABEL = torch.arange(12) % 5


def test_gradient_counts_the_violations():
    z = LOGITS.clone().requires_grad_()
    zero_hinge_loss(z, LABEL, reduction="sum").backward()
    expected = torch.zeros(12, 5, dtype=torch.float64)
    for i, y in enumerate(LABEL.tolist()):
        for j in range(5):
            if LOGITS[i, j] > LOGITS[i, y]:
                expected[i, j] += 1
                expected[i, y] -= 1
    torch.testing.assert_close(z.grad, expected)


def test_right_is_enough():
    first = LOGITS.argmax(1)
    z = LOGITS.clone().requires_grad_()
    value = zero_hinge_loss(z, first, reduction="none")
    value.sum().backward()
    assert (value == 0).all()
    assert (z.grad == 0).all()


def test_ties_have_no_gradient():
    z = torch.zeros(2, 3, requires_grad=True)
    zero_hinge_loss(z, torch.tensor([0, 2])).backward()
    assert (z.grad == 0).all()
