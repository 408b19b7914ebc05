"""What is measured for the figures of the papers that print no numbers."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.sparse import random as random_sparse
from scipy.stats import spearmanr

from benchmarks.papers import depth, figures
from benchmarks.papers.texts import BagNet, Bags
from skcalib.losses import CrossEntropyLoss, functional


@pytest.mark.parametrize("loss", figures.PUBLISHED.values(), ids=figures.PUBLISHED)
def test_gradient_norms_are_those_of_the_last_layer_sample_by_sample(loss):
    torch.manual_seed(0)
    matrix = random_sparse(20, 15, density=0.4, format="csr", random_state=0, dtype=np.float32)
    net, bags = BagNet(15, n_hidden=6, n_classes=4), Bags(matrix)
    y = np.arange(20) % 4
    norms, brier = [], []
    for i in range(20):
        logits = net(*bags[torch.tensor([i])])
        target = torch.tensor([y[i]])
        (gradient,) = torch.autograd.grad(loss(logits, target), net.output.weight)
        norms.append(gradient.norm().item())
        p = logits.softmax(1)[0].detach().numpy()
        brier.append(((p - np.eye(4)[y[i]]) ** 2).sum())
    task = SimpleNamespace(given=y, inputs={"train": bags})
    found = figures.gradient_and_brier(net, task, loss)
    assert found == pytest.approx(spearmanr(norms, brier)[0], abs=5e-3)


def test_groups_hold_the_errors_of_the_hardest_samples():
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 1000)
    X = rng.normal(size=(2000, 2)) + 3.0 * y[:, None]
    # Wrong where a sample lies nearer to the other class: what a relative distance sees.
    wrong = (X.sum(axis=1) > 3.0) != y
    far = X + np.where(rng.random(2000) < 0.1, 50.0, 0.0)[:, None] * [1, -1]  # off both classes
    load = lambda: (far, y, None, None, wrong)
    found = figures.by_groups("made", load, 0)["found"]["made"]
    relative, plain = (found[name]["last"] for name in ("RMD", "Mahalanobis"))
    assert relative["hardest"] == 1.0
    assert plain["hardest"] < 0.2
    assert sum(relative[f"tenth {i}"] for i in range(1, 11)) == pytest.approx(
        10 * wrong[np.random.default_rng(0).permutation(2000) >= 1000].mean()
    )


def test_a_rate_falls_to_a_fifth_and_a_full_batch_needs_no_draw():
    X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    short, longer = (
        depth.descended(X, y, [0], CrossEntropyLoss, 0.1, 0.0, steps, None)
        for steps in ((5,), (5, 1))
    )
    again = depth.descended(X, y, [0], CrossEntropyLoss, 0.1, 0.0, (5,), None)
    again.zero_grad()
    loss = functional.cross_entropy_loss(again(torch.from_numpy(X)), torch.from_numpy(y))
    loss.backward()
    for before, after, parameter in zip(
        short.parameters(), longer.parameters(), again.parameters()
    ):
        torch.testing.assert_close(after, before - 0.1 / 5 * parameter.grad)


def test_layers_are_read_before_their_activation():
    net = depth.descended(
        np.eye(4, dtype=np.float32), np.arange(4), [0], CrossEntropyLoss, 0.1, 0.9, (3,), 2
    )
    X = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    layers, logits = depth._layers(net, X)
    linear = [module for module in net.modules() if isinstance(module, torch.nn.Linear)]
    hidden = torch.from_numpy(X)
    assert len(layers) == len(depth.LAYERS) == len(linear) + 1
    np.testing.assert_array_equal(layers[0], X)
    for layer, module in zip(layers[1:], linear[:-1]):
        values = module(hidden)
        np.testing.assert_allclose(layer, values.detach().numpy(), atol=1e-6)
        hidden = values.relu()
    np.testing.assert_allclose(logits, linear[-1](hidden).detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(layers[-1].sum(axis=1), 1, atol=1e-6)


@pytest.mark.slow
def test_a_network_trained_for_no_margin_has_less_of_it(monkeypatch):
    monkeypatch.setattr(depth, "N_DESCENDED", 200)
    brief = {
        name: (*how[:3], tuple(n // 20 for n in how[3]), how[4])
        for name, how in depth.DESCENTS.items()
    }
    monkeypatch.setattr(depth, "DESCENTS", brief)
    found = depth.margins("digits", partial(depth.digits, None), 0)["found"]["digits"]
    margin = {name: points["last"]["output margin"] for name, points in found.items()}
    assert margin[depth.CONTROL] > margin[depth.BOTH] + 1
