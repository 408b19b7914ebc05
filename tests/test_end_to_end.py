"""The chain in one Pipeline: score, weight, train, search, calibrate."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from skcalib.datasets import flip_labels
from skcalib.difficulty import DifficultyAwareClassifier, RMDScorer
from skcalib.losses import DifficultyAwareLoss, FocalLoss
from skcalib.metrics import get_scorer
from skcalib.nets import MLP, CalibratedNetClassifier
from skcalib.posthoc import TemperatureScaling


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    names = np.array(["zero", "one", "two", "three"])[y]
    names, _ = flip_labels(names, fraction=0.1, random_state=0)
    return pd.DataFrame(X[:300]).rename(columns="pixel{}".format), names[:300]


@pytest.fixture
def net():
    return CalibratedNetClassifier(
        MLP,
        module__hidden_layer_sizes=(16,),
        criterion=DifficultyAwareLoss,
        lr=0.1,
        max_epochs=3,
        train_split=None,
        device="cpu",
        random_state=0,
    )


@pytest.fixture
def pipe(net):
    scorer = Pipeline([("pca", PCA(10, random_state=0)), ("rmd", RMDScorer())])
    return Pipeline([("scale", MinMaxScaler()), ("clf", DifficultyAwareClassifier(net, scorer))])


@pytest.mark.slow
def test_grid_over_temperature_alpha_and_gamma(digits, net, pipe):
    grids = [
        {"clf__temperature": [0.3, 1.0], "clf__estimator__criterion__alpha": [0.0, 0.5]},
        {"clf": [net], "clf__criterion": [FocalLoss], "clf__criterion__gamma": [0.0, 5.0]},
    ]
    search = GridSearchCV(
        pipe, grids, scoring=get_scorer("neg_expected_calibration_error"), cv=2
    ).fit(*digits)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    # alpha = 0 at either temperature and gamma = 0 are all the cross-entropy ...
    np.testing.assert_allclose(scores[[1, 4]], scores[0], rtol=1e-5)
    # ... and every other setting is a loss of its own.
    assert len(np.unique(scores[[0, 2, 3, 5]])) == 4
    assert set(search.best_estimator_.classes_) == {"zero", "one", "two", "three"}


@pytest.mark.slow
def test_weights_come_from_the_training_fold_alone(digits, pipe):
    X, y = digits
    folds = list(StratifiedKFold(3).split(X, y))
    fitted = cross_validate(pipe, X, y, cv=folds, return_estimator=True)["estimator"]
    for (train, _), model in zip(folds, fitted):
        rows = MinMaxScaler().fit_transform(X.iloc[train])
        features = PCA(10, random_state=0).fit_transform(rows)
        difficulty = naive_rmd(features, y[train])
        rank = difficulty.argsort().argsort() / (len(difficulty) - 1)
        weights = np.exp(rank / 0.3) / (np.exp(1 / 0.3) + 1e-3)
        np.testing.assert_allclose(model[-1].difficulty_, difficulty, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(model[-1].weights_, weights, rtol=1e-6)


def naive_rmd(X, y):
    means = {label: X[y == label].mean(axis=0) for label in np.unique(y)}
    own = X - np.array([means[label] for label in y])
    every = X - X.mean(axis=0)
    tied, background = own.T @ own / len(X), every.T @ every / len(X)
    return np.array(
        [
            a @ np.linalg.solve(tied, a) - b @ np.linalg.solve(background, b)
            for a, b in zip(own, every)
        ]
    )


@pytest.mark.slow
def test_logits_of_the_chain_go_into_temperature_scaling(digits, pipe):
    X, y = digits
    pipe.fit(X, y)
    logits = pipe.decision_function(X)
    scaler = TemperatureScaling().fit(logits, y)
    np.testing.assert_array_equal(scaler.classes_, pipe.classes_)
    np.testing.assert_array_equal(scaler.predict(logits), pipe.predict(X))
    assert scaler.temperature_ != 1.0
