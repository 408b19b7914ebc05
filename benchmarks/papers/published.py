"""The settings that the papers print, and the images and names of runs of ``--scale full``."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np

from .images import pictures

PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text())


@cache
def _pictures(folder, split):
    """Return images and labels; to read them takes as long as an epoch."""
    return pictures(folder, split)


def image_set(options):
    """Return (images, labels) of the training and of the test images, (n, 32, 32, 3) bytes."""
    if options.dataset == "cifar10":
        return tuple(_pictures(options.data, split) for split in ("train", "test"))
    with np.load(options.data / f"{options.dataset}.npz") as data:
        return tuple(
            (_in_color(data[f"{split}_images"]), data[f"{split}_y"].astype(int))
            for split in ("train", "test")
        )


def _in_color(images):
    if images.ndim == 3:
        images = np.repeat(images[..., None], 3, axis=3)
    border = (32 - images.shape[1]) // 2
    return np.pad(images, ((0, 0), (border, border), (border, border), (0, 0)))


def named_setting(options, network):
    """Return the name under which runs are kept; that of a trial says so."""
    parts = [options.dataset, network]
    parts += [f"{options.epochs} epochs"] if options.epochs else []
    parts += [f"{options.images} images"] if options.images else []
    return ", ".join(parts)
