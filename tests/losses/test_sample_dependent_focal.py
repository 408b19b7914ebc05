"""FLSD: which exponent applies where."""

import pytest
import torch

from skcalib.losses.functional import (
    focal_loss,
    sample_dependent_focal_loss,
)

PROBA = torch.linspace(0.02, 0.98, 25, dtype=torch.float64)
LOGITS = torch.stack([PROBA, 1 - PROBA], 1).log()
LABEL = torch.zeros(25, dtype=torch.long)


def test_flsd_53_is_focal_5_below_and_focal_3_above():
    expected = torch.where(
        PROBA < 0.2,
        focal_loss(LOGITS, LABEL, gamma=5, reduction="none"),
        focal_loss(LOGITS, LABEL, gamma=3, reduction="none"),
    )
    ours = sample_dependent_focal_loss(LOGITS, LABEL, reduction="none")
    torch.testing.assert_close(ours, expected)


def test_exponent_is_not_differentiated():
    z, w = (LOGITS.clone().requires_grad_() for _ in range(2))
    sample_dependent_focal_loss(z, LABEL, reduction="none").sum().backward()
    five = focal_loss(w, LABEL, gamma=5, reduction="none")
    three = focal_loss(w, LABEL, gamma=3, reduction="none")
    torch.where(PROBA < 0.2, five, three).sum().backward()
    torch.testing.assert_close(z.grad, w.grad)


@pytest.mark.parametrize("detach", [False, True])
def test_without_thresholds_it_is_the_focal_loss(detach):
    ours = sample_dependent_focal_loss(
        LOGITS, LABEL, gammas=[2.0], thresholds=[], detach_weight=detach
    )
    torch.testing.assert_close(ours, focal_loss(LOGITS, LABEL, gamma=2, detach_weight=detach))


def test_several_thresholds():
    ours = sample_dependent_focal_loss(
        LOGITS, LABEL, gammas=(4, 2, 0), thresholds=(0.25, 0.5), reduction="none"
    )
    gamma = [4 if p < 0.25 else 2 if p < 0.5 else 0 for p in PROBA.tolist()]
    rows = zip(LOGITS.split(1), LABEL.split(1), gamma, strict=True)
    expected = [focal_loss(logits, label, gamma=g) for logits, label, g in rows]
    torch.testing.assert_close(ours, torch.stack(expected))
