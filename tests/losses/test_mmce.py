"""MMCE: the n log n form against the double sum."""

import math

import pytest
import torch

from skcalib.losses.functional import cross_entropy_loss, mmce_loss


def data(n, n_classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(n_classes, (n,), generator=generator)


def double_sum(logits, target, weighted, bandwidth, weight):
    proba = torch.softmax(logits, 1)
    r, top = proba.max(1)
    c = (top == target).double()
    kernel = torch.exp(-(r[:, None] - r[None, :]).abs() / bandwidth)
    a = weight * (c - r)
    if not weighted:
        return ((a[:, None] * a[None, :] * kernel).sum() / weight.sum() ** 2).sqrt()
    total = 0
    for one in (0, 1):
        for other in (0, 1):
            rows, columns = c == one, c == other
            block = (a[:, None] * a[None, :] * kernel)[rows][:, columns].sum()
            size = weight[rows].sum() * weight[columns].sum()
            total = total + (block / size if size > 0 else 0)
    return total.sqrt()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bandwidth", [0.02, 0.4, 3.0])
@pytest.mark.parametrize("sample_weight", [False, True])
@pytest.mark.parametrize("n", [50, 128, 129, 300])  # 129 and more are summed on a line
def test_agrees_with_the_double_sum(weighted, bandwidth, sample_weight, n):
    logits, target = data(n)
    weight = torch.rand(n).double() if sample_weight else torch.ones(n).double()
    sample_weight = weight if sample_weight else None
    grads = []
    for exact in (True, False):
        z = logits.clone().requires_grad_()
        if exact:
            value = cross_entropy_loss(z, target, sample_weight=sample_weight)
            value = value + 3 * double_sum(z, target, weighted, bandwidth, weight)
        else:
            value = mmce_loss(
                z,
                target,
                strength=3.0,
                weighted=weighted,
                bandwidth=bandwidth,
                sample_weight=sample_weight,
            )
        value.backward()
        grads.append((value.detach(), z.grad))
    torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 140])
def test_can_be_differentiated_twice(n):
    logits, target = data(n, 3)
    assert torch.autograd.gradgradcheck(lambda z: mmce_loss(z, target), logits.requires_grad_())


def test_strength_zero_is_the_cross_entropy():
    logits, target = data(20)
    torch.testing.assert_close(
        mmce_loss(logits, target, strength=0), cross_entropy_loss(logits, target)
    )


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_row_alone(label, weighted):
    logits = torch.tensor([[math.log(3.0), 0.0]], dtype=torch.float64)
    value = mmce_loss(logits, torch.tensor([label]), strength=1.0, weighted=weighted)
    confidence = 0.75
    error = abs((1 - label) - confidence)
    assert value.item() == pytest.approx(-math.log([0.75, 0.25][label]) + error)


def test_calibrated_batch_has_none_and_no_nan():
    logits = torch.tensor([[1e-4, 0.0]] * 4, dtype=torch.float64)
    target = torch.tensor([0, 1, 0, 1])
    error = mmce_loss(logits, target, strength=1.0) - cross_entropy_loss(logits, target)
    # Four rows of confidence 1/2 + 1e-4 / 4, half of them right.
    assert error.item() == pytest.approx(1e-4 / 4, abs=1e-7)
    certain = torch.tensor([[1000.0, 0.0]] * 3, requires_grad=True)
    mmce_loss(certain, torch.tensor([0, 0, 0])).backward()
    assert (certain.grad == 0).all()


def test_memory_is_linear_in_the_rows():
    # The double sum would need 10^10 entries, 80 GB.
    logits, target = data(100_000, 2)
    value = mmce_loss(logits.requires_grad_(), target)
    value.backward()
    assert value.isfinite()
    assert logits.grad.isfinite().all()


def test_a_tie_with_the_largest_logit_counts_as_correct():
    values = [mmce_loss(torch.zeros(1, 2), torch.tensor([label])) for label in (0, 1)]
    assert values[0] == values[1]
