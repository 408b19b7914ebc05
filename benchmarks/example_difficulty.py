"""The claims of "Deep Learning Through the Lens of Example Difficulty", measured on a small scale.

python -m benchmarks.example_difficulty --data DIR [--samples N] [--repeats N]
                                       [--epochs N] [--jobs N]

An ensemble of small residual networks is trained on random splits of a part of CIFAR-10, shrunk to
16 x 16 pixels; one of the six questions is asked of a perceptron on the digits of scikit-learn.
Tables go to the terminal, figures and finished repeats to benchmarks/results/example_difficulty.
"""

import argparse
import io
import time
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPClassifier

from benchmarks.cifar_networks import CifarResNet
from skcalib.difficulty import DifficultyProfiler, PredictionDepthScorer
from skcalib.nets import CalibratedNetClassifier
from skcalib.plots import DifficultyPlaneDisplay, ProbeAccuracyDisplay

RESULTS = Path(__file__).parent / "results" / "example_difficulty"


def load_cifar(folder, n_samples):
    """Return the first images of CIFAR-10 as (n, 3, 16, 16), standardized, and their labels."""
    store = np.load(folder / "cifar10_jpeg.npz")
    offsets, jpeg = store["train_offsets"], store["train_jpeg"]
    images = []
    for start, stop in pairwise(offsets[: n_samples + 1]):
        image = Image.open(io.BytesIO(jpeg[start:stop].tobytes()))
        images.append(np.asarray(image.resize((16, 16), Image.Resampling.BOX)))
    X = np.stack(images).transpose(0, 3, 1, 2).astype(np.float32) / 255
    X = (X - X.mean((0, 2, 3), keepdims=True)) / X.std((0, 2, 3), keepdims=True)
    return X, store["train_y"][:n_samples].astype(np.int64)


def residual_scorer(n_epochs):
    net = CalibratedNetClassifier(
        CifarResNet, module__depth=8, max_epochs=n_epochs, train_split=None, verbose=0,
        batch_size=64, optimizer=torch.optim.Adam, lr=3e-3, device="cpu", random_state=0,
    )  # fmt: skip
    return PredictionDepthScorer(net)


def by_depth(depth, value):
    """Print and return, for every whole depth, the number of samples and the mean value."""
    depth, value = depth[~np.isnan(depth)], value[~np.isnan(depth)]
    levels = np.arange(int(depth.max()) + 1)
    rounded = np.rint(depth).astype(int)
    number = np.bincount(rounded, minlength=len(levels))
    total = np.bincount(rounded, value, minlength=len(levels))
    return levels, number, np.divide(total, number, out=np.full(len(levels), np.nan),
                                     where=number > 0)  # fmt: skip


def table(title, columns):
    print(f"\n{title}")
    print("  " + "".join(f"{name:>14}" for name in columns))
    for row in zip(*columns.values()):
        cells = (f"{v:14d}" if isinstance(v, int | np.integer) else f"{v:14.3f}" for v in row)
        print("  " + "".join(cells), flush=True)


def save(axes_or_figure, name):
    figure = getattr(axes_or_figure, "figure", axes_or_figure)
    figure.tight_layout()
    figure.savefig(RESULTS / f"{name}.png", dpi=110)
    plt.close(figure)


def study_depth(profiler, y, names):
    """Depth histogram; accuracy, consensus-consistency and iteration learned against depth."""
    held_out, depth, profile = profiler.held_out_, profiler.depth_, profiler.profile_
    defined = ~np.isnan(depth)
    correct = profiler.predictions_ == y
    numbers = np.arange(len(names))
    fraction = {
        what: np.bincount(depth[among & defined].astype(int), minlength=len(names))
        / (among & defined).sum()
        for what, among in (("trained on", ~held_out), ("held out", held_out))
    }
    table("1. Fraction of the samples by prediction depth", {"depth": numbers, **fraction})
    print(f"  no depth (last probe disagrees): {(~defined).mean():.2%}")
    ax = plt.subplots()[1]
    for shift, (what, values) in zip((-0.2, 0.2), fraction.items()):
        ax.bar(numbers + shift, values, 0.4, label=what)
    ax.set_xticks(numbers, names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set(xlabel="Prediction depth", ylabel="Fraction of samples")
    ax.legend()
    save(ax, "1_depth_histogram")

    pairs = held_out & defined
    levels, number, accuracy = by_depth(depth[pairs], correct[pairs].astype(float))
    table("2. Accuracy by depth, held-out samples of every network",
          {"depth": levels, "samples": number, "accuracy": accuracy})  # fmt: skip
    print(f"  Spearman, depth and being correct: {spearmanr(depth[pairs], correct[pairs])[0]:.3f}")
    curves = [("2_accuracy", "Accuracy, held out", levels, accuracy)]

    mean_depth = profile["depth_held_out"]
    known = ~np.isnan(mean_depth)
    for number_, column, title in (
        (3, "consensus_consistency", "Consensus-consistency"),
        (4, "iteration_learned_held_out", "Iteration learned (epoch), held out"),
    ):
        levels, number, values = by_depth(mean_depth, profile[column])
        table(f"{number_}. {title} by mean depth, held out",
              {"depth": levels, "samples": number, "mean": values})  # fmt: skip
        print(f"  Spearman: {spearmanr(mean_depth[known], profile[column][known])[0]:.3f}")
        curves.append((f"{number_}_{column}", title, levels, values))
    learned = profiler.iteration_learned_[pairs]
    print(f"  Spearman, single networks and samples: {spearmanr(depth[pairs], learned)[0]:.3f}")
    for name, title, levels, values in curves:
        ax = plt.subplots()[1]
        ax.plot(levels, values, marker="o")
        ax.set(xlabel="Prediction depth, held out", ylabel=title)
        save(ax, name)


def study_random_labels(seed=0):
    """Inference learning curve of a perceptron that has memorized 40 % random labels."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    rng = np.random.default_rng(seed)
    random = rng.random(len(y)) < 0.4
    given = np.where(random, rng.integers(0, 10, len(y)), y)
    changed = given != y
    net = MLPClassifier((128,) * 5, alpha=0, max_iter=400, tol=1e-5, random_state=seed)
    scorer = PredictionDepthScorer(FrozenEstimator(net.fit(X, given))).fit(X, given)
    predictions = scorer.probe_predict(X)
    print(f"\nDigits, {len(y)} samples, {changed.mean():.1%} with another label; "
          f"accuracy on the given labels after training {net.score(X, given):.3f}")  # fmt: skip
    curves = {
        "unchanged samples, given label": (~changed, given),
        "changed samples, true label": (changed, y),
        "changed samples, given label": (changed, given),
    }
    ax = plt.subplots()[1]
    accuracy = {
        name: ProbeAccuracyDisplay.from_predictions(
            labels[chosen], predictions[chosen], layer_names=scorer.layer_names_, name=name, ax=ax
        ).accuracy
        for name, (chosen, labels) in curves.items()
    }
    save(ax, "5_random_labels")
    numbers = np.arange(len(scorer.layer_names_))
    short = {"probe": numbers, "unchanged": accuracy["unchanged samples, given label"],
             "true": accuracy["changed samples, true label"],
             "given": accuracy["changed samples, given label"]}  # fmt: skip
    table("5. Accuracy of the probes; of changed samples by true and by given label", short)
    depth = scorer.difficulty(X)
    print(f"  mean depth: unchanged {np.nanmean(depth[~changed]):.2f}, "
          f"changed {np.nanmean(depth[changed]):.2f}")  # fmt: skip


def study_middle_probe(profiler, scorer, X, y):
    """Accuracy of network and middle probe, fresh networks, on every form of difficulty."""
    form = profiler.profile_["difficulty_type"]
    names = None
    correct = {"network": np.zeros(len(y)), "middle probe": np.zeros(len(y))}
    by_probe = []
    for fold, (train, test) in enumerate(KFold(5, shuffle=True, random_state=1).split(X)):
        fitted = clone(scorer).set_params(estimator__random_state=100 + fold)
        fitted.fit(X[train], y[train])
        nothing = np.zeros(len(test), dtype=bool)
        correct["network"][test] = fitted.middle_probe_predict(X[test], nothing) == y[test]
        correct["middle probe"][test] = fitted.middle_probe_predict(X[test]) == y[test]
        by_probe.append((test, fitted.probe_predict(X[test]) == y[test][:, None]))
        names = fitted.layer_names_
    probes = np.zeros((len(y), len(names)))
    for test, is_correct in by_probe:
        probes[test] = is_correct
    print(
        f"\n6. Held-out accuracy of five fresh networks (middle probe: {names[len(names) // 2]})"
    )
    print(f"  {'form':<26}{'samples':>9}{'network':>10}{'middle':>10}{'best probe':>24}")
    figure, ax = plt.subplots()
    for kind in np.unique(form):
        chosen = form == kind
        best = probes[chosen].mean(axis=0)
        print(
            f"  {kind:<26}{chosen.sum():9d}{correct['network'][chosen].mean():10.3f}"
            f"{correct['middle probe'][chosen].mean():10.3f}"
            f"{best.max():12.3f} {names[int(best.argmax())]}",
            flush=True,
        )
        if chosen.sum() >= 20:
            ProbeAccuracyDisplay(best, layer_names=names, name=str(kind)).plot(ax=ax)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(figure, "6_middle_probe")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    start = time.time()
    study_random_labels()
    X, y = load_cifar(options.data, options.samples)
    scorer = residual_scorer(options.epochs)
    profiler = DifficultyProfiler(
        scorer, n_repeats=options.repeats, test_size=0.25, random_state=0, n_jobs=options.jobs,
        folder=RESULTS / f"repeats-{options.samples}-{options.epochs}", verbose=10,
    ).fit(X, y)  # fmt: skip
    held_out = profiler.held_out_
    correct = profiler.predictions_ == y
    print(
        f"\nCIFAR-10, {len(y)} samples of 16 x 16 pixels, {options.repeats} ResNet-8 of "
        f"{options.epochs} epochs, each on {np.sum(~held_out[0])} samples; accuracy trained "
        f"{correct[~held_out].mean():.3f}, held out {correct[held_out].mean():.3f}"
    )
    reader = clone(scorer).set_params(estimator__max_epochs=1).fit(X[:200], y[:200])
    print(f"Probes: {', '.join(reader.layer_names_)}")
    study_depth(profiler, y, reader.layer_names_)
    forms, number = np.unique(profiler.profile_["difficulty_type"], return_counts=True)
    print("\nForms of difficulty:", dict(zip(forms.tolist(), number.tolist())))
    save(DifficultyPlaneDisplay.from_profile(profiler.profile_).figure_, "plane")
    study_middle_probe(profiler, scorer, X, y)
    print(f"\n{time.time() - start:.0f} s in all; figures in {RESULTS}")


if __name__ == "__main__":
    main()
