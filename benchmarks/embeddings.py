"""Embedders against bare loops over the same models, weights and images, in the same run.

python -m benchmarks.embeddings [--threads T]
"""

import logging
from functools import partial

import numpy as np
import open_clip
import timm
import torch
from PIL import Image

from benchmarks._timing import print_speed, speed_options
from skcalib.embeddings import LayerEmbedder, OpenClipEmbedder, TimmEmbedder

BATCH = 32


def bare_loop(encode, preprocess, images):
    """The loop that the documentation of the libraries shows."""
    rows = []
    with torch.inference_mode():
        for start in range(0, len(images), BATCH):
            batch = torch.stack([preprocess(image) for image in images[start : start + BATCH]])
            rows.append(encode(batch).numpy())
    return np.concatenate(rows)


def open_clip_pair(images, name):
    torch.manual_seed(0)
    model, _, preprocess = open_clip.create_model_and_transforms(name)
    encode = model.eval().encode_image
    embedder = OpenClipEmbedder(name, batch_size=BATCH, device="cpu", random_state=0)
    return partial(bare_loop, encode, preprocess, images), partial(embedder.transform, images)


def timm_pair(images):
    torch.manual_seed(0)
    model = timm.create_model("resnet18", num_classes=0).eval()
    preprocess = timm.data.create_transform(**timm.data.resolve_data_config(model=model))
    embedder = TimmEmbedder("resnet18", batch_size=BATCH, device="cpu", random_state=0)
    return partial(bare_loop, model, preprocess, images), partial(embedder.transform, images)


def layer_pair(images):
    """The bound is the forward pass alone: nothing is recorded."""
    model = timm.create_model("resnet18", num_classes=10).eval()
    X = np.stack([np.asarray(image.resize((64, 64))) for image in images])
    X = X.transpose(0, 3, 1, 2).astype(np.float32) / 255
    embedder = LayerEmbedder(model, pooling="mean", batch_size=BATCH).fit(X)

    def forward():
        with torch.inference_mode():
            for start in range(0, len(X), BATCH):
                model(torch.tensor(X[start : start + BATCH]))

    return forward, partial(embedder.transform, X)


def main():
    options = speed_options(__doc__)
    logging.getLogger().setLevel(logging.ERROR)
    n_images = 2 if options.small else 128
    pixels = np.random.default_rng(0).integers(0, 256, (n_images, 240, 320, 3), dtype=np.uint8)
    images = [Image.fromarray(image) for image in pixels]
    network = "ViT-S-32" if options.small else "ViT-B-32"
    for name, pair in (
        (f"OpenClipEmbedder, {network}", partial(open_clip_pair, name=network)),
        ("TimmEmbedder, resnet18", timm_pair),
        ("LayerEmbedder, resnet18, 9 layers", layer_pair),
    ):
        bare, ours = pair(images)
        expected, found = bare(), ours()  # warms up, too
        if expected is not None and np.abs(expected - found).max() > 1e-4:
            raise SystemExit(f"{name}: features differ")
        title = f"{n_images} images of 320 x 240, batches of {BATCH}"
        print_speed(title, "bare loop", {"bare loop": bare, name: ours}, repeats=options.repeats)


if __name__ == "__main__":
    main()
