"""The papers' own settings on images, for an accelerator: ``--scale full``.

``published.py`` has the settings as the papers print them. [RMD]: ResNet-34, 200 epochs, SGD with
a cosine schedule (ours). [GRA]: ResNet-50, 350 epochs, learning rate divided by ten after 150 and
250; the exponents are those of CIFAR-100, where the paper chooses them by cross-validation.
Batches of 128, flips and shifts, bfloat16 on CUDA; nothing is chosen. A tenth of the training
images is held out for validation. Difficulty needs features of them: ``--features`` names an
``.npz`` with ``train`` (50000, d), made for instance by ``skcalib.embeddings.OpenClipEmbedder``;
without it, the methods that need difficulty are left out. [PRIO] is in ``full_prio.py``, [DEPTH]
in ``full_depth.py``; ``gpu.py`` is a part that takes ten minutes.

CIFAR-10 is ``cifar10_jpeg.npz`` in the data folder, one file of 56 MB, which is enough (with
``cifar10h.npz`` beside it, predictions are compared with human labels too). The other sets are
``cifar100.npz``, ``svhn.npz`` and ``fashion_mnist.npz``, with ``train_images``, ``train_y``,
``test_images``, ``test_y``: bytes of shape (n, 32, 32, 3), or (n, 28, 28) for gray images, which
get a black border and three equal channels.

``--epochs`` and ``--images`` make a trial, whose runs are kept apart from those in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib import import_module

import numpy as np
import torch

from skcalib import losses
from skcalib.difficulty import RelativeMahalanobisScorer, difficulty_weights

from .compare import compare
from .images import ImageTask, Pictures, as_input, human_proba, pictures
from .methods import Method, aware, by_loss, grid, ranked
from .published import DIFFICULTY_AWARE, STUDENTS
from .records import Records
from .students import Settings

N_CLASSES = {"cifar10": 10, "cifar100": 100, "svhn": 10, "fashion_mnist": 10}


@dataclass
class FullTask(ImageTask):
    """Images with the difficulty of those that are trained on."""

    features: np.ndarray | None = None

    def weights(self, source, *, temperature, scale="rank", control=None):
        scorer = RelativeMahalanobisScorer().fit(self.features, self.given)
        difficulty = scorer.difficulty(self.features, self.given)
        return difficulty_weights(difficulty, temperature=temperature, scale=scale)


def resnet(name, n_classes):
    """Return a ResNet of torchvision with the stem for 32 x 32 pixels."""
    from torchvision import models

    net = models.get_model(name, num_classes=n_classes)
    net.conv1 = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False)
    net.maxpool = torch.nn.Identity()
    return net


def image_set(options):
    """Return (images, labels) of the training and of the test images, (n, 32, 32, 3) bytes."""
    if options.dataset == "cifar10":
        return pictures(options.data, "train"), pictures(options.data, "test")
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


def full_task(options, network, seed):
    (images, y), (test, y_test) = image_set(options)
    n_used = min(options.images or len(y), len(y))
    rows = np.random.default_rng(seed).permutation(len(y))[:n_used]
    n_val = n_used // 10
    train, val = rows[n_val:], rows[:n_val]
    test, y_test = test[: options.images], y_test[: options.images]
    features = np.load(options.features)["train"][train] if options.features else None
    parts = {"train": images[train], "val": images[val], "test": test}
    human = None
    if options.dataset == "cifar10" and (options.data / "cifar10h.npz").exists():
        human = human_proba(options.data)[: len(y_test)]
    return FullTask(
        inputs={
            name: Pictures(as_input(part), augment=name == "train", device=options.device)
            for name, part in parts.items()
        },
        given=y[train],
        val_labels={"clean": y[val]},
        test_labels=y_test,
        make_net=partial(resnet, network, N_CLASSES[options.dataset]),
        seed=seed,
        human=human,
        features=features,
    )


def rmd_methods(options):
    alpha = 0.05 if options.dataset == "cifar10" else 0.01
    yield Method("cross-entropy", by_loss(losses.cross_entropy_loss))
    yield Method("label smoothing", by_loss(losses.label_smoothing_loss), grid(alpha=(0.1,)))
    yield Method("focal", by_loss(losses.focal_loss), grid(gamma=(3.0,)))
    yield Method("L1 of logits", by_loss(losses.logit_norm_loss), grid(alpha=(alpha,)))
    entropy = by_loss(losses.entropy_regularized_loss)
    yield Method("entropy regularization", entropy, grid(alpha=(0.1,)))
    yield Method("Poly-1", by_loss(losses.poly_loss), grid(epsilon=(1.0,)))
    yield Method("correctness ranking", ranked, grid(weight=(1.0,)))
    if options.features:
        letter = (DIFFICULTY_AWARE,)
        yield Method("difficulty-aware, as published", aware(scale=None), letter)
        yield Method("difficulty-aware, min-max", aware(scale="minmax"), letter)
        yield Method("difficulty-aware", aware(), grid(temperature=(0.3,), alpha=(0.3,)))


def gra_methods(options):
    yield Method("cross-entropy", by_loss(losses.cross_entropy_loss))
    yield Method("Brier", by_loss(losses.brier_loss))
    yield Method("MMCE", by_loss(losses.mmce_loss))
    yield Method("focal", by_loss(losses.focal_loss), grid(gamma=(3.0,)))
    flsd = losses.sample_dependent_focal_loss
    yield Method("FLSD-53", by_loss(flsd))
    yield Method("FLSD-GRA", by_loss(flsd, detach_weight=True))
    yield Method("dual focal", by_loss(losses.dual_focal_loss))
    yield Method("dual focal-GRA", by_loss(losses.dual_focal_loss, detach_weight=True))
    yield Method("BSCE", by_loss(losses.bsce_loss))
    yield Method("BSCE-GRA", by_loss(losses.bsce_gra_loss))


def image_settings(options, study, batch_size=128, **other):
    """Return the settings of a study; those of a trial keep the shares of the milestones."""
    student = {"lr": 0.1, "milestones": (), **STUDENTS[study], **other}
    n_epochs = options.epochs or student["n_epochs"]
    milestones = (round(at * n_epochs / student["n_epochs"]) for at in student["milestones"])
    return Settings(
        n_epochs=n_epochs, lr=student["lr"], batch_size=batch_size, device=options.device,
        weight_decay=student["weight_decay"], optimizer="sgd", milestones=tuple(milestones),
    )  # fmt: skip


COMPARED = {"rmd": rmd_methods, "gra": gra_methods}
OTHERS = {"prio": "full_prio", "depth": "full_depth"}


def run(options):
    if options.study in OTHERS:
        import_module(f"benchmarks.papers.{OTHERS[options.study]}").run(options)
        return
    if options.study not in COMPARED:
        raise SystemExit(f"--scale full is there for {', '.join([*COMPARED, *OTHERS])}")
    methods = COMPARED[options.study]
    network = options.network or STUDENTS[options.study]["network"]
    compare(
        Records(options.out / f"full_{options.study}.jsonl"),
        partial(full_task, options, network),
        [m for m in methods(options) if options.only in m.name],
        image_settings(options, options.study),
        named_setting(options, network),
        range(options.seeds),
        every=True,
    )
