"""Time of an epoch of CalibratedNetClassifier against plain skorch and against fewer samples.

CPU seconds of one thread, the smallest of interleaved repetitions.

    python -m benchmarks.nets --data DIR
"""

import argparse
import time
from pathlib import Path

import numpy as np
import skorch
import torch
from skorch.dataset import Dataset
from torch import nn

from benchmarks.cifar_networks import ConvNet
from benchmarks.papers.images import as_input, pictures
from skcalib.nets import MLP, CalibratedNetClassifier, EpochPrioritizer
from skcalib.selection import MaxEntropySelector

N_SAMPLES, N_FEATURES, N_CLASSES = 20_000, 64, 10


class OwnDataset(Dataset):
    """A subclass may transform its items, so its batches are collated item by item."""


def epoch_times(fits, repetitions):
    """Return the times of every function, interleaved after one warm-up."""
    times = {name: [] for name in fits}
    for _ in range(repetitions + 1):
        for name, fit in fits.items():
            start = time.process_time()
            fit()
            times[name].append(time.process_time() - start)
    return {name: np.asarray(values[1:]) for name, values in times.items()}


def print_ratios(times, bound):
    """Print smallest times, and the median over the repetitions of the ratio to the bound."""
    for name, seconds in times.items():
        ratio = np.median(seconds / times[bound])
        print(f"{name:32s} {min(seconds) * 1e3:8.1f} ms   {ratio:6.3f} x {bound}", flush=True)


def overhead(repetitions):
    rng = np.random.RandomState(0)
    X = rng.randn(N_SAMPLES, N_FEATURES).astype(np.float32)
    y, weight = rng.randint(N_CLASSES, size=N_SAMPLES), rng.rand(N_SAMPLES)
    options = {
        "module__hidden": (128, 128),
        "module__n_features": N_FEATURES,
        "module__n_classes": N_CLASSES,
        "optimizer": torch.optim.SGD,
        "lr": 0.01,
        "max_epochs": 1,
        "batch_size": 128,
        "train_split": None,
        "iterator_train__shuffle": True,
        "verbose": 0,
        "device": "cpu",
    }
    plain = skorch.NeuralNetClassifier(MLP, criterion=nn.CrossEntropyLoss, **options)
    ours = CalibratedNetClassifier(MLP, **options)
    own = CalibratedNetClassifier(MLP, dataset=OwnDataset, **options)
    print(f"\nAn epoch of an MLP(128, 128) on {N_SAMPLES} samples of {N_FEATURES} features")
    fits = {
        "plain skorch": lambda: plain.partial_fit(X, y),
        "arrays": lambda: ours.partial_fit(X, y),
        "arrays and sample_weight": lambda: ours.partial_fit(X, y, sample_weight=weight),
        "a dataset of one's own": lambda: own.partial_fit(X, y),
    }
    print_ratios(epoch_times(fits, repetitions), "plain skorch")


def selection(X, y, fraction, repetitions):
    record = np.random.RandomState(0).rand(repetitions + 2, len(X)).astype(np.float32)
    selector, n_chosen = MaxEntropySelector(fraction=fraction), round(fraction * len(X))
    options = {"max_epochs": 1, "train_split": None, "batch_size": 64, "device": "cpu"}
    full = CalibratedNetClassifier(ConvNet, **options)
    some = CalibratedNetClassifier(ConvNet, **options)
    recorded = EpochPrioritizer(selector, warmup_epochs=0, target=record)
    by_record = CalibratedNetClassifier(ConvNet, prioritizer=recorded, **options)
    itself = EpochPrioritizer(selector, warmup_epochs=0)
    by_itself = CalibratedNetClassifier(ConvNet, prioritizer=itself, **options)
    fits = {
        "all samples": lambda: full.partial_fit(X, y),
        "these samples": lambda: some.partial_fit(X[:n_chosen], y[:n_chosen]),
        "chosen by a target's record": lambda: by_record.partial_fit(X, y),
        "chosen by the net itself": lambda: by_itself.partial_fit(X, y),
        "  of this, the ranking pass": lambda: by_itself.predict_proba(X),
    }
    print(f"\nAn epoch of a ConvNet on {fraction:.0%} of {len(X)} images of CIFAR-10, 16 x 16")
    times = epoch_times(fits, repetitions)
    print_ratios(times, "these samples")
    for name in list(fits)[2:4]:
        ratio = np.median(times["all samples"] / times[name])
        print(f"speed-up over all samples, {name}: {ratio:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    overhead(options.repetitions)
    images, y = pictures(options.data, "train", 2000)
    X = as_input(images, 16).numpy()
    for fraction in (0.1, 0.2, 0.3):
        selection(X, y, fraction, options.repetitions)


if __name__ == "__main__":
    main()
