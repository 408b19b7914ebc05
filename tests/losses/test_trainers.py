"""The losses inside the loops of other libraries, as the guide shows them."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from skcalib.losses import BSCEGRALoss, FocalLoss


def compute_loss(outputs, labels, num_items_in_batch=None):
    criterion = FocalLoss(gamma=1, ignore_index=-100, reduction="sum")
    n_labels = num_items_in_batch or (labels != -100).sum()
    return criterion(outputs.logits.transpose(1, 2), labels) / n_labels


def test_accumulated_batches_of_tokens_are_one_large_batch():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 7, 5, generator=generator)  # (samples, tokens, classes)
    labels = torch.randint(5, (6, 7), generator=generator)
    labels[torch.rand(6, 7, generator=generator) < 0.3] = -100
    whole = compute_loss(SimpleNamespace(logits=logits), labels)
    kept = labels != -100
    torch.testing.assert_close(whole, FocalLoss(gamma=1)(logits[kept], labels[kept]))
    parts = [
        compute_loss(SimpleNamespace(logits=logits[rows]), labels[rows], kept.sum())
        for rows in (slice(0, 2), slice(2, 6))
    ]
    torch.testing.assert_close(sum(parts), whole)


@pytest.mark.filterwarnings("ignore::UserWarning:accelerate")
def test_accelerate_trains_as_a_plain_loop():
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    X, y = torch.randn(64, 4), torch.arange(64) % 3

    def trained(prepare, backward):
        torch.manual_seed(0)
        network = nn.Linear(4, 3)
        network, optimizer = prepare(network, torch.optim.SGD(network.parameters(), lr=0.1))
        for rows in torch.arange(64).split(16):
            optimizer.zero_grad()
            backward(BSCEGRALoss(exponent=1)(network(X[rows]), y[rows]))
            optimizer.step()
        return network(X).detach()

    plain = trained(lambda *parts: parts, lambda loss: loss.backward())
    torch.testing.assert_close(trained(accelerator.prepare, accelerator.backward), plain)
