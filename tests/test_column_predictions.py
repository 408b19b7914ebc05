"""A classifier that predicts a column, as CatBoost does, inside of every meta-classifier."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from skcalib.difficulty import DifficultyAwareClassifier
from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.selection import MaxEntropySelector, SelectiveClassifier, SubsetClassifier


class Columns(LogisticRegression):
    def predict(self, X):
        return super().predict(X)[:, np.newaxis]


META = [
    DifficultyAwareClassifier(Columns(), fit_param="sample_weight"),
    LabelCleaningClassifier(Columns()),
    PostHocCalibratedClassifier(Columns()),
    SelectiveClassifier(Columns(), risk=0.2),
    SubsetClassifier(Columns(), MaxEntropySelector(Columns(), fraction=0.5)),
]


@pytest.mark.parametrize("names", [None, ["ant", "bee", "cat"]], ids=["integers", "strings"])
@pytest.mark.parametrize("classifier", META, ids=lambda c: type(c).__name__)
def test_predictions_are_labels(classifier, names):
    X, y = make_blobs(300, centers=3, random_state=0)
    y = y if names is None else np.array(names)[y]
    predicted = classifier.fit(X, y).predict(X)
    assert predicted.shape == (300,)
    assert predicted.dtype.kind == y.dtype.kind
    assert (predicted == y).mean() > 0.8
    assert classifier.score(X, y) == pytest.approx((predicted == y).mean())


@pytest.mark.slow
def test_wrong_labels_are_found_around_it():
    X, y = make_blobs(300, centers=3, random_state=0)
    y[:10] = (y[:10] + 1) % 3
    assert LabelIssueFinder(Columns()).fit(X, y).issues_["is_issue"][:10].sum() >= 7
