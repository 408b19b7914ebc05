"""The study `order` for benchmarks.ablations: what the numbers of check_alignment are worth.

Models that are weak on purpose: fitted to few samples, to labels of which 80 % are drawn anew, or
to one side of a plane through the samples and tested on the other. A set says how often columns
are reported although they are in order ("columns needless"), or rows although the model knows more
than a fifth of what it implies ("rows needless"); and how often nothing is reported where a third
of the columns, or all rows, have been moved ("columns missed", "rows missed"). None of the sets
chose a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks._ablation import Loss, Rule, Study
from benchmarks.label_sets import shapes, tables
from skcalib.metrics import check_alignment

MODULE = "skcalib.metrics._alignment."
KINDS, N_SEEDS = ("few", "noise", "shift"), 4
MODELS = {
    "bayes": GaussianNB,
    "logistic": lambda: LogisticRegression(max_iter=200),
    "forest": lambda: RandomForestClassifier(50, min_samples_leaf=3, random_state=0),
    "neighbors": lambda: KNeighborsClassifier(5),
}
_made: list[tuple[str, np.ndarray, np.ndarray]] = []


def split(kind: str, X: np.ndarray, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples to fit to and those to judge on."""
    rng = np.random.default_rng([seed, len(X)])
    if kind == "shift":
        place = np.argsort(X @ rng.normal(size=X.shape[1]))
        one, other = place[: len(X) // 2], place[len(X) // 2 :]
        return (other, one) if seed % 2 else (one, other)
    place = rng.permutation(len(X))
    n_few = rng.integers(4 * n_classes, 15 * n_classes)
    n_fit = len(X) // 3 if kind == "noise" else min(len(X) // 3, n_few)
    return place[:n_fit], place[n_fit:]


def predictions(folder: Path) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Return set, probabilities and labels of every model, made once."""
    if _made:
        return _made
    for (name, X, y), kind, seed in product(
        chain(tables(folder), shapes()), KINDS, range(N_SEEDS)
    ):
        codes = np.unique(y, return_inverse=True)[1]
        n_classes = codes.max() + 1
        scaled = StandardScaler().fit_transform(X)
        fit, rest = split(kind, scaled, n_classes, seed)
        rng = np.random.default_rng([seed, len(X), 1])
        labels = codes[fit]
        if kind == "noise":
            anew = rng.integers(0, n_classes, len(fit))
            labels = np.where(rng.random(len(fit)) < 0.8, anew, labels)
        if len(np.unique(labels)) < n_classes:
            continue
        for model in MODELS.values():
            proba = model().fit(scaled[fit], labels).predict_proba(scaled[rest])
            _made.append((f"{name}, {kind}", proba, codes[rest]))
    return _made


def finds_columns(proba: np.ndarray, y: np.ndarray) -> bool:
    return any("model without skill" not in text for text in check_alignment(y, proba))


def finds_rows(proba: np.ndarray, y: np.ndarray) -> bool:
    return bool(check_alignment(y, proba, labels=range(proba.shape[1])))


def part_known(proba: np.ndarray, y: np.ndarray) -> float:
    """Return what labels show of the gains p_iy - mean p_y that labels drawn from p_i would."""
    apart = proba - proba.mean(axis=0)
    return float(apart[np.arange(len(y)), y].mean() / np.mean(np.sum(proba * apart, axis=1)))


def losses(folder: Path) -> Iterator[Loss]:
    for number, (name, proba, y) in enumerate(predictions(folder)):
        rows = np.random.default_rng(number).permutation(len(y))
        moved = np.arange(proba.shape[1])
        some = max(2, len(moved) // 3)
        moved[:some] = np.roll(moved[:some], 1)
        in_order = finds_rows(proba, y)
        values = {
            "columns needless": finds_columns(proba, y),
            "rows needless": in_order and part_known(proba, y) > 0.2,
            "columns missed": not finds_columns(proba[:, moved], y),
            "rows missed": not finds_rows(proba[rows], y),
        }
        base = name.partition(",")[0]
        yield Loss(base, True, {key: float(value) for key, value in values.items()})


RULES = [
    Rule("_LEAST_SHOWN", "what rows have to show (here .2)", {MODULE + "_LEAST_SHOWN": 0.2}),
    Rule("_LEAST_SHOWN", "the same (here .7)", {MODULE + "_LEAST_SHOWN": 0.7}),
    Rule("_LEAST_GAIN", "gains that are not reported (here none)", {MODULE + "_LEAST_GAIN": 0.0}),
    Rule("_LEAST_GAIN", "the same (here .1)", {MODULE + "_LEAST_GAIN": 0.1}),
    Rule("FALSE_ALARM", "how sure a finding is (here .05)", {MODULE + "FALSE_ALARM": 0.05}),
]
STUDY = Study(RULES, losses)
