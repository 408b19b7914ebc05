"""BSCE and BSCE-GRA: identities of orders and exponents, gradients in closed form."""

import numpy as np
import pytest
import torch

from skcalib.losses.functional import (
    brier_loss,
    bsce_gra_loss,
    bsce_loss,
    cross_entropy_loss,
    focal_loss,
)
from skcalib.metrics import generalized_brier_score

LOGITS = 2 * torch.randn(10, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABEL = torch.arange(10) % 4
PROBA = torch.softmax(LOGITS, 1)
RESIDUAL = PROBA - torch.nn.functional.one_hot(LABEL, 4)
SOFT = torch.softmax(LOGITS.flip(1), 1)
INF = float("inf")


def weight_of(target, **options):
    """Return the weight of every sample: the loss over the cross-entropy."""
    loss = bsce_loss(LOGITS, target, reduction="none", **options)
    return loss / cross_entropy_loss(LOGITS, target, reduction="none")


@pytest.mark.parametrize("order", [1, 1.5, 2, 3, INF])
@pytest.mark.parametrize("exponent", [0, 0.5, 1, 2, 4])
@pytest.mark.parametrize("soft", [False, True])
def test_weight_is_the_norm_of_numpy(order, exponent, soft):
    target = SOFT if soft else LABEL
    r = (PROBA - SOFT if soft else RESIDUAL).numpy()
    expected = np.linalg.norm(r, ord=order, axis=1) ** exponent
    ours = weight_of(target, order=order, exponent=exponent)
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, INF])
def test_weight_is_the_metric(order):
    metric = generalized_brier_score(LABEL.numpy(), PROBA.numpy(), order=order, exponent=3)
    ours = weight_of(LABEL, order=order, exponent=3)
    np.testing.assert_allclose(ours.numpy(), metric, rtol=1e-12)


def test_identities_of_values_and_gradients():
    def gradient(function, **parameters):
        z = LOGITS.clone().requires_grad_()
        function(z, LABEL, **parameters).backward()
        return z.grad

    for g in (1.0, 3.0):
        focal = gradient(focal_loss, gamma=g)
        torch.testing.assert_close(gradient(bsce_loss, order=INF, exponent=g), focal)
        torch.testing.assert_close(gradient(bsce_loss, order=1, exponent=g), 2**g * focal)
    ce = gradient(cross_entropy_loss)
    torch.testing.assert_close(gradient(bsce_loss, exponent=0), ce)
    torch.testing.assert_close(gradient(bsce_gra_loss, exponent=0), ce)
    weight = weight_of(LABEL, order=2, exponent=2)
    torch.testing.assert_close(weight, brier_loss(LOGITS, LABEL, reduction="none"))


@pytest.mark.parametrize("order", [1, 2, 3, INF])
@pytest.mark.parametrize("soft", [False, True])
def test_gra_gradient_is_weight_times_residual(order, soft):
    z, target = LOGITS.clone().requires_grad_(), SOFT if soft else LABEL
    value = bsce_gra_loss(z, target, order=order, exponent=3, reduction="sum")
    value.backward()
    r = PROBA - SOFT if soft else RESIDUAL
    weight = torch.linalg.vector_norm(r, order, dim=1) ** 3
    torch.testing.assert_close(z.grad, weight[:, None] * r)
    same = bsce_loss(LOGITS, target, order=order, exponent=3, reduction="sum")
    torch.testing.assert_close(value.detach(), same)


@pytest.mark.parametrize("exponent", [0.25, 0.5, 1, 2, 4])
@pytest.mark.parametrize("order", [1, 1.5, 2, 3, INF])
@pytest.mark.parametrize("function", [bsce_loss, bsce_gra_loss])
def test_no_nan_where_the_prediction_is_the_target(function, order, exponent):
    z = torch.tensor([[0.0, 2000.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    uniform = torch.tensor([[0.0, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    for target in (torch.tensor([1, 1]), uniform):
        z.grad = None
        function(z, target, order=order, exponent=exponent).backward()
        assert z.grad.isfinite().all()
        assert (z.grad[0] == 0).all()


def test_small_residuals_do_not_underflow_in_general_orders():
    logits = torch.tensor([[40.0, 0.0, 0.0]])
    ours = bsce_loss(logits, torch.tensor([0]), order=3, exponent=1)
    small = float(np.exp(-40.0))  # log1p(2 small) is 2 small
    expected = 2 * small**2 * (2**3 + 1 + 1) ** (1 / 3)
    assert ours.item() == pytest.approx(expected, rel=1e-6)
