"""Features without labels: a small network that learns by how much an image was turned.

Gidaris et al., "Unsupervised Representation Learning by Predicting Image Rotations", ICLR 2018.
"""

from __future__ import annotations

import numpy as np
import torch

from .images import as_input, pictures, small_resnet

N_IMAGES, N_EPOCHS, BATCH = 20_000, 8, 100


def rotation_features(folder, cache):
    """Return 64 pooled features of the test images, by a network for turns of training images."""
    path = cache / "rotation_features.npz"
    if not path.exists():
        net, accuracy = _trained(as_input(pictures(folder, "train", N_IMAGES)[0]))
        print(f"rotation: accuracy {accuracy:.3f} in the last epoch", flush=True)
        images = as_input(pictures(folder, "test")[0])
        with torch.no_grad():
            parts = [_pooled(net, part).numpy() for part in images.split(1000)]
        np.savez(path, features=np.concatenate(parts), accuracy=accuracy)
    with np.load(path) as data:
        return data["features"]


def _pooled(net, images):
    return net.blocks(net.stem(images)).mean(dim=(2, 3))


def _trained(images):
    """Train on quarter turns, a quarter of each batch by each; return net and its accuracy."""
    torch.manual_seed(0)
    net = small_resnet(4)
    optimizer = torch.optim.AdamW(net.parameters(), 0.01, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, N_EPOCHS)
    turns = torch.arange(BATCH) % 4
    for _ in range(N_EPOCHS):
        n_correct = 0
        for rows in torch.randperm(len(images)).split(BATCH):
            parts = (images[rows[k::4]].rot90(k, (2, 3)) for k in range(4))
            logits = net(torch.cat(list(parts)))
            target = turns.sort().values
            loss = torch.nn.functional.cross_entropy(logits, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            n_correct += int((logits.argmax(dim=1) == target).sum())
        schedule.step()
    return net.eval(), n_correct / len(images)
