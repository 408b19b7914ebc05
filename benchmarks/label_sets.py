"""Sets of labels, right and wrong, with the truth: what the finder of wrong labels is judged on.

Tables, images, texts and generated samples, each with its published labels, with flips at random,
from class to class, to the likeliest other class and to that of a neighbor; labels that people
gave; and probabilities of a model beside labels of a crowd, of which experts have labeled some.
A set of every second name, by a hash, is kept out of all choices.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from benchmarks.labels import from_class_to_class, votes
from skcalib.datasets import flip_labels

NOISES = ("published", "random 20 %", "class to class", "hard samples", "near")
MOST_SAMPLES = 500
LEAST_OF_A_CLASS = 8


class LabelSet(NamedTuple):
    """Samples, the labels given, and the true ones: -1 where nobody knows."""

    name: str
    noise: str
    X: NDArray
    given: NDArray[np.intp]
    true: NDArray[np.intp]
    estimator: Any = None

    @property
    def known(self) -> NDArray[np.bool_]:
        return self.true >= 0

    @property
    def wrong(self) -> NDArray[np.bool_]:
        return self.true != self.given

    @property
    def kept_out(self) -> bool:
        """Whether the set is kept out of all choices, whatever was done to its labels."""
        return zlib.crc32(self.name.split(",")[0].encode()) % 2 == 0


def tables(folder: Path) -> Iterator[tuple[str, NDArray, NDArray]]:
    """Yield (name, X, y) with labels that are taken for right."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield name, *getattr(datasets, f"load_{name}")(return_X_y=True)
    X, y = datasets.load_digits(return_X_y=True)
    yield "digits, 8 components", PCA(8, random_state=0).fit_transform(X), y
    X, target = datasets.load_diabetes(return_X_y=True)
    yield "diabetes", X, np.digitize(target, np.quantile(target, [1 / 3, 2 / 3]))
    generated: dict[str, Any] = {"n_informative": 6, "flip_y": 0}
    for seed, (n_classes, sep, clusters) in enumerate(
        [(2, 0.7, 1), (2, 1.5, 3), (4, 0.5, 1), (4, 1.0, 2), (4, 2.0, 2), (8, 1.5, 1), (6, 3.0, 1)]
    ):
        yield f"generated {seed}", *datasets.make_classification(
            900, 12, n_classes=n_classes, class_sep=sep, n_clusters_per_class=clusters,
            random_state=seed, **generated,
        )  # fmt: skip
    yield (
        "unequal",
        *datasets.make_classification(
            900, n_classes=3, class_sep=1.2, weights=[0.8, 0.15, 0.05], random_state=9, **generated
        ),
    )
    yield from shapes()
    yield from published(folder)
    yield from sentences(folder, ((40, 12), (15, 30), (5, 90)), 60)
    far: dict[str, Any] = {"centers": [(0, 0), (10, 0), (0, 10)], "random_state": 0}
    for n_samples in (150, 500):
        yield f"clusters {n_samples}", *datasets.make_blobs(n_samples, **far)


def shapes() -> Iterator[tuple[str, NDArray, NDArray]]:
    """Yield generated samples of classes that no line parts, and of classes that overlap."""
    yield "moons", *datasets.make_moons(600, noise=0.25, random_state=0)
    yield "circles", *datasets.make_circles(600, noise=0.1, factor=0.5, random_state=0)
    shells: dict[str, Any] = {"n_samples": 800, "n_features": 4, "random_state": 0}
    yield "quantiles", *datasets.make_gaussian_quantiles(**shells)
    yield "blobs", *datasets.make_blobs(800, 5, centers=8, cluster_std=2.5, random_state=0)
    yield "overlap", *datasets.make_blobs(800, 3, centers=5, cluster_std=5, random_state=1)


def published(folder: Path) -> Iterator[tuple[str, NDArray, NDArray]]:
    """Yield published tables, and images as a network sees them."""
    human = np.load(folder / "human_labels.npz")
    for name in ("segment", "phoneme", "music"):
        yield name, human[f"{name}_X"], human[f"{name}_true"]
    images = np.load(folder / "cifar10_resnet20_features.npz")
    yield "images", images["features"].astype(np.float32), images["y"].astype(int)


def sentences(
    folder: Path, sizes: tuple[tuple[int, int], ...], n_components: int
) -> Iterator[tuple[str, NDArray, NDArray]]:
    """Yield questions of some classes, as a network sees them and as counts of words.

    `sizes` are numbers of classes, and of questions of each.
    """
    clinc = np.load(folder / "clinc150_minilm.npz", allow_pickle=True)
    X, y = clinc["X_train"].astype(np.float32), clinc["y_train"].astype(int)
    texts = [text for text, _ in json.loads((folder / "clinc150.json").read_text())["train"]]
    rng = np.random.default_rng(0)
    for n_classes, n_each in sizes:
        rows = np.concatenate(
            [
                rng.choice(np.flatnonzero(y == k), n_each, replace=False)
                for k in rng.permutation(150)[:n_classes]
            ]
        )
        yield f"sentences {n_classes}", X[rows], y[rows]
        words = TfidfVectorizer(sublinear_tf=True).fit_transform([texts[row] for row in rows])
        components = TruncatedSVD(n_components, random_state=0).fit_transform(words)
        yield f"words {n_classes}", components, y[rows]


def some_of(X: NDArray, y: NDArray) -> tuple[NDArray, NDArray[np.intp]]:
    """Return at most `MOST_SAMPLES` samples, of classes that are large enough."""
    y = np.unique(y, return_inverse=True)[1]
    rows = np.random.default_rng(0).permutation(len(y))[:MOST_SAMPLES]
    X, y = X[rows], y[rows]
    enough = np.bincount(y)[y] >= LEAST_OF_A_CLASS
    return X[enough], np.unique(y[enough], return_inverse=True)[1]


def labels_of(noise: str, X: NDArray, y: NDArray[np.intp], seed: int = 0) -> NDArray[np.intp]:
    """Return labels, wrong as `noise` says."""
    rng, rows = np.random.default_rng(seed), np.arange(len(y))
    if noise == "published":
        return y
    if noise == "random 20 %":
        return flip_labels(y, fraction=0.2, random_state=seed)[0]
    if noise == "class to class":
        return from_class_to_class(y, seed)
    Z = StandardScaler().fit_transform(X)
    if noise == "near":  # the label of the nearest sample of another class, 15 % of all
        nearest = NearestNeighbors(n_neighbors=min(60, len(y) - 1)).fit(Z)
        other = y[nearest.kneighbors(return_distance=False)]
        first = (other != y[:, None]).argmax(axis=1)
        return np.where(rng.random(len(y)) < 0.15, other[rows, first], y)
    # Hard samples get the likeliest other class, as people do; 15 % of all.
    model = LogisticRegression(C=0.3, max_iter=100, tol=1e-2)
    p = cross_val_predict(model, Z, y, cv=4, method="predict_proba")
    hard = 1.02 - p[rows, y]
    p[rows, y] = -1.0
    wrong = rng.random(len(y)) < np.minimum(0.15 * hard / hard.mean(), 0.8)
    return np.where(wrong, p.argmax(axis=1), y)


def of_people(folder: Path) -> Iterator[LabelSet]:
    """Yield labels that people gave, and the true ones."""
    human = np.load(folder / "human_labels.npz")
    for name in ("one_0", "one_1", "majority"):
        X, true, given = (human[f"music_{part}"] for part in ("X", "true", name))
        yield LabelSet("music", name, X, given.astype(int), true.astype(int))
    counts = np.load(folder / "cifar10h.npz")["counts"]
    images = np.load(folder / "cifar10_resnet20_features.npz")
    model = np.load(folder / "cifar10_test_pred_probs.npz")
    for n_votes in (1, 3, 10):
        some = np.arange(n_votes, 10_000, 16)
        true = images["y"][some].astype(int)
        given = votes(counts[some], true, n_votes, n_votes)
        features = images["features"][some].astype(np.float32)
        yield LabelSet("images", f"{n_votes} votes", features, given, true)
        some = np.arange(n_votes, 10_000, 4)
        true = model["y"][some].astype(int)
        given = votes(counts[some], true, n_votes, n_votes)
        proba = model["proba"][some]
        yield LabelSet("pictures", f"{n_votes} votes", proba, given, true, "precomputed")
    crowd = np.load(folder / "crowd_texts.npz")
    for name in ("texts1", "texts4", "texts9"):
        given, true = (crowd[f"{name}_{part}"].astype(int) for part in ("crowd", "gold"))
        yield LabelSet(name, "crowd", crowd[f"{name}_proba"], given, true, "precomputed")
