"""Where each loss stops in the population: the table of the user guide."""

import pytest
import torch
from scipy.optimize import root

from skcalib import losses
from tests.losses.reference import parameters

ETA = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)


STATIONARY = {
    "CrossEntropyLoss()": (0.700, 0.200, 0.100),
    "BrierLoss()": (0.700, 0.200, 0.100),
    "LabelSmoothingLoss(alpha=0.05)": (0.682, 0.207, 0.112),
    "EntropyRegularizedLoss(alpha=0.1)": (0.670, 0.215, 0.115),
    "LogitNormLoss(strength=0.05)": (0.650, 0.200, 0.150),
    "FocalLoss(gamma=2)": (0.535, 0.293, 0.172),
    "FocalLoss(gamma=2, detach_weight=True)": (0.508, 0.297, 0.195),
    "BSCELoss(order=2, exponent=2)": (0.514, 0.294, 0.192),
    "BSCEGRALoss(order=2, exponent=2)": (0.505, 0.302, 0.193),
    "BSCEGRALoss(order=2, exponent=4)": (0.448, 0.316, 0.236),
    "PolyLoss(epsilon=1)": (0.789, 0.144, 0.067),
    "PolyLoss(epsilon=-0.5)": (0.638, 0.236, 0.126),
}


def population_step(loss, logits):
    """Gradient of the expected loss of one row whose label is drawn from ETA."""
    logits = logits.detach().requires_grad_()
    value = loss(logits.expand(3, 3), torch.arange(3), sample_weight=ETA)
    return torch.autograd.grad(value, logits)[0]


def stationary_point(loss):
    """Probabilities where the gradient vanishes, with the last logit at 0."""

    def gradient(free):
        logits = torch.tensor([*free, 0.0], dtype=torch.float64)
        return population_step(loss, logits)[:2].numpy()

    found = root(gradient, [0.6, 0.3], tol=1e-12)
    assert found.success
    return torch.softmax(torch.tensor([*found.x, 0.0], dtype=torch.float64), 0)


@pytest.mark.parametrize("name", STATIONARY)
def test_where_training_stops(name, repository):
    loss = eval(f"losses.{name}", {"losses": losses})
    if name.startswith("LogitNorm"):  # on a kink: the middle logit is 0
        stop = torch.tensor(STATIONARY[name], dtype=torch.float64)
        assert population_step(loss, (stop / stop[1]).log()).abs().max() < 1e-12
    else:
        stop = stationary_point(loss)
        assert stop.tolist() == pytest.approx(STATIONARY[name], abs=6e-4)
    shown = ", ".join(f"{x:.3f}"[1:] for x in STATIONARY[name])
    guide = (repository / "docs/understand/losses.rst").read_text()
    table = guide[guide.index("Where the losses stop") :]
    row = table[table.index(f"``{name}``") :]
    assert row[: row.index(")", row.index("- (")) + 1].endswith(f"({shown})")


@pytest.mark.parametrize(
    "loss",
    [
        losses.BSCEGRALoss(exponent=2),
        losses.FocalLoss(detach_weight=True),
        losses.DualFocalLoss(detach_weight=True),
    ],
    ids=repr,
)
def test_condition_of_detached_weights(loss):
    # p_k sum_y eta_y w_y = eta_k w_k, with w read off as loss / cross-entropy.
    p = stationary_point(loss)
    logits = p.log()
    each = type(loss)(**parameters(loss) | {"reduction": "none"})
    weight = each(logits.expand(3, 3), torch.arange(3)) / -p.log()
    torch.testing.assert_close(p * (ETA * weight).sum(), ETA * weight, atol=1e-6, rtol=0)
    assert (p - ETA).abs().max() > 0.05


@pytest.mark.parametrize("name", STATIONARY)
def test_no_loss_but_two_stops_at_the_posterior(name):
    gradient = population_step(eval(f"losses.{name}", {"losses": losses}), ETA.log())
    proper = name in ("CrossEntropyLoss()", "BrierLoss()")
    assert (gradient.abs().max() < 1e-12) == proper
