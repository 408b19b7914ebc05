"""Uncertainty-weighted gradients: the published instances in one line each."""

from functools import partial

import pytest
import torch

from skcalib.losses import (
    BSCEGRALoss,
    CrossEntropyLoss,
    DualFocalLoss,
    FocalLoss,
    SampleDependentFocalLoss,
    UncertaintyWeightedLoss,
)
from skcalib.losses.functional import uncertainty_weighted_loss

LOGITS = 2 * torch.randn(8, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABEL = torch.arange(8) % 4
SOFT = torch.softmax(LOGITS.flip(1), 1)


def of_target(every, target):
    """Return the values of the labels, or of all classes for a soft target."""
    return every if target.is_floating_point() else every.gather(1, target[:, None])[:, 0]


def focal_weight(logits, target, gamma):
    return of_target((1 - logits.softmax(1)) ** gamma, target)


def sample_dependent_weight(logits, target):
    p = logits.softmax(1)
    return of_target((1 - p) ** torch.where(p < 0.2, 5.0, 3.0), target)


def dual_focal_weight(logits, target, gamma):
    p = logits.softmax(1)
    below = torch.where(p[:, None] < p[:, :, None], p[:, None], 0.0).amax(2)
    return of_target((1 - p + below) ** gamma, target)


def brier_weight(logits, target, order, exponent):
    soft = target if target.is_floating_point() else torch.nn.functional.one_hot(target, 4)
    return torch.linalg.vector_norm(logits.softmax(1) - soft, order, dim=1) ** exponent


def step(loss, target, **inputs):
    z = LOGITS.clone().requires_grad_()
    value = loss(z, target, **inputs)
    value.backward()
    return value.detach(), z.grad


@pytest.mark.parametrize("target", [LABEL, SOFT], ids=["hard", "soft"])
@pytest.mark.parametrize(
    ("uncertainty", "loss"),
    [
        (sample_dependent_weight, SampleDependentFocalLoss(detach_weight=True)),
        (partial(dual_focal_weight, gamma=4.0), DualFocalLoss(gamma=4.0, detach_weight=True)),
        (partial(focal_weight, gamma=3.0), FocalLoss(gamma=3.0, detach_weight=True)),
        (partial(brier_weight, order=3, exponent=2), BSCEGRALoss(order=3, exponent=2)),
        (lambda z, t: torch.ones(len(z)), CrossEntropyLoss()),
    ],
    ids=["FLSD-GRA", "DFL-GRA", "FL-GRA", "BSCE-GRA", "one"],
)
def test_instances(uncertainty, loss, target):
    general = UncertaintyWeightedLoss(uncertainty=uncertainty)
    torch.testing.assert_close(step(general, target), step(loss, target))


def test_the_weight_is_never_differentiated():
    weight = torch.rand(8, dtype=torch.float64, requires_grad=True)
    _, grad = step(UncertaintyWeightedLoss(), LABEL, difficulty_weight=weight)
    assert weight.grad is None
    r = torch.softmax(LOGITS, 1) - torch.nn.functional.one_hot(LABEL, 4)
    torch.testing.assert_close(grad, weight.detach()[:, None] * r / 8)

    def attached(logits, target):
        assert not logits.requires_grad
        return weight**2

    _, grad = step(UncertaintyWeightedLoss(uncertainty=attached), LABEL)
    torch.testing.assert_close(grad, weight.detach()[:, None] ** 2 * r / 8)


def test_difficulty_weight_is_not_a_sample_weight():
    loss, u = UncertaintyWeightedLoss(), torch.arange(8.0) / 8
    weighted = loss(LOGITS, LABEL, difficulty_weight=u)
    rows = CrossEntropyLoss(reduction="none")(LOGITS, LABEL)
    torch.testing.assert_close(weighted, (u * rows).mean())
    normalized = CrossEntropyLoss()(LOGITS, LABEL, sample_weight=u)
    torch.testing.assert_close(normalized, (u * rows).sum() / u.sum())


def test_exactly_one_source_of_weights():
    with pytest.raises(ValueError, match=r"exactly one of uncertainty .* got neither"):
        uncertainty_weighted_loss(LOGITS, LABEL)
    with pytest.raises(ValueError, match=r"exactly one of uncertainty .* got both"):
        uncertainty_weighted_loss(LOGITS, LABEL, uncertainty=len, difficulty_weight=torch.ones(8))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.ones(3), r"the value of uncertainty must be a real tensor of shape \(8,\)"),
        (torch.ones(8, 4), r"got torch.float32 of shape \(8, 4\)"),
        (1.0, "the value of uncertainty must be a torch.Tensor, got float"),
        (-torch.ones(8), "must be finite and not negative, got values from -1 to -1"),
    ],
)
def test_bad_values_of_uncertainty(value, words):
    with pytest.raises((TypeError, ValueError), match=words):
        uncertainty_weighted_loss(LOGITS, LABEL, uncertainty=lambda z, t: value)


def test_bad_shape_with_soft_targets():
    with pytest.raises(ValueError, match=r"shape \(8,\), one value per sample, .* \(8, 3\)"):
        uncertainty_weighted_loss(LOGITS, SOFT, uncertainty=lambda z, t: torch.ones(8, 3))
