"""The training step in closed form against mpmath, and against autograd on the formula."""

import pytest
import torch
from torch.autograd import gradcheck
from torch.fx.experimental.proxy_tensor import make_fx

from skcalib import losses
from skcalib.losses._closed_form import _ClosedForm, arg_max
from tests.losses.reference import (
    BATCHWISE,
    CASES,
    HARD_ONLY,
    expected,
    gradient_errors,
    logit_sets,
    reduced,
    relative_errors,
    soft_target,
)

EPSILON = torch.finfo(torch.float64).eps
# What the worst-conditioned inputs cost, as for the values.
TOLERANCE = {"1000 + N(0, 9)": 1000, "+-1000": 1000, "+-1000 + noise": 1000}
ROW_WISE = [name for name in CASES if name not in BATCHWISE]
# Their formula is their only form.
OPEN = {"BSCE(1, 2)", "BSCE(3, 0.5)", "BSCE(inf, 3)", "logit norm 2", "0-hinge"}
OPEN |= {"CRL, margin", "CRL, entropy"}
WEIGHTS = {"no weights": None, "weights": torch.tensor([0.5, 1.0, 0.0, 3.0, 0.25, 2.0, 1.5])}


def batch(name, n_classes=5, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(7, n_classes, generator=generator, dtype=torch.float64)
    target = torch.randint(n_classes, (7,), generator=generator)
    return logits.to(dtype).requires_grad_(), target


@pytest.mark.parametrize("data", logit_sets())
@pytest.mark.parametrize("name", ROW_WISE)
def test_values_against_mpmath(name, data):
    logits, target = logit_sets()[data]
    bound = TOLERANCE.get(data, 100) * EPSILON
    assert max(relative_errors(name, logits, target, training=True)) < bound


@pytest.mark.parametrize("data", ["N(0, 9)", "K = 20", "wide lead", "+-50 + noise"])
@pytest.mark.parametrize("name", sorted(BATCHWISE))
def test_mean_against_mpmath(name, data):
    logits, target = logit_sets()[data]
    value = reduced(name, logits.clone().requires_grad_(), target, "mean").item()
    exact = expected(name, logits, target)
    assert value == pytest.approx(float(sum(exact) / len(exact)), rel=100 * EPSILON)


@pytest.mark.parametrize("data", ["N(0, 9)", "K = 20", "wide lead", "+-50 + noise"])
@pytest.mark.parametrize("name", CASES)
def test_gradients_against_mpmath(name, data):
    if name in BATCHWISE and data != "N(0, 9)":
        pytest.skip("minutes of mpmath; its values are tested, and its gradient against autograd")
    assert max(gradient_errors(name, *logit_sets()[data])) < 100 * EPSILON


@pytest.mark.parametrize("n_classes", [1, 2, 5, 20])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("name", CASES)
def test_closed_form_is_the_formula(name, reduction, weights, n_classes):
    if n_classes == 1 and name == "CRL, entropy":
        pytest.skip("the entropy of one class is 0")
    logits, target = batch(name, n_classes)
    loss = reduced(name, logits, target, reduction, sample_weight=WEIGHTS[weights])
    with torch.no_grad():
        value = reduced(name, logits, target, reduction, sample_weight=WEIGHTS[weights])
    torch.testing.assert_close(loss, value)
    upstream = torch.linspace(-1, 2, loss.numel(), dtype=loss.dtype).reshape(loss.shape)
    (closed,) = torch.autograd.grad(loss, logits, upstream, retain_graph=True)
    (by_autograd,) = torch.autograd.grad(loss, logits, upstream, create_graph=True)
    assert by_autograd.requires_grad
    assert not closed.requires_grad
    torch.testing.assert_close(closed, by_autograd)


@pytest.mark.parametrize("name", CASES)
def test_closed_form_of_one_row_and_of_certain_rows(name):
    one = torch.tensor([[1.0, -2.0, 0.5]])
    certain = torch.tensor([[60.0, 0.0, 1.0], [0.0, 62.0, 1.0], [1.0, 0.0, 61.0]])
    for logits, target in ((one, torch.tensor([2])), (certain, torch.arange(3))):
        z = logits.clone().requires_grad_()
        value = reduced(name, z, target, "mean")
        (closed,) = torch.autograd.grad(value, z, retain_graph=True)
        (by_autograd,) = torch.autograd.grad(value, z, create_graph=True)
        torch.testing.assert_close(closed, by_autograd, rtol=1e-5, atol=1e-30)


def graph_names(loss):
    seen, stack = set(), [loss.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack += [parent for parent, _ in node.next_functions]
    return {node.name() for node in seen}


@pytest.mark.parametrize("name", CASES)
def test_which_losses_have_a_closed_form(name):
    logits, target = batch(name)
    nodes = graph_names(reduced(name, logits, target, "mean"))
    assert ("_ClosedFormBackward" in nodes) == (name not in OPEN)
    if name not in OPEN:
        assert nodes == {"_ClosedFormBackward", "torch::autograd::AccumulateGrad"}
    if name not in HARD_ONLY:
        assert "_ClosedFormBackward" not in graph_names(
            reduced(name, logits, soft_target(logits.detach()), "mean")
        )


@pytest.mark.parametrize("name", CASES)
def test_a_learned_weight_has_its_gradient(name):
    logits, target = batch(name)
    weight = torch.rand(7, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda w: reduced(name, logits, target, "mean", sample_weight=w), weight)


@pytest.mark.parametrize("name", CASES)
def test_rows_may_be_changed_in_place(name):
    logits, target = batch(name)
    rows = reduced(name, logits, target, "none")
    expected_gradient = torch.autograd.grad(2 * rows.sum(), logits, retain_graph=True)[0]
    rows.mul_(2)
    rows.sum().backward()
    torch.testing.assert_close(logits.grad, expected_gradient)


@pytest.mark.parametrize("name", ["focal 2", "dual focal", "BSCE(2, 4)", "entropy", "Brier"])
def test_hessian(name):
    logits, target = batch(name)

    def loss(z):
        return reduced(name, z, target, "mean")

    one_by_one = torch.autograd.functional.hessian(loss, logits.detach())
    torch.testing.assert_close(
        torch.autograd.functional.hessian(loss, logits.detach(), vectorize=True), one_by_one
    )
    twice = torch.func.jacrev(torch.func.jacrev(loss))(logits.detach())
    torch.testing.assert_close(twice, one_by_one)


@pytest.mark.parametrize("n_classes", [5, 20])
@pytest.mark.parametrize("name", ["focal 2", "dual focal", "CRL", "Brier"])
def test_a_tracer_sees_no_constants(name, n_classes):
    logits, target = batch(name, n_classes)
    others, _ = batch(name, n_classes, seed=1)

    def gradient(z):
        return torch.autograd.grad(reduced(name, z, target, "mean"), z)[0]

    traced = make_fx(gradient)(logits)
    torch.testing.assert_close(traced(others), gradient(others))


def test_no_step_is_recorded_without_need():
    logits, target = batch("focal 2")
    with torch.no_grad():
        assert losses.focal_loss(logits, target).grad_fn is None
    assert losses.focal_loss(logits.detach(), target).grad_fn is None
    assert isinstance(losses.focal_loss(logits, target).grad_fn, _ClosedForm._backward_cls)


@pytest.mark.parametrize("n_classes", [3, 40])
def test_arg_max(n_classes):
    values = torch.randn(6, n_classes, generator=torch.Generator().manual_seed(0))
    values[0, 1:] = 9.0
    values[1, 2] = torch.inf
    assert arg_max(values).tolist() == [[row.index(max(row))] for row in values.tolist()]


@pytest.mark.parametrize("name", CASES)
def test_autocast_changes_nothing(name):
    logits, target = batch(name, dtype=torch.float32)
    (plain,) = torch.autograd.grad(reduced(name, logits, target, "mean"), logits)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (inside,) = torch.autograd.grad(reduced(name, logits, target, "mean"), logits)
    torch.testing.assert_close(inside, plain)
    half = logits.detach().half().requires_grad_()
    reduced(name, half, target, "mean").backward()
    assert half.grad.dtype == torch.float16
