"""Embedders against bare loops over the same models, weights and images, in the same run.

python -m benchmarks.embeddings [--images N] [--repeat R] [--threads T]
"""

import argparse
import logging
from time import process_time

import numpy as np
import open_clip
import timm
import torch
from PIL import Image

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


def open_clip_pair(images):
    torch.manual_seed(0)
    model, _, preprocess = open_clip.create_model_and_transforms("ViT-B-32")
    model.eval()
    embedder = OpenClipEmbedder("ViT-B-32", batch_size=BATCH, device="cpu", random_state=0)
    return (
        lambda: bare_loop(model.encode_image, preprocess, images),
        lambda: embedder.transform(images),
    )


def timm_pair(images):
    torch.manual_seed(0)
    model = timm.create_model("resnet18", num_classes=0).eval()
    preprocess = timm.data.create_transform(**timm.data.resolve_data_config(model=model))
    embedder = TimmEmbedder("resnet18", batch_size=BATCH, device="cpu", random_state=0)
    return lambda: bare_loop(model, preprocess, images), lambda: embedder.transform(images)


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

    return forward, lambda: embedder.transform(X)


def seconds(function):
    # Of the processor, over all threads: the machine may be shared, and nothing waits here.
    start = process_time()
    function()
    return process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    logging.getLogger().setLevel(logging.ERROR)
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (args.images, 240, 320, 3), dtype=np.uint8)
    images = [Image.fromarray(image) for image in pixels]
    print(f"{args.images} images of 320 x 240, batches of {BATCH}, {args.threads} threads; the")
    print(f"minimum and median ratio of {args.repeat} interleaved repetitions, processor seconds")
    print(f"{'':34} {'bare':>8} {'skcalib':>8} {'ratio':>6} {'median ratio':>12}")
    for name, pair in [
        ("OpenClipEmbedder, ViT-B-32", open_clip_pair),
        ("TimmEmbedder, resnet18", timm_pair),
        ("LayerEmbedder, resnet18, 9 layers", layer_pair),
    ]:
        bare, ours = pair(images)
        if pair is not layer_pair:
            difference = np.abs(bare() - ours()).max()
            if difference > 1e-4:
                raise SystemExit(f"{name}: features differ by {difference}")
        else:
            bare(), ours()
        times = np.array([(seconds(bare), seconds(ours)) for _ in range(args.repeat)])
        least = times.min(axis=0)
        median = np.median(times[:, 1] / times[:, 0])
        ratio = least[1] / least[0]
        print(f"{name:34} {least[0]:8.2f} {least[1]:8.2f} {ratio:6.3f} {median:12.3f}", flush=True)


if __name__ == "__main__":
    main()
