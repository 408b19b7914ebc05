"""CIFAR-10 images: a small task for one core, with noise, difficulties and human labels."""

from __future__ import annotations

import io
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from joblib import Memory
from PIL import Image
from sklearn.datasets import load_digits, load_sample_images
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..cifar_networks import CifarResNet
from .students import Settings
from .tasks import Task, noisy_labels, rivals_of

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
IMAGES = Settings(n_epochs=10, lr=0.01, batch_size=100, cosine=True)
N_TRAIN, N_TEST, N_OOD, SIZE = 4000, 4000, 500, 16


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


def small_resnet(n_classes=10):
    """Return the smallest residual network of CIFAR, max-pooling behind its first convolution."""
    net = CifarResNet(8, n_classes=n_classes)
    net.stem.append(torch.nn.MaxPool2d(2))
    return net


def human_proba(folder):
    """Return what fraction of people chose each class for the test images (CIFAR-10H)."""
    with np.load(folder / "cifar10h.npz") as data:
        counts = data["counts"].astype(float)
    return counts / counts.sum(axis=1, keepdims=True)


class Cifar:
    """The test split as students see it, with features and human labels."""

    pretrained = None  # features of EfficientNet-Lite, in the studies that ask for them

    def __init__(self, folder, cache):
        images, self.labels = pictures(folder, "test")
        self.inputs = as_input(images, SIZE)
        self.human = human_proba(folder)
        with np.load(folder / "cifar10_resnet20_features.npz") as data:
            self.features = data["features"].astype(np.float64)
        self.rotation = Memory(cache, verbose=0).cache(rotation_features)(folder)
        self.ood = Pictures(as_input(np.concatenate([enlarged_digits(), crops()]), SIZE))

    @cached_property
    def rivals(self):
        """The wrong class to flip to, by out-of-fold logistic regression on rotation features."""
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
        return rivals_of(model, self.rotation, self.labels)


def enlarged_digits():
    """Return (n, 32, 32, 3) bytes: the 8 x 8 digits of scikit-learn, each pixel a block."""
    digits = load_digits().images[:N_OOD] * (255 / 16)
    blocks = np.kron(digits, np.ones((1, 4, 4))).astype(np.uint8)
    return np.repeat(blocks[..., None], 3, axis=-1)


def crops(seed=0):
    """Return (n, 32, 32, 3) bytes: windows of the two photographs of scikit-learn."""
    rng, photographs = np.random.default_rng(seed), load_sample_images().images
    windows = []
    for i in range(N_OOD):
        image = photographs[i % len(photographs)]
        top, left = (rng.integers(size - 31) for size in image.shape[:2])
        windows.append(image[top : top + 32, left : left + 32])
    return np.stack(windows)


def test_and_other_rows(n_images):
    """Return the rows of the images that all students are tested on, and those to draw from."""
    return np.split(np.random.default_rng(1000).permutation(n_images), [N_TEST])


def cifar_task(images, noise, seed):
    """Draw training and validation images anew for each seed; the test images stay."""
    test, pool = test_and_other_rows(len(images.labels))
    order = np.random.default_rng(seed).permutation(pool)
    train, val = order[:N_TRAIN], order[N_TRAIN:]
    y = images.labels
    rivals = [values[train] for values in images.rivals] if noise[0] == "I" else None
    parts = {"train": train, "val": val, "test": test}
    inputs = {name: Pictures(images.inputs[torch.from_numpy(r)]) for name, r in parts.items()}
    return Task(
        inputs=inputs | {"ood": images.ood},
        given=noisy_labels(y[train], noise, seed, rivals),
        true=y[train],
        features=images.features[train],
        rotation=images.rotation[train],
        pretrained=None if images.pretrained is None else images.pretrained[train],
        val_labels={"clean": y[val]},
        test_labels=y[test],
        human=images.human[test],
        seed=seed,
        make_net=small_resnet,
    )


# Features without labels, of a network that learns by how much an image was turned: Gidaris et
# al., "Unsupervised Representation Learning by Predicting Image Rotations", ICLR 2018.
N_TURNED, N_EPOCHS_OF_TURNS, BATCH = 20_000, 8, 100


def rotation_features(folder):
    """Return 64 pooled features of the test images, by a network for turns of training images."""
    net, accuracy = trained_on_turns(as_input(pictures(folder, "train", N_TURNED)[0]))
    print(f"rotation: accuracy {accuracy:.3f} in the last epoch", flush=True)
    return pooled(net, as_input(pictures(folder, "test")[0]))


def pooled(net, images):
    """Return the features before the last layer, (n, 64)."""
    with torch.no_grad():
        parts = [net.blocks(net.stem(part)).mean(dim=(2, 3)) for part in images.split(1000)]
    return torch.cat(parts).numpy().astype(np.float64)


def trained_on_turns(images):
    """Train on quarter turns, a quarter of each batch by each; return net and its accuracy."""
    torch.manual_seed(0)
    net = small_resnet(4)
    optimizer = torch.optim.AdamW(net.parameters(), 0.01, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, N_EPOCHS_OF_TURNS)
    turns = torch.arange(BATCH) % 4
    for _ in range(N_EPOCHS_OF_TURNS):
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
