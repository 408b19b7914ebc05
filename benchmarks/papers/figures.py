"""What the papers show as plots without a number: the same measured on our data.

[RMD] Fig. 1b: difficulty against the severity of corruption and label noise; Figs. 2 and 6: errors
of a network by groups of difficulty; Fig. 10: weights by temperature; Fig. 11: entropy of wrong
predictions. [GRA] Fig. 4: gradient norms against the Brier score; its Sec. 5: a temperature chosen
by ECE.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skcalib import metrics
from skcalib.datasets import flip_labels
from skcalib.difficulty import RelativeMahalanobisScorer, difficulty_weights
from skcalib.losses import functional

from . import images as cifar
from .beside import dots, histograms
from .claims import DIRECTION, METRICS, OWN, about
from .corruptions import corrupt_images
from .measures import measure, proba_of
from .methods import CE, ENTROPY, FOCAL, LS, Method, aware, by_loss
from .needs import RESNET20, STRONG, TEXTS
from .printed import value as printed
from .results import Part, described, settings_of
from .runner import found
from .statistics import interval
from .students import Settings, logits_of, train
from .tables import csv_table, values_tables
from .texts import Clinc, text_task

KINDS = (
    "gaussian_noise", "shot_noise", "impulse_noise", "gaussian_blur", "brightness", "contrast"
)  # fmt: skip
N_FITTED, N_JUDGED, LEVELS = 6000, 1000, range(6)


# --- [RMD] Figure 1b -----------------------------------------------------------------------------


def severity(options, records):
    """Mean RMD of images by severity, in standard deviations of RMD on the clean images.

    Features are those of rotation, which no label has shaped. The Gaussians are fitted on 6000
    clean images; 1000 others are corrupted by `benchmarks.papers.corruptions`, or a fraction of
    their labels is flipped, a fifth more at every step.
    """
    for seed in options.seeds:
        compute = partial(risen, options.data, seed)
        records.get({"setting": "severity", "seed": seed}, compute)


@cache
def _turned(folder):
    turned = cifar.as_input(cifar.pictures(folder, "train", cifar.N_TURNED)[0], cifar.SIZE)
    return cifar.trained_on_turns(turned)[0]


def risen(folder, seed):
    net, (images, y) = _turned(folder), cifar.pictures(folder, "test")
    rows = np.random.default_rng(seed).permutation(len(y))
    fitted, judged = rows[:N_FITTED], rows[N_FITTED : N_FITTED + N_JUDGED]
    of = lambda batch: cifar.pooled(net, cifar.as_input(batch, cifar.SIZE))
    scorer = RelativeMahalanobisScorer().fit(of(images[fitted]), y[fitted])
    clean = of(images[judged])
    scores = {
        kind: [
            scorer.difficulty(
                of(corrupt_images(images[judged], kind, severity=k, random_state=seed)), y[judged]
            )
            for k in LEVELS
        ]
        for kind in KINDS
    }
    flipped = (flip_labels(y[judged], fraction=k / 5, random_state=seed)[0] for k in LEVELS)
    scores["labels"] = [scorer.difficulty(clean, labels) for labels in flipped]
    spread = scores["labels"][0].std()
    rows = {}
    for kind, levels in scores.items():
        means = [(values.mean() - levels[0].mean()) / spread for values in levels]
        steps = {f"severity {k}": means[k] for k in LEVELS[1:]}
        steps["smallest step"] = np.min(np.diff(means))
        rows |= found(kind, "rise", {name: float(v) for name, v in steps.items()})["found"]
    return {"found": rows}


# --- [RMD] Figures 2 and 6 -----------------------------------------------------------------------


def groups(options, records):
    """Error rate by tenths of difficulty, and in the hardest hundredth, by RMD and Mahalanobis.

    Queries: the difficulty of test queries in the features of MiniLM, and the errors of a logistic
    regression on their words. Images: in the features of a ResNet-20, and the errors of another,
    stronger model; neither was trained here. Gaussians are fitted on a random half (queries: of
    the training queries) with labels, and the others are judged with theirs.
    """
    for seed in options.seeds:
        for name, load in (("queries", _queries), ("images", _images)):
            compute = partial(by_groups, name, partial(load, options.data, options.out), seed)
            records.get({"setting": name, "seed": seed}, compute)


@cache
def _queries(folder, cache_folder):
    clinc = Clinc(folder, cache_folder)
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0, max_iter=30))
    model.fit(clinc.texts["train"], clinc.labels["train"])
    wrong = model.predict(clinc.texts["test"]) != clinc.labels["test"]
    with np.load(folder / "clinc150_minilm.npz") as data:
        test = data["X_test"].astype(np.float64)
    return clinc.features["train"], clinc.labels["train"], test, clinc.labels["test"], wrong


@cache
def _images(folder, cache_folder):
    with np.load(folder / "cifar10_resnet20_features.npz") as data:
        X, y = data["features"].astype(np.float64), data["y"].astype(int)
    with np.load(folder / "cifar10_test_pred_probs.npz") as data:
        wrong = data["proba"].argmax(axis=1) != y
    return X, y, None, None, wrong


def by_groups(name, load, seed):
    X, y, test, y_test, wrong = load()
    fitted = np.random.default_rng(seed).permutation(len(y)) < len(y) // 2
    if test is None:
        test, y_test, wrong = X[~fitted], y[~fitted], wrong[~fitted]
    methods = {}
    for method, relative in (("RMD", True), ("Mahalanobis", False)):
        scorer = RelativeMahalanobisScorer(relative=relative).fit(X[fitted], y[fitted])
        methods[method] = {"last": errors_by(scorer.difficulty(test, y_test), wrong)}
    return {"found": {name: methods}}


def errors_by(difficulty, wrong):
    """Return the error rate of every tenth, hardest first, and of the hardest hundredth."""
    order = np.argsort(-difficulty, kind="stable")
    tenths = [wrong[part].mean() for part in np.array_split(order, 10)]
    values = {f"tenth {i}": v for i, v in enumerate(tenths, 1)}
    values |= {
        "hardest": wrong[order[: len(order) // 100]].mean(),
        "trend": spearmanr(range(10), tenths)[0],
    }
    return {metric: float(v) for metric, v in values.items()}


# --- [RMD] Figures 10 and 11, [GRA] Figure 4 and its temperatures --------------------------------


def chosen_in(part, method, noise="clean"):
    """Return a method with the options that were chosen in a study."""
    return settings_of(part)[noise][method]["last"]["options"]


def students():
    """Return methods, each with the options that its study chose or its paper printed."""
    runners_up = {"below": "below_label", "second": "second_largest", "other": "largest_other"}
    dual = chosen_in("gra_texts", "dual focal")
    of_rmd = (CE, LS, FOCAL, ENTROPY, Method("difficulty-aware", aware()))
    weighted = Method("BSCE-GRA", by_loss(functional.bsce_gra_loss))
    return [
        *((method, chosen_in("rmd20", method.name)) for method in of_rmd),
        (weighted, chosen_in("gra_texts", weighted.name)),
        *((Method(f"dual focal, {name}", by_loss(functional.dual_focal_loss, runner_up=k)), dual)
          for name, k in runners_up.items()),
        *((Method(f"{name}, as published", by_loss(loss)), {})
          for name, loss in PUBLISHED.items()),
    ]  # fmt: skip


PUBLISHED = {
    "focal 3": partial(functional.focal_loss, gamma=3.0),
    "dual focal 5": functional.dual_focal_loss,
    "BSCE-GRA 4": functional.bsce_gra_loss,
}
# From the grid of Mukhoti et al., whose code [GRA] follows.
TEMPERATURES = np.arange(1, 101) / 10


def after(options, records):
    """Wrong predictions, temperatures by ECE, and gradients of the last layer; clean labels.

    Methods have the parameters that the other studies chose, or the published ones. A temperature
    "by ECE" has the lowest ECE on validation samples, of 100 from .1 to 10 (15 bins of equal
    width), else the lowest log-loss. Entropies are divided by that of 150 equal probabilities.
    Norms of the gradient of the last layer are those of training samples after the last epoch;
    their rank correlation is with the Brier score of the sample.
    """
    clinc = Clinc(options.data, options.out)
    for seed in options.seeds:
        task = cache(partial(text_task, clinc, 20, "clean", seed))
        for method, chosen in students():
            key = {"setting": "clean", "method": method.name, "seed": seed}
            compute = lambda m=method, c=chosen, t=task: looked_at(t(), m, c)
            records.get(key, compute)


def looked_at(task, method, options):
    plan = method.plan(task, **options)
    trained = train(task, plan, Settings(n_epochs=20), seed=task.seed, watch=False)
    val, logits = trained.last["val"], trained.last["test"]
    y, proba = task.test_labels, proba_of(logits)
    wrong = proba.argmax(axis=1) != y
    error = metrics.expected_calibration_error
    by_ece = min(TEMPERATURES, key=lambda t: error(task.val_labels["clean"], proba_of(val / t)))
    values = measure(trained.last, y, task.val_labels["clean"])
    row = {name: values[name] for name in ("accuracy", "ece_width", "ece_width_scaled")} | {
        "ece_by_ece": error(y, proba_of(logits / by_ece)),
        "wrong_entropy": metrics.predictive_entropy(proba[wrong]).mean() / np.log(proba.shape[1]),
        "wrong_confidence": proba[wrong].max(axis=1).mean(),
    }
    if method.name.endswith("as published"):
        row["follows"] = gradient_and_brier(trained.net, task, plan.loss)
    name = method.name
    return {"found": {"clean": {name: {"last": {k: float(v) for k, v in row.items()}}}}}


def gradient_and_brier(net, task, loss):
    """Rank correlation of a sample's gradient norm in the last layer with its Brier score."""
    hidden, target = [], torch.as_tensor(task.given)
    hook = net.output.register_forward_hook(lambda _, inputs, __: hidden.append(inputs[0]))
    logits = logits_of(net, task.inputs["train"]).double().requires_grad_()
    hook.remove()
    loss(logits, target).backward()
    norms = logits.grad.norm(dim=1) * torch.cat(hidden).double().norm(dim=1)
    brier = functional.brier_loss(logits.detach(), target, reduction="none")
    return spearmanr(norms.numpy(), brier.numpy())[0]


N_BINS = 20
SCALES = {"ranks": "rank", "min-max": "minmax", "as printed": None}


def weights(options, records):
    """Figure 10: how many samples have which weight, by temperature and scale; clean texts."""
    records.get({"setting": "weights"}, partial(weighted, Clinc(options.data, options.out)))


def weighted(clinc):
    difficulty = text_task(clinc, 20, "clean", 0).difficulty("RMD")
    rows = {}
    for name, scale in SCALES.items():
        shares = {}
        for temperature in (0.1, 0.3, 0.7, 2.0):
            s = difficulty_weights(difficulty, temperature=temperature, scale=scale)
            counts = np.histogram(s, N_BINS, (0, 1))[0]
            values = {"share": (counts / len(s)).tolist(), "weight": float(s.mean())}
            shares[f"T = {temperature:g}"] = {"last": values}
        rows[name] = shares
    return {"found": rows}


# --- claims --------------------------------------------------------------------------------------

_risen = about("severity", metric="rise", settings=(*KINDS, "labels"), paper=DIRECTION)
_groups = about("groups", "RMD", settings=("queries", "images"), paper=DIRECTION)
_after = about("after", settings="clean", paper=DIRECTION)
_wrong = partial(_after, method="difficulty-aware")
OTHERS = (CE.name, LS.name, FOCAL.name, ENTROPY.name)
RMD_CLAIMS = (
    _risen("RMD rises with corruption and with label noise, from none to the worst (Fig. 1b).",
           method="severity 5"),
    _risen("It rises with every step of them.", method="smallest step"),
    _groups("Errors get rarer from tenth to tenth of RMD, hardest first (Fig. 2; Spearman).",
            "trend", better=-1),
    _groups("The hardest hundredth by RMD has more errors than that by Mahalanobis (Fig. 6).",
            "hardest", "Mahalanobis",
            paper=printed("RMD", "Section 3.2", "error rate, about", "hardest")),
    _wrong("Of five losses, its wrong predictions have the highest entropy (Fig. 11).",
           "wrong_entropy", OTHERS),
    _wrong("Of five losses, its wrong predictions are the least confident (Fig. 11).",
           "wrong_confidence", OTHERS),
)  # fmt: skip
GRA_CLAIMS = (
    *(_after(f"Gradients of BSCE-GRA follow the Brier score closer than those of {loss} (Fig. 4).",
             "follows", f"{loss}, as published", method="BSCE-GRA 4, as published")
      for loss in ("focal 3", "dual focal 5")),
    *(_after(f"A temperature chosen by ECE leaves less of it than one by log-loss: {name}.",
             "ece_by_ece", name, method=name, rival_metric="ece_width_scaled", paper=OWN)
      for name in (CE.name, "BSCE-GRA")),
    *(_after(f"The runner-up of the dual focal loss: {words} calibrates better than the one below "
             "the label.", "ece_width", "dual focal, below", method=f"dual focal, {name}",
             paper=OWN)
      for name, words in (("second", "the second-largest class"),
                          ("other", "the largest other class"))),
)  # fmt: skip

RISE = [METRICS["rise"]]
AFTER = [
    METRICS[m] for m in ("accuracy", "ece_width", "ece_width_scaled", "ece_by_ece",
                         "wrong_entropy", "wrong_confidence", "follows")
]  # fmt: skip


def errors_table(settings):
    """Return the error of every group, one row a method and data set."""
    header = ["", "hardest hundredth, %", *(f"tenth {i}" for i in range(1, 11))]
    names = ["hardest", *(f"tenth {i}" for i in range(1, 11))]
    rows = [
        [f"{setting}, {method}", *(f"{100 * np.mean(points['last'][n]):.1f}" for n in names)]
        for setting, methods in settings.items()
        for method, points in methods.items()
    ]
    return csv_table("Error rate by difficulty, hardest first", header, rows)


def weights_table(settings):
    """Return the mean weight and the fraction of weights below .05."""
    rows = []
    for scale, methods in settings.items():
        for name, points in methods.items():
            (weight,), share = points["last"]["weight"], points["last"]["share"]
            rows.append([f"{scale}, {name}", f"{weight:.3f}", f"{100 * share[0]:.0f}"])
    return csv_table("Weights", ["scale and T", "mean", "below .05, %"], rows)


def pictures():
    """Return the files of Figures 10 and 11."""
    shown = [
        (scale, [(name, points["last"]["share"]) for name, points in methods.items()])
        for scale, methods in settings_of("weights").items()
    ]
    rows = []
    for name in (*OTHERS, "difficulty-aware"):
        values = 100 * np.array(settings_of("after")["clean"][name]["last"]["wrong_entropy"])
        rows.append((name, *interval(values)[:3]))
    title = "mean entropy of wrong predictions, % of the largest, with 95 % interval"
    return {"weights.svg": histograms(shown), "wrong.svg": dots(title, rows)}


RMD_PARTS = {
    "severity": Part(
        severity,
        partial(values_tables, columns=RISE),
        settings=described(severity.__doc__),
        files=("cifar10_jpeg.npz",),
    ),
    "groups": Part(
        groups, errors_table, settings=described(groups.__doc__), files=(*TEXTS, RESNET20, STRONG)
    ),
    "weights": Part(weights, weights_table, files=TEXTS),
}
GRA_PARTS = {
    "after": Part(
        after,
        partial(values_tables, columns=AFTER),
        settings=described(after.__doc__),
        files=TEXTS,
    )
}
