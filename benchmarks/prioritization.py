"""The seed experiment of Tata et al. (2022) in small: train on the least certain images.

Every run trains the same small residual network on CIFAR-10 for the same number of epochs, on all
samples or, after a warm-up, on the fraction of them that ranks highest by predictive entropy: by
that of the network itself ("self"), by that which a deeper target network had after as many epochs
of its own training on all samples with the same loss ("target"), or at random ("random"). Seconds
are CPU seconds of one thread, and those of a target are not added to the runs that it guides.
benchmarks/prioritization.json holds the runs of the user guide (--losses cross-entropy); runs that
are there already are not repeated. Without --data, the table of the guide is made of them.

    python -m benchmarks.prioritization [--data DIR] [--out FILE]
"""

import argparse
import io
import json
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from skorch.callbacks import LRScheduler
from torch import nn

from benchmarks.cifar_networks import CifarResNet
from benchmarks.papers.statistics import mean_and_error
from benchmarks.papers.tables import csv_table
from skcalib.losses import FocalLoss, LabelSmoothingLoss
from skcalib.metrics import expected_calibration_error
from skcalib.nets import CalibratedNetClassifier, EpochPrioritizer, TrainingDynamics
from skcalib.selection import MaxEntropySelector

FRACTIONS = (1.0, 0.3, 0.2, 0.1)
# The paper's parameters for CIFAR-10 at those fractions.
LOSSES = {
    "cross-entropy": [{"criterion": nn.CrossEntropyLoss}] * 4,
    "label smoothing": [
        {"criterion": LabelSmoothingLoss, "criterion__alpha": a} for a in (0.03, 0.05, 0.05, 0.03)
    ],
    "mixup": [{"criterion": nn.CrossEntropyLoss, "mixup_alpha": a} for a in (0.1, 0.3, 0.2, 0.15)],
    "focal": [{"criterion": FocalLoss, "criterion__gamma": g} for g in (1, 3, 3, 3)],
}
GUIDES = {"random": "random", "self": "the net itself", "target": "target"}
RESULTS = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[1] / "docs/user_guide/prioritization.inc"


def load(path, split, n_rows, size):
    """Return (n_rows, 3, size, size) images, block means of the originals, and their labels."""
    with np.load(path / "cifar10_jpeg.npz") as data:
        jpeg, offsets = data[f"{split}_jpeg"], data[f"{split}_offsets"]
        y = data[f"{split}_y"][:n_rows].astype(np.int64)
    images = np.stack(
        [
            np.asarray(Image.open(io.BytesIO(jpeg[offsets[i] : offsets[i + 1]].tobytes())))
            for i in range(n_rows)
        ]
    )
    step = images.shape[1] // size
    blocks = images.reshape(n_rows, size, step, size, step, 3).mean(axis=(2, 4))
    return (blocks.transpose(0, 3, 1, 2) / 255).astype(np.float32), y


def make_net(options, depth, params):
    schedule = LRScheduler("CosineAnnealingLR", T_max=options.epochs)
    params = {
        "callbacks": [schedule],
        "optimizer__momentum": 0.9,
        "optimizer__nesterov": True,
        "optimizer__weight_decay": 5e-4,
        "optimizer": torch.optim.SGD,
        "lr": 0.05,
        "batch_size": 64,
        "max_epochs": options.epochs,
        "train_split": None,
        "device": "cpu",
        **params,
    }
    return CalibratedNetClassifier(CifarResNet, module__depth=depth, **params)


def runs(seeds, losses):
    for seed in range(seeds):
        for loss in losses:
            yield seed, loss, 1.0, "-"
        for loss in losses:
            for guide in ("self", "target", "random"):
                for fraction in FRACTIONS[1:]:
                    yield seed, loss, fraction, guide


class Experiment:
    def __init__(self, options):
        self.options = options
        self.X, self.y = load(options.data, "train", options.samples, options.size)
        self.X_test, self.y_test = load(options.data, "test", options.test_samples, options.size)
        mean = self.X.mean(axis=(0, 2, 3), keepdims=True)
        std = self.X.std(axis=(0, 2, 3), keepdims=True)
        self.X, self.X_test = (self.X - mean) / std, (self.X_test - mean) / std
        self.targets = {}

    def run(self, seed, loss, fraction, guide):
        params = {"random_state": seed, **LOSSES[loss][FRACTIONS.index(fraction)]}
        if guide != "-":
            criterion = "random" if guide == "random" else "entropy"
            params["prioritizer"] = EpochPrioritizer(
                MaxEntropySelector(fraction=fraction, criterion=criterion),
                warmup_epochs=self.options.warmup,
                target=self.target(seed, loss) if guide == "target" else None,
            )
        return self.measure(make_net(self.options, self.options.depth, params))

    def target(self, seed, loss):
        """Return the entropies of the target's own training, line e after e epochs."""
        if (seed, loss) not in self.targets:
            dynamics = TrainingDynamics()
            params = {"random_state": 100 + seed, **LOSSES[loss][0]}
            net = make_net(self.options, self.options.target_depth, params)
            net.set_params(callbacks=[*net.callbacks, dynamics])
            self.record(seed, loss, 1.0, "(the target)", *self.measure(net))
            self.targets[seed, loss] = dynamics.entropy_.astype(np.float32)
        return self.targets[seed, loss]

    def measure(self, net):
        start = time.process_time()
        net.fit(self.X, self.y)
        seconds = time.process_time() - start
        proba = net.predict_proba(self.X_test)
        accuracy = (proba.argmax(1) == self.y_test).mean()
        ece = expected_calibration_error(self.y_test, proba)
        seen = len(self.X) * self.options.epochs
        if net.prioritizer is not None:
            seen = sum(net.history[:, "samples_seen"])
        return accuracy, ece, seen, seconds

    def record(self, seed, loss, fraction, guide, accuracy, ece, seen, seconds):
        run = {
            "seed": seed,
            "loss": loss,
            "fraction": fraction,
            "guide": guide,
            "accuracy": round(float(accuracy), 4),
            "ece": round(ece, 4),
            "samples_seen": seen,
            "seconds": round(seconds, 1),
        }
        print(run, flush=True)
        lines = ",\n".join(map(json.dumps, [*finished(self.options.out), run]))
        self.options.out.write_text(f"[\n{lines}\n]\n")


def finished(out):
    return json.loads(out.read_text()) if out.exists() else []


def cell(runs, loss, fraction, guide):
    """Return accuracy and ECE as the guide shows them: means over the seeds, standard errors."""
    wanted = (loss, fraction, guide)
    found = [r for r in runs if (r["loss"], r["fraction"], r["guide"]) == wanted]
    accuracy, ece = (
        mean_and_error([100 * r[name] for r in found]) for name in ("accuracy", "ece")
    )
    return "{:.1f} ± {:.1f} %, ECE {:.1f} ± {:.1f} %".format(*accuracy, *ece)


def page(runs, loss="cross-entropy"):
    """Return the guide's table of a loss, and the line about all samples."""
    rows = [
        [f"{100 * fraction:.0f} %", *(cell(runs, loss, fraction, guide) for guide in GUIDES)]
        for fraction in FRACTIONS[1:]
    ]
    table = csv_table("", ["samples", *GUIDES.values()], rows)
    return f"{table}\nAll samples: {cell(runs, loss, 1.0, '-')}.\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--test-samples", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=16, help="pixels a side: 32, 16 or 8")
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--target-depth", type=int, default=14)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    options = parser.parse_args()
    if options.data is not None:
        torch.set_num_threads(1)
        experiment, done = Experiment(options), finished(options.out)
        done = {(r["seed"], r["loss"], r["fraction"], r["guide"]) for r in done}
        for run in runs(options.seeds, options.losses):
            if run not in done:
                experiment.record(*run, *experiment.run(*run))
        for loss in options.losses:
            print(f"\n{loss}\n{page(finished(options.out), loss)}")
    if options.out == RESULTS:
        PAGE.write_text(page(finished(RESULTS)))


if __name__ == "__main__":
    main()
