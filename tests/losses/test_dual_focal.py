"""Dual focal loss: the runner-up class, by a naive loop."""

import math

import pytest
import torch

from skcalib.losses.functional import (
    cross_entropy_loss,
    dual_focal_loss,
    focal_loss,
)

LOGITS = 2 * torch.randn(12, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LOGITS[0, 1] = LOGITS[0, 2]  # a tie between wrong classes
LOGITS[1, 1] = LOGITS[1, 2]  # a tie with the label
RUNNERS_UP = ["below_label", "second_largest", "largest_other"]
LABEL = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1])


def naive(logits, target, gamma, runner_up):
    out = []
    for z, y in zip(logits, target.tolist(), strict=True):
        p = torch.softmax(z, 0)
        if runner_up == "second_largest":
            other = p.sort().values[-2]
        elif runner_up == "largest_other":
            other = torch.cat([p[:y], p[y + 1 :]]).max()
        else:
            other = max((x for k, x in enumerate(p) if z[k] < z[y]), default=torch.zeros(()))
        out.append(-((1 - p[y] + other) ** gamma) * p[y].log())
    return torch.stack(out)


@pytest.mark.parametrize("runner_up", RUNNERS_UP)
@pytest.mark.parametrize("gamma", [0.5, 1, 5])
def test_values_and_gradients_of_a_naive_loop(runner_up, gamma):
    z, w = (LOGITS.clone().requires_grad_() for _ in range(2))
    ours = dual_focal_loss(z, LABEL, gamma=gamma, runner_up=runner_up, reduction="none")
    expected = naive(w, LABEL, gamma, runner_up)
    torch.testing.assert_close(ours, expected)
    ours.sum().backward()
    expected.sum().backward()
    # Among tied runners-up any one may take the gradient; the rows without ties must agree.
    torch.testing.assert_close(z.grad[2:], w.grad[2:])


@pytest.mark.parametrize("runner_up", RUNNERS_UP)
def test_soft_targets_are_the_mean_over_labels_with_their_own_runners_up(runner_up):
    t = torch.softmax(LOGITS.flip(1), 1)
    per_label = torch.stack(
        [
            dual_focal_loss(LOGITS, torch.full((12,), k), runner_up=runner_up, reduction="none")
            for k in range(5)
        ],
        1,
    )
    ours = dual_focal_loss(LOGITS, t, runner_up=runner_up, reduction="none")
    torch.testing.assert_close(ours, (t * per_label).sum(1))


def test_two_classes():
    logits = torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    q = 1 / (1 + math.exp(2))
    above = dual_focal_loss(logits, torch.tensor([0]), gamma=3)
    below = dual_focal_loss(logits, torch.tensor([1]), gamma=3)
    assert above.item() == pytest.approx((2 * q) ** 3 * -math.log(1 - q))
    assert below.item() == pytest.approx((1 - q) ** 3 * -math.log(q))
    torch.testing.assert_close(below, focal_loss(logits, torch.tensor([1]), gamma=3))


def test_one_class_and_gamma_zero():
    assert dual_focal_loss(torch.zeros(2, 1), torch.tensor([0, 0])) == 0
    value = dual_focal_loss(LOGITS, LABEL, gamma=0)
    torch.testing.assert_close(value, cross_entropy_loss(LOGITS, LABEL))


def test_the_rules_agree_where_the_label_is_first():
    first = LOGITS.argmax(1)
    one, *others = (
        dual_focal_loss(LOGITS, first, runner_up=rule, reduction="none") for rule in RUNNERS_UP
    )
    for other in others:
        torch.testing.assert_close(one, other)


def test_runners_up_differ_where_probabilities_underflow():
    logits = torch.tensor([[0.0, -800.0, -900.0]], dtype=torch.float64, requires_grad=True)
    value = dual_focal_loss(logits, torch.tensor([1]), gamma=1)
    value.backward()
    assert value.item() == pytest.approx(800)
    assert logits.grad.isfinite().all()
