"""Laws that every loss obeys."""

import copy
import inspect
import io
import math
import pickle

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from skcalib import losses
from skcalib.losses import functional
from tests.losses.reference import (
    CASES,
    extra_inputs,
    logit_sets,
    parameters,
    relative_errors,
    soft_target,
    unreduced,
)

CLASSES = [
    value
    for name in losses.__all__
    if inspect.isclass(value := getattr(losses, name)) and issubclass(value, torch.nn.Module)
]
# What the worst-conditioned inputs cost: logits of 1000 carry an error of 1000 epsilon themselves.
TOLERANCE = {"1000 + N(0, 9)": 1000, "+-1000": 1000, "+-1000 + noise": 1000}


def cases(**fields):
    """Names of the cases with the given fields."""
    return [
        name
        for name, case in CASES.items()
        if all(getattr(case, field) == value for field, value in fields.items())
    ]


def with_reduction(name, reduction):
    loss = CASES[name].loss
    return type(loss)(**parameters(loss) | {"reduction": reduction})


def batch(name, n=7, n_classes=5, dtype=torch.float64, seed=0, soft=False):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    target = torch.randint(n_classes, (n,), generator=generator)
    logits = logits.to(dtype)
    return (
        logits,
        soft_target(logits) if soft else target,
        extra_inputs(CASES[name].needs, n, dtype),
    )


def test_every_loss_class_is_in_the_cases():
    assert {type(case.loss) for case in CASES.values()} == set(CLASSES)


@pytest.mark.parametrize("data", logit_sets())
@pytest.mark.parametrize("name", CASES)
def test_mpmath(name, data):
    logits, target = logit_sets()[data]
    bound = TOLERANCE.get(data, 100) * torch.finfo(torch.float64).eps
    assert max(relative_errors(name, logits, target)) < bound
    if CASES[name].soft:
        assert max(relative_errors(name, logits, soft_target(logits))) < bound


@pytest.mark.parametrize("data", ["N(0, 9)", "wide lead", "+-50 + noise", "+-1000"])
@pytest.mark.parametrize("name", CASES)
def test_mpmath_float32(name, data):
    logits, target = logit_sets(torch.float32)[data]
    bound = TOLERANCE.get(data, 100) * torch.finfo(torch.float32).eps
    assert max(relative_errors(name, logits, target)) < bound


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", cases(detached=False))
def test_gradients(name, soft):
    if soft and not CASES[name].soft:
        pytest.skip("hard labels only")
    logits, target, extra = batch(name, n=4, n_classes=4, soft=soft)
    loss, weight = with_reduction(name, "none"), torch.tensor([0.5, 1, 2, 0.25]).double()

    def values(z):
        return loss(z, target, **extra, sample_weight=weight)

    logits.requires_grad_()
    assert gradcheck(values, logits)
    assert gradgradcheck(values, logits)


@pytest.mark.parametrize("name", cases(detached=True))
def test_detached_gradient_is_weight_times_residual(name):
    logits, target, _ = batch(name)
    logits.requires_grad_()
    unreduced(name, logits, target).sum().backward()
    proba = torch.softmax(logits.detach(), 1)
    residual = proba - torch.nn.functional.one_hot(target, 5)
    cross_entropy = -proba.gather(1, target[:, None]).log()
    weight = unreduced(name, logits, target).detach()[:, None] / cross_entropy
    torch.testing.assert_close(logits.grad, weight * residual)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_reductions_and_weights(name, soft):
    if soft and not CASES[name].soft:
        pytest.skip("hard labels only")
    logits, target, extra = batch(name, soft=soft)
    weight = torch.tensor([0.5, 1.0, 0.0, 3.0, 0.25, 2.0, 1.5])
    one = torch.ones(7, dtype=torch.int64)
    for w in (None, weight, one):
        rows = with_reduction(name, "none")(logits, target, **extra, sample_weight=w)
        total = with_reduction(name, "sum")(logits, target, **extra, sample_weight=w)
        mean = with_reduction(name, "mean")(logits, target, **extra, sample_weight=w)
        assert rows.shape == (7,)
        torch.testing.assert_close(total, rows.sum())
        torch.testing.assert_close(mean, rows.sum() / (7 if w is None else w.double().sum()))
    torch.testing.assert_close(mean, CASES[name].loss(logits, target, **extra))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", cases(repetition=True))
def test_weight_is_repetition_and_zero_is_removal(name, reduction):
    logits, target, extra = batch(name)
    times = torch.tensor([2, 0, 1, 3, 0, 1, 1])
    loss = with_reduction(name, reduction)
    index = torch.arange(7).repeat_interleave(times)
    repeated = loss(logits[index], target[index], **{k: v[index] for k, v in extra.items()})
    torch.testing.assert_close(loss(logits, target, **extra, sample_weight=times), repeated)


@pytest.mark.parametrize("name", CASES)
def test_no_weight_at_all_is_no_loss(name):
    logits, target, extra = batch(name)
    logits.requires_grad_()
    value = CASES[name].loss(logits, target, **extra, sample_weight=torch.zeros(7))
    value.backward()
    assert value == 0
    assert (logits.grad == 0).all()


@pytest.mark.parametrize("name", CASES)
def test_permutations(name):
    logits, target, extra = batch(name)
    order = torch.tensor([3, 0, 4, 1, 2])
    relabeled = unreduced(name, logits[:, order], order.argsort()[target])
    torch.testing.assert_close(relabeled, unreduced(name, logits, target))
    if CASES[name].row_wise:
        rows = torch.tensor([6, 2, 0, 1, 5, 3, 4])
        shuffled = with_reduction(name, "none")(
            logits[rows], target[rows], **{k: v[rows] for k, v in extra.items()}
        )
        torch.testing.assert_close(shuffled, unreduced(name, logits, target)[rows])


@pytest.mark.parametrize("name", cases(shift=True))
def test_a_constant_shift_changes_nothing(name):
    logits, target, _ = batch(name)
    torch.testing.assert_close(
        unreduced(name, logits + 7, target), unreduced(name, logits, target)
    )


@pytest.mark.parametrize("name", cases(soft=True))
def test_one_hot_is_the_label(name):
    logits, target, _ = batch(name)
    one_hot = torch.nn.functional.one_hot(target, 5).double()
    torch.testing.assert_close(unreduced(name, logits, one_hot), unreduced(name, logits, target))


@pytest.mark.parametrize("name", cases(mask=True))
def test_masked_class_is_no_class(name):
    logits, target, _ = batch(name)
    masked = torch.cat([logits, torch.full((7, 1), -1e4, dtype=torch.float64)], 1)
    torch.testing.assert_close(unreduced(name, masked, target), unreduced(name, logits, target))


def extreme_logits():
    big = torch.tensor(
        [[1000.0, -1000, 0], [-1000, 1000, 1000], [0, 0, 0], [1000, 1000, 1000], [1e-30, 0, 0]]
    )
    return {
        "big": big,
        "one class": big[:, :1],
        "two classes": big[:, :2],
        "masked": torch.tensor([[0.0, 1.0, -3e38]]).repeat(5, 1),
    }


@pytest.mark.parametrize("data", extreme_logits())
@pytest.mark.parametrize("name", CASES)
def test_extremes_are_finite_in_float32(name, data):
    logits = extreme_logits()[data]
    n_classes = logits.shape[1]
    targets = [torch.zeros(5, dtype=torch.long)]
    if data == "masked":
        if not CASES[name].mask:
            pytest.skip("the mask itself counts")
    else:
        targets.append(torch.arange(5) % n_classes)
        if CASES[name].soft:
            targets.append(soft_target(logits))
    for target in targets:
        z = logits.clone().requires_grad_()
        value = CASES[name].loss(z, target, **extra_inputs(CASES[name].needs, 5, torch.float32))
        value.backward()
        assert value.dtype == torch.float32
        assert value.isfinite()
        assert z.grad.isfinite().all()
        if n_classes == 1 and CASES[name].shift and CASES[name].needs != "history":
            assert value.item() == 0
            assert z.grad.abs().max() == 0


@pytest.mark.parametrize("name", cases(mask=True))
def test_an_infinite_logit_masks_a_class_that_is_not_the_label(name):
    logits, target, extra = batch(name)
    finite, infinite = (
        torch.cat([logits, torch.full((7, 1), value, dtype=torch.float64)], 1).requires_grad_()
        for value in (-1e4, -math.inf)
    )
    expected = CASES[name].loss(finite, target, **extra)
    value = CASES[name].loss(infinite, target, **extra)
    torch.testing.assert_close(value, expected)
    value.backward()
    expected.backward()
    torch.testing.assert_close(infinite.grad, finite.grad)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_half_precision_is_lifted(name, dtype):
    logits, target, extra = batch(name)
    half = (1000 * logits).to(dtype)
    expected = CASES[name].loss(half.float(), target, **extra)
    with torch.autocast("cpu", dtype=dtype):
        inside = CASES[name].loss(half, target, **extra)
        lifted = CASES[name].loss(half.float(), target, **extra)
    outside = CASES[name].loss(half, target, **extra)
    assert inside.dtype == lifted.dtype == outside.dtype == torch.float32
    torch.testing.assert_close(inside, expected)
    torch.testing.assert_close(lifted, expected)
    torch.testing.assert_close(outside, expected)


# torch 2.7 is slow there, and warns of it.
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_torch_func(name, soft):
    if soft and not CASES[name].soft:
        pytest.skip("hard labels only")
    logits, target, extra = batch(name, soft=soft)
    loss = CASES[name].loss
    z = logits.clone().requires_grad_()
    (by_backward,) = torch.autograd.grad(loss(z, target, **extra), z)
    by_func = torch.func.grad(lambda x: loss(x, target, **extra))(logits)
    torch.testing.assert_close(by_func, by_backward)
    if CASES[name].row_wise and not extra:
        per_row = torch.func.vmap(
            torch.func.grad(lambda x, y: loss(x.unsqueeze(0), y.unsqueeze(0)))
        )(logits, target)
        torch.testing.assert_close(per_row / 7, by_backward)


def test_vmap_over_the_labels_alone():
    logits = torch.randn(1, 4, dtype=torch.float64)
    every = torch.func.vmap(lambda y: functional.focal_loss(logits, y.unsqueeze(0)))(
        torch.arange(4)
    )
    torch.testing.assert_close(
        every, functional.focal_loss(logits.expand(4, 4), torch.arange(4), reduction="none")
    )


@pytest.mark.slow
@pytest.mark.skipif(
    torch.__version__.startswith("2.7."), reason="torch 2.7 breaks the graph at its checks"
)
@pytest.mark.parametrize(
    ("name", "soft"),
    [
        ("dual focal", True),
        ("BSCE(2, 4)", True),
        *(
            pytest.param(name, False, marks=pytest.mark.long if i % 4 else ())
            for i, name in enumerate(cases(compiled=True))
        ),
        pytest.param("label smoothing", True, marks=pytest.mark.long),
    ],
)
def test_compiles_without_a_graph_break(name, soft):
    logits, target, extra = batch(name, dtype=torch.float32, soft=soft)
    loss = CASES[name].loss
    torch._dynamo.reset()
    # The backend without code generation: seconds instead of minutes for the family.
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    z, w = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss(z, target, **extra).backward()
    compiled(w, target, **extra).backward()
    torch.testing.assert_close(w.grad, z.grad)


@pytest.mark.parametrize("name", CASES)
def test_copies_and_words(name):
    logits, target, extra = batch(name)
    loss = CASES[name].loss
    value = loss(logits, target, **extra)
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert twin(logits, target, **extra) == value
        assert repr(twin) == repr(loss)
    assert loss.state_dict() == {}
    buffer = io.BytesIO()
    torch.save(loss.state_dict(), buffer)
    loss.load_state_dict(torch.load(io.BytesIO(buffer.getvalue())))
    assert repr(loss).startswith(f"{type(loss).__name__}(")
    assert "reduction='mean'" in repr(loss)


@pytest.mark.parametrize("name", CASES)
def test_the_module_is_the_function(name):
    logits, target, extra = batch(name)
    loss = CASES[name].loss
    inputs = {
        key: getattr(loss, key)
        for key in inspect.signature(loss._function).parameters
        if hasattr(loss, key)
    }
    assert type(loss)._function(logits, target, **extra, **inputs) == loss(logits, target, **extra)


@pytest.mark.parametrize("cls", CLASSES)
def test_module_and_function_agree_on_names_and_defaults(cls):
    of_class = inspect.signature(cls).parameters
    of_function = inspect.signature(cls._function).parameters
    shared = {key: of_function[key].default for key in of_class}
    assert shared == {key: value.default for key, value in of_class.items()}
    only = set(of_function) - set(of_class) - {"logits", "target", "sample_weight"}
    fixed = {"detach_weight"} if cls is losses.BSCEGRALoss else set()
    assert only - fixed <= {"difficulty_weight", "history"}


@pytest.mark.parametrize("name", CASES)
def test_difficulty_is_needed_or_refused_never_dropped(name):
    loss, needs = CASES[name].loss, CASES[name].needs
    logits, target, extra = batch(name)
    assert loss.uses_difficulty_weight == (needs == "difficulty_weight")
    assert loss.uses_history == (needs == "history")
    if loss.uses_difficulty_weight:
        with pytest.raises(ValueError, match=f"{type(loss).__name__} needs difficulty_weight"):
            loss(logits, target)
        message = r"difficulty_weight must be a real tensor of shape \(7,\)"
        with pytest.raises(ValueError, match=message):
            loss(logits, target, difficulty_weight=torch.ones(3))
    else:
        with pytest.raises(ValueError, match="makes no use of difficulty_weight"):
            loss(logits, target, **extra, difficulty_weight=torch.ones(7))


@pytest.mark.parametrize("cls", CLASSES)
def test_parameters_are_keywords_and_checked(cls):
    with pytest.raises(TypeError):
        cls(1.0)
    with pytest.raises(
        ValueError, match="reduction must be one of 'none', 'sum', 'mean', got 'x'"
    ):
        cls(reduction="x")


@pytest.mark.parametrize(
    ("cls", "parameters", "message"),
    [
        ("LabelSmoothingLoss", {"alpha": 1.5}, r"alpha must be a number in \[0, 1\], got 1.5"),
        ("FocalLoss", {"gamma": -1}, r"gamma must be a number in \[0, 1e\+30\], got -1"),
        ("FocalLoss", {"gamma": "2"}, r"gamma must be a number in \[0, 1e\+30\], got '2'"),
        ("FocalLoss", {"gamma": True}, "gamma must be a number"),
        ("FocalLoss", {"gamma": float("nan")}, "gamma must be a number"),
        ("FocalLoss", {"gamma": float("inf")}, "gamma must be a number"),
        ("SampleDependentFocalLoss", {"gammas": (5,)}, "got 1 gammas and 1 thresholds"),
        ("SampleDependentFocalLoss", {"gammas": (-5, 1)}, r"gammas \(each\) must be"),
        ("SampleDependentFocalLoss", {"thresholds": (1.2,)}, r"thresholds \(each\) must be"),
        (
            "SampleDependentFocalLoss",
            {"gammas": (1, 2, 3), "thresholds": (0.5, 0.2)},
            "thresholds must be strictly increasing",
        ),
        ("DualFocalLoss", {"gamma": -1}, "gamma must be a number"),
        ("DualFocalLoss", {"runner_up": "best"}, "runner_up must be one of 'below_label'"),
        ("BSCELoss", {"order": 0.5}, r"order must be a number in \[1, inf\], got 0.5"),
        ("BSCELoss", {"exponent": -1}, "exponent must be a number"),
        ("BSCEGRALoss", {"order": 0}, "order must be a number"),
        ("UncertaintyWeightedLoss", {"uncertainty": 3}, "uncertainty must be a function of"),
        ("EntropyRegularizedLoss", {"alpha": -0.1}, "alpha must be a number"),
        ("DifficultyAwareLoss", {"alpha": None}, "alpha must be a number"),
        ("LogitNormLoss", {"p": 0.5}, "p must be a number"),
        ("LogitNormLoss", {"strength": -1}, "strength must be a number"),
        ("PolyLoss", {"epsilon": -2}, r"epsilon must be a number in \[-1, 1e\+30\], got -2"),
        ("MMCELoss", {"strength": -2}, "strength must be a number"),
        ("MMCELoss", {"bandwidth": 0}, r"bandwidth must be a number in \[0.02, 1e\+30\], got 0"),
        ("CorrectnessRankingLoss", {"strength": -2}, "strength must be a number"),
        ("CorrectnessRankingLoss", {"confidence": "max"}, "confidence must be one of 'msp'"),
    ],
)
def test_bad_parameters(cls, parameters, message):
    loss = getattr(losses, cls)
    with pytest.raises(ValueError, match=message):
        loss(**parameters)
    extra = {"difficulty_weight": torch.ones(1), "history": torch.ones(1)}
    needed = {k: v for k, v in extra.items() if k in inspect.signature(loss._function).parameters}
    with pytest.raises(ValueError, match=message):
        loss._function(torch.zeros(1, 2), torch.tensor([0]), **parameters, **needed)


@pytest.mark.parametrize("name", cases(soft=False))
def test_soft_targets_are_refused_where_they_have_no_meaning(name):
    logits, target, _ = batch(name, soft=True)
    with pytest.raises(ValueError, match="target must hold class indices"):
        CASES[name].loss(logits, target)
