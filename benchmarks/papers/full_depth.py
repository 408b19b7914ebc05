"""[DEPTH] on CIFAR-10, CIFAR-100, SVHN and Fashion-MNIST, as far as they are in the data folder.

ResNet-18 (group normalization, weight standardization), VGG16 and a perceptron; 250 networks each,
every one of which holds out a tenth of the training images; nearest-neighbor probes of 30
neighbors. Then one network that is asked about other held-out images, and one that memorizes 40 %
flipped labels. Depths of the held-out images are compared between architectures.

Learning rates, momentum and steps are those of the paper's Table 1 for CIFAR-10; VGG16 has no
batch normalization. Our reading: seven hidden layers of 2048 units, a tenth of the rate after each
number of steps, batches of 256, and no augmentation, so that probes and network
see the same images. Activations of more than 1024 features are reduced to 1024 by a random
projection: all of those of a ResNet-18 would take 100 GB. Finished networks are kept, one file
each, so that an interrupted study goes on: 250 networks take days.
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
from .full import PUBLISHED, image_set, named_setting
from .images import as_input
from .runner import found
from .students import half_precision

N_IMAGES, BATCH = 45_000, 256
DEPTH = PUBLISHED["depth"]
# The network of a number of classes.
NETWORKS = {
    "resnet18": cifar_resnet18,
    "vgg16": cifar_vgg16,
    "mlp": lambda n_classes: MLP(3 * 32 * 32, n_classes, hidden=(2048,) * 7),
}


def schedule(name):
    """Return epochs in all, and those after which the rate falls."""
    ends = np.ceil(np.cumsum(DEPTH[name]["steps"]) * BATCH / N_IMAGES).astype(int).tolist()
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


def scorer(options, name, seed=None, max_iter=None):
    n_epochs, milestones = schedule(name)
    longer = (max_iter or options.epochs or n_epochs) / n_epochs
    milestones = [round(longer * at) for at in milestones]
    net = CalibratedNetClassifier(
        ImageNetwork, module__name=name, max_epochs=round(longer * n_epochs),
        lr=DEPTH[name]["lr"], optimizer=torch.optim.SGD, batch_size=BATCH, train_split=None,
        optimizer__momentum=DEPTH[name]["momentum"], device=options.device,
        callbacks=[LRScheduler("MultiStepLR", milestones=milestones)],
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
    # The random labels are memorized by twice the epochs that the right ones take.
    values |= of_random_labels(X, y, seed, make, 2 * (options.epochs or schedule(name)[0]))
    return found(name, "value", {name: float(value) for name, value in values.items()})


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
