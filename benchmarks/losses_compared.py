"""Losses on small data: python -m benchmarks.losses_compared --data DIR [--seeds N].

An MLP with 64 hidden units on the bags of words of 3000 texts of CLINC150 (20 a class), trained
from scratch for 20 epochs (Adam, batches of 200): long enough to memorize. With a learning rate of
.02 it ends overconfident, more so with a fifth of the training labels flipped at random; with .005
it ends underconfident. 3000 validation and 4500 test texts with labels as they are. Every seed
draws texts, flips, initial weights and order anew. The temperature is that of the validation
texts: above 1 = overconfident. Difficulty is the relative Mahalanobis distance of the sentence
embeddings of the same texts, with the labels that are trained on.

benchmarks/losses_compared.json holds the runs of the user guide; those that are there already are
not repeated. The tables of the guide are printed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from scipy.special import log_softmax
from sklearn.feature_extraction.text import TfidfVectorizer

from skcalib import losses
from skcalib.datasets import flip_labels
from skcalib.difficulty import RelativeMahalanobisScorer, difficulty_weights
from skcalib.metrics import expected_calibration_error
from skcalib.nets import MLP, CalibratedNetClassifier
from skcalib.posthoc import TemperatureScaling

RESULTS = Path(__file__).with_suffix(".json")
SETTINGS = {
    "flipped": {"lr": 0.02, "noise": 0.2},
    "clean": {"lr": 0.02, "noise": 0.0},
    "slow": {"lr": 0.005, "noise": 0.0},
}
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
COLUMNS = ("accuracy", "temperature", "ece", "ece_scaled", "log_loss_scaled")


class Texts:
    """The texts of CLINC150 and their sentence embeddings."""

    def __init__(self, folder: Path) -> None:
        texts = json.loads((folder / "clinc150.json").read_text())
        self.texts = {name: [text for text, _ in texts[name]] for name in ("train", "val", "test")}
        with np.load(folder / "clinc150_minilm.npz") as data:
            self.features = data["X_train"]
            self.labels = {name: data[f"y_{name}"].astype(int) for name in self.texts}

    def draw(self, seed: int, noise: float, per_class: int = 20) -> dict:
        """Return bags of words, labels and difficulty weights of one seed."""
        rng, y = np.random.default_rng(seed), self.labels["train"]
        samples = np.concatenate(
            [rng.choice(np.flatnonzero(y == k), per_class, replace=False) for k in np.unique(y)]
        )
        bags = TfidfVectorizer().fit([self.texts["train"][i] for i in samples])
        X = {name: bags.transform(texts).toarray() for name, texts in self.texts.items()}
        X["train"] = X["train"][samples]
        given = flip_labels(y[samples], fraction=noise, random_state=seed)[0]
        difficulty = RelativeMahalanobisScorer().fit_difficulty(self.features[samples], given)
        X = {name: rows.astype(np.float32) for name, rows in X.items()}
        return {"X": X, "y": given, "difficulty_weight": difficulty_weights(difficulty)}


def measure(data: dict, labels: dict, method: str, lr: float, seed: int) -> dict:
    """Train with one loss; return what the test texts say."""
    criterion = METHODS[method]
    net = CalibratedNetClassifier(
        MLP, module__hidden=(64,), criterion=criterion, lr=lr, max_epochs=20, batch_size=200,
        callbacks=[], random_state=seed, device="cpu",
    )  # fmt: skip
    uses = criterion.uses_difficulty_weight
    given = {"difficulty_weight": data["difficulty_weight"]} if uses else {}
    net.fit(data["X"]["train"], data["y"], **given)
    logits = {name: net.decision_function(data["X"][name]) for name in ("val", "test")}
    scaling = TemperatureScaling().fit(logits["val"], labels["val"])
    y, proba = labels["test"], net.predict_proba(data["X"]["test"])
    scaled = scaling.predict_proba(logits["test"])
    log_proba = log_softmax(logits["test"] / scaling.temperature_, axis=1)
    return {
        "accuracy": float((proba.argmax(axis=1) == y).mean()),
        "temperature": float(scaling.temperature_),
        "ece": expected_calibration_error(y, proba, strategy="quantile"),
        "ece_scaled": expected_calibration_error(y, scaled, strategy="quantile"),
        "log_loss_scaled": float(-log_proba[np.arange(len(y)), y].mean()),
    }


def run(folder: Path, n_seeds: int, out: Path) -> None:
    texts, runs = Texts(folder), json.loads(out.read_text()) if out.exists() else []
    done = {(r["setting"], r["method"], r["seed"]) for r in runs}
    for seed in range(n_seeds):
        for setting, options in SETTINGS.items():
            data = texts.draw(seed, options["noise"])
            for method in METHODS:
                if (setting, method, seed) in done:
                    continue
                found = measure(data, texts.labels, method, options["lr"], seed)
                runs.append({"setting": setting, "method": method, "seed": seed, **found})
                print(runs[-1], flush=True)
                lines = ",\n".join(map(json.dumps, runs))
                out.write_text(f"[\n{lines}\n]\n")


def table(runs: list[dict], setting: str) -> list[str]:
    """Return the rows of the guide's table of one setting: means over the seeds."""
    rows = []
    for method in METHODS:
        found = [r for r in runs if (r["setting"], r["method"]) == (setting, method)]
        mean = {name: np.mean([r[name] for r in found]) for name in COLUMNS}
        rows.append(
            f"``{method}``  {mean['accuracy']:.1%}  {mean['temperature']:.2f}  {mean['ece']:.1%}  "
            f"{mean['ece_scaled']:.1%}  {mean['log_loss_scaled']:.3f}".replace("%", " %")
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
