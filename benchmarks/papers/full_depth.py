"""[DEPTH] on CIFAR-10, CIFAR-100, SVHN and Fashion-MNIST, as far as they are in the data folder.

ResNet-18 (group normalization, weight standardization), VGG16 and a perceptron; 250 networks each,
every one of which holds out a tenth of the training images; nearest-neighbor probes of 30
neighbors. Then one network that is asked about other held-out images, and one that memorizes 40 %
flipped labels. Depths of the held-out images are compared between architectures.

All as the paper prints it: learning rates, momentum and steps of each data set and of flipped
labels on CIFAR-10 (Table 1), a fifth of the rate after each number of steps, batches of 256 (A.3),
seven hidden layers of 2048 units (A.2.3), VGG16 without batch normalization (A.2.2), and no
augmentation (A.2.4). Where it prints nothing for flipped labels, they take twice the epochs of the
right ones. Ours: bfloat16 on CUDA, and activations of more than 1024 features are reduced to 1024
by a random projection: all of those of a ResNet-18 would take 100 GB. Finished networks are kept,
one file each, so that an interrupted study goes on: 250 networks take days.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import torch
from skorch.callbacks import LRScheduler

from benchmarks.cifar_networks import cifar_resnet18, cifar_vgg16
from skcalib.difficulty import DifficultyProfiler, PredictionDepthScorer
from skcalib.nets import MLP, CalibratedNetClassifier

from .depth import of_a_fresh_network, of_random_labels, of_the_ensemble, rank_correlation
from .images import as_input
from .published import PUBLISHED, image_set, named_setting
from .runner import found
from .students import half_precision

BATCH = 256
# Nine tenths of the training images.
N_IMAGES = {"cifar10": 45_000, "cifar100": 45_000, "svhn": 65_931, "fashion_mnist": 54_000}
FLIPPED = ", 40 % flipped"
DEPTH = PUBLISHED["depth"]
# The network of a number of classes.
NETWORKS = {
    "resnet18": cifar_resnet18,
    "vgg16": cifar_vgg16,
    "mlp": lambda n_classes: MLP(3 * 32 * 32, n_classes, hidden_layer_sizes=(2048,) * 7),
}


def published(dataset, name, *, flipped=False):
    """Return rate, momentum and steps; with `flipped` those for flipped labels, where printed."""
    of_flips = DEPTH.get(dataset + FLIPPED, {}) if flipped else {}
    return of_flips.get(name, DEPTH[dataset][name])


def schedule(dataset, steps):
    """Return epochs in all, and those after which the rate falls."""
    ends = np.ceil(np.cumsum(steps) * BATCH / N_IMAGES[dataset]).astype(int).tolist()
    return ends[-1], ends[:-1]


class ImageNetwork(torch.nn.Module):
    """One of the networks by name, which trains in bfloat16 on CUDA; what is read is float32."""

    def __init__(self, name, n_classes):
        super().__init__()
        self.network = NETWORKS[name](n_classes)

    def forward(self, X):
        device = X.device.type if self.training else "cpu"
        with half_precision(device):
            return self.network(X).float()


def scorer(options, name, seed=None, max_iter=None, *, flipped=False):
    how = published(options.dataset, name, flipped=flipped)
    n_epochs, milestones = schedule(options.dataset, how["steps"])
    longer = (max_iter or options.epochs or n_epochs) / n_epochs
    milestones = [round(longer * at) for at in milestones]
    net = CalibratedNetClassifier(
        ImageNetwork, module__name=name, max_epochs=round(longer * n_epochs),
        lr=how["lr"], optimizer=torch.optim.SGD, batch_size=BATCH, train_split=None,
        optimizer__momentum=how["momentum"], device=options.device,
        callbacks=[LRScheduler("MultiStepLR", milestones=milestones, gamma=0.2)],
        random_state=seed, verbose=0,
    )  # fmt: skip
    return PredictionDepthScorer(net, n_components=1024, random_state=0)


def run(options, records):
    names = [name for name in NETWORKS if options.only in name]
    for seed in options.seeds:
        made = {name: partial(measured, options, name, seed) for name in names}
        if len(names) > 1:
            made[" and ".join(names)] = partial(between_architectures, options, names, seed)
        for name, compute in made.items():
            setting = named_setting(options, name)
            key = {"setting": setting, "networks": options.networks, "seed": seed}
            records.get(key, compute)


def measured(options, name, seed):
    (images, y), _ = image_set(options)
    X, y = as_input(images[: options.images]).numpy(), y[: options.images]
    make = partial(scorer, options, name)
    profiler = DifficultyProfiler(
        make(), n_repeats=options.networks, test_size=0.1, random_state=seed,
        folder=_folder(options, name, seed), verbose=10,
    ).fit(X, y)  # fmt: skip
    np.save(_folder(options, name, seed) / "depth.npy", profiler.profile_["depth_held_out"])
    values = of_the_ensemble(profiler, y)
    values |= of_a_fresh_network(X, y, profiler.profile_["difficulty_type"], seed, make)
    values |= of_random_labels(
        X, y, seed, partial(make, flipped=True), epochs_for_flips(options, name)
    )
    return found(name, "value", {name: float(value) for name, value in values.items()})


def epochs_for_flips(options, name):
    """Return the epochs that memorize flipped labels; None: those of the printed steps."""
    if not options.epochs and name in DEPTH.get(options.dataset + FLIPPED, {}):
        return None
    n_epochs, _ = schedule(options.dataset, published(options.dataset, name)["steps"])
    return 2 * (options.epochs or n_epochs)


def _folder(options, name, seed):
    setting = named_setting(options, name).replace(", ", "-").replace(" ", "_")
    return options.out / f"full_depth-{setting}-{seed}"


def between_architectures(options, names, seed):
    """Rank correlations of the mean depths of held-out images."""
    depth = {name: np.load(_folder(options, name, seed) / "depth.npy") for name in names}
    values = {
        f"depths of {a} and {b}": float(rank_correlation(depth[a], depth[b]))
        for a, b in combinations(names, 2)
    }
    return found("between architectures", "value", values)
