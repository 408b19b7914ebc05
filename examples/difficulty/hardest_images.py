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

The score is Eq. 5 of [RMD], the picture as in its Figures 1 and 5: :ref:`paper-rmd`.
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


class Thumbnails:
    """Small pictures of files, each read when it is asked for."""

    def __init__(self, files, size=96):
        self.files = files
        self.size = (size, size)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        with Image.open(self.files[number]) as image:
            return ImageOps.fit(ImageOps.exif_transpose(image).convert("RGB"), self.size)


def draw(files, y, difficulty, n_columns):
    """Draw the hardest and the easiest images of every class, a class below the other."""
    classes = np.unique(y)
    figure, axes = plt.subplots(
        len(classes),
        figsize=(1.1 * n_columns + 0.5, 3.8 * len(classes)),
        squeeze=False,
        layout="constrained",
    )
    for label, ax in zip(classes, axes[:, 0]):
        HardestSamplesDisplay.from_predictions(
            Thumbnails(files),
            # Where difficulty is NaN, the image is not shown.
            np.where(y == label, difficulty, np.nan),
            labels=[path.stem for path in files],
            n_columns=n_columns,
            name=label,
            ax=ax,
        )
    return figure


def main():
    parser = argparse.ArgumentParser(description="Rank the images of a folder by difficulty.")
    parser.add_argument("folder", type=Path, help="one sub-folder a class")
    parser.add_argument("--library", choices=["open_clip", "timm"], default="open_clip")
    parser.add_argument("--model", default="ViT-B-32")
    parser.add_argument("--pretrained", help="a tag or a local file of weights")
    parser.add_argument("--image-size", type=int)
    parser.add_argument("--workers", type=int, default=0, help="processes that read images")
    parser.add_argument("--columns", type=int, default=8, help="images in a row")
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
    draw(files, y, difficulty, args.columns).savefig(args.out, dpi=120)
    print(f"{len(files)} images of {len(np.unique(y))} classes: {args.out}, {table.name}")


if __name__ == "__main__":
    main()
