"""Time of an epoch of CalibratedNetClassifier against plain skorch and against fewer samples.

python -m benchmarks.nets
"""

import numpy as np
import skorch
import torch
from skorch.dataset import Dataset
from torch import nn

from benchmarks._timing import print_speed, speed_options
from benchmarks.papers.images import small_resnet
from skcalib.nets import MLP, CalibratedNetClassifier, EpochPrioritizer
from skcalib.selection import MaxEntropySelector

N_FEATURES, N_CLASSES = 64, 10


class OwnDataset(Dataset):
    """A subclass may transform its items, so its batches are collated item by item."""


def overhead(n, repeats):
    rng = np.random.RandomState(0)
    X = rng.randn(n, N_FEATURES).astype(np.float32)
    y, weight = rng.randint(N_CLASSES, size=n), rng.rand(n)
    options = {
        "module__hidden_layer_sizes": (128, 128), "module__n_features": N_FEATURES,
        "module__n_classes": N_CLASSES, "optimizer": torch.optim.SGD, "lr": 0.01, "max_epochs": 1,
        "batch_size": 128, "train_split": None, "iterator_train__shuffle": True, "verbose": 0,
        "device": "cpu",
    }  # fmt: skip
    plain = skorch.NeuralNetClassifier(MLP, criterion=nn.CrossEntropyLoss, **options)
    ours = CalibratedNetClassifier(MLP, **options)
    own = CalibratedNetClassifier(MLP, dataset=OwnDataset, **options)
    fits = {
        "plain skorch": lambda: plain.partial_fit(X, y),
        "arrays": lambda: ours.partial_fit(X, y),
        "arrays and sample_weight": lambda: ours.partial_fit(X, y, sample_weight=weight),
        "a dataset of one's own": lambda: own.partial_fit(X, y),
    }
    title = f"epoch of an MLP(128, 128) on {n} samples of {N_FEATURES} features"
    print_speed(title, "plain skorch", fits, repeats=repeats)


def selection(X, y, fraction, repeats):
    record = np.random.RandomState(0).rand(repeats + 2, len(X)).astype(np.float32)
    selector, n_chosen = MaxEntropySelector(fraction=fraction), round(fraction * len(X))
    options = {"max_epochs": 1, "train_split": None, "batch_size": 64, "device": "cpu"}
    full = CalibratedNetClassifier(small_resnet, **options)
    some = CalibratedNetClassifier(small_resnet, **options)
    recorded = EpochPrioritizer(selector, warmup_epochs=0, target=record)
    by_record = CalibratedNetClassifier(small_resnet, prioritizer=recorded, **options)
    itself = EpochPrioritizer(selector, warmup_epochs=0)
    by_itself = CalibratedNetClassifier(small_resnet, prioritizer=itself, **options)
    fits = {
        "all samples": lambda: full.partial_fit(X, y),
        "these samples": lambda: some.partial_fit(X[:n_chosen], y[:n_chosen]),
        "chosen by a target's record": lambda: by_record.partial_fit(X, y),
        "chosen by the net itself": lambda: by_itself.partial_fit(X, y),
        "  of this, the ranking pass": lambda: by_itself.predict_proba(X),
    }
    title = f"epoch of a ResNet-8 on {fraction:.0%} of {len(X)} images, 16 x 16"
    seconds = print_speed(title, "these samples", fits, repeats=repeats)
    for name in list(fits)[2:4]:
        ratio = seconds["all samples"] / seconds[name]
        print(f"  speed-up over all samples, {name}: {ratio:.2f}")


def main():
    options = speed_options(__doc__)
    overhead(options.size(20_000), 2 * options.repeats)
    n = options.size(2000)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 3, 16, 16)).astype(np.float32), np.arange(n) % N_CLASSES
    for fraction in (0.1, 0.2, 0.3):
        selection(X, y, fraction, 2 * options.repeats)


if __name__ == "__main__":
    main()
