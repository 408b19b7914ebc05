"""What every loss checks, and how it reduces."""

import numpy as np
import pytest
import torch

from skcalib.losses import CrossEntropyLoss
from skcalib.losses._base import CalibrationLoss, check_batch, check_range
from skcalib.losses.functional import cross_entropy_loss

Z = torch.zeros(3, 4)
Y = torch.tensor([0, 1, 2])


@pytest.mark.parametrize(
    ("logits", "target", "error", "message"),
    [
        (np.zeros((3, 4)), Y, TypeError, "logits must be a torch.Tensor, got ndarray"),
        (Z, [0, 1, 2], TypeError, "target must be a torch.Tensor, got list"),
        (Z[0], Y, ValueError, r"target must have the shape \(4,\) of logits, .* shape \(3,\)"),
        (Z[0, 0], Y, ValueError, r"logits must be .* got torch.float32 of shape \(\)"),
        (Z.long(), Y, ValueError, "logits must be a floating-point tensor .* got torch.int64"),
        (Z[:0], Y[:0], ValueError, r"at least one row and one class, got .* shape \(0, 4\)"),
        (Z[:, :0], Y, ValueError, r"at least one row and one class, got .* shape \(3, 0\)"),
        (Z, Y[:2], ValueError, r"target must be an integer tensor of shape \(3,\)"),
        (Z, Y.bool(), ValueError, "target must be an integer tensor .* got torch.bool"),
        (Z, Y[:, None], ValueError, r"target must be .* got torch.int64 of shape \(3, 1\)"),
        (Z, Y.float(), ValueError, r"target must have the shape \(3, 4\) of logits"),
        (Z, torch.zeros(3, 5), ValueError, r"target must have the shape .* got shape \(3, 5\)"),
    ],
)
def test_bad_batches(logits, target, error, message):
    with pytest.raises(error, match=message):
        cross_entropy_loss(logits, target)


@pytest.mark.parametrize("label", [-100, -1, 4])
def test_labels_out_of_range_are_named(label):
    message = rf"target must hold class indices in \[0, 3\], .* got values from .*{label}"
    with pytest.raises(ValueError, match=message):
        cross_entropy_loss(Z, torch.tensor([0, 1, label]))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_any_integer_type_is_a_label(dtype):
    assert cross_entropy_loss(Z, Y.to(dtype)) == cross_entropy_loss(Z, Y)


def test_soft_targets_take_the_type_of_the_logits():
    target = torch.full((3, 4), 0.25, dtype=torch.float64)
    assert cross_entropy_loss(Z, target).dtype == torch.float32


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.ones(2), r"sample_weight must be a real tensor of shape \(3,\), .* shape \(2,\)"),
        (torch.ones(3, 1), r"got torch.float32 of shape \(3, 1\)"),
        (torch.ones(3, dtype=torch.complex64), "got torch.complex64"),
        ([1, 1, 1], "sample_weight must be a torch.Tensor, got list"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises((TypeError, ValueError), match=message):
        cross_entropy_loss(Z, Y, sample_weight=weight)


def test_unknown_reduction():
    with pytest.raises(ValueError, match="reduction must be one of 'none', 'sum', 'mean', got 1"):
        cross_entropy_loss(Z, Y, reduction=1)


def test_weights_can_be_learned():
    weight = torch.ones(3, requires_grad=True)
    cross_entropy_loss(Z, Y, sample_weight=weight, reduction="sum").backward()
    torch.testing.assert_close(weight.grad, torch.full((3,), 4.0).log())


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), None, "x", True, torch.ones(1)])
def test_check_range(value):
    with pytest.raises(ValueError, match=r"a must be a number in \[0, 1\], got "):
        check_range("a", value, 0, 1)
    check_range("a", np.float32(0.5), 0, 1)


def test_check_range_takes_infinity_only_where_it_is_named():
    with pytest.raises(ValueError, match=r"a must be a number in \[0, 1e\+30\], got inf"):
        check_range("a", float("inf"), 0)
    check_range("a", float("inf"), 0, float("inf"))


def test_a_new_loss_is_a_function_and_a_class():
    def squared(logits, target, *, power, sample_weight=None, reduction="mean"):
        batch = check_batch(logits, target, sample_weight)
        return batch.reduce((batch.logits**power).sum(1), reduction)

    class Squared(CalibrationLoss):
        _function = staticmethod(squared)

        def __init__(self, *, power=2, reduction="mean"):
            super().__init__(power=power, reduction=reduction)

    assert Squared()(2 * torch.ones(1, 3), torch.tensor([0])) == 12
    assert repr(Squared(power=3)) == "Squared(power=3, reduction='mean')"
    assert repr(CrossEntropyLoss()) == "CrossEntropyLoss(reduction='mean')"
