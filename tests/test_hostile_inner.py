"""Meta-estimators around classifiers whose classes are not those of a textbook."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from skcalib.difficulty import LossScorer
from skcalib.labels import LabelIssueFinder
from skcalib.posthoc import PostHocCalibratedClassifier, VectorScaling
from skcalib.selection import SelectiveClassifier
from tests.hostile_inner import (
    CODES,
    METAS,
    Case,
    Reordered,
    X,
    cases,
    expected,
    file_outcomes,
    outcome,
)

CASES = list(cases())
# All of them, with all meta-estimators, would take minutes.
TESTED = [case for case in CASES if case.name.startswith(("int8", "text", "bool", "col", "froz"))]


@pytest.mark.parametrize("case", TESTED, ids=lambda case: case.name)
@pytest.mark.parametrize("meta", ["PostHoc, vector", "Selective", "Subset", "Cleaning, drop"])
def test_no_wrong_answer_in_silence(meta, case):
    assert outcome(meta, case).partition(":")[0] == expected(case)


@pytest.mark.parametrize("meta", METAS)
def test_classes_in_another_order(meta):
    names = np.array(["c", "a", "b"])
    case = Case("", names[CODES], np.arange(len(X)), Reordered(["c", "a", "b"]))
    assert outcome(meta, case) == "right"


def test_the_check_can_fail():
    class Unaligned(PostHocCalibratedClassifier):
        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

    METAS["unaligned"] = lambda c: Unaligned(c, VectorScaling())
    case = Case("", CODES, np.arange(len(X)), Reordered())
    assert outcome("unaligned", case).startswith("silent")
    del METAS["unaligned"]


@pytest.mark.slow
def test_damaged_files_are_refused_by_name():
    assert set(dict(file_outcomes()).values()) == {"refused"}


@pytest.mark.slow
def test_weights_of_classes_are_those_of_the_labels():
    """Folds get the labels as they are: a dict of labels would mean other classes elsewhere."""
    rng = np.random.default_rng(0)
    b = rng.integers(0, 2, 2000)
    X, grades = rng.normal(size=(2000, 4)) + 0.7 * b[:, None], b + 1
    weighted = LogisticRegression(class_weight={0: 1.0, 1: 20.0, 2: 1.0})
    model = PostHocCalibratedClassifier(weighted, VectorScaling()).fit(X, grades)
    # By hand, with the same folds.
    scores = np.empty(len(X))
    for train, test in StratifiedKFold(5).split(X, grades):
        fitted = clone(weighted).fit(X[train], grades[train])
        scores[test] = fitted.decision_function(X[test])
    by_hand = VectorScaling().fit(scores, grades)
    np.testing.assert_array_equal(model.calibrator_.coef_, by_hand.coef_)
    assert abs(model.predict_proba(X)[:, 1].mean() - b.mean()) < 0.01
    words = np.array(["n", "p"])[b]
    named = LogisticRegression(class_weight={"n": 1.0, "p": 20.0})
    out_of_fold = np.empty(len(X))
    for train, test in StratifiedKFold(5).split(X, words):
        proba = clone(named).fit(X[train], words[train]).predict_proba(X[test])
        out_of_fold[test] = -np.log(proba[np.arange(len(test)), b[test]])
    difficulty = LossScorer(named, cv=5).fit_difficulty(X, words)
    np.testing.assert_allclose(difficulty, out_of_fold, rtol=1e-12)


def test_a_finder_and_a_frozen_classifier_that_knows_more_classes():
    two = np.flatnonzero(CODES < 2)
    rng = np.random.default_rng(1)
    flipped = rng.random(len(two)) < 0.15
    given = np.where(flipped, 1 - CODES[two], CODES[two])
    frozen = FrozenEstimator(LogisticRegression().fit(X, CODES))
    finder = LabelIssueFinder(frozen, n_refits=0).fit(X[two], given)
    found = finder.issues_["is_issue"]
    assert (found & flipped).sum() >= 0.85 * flipped.sum()
    assert (found & flipped).sum() >= 0.85 * found.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    "y",
    [CODES > 0, CODES.astype("u1"), (CODES - 1).astype("i1") * 127, CODES.astype(float)],
    ids=["bool", "uint8", "int8", "float"],
)
def test_declined_samples_can_be_told_from_classes(y):
    declines_all = SelectiveClassifier(LogisticRegression(), risk=1e-4)
    with pytest.warns(UserWarning, match="every sample is declined"):
        declines_all.fit(X, y)
    answer = declines_all.predict(X)
    assert (answer == declines_all.reject_label_).all()
    assert declines_all.reject_label_ not in np.unique(y)
    assert declines_all.score(X, y) == 0
    answers = SelectiveClassifier(LogisticRegression(), risk=0.3).fit(X, y)
    answered = answers.accept(X)
    assert answered.mean() > 0.5
    np.testing.assert_array_equal(answers.predict(X) == answers.reject_label_, ~answered)


def test_a_frozen_classifier_keeps_its_classes_when_samples_are_declined():
    y = CODES - 1
    some = y >= 0
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    model = SelectiveClassifier(frozen, risk=0.2, confidence_level=0.8).fit(X[some], y[some])
    assert model.classes_.tolist() == [-1, 0, 1]
    assert model.reject_label_ == -2
    assert model.predict_proba(X).shape[1] == 3
