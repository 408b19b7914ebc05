"""The papers' own settings on CIFAR-10 and CIFAR-100, for an accelerator: ``--scale full``.

[RMD]: ResNet-18, 200 epochs, SGD with a cosine schedule. [GRA]: ResNet-50, 350 epochs. Batches of
128, learning rate .1, weight decay 5e-4, flips and shifts, bfloat16 on CUDA; the parameters of the
losses are the published ones, so that nothing is chosen. 5000 training images are held out for
validation. Difficulty needs features of the training images: ``--features`` names an ``.npz`` with
``train`` (50000, d), made for instance by ``skcalib.embeddings.OpenClipEmbedder``; without it, the
methods that need difficulty are left out. CIFAR-100 is read from ``cifar100.npz`` in the data
folder, with ``train_images``, ``train_y``, ``test_images``, ``test_y``.

[PRIO] and [DEPTH] in full are ``benchmarks.prioritization`` and ``benchmarks.example_difficulty``
with all samples, 32 pixels and deeper networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from skcalib import losses
from skcalib.difficulty import RelativeMahalanobisScorer, difficulty_weights

from .compare import compare
from .images import ImageTask, Pictures, as_input, human_proba, pictures
from .methods import Method, aware, by_loss, grid, ranked
from .records import Records
from .students import Settings

N_CLASSES = {"cifar10": 10, "cifar100": 100}


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


def _images(options):
    if options.dataset == "cifar10":
        return pictures(options.data, "train"), pictures(options.data, "test")
    with np.load(options.data / "cifar100.npz") as data:
        return tuple((data[f"{s}_images"], data[f"{s}_y"].astype(int)) for s in ("train", "test"))


def full_task(options, network, seed):
    (images, y), (test, y_test) = _images(options)
    n_used = options.images or len(y)
    rows = np.random.default_rng(seed).permutation(len(y))[:n_used]
    n_val = n_used // 10
    train, val = rows[n_val:], rows[:n_val]
    test, y_test = test[: options.images], y_test[: options.images]
    features = np.load(options.features)["train"][train] if options.features else None
    parts = {"train": images[train], "val": images[val], "test": test}
    human = human_proba(options.data)[: len(y_test)] if options.dataset == "cifar10" else None
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
        published = grid(temperature=(0.7,), alpha=(0.3,))
        yield Method("difficulty-aware, min-max", aware(scale="minmax"), published)
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


STUDIES = {"rmd": (rmd_methods, "resnet18", 200), "gra": (gra_methods, "resnet50", 350)}


def run(options):
    if options.study not in STUDIES:
        raise SystemExit(f"--scale full is there for {' and '.join(STUDIES)}; see {__file__}")
    methods, network, n_epochs = STUDIES[options.study]
    network = options.network or network
    settings = Settings(
        n_epochs=options.epochs or n_epochs, lr=0.1, batch_size=128, weight_decay=5e-4,
        optimizer="sgd", device=options.device,
    )  # fmt: skip
    records = Records(options.out / f"full_{options.study}.jsonl")
    chosen = [m for m in methods(options) if options.only in m.name]
    setting = f"{options.dataset}, {network}"
    make = partial(full_task, options, network)
    compare(records, make, chosen, settings, setting, range(options.seeds), every=True)
