"""Draw every display in the settings that break pictures, to be looked at.

Two, ten and a hundred classes, long names, five models on one axes, 30 and a million samples, a
dark style, subplots under a constrained layout, a small figure. Warnings are errors.

    python -m tests.draw_displays --out pictures
"""

import argparse
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcalib.plots import (
    ClassReliabilityDisplay,
    DecompositionDisplay,
    DifficultyDisplay,
    DifficultyPlaneDisplay,
    EmbeddingMapDisplay,
    HardestSamplesDisplay,
    LossComparisonDisplay,
    MonitorDisplay,
    ProbeAccuracyDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    TrainingMapDisplay,
)

MODELS = (
    "Logistic regression",
    "Naive Bayes",
    "Random forest (min_samples_leaf=1)",
    "Gradient boosting",
    "MLP 256-256, label smoothing, a name that does not end",
)
LAYERS = ["input", "conv1", *(f"layer{i}.{j}.conv2" for i in range(1, 4) for j in range(3)), "fc"]
LONG = "Staphylococcus_aureus_(methicillin-resistant)_$\\frac{1}{2}$"


def predictions(n_samples, n_classes, sharpness=1.0, seed=0):
    """Return labels and probabilities that are overconfident where `sharpness` is above 1."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_samples, n_classes)) * 2.5
    y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    proba = np.exp(sharpness * (logits - logits.max(axis=1, keepdims=True)))
    return y, proba / proba.sum(axis=1, keepdims=True)


def reliability(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    y, proba = predictions(n_samples, n_classes, sharpness, seed)
    proba = proba[:, 1] if n_classes == 2 else proba
    return ReliabilityDisplay.from_predictions(y, proba, **options)


def isotonic(**options):
    return reliability(kind="isotonic", **options)


def smooth(**options):
    return reliability(kind="smooth", **options)


def rare(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    proba = rng.beta(sharpness, 60, size=n_samples)
    y = (rng.uniform(size=n_samples) < proba).astype(int)
    options = {"kind": "isotonic", "strategy": "quantile", "zoom": 0.99} | options
    return ReliabilityDisplay.from_predictions(y, proba, **options)


def classes(n_samples=2000, n_classes=3, sharpness=2.0, seed=0, **options):
    y, proba = predictions(n_samples, n_classes, sharpness, seed)
    names = [LONG, *(f"class {k}" for k in range(1, n_classes))]
    y = np.array(names)[y]
    return ClassReliabilityDisplay.from_predictions(y, proba, labels=names, **options)


def risk_coverage(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    y, proba = predictions(n_samples, n_classes, sharpness, seed)
    noise = np.random.default_rng(seed).normal(size=n_samples) * 0.03 * sharpness
    confidence = proba.max(axis=1) + noise
    options = {"target_risk": 0.1} | options
    return RiskCoverageDisplay.from_predictions(y, proba, confidence=confidence, **options)


def difficulty(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    y, proba = predictions(n_samples, n_classes, sharpness, seed)
    noise = np.random.default_rng(seed).normal(size=n_samples) * 0.1 * sharpness
    score = 1 - proba.max(axis=1) + noise
    return DifficultyDisplay.from_predictions(y, proba.argmax(axis=1), score, **options)


def percentiles(**options):
    return difficulty(histogram=False, **options)


def plane(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    depths = np.random.default_rng(seed).beta(1, n_classes, size=(2, n_samples)) * 8 * sharpness
    return DifficultyPlaneDisplay.from_predictions(*depths.round(), **options)


def probes(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_samples)
    n_layers = len(LAYERS) if n_classes == 2 else 60
    names = LAYERS if n_classes == 2 else [f"layer{i}.conv" for i in range(n_layers)]
    chance = np.linspace(0.3, 0.98 - 0.03 * sharpness, n_layers)
    right = rng.uniform(size=(n_samples, n_layers)) < chance
    predicted = np.where(right, y[:, np.newaxis], (y[:, np.newaxis] + 1) % n_classes)
    return ProbeAccuracyDisplay.from_predictions(y, predicted, layer_names=names, **options)


def hardest(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    n_samples = min(n_samples, 2000)
    images = rng.uniform(size=(n_samples, 8, 8 * n_classes // 2))
    labels = np.array([LONG, "dog", "cat"])[rng.integers(3, size=n_samples)]
    score = -1234.5 + rng.normal(size=n_samples)
    return HardestSamplesDisplay.from_predictions(images, score, labels=labels, **options)


def texts(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    n_samples = min(n_samples, 2000)
    words = ["the", "price", "of", "$5", "and", "bad", "film", "was", "never", "$\\frac{", "so"]
    samples = [" ".join(rng.choice(words, rng.integers(2, 30))) for _ in range(n_samples)]
    labels, suggested = np.array(["negative", "positive"])[rng.integers(2, size=(2, n_samples))]
    return HardestSamplesDisplay.from_predictions(
        samples, rng.normal(size=n_samples), labels=labels, suggested_labels=suggested, **options
    )


def rows(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    n_samples = min(n_samples, 2000)
    columns = {f"feature {i} {LONG[:i]}": rng.normal(size=n_samples) for i in range(5 * n_classes)}
    frame = pd.DataFrame({"city": ["Rome"] * n_samples, **columns})
    labels = np.array([LONG, "dog", "cat"])[rng.integers(3, size=n_samples)]
    return HardestSamplesDisplay.from_predictions(
        frame, rng.normal(size=n_samples), labels=labels, **options
    )


def decomposition(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    # The same samples for all models, each with noise of its own.
    y, proba = predictions(n_samples, n_classes, 1.0)
    noise = np.random.default_rng(seed).normal(size=proba.shape) * 0.3 * sharpness
    logits = sharpness * np.log(proba) + noise
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    return DecompositionDisplay.from_predictions(
        y, proba / proba.sum(axis=1, keepdims=True), **options
    )


def training_map(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    epochs = np.linspace(-2, 3, 10)[:, np.newaxis]
    logits = epochs - 2 * rng.gumbel(size=n_samples) + rng.normal(size=(10, n_samples))
    proba = 1 / (1 + np.exp(-sharpness * logits))
    zeros = np.zeros(n_samples, dtype=int)
    predicted = (proba < 1 / n_classes).astype(int)
    return TrainingMapDisplay.from_predictions(proba, predictions=predicted, y=zeros, **options)


def embedding_map(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    centers = 3 * rng.normal(size=(n_classes, 8))
    y = rng.integers(n_classes, size=n_samples)
    X = centers[y] + rng.normal(size=(n_samples, 8))
    score = ((X - centers[y]) ** 2).sum(axis=1) ** sharpness
    suspected = score > np.quantile(score, 1 - min(0.02, 200 / n_samples))
    return EmbeddingMapDisplay.from_predictions(X, score, suspected=suspected, **options)


def comparison(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    methods = [*MODELS, *(f"loss {i}" for i in range(2 * n_classes - 4))]
    n_seeds = min(5, n_samples // 30 + 2)
    scores = {method: 0.05 + 0.02 * rng.normal() + 0.01 * rng.normal(size=n_seeds)
              for method in methods}  # fmt: skip
    return LossComparisonDisplay.from_scores(scores, score_name="ECE", **options)


def monitor(n_samples=2000, n_classes=2, sharpness=2.0, seed=0, **options):
    n_steps = min(n_samples // 10, 1000)
    growth = np.random.default_rng(seed).normal(0.02 * sharpness, 0.3 * n_classes, n_steps)
    log_e = np.maximum(np.cumsum(growth) - 2, -np.log(np.arange(2, n_steps + 2)))
    reached = np.flatnonzero(log_e >= np.log(100))
    alarm = int(reached[0]) if len(reached) else None
    since = None if alarm is None else int(log_e[: alarm + 1].argmin())
    steps = [f"2026-01-{step:03} {LONG[:n_classes]}" for step in range(n_steps)]
    return MonitorDisplay(steps, log_e, alarm=alarm, since=since).plot(**options)


def differences(**options):
    return comparison(baseline=MODELS[0], **options)


CURVES = (
    reliability, isotonic, smooth, rare, risk_coverage, difficulty, percentiles, probes,
    decomposition, monitor,
)  # fmt: skip
DISPLAYS = (
    *CURVES, classes, plane, hardest, texts, rows, training_map, embedding_map, comparison,
    differences,
)  # fmt: skip


def several(draw, ax=None, **options):
    for i, name in enumerate(MODELS):
        last = draw(sharpness=0.6 + 0.5 * i, seed=i, name=name, ax=ax, **options)
        ax = last.ax_
    return last


def grid(draw):
    figure, axes = plt.subplots(2, 3, figsize=(9, 7), layout="constrained")
    for i, ax in enumerate(axes.flat):
        draw(n_classes=(2, 10)[i % 2], sharpness=0.5 + 0.5 * i, seed=i, name=f"model {i}", ax=ax)
    return figure


def five_in_subplots(draw):
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
    for ax in axes:
        several(draw, ax)
    return figure


def dark(draw):
    with plt.style.context("dark_background"):
        return (several(draw) if draw in CURVES else draw()).figure_


SETTINGS = {
    "2_classes": lambda draw: draw().figure_,
    "10_classes": lambda draw: draw(n_classes=10, name="model").figure_,
    "100_classes": lambda draw: draw(n_samples=20_000, n_classes=100, name="model").figure_,
    "long_name": lambda draw: draw(name=LONG * 2).figure_,
    "five_models": lambda draw: several(draw).figure_,
    "five_models_no_layout": lambda draw: several(draw, plt.subplots()[1]).figure_,
    "five_models_subplots": five_in_subplots,
    "30_samples": lambda draw: draw(n_samples=30, name="small").figure_,
    "million_samples": lambda draw: draw(n_samples=1_000_000, n_classes=3, name="large").figure_,
    "subplots": grid,
    "3_inches": lambda draw: (
        draw(name="model", ax=plt.subplots(figsize=(3, 3), layout="constrained")[1]).figure_
    ),
    "3_inches_five": lambda draw: (
        several(draw, plt.subplots(figsize=(3, 3), layout="constrained")[1]).figure_
    ),
    "dark": dark,
}


def settings_of(draw):
    """Yield the name and the figure of every setting of a display, drawn when it is asked for."""
    for setting, make in SETTINGS.items():
        fits = draw in CURVES or "five" not in setting
        if fits and (draw is classes or setting != "100_classes"):
            yield f"{draw.__name__}_{setting}", lambda make=make: make(draw)


def long_class():
    y, proba = predictions(2000, 2, 2.0)
    names = np.array(["other", LONG])
    options = {"labels": names, "pos_label": LONG, "name": "model"}
    return ReliabilityDisplay.from_predictions(names[y], proba[:, 1], **options).figure_


def draw_all(folder, wanted=""):
    every = [pair for draw in DISPLAYS for pair in settings_of(draw)]
    for name, make in [*every, ("reliability_long_class", long_class)]:
        if wanted in name:
            start = time.perf_counter()
            figure = make()
            figure.savefig(folder / f"{name}.png", dpi=80)
            plt.close(figure)
            print(f"{time.perf_counter() - start:5.1f} s  {name}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the pictures")
    parser.add_argument("--only", default="", help="part of the names to draw")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("error")
    draw_all(options.out, options.only)


if __name__ == "__main__":
    main()
