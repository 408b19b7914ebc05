"""Scores of trained models on samples they have not seen: what calibrators are judged on.

Forests, boosting, Bayes, margins and nets; 2 to 100 classes; balanced, rare and class-weighted;
from nearly no errors to many. Labels carry no uniform noise, which would favor a uniform
component. "Open" ones chose the rule of ``calibrator="auto"``; "locked" ones were looked at after
that, for every rule in turn; "fresh" ones came later and chose its least first step, with all.
"""

import warnings
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn import datasets
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

MOST_SAMPLES = 5000
FOREST = partial(RandomForestClassifier, 100, random_state=0)
BOOSTING = partial(HistGradientBoostingClassifier, max_iter=60, random_state=0)
REGRESSION = partial(LogisticRegression, max_iter=200)
BALANCED = {"class_weight": "balanced"}
MODELS = {
    "forest": lambda: FOREST(),
    "forest, balanced": lambda: FOREST(min_samples_leaf=5, **BALANCED),
    "extra trees": lambda: ExtraTreesClassifier(60, min_samples_leaf=2, random_state=0),
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
    "boosting": lambda: BOOSTING(),
    "boosting, balanced": lambda: BOOSTING(**BALANCED),
    "AdaBoost": lambda: AdaBoostClassifier(n_estimators=50, random_state=0),
    "naive Bayes": lambda: GaussianNB(var_smoothing=1e-3),
    "count Bayes": lambda: MultinomialNB(),
    "Bernoulli Bayes": lambda: BernoulliNB(binarize=0.5),
    "LDA": lambda: LinearDiscriminantAnalysis(),
    "QDA": lambda: QuadraticDiscriminantAnalysis(reg_param=0.01),
    "regression": lambda: scaled(REGRESSION()),
    "regression, balanced": lambda: scaled(REGRESSION(**BALANCED)),
    "SVM": lambda: scaled(LinearSVC(C=0.1)),
    "SVM, balanced": lambda: scaled(LinearSVC(C=0.1, **BALANCED)),
    "neighbors": lambda: scaled(KNeighborsClassifier(15)),
    "net": lambda: scaled(MLPClassifier((64,), max_iter=150, random_state=0)),
}


class PredictionSet(NamedTuple):
    """Scores (n, K), the second class alone where K is 2 and they are logits; labels; form."""

    name: str
    scores: np.ndarray
    y: np.ndarray
    form: str
    part: str


def scaled(model):
    return make_pipeline(StandardScaler(), model)


def of_models(name, X, y, models, part="open", n_train=None):
    """Yield one set a model: trained on the first samples, or out-of-fold where all are few."""
    y = np.unique(y, return_inverse=True)[1]
    for label in models.split("; "):
        model = MODELS[label]()
        form = (
            "logits" if hasattr(model, "decision_function") and "boost" not in label else "proba"
        )
        method = "decision_function" if form == "logits" else "predict_proba"
        if n_train is None:
            folds = StratifiedKFold(5, shuffle=True, random_state=0)
            scores, labels = cross_val_predict(model, X, y, cv=folds, method=method), y
        else:
            rest = slice(n_train, n_train + MOST_SAMPLES)
            model.fit(X[:n_train], y[:n_train])
            scores, labels = getattr(model, method)(X[rest]), y[rest]
        yield PredictionSet(f"{name}, {label}", scores, labels, form, part)


def shuffled(X, y, seed=0):
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


def drawn(signal, positives, seed, sharpness=3.0):
    """Draw labels from a logistic model of the signal, a fraction of them positive."""
    rng = np.random.default_rng(seed)
    z = sharpness * (signal - signal.mean()) / signal.std()
    shifts = np.linspace(-15, 15, 3001)
    means = [expit(z[:4000] + shift).mean() for shift in shifts]
    return (rng.random(len(z)) < expit(z + np.interp(positives, means, shifts))).astype(int)


def clusters(n, n_features, frequencies, spread, seed, degrees=None):
    """Draw classes of two clusters each, Gaussian or with the tails of Student's t."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(frequencies), n, p=np.asarray(frequencies) / np.sum(frequencies))
    centers = spread * rng.normal(size=(len(frequencies), 2, n_features))
    noise = rng.normal(size=(n, n_features))
    if degrees is not None:
        noise /= np.sqrt(rng.chisquare(degrees, (n, 1)) / degrees)
    return centers[y, rng.integers(0, 2, n)] + noise, y


def word_counts(n, n_classes, n_words, length, seed):
    """Draw texts as counts of words, which come in bursts as in real texts."""
    rng = np.random.default_rng(seed)
    common = rng.gamma(0.3, size=n_words)
    topics = common * rng.gamma(1.0, size=(n_classes, n_words))
    topics /= topics.sum(axis=1, keepdims=True)
    y = rng.integers(0, n_classes, n)
    bursts = rng.gamma(0.25, size=(n, n_words)) * 4
    return rng.poisson(length * topics[y] * bursts), y


def two_classes():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    yield from of_models("cancer", X, y, "forest; naive Bayes; SVM", "locked")
    X, target = datasets.load_diabetes(return_X_y=True)
    yield from of_models("diabetes", X, target > 140, "forest; regression; neighbors; tree")
    X, _ = datasets.make_friedman1(8000, n_features=12, random_state=1)
    signal = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    models = "forest; extra trees; boosting; net; regression"
    yield from of_models("waves", X, drawn(signal, 0.4, 1), models, n_train=1000)
    models = "forest, balanced; boosting; regression, balanced; SVM, balanced; naive Bayes"
    yield from of_models("waves, 1:50", X, drawn(signal, 0.02, 2), models, n_train=2000)
    X, y = clusters(8000, 10, [0.9, 0.1], 0.9, 3, degrees=4)
    models = "forest, balanced; boosting, balanced; regression, balanced; naive Bayes; QDA"
    yield from of_models("tails, 1:10", X, y, models, n_train=1500)
    X, signal = datasets.make_friedman2(8000, random_state=4)
    models = "forest, balanced; regression, balanced; boosting; extra trees"
    y = drawn(np.log(np.abs(signal) + 1), 0.05, 4)
    yield from of_models("circuit, 1:20", X, y, models, "locked", 2000)
    X, y = datasets.make_hastie_10_2(8000, random_state=5)
    yield from of_models("sphere", X, y, "boosting; AdaBoost; naive Bayes; net", "locked", 1000)
    X, y = datasets.make_moons(7000, noise=0.35, random_state=6)
    yield from of_models("moons", X, y, "neighbors; tree; net", "locked", 500)
    X, y = word_counts(7000, 2, 400, 30, 7)
    yield from of_models("two topics", X, y, "count Bayes; Bernoulli Bayes; forest", n_train=800)
    X, y = datasets.load_digits(return_X_y=True)
    yield from of_models("odd digits", X, y % 2, "forest; SVM", "locked")


def several_classes():
    X, y = datasets.load_digits(return_X_y=True)
    yield from of_models("digits", X, y, "naive Bayes; forest; SVM; net")
    X, y = datasets.load_wine(return_X_y=True)
    yield from of_models("wine", X, y, "forest; naive Bayes; SVM", "locked")
    X, _ = datasets.make_friedman1(7000, n_features=8, random_state=11)
    signal = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    noisy = signal + np.random.default_rng(11).logistic(size=len(signal))
    y = np.digitize(noisy, np.quantile(noisy, [0.4, 0.85]))
    yield from of_models("three grades", X, y, "forest; boosting; naive Bayes", "locked", 1000)
    X, y = clusters(8000, 12, [48, 30, 12, 6, 3, 1], 0.75, 12)
    models = "forest; boosting; regression, balanced; net; naive Bayes; QDA; SVM"
    yield from of_models("six unequal", X, y, models, n_train=1500)
    X, y = datasets.make_gaussian_quantiles(
        n_samples=7000, n_features=5, n_classes=4, random_state=13
    )
    yield from of_models("shells", X, y, "forest; net; naive Bayes", "locked", 800)
    X, y = word_counts(8000, 20, 1500, 60, 14)
    yield from of_models("twenty topics", X, y, "count Bayes; forest; SVM", n_train=1500)
    X, y = clusters(8000, 20, np.ones(15), 0.8, 15, degrees=3)
    models = "naive Bayes; neighbors; forest, balanced; LDA"
    yield from of_models("fifteen tails", X, y, models, "locked", 1500)
    X, y = datasets.make_classification(
        9000, 40, n_informative=20, n_classes=100, n_clusters_per_class=1, class_sep=1.5,
        flip_y=0, random_state=16,
    )  # fmt: skip
    yield from of_models("hundred", X, y, "regression; forest; net", n_train=3000)


def real_data(folder):
    """Yield the sets of real data that do not come with scikit-learn."""
    with np.load(folder / "human_labels.npz") as data:
        X, y = shuffled(data["phoneme_X"], data["phoneme_true"])
        models = "boosting; forest; naive Bayes; regression, balanced; net"
        yield from of_models("phoneme", X, y, models, n_train=1000)
        X, y = shuffled(data["segment_X"], data["segment_true"])
        models = "boosting; forest; naive Bayes; LDA; SVM"
        yield from of_models("segment", X, y, models, "locked", 500)
        yield from of_models(
            "music", data["music_X"], data["music_true"], "forest; regression; naive Bayes"
        )
    with np.load(folder / "cifar10_resnet20_logits.npz") as data:
        X, y = shuffled(data["logits"], data["y"])
        yield PredictionSet("images, shifted, ResNet", X[:5000], y[:5000], "logits", "locked")
    with np.load(folder / "cifar10_test_pred_probs.npz") as data:
        X, y = shuffled(data["proba"], data["y"])
        yield PredictionSet("images, strong net", X[:5000], y[:5000], "proba", "open")
    with np.load(folder / "cifar10_resnet20_features.npz") as data:
        X, y = shuffled(data["features"].astype(np.float64), data["y"])
        yield from of_models("image features", X, y, "forest; naive Bayes; net", "locked", 1500)
    for classes, models, part in (
        (range(25), "forest; regression; SVM", "open"),
        (range(25, 75), "naive Bayes; regression; forest", "locked"),
        (range(50, 150), "regression; net; naive Bayes", "open"),
    ):
        X, y = intents(folder, classes)
        n_train = 20 * len(classes)
        yield from of_models(f"{len(classes)} intents", X, y, models, part, n_train)


def intents(folder, classes):
    with np.load(folder / "clinc150_minilm.npz", allow_pickle=True) as data:
        X, y = (np.concatenate([data[f"{a}_{b}"] for b in ("train", "val", "test")]) for a in "Xy")
    X, y = shuffled(X.astype(np.float32), y)
    rows = np.isin(y, classes)
    return X[rows], y[rows]


def fresh_sets(folder):
    """Yield the sets that came last: other data, models and seeds."""
    fresh = partial(of_models, part="fresh")
    X, y = datasets.make_circles(5000, noise=0.25, factor=0.6, random_state=101)
    yield from fresh("circles", X, y, "forest; tree; naive Bayes", n_train=600)
    X, signal = datasets.make_friedman3(6000, random_state=102)
    models = "regression, balanced; forest, balanced; boosting"
    yield from fresh("angle, 1:8", X, drawn(signal, 0.12, 102), models, n_train=1200)
    X, _ = datasets.make_sparse_uncorrelated(6000, 12, random_state=103)
    y = drawn(X[:, 0] + 2 * X[:, 1] - 2 * X[:, 2], 0.03, 103)
    models = "regression, balanced; extra trees; naive Bayes"
    yield from fresh("sparse, 1:30", X, y, models, n_train=1500)
    X, y = datasets.make_classification(
        6000, 15, n_informative=8, n_redundant=4, n_classes=3, weights=[0.7, 0.2, 0.1], flip_y=0,
        class_sep=0.8, random_state=104,
    )  # fmt: skip
    yield from fresh("three skewed", X, y, "QDA; SVM; boosting, balanced", n_train=800)
    X, y = datasets.make_classification(
        7000, 20, n_informative=12, n_classes=8, n_clusters_per_class=1, flip_y=0, random_state=105
    )
    yield from fresh("eight", X, y, "naive Bayes; forest; net", n_train=1200)
    X, y = clusters(6000, 8, [5, 4, 3, 2, 1], 0.9, 106, degrees=5)
    yield from fresh("five tails", X, y, "naive Bayes; neighbors; LDA", n_train=900)
    X, y = word_counts(6000, 6, 500, 25, 107)
    yield from fresh("six topics", X, y, "count Bayes; Bernoulli Bayes; SVM", n_train=800)
    X, y = datasets.make_blobs(
        8000, 12, centers=30, cluster_std=4, center_box=(-6, 6), random_state=108
    )
    yield from fresh("thirty blobs", X, y, "forest; regression; naive Bayes", n_train=1500)
    X, place = datasets.make_s_curve(6000, noise=0.6, random_state=109)
    y = np.digitize(place, np.quantile(place, [0.3, 0.5, 0.9]))
    yield from fresh("s curve", X, y, "boosting; neighbors; net", n_train=700)
    X, y = shuffled(*datasets.load_iris(return_X_y=True))
    yield from fresh("iris", X, y, "SVM; net; QDA")
    X, y = datasets.load_digits(return_X_y=True)
    X, y = shuffled(X, y == 8, 1)
    yield from fresh("digit 8", X, y, "regression, balanced; neighbors; AdaBoost", n_train=400)
    with np.load(folder / "cifar10_resnet20_features.npz") as data:
        features, labels = data["features"].astype(np.float64), data["y"]
    X, y = shuffled(features, labels, 1)
    yield from fresh("image features again", X, y, "boosting; neighbors; SVM", n_train=1000)
    with np.load(folder / "cifar10h.npz") as data:
        votes, y = shuffled(data["counts"].astype(np.float64), labels)
    yield PredictionSet("images, votes of people", votes[:5000], y[:5000], "proba", "fresh")
    X, y = intents(folder, range(100, 150))
    yield from fresh("last 50 intents", X, y, "neighbors; SVM; LDA", n_train=1000)


def prediction_sets(folder):
    with warnings.catch_warnings():
        # Nets that have not converged are what users have, too.
        warnings.simplefilter("ignore")
        parts = two_classes(), several_classes(), real_data(Path(folder)), fresh_sets(Path(folder))
        for found in chain(*parts):
            scores = found.scores.astype(np.float64)
            if found.form == "proba":
                scores /= scores.sum(axis=1, keepdims=True)
            yield found._replace(scores=scores)
