"""[RMD] and [GRA] on CIFAR-10 images: one task, the rows of cross-entropy shared.

Students learn images of the test split: the network whose features score their difficulty has seen
none of them, and people have labeled all of them (CIFAR-10H).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch
from sklearn.datasets import load_digits, load_sample_images
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.difficulty import RelativeMahalanobisScorer

from .compare import compare
from .images import Pictures, as_input, human_proba, pictures, small_resnet
from .methods import GRA_IMAGES, RMD_IMAGES
from .records import Records
from .rotation import rotation_features
from .students import Settings
from .tasks import Scored, noisy_labels, rivals_of

NOISES = ("clean", "U20", "I20")
SETTINGS = Settings(n_epochs=10, lr=0.01, batch_size=100, cosine=True)
N_TRAIN, N_TEST, N_OOD, SIZE = 4000, 4000, 500, 16
PARTS = ("rmd", "gra", "flips")
ASKED = (
    "RMD", "RMD by rotation", "RMD without label", "Mahalanobis", "k-means", "loss, out-of-fold",
)  # fmt: skip


def run(options):
    images = Cifar(options.data, options.out)
    records = Records(options.out / "cifar.jsonl")
    for part in PARTS:
        if options.only in ("", part):
            globals()[f"study_{part}"](images, records, options)


def study_rmd(images, records, options):
    for noise in options.noise or NOISES:
        methods = [m for m in RMD_IMAGES if noise != "clean" or m.name != "true labels"]
        make = partial(cifar_task, images, noise)
        compare(records, make, methods, SETTINGS, noise, range(options.seeds))


def study_gra(images, records, options):
    """The losses of [GRA] on clean labels; those that both papers have are found."""
    make = partial(cifar_task, images, "clean")
    compare(records, make, GRA_IMAGES, SETTINGS, "clean", range(options.seeds))


def study_flips(images, records, options):
    for noise in ("U20", "I20"):
        for seed in range(options.seeds):
            key = {"setting": noise, "method": "AUROC of flips", "seed": seed}
            records.get(key, partial(_auroc_of_flips, images, noise, seed))


def _auroc_of_flips(images, noise, seed):
    task = cifar_task(images, noise, seed)
    wrong = task.given != task.true
    return {"auroc": {name: roc_auc_score(wrong, task.difficulty(name)) for name in ASKED}}


class Cifar:
    """The test split as students see it, with features and human labels."""

    def __init__(self, folder, cache):
        images, self.labels = pictures(folder, "test")
        self.inputs = as_input(images, SIZE)
        self.human = human_proba(folder)
        with np.load(folder / "cifar10_resnet20_features.npz") as data:
            self.features = data["features"].astype(np.float64)
        self.rotation = rotation_features(folder, cache).astype(np.float64)
        self.ood = Pictures(as_input(np.concatenate([enlarged_digits(), crops()]), SIZE))

    @property
    def rivals(self):
        return _rivals(self)


@cache
def _rivals(images):
    """The wrong class to flip to, by out-of-fold logistic regression on rotation features."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    X, y = images.rotation, images.labels
    return rivals_of(cross_val_predict(model, X, y, cv=folds, method="predict_proba"), y)


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


@dataclass(kw_only=True)
class CifarTask(Scored):
    """Images to learn from with the labels given, and those to judge by."""

    rotation: np.ndarray
    inputs: dict
    val_labels: dict
    test_labels: np.ndarray
    human: np.ndarray

    def net(self):
        return small_resnet()

    def difficulty(self, source):
        if source == "RMD by rotation" and source not in self._difficulty:
            scorer = RelativeMahalanobisScorer().fit(self.rotation, self.given)
            self._difficulty[source] = scorer.difficulty(self.rotation, self.given)
        return super().difficulty(source)


def cifar_task(images, noise, seed):
    """Draw training and validation images anew for each seed; the test images stay."""
    rows = np.random.default_rng(1000).permutation(len(images.labels))
    test, pool = rows[:N_TEST], rows[N_TEST:]
    order = np.random.default_rng(seed).permutation(pool)
    train, val = order[:N_TRAIN], order[N_TRAIN:]
    y = images.labels
    rivals = [values[train] for values in images.rivals] if noise[0] == "I" else None
    parts = {"train": train, "val": val, "test": test}
    inputs = {name: Pictures(images.inputs[torch.from_numpy(r)]) for name, r in parts.items()}
    return CifarTask(
        inputs=inputs | {"ood": images.ood},
        given=noisy_labels(y[train], noise, seed, rivals),
        true=y[train],
        features=images.features[train],
        rotation=images.rotation[train],
        val_labels={"clean": y[val]},
        test_labels=y[test],
        human=images.human[test],
        seed=seed,
    )
