"""LossScorer: log-loss in-sample and out-of-fold."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

from skcalib.difficulty import LossScorer


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(90, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    return X, np.array(["ant", "bee", "cat"])[y]


def _log_losses(model, X, y):
    proba = model.predict_proba(X)
    return [-np.log(row[list(model.classes_).index(label)]) for row, label in zip(proba, y)]


def test_in_sample(data):
    X, y = data
    model = LogisticRegression().fit(X, y)
    scorer = LossScorer(LogisticRegression())
    np.testing.assert_allclose(scorer.fit_difficulty(X, y), _log_losses(model, X, y))
    np.testing.assert_allclose(scorer.difficulty(X, y), _log_losses(model, X, y))
    np.testing.assert_allclose(scorer.difficulty(X), -np.log(model.predict_proba(X).max(axis=1)))
    np.testing.assert_array_equal(scorer.classes_, ["ant", "bee", "cat"])


@pytest.mark.parametrize("cv", [3, KFold(4)])
def test_out_of_fold(data, cv):
    X, y = data
    splitter = StratifiedKFold(3) if cv == 3 else cv
    expected = np.empty(len(X))
    for train, test in splitter.split(X, y):
        model = LogisticRegression().fit(X[train], y[train])
        expected[test] = _log_losses(model, X[test], y[test])
    scorer = LossScorer(LogisticRegression(), cv=cv)
    np.testing.assert_allclose(scorer.fit_difficulty(X, y), expected)
    # For new rows, the classifier fitted on all of them.
    np.testing.assert_allclose(
        scorer.difficulty(X, y), _log_losses(LogisticRegression().fit(X, y), X, y)
    )


def test_out_of_fold_does_not_memorise(data):
    X, y = data
    flipped = y.copy()
    flipped[:10] = np.where(y[:10] == "ant", "bee", "ant")
    memory = KNeighborsClassifier(1)
    in_sample = LossScorer(memory).fit_difficulty(X, flipped)
    assert not in_sample.any()
    assert LossScorer(memory, cv=5).fit_difficulty(X, flipped)[:10].mean() > 30
    assert np.isfinite(LossScorer(memory, cv=5).fit_difficulty(X, flipped)).all()


def test_sample_weight(data):
    X, y = data
    weight = np.arange(90) % 3
    scorer = LossScorer(LogisticRegression()).fit(X, y, sample_weight=weight)
    by_hand = LogisticRegression().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(scorer.difficulty(X, y), _log_losses(by_hand, X, y))
    folds = LossScorer(LogisticRegression(), cv=3).fit_difficulty(X, y, sample_weight=weight)
    train, test = next(StratifiedKFold(3).split(X, y))
    by_hand = LogisticRegression().fit(X[train], y[train], sample_weight=weight[train])
    np.testing.assert_allclose(folds[test], _log_losses(by_hand, X[test], y[test]))


def test_metadata_routing(data):
    X, y = data
    weight = np.arange(90) % 3
    expected = LossScorer(LogisticRegression(), cv=3).fit_difficulty(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        routed = LossScorer(model, cv=3).fit_difficulty(X, y, sample_weight=weight)
    np.testing.assert_allclose(routed, expected)


@pytest.mark.parametrize("cv", [None, 3])
def test_column_of_labels(data, cv):
    X, y = data
    scorer = LossScorer(LogisticRegression(), cv=cv)
    expected = scorer.fit_difficulty(X, y)
    with pytest.warns(DataConversionWarning):
        np.testing.assert_array_equal(scorer.fit_difficulty(X, y[:, None]), expected)


@pytest.mark.parametrize("cv", [None, 3])
def test_weights_must_not_be_negative(data, cv):
    X, y = data
    weight = np.where(np.arange(90) == 5, -1.0, 1.0)
    scorer = LossScorer(LogisticRegression(), cv=cv)
    with pytest.raises(ValueError, match=r"sample_weight must be finite and not .* in row 5"):
        scorer.fit_difficulty(X, y, sample_weight=weight)


def test_bad_input(data):
    X, y = data
    scorer = LossScorer(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="y must hold labels among "):
        scorer.difficulty(X, np.full(90, "dog"))
    with pytest.raises(ValueError, match=r"y must have shape \(90,\), got \(3,\)"):
        scorer.difficulty(X, y[:3])
    with pytest.raises(ValueError, match="'estimator' parameter of LossScorer"):
        LossScorer(LinearSVC()).fit(X, y)
    with pytest.raises(ValueError, match="'C' parameter of LogisticRegression"):
        LossScorer(LogisticRegression(C=-1.0)).fit(X, y)


def test_labels_are_required():
    assert get_tags(LossScorer(LogisticRegression())).target_tags.required
