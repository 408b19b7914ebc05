"""Folds that leave out some samples never or twice, or whose training parts lack a class."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB

from skcalib.difficulty import LossScorer, RMDScorer, cross_val_difficulty
from skcalib.labels import LabelIssueFinder
from skcalib.posthoc import PostHocCalibratedClassifier, TemperatureScaling
from skcalib.selection import SelectiveClassifier
from skcalib.utils import SkcalibWarning

RNG = np.random.default_rng(0)
Y = np.array(["a", "b", "c"])[RNG.choice(3, 300, p=[0.45, 0.45, 0.1])]
X = RNG.normal(size=(300, 3)) + 2 * (Y[:, None] == ["a", "b", "c"])
# Class c comes from one group.
GROUPS = np.where(Y == "c", 0, RNG.integers(1, 10, 300))


@pytest.mark.slow
def test_a_class_that_a_training_part_lacks_is_an_error_of_a_calibrated_classifier():
    message = r"^y must hold samples of every class in all training parts, got .* class \['c'\] in"
    model = PostHocCalibratedClassifier(GaussianNB())
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, groups=GROUPS)
    order = np.argsort(Y)
    with pytest.raises(ValueError, match=message):
        model.set_params(cv=KFold(3)).fit(X[order], Y[order])
    model.set_params(cv=LeaveOneGroupOut()).fit(X, Y, groups=np.arange(300) % 7)
    # A class of one sample is in no training part beside it.
    labels = np.where(np.arange(300) == 0, "d", Y)
    with pytest.raises(ValueError, match=r"training part that lacks class \['d'\] in fold 0 of"):
        model.set_params(cv=KFold(3)).fit(X, labels)


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
def test_a_class_of_one_sample_is_named_too():
    some = np.arange(40)
    labels = np.where(some == 0, "d", Y[some])
    for tool in (LabelIssueFinder, SelectiveClassifier):
        with pytest.warns(SkcalibWarning, match=r"lacks class \['d'\] in fold 0 of cv"):
            tool(GaussianNB(), cv=LeaveOneOut()).fit(X[some], labels)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fit",
    [
        lambda: LabelIssueFinder(GaussianNB()).fit(X, Y, groups=GROUPS),
        lambda: SelectiveClassifier(GaussianNB(), risk=0.2).fit(X, Y, groups=GROUPS),
        lambda: LossScorer(GaussianNB(), cv=3).fit_difficulty(X, Y, groups=GROUPS),
        lambda: cross_val_difficulty(RMDScorer(), X, Y, groups=GROUPS),
    ],
)
@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
def test_and_a_warning_of_all_others(fit):
    with pytest.warns(SkcalibWarning, match=r"training part that lacks class \['c'\] in fold"):
        fit()


@pytest.mark.slow
def test_ordered_folds_calibrate_on_the_samples_that_they_leave_out():
    cv = TimeSeriesSplit(4)
    with pytest.warns(SkcalibWarning, match="leave out 240 of 300 samples: only these"):
        model = PostHocCalibratedClassifier(LogisticRegression(), "temperature", cv=cv).fit(X, Y)
    logits, labels = [], []
    for train, test in cv.split(X):
        logits.append(LogisticRegression().fit(X[train], Y[train]).decision_function(X[test]))
        labels.append(Y[test])
    expected = TemperatureScaling().fit(np.concatenate(logits), np.concatenate(labels))
    assert model.calibrator_.temperature_ == pytest.approx(expected.temperature_)
    with pytest.warns(SkcalibWarning, match="leave out 240 of 300"):
        selective = SelectiveClassifier(LogisticRegression(), risk=0.3, cv=cv).fit(X, Y)
    assert 0 < selective.coverage_ <= 1


@pytest.mark.slow
def test_repeated_folds_are_no_further_samples():
    once = PostHocCalibratedClassifier(GaussianNB(), cv=5).fit(X, Y)
    cv = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)
    with pytest.warns(SkcalibWarning, match="leave out 300 of 300 samples, 1200 times in all"):
        model = PostHocCalibratedClassifier(GaussianNB(), cv=cv).fit(X, Y)
    difference = np.abs(model.predict_proba(X) - once.predict_proba(X)).mean()
    assert difference < 0.02
    with pytest.warns(SkcalibWarning, match="1200 times in all"):
        SelectiveClassifier(GaussianNB(), risk=0.3, cv=cv).fit(X, Y)


@pytest.mark.slow
def test_as_many_folds_as_samples_leave_out_one():
    some = slice(40)
    one, other = (
        PostHocCalibratedClassifier(GaussianNB(), "temperature", cv=cv).fit(X[some], Y[some])
        for cv in (KFold(40), LeaveOneOut())
    )
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_a_label_that_the_classifier_does_not_learn_is_named():
    class Learned(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X[y != "c"], y[y != "c"])

    with pytest.raises(ValueError, match=r"^y must hold labels that .* learns, got \['c'\]"):
        PostHocCalibratedClassifier(Learned()).fit(X, Y)
