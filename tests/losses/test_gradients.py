"""Gradients: against mpmath, twice differentiated, traced, and changed in place."""

import pytest
import torch
from torch.autograd import gradcheck
from torch.fx.experimental.proxy_tensor import make_fx

from tests.losses.reference import (
    CASES,
    expected,
    gradient_errors,
    logit_sets,
    reduced,
)

# float32 resolves 6e-8 of the largest entry of a gradient, so training cannot use more than that;
# the losses are computed in float64 here. The values keep the tighter bound of test_family.py.
GRADIENT_BOUND = 1e-7

# Some operations have no rule for batches there, so it loops, and warns of that.
slow_in_torch_2_7 = pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")


def batch(n_classes=5, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(7, n_classes, generator=generator, dtype=torch.float64)
    target = torch.randint(n_classes, (7,), generator=generator)
    return logits.to(dtype).requires_grad_(), target


@pytest.mark.parametrize("data", ["N(0, 9)", "K = 20", "wide lead", "+-50 + noise"])
@pytest.mark.parametrize("name", CASES)
def test_gradients_against_mpmath(name, data):
    if not CASES[name].row_wise and data != "N(0, 9)":
        pytest.skip("minutes of mpmath; its values are tested, and its gradient by gradcheck")
    logits, target = logit_sets()[data]
    # A difference quotient per class in 100 digits: of 20 classes, two rows are nine tenths.
    rows = slice(2 if data == "K = 20" and CASES[name].row_wise else None)
    assert max(gradient_errors(name, logits[rows], target[rows])) < GRADIENT_BOUND


@pytest.mark.parametrize("data", ["N(0, 9)", "K = 20", "wide lead", "+-50 + noise"])
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.row_wise])
def test_mean_against_mpmath(name, data):
    logits, target = logit_sets()[data]
    value = reduced(name, logits, target, "mean").item()
    exact = expected(name, logits, target)
    bound = 100 * torch.finfo(torch.float64).eps
    assert value == pytest.approx(float(sum(exact) / len(exact)), rel=bound)


@pytest.mark.parametrize("name", CASES)
def test_a_learned_weight_has_its_gradient(name):
    logits, target = batch()
    weight = torch.rand(7, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda w: reduced(name, logits, target, "mean", sample_weight=w), weight)


@pytest.mark.parametrize("name", CASES)
def test_rows_may_be_changed_in_place(name):
    logits, target = batch()
    rows = reduced(name, logits, target, "none")
    expected_gradient = torch.autograd.grad(2 * rows.sum(), logits, retain_graph=True)[0]
    rows.mul_(2)
    rows.sum().backward()
    torch.testing.assert_close(logits.grad, expected_gradient)


@pytest.mark.parametrize("name", CASES)
def test_the_backward_pass_can_be_repeated(name):
    logits, target = batch()
    value = reduced(name, logits, target, "mean")
    once = torch.autograd.grad(value, logits, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(value, logits), once, rtol=0, atol=0)


@slow_in_torch_2_7
@pytest.mark.parametrize("name", ["cross-entropy", "entropy", "Brier"])
def test_labels_or_logits_alone_can_be_mapped(name):
    logits, label = batch()
    labels = torch.stack([label, (label + 1) % 5, (label + 3) % 5])
    others = torch.stack([logits, logits.flip(0)]).detach()

    def gradient(z, y):
        return torch.func.grad(lambda v: reduced(name, v, y, "mean"))(z)

    by_label = torch.func.vmap(gradient, in_dims=(None, 0))(logits.detach(), labels)
    torch.testing.assert_close(by_label, torch.stack([gradient(logits, y) for y in labels]))
    by_logits = torch.func.vmap(gradient, in_dims=(0, None))(others, label)
    torch.testing.assert_close(by_logits, torch.stack([gradient(z, label) for z in others]))


@slow_in_torch_2_7
@pytest.mark.parametrize("name", ["focal 2", "dual focal", "BSCE(2, 4)", "entropy", "Brier"])
def test_hessian(name):
    logits, target = batch()

    def loss(z):
        return reduced(name, z, target, "mean")

    one_by_one = torch.autograd.functional.hessian(loss, logits.detach())
    torch.testing.assert_close(
        torch.autograd.functional.hessian(loss, logits.detach(), vectorize=True), one_by_one
    )
    twice = torch.func.jacrev(torch.func.jacrev(loss))(logits.detach())
    torch.testing.assert_close(twice, one_by_one)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [5, 20])
@pytest.mark.parametrize("name", ["focal 2", "dual focal", "CRL", "Brier"])
def test_a_tracer_sees_no_constants(name, n_classes):
    logits, target = batch(n_classes)
    others, _ = batch(n_classes, seed=1)

    def gradient(z):
        return torch.autograd.grad(reduced(name, z, target, "mean"), z)[0]

    traced = make_fx(gradient)(logits)
    torch.testing.assert_close(traced(others), gradient(others))


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_recorded_without_need(name):
    logits, target = batch()
    with torch.no_grad():
        assert not reduced(name, logits, target, "mean").requires_grad
    assert not reduced(name, logits.detach(), target, "mean").requires_grad


@pytest.mark.parametrize("name", CASES)
def test_autocast_changes_nothing(name):
    logits, target = batch(dtype=torch.float32)
    (plain,) = torch.autograd.grad(reduced(name, logits, target, "mean"), logits)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (inside,) = torch.autograd.grad(reduced(name, logits, target, "mean"), logits)
    torch.testing.assert_close(inside, plain)
    half = logits.detach().half().requires_grad_()
    reduced(name, half, target, "mean").backward()
    assert half.grad.dtype == torch.float16
