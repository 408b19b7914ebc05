"""The seed experiment of Tata et al. (2022) in small: train on the least certain images.

Every run trains the same small residual network on CIFAR-10 for the same number of epochs, on all
samples or, after a warm-up, on the fraction of them that ranks highest by predictive entropy: by
that of the network itself ("self"), by that which a deeper target network had after as many epochs
of its own training on all samples with the same loss ("target"), or at random ("random"). Seconds
are CPU seconds of one thread, and those of a target are not added to the runs that it guides.
benchmarks/prioritization.json holds the runs of the user guide, whose table is printed; runs that
are there already are not repeated.

    python -m benchmarks.prioritization --data DIR [--out FILE] [--table]
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
RESULTS = Path(__file__).with_suffix(".json")


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
    """Return accuracy and ECE as the guide shows them, means over the seeds."""
    wanted = (loss, fraction, guide)
    found = [r for r in runs if (r["loss"], r["fraction"], r["guide"]) == wanted]
    accuracy, ece = (np.mean([r[name] for r in found]) for name in ("accuracy", "ece"))
    return f"{100 * accuracy:.1f} %, ECE {100 * ece:.1f} %"


def table(runs, loss):
    """Return the rows of the guide's table of one loss."""
    return [
        "  ".join(
            [f"{fraction:.0%}".replace("%", " %")]
            + [cell(runs, loss, fraction, guide) for guide in ("random", "self", "target")]
        )
        for fraction in FRACTIONS[1:]
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the table and stop")
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--test-samples", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=16, help="pixels a side: 32, 16 or 8")
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--target-depth", type=int, default=14)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    options = parser.parse_args()
    if not options.table:
        torch.set_num_threads(1)
        experiment, done = Experiment(options), finished(options.out)
        done = {(r["seed"], r["loss"], r["fraction"], r["guide"]) for r in done}
        for run in runs(options.seeds, options.losses):
            if run not in done:
                experiment.record(*run, *experiment.run(*run))
    results = finished(options.out)
    for loss in options.losses:
        print(f"\n{loss}, all samples: {cell(results, loss, 1.0, '-')}")
        print("samples  random  the net itself  target", *table(results, loss), sep="\n")


if __name__ == "__main__":
    main()
