"""CIFAR-10 images: a small task for one core, and the papers' own for an accelerator."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from PIL import Image

from ..cifar_networks import CifarResNet

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


@cache
def pictures(folder, split, n_images=None):
    """Return (n, 32, 32, 3) bytes and labels of the first images of a split."""
    with np.load(folder / "cifar10_jpeg.npz") as data:
        jpeg, offsets = data[f"{split}_jpeg"], data[f"{split}_offsets"]
        y = data[f"{split}_y"].astype(int)[:n_images]
    parts = (jpeg[a:b].tobytes() for a, b in pairwise(offsets[: len(y) + 1]))
    return np.stack([np.asarray(Image.open(io.BytesIO(part))) for part in parts]), y


def as_input(images, size=32):
    """Return standardized float32 (n, 3, size, size); smaller sizes are means of blocks."""
    step = images.shape[1] // size
    blocks = images.reshape(len(images), size, step, size, step, 3).mean(axis=(2, 4))
    scaled = (blocks / 255 - MEAN) / STD
    return torch.from_numpy(scaled.transpose(0, 3, 1, 2).astype(np.float32))


class Pictures:
    """Images that a net takes by rows; in training they are flipped and shifted, if asked."""

    @staticmethod
    def mixed(samples, mixup):
        """Return mixtures of the images of a batch."""
        return mixup.inputs(samples)

    def __init__(self, images, *, augment=False, device="cpu"):
        self.images, self.augment, self.device = images.to(device), augment, device

    def __len__(self):
        return len(self.images)

    def __getitem__(self, rows):
        images = self.images[rows.to(self.device)]
        if not self.augment:
            return (images,)
        # One shift and one flip for each image: a window of the image with a border of 4.
        n, _, height, width = images.shape
        padded = torch.nn.functional.pad(images, (4, 4, 4, 4))
        top, left = torch.randint(0, 9, (2, n, 1), device=self.device)
        down = top + torch.arange(height, device=self.device)
        across = left + torch.arange(width, device=self.device)
        across = torch.where(torch.rand(n, 1, device=self.device) < 0.5, across.flip(1), across)
        every = torch.arange(n, device=self.device)[:, None, None]
        # (n, height, width, channels): the two index arrays stand around the slice of channels.
        return (padded[every, :, down[:, :, None], across[:, None]].permute(0, 3, 1, 2),)


def small_net(size=16, n_classes=10):
    """Return two convolutions and two linear layers, without normalization."""
    from torch.nn import Conv2d, Flatten, Linear, MaxPool2d, ReLU, Sequential

    return Sequential(
        Conv2d(3, 32, 3, padding=1), ReLU(), MaxPool2d(2),
        Conv2d(32, 64, 3, padding=1), ReLU(), MaxPool2d(2),
        Flatten(), Linear(64 * (size // 4) ** 2, 64), ReLU(), Linear(64, n_classes),
    )  # fmt: skip


def small_resnet(n_classes=10):
    """Return the smallest residual network of CIFAR, max-pooling behind its first convolution."""
    net = CifarResNet(8, n_classes=n_classes)
    net.stem.append(torch.nn.MaxPool2d(2))
    return net


@dataclass
class ImageTask:
    """Images to learn from, to validate and to test on; `human` holds label distributions."""

    inputs: dict
    given: np.ndarray
    val_labels: dict
    test_labels: np.ndarray
    make_net: object
    seed: int
    human: np.ndarray | None = None

    def net(self):
        return self.make_net()


def human_proba(folder):
    with np.load(folder / "cifar10h.npz") as data:
        counts = data["counts"].astype(float)
    return counts / counts.sum(axis=1, keepdims=True)


def image_task(folder, seed, n_train=4000, n_val=2000, size=16):
    """Draw training and validation images anew for each seed; all test images at half size."""
    images, y = pictures(folder, "train")
    rows = np.random.default_rng(seed).permutation(len(y))[: n_train + n_val]
    train, val = rows[:n_train], rows[n_train:]
    test, y_test = pictures(folder, "test")
    parts = {"train": images[train], "val": images[val], "test": test}
    return ImageTask(
        inputs={name: Pictures(as_input(part, size)) for name, part in parts.items()},
        given=y[train],
        val_labels={"clean": y[val]},
        test_labels=y_test,
        make_net=lambda: small_net(size),
        seed=seed,
        human=human_proba(folder),
    )
