"""The terms the losses are made of."""

import math

import pytest
import torch

from skcalib.losses._softmax import (
    compute_class_nll,
    compute_cross_entropy,
    compute_largest_probabilities,
    compute_norm,
    compute_one_minus_p,
    compute_power,
    compute_target_nll,
    take_target_logit,
)


@pytest.mark.parametrize("lead", [1.0, 17.0, 40.0, 80.0])
def test_digits_survive_where_log_softmax_has_lost_them(lead):
    logits = torch.tensor([[lead, 0.0, 0.0]])
    exact = math.log1p(2 * math.exp(-lead))
    nll, residual = compute_cross_entropy(logits, torch.tensor([0]))
    assert nll.item() == pytest.approx(exact, rel=1e-6)
    assert residual[0, 0].item() == pytest.approx(math.expm1(-exact), rel=1e-6)
    assert compute_class_nll(logits)[0, 0].item() == pytest.approx(exact, rel=1e-6)
    _, residual = compute_cross_entropy(logits, torch.tensor([[1.0, 0.0, 0.0]]))
    assert residual[0, 0].item() == pytest.approx(math.expm1(-exact), rel=1e-6)
    if lead > 17:
        assert torch.nn.functional.cross_entropy(logits, torch.tensor([0])) == 0


def test_gradient_keeps_its_digits_too():
    logits = torch.tensor([[40.0, 0.0, 0.0]], requires_grad=True)
    compute_cross_entropy(logits, torch.tensor([0]))[0].sum().backward()
    small = math.exp(-40)
    expected = torch.tensor([[-2 * small, small, small]])
    torch.testing.assert_close(logits.grad, expected, rtol=1e-6, atol=0)


def test_terms_and_their_derivatives_are_those_of_softmax():
    logits = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    label = torch.tensor([0, 1, 2, 3, 0, 1])
    weight, mix = torch.randn(6).double(), torch.randn(6, 4).double()

    def ours(z):
        nll, residual = compute_cross_entropy(z, label)
        return (weight * nll).sum() + (mix * residual**2).sum()

    def plain(z):
        log_proba = torch.log_softmax(z, 1)
        one_hot = torch.nn.functional.one_hot(label, 4)
        nll, residual = -(one_hot * log_proba).sum(1), log_proba.exp() - one_hot
        return (weight * nll).sum() + (mix * residual**2).sum()

    hessian = torch.autograd.functional.hessian
    torch.testing.assert_close(ours(logits), plain(logits))
    torch.testing.assert_close(
        torch.autograd.grad(ours(logits), logits), torch.autograd.grad(plain(logits), logits)
    )
    torch.testing.assert_close(hessian(ours, logits.detach()), hessian(plain, logits.detach()))


def test_the_graph_can_be_walked_twice():
    logits = torch.randn(3, 4, requires_grad=True)
    nll, residual = compute_cross_entropy(logits, torch.tensor([0, 1, 2]))
    value = (nll + residual.square().sum(1)).sum()
    value.backward(retain_graph=True)
    first = logits.grad.clone()
    value.backward()
    torch.testing.assert_close(logits.grad, 2 * first)


def test_nan_is_not_hidden():
    logits = torch.tensor([[float("nan"), 0.0]])
    assert compute_cross_entropy(logits, torch.tensor([1]))[0].isnan()


@pytest.mark.parametrize("n_largest", [1, 2])
def test_largest_probabilities(n_largest):
    logits = torch.randn(5, 4, dtype=torch.float64)
    expected = torch.softmax(logits, 1).sort(descending=True).values[:, :n_largest]
    label = torch.tensor([0, 1, 2, 3, 0])
    for target in (label, torch.softmax(torch.randn(5, 4).double(), 1)):
        nll = compute_target_nll(logits, target)
        torch.testing.assert_close(
            compute_largest_probabilities(logits, target, nll, n_largest), expected
        )


def test_target_logit():
    logits = torch.tensor([[1.0, 4.0], [2.0, 6.0]])
    assert take_target_logit(logits, torch.tensor([1, 0])).tolist() == [4, 2]
    assert take_target_logit(logits, torch.tensor([[0.5, 0.5], [0.25, 0.75]])).tolist() == [2.5, 5]


def test_miss_probability():
    nll = torch.tensor([0.0, 1e-40, 1e-10, 1.0, 1e4], dtype=torch.float64)
    expected = [0, 1e-40, 1e-10 - 5e-21, 1 - math.exp(-1), 1]
    assert compute_one_minus_p(nll).tolist() == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("exponent", [0, 0.25, 0.5, 1, 1.5, 2, 4])
def test_power_has_a_finite_slope_at_zero(exponent):
    base = torch.tensor([0.0, 1e-30, 0.25, 1.0], requires_grad=True)
    value = compute_power(base, exponent)
    value.sum().backward()
    assert base.grad.isfinite().all()
    torch.testing.assert_close(value[1:], base.detach()[1:] ** exponent)
    torch.testing.assert_close(base.grad[2:], exponent * base.detach()[2:] ** (exponent - 1))
    assert value[0].item() == pytest.approx(0**exponent, abs=1e-9)


@pytest.mark.parametrize("order", [1, 1.5, 2, 3, 60, 1e30, math.inf])
def test_vector_norm_neither_over_nor_underflows(order):
    values = torch.tensor([[3e30, -1e30], [2e-30, 2e-30], [0.0, 0.0]])
    expected = [
        3e30 if order > 50 else (3**order + 1) ** (1 / order) * 1e30,
        2e-30 * 2 ** (1 / order),
        0,
    ]
    assert compute_norm(values, order).tolist() == pytest.approx(expected, rel=1e-6)
