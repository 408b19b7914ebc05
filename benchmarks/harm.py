"""What a default costs: every estimator as its docstring has it, against the plain classifier.

    python -m benchmarks.harm [--data FOLDER] [--draws 1]
    python -m benchmarks.harm --page

Each task is a data set and a classifier. A method is judged by what it does to accuracy and
log-loss on samples that nobody has fitted on, as it is and after both have been calibrated by the
same temperature; temperatures are fitted on samples apart. Half of the tasks are marked as open,
for choices; the others are to confirm them. `--data` adds CLINC150 and three sets with labels that
people gave. Rows go to benchmarks/harm_results.json as they come; --page makes
docs/measured/harm.inc of what is there. Docstrings that name a cost are held to the same file.
"""

import argparse
import json
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, product
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_classification,
    make_gaussian_quantiles,
    make_hastie_10_2,
    make_moons,
)
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._tables import keep
from benchmarks.papers.tables import csv_table
from skcalib.datasets import flip_labels
from skcalib.difficulty import (
    DifficultyAwareClassifier,
    DifficultyMixin,
    NoveltyDetector,
    RMDScorer,
)
from skcalib.labels import LabelCleaningClassifier
from skcalib.metrics import debiased_calibration_error
from skcalib.posthoc import PostHocCalibratedClassifier, PriorShift, TemperatureScaling
from skcalib.selection import (
    DifficultySelector,
    MaxEntropySelector,
    SelectiveClassifier,
    SubsetClassifier,
)

RESULTS = Path(__file__).with_name("harm_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/harm.inc"
Data = tuple[np.ndarray, np.ndarray]
Method = Callable[[BaseEstimator, int], BaseEstimator]


class LabelFree(DifficultyMixin, BaseEstimator):
    """The relative distance to the nearest class, whatever the label."""

    def fit(self, X, y, sample_weight=None):
        self.scorer_ = RMDScorer().fit(X, y, sample_weight=sample_weight)
        return self

    def difficulty(self, X, y=None):
        return self.scorer_.difficulty(X)


def generators() -> Iterator[tuple[str, Data]]:
    """Yield sets that scikit-learn makes."""
    for n_classes, n_features, n, seed in (
        (2, 10, 600, 0), (2, 40, 1500, 1), (3, 10, 900, 2), (5, 20, 1500, 3), (10, 30, 3000, 4),
        (4, 12, 300, 5), (2, 200, 500, 6),
    ):  # fmt: skip
        yield (
            f"classification {n_classes} x {n_features}",
            make_classification(
                n, n_features, n_informative=min(n_features, 8), n_classes=n_classes,
                class_sep=0.9, flip_y=0.0, random_state=seed,
            ),
        )  # fmt: skip
    yield "5 % positives", make_classification(2000, 12, weights=[0.95], random_state=7)
    yield (
        "1 % rarest of 4",
        make_classification(
            3000, 15, n_informative=8, n_classes=4, weights=[0.6, 0.3, 0.09], random_state=8
        ),
    )
    yield "moons", make_moons(600, noise=0.3, random_state=9)
    yield "circles", make_circles(600, noise=0.15, factor=0.6, random_state=10)
    yield "blobs", make_blobs(900, 6, centers=6, cluster_std=4.0, random_state=11)
    yield "quantiles", make_gaussian_quantiles(n_samples=1200, n_features=6, random_state=12)
    X, y = make_hastie_10_2(2000, random_state=13)
    yield "hastie", (X, (y > 0).astype(int))


def data_sets(folder: Path | None) -> Iterator[tuple[str, Data]]:
    """Yield (name, (X, y)); where the name ends in "% wrong", only training labels are wrong."""
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        yield load.__name__[5:], load(return_X_y=True)
    X, y = load_digits(return_X_y=True)
    yield "digits, 200 samples", (X[:700], y[:700])
    yield "digits, odd or even", (X, y % 2)
    yield "digits, 20 % wrong", (X, y)
    yield "breast_cancer, 10 % wrong", load_breast_cancer(return_X_y=True)
    yield from generators()
    if folder is not None:
        clinc = np.load(folder / "clinc150_minilm.npz", allow_pickle=True)
        X, y = clinc["X_train"].astype(np.float32), clinc["y_train"]
        for first, name in (
            (0, "intents 0-19"),
            (60, "intents 60-79"),
            (0, "intents, 20 % wrong"),
        ):
            rows = (y >= first) & (y < first + 20)
            yield name, (X[rows], y[rows])
        human = np.load(folder / "human_labels.npz", allow_pickle=True)
        for name in ("phoneme", "segment", "music"):
            yield name, (human[f"{name}_X"][:2400], human[f"{name}_true"][:2400])


MODELS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=50, random_state=0),
    "net": lambda: make_pipeline(
        StandardScaler(), MLPClassifier((32,), alpha=1e-3, max_iter=200, random_state=0)
    ),
}


def _weight(model: BaseEstimator) -> str:
    return f"{model.steps[-1][0]}__sample_weight" if hasattr(model, "steps") else "sample_weight"


def _aware(model, scorer=None, **options):
    return DifficultyAwareClassifier(model, scorer, fit_param=_weight(model), **options)


def _subset(model, seed, **options):
    return SubsetClassifier(model, MaxEntropySelector(clone(model), random_state=seed, **options))


def _easiest(model, **options):
    return SubsetClassifier(model, DifficultySelector(RMDScorer(), **options))


METHODS: dict[str, Method] = {
    "PostHocCalibratedClassifier": lambda m, s: PostHocCalibratedClassifier(m),
    "DifficultyAwareClassifier, up": lambda m, s: _aware(m, direction="up"),
    "DifficultyAwareClassifier, up, without labels": lambda m, s: _aware(
        m, LabelFree(), direction="up"
    ),
    "DifficultyAwareClassifier, down": lambda m, s: _aware(m, direction="down"),
    "LabelCleaningClassifier, soft": lambda m, s: LabelCleaningClassifier(m),
    "LabelCleaningClassifier, relabel": lambda m, s: LabelCleaningClassifier(m, action="relabel"),
    "LabelCleaningClassifier, drop": lambda m, s: LabelCleaningClassifier(m, action="drop"),
    "LabelCleaningClassifier, weight": lambda m, s: LabelCleaningClassifier(m, action="weight"),
    "DifficultySelector, easiest .9": lambda m, s: _easiest(m),
    "MaxEntropySelector, .3": lambda m, s: _subset(m, s, fraction=0.3),
    "MaxEntropySelector, .3, soft": lambda m, s: _subset(m, s, fraction=0.3, sampling="soft"),
    "MaxEntropySelector, .7": lambda m, s: _subset(m, s, fraction=0.7),
    "MaxEntropySelector, .7, soft": lambda m, s: _subset(m, s, fraction=0.7, sampling="soft"),
    "random, .3": lambda m, s: _subset(m, s, fraction=0.3, criterion="random"),
    "random, .7": lambda m, s: _subset(m, s, fraction=0.7, criterion="random"),
}


def split(name: str, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[Data, Data, Data]:
    """Return samples to train on, to fit a temperature on, and to judge by."""
    train = 200 if "200 samples" in name else min(1200, int(0.6 * len(y)))
    X, X_rest, y, y_rest = train_test_split(X, y, train_size=train, stratify=y, random_state=seed)
    X_c, X_t, y_c, y_t = train_test_split(X_rest, y_rest, test_size=0.6, random_state=seed)
    if name.endswith("% wrong"):
        share = float(name.split(", ")[1].split(" ")[0]) / 100
        y = flip_labels(y, fraction=share, random_state=seed)[0]
    return (X, y), (X_c, y_c), (X_t, y_t)


def losses(proba: np.ndarray, y: np.ndarray, classes: np.ndarray) -> float:
    """Return the mean log-loss; a probability of 0 counts as 1e-7."""
    return log_loss(y, np.clip(proba, 1e-7, 1), labels=classes)


def judge(model, tune: Data, new: Data) -> dict[str, float]:
    """Return accuracy, log-losses before and after a temperature, and calibration error."""
    X, y = new
    proba = model.predict_proba(X)
    score = {
        "accuracy": float((model.classes_[proba.argmax(axis=1)] == y).mean()),
        "log_loss": losses(proba, y, model.classes_),
        "calibration_error": debiased_calibration_error(y, proba, labels=model.classes_),
    }
    logits = [np.log(np.clip(model.predict_proba(Z), 1e-7, 1)) for Z in (tune[0], X)]
    scaling = TemperatureScaling(mix_uniform=True, classes=model.classes_).fit(logits[0], tune[1])
    score["calibrated_log_loss"] = losses(scaling.predict_proba(logits[1]), y, model.classes_)
    return score


def measure_method(method: Method, plain: BaseEstimator, seed: int, parts) -> dict[str, float]:
    train, tune, new = parts
    begin = time.perf_counter()
    model = method(clone(plain), seed).fit(*train)
    seconds = time.perf_counter() - begin
    return {**judge(model, tune, new), "seconds": seconds}


def promises(plain: BaseEstimator, parts) -> Iterator[dict]:
    """Yield what estimators say that promise a rate, or shift probabilities."""
    (X, y), tune, (X_new, y_new) = parts
    selective = SelectiveClassifier(clone(plain)).fit(X, y)
    accepted = selective.accept(X_new)
    wrong = selective.estimator_.predict(X_new)[accepted] != y_new[accepted]
    yield {
        "method": "SelectiveClassifier",
        "answered": float(accepted.mean()),
        "error_rate": float(wrong.mean()) if len(wrong) else 0.0,
        "accuracy": float((selective.estimator_.predict(X_new) == y_new).mean()),
    }
    novel = NoveltyDetector(make_pipeline(StandardScaler(), RMDScorer())).fit(X, y)
    yield {"method": "NoveltyDetector", "outliers": float((novel.predict(X_new) < 0).mean())}
    model = clone(plain).fit(X, y)
    logits = [np.log(np.clip(model.predict_proba(Z), 1e-7, 1)) for Z in (tune[0], X_new)]
    scaled = TemperatureScaling(mix_uniform=True, classes=model.classes_).fit(logits[0], tune[1])
    scores = [np.log(np.clip(scaled.predict_proba(z), 1e-12, 1)) for z in logits]
    shifted = PriorShift(training_scores=scores[0], classes=model.classes_).fit(scores[1])
    before, after = (
        losses(p, y_new, model.classes_)
        for p in (scaled.predict_proba(logits[1]), shifted.predict_proba(scores[1]))
    )
    yield {"method": "PriorShift, no shift", "calibrated_log_loss": after - before}


# What needs weights; scikit-learn's net takes none.
WEIGHTED = (
    "DifficultyAwareClassifier",
    "LabelCleaningClassifier, soft",
    "LabelCleaningClassifier, w",
)


def measure(data: Path | None = None, draws: int = 2) -> Iterator[dict]:
    """Yield a row per task and method: what it changes against the plain classifier."""
    warnings.simplefilter("ignore")
    for draw, (i, (name, (X, y))), (j, kind) in product(
        range(draws), enumerate(data_sets(data)), enumerate(MODELS)
    ):
        task = {"data": name, "model": kind, "draw": draw, "open": (i + j) % 2 == 0}
        parts = split(name, np.asarray(X), y, zlib.crc32(f"{name}/{draw}".encode()) % 10_000)
        plain = MODELS[kind]()
        base = measure_method(lambda model, seed: model, plain, draw, parts)
        yield {**task, "method": "plain", **base}
        for method, build in METHODS.items():
            if kind == "net" and method.startswith(WEIGHTED):
                continue
            found = measure_method(build, plain, draw, parts)
            times = found.pop("seconds") / base["seconds"]
            changes = {key: found[key] - base[key] for key in found}
            yield {**task, "method": method, **changes, "times": times}
        yield from ({**task, **row} for row in promises(plain, parts))


# Every loss by itself, then what else changes the training of a net, as in their docstrings.
LOSSES = (
    "BSCEGRALoss", "BSCELoss", "BrierLoss", "DualFocalLoss", "EntropyRegularizedLoss", "FocalLoss",
    "LabelSmoothingLoss", "LogitNormLoss", "MMCELoss", "PolyLoss", "SampleDependentFocalLoss",
    "ZeroHingeLoss",
)  # fmt: skip


def nets() -> dict[str, Callable[[], BaseEstimator]]:
    """Return nets by what they differ in from cross-entropy; all have weight decay."""
    import torch

    from skcalib import losses as of_losses
    from skcalib.nets import MLP, CalibratedNetClassifier, EpochPrioritizer

    torch.set_num_threads(1)

    def net(**options):
        return CalibratedNetClassifier(
            MLP, optimizer=torch.optim.AdamW, optimizer__weight_decay=1e-2, random_state=0,
            device="cpu", **options,
        )  # fmt: skip

    return {
        "plain": net,
        **{name: partial(net, criterion=getattr(of_losses, name)) for name in LOSSES},
        "DifficultyAwareLoss": lambda: DifficultyAwareClassifier(
            net(criterion=of_losses.DifficultyAwareLoss)
        ),
        "mixup_alpha=.2": lambda: net(mixup_alpha=0.2),
        "EpochPrioritizer, .3": lambda: net(
            prioritizer=EpochPrioritizer(MaxEntropySelector(fraction=0.3))
        ),
        "EpochPrioritizer, .7": lambda: net(
            prioritizer=EpochPrioritizer(MaxEntropySelector(fraction=0.7))
        ),
    }


def measure_nets(data: Path | None = None, draws: int = 2) -> Iterator[dict]:
    """Yield a row per data set and loss: what it changes against cross-entropy."""
    warnings.simplefilter("ignore")
    for draw, (i, (name, (X, y))) in product(range(draws), enumerate(data_sets(data))):
        parts = split(name, np.asarray(X), y, zlib.crc32(f"{name}/{draw}".encode()) % 10_000)
        scale = StandardScaler().fit(parts[0][0])
        parts = tuple((scale.transform(X).astype(np.float32), y) for X, y in parts)
        base = None
        for method, make in nets().items():
            found = measure_method(lambda model, seed: model, make(), draw, parts)
            if base is not None:
                found["times"] = found.pop("seconds") / base["seconds"]
                found = {k: v - base.get(k, 0.0) for k, v in found.items()}
            base = base or found
            task = {"data": name, "model": "torch net", "draw": draw, "open": i % 2 == 0}
            yield {**task, "method": method, **found}


def costs(rows: list[dict], method: str, *, wrong: bool | None = None) -> dict[str, float]:
    """Return what a method changes: mean, worst, and the fraction that loses .01 of accuracy."""
    some = [
        row
        for row in rows
        if row["method"] == method and wrong in (None, row["data"].endswith("% wrong"))
    ]
    accuracy = np.array([row["accuracy"] for row in some])
    loss = np.array([row["calibrated_log_loss"] for row in some])
    return {
        "tasks": len(some),
        "accuracy": float(accuracy.mean()),
        "worst accuracy": float(accuracy.min()),
        "loses": float((accuracy < -0.01).mean()),
        "log-loss": float(loss.mean()),
        "worst log-loss": float(loss.max()),
        "calibration_error": float(np.mean([row["calibration_error"] for row in some])),
    }


HEAD = [
    "method", "tasks", "accuracy", "at worst", "loses > .01", "log-loss", "at worst",
    "error before",
]  # fmt: skip


def table(rows: list[dict], methods: Iterable[str], wrong: bool) -> str:
    """Return the table of what methods change, on tasks with right labels or with wrong ones."""
    lines = []
    for method in methods:
        cost = costs(rows, method, wrong=wrong)
        lines.append(
            [
                method,
                str(cost["tasks"]),
                *(f"{cost[key]:+.3f}" for key in ("accuracy", "worst accuracy")),
                f"{cost['loses']:.0%}",
                *(f"{cost[key]:+.3f}" for key in ("log-loss", "worst log-loss")),
                f"{cost['calibration_error']:+.3f}",
            ]
        )
    return csv_table("", HEAD, lines)


def page(rows: list[dict]) -> str:
    """Return the tables of the guide, each after a comment that names it."""
    of_nets = [row for row in rows if row["model"] == "torch net"]
    others = [row for row in rows if row["model"] != "torch net"]
    in_nets = dict.fromkeys(row["method"] for row in of_nets if row["method"] != "plain")
    promised = [row for row in others if row["method"] == "SelectiveClassifier"]
    answered = [row for row in promised if row["answered"] > 0]
    outliers = [row["outliers"] for row in others if row["method"] == "NoveltyDetector"]
    shifts = [
        row["calibrated_log_loss"] for row in others if row["method"] == "PriorShift, no shift"
    ]
    said = (
        f"``SelectiveClassifier`` answers {np.mean([r['answered'] for r in promised]):.0%} of the "
        f"samples on average, and nothing in {len(promised) - len(answered)} of {len(promised)} "
        f"tasks. Where it answers, {np.mean([r['error_rate'] for r in answered]):.1%} of the "
        f"answers are wrong on average, {max(r['error_rate'] for r in answered):.1%} at most. "
        f"``NoveltyDetector`` calls {np.mean(outliers):.1%} of new samples of the same kind "
        f"unlike training, {max(outliers):.1%} at most. ``PriorShift`` without a shift changes "
        f"the log-loss by {np.mean(shifts):+.3f} on average, {max(shifts):+.3f} at worst.\n"
    )
    return "\n".join(
        [
            table(others, METHODS, False), ".. wrong\n", table(others, METHODS, True),
            ".. nets\n", table(of_nets, in_nets, False), ".. promises\n", said,
        ]
    )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="CLINC150 and labels that people gave")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="make the tables alone")
    given = parser.parse_args()
    if not given.page:
        trained = measure(given.data, given.draws), measure_nets(given.data, given.draws)
        keep(chain(*trained), RESULTS)
    PAGE.write_text(page(json.loads(RESULTS.read_text())))
