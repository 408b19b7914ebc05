"""Losses on small data: python -m benchmarks.losses_compared --data DIR [--seeds N].

The students of ``benchmarks.papers`` on 3000 texts of CLINC150 (20 a class): a perceptron with 64
hidden units on bags of words, 20 epochs, long enough to memorize. With a learning rate of .02 it
ends overconfident, more so with a fifth of the training labels flipped at random; with .005 it
ends underconfident. The temperature is that of the validation texts: above 1 = overconfident.

benchmarks/losses_compared.json holds the runs of the page on losses; those that are there already
are not repeated. The tables of the page are printed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from benchmarks.papers.methods import Method
from benchmarks.papers.runner import one_run
from benchmarks.papers.students import Plan, Settings
from benchmarks.papers.texts import Clinc, text_task
from skcalib import losses

RESULTS = Path(__file__).with_suffix(".json")
# Learning rate and noise of the labels.
SETTINGS = {"flipped": (0.02, "U20"), "clean": (0.02, "clean"), "slow": (0.005, "clean")}
METHODS = {
    "CrossEntropyLoss()": losses.CrossEntropyLoss(),
    "LabelSmoothingLoss(alpha=0.05)": losses.LabelSmoothingLoss(alpha=0.05),
    "EntropyRegularizedLoss(alpha=0.1)": losses.EntropyRegularizedLoss(alpha=0.1),
    "DifficultyAwareLoss(alpha=0.3)": losses.DifficultyAwareLoss(alpha=0.3),
    "FocalLoss(gamma=1)": losses.FocalLoss(gamma=1),
    "FocalLoss(gamma=2)": losses.FocalLoss(gamma=2),
    "FocalLoss(gamma=4)": losses.FocalLoss(gamma=4),
    "BSCEGRALoss(exponent=1)": losses.BSCEGRALoss(exponent=1),
    "BSCEGRALoss(exponent=2)": losses.BSCEGRALoss(exponent=2),
    "BSCEGRALoss(exponent=4)": losses.BSCEGRALoss(exponent=4),
}
COLUMNS = ("accuracy", "temperature", "ece", "ece_scaled", "nll_scaled")


def plan(task, criterion):
    """Return how to train with a criterion; the weights are those of the package by default."""
    given = {}
    if criterion.uses_difficulty_weight:
        given["difficulty_weight"] = task.weights("RMD", temperature=0.3)
    return Plan(criterion, task.given, per_sample=given)


def run(folder: Path, n_seeds: int, out: Path) -> None:
    clinc, runs = Clinc(folder, out.parent), json.loads(out.read_text()) if out.exists() else []
    done = {(r["setting"], r["method"], r["seed"]) for r in runs}
    for seed in range(n_seeds):
        for setting, (lr, noise) in SETTINGS.items():
            task = text_task(clinc, 20, noise, seed)
            for name, criterion in METHODS.items():
                if (setting, name, seed) in done:
                    continue
                how = (Settings(n_epochs=20, lr=lr), seed, False)
                options = {"criterion": criterion}
                found = one_run(task, Method(name, plan), options, *how)["points"]["last"]
                row = {"setting": setting, "method": name, "seed": seed}
                runs.append(row | {metric: round(float(found[metric]), 6) for metric in COLUMNS})
                print(runs[-1], flush=True)
                lines = ",\n".join(map(json.dumps, runs))
                out.write_text(f"[\n{lines}\n]\n")


def table(runs: list[dict], setting: str) -> list[str]:
    """Return the rows of the page's table of one setting: means over the seeds."""
    rows = []
    for method in METHODS:
        found = [r for r in runs if (r["setting"], r["method"]) == (setting, method)]
        mean = {name: np.mean([r[name] for r in found]) for name in COLUMNS}
        rows.append(
            f"``{method}``  {mean['accuracy']:.1%}  {mean['temperature']:.2f}  {mean['ece']:.1%}  "
            f"{mean['ece_scaled']:.1%}  {mean['nll_scaled']:.3f}".replace("%", " %")
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    run(options.data, options.seeds, options.out)
    for setting, values in SETTINGS.items():
        print(f"\n{setting}: {values}\nloss  accuracy  T  ECE  ECE scaled  log-loss scaled")
        print(*table(json.loads(options.out.read_text()), setting), sep="\n")


if __name__ == "__main__":
    main()
