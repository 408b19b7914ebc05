"""Nothing silent: what a loss does with inputs and parameters that cannot be meant."""

import inspect
import math

import mpmath
import numpy as np
import pytest
import torch

from skcalib import losses
from skcalib.losses import CorrectnessHistory, functional
from tests.losses.reference import CASES, extra_inputs, parameters, soft_target

FUNCTIONS = [name for name in functional.__all__ if name.endswith(("_loss", "_weight"))]
FLAGS = [
    (name, flag)
    for name in functional.__all__
    if inspect.isfunction(getattr(functional, name))
    for flag, parameter in inspect.signature(getattr(functional, name)).parameters.items()
    if parameter.default is False
]
NUMBERS = [
    (name, key)
    for name in functional.__all__
    if inspect.isfunction(getattr(functional, name))
    for key, parameter in inspect.signature(getattr(functional, name)).parameters.items()
    if isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool)
]
LOGITS = 2 * torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
LABEL = torch.arange(6) % 4


def call(name, logits=LOGITS, target=LABEL, **options):
    """Call a function of the package, with what it needs besides logits and target."""
    function = getattr(functional, name)
    needed = {"history": torch.linspace(0, 1, 6), "difficulty_weight": torch.linspace(0, 1, 6)}
    taken = inspect.signature(function).parameters
    extra = {key: value for key, value in needed.items() if key in taken}
    return function(logits, target, **(extra | options))


@pytest.mark.parametrize("wrong", [LOGITS.numpy(), LOGITS.tolist(), "logits", None])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_no_tensor_is_named(name, wrong):
    kind = type(wrong).__name__
    with pytest.raises(TypeError, match=f"^logits must be a torch.Tensor, got {kind}.$"):
        call(name, logits=wrong)
    with pytest.raises(TypeError, match=f"^target must be a torch.Tensor, got {kind}.$"):
        call(name, target=wrong)


@pytest.mark.parametrize("label", [-100, -1, 4])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_class_indices_out_of_range_are_named(name, label):
    target = LABEL.clone()
    target[2] = label
    with pytest.raises(ValueError, match=r"^target must hold class indices in \[0, 3\]"):
        call(name, target=target)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.soft])
def test_soft_targets_that_are_no_probabilities_are_named(name):
    extra = extra_inputs(CASES[name].needs, 6, torch.float32)
    loss, target = CASES[name].loss, soft_target(LOGITS)
    loss(LOGITS, target * 1.0005, **extra)
    message = r"^target must hold class probabilities, rows that sum to 1, got sums from "
    with pytest.raises(ValueError, match=message + r"2.7\d* to 2.7\d*\.$"):
        loss(LOGITS, 2.7 * target, **extra)
    with pytest.raises(ValueError, match=message):
        loss(LOGITS, target * 0.99, **extra)
    with pytest.raises(ValueError, match=message):
        loss(LOGITS, torch.zeros(6, 4), **extra)
    target[:, 0], target[:, 1] = -0.5, target[:, 1] + target[:, 0] + 0.5
    with pytest.raises(ValueError, match=r"^target must hold class probabilities, got -0.5\.$"):
        loss(LOGITS, target, **extra)
    with pytest.raises(ValueError, match=r"^target must hold class probabilities"):
        loss(LOGITS, torch.full((6, 4), math.nan), **extra)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_soft_targets_of_half_precision_may_miss_1_by_their_rounding(dtype):
    target = torch.full((6, 4), 0.1, dtype=dtype)
    target[:, 0] = 0.7
    assert call("focal_loss", target=target).isfinite()


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", CASES)
def test_impossible_sample_weights_are_named(name, weight):
    extra = extra_inputs(CASES[name].needs, 6, torch.float32)
    sample_weight = torch.tensor([1.0, 1, 1, weight, 1, 0])
    with pytest.raises(ValueError, match=r"^sample_weight must be finite and not negative, got"):
        CASES[name].loss(LOGITS, LABEL, sample_weight=sample_weight, **extra)


@pytest.mark.parametrize("weight", [-0.01, 1.01, 60.0, math.nan])
@pytest.mark.parametrize("name", ["difficulty_aware_loss", "uncertainty_weighted_loss"])
def test_a_raw_difficulty_is_told_from_a_weight(name, weight):
    difficulty = torch.tensor([0.0, 1, 0.5, weight, 0, 0])
    message = r"^difficulty_weight must be in \[0, 1\], as .*difficulty_weights makes it .* got"
    with pytest.raises(ValueError, match=message):
        getattr(functional, name)(LOGITS, LABEL, difficulty_weight=difficulty)


@pytest.mark.parametrize("past", [-0.01, 1.01, math.nan])
def test_history_is_a_fraction(past):
    history = torch.tensor([0.0, 1, 0.5, past, 0, 0])
    with pytest.raises(ValueError, match=r"^history must be in \[0, 1\], got values from"):
        functional.correctness_ranking_loss(LOGITS, LABEL, history=history)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_an_impossible_uncertainty_is_named(weight):
    for target in (LABEL, soft_target(LOGITS)):
        value = torch.ones(target.shape)
        value[3] = weight
        with pytest.raises(ValueError, match=r"^the value of uncertainty must be finite and not"):
            functional.uncertainty_weighted_loss(
                LOGITS, target, uncertainty=lambda z, t, v=value: v
            )


def test_values_are_not_looked_at_where_they_cannot_be_seen():
    weight = torch.tensor([1.0, 2, 3, 1, 1, 0])

    def row_loss(z, y, w):
        z, y, w = z.unsqueeze(0), y.unsqueeze(0), w.unsqueeze(0)
        return functional.focal_loss(z, y, sample_weight=w, reduction="sum")

    rows = torch.func.vmap(row_loss)(LOGITS, LABEL, weight)
    expected = functional.focal_loss(LOGITS, LABEL, sample_weight=weight, reduction="none")
    torch.testing.assert_close(rows, expected)
    soft = soft_target(LOGITS)
    rows = torch.func.vmap(row_loss)(LOGITS, soft, weight)
    expected = functional.focal_loss(LOGITS, soft, sample_weight=weight, reduction="none")
    torch.testing.assert_close(rows, expected)


@pytest.mark.parametrize("value", ["False", math.nan, None, [1], 1, 0])
@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_flags_are_bools(name, flag, value):
    with pytest.raises(ValueError, match=f"^{flag} must be a bool, got"):
        call(name, **{flag: value})
    assert call(name, **{flag: np.bool_(True)}) == call(name, **{flag: True})


@pytest.mark.parametrize("cls", [case.loss for case in CASES.values()], ids=list(CASES))
def test_modules_check_their_flags(cls):
    given = parameters(cls)
    for flag in [key for key, value in given.items() if isinstance(value, bool)]:
        with pytest.raises(ValueError, match=f"^{flag} must be a bool, got 'False'"):
            type(cls)(**given | {flag: "False"})


@pytest.mark.parametrize("value", [10**30, 1e30, 10**400, 1e308, -(10**400)])
@pytest.mark.parametrize(("name", "key"), NUMBERS)
def test_huge_parameters_give_a_number_or_a_named_error(name, key, value):
    infinite = {"p": math.inf, "order": math.inf}
    largest = 1 if name == "label_smoothing_loss" else infinite.get(key, 1e30)
    if 0 <= value <= largest:
        assert not call(name, **{key: value}).isnan().any()
    else:
        with pytest.raises(ValueError, match=rf"^{key} must be a number in \["):
            call(name, **{key: value})


def test_the_largest_parameters_give_the_right_values():
    infinite = functional.logit_norm_loss(LOGITS, LABEL, p=math.inf)
    for p in (10**30, 1e308, 10**400):
        torch.testing.assert_close(functional.logit_norm_loss(LOGITS, LABEL, p=p), infinite)
    infinite = functional.bsce_loss(LOGITS, LABEL, order=math.inf)
    for order in (10**30, 1e308, 10**400):
        torch.testing.assert_close(functional.bsce_loss(LOGITS, LABEL, order=order), infinite)
    one = functional.entropy_regularized_loss(LOGITS, LABEL, alpha=1)
    entropy = functional.cross_entropy_loss(LOGITS, LABEL) - one
    huge = functional.entropy_regularized_loss(LOGITS, LABEL, alpha=10**30)
    torch.testing.assert_close(huge, -1e30 * entropy)
    assert functional.focal_loss(LOGITS, LABEL, gamma=10**30) == 0


@pytest.mark.parametrize("value", ["53", 5.0, None, {5.0, 3.0}])
def test_gammas_and_thresholds_are_sequences(value):
    with pytest.raises(ValueError, match=r"^gammas must be a sequence of numbers, got"):
        losses.SampleDependentFocalLoss(gammas=value)
    with pytest.raises(ValueError, match=r"^thresholds must be a sequence of numbers, got"):
        functional.sample_dependent_focal_loss(LOGITS, LABEL, thresholds=value)


@pytest.mark.parametrize("value", [[1.0], np.ones(2), None])
def test_options_that_are_no_text_are_named(value):
    with pytest.raises(ValueError, match=r"^reduction must be one of 'none', 'sum', 'mean', got"):
        functional.focal_loss(LOGITS, LABEL, reduction=value)
    with pytest.raises(ValueError, match=r"^runner_up must be one of 'below_label'"):
        losses.DualFocalLoss(runner_up=value)


@pytest.mark.parametrize("scale", [2.0, 10.0, 100.0, 1e4])
@pytest.mark.parametrize("p", [1, 2, 3, 10, 50, 200])
def test_logit_norm_of_any_order_against_mpmath(p, scale):
    logits = torch.tensor([[1.0, 0.0, -0.5], [0.3, -1.0, 0.99], [1.0, 1.0, -1.0]]) * scale
    z = logits.clone().requires_grad_()
    penalty = functional.logit_norm_loss(
        z, torch.tensor([0, 2, 0]), strength=1.0, p=p, reduction="none"
    )
    ours = penalty - functional.cross_entropy_loss(z, torch.tensor([0, 2, 0]), reduction="none")
    gradient = torch.autograd.grad(ours.sum(), z)[0]
    with mpmath.mp.workdps(60):
        for row, value, slopes in zip(logits.tolist(), ours.tolist(), gradient.tolist()):
            exact = [mpmath.mpf(x) for x in row]
            norm = mpmath.fsum(abs(x) ** p for x in exact) ** (mpmath.mpf(1) / p)
            assert value == pytest.approx(float(norm), rel=1e-5)
            for x, slope in zip(exact, slopes, strict=True):
                expected = mpmath.sign(x) * (abs(x) / norm) ** (p - 1) if x else 0
                assert slope == pytest.approx(float(expected), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("confidence", ["msp", "margin", "entropy"])
@pytest.mark.parametrize("soft", [False, True])
def test_ranking_is_finite_at_enormous_logits(confidence, soft):
    logits = torch.tensor([[1e30, -1e30, 0.0], [0.0, 1e30, -1e30]], requires_grad=True)
    label = torch.tensor([0, 1])
    target = torch.nn.functional.one_hot(label, 3).float() if soft else label
    value = functional.correctness_ranking_loss(
        logits, target, history=torch.tensor([0.0, 1.0]), confidence=confidence
    )
    # Certain and right: no cross-entropy, equal confidences, and a gap of 1 in history.
    assert value == 1
    (gradient,) = torch.autograd.grad(value, logits)
    assert gradient.isfinite().all()
    mixed = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    value = functional.correctness_ranking_loss(
        logits, mixed, history=torch.tensor([0.0, 1.0]), confidence=confidence
    )
    torch.testing.assert_close(value, functional.cross_entropy_loss(logits, mixed) + 1)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize(
    "weight",
    [[1, 0, 2, 0, 0, 3], [0, 1, 1, 0, 1, 0], [0, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 0]],
)
def test_a_sample_of_weight_0_is_no_partner(weight, reduction):
    weight = torch.tensor(weight, dtype=torch.float32)
    history, kept = torch.tensor([0.0, 1.0, 0.25, 0.5, 0.75, 1.0]), weight > 0
    loss = losses.CorrectnessRankingLoss(reduction=reduction)
    whole = loss(LOGITS, LABEL, history=history, sample_weight=weight)
    removed = loss(LOGITS[kept], LABEL[kept], history=history[kept], sample_weight=weight[kept])
    torch.testing.assert_close(whole[kept] if reduction == "none" else whole, removed)


@pytest.mark.parametrize("n_samples", [-1, 0, 2.0, True, None, "3"])
def test_history_needs_a_number_of_samples(n_samples):
    with pytest.raises(ValueError, match=r"^n_samples must be an integer >= 1, got"):
        CorrectnessHistory(n_samples)
    assert len(CorrectnessHistory(np.int64(3)).n_seen) == 3


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([0, 1], "^index must be a torch.Tensor, got list"),
        (
            torch.tensor([0, -1]),
            r"^index must hold positions in \[0, 2\], got values from -1 to 0",
        ),
        (torch.tensor([0, 3]), r"^index must hold positions in \[0, 2\], got values from 0 to 3"),
        (torch.tensor([0.0, 1.0]), "^index must be a 1-D integer tensor, got torch.float32"),
        (torch.tensor([True, False]), "^index must be a 1-D integer tensor, got torch.bool"),
        (torch.tensor([[0, 1]]), r"^index must be a 1-D integer tensor, .* shape \(1, 2\)"),
    ],
)
def test_history_checks_positions(index, message):
    history = CorrectnessHistory(3)
    with pytest.raises((TypeError, ValueError), match=message):
        history.fraction_correct(index)
    with pytest.raises((TypeError, ValueError), match=message):
        history.record(index, LOGITS[:2], LABEL[:2])
    assert history.n_seen.sum() == 0


def test_history_checks_the_batch():
    history = CorrectnessHistory(3)
    with pytest.raises(ValueError, match=r"^index must have shape \(2,\), .* got shape \(1,\)"):
        history.record(torch.tensor([0]), LOGITS[:2], LABEL[:2])
    with pytest.raises(ValueError, match=r"^target must hold class indices"):
        history.record(torch.tensor([0]), LOGITS[:1], torch.tensor([9]))
    with pytest.raises(TypeError, match=r"^logits must be a torch.Tensor"):
        history.record(torch.tensor([0]), LOGITS[:1].numpy(), LABEL[:1])
    assert history.fraction_correct(torch.tensor([], dtype=torch.long)).shape == (0,)


@pytest.mark.parametrize(
    ("excess", "refused"), [(9e-4, False), (1.2e-3, True), (-9e-4, False), (-1.2e-3, True)]
)
def test_soft_targets_may_miss_1_by_a_thousandth(excess, refused):
    for n in (1, 3):  # one row alone has one sum
        logits, target = torch.zeros(n, 2), torch.tensor([[0.5, 0.5 + excess]]).repeat(n, 1)
        if refused:
            with pytest.raises(ValueError, match=r"^target must hold .* rows that sum to 1, got"):
                functional.focal_loss(logits, target)
        else:
            assert functional.focal_loss(logits, target).isfinite()


def test_a_probability_may_miss_0_by_its_rounding():
    for negative, refused in [(-8e-6, False), (-1.2e-5, True)]:
        target = torch.tensor([[negative, 1 - negative]])
        if refused:
            with pytest.raises(ValueError, match=r"^target must hold class probabilities, got -"):
                functional.brier_loss(torch.zeros(1, 2), target)
        else:
            assert functional.brier_loss(torch.zeros(1, 2), target).isfinite()


def test_the_ends_of_every_range_are_allowed():
    first, last = torch.tensor([0]), torch.tensor([1])
    for target in (first, last):
        assert functional.cross_entropy_loss(torch.zeros(1, 2), target).isfinite()
    for weight in (torch.zeros(1), torch.ones(1)):
        logits = torch.zeros(1, 2)
        functional.difficulty_aware_loss(logits, first, difficulty_weight=weight)
        functional.correctness_ranking_loss(logits, first, history=weight)
        functional.cross_entropy_loss(logits, first, sample_weight=weight)
        functional.uncertainty_weighted_loss(logits, first, uncertainty=lambda z, t, w=weight: w)
    history = CorrectnessHistory(1)
    history.record(first, torch.zeros(1, 2), first)
    assert history.fraction_correct(first) == 1
    assert len(CorrectnessHistory(1).n_correct) == 1
    for alpha in (0, 1):
        functional.label_smoothing_loss(torch.zeros(1, 2), first, alpha=alpha)
    for threshold in (0, 1):
        losses.SampleDependentFocalLoss(thresholds=(threshold,))
    losses.LogitNormLoss(p=1, strength=0)
    losses.BSCELoss(order=1, exponent=0)
    losses.PolyLoss(epsilon=-1)
    losses.MMCELoss(bandwidth=0.02, strength=0)


@pytest.mark.parametrize("confidence", ["msp", "margin", "entropy"])
def test_ranking_of_soft_targets_is_finite_at_enormous_logits(confidence):
    generator = torch.Generator().manual_seed(0)
    logits = 1e30 * torch.randn(20, 4, generator=generator)
    target = torch.softmax(torch.randn(20, 4, generator=generator), 1)
    inputs = {"history": torch.linspace(0, 1, 20), "reduction": "none"}
    values = functional.correctness_ranking_loss(logits, target, confidence=confidence, **inputs)
    torch.testing.assert_close(
        values, functional.cross_entropy_loss(logits, target, reduction="none")
    )
