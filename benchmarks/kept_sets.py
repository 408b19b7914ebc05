"""Prediction sets that choose nothing: data and models of other kinds than `prediction_sets`.

A rule of ``calibrator="auto"`` is judged on them once, after it has been chosen on the others:
votes of support vector machines, Gaussian processes, a neighbor alone, nets that have learned
their training samples by heart, models of few trees, probabilities that are rounded, floored or
exactly 0, log-odds that are shifted, classes that are rare, ordered, nested or many. `rare_sets`
adds models with class weights or resampled rows, at rates of .5 to 20 %.
"""

import warnings
from collections.abc import Iterator
from itertools import product

import numpy as np
from scipy.special import expit, softmax
from sklearn import datasets
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import ComplementNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks import rare_classes
from benchmarks.prediction_sets import (
    PredictionSet,
    clusters,
    drawn,
    scaled,
    shuffled,
    word_counts,
)

MODELS = {
    "votes of SVCs": lambda: scaled(BaggingClassifier(SVC(), 15, max_samples=0.4, random_state=1)),
    "Gaussian process": lambda: scaled(GaussianProcessClassifier(random_state=1)),
    "nearest neighbors, weighted": lambda: scaled(KNeighborsClassifier(7, weights="distance")),
    "nearest center": lambda: scaled(NearestCentroid()),
    "overfit net": lambda: scaled(MLPClassifier((200,), max_iter=400, alpha=0, random_state=1)),
    "small net": lambda: scaled(MLPClassifier((8,), max_iter=60, random_state=1)),
    "long boosting": lambda: HistGradientBoostingClassifier(max_iter=300, random_state=1),
    "weak boosting": lambda: GradientBoostingClassifier(
        n_estimators=20, learning_rate=0.05, random_state=1
    ),
    "ten trees": lambda: RandomForestClassifier(10, random_state=1),
    "deep trees": lambda: ExtraTreesClassifier(300, random_state=1),
    "pruned tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=1),
    "flat Bayes": lambda: GaussianNB(),
    "complement Bayes": lambda: ComplementNB(),
    "weak regression": lambda: scaled(LogisticRegression(C=1e-3)),
    "free regression": lambda: scaled(LogisticRegression(C=1e6, max_iter=500)),
    "Huber": lambda: scaled(SGDClassifier(loss="modified_huber", random_state=1)),
}


RARE_MODELS = rare_classes.MODELS | {
    "naive Bayes, oversampled": lambda X, y: GaussianNB().fit(*rare_classes.over(X, y)),
}
# Seeds that `benchmarks.rare_classes` does not draw.
RARE_SEED = 216


def trained(name, X, y, models, n_train):
    """Yield one set a model, which is trained on the first samples and states the others."""
    y = np.unique(y, return_inverse=True)[1]
    rest = slice(n_train, n_train + 4000)
    for label in models.split("; "):
        model = MODELS[label]().fit(X[:n_train], y[:n_train])
        if label == "nearest center":
            scores, form = model.decision_function(X[rest]), "logits"
        else:
            scores, form = model.predict_proba(X[rest]), "proba"
        yield PredictionSet(f"{name}, {label}", scores, y[rest], form, "kept")


def stated(name, proba, y, form="proba"):
    return PredictionSet(name, proba, y, form, "kept")


def two_classes():
    X, y = datasets.make_moons(5000, noise=0.3, random_state=201)
    yield from trained("moons", X, y, "votes of SVCs; Gaussian process; ten trees", 300)
    rng = np.random.default_rng(202)
    X = rng.random((6000, 4))
    board = (np.floor(3 * X[:, 0]) + np.floor(3 * X[:, 1])) % 2
    y = (rng.random(6000) < 0.1 + 0.8 * board).astype(int)
    models = "nearest neighbors, weighted; overfit net; long boosting; pruned tree"
    yield from trained("checkerboard", X, y, models, 800)
    X, y = clusters(7000, 15, [0.995, 0.005], 1.2, 203)
    yield from trained("tails, 1:200", X, y, "flat Bayes; free regression; deep trees", 2500)
    X, y = clusters(6000, 6, [0.6, 0.4], 0.8, 204, degrees=2)
    models = "flat Bayes; votes of SVCs; weak regression; nearest center"
    yield from trained("heavy tails", X, y, models, 700)
    X, signal = datasets.make_friedman2(6000, random_state=205)
    y = drawn(np.log(signal + 1), 0.25, 205)
    models = "Huber; weak boosting; small net; ten trees"
    yield from trained("circuit, 1:3", X, y, models, 600)
    X, y = word_counts(5000, 2, 300, 12, 206)
    yield from trained("short texts", X, y, "complement Bayes; deep trees; overfit net", 500)
    # Stated as people and rules do: rounded, shifted, bent.
    z = 2 * rng.normal(size=5000)
    y = (rng.random(5000) < expit(z)).astype(int)
    p = expit(1.7 * z + 0.6)
    yield stated("rounded to tenths", np.column_stack([1 - p, p]).round(1), y)
    yield stated("log-odds, calibrated", z, y, "logits")
    yield stated("log-odds, cubed", z**3, y, "logits")
    sure = 6 * rng.normal(size=5000) + 2
    yield stated(
        "nearly perfect", 1.2 * sure, (rng.random(5000) < expit(sure)).astype(int), "logits"
    )


def several_classes():
    X, y = shuffled(*datasets.load_digits(return_X_y=True), 210)
    models = "votes of SVCs; ten trees; nearest neighbors, weighted; nearest center"
    yield from trained("digits", X, y, models, 300)
    rng = np.random.default_rng(211)
    X = rng.random((6000, 3))
    board = (np.floor(3 * X[:, 0]) + np.floor(3 * X[:, 1])).astype(int) % 3
    y = np.where(rng.random(6000) < 0.75, board, rng.integers(0, 3, 6000))
    yield from trained("checkerboard of three", X, y, "overfit net; long boosting; ten trees", 900)
    X, y = clusters(6000, 10, [40, 30, 20, 7, 3], 0.9, 212, degrees=2)
    yield from trained("heavy tails of five", X, y, "flat Bayes; votes of SVCs; Huber", 800)
    X, y = clusters(9000, 25, np.ones(50), 1.0, 213)
    yield from trained("fifty", X, y, "weak regression; deep trees; flat Bayes; small net", 2500)
    X, _ = datasets.make_friedman1(6000, n_features=7, random_state=214)
    signal = X[:, 0] + X[:, 1] ** 2 - X[:, 2] + 0.3 * np.random.default_rng(214).normal(size=6000)
    y = np.digitize(signal, np.quantile(signal, [0.15, 0.4, 0.7, 0.9]))
    models = "small net; long boosting; free regression; nearest center"
    yield from trained("five grades", X, y, models, 700)
    # Nested: three kinds, three sorts each, and sorts are hard to tell.
    y = rng.integers(0, 9, 6000)
    kinds, sorts = 2.5 * rng.normal(size=(3, 12)), 0.8 * rng.normal(size=(9, 12))
    X = kinds[y // 3] + sorts[y] + rng.normal(size=(6000, 12))
    yield from trained("nested nine", X, y, "Gaussian process; deep trees; overfit net", 450)
    z = 2 * rng.normal(size=(5000, 6))
    y = (softmax(z, axis=1).cumsum(axis=1) < rng.random((5000, 1))).sum(axis=1).clip(max=5)
    yield stated("six, calibrated", z, y, "logits")
    yield stated("six, too sure", 2.5 * z, y, "logits")
    yield stated("six, rounded", rounded(softmax(1.5 * z, axis=1), 10), y)
    yield stated("six, three are 0", zeroed(softmax(1.3 * z, axis=1)), y)
    sure = 5 * rng.normal(size=(5000, 4)) + 4
    y = (softmax(sure, axis=1).cumsum(axis=1) < rng.random((5000, 1))).sum(axis=1).clip(max=3)
    yield stated("four, nearly perfect", 1.1 * sure, y, "logits")


def rounded(proba, parts):
    """Return shares of `parts`, as few voters would give them."""
    proba = proba / proba.sum(axis=1, keepdims=True)
    return np.random.default_rng(215).multinomial(parts, proba) / parts


def zeroed(proba):
    """Return the probabilities of the three most likely classes alone."""
    kept = np.where(proba >= np.sort(proba, axis=1)[:, [-3]], proba, 0)
    return kept / kept.sum(axis=1, keepdims=True)


def kept_sets():
    with warnings.catch_warnings():
        # Nets that have not converged are what users have, too.
        warnings.simplefilter("ignore")
        for make in (two_classes, several_classes):
            for found in make():
                scores = np.asarray(found.scores, dtype=np.float64)
                if found.form == "proba":
                    scores /= scores.sum(axis=1, keepdims=True)
                yield found._replace(scores=scores)


def rare_sets() -> Iterator[tuple[PredictionSet, np.ndarray]]:
    """Yield sets with a rare class, and the true probabilities of its samples.

    Scores are decision values where the model has them. The kinds of data take turns.
    """
    kinds = list(rare_classes.POPULATIONS)
    for (i, rate), (j, name) in product(enumerate(rare_classes.RATES), enumerate(RARE_MODELS)):
        n_train, kind = rare_classes.N_TRAIN, kinds[(i + j) % len(kinds)]
        X, y, proba = rare_classes.draw(kind, rate, n_train + 9000, RARE_SEED + j)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = RARE_MODELS[name](X[:n_train], y[:n_train])
        X, y, proba = X[n_train:], y[n_train:], proba[n_train:]
        form = "logits" if hasattr(model, "decision_function") else "proba"
        scores = model.decision_function(X) if form == "logits" else model.predict_proba(X)
        yield stated(f"{rate:.1%}, {kind}, {name}", scores, y, form), proba
