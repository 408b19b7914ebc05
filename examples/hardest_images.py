"""
The hardest images of a folder
==============================

Rank the images of every class by their difficulty: the relative Mahalanobis distance in the
features of a pre-trained model. The folder has one sub-folder a class::

    python hardest_images.py FOLDER --model ViT-B-32 --pretrained openai
    python hardest_images.py FOLDER --library timm --model resnet18 --pretrained weights.pt

The script writes a picture, with the hardest images of every class above its easiest, and the
full ranking, ``file,class,difficulty``, hardest first. Look at the hardest images for wrong
labels, several objects, odd views and bad crops. It needs the extras "embeddings" and "plots".
"""

import argparse
import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageOps

from skcalib.difficulty import RMDScorer
from skcalib.embeddings import OpenClipEmbedder, TimmEmbedder
from skcalib.plots import HardestSamplesDisplay

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}


def find_images(folder):
    """Return the files of all images, sorted, and the sub-folder of each."""
    files = sorted(path for path in Path(folder).glob("*/**/*") if path.suffix.lower() in SUFFIXES)
    if not files:
        raise SystemExit(f"{folder} has no sub-folders with images")
    return np.array(files), np.array([path.relative_to(folder).parts[0] for path in files])


def thumbnail(path, size=96):
    with Image.open(path) as image:
        return ImageOps.fit(ImageOps.exif_transpose(image).convert("RGB"), (size, size))


def draw(files, y, difficulty, n_columns):
    """Draw the hardest and the easiest images of every class, a class below the other."""
    classes = np.unique(y)
    figure, axes = plt.subplots(
        len(classes),
        figsize=(1.1 * n_columns + 0.5, 3.4 * len(classes)),
        squeeze=False,
        gridspec_kw={"hspace": 0.35},
    )
    for label, ax in zip(classes, axes[:, 0]):
        rows = np.flatnonzero(y == label)
        rows = rows[np.argsort(difficulty[rows], kind="stable")]
        rows = np.unique(np.concatenate([rows[:n_columns], rows[-n_columns:]]))
        images = [thumbnail(path) for path in files[rows]]
        HardestSamplesDisplay.from_predictions(
            images, difficulty[rows], n_columns=n_columns, ax=ax
        )
        ax.set_title(label, pad=22, fontweight="bold")
    return figure


def main():
    parser = argparse.ArgumentParser(description="Rank the images of a folder by difficulty.")
    parser.add_argument("folder", type=Path, help="one sub-folder a class")
    parser.add_argument("--library", choices=["open_clip", "timm"], default="open_clip")
    parser.add_argument("--model", default="ViT-B-32")
    parser.add_argument("--pretrained", help="a tag or a local file of weights")
    parser.add_argument("--image-size", type=int)
    parser.add_argument("--workers", type=int, default=0, help="processes that read images")
    parser.add_argument("--columns", type=int, default=8, help="images a row")
    parser.add_argument("--out", type=Path, default=Path("hardest_images.png"))
    args = parser.parse_args()

    files, y = find_images(args.folder)
    Embedder = OpenClipEmbedder if args.library == "open_clip" else TimmEmbedder
    embedder = Embedder(
        args.model,
        args.pretrained,
        image_size=args.image_size,
        num_workers=args.workers,
        progress=True,
    )
    features = embedder.transform(files)
    difficulty = RMDScorer(shrinkage="auto").fit(features, y).difficulty(features, y)

    with args.out.with_suffix(".csv").open("w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(["file", "class", "difficulty"])
        for row in np.argsort(-difficulty, kind="stable"):
            writer.writerow([files[row], y[row], f"{difficulty[row]:.4f}"])
    draw(files, y, difficulty, args.columns).savefig(args.out, dpi=120, bbox_inches="tight")
    print(f"{len(files)} images of {len(np.unique(y))} classes: {args.out}, {table.name}")


if __name__ == "__main__":
    main()
