"""The losses again, to the letter of their formulas, in mpmath with up to 900 digits.

As many, because 1 - p must keep its digits at p = 1 - exp(-2000).
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps

import mpmath
import torch
from mpmath import mp

from skcalib import losses
from skcalib.losses import functional


def softmax(z):
    e = [mpmath.exp(x) for x in z]
    total = mpmath.fsum(e)
    return [x / total for x in e]


def cross_entropy_row(z, t):
    p = softmax(z)
    return -mpmath.fsum(a * mpmath.log(b) for a, b in zip(t, p, strict=True) if a)


def entropy_row(z):
    return -mpmath.fsum(x * mpmath.log(x) for x in softmax(z))


def norm(v, order):
    if order == float("inf"):
        return max(abs(x) for x in v)
    return mpmath.fsum(abs(x) ** order for x in v) ** (mpmath.mpf(1) / order)


def over_labels(weight, p, t):
    """Mean over labels k drawn from t of weight(k) times -log p_k."""
    terms = (a * weight(k) * -mpmath.log(p[k]) for k, a in enumerate(t) if a)
    return mpmath.fsum(terms)


def per_row(function):
    @wraps(function)
    def batch(zs, ts, *extra, **parameters):
        return [function(*row, **parameters) for row in zip(zs, ts, *extra, strict=True)]

    return batch


@per_row
def cross_entropy(z, t):
    return cross_entropy_row(z, t)


@per_row
def label_smoothing(z, t, alpha):
    return cross_entropy_row(z, [(1 - alpha) * a + alpha / len(z) for a in t])


@per_row
def focal(z, t, gamma):
    p = softmax(z)
    return over_labels(lambda k: (1 - p[k]) ** gamma, p, t)


@per_row
def sample_dependent_focal(z, t):
    p = softmax(z)
    return over_labels(lambda k: (1 - p[k]) ** (5 if p[k] < mpmath.mpf("0.2") else 3), p, t)


@per_row
def dual_focal(z, t, gamma, runner_up="below_label"):
    p = softmax(z)

    def weight(k):
        if runner_up == "largest_other":
            other = max((x for j, x in enumerate(p) if j != k), default=0)
        elif runner_up == "second_largest":
            other = sorted(p)[-2] if len(p) > 1 else 0
        else:
            other = max([x for x in p if x < p[k]], default=0)
        return (1 - p[k] + other) ** gamma

    return over_labels(weight, p, t)


@per_row
def brier(z, t):
    return mpmath.fsum((a - b) ** 2 for a, b in zip(softmax(z), t, strict=True))


@per_row
def bsce(z, t, order, exponent):
    residual = [a - b for a, b in zip(softmax(z), t, strict=True)]
    return norm(residual, order) ** exponent * cross_entropy_row(z, t)


@per_row
def entropy_regularized(z, t, alpha):
    return cross_entropy_row(z, t) - alpha * entropy_row(z)


@per_row
def difficulty_aware(z, t, s, alpha):
    return cross_entropy_row(z, t) - alpha * s * entropy_row(z)


@per_row
def difficulty_weighted(z, t, s):
    return s * cross_entropy_row(z, t)


@per_row
def logit_norm(z, t, strength, p):
    return cross_entropy_row(z, t) + strength * norm(z, p)


@per_row
def poly(z, t, epsilon):
    p = softmax(z)
    return cross_entropy_row(z, t) + epsilon * mpmath.fsum(
        a * (1 - b) for a, b in zip(t, p, strict=True)
    )


@per_row
def zero_hinge(z, t):
    y = t.index(1)
    return mpmath.fsum(max(0, x - z[y]) for j, x in enumerate(z) if j != y)


def mmce(zs, ts, weight, weighted=False):
    confidence = [max(softmax(z)) for z in zs]
    correct = [int(z[t.index(1)] == max(z)) for z, t in zip(zs, ts, strict=True)]
    counts = {c: correct.count(c) if weighted else len(zs) for c in (0, 1)}
    a = [(c - r) / counts[c] for c, r in zip(correct, confidence, strict=True)]
    squared = mpmath.fsum(
        a[i] * a[j] * mpmath.exp(-abs(confidence[i] - confidence[j]) / mpmath.mpf(0.4))
        for i in range(len(a))
        for j in range(len(a))
    )
    error = weight * mpmath.sqrt(squared)
    return [cross_entropy_row(z, t) + error for z, t in zip(zs, ts, strict=True)]


def correctness_ranking(zs, ts, history, confidence="msp"):
    def certainty(z):
        p = sorted(softmax(z))
        if confidence == "margin" and len(p) > 1:
            return p[-1] - p[-2]
        if confidence == "entropy" and len(p) > 1:
            return -entropy_row(z) / mpmath.log(len(z))
        return p[-1]

    k = [certainty(z) for z in zs]
    out = []
    for i, (z, t) in enumerate(zip(zs, ts, strict=True)):
        j = (i + 1) % len(zs)
        wanted = mpmath.sign(history[i] - history[j])
        term = -wanted * (k[i] - k[j]) + abs(history[i] - history[j])
        out.append(cross_entropy_row(z, t) + max(0, term))
    return out


@dataclass(frozen=True)
class Case:
    """A loss, its reference, and which laws hold for it."""

    loss: torch.nn.Module
    reference: Callable
    needs: str | None = None  # what it needs besides logits and target
    soft: bool = True  # takes class probabilities
    row_wise: bool = True  # the loss of a row depends on that row alone
    repetition: bool = True  # an integer weight does what repeating the row does
    shift: bool = True  # a constant added to a row of logits changes nothing
    mask: bool = True  # a class with a large negative logit counts as no class
    detached: bool = False  # the gradient is a weight times p - t
    subtracted: bool = False  # a term is subtracted: errors are relative to the cross-entropy
    saturates: bool = False  # the gradient vanishes where a wrong prediction is certain
    compiled: bool = True  # False: compiled as another case already is; each takes a second


INF = float("inf")
uncertainty_weighted = losses.UncertaintyWeightedLoss
crl = partial(Case, needs="history", row_wise=False, repetition=False)
logit_norm_case = partial(Case, shift=False, mask=False)
# One entry here is all that the laws of test_family.py need of a new loss.
CASES = {
    "cross-entropy": Case(losses.CrossEntropyLoss(), cross_entropy),
    "label smoothing": Case(
        losses.LabelSmoothingLoss(alpha=0.1), partial(label_smoothing, alpha=0.1), mask=False
    ),
    "focal 0.5": Case(losses.FocalLoss(gamma=0.5), partial(focal, gamma=0.5), compiled=False),
    "focal 2": Case(losses.FocalLoss(gamma=2.0), partial(focal, gamma=2)),
    "focal 3, detached": Case(
        losses.FocalLoss(gamma=3.0, detach_weight=True),
        partial(focal, gamma=3),
        detached=True,
        compiled=False,
    ),
    "FLSD-53": Case(losses.SampleDependentFocalLoss(), sample_dependent_focal),
    "FLSD-GRA": Case(
        losses.SampleDependentFocalLoss(detach_weight=True),
        sample_dependent_focal,
        detached=True,
        compiled=False,
    ),
    "dual focal": Case(losses.DualFocalLoss(), partial(dual_focal, gamma=5)),
    "dual focal, second": Case(
        losses.DualFocalLoss(gamma=2.0, runner_up="second_largest"),
        partial(dual_focal, gamma=2, runner_up="second_largest"),
        compiled=False,
    ),
    "dual focal, other": Case(
        losses.DualFocalLoss(gamma=2.0, runner_up="largest_other"),
        partial(dual_focal, gamma=2, runner_up="largest_other"),
        compiled=False,
    ),
    "DFL-GRA": Case(
        losses.DualFocalLoss(detach_weight=True),
        partial(dual_focal, gamma=5),
        detached=True,
        compiled=False,
    ),
    "Brier": Case(losses.BrierLoss(), brier, saturates=True),
    "BSCE(2, 4)": Case(losses.BSCELoss(), partial(bsce, order=2, exponent=4)),
    "BSCE(2, 1)": Case(
        losses.BSCELoss(exponent=1), partial(bsce, order=2, exponent=1), compiled=False
    ),
    "BSCE(1, 2)": Case(
        losses.BSCELoss(order=1, exponent=2), partial(bsce, order=1, exponent=2), compiled=False
    ),
    "BSCE(3, 0.5)": Case(
        losses.BSCELoss(order=3, exponent=0.5),
        partial(bsce, order=3, exponent=0.5),
        compiled=False,
    ),
    "BSCE(inf, 3)": Case(
        losses.BSCELoss(order=INF, exponent=3),
        partial(bsce, order=INF, exponent=3),
        compiled=False,
    ),
    "BSCE-GRA(2, 4)": Case(
        losses.BSCEGRALoss(), partial(bsce, order=2, exponent=4), detached=True
    ),
    "BSCE-GRA, general": Case(
        uncertainty_weighted(uncertainty=partial(functional.brier_loss, reduction="none")),
        partial(bsce, order=2, exponent=2),
        detached=True,
    ),
    "difficulty-weighted": Case(
        uncertainty_weighted(), difficulty_weighted, "difficulty_weight", compiled=False
    ),
    "entropy": Case(
        losses.EntropyRegularizedLoss(), partial(entropy_regularized, alpha=0.1), subtracted=True
    ),
    "difficulty-aware": Case(
        losses.DifficultyAwareLoss(),
        partial(difficulty_aware, alpha=0.3),
        "difficulty_weight",
        subtracted=True,
    ),
    "logit norm 1": logit_norm_case(
        losses.LogitNormLoss(), partial(logit_norm, strength=0.01, p=1)
    ),
    "logit norm 2": logit_norm_case(
        losses.LogitNormLoss(p=2), partial(logit_norm, strength=0.01, p=2), compiled=False
    ),
    "Poly-1": Case(losses.PolyLoss(), partial(poly, epsilon=1)),
    "Poly-1, -1": Case(
        losses.PolyLoss(epsilon=-1.0), partial(poly, epsilon=-1), subtracted=True, compiled=False
    ),
    "MMCE": Case(
        losses.MMCELoss(), partial(mmce, weight=2), soft=False, row_wise=False, compiled=False
    ),
    "MMCE, weighted": Case(
        losses.MMCELoss(weighted=True, strength=4.0),
        partial(mmce, weight=4, weighted=True),
        soft=False,
        row_wise=False,
    ),
    "CRL": crl(losses.CorrectnessRankingLoss(), correctness_ranking),
    "CRL, margin": crl(
        losses.CorrectnessRankingLoss(confidence="margin"),
        partial(correctness_ranking, confidence="margin"),
        compiled=False,
    ),
    "CRL, entropy": crl(
        losses.CorrectnessRankingLoss(confidence="entropy"),
        partial(correctness_ranking, confidence="entropy"),
        mask=False,  # -H / log K
        compiled=False,
    ),
    "0-hinge": Case(losses.ZeroHingeLoss(), zero_hinge, soft=False),
}


def parameters(loss):
    """The parameters of a loss, by the names of its constructor."""
    return {key: getattr(loss, key) for key in inspect.signature(type(loss)).parameters}


def extra_inputs(needs, n, dtype=torch.float64):
    """The difficulty or history that a loss needs, fixed and with ties."""
    values = torch.tensor([0.0, 1.0, 0.25, 0.25, 0.5, 0.75, 0.125], dtype=dtype)
    return {} if needs is None else {needs: values.repeat(n // 7 + 1)[:n]}


def exactly(values):
    return [[mpmath.mpf(x) for x in row] for row in values.double().tolist()]


def targets(logits, target):
    """Class probabilities, as rows of numbers, of hard and of soft targets."""
    if target.is_floating_point():
        return exactly(target)
    return [[int(k == y) for k in range(logits.shape[1])] for y in target.tolist()]


def spread(logits):
    return float((logits.amax(1) - logits.amin(1)).max())


def expected(name, logits, target):
    """Values of each row, as mpf: the reference on the exact values of the tensors."""
    case = CASES[name]
    with mp.workdps(30 + int(spread(logits) / 2.3)):
        extra = extra_inputs(case.needs, len(logits)).values()
        zs, ts = exactly(logits), targets(logits, target)
        return case.reference(zs, ts, *(value.tolist() for value in extra))


def reduced(name, logits, target, reduction, **inputs):
    loss = CASES[name].loss
    again = type(loss)(**parameters(loss) | {"reduction": reduction})
    extra = extra_inputs(CASES[name].needs, len(logits), logits.dtype)
    return again(logits, target, **extra, **inputs)


def unreduced(name, logits, target):
    return reduced(name, logits, target, "none")


def expected_gradient(name, logits, target):
    """Gradient of the sum of the rows, as rows of mpf: differences with a step of 1e-20."""
    case = CASES[name]
    extra = [value.tolist() for value in extra_inputs(case.needs, len(logits)).values()]
    with mp.workdps(100 + int(2 * spread(logits))):
        zs, ts = exactly(logits), targets(logits, target)

        def total(i, k, step):
            moved = [list(row) for row in zs]
            moved[i][k] += step
            if not case.row_wise:
                return mpmath.fsum(case.reference(moved, ts, *extra))
            return case.reference([moved[i]], [ts[i]], *([value[i]] for value in extra))[0]

        if case.detached:
            values = zip(case.reference(zs, ts, *extra), cross_entropy(zs, ts), strict=True)
            weights = [value / ce if ce else 0 for value, ce in values]
            return [
                [weight * (p - t) for p, t in zip(softmax(z), row, strict=True)]
                for weight, z, row in zip(weights, zs, ts, strict=True)
            ]
        h = mpmath.mpf("1e-20")
        return [
            [(total(i, k, h) - total(i, k, -h)) / (2 * h) for k in range(len(row))]
            for i, row in enumerate(zs)
        ]


def gradient_errors(name, logits, target):
    """Error of the gradient of each row, relative to its largest entry, as `relative_errors`.

    A gradient that vanishes where that of the cross-entropy does not is judged by the latter.
    """
    z = logits.clone().requires_grad_()
    reduced(name, z, target, "sum").backward()
    exact = expected_gradient(name, logits, target)
    scale = exact
    case = CASES[name]
    if case.subtracted or case.saturates or case.needs == "history":
        scale = expected_gradient("cross-entropy", logits, target)
    tiny = torch.finfo(logits.dtype).tiny
    return [
        float(
            max(abs(value - truth) for value, truth in zip(ours, theirs, strict=True))
            / max(*(abs(x) for x in size), *(abs(x) for x in theirs), tiny)
        )
        for ours, theirs, size in zip(z.grad.double().tolist(), exact, scale, strict=True)
    ]


def relative_errors(name, logits, target):
    """Relative error of each row; below the smallest normal number, error in units of that number.

    Where a term is subtracted, the error is relative to the cross-entropy, the larger term.
    """
    values = unreduced(name, logits, target).double().tolist()
    tiny = torch.finfo(logits.dtype).tiny
    exact = expected(name, logits, target)
    scale = expected("cross-entropy", logits, target) if CASES[name].subtracted else exact
    return [
        float(abs(value - truth) / max(abs(size), tiny))
        for value, truth, size in zip(values, exact, scale, strict=True)
    ]


def logit_sets(dtype=torch.float64):
    """Name -> (logits, target): ordinary, extreme and degenerate batches."""
    generator = torch.Generator().manual_seed(0)
    ordinary = 3 * torch.randn(8, 4, generator=generator, dtype=torch.float64)
    near = torch.tensor([[40.0, 3, -7], [0, 36, 1], [18, 0.5, 0]], dtype=torch.float64)
    target = torch.arange(8) % 4
    signs = torch.randn(8, 4, generator=generator, dtype=torch.float64).sign()
    noise = torch.randn(8, 4, generator=generator, dtype=torch.float64)
    sets = {
        "N(0, 9)": (ordinary, target),
        "1000 + N(0, 9)": (1000 + ordinary, target),
        "wide lead": (near.repeat(3, 1), torch.arange(3).repeat_interleave(3)),
        "+-50": (50 * signs, target),
        "+-50 + noise": (50 * signs + noise, target),
        "+-1000": (1000 * signs, target),
        "+-1000 + noise": (1000 * signs + noise, target),
        "ties": (torch.zeros(4, 4, dtype=torch.float64), torch.arange(4)),
        "K = 2": (ordinary[:, :2], target % 2),
        "K = 20": (
            3 * torch.randn(8, 20, generator=generator, dtype=torch.float64),
            torch.arange(8) * 2,
        ),
        "K = 1": (ordinary[:4, :1], torch.zeros(4, dtype=torch.long)),
    }
    return {name: (logits.to(dtype), labels) for name, (logits, labels) in sets.items()}


def soft_target(logits, seed=0):
    """Random class probabilities, one-hot in the first row and with zeros in the second."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.rand(logits.shape, generator=generator, dtype=torch.float64)
    target[0] = 0
    target[0, 0] = 1
    if logits.shape[1] > 2:
        target[1:2, -1] = 0
    target = target / target.sum(1, keepdim=True)
    return target.to(logits.dtype)
