"""Correctness ranking loss and its record of past correctness."""

import math

import pytest
import torch

from skcalib.losses import CorrectnessHistory, CorrectnessRankingLoss
from skcalib.losses.functional import correctness_ranking_loss, cross_entropy_loss

LOGITS = 2 * torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABEL = torch.arange(9) % 4
HISTORY = torch.tensor([0.0, 1, 0.5, 0.5, 0.25, 0.75, 1, 0, 0.5], dtype=torch.float64)


def naive(z, history, confidence):
    p = torch.softmax(z, 1)
    ordered = p.sort(descending=True).values
    k = {
        "msp": ordered[:, 0],
        "margin": ordered[:, 0] - ordered[:, 1],
        "entropy": (p * p.log()).sum(1) / math.log(4),
    }[confidence]
    out = []
    for i in range(len(z)):
        j = (i + 1) % len(z)
        g = torch.sign(history[i] - history[j])
        out.append(torch.relu(-g * (k[i] - k[j]) + (history[i] - history[j]).abs()))
    return torch.stack(out)


@pytest.mark.parametrize("confidence", ["msp", "margin", "entropy"])
@pytest.mark.parametrize("soft", [False, True])
def test_values_and_gradients_of_a_naive_loop(confidence, soft):
    target = torch.softmax(LOGITS.flip(1), 1) if soft else LABEL
    z, w = (LOGITS.clone().requires_grad_() for _ in range(2))
    ours = correctness_ranking_loss(
        z, target, history=HISTORY, strength=0.7, confidence=confidence, reduction="none"
    )
    expected = cross_entropy_loss(w, target, reduction="none")
    expected = expected + 0.7 * naive(w, HISTORY, confidence)
    torch.testing.assert_close(ours, expected)
    ours.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(z.grad, w.grad)


@pytest.mark.parametrize("confidence", ["msp", "margin", "entropy"])
def test_nothing_is_ranked_without_a_past(confidence):
    z, w = (LOGITS.clone().requires_grad_() for _ in range(2))
    value = correctness_ranking_loss(z, LABEL, history=torch.zeros(9), confidence=confidence)
    expected = cross_entropy_loss(w, LABEL)
    torch.testing.assert_close(value, expected)
    value.backward()
    expected.backward()
    torch.testing.assert_close(z.grad, w.grad)


def test_it_pulls_confidence_towards_the_order_of_correctness():
    logits = torch.zeros(2, 3, requires_grad=True)
    with torch.no_grad():
        logits[:, 0] = 1.0
    history = torch.tensor([1.0, 0.0])
    loss = correctness_ranking_loss(logits, torch.tensor([0, 0]), history=history)
    plain = cross_entropy_loss(logits, torch.tensor([0, 0]))
    (grad,) = torch.autograd.grad(loss - plain, logits)
    assert grad[0, 0] < 0 < grad[1, 0]


def test_history_is_needed_and_checked():
    with pytest.raises(ValueError, match="CorrectnessRankingLoss needs history, the fraction"):
        CorrectnessRankingLoss()(LOGITS, LABEL)
    with pytest.raises(ValueError, match=r"history must be a real tensor of shape \(9,\)"):
        CorrectnessRankingLoss()(LOGITS, LABEL, history=torch.zeros(3))


def test_history_counts_per_row():
    history = CorrectnessHistory(4)
    index = torch.tensor([3, 1])
    right, wrong = torch.tensor([2.0, 0.0]), torch.tensor([0.0, 2.0])
    assert history.fraction_correct(torch.arange(4)).tolist() == [0, 0, 0, 0]
    for logits in (right, wrong, right, right):
        history.record(index, torch.stack([logits, right]), torch.tensor([0, 0]))
    assert history.fraction_correct(torch.arange(4)).tolist() == [0, 1, 0, 0.75]
    assert history.fraction_correct(index).tolist() == [0.75, 1]


def test_history_of_repeated_rows_and_soft_labels():
    history = CorrectnessHistory(2, device="cpu")
    logits = torch.tensor([[2.0, 0.0], [0.0, 2.0], [0.0, 2.0]], requires_grad=True)
    soft = torch.tensor([[0.6, 0.4], [0.6, 0.4], [0.3, 0.7]])
    history.record(torch.tensor([0, 0, 1]), logits, soft)
    assert history.fraction_correct(torch.tensor([0, 1])).tolist() == [0.5, 1]
