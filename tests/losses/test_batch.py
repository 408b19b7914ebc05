"""The forms of a batch that torch's cross-entropy takes, and what its samples weigh."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torch.nn import functional as F

from skcalib import losses
from skcalib.losses import functional
from skcalib.losses._base import Batch
from tests.losses.reference import CASES, extra_inputs, parameters, soft_target

RNG = torch.Generator().manual_seed(0)
N, K = 7, 5
LOGITS = 2 * torch.randn(N, K, generator=RNG, dtype=torch.float64)
LABEL = torch.tensor([0, 1, 2, 3, 4, 1, 1])
DENSE = 2 * torch.randn(2, K, 3, 2, generator=RNG, dtype=torch.float64)
DENSE_LABEL = torch.randint(K, (2, 3, 2), generator=RNG)
WEIGHT = torch.tensor([0.5, 2.0, 0.0, 1.0, 3.0], dtype=torch.float64)
REDUCTIONS = ("none", "sum", "mean")
# The strength of a term has the name of class weights there.
OF_CLASSES = [name for name in CASES if not name.startswith(("MMCE", "CRL"))]
DENSE_CASES = [name for name in CASES if not name.startswith("CRL")]


def make(name, **options):
    loss = CASES[name].loss
    return type(loss)(**parameters(loss) | options)


def rows(values):
    """The positions of a dense batch as rows, one by one."""
    values = values if values.ndim == 3 else values.permute(0, 2, 3, 1)
    return torch.stack([values[i] for i in itertools.product(range(2), range(3), range(2))])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("ignore_index", [None, -100, 1])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("dense", [False, True])
def test_cross_entropy_is_that_of_torch(dense, weight, ignore_index, reduction):
    logits, target = (DENSE, DENSE_LABEL.clone()) if dense else (LOGITS, LABEL.clone())
    if ignore_index is not None:
        target[0] = ignore_index
    options = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction}
    given = {key: value for key, value in options.items() if value is not None}
    expected = F.cross_entropy(logits, target, **given)
    torch.testing.assert_close(functional.cross_entropy_loss(logits, target, **options), expected)
    module = losses.CrossEntropyLoss(**options)
    torch.testing.assert_close(module(logits, target), expected)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("ignore_index", [None, -100])
@pytest.mark.parametrize("n_axes", [0, 1, 2])
def test_label_smoothing_is_that_of_torch(n_axes, ignore_index, reduction):
    logits, target = (DENSE, DENSE_LABEL.clone()) if n_axes else (LOGITS, LABEL.clone())
    if n_axes == 1:
        logits, target = logits[..., 0], target[..., 0]
    given = {"reduction": reduction}
    if ignore_index is not None:
        given["ignore_index"] = target[1] = ignore_index
    expected = F.cross_entropy(logits, target, label_smoothing=0.1, **given)
    found = functional.label_smoothing_loss(logits, target, alpha=0.1, **given)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_dense_class_probabilities_are_those_of_torch(reduction):
    target = torch.softmax(torch.randn(DENSE.shape, generator=RNG, dtype=torch.float64), 1)
    torch.testing.assert_close(
        functional.cross_entropy_loss(DENSE, target, reduction=reduction),
        F.cross_entropy(DENSE, target, reduction=reduction),
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_a_single_logit_is_that_of_torch(reduction):
    logits, target = 3 * torch.randn(9, generator=RNG), torch.arange(9) % 2
    expected = F.binary_cross_entropy_with_logits(logits, target.float(), reduction=reduction)
    for given in (target, target.float()):
        found = functional.cross_entropy_loss(logits, given, reduction=reduction)
        torch.testing.assert_close(found, expected)
    soft = torch.rand(9, generator=RNG)
    torch.testing.assert_close(
        functional.cross_entropy_loss(logits, soft, reduction=reduction),
        F.binary_cross_entropy_with_logits(logits, soft, reduction=reduction),
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", OF_CLASSES)
def test_a_class_weight_is_the_weight_of_every_sample_of_the_class(name, reduction):
    extra = extra_inputs(CASES[name].needs, N)
    expected = make(name, reduction=reduction)(LOGITS, LABEL, sample_weight=WEIGHT[LABEL], **extra)
    weighted = make(name, reduction=reduction, weight=WEIGHT)
    torch.testing.assert_close(weighted(LOGITS, LABEL, **extra), expected)
    both = weighted(LOGITS, LABEL, sample_weight=1 / (1 + LABEL), **extra)
    product = make(name, reduction=reduction)(
        LOGITS, LABEL, sample_weight=WEIGHT[LABEL] / (1 + LABEL), **extra
    )
    torch.testing.assert_close(both, product)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", CASES)
def test_an_ignored_sample_is_no_sample_whatever_its_logits(name, reduction):
    extra = extra_inputs(CASES[name].needs, N)
    kept = torch.tensor([True, True, False, True, True, False, True])
    target, logits = torch.where(kept, LABEL, 255), LOGITS.clone()
    logits[2], logits[5, 1] = math.nan, -math.inf
    logits.requires_grad_()
    found = make(name, reduction=reduction, ignore_index=255)(logits, target, **extra)
    z = LOGITS[kept].requires_grad_()
    few = {key: value[kept] for key, value in extra.items()}
    expected = make(name, reduction=reduction)(z, LABEL[kept], **few)
    torch.testing.assert_close(found[kept] if reduction == "none" else found, expected)
    found.sum().backward()
    # "none" adds the regularizer of the batch to every sample, to those ignored 0 times.
    expected.sum().backward()
    torch.testing.assert_close(logits.grad[kept], z.grad)
    assert (logits.grad[~kept] == 0).all()


@pytest.mark.parametrize("name", CASES)
def test_where_all_samples_are_ignored_the_loss_is_0(name):
    logits = LOGITS.clone().requires_grad_()
    extra = extra_inputs(CASES[name].needs, N)
    value = make(name, ignore_index=-1)(logits, torch.full((N,), -1), **extra)
    value.backward()
    assert value == 0
    assert (logits.grad == 0).all()


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", DENSE_CASES)
def test_every_position_of_a_dense_batch_is_a_sample(name, soft):
    if soft and not CASES[name].soft:
        pytest.skip("hard labels only")
    target = soft_target(DENSE) if soft else DENSE_LABEL
    weight = torch.arange(12.0).reshape(2, 3, 2)
    extra = {
        key: value.reshape(2, 3, 2) for key, value in extra_inputs(CASES[name].needs, 12).items()
    }
    flat = {key: rows(value) for key, value in extra.items()}
    for reduction in REDUCTIONS:
        loss = make(name, reduction=reduction)
        found = loss(DENSE, target, sample_weight=weight, **extra)
        expected = loss(rows(DENSE), rows(target), sample_weight=rows(weight), **flat)
        if reduction == "none":
            expected = expected.reshape(2, 3, 2)
        torch.testing.assert_close(found, expected)


def test_a_weight_of_a_sample_is_that_of_all_its_positions():
    weight, difficulty = torch.tensor([1.0, 3.0]), torch.tensor([0.25, 1.0])
    spread = [value[:, None, None].expand(2, 3, 2) for value in (difficulty, weight)]
    for reduction in REDUCTIONS:
        loss = losses.DifficultyAwareLoss(reduction=reduction)
        by_sample = loss(DENSE, DENSE_LABEL, difficulty_weight=difficulty, sample_weight=weight)
        by_position = loss(
            DENSE, DENSE_LABEL, difficulty_weight=spread[0], sample_weight=spread[1]
        )
        torch.testing.assert_close(by_sample, by_position)


@pytest.mark.parametrize("name", CASES)
def test_a_single_logit_is_two_logits_of_which_the_first_is_0(name):
    logits, target = LOGITS[:, 0], torch.arange(N) % 2
    two = torch.stack([torch.zeros(N, dtype=torch.float64), logits], 1)
    extra = extra_inputs(CASES[name].needs, N)
    loss = make(name, reduction="none")
    torch.testing.assert_close(loss(logits, target, **extra), loss(two, target, **extra))
    if CASES[name].soft:
        soft = torch.rand(N, generator=RNG, dtype=torch.float64)
        pair = torch.stack([1 - soft, soft], 1)
        torch.testing.assert_close(loss(logits, soft, **extra), loss(two, pair, **extra))


@pytest.mark.parametrize(
    "name", [name for name in DENSE_CASES if not CASES[name].detached and name in OF_CLASSES]
)
def test_gradients_through_all_forms(name):
    target = DENSE_LABEL.clone()
    target[1, 2, 1] = -1
    extra = {
        key: value.reshape(2, 3, 2) for key, value in extra_inputs(CASES[name].needs, 12).items()
    }
    loss = make(name, weight=WEIGHT, ignore_index=-1)
    weight = torch.arange(1.0, 13).reshape(2, 3, 2).double()
    z = DENSE.clone().requires_grad_()
    assert gradcheck(lambda x: loss(x, target, sample_weight=weight, **extra), z)


@pytest.mark.slow
@pytest.mark.skipif(
    torch.__version__.startswith("2.7."), reason="torch 2.7 breaks the graph at its checks"
)
@pytest.mark.parametrize(
    "name",
    [
        "focal 2",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("BSCE-GRA(2, 4)", "MMCE, weighted")
        ),
    ],
)
def test_all_forms_compile_without_a_graph_break(name):
    options = {"ignore_index": -1}
    if name in OF_CLASSES:
        options["weight"] = WEIGHT.float()
    loss, target = make(name, **options), DENSE_LABEL.clone()
    target[0, 0] = -1
    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    z, w = (DENSE.float().requires_grad_() for _ in range(2))
    loss(z, target).backward()
    compiled(w, target).backward()
    torch.testing.assert_close(w.grad, z.grad)


@pytest.mark.parametrize("name", CASES)
def test_constants_are_made_on_the_device_of_the_logits(name):
    # A tensor on the CPU does not combine with one on "meta", which has no values.
    extra = {key: value.to("meta") for key, value in extra_inputs(CASES[name].needs, N).items()}
    options = {"weight": WEIGHT} if name in OF_CLASSES else {}
    loss = make(name, ignore_index=3, **options).to("meta")
    targets = [LABEL] if options or not CASES[name].soft else [LABEL, soft_target(LOGITS)]
    for target in targets:
        if target.is_floating_point():
            loss = make(name)
        logits = LOGITS.to("meta").requires_grad_()
        weight = torch.ones(N, device="meta")
        value = loss(logits, target.to("meta"), sample_weight=weight, **extra)
        value.backward()
        assert value.shape == ()
        assert logits.grad.shape == LOGITS.shape


def test_class_weights_move_with_the_module_and_into_its_state():
    loss = losses.FocalLoss(weight=WEIGHT)
    assert loss.double().weight.dtype == torch.float64
    assert loss.float().weight.dtype == torch.float32
    assert loss.to("meta").weight.device.type == "meta"
    other = losses.FocalLoss(weight=torch.ones(K))
    other.load_state_dict({"weight": WEIGHT})
    assert other.weight.tolist() == WEIGHT.tolist()
    assert "weight=tensor(" in repr(other)
    assert repr(losses.FocalLoss(ignore_index=-1)).endswith("ignore_index=-1, reduction='mean')")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_a_label_is_compared_in_full(dtype):
    # In 8 bits, 156 would be equal to -100.
    target = torch.tensor([0, 1, 100]).to(dtype)
    with pytest.raises(ValueError, match="target must hold class indices in"):
        functional.focal_loss(LOGITS[:3], target + 56, ignore_index=-100)
    target[2] = 1
    torch.testing.assert_close(
        functional.focal_loss(LOGITS[:3], target, ignore_index=-100),
        functional.focal_loss(LOGITS[:3], target),
    )


def test_reduce_closed_form():
    values, weight = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([1.0, 0.0, 3.0])
    plain = Batch(LOGITS[:3], LABEL[:3], torch.Size([3]))
    weighted = plain._replace(weight=weight)
    assert plain.reduce(values, "mean") == 3
    assert plain.reduce(values, "sum") == 9
    assert weighted.reduce(values, "mean") == 19 / 4
    assert weighted.reduce(values, "sum") == 19
    assert weighted.reduce(values, "none").tolist() == [1, 0, 18]


@pytest.mark.parametrize(
    ("logits", "target", "options", "message"),
    [
        (LOGITS, LABEL, {"weight": [1.0] * K}, r"weight must be a torch.Tensor, got list"),
        (LOGITS, LABEL, {"weight": WEIGHT[:4]}, r"weight must have shape \(5,\), .* \(4,\)"),
        (LOGITS, LABEL, {"weight": WEIGHT[None]}, r"weight must be .* shape \(K,\).* \(1, 5\)"),
        (LOGITS, LABEL, {"weight": -WEIGHT}, r"weight must be finite and not negative, got"),
        (LOGITS, LABEL, {"weight": WEIGHT * math.inf}, r"weight must be finite and not negative"),
        (LOGITS, soft_target(LOGITS), {"weight": WEIGHT}, "weight must be None for a target of"),
        (LOGITS, soft_target(LOGITS), {"ignore_index": 1}, "ignore_index must be None for a targ"),
        (LOGITS, LABEL, {"ignore_index": 1.0}, "ignore_index must be an integer or None, got 1.0"),
        (LOGITS, LABEL, {"ignore_index": True}, "ignore_index must be an integer or None, got T"),
        (DENSE, DENSE_LABEL[:, 0], {}, r"target must be .* shape \(2, 3, 2\) .* \(2, 5, 3, 2\)"),
        (DENSE, DENSE_LABEL[0], {}, r"target must be .* got torch.int64 of shape \(3, 2\)"),
        (DENSE[:, :0], DENSE_LABEL, {}, r"logits must be .* got torch.float64 of shape \(2, 0, "),
        (DENSE.long(), DENSE_LABEL, {}, "logits must be a floating-point tensor .* torch.int64"),
        (DENSE, DENSE_LABEL, {"sample_weight": torch.ones(12)}, r"\(2,\), .* or \(2, 3, 2\), one"),
        (LOGITS[:, 0], LABEL, {}, r"target must hold class indices in \[0, 1\]"),
        (LOGITS[:, 0], LABEL[:3], {}, r"target must have the shape \(7,\) of logits, which are t"),
        (LOGITS[:, 0], LABEL / 2, {}, r"target must hold indices or prob.* in \[0, 1\], got val"),
        (LOGITS[:, 0], LABEL.clamp(0, 1) * math.nan, {}, "target must hold indices or probabil"),
        (
            LOGITS[:, 0],
            LABEL.clamp(0, 1) - 0.5,
            {},
            r"indices or prob.* got values from -0\.5 to 0",
        ),
        (
            LOGITS[:, :1],
            LABEL.clamp(0, 1),
            {},
            r"a single logit .* has shape \(n,\)\), got values",
        ),
        (LOGITS[:, 0].long(), LABEL, {}, r"logits must be .* got torch.int64 of shape \(7,\)"),
    ],
)
def test_bad_forms_are_told(logits, target, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        functional.focal_loss(logits, target, **options)


@pytest.mark.parametrize(
    "options", [{"weight": [1.0]}, {"weight": -WEIGHT}, {"ignore_index": "a"}]
)
def test_modules_check_class_weights_and_the_label_to_ignore(options):
    name = next(iter(options))
    for cls in (losses.FocalLoss, losses.BSCEGRALoss):
        with pytest.raises((TypeError, ValueError), match=f"^{name} must be"):
            cls(**options)


def test_losses_over_pairs_take_no_class_weights():
    for cls in (losses.MMCELoss, losses.CorrectnessRankingLoss):
        with pytest.raises(TypeError, match="unexpected keyword argument 'weight'"):
            cls(weight=WEIGHT)


def test_ranking_takes_no_dense_batch():
    with pytest.raises(ValueError, match=r"logits must be .* of shape \(n, K\)"):
        functional.correctness_ranking_loss(DENSE, DENSE_LABEL, history=torch.zeros(2, 3, 2))


@pytest.mark.parametrize(
    "name",
    ["cross_entropy", "focal", "sample_dependent_focal", "dual_focal", "poly", "bsce", "bsce_gra"],
)
def test_a_masked_class_with_one_hot_targets(name):
    function = getattr(functional, f"{name}_loss")
    label = torch.tensor([0, 1])
    values = {}
    for kind, target in (("index", label), ("soft", torch.eye(3)[label])):
        logits = torch.tensor([[1.0, 2.0, -torch.inf], [0.5, -1.0, -torch.inf]])
        logits.requires_grad_()
        loss = function(logits, target)
        loss.backward()
        values[kind] = [loss.item(), *logits.grad.flatten().tolist()]
    assert np.isfinite(values["soft"]).all()
    np.testing.assert_allclose(values["soft"], values["index"], rtol=1e-5, atol=1e-7)
