"""[PRIO]: which images to train on, at equal numbers of epochs; CIFAR-10.

Residual networks with 8 layers learn 3000 images of 16 x 16 pixels in 30 epochs: two on all
images, each of the others on the 30, 20 or 10 % of them that the network itself is least certain
of, as on the poster. "Random samples" are as many images, drawn anew for every epoch. The
optimizer is that of the poster: stochastic gradient descent with momentum .9, weight decay 0.0005
and a cosine schedule, from the learning rate .1; batches have 50 images. Nothing is flipped or
shifted, so that a network grows overconfident in so few steps. Each loss chooses its parameter at
each fraction by the log-loss of 2000 further images, on a seed that is not reported. A target is
a residual network with 14 layers that learns all images with mixup, at the poster's parameter .3.
It guides a student by what it was unsure of after as many epochs; with a target, each loss
chooses its parameter anew, as in the poster's Table 2.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import torch

from ..cifar_networks import CifarResNet
from . import prio
from .images import SIZE, Pictures, as_input, human_proba, pictures, small_resnet
from .methods import CE, FOCAL, LS, Method, grid, mixed
from .prio import FRACTIONS, WITH_TARGET, Chooser, judged, recorded
from .results import Part, Study, described
from .runner import compare
from .students import Settings, Trainer
from .tasks import Task

N_WARMUP, TARGET_MIXUP = 2, 0.3
SETTINGS = Settings(n_epochs=30, lr=0.1, batch_size=50, weight_decay=5e-4, optimizer="sgd")
N_POOL, N_TRAIN, N_VAL, N_TEST = 20_000, 3000, 2000, 4000
ALONE = (
    CE,
    replace(LS, candidates=grid(alpha=(0.03, 0.1, 0.2))),
    Method("mixup", mixed, grid(mixup_alpha=(0.1, 0.3, 1.0))),
    replace(FOCAL, candidates=grid(gamma=(1.0, 2.0, 3.0))),
)


class Images:
    """Images to draw from, and those that all students are tested on."""

    def __init__(self, folder):
        self.folder = folder

    @cached_property
    def parts(self):
        images, y = pictures(self.folder, "train", N_POOL)
        test, y_test = pictures(self.folder, "test")
        rows = np.random.default_rng(1000).permutation(len(test))[:N_TEST]
        human = human_proba(self.folder)[rows]
        return as_input(images, SIZE), y, as_input(test[rows], SIZE), y_test[rows], human

    def task(self, seed):
        images, y, test, y_test, human = self.parts
        rows = np.random.default_rng(seed).permutation(len(y))[: N_TRAIN + N_VAL]
        train, val = np.split(rows, [N_TRAIN])
        return Task(
            inputs={
                "train": Pictures(images[train]),
                "val": Pictures(images[val]),
                "test": Pictures(test),
            },
            given=y[train], true=y[train], val_labels={"clean": y[val]}, test_labels=y_test,
            make_net=small_resnet, seed=seed, human=human, features=None,
        )  # fmt: skip


def losses(options, records):
    """Every loss at every fraction by the student's own entropy; on a fifth, by a target's too."""
    make = Images(options.data).task
    for setting in options.noise or sorted(FRACTIONS, key=lambda name: name != WITH_TARGET):
        train_one = partial(prioritized, options.out, FRACTIONS[setting])
        by = partial(compare, records, make, stops=False, train_one=train_one)
        methods = [*ALONE, replace(CE, name="random samples")]
        if setting == WITH_TARGET:
            methods += [replace(method, name=f"{method.name}, target") for method in ALONE]
        by(methods, SETTINGS, setting, options.seeds)


def prioritized(folder, fraction, task, method, options, settings, seed, stops):
    """Train with prioritization; measure after the last epoch."""
    guide = "random" if method.name == "random samples" else "entropy"
    if method.name.endswith(", target"):
        guide = target_entropies(folder, task, settings)
    torch.manual_seed(seed)
    trainer = Trainer(task.net(), task.inputs["train"], method.plan(task, **options), settings)
    chooser = Chooser(task, guide, seed, fraction)
    choose = lambda net, epoch: trainer.rows if epoch < N_WARMUP else chooser.choose(net)
    for _ in trainer.epochs(settings.n_epochs, choose):
        pass
    return {"points": {"last": judged(task, trainer.net)}}


def target_entropies(folder, task, settings):
    """Return the entropies (epochs, n) that a target trained with mixup went through."""
    path = folder / f"prio_images_target_{task.seed}.npy"
    if not path.exists():
        torch.manual_seed(task.seed + 700)
        net = CifarResNet(14, n_classes=10)
        net.stem.append(torch.nn.MaxPool2d(2))
        trainer = Trainer(net, task.inputs["train"], mixed(task, TARGET_MIXUP), settings)
        np.save(path, recorded(trainer, trainer.inputs, settings.n_epochs))
    return np.load(path)


# The claims of the poster, of images; what texts alone were asked is not asked here.
CLAIMS = tuple(
    replace(claim, part="prio_images", headline="")
    for claim in prio.CLAIMS
    if claim.part in ("prio_losses", "prio_targets")
)
GUIDED = tuple(replace(method, name=f"{method.name}, target") for method in ALONE)
FILES = ("cifar10_jpeg.npz", "cifar10h.npz")
STUDY = Study(
    "[PRIO], images",
    {"prio_images": Part(losses, order=(*ALONE, *GUIDED), shown=prio.SHOWN, files=FILES)},
    CLAIMS,
    described(__doc__),
)
