import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.difficulty import (
    KMeansPrototypeScorer,
    LossScorer,
    NoveltyDetector,
    RelativeMahalanobisScorer,
    cross_val_difficulty,
)
from skcalib.utils import SkcalibWarning

X, Y = load_iris(return_X_y=True)
X, first = np.unique(X, axis=0, return_index=True)  # one flower is in it twice
Y = Y[first]


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    "scorer",
    [
        RelativeMahalanobisScorer(),
        LossScorer(LogisticRegression(max_iter=1000)),
        KMeansPrototypeScorer(3, random_state=0),
        make_pipeline(StandardScaler(), RelativeMahalanobisScorer()),
    ],
)
def test_every_sample_is_scored_by_a_fit_on_the_other_folds(scorer, n_jobs):
    folds = KFold(3, shuffle=True, random_state=0)
    difficulty = cross_val_difficulty(scorer, X, Y, cv=folds, n_jobs=n_jobs)
    for train, test in folds.split(X):
        if hasattr(scorer, "steps"):
            scaler = StandardScaler().fit(X[train])
            fitted = RelativeMahalanobisScorer().fit(scaler.transform(X[train]), Y[train])
            expected = fitted.difficulty(scaler.transform(X[test]), Y[test])
        else:
            expected = scorer.fit(X[train], Y[train]).difficulty(X[test], Y[test])
        np.testing.assert_allclose(difficulty[test], expected, rtol=1e-9)


@pytest.mark.slow
def test_leaving_out_one_sample_is_the_closed_form():
    scorer = RelativeMahalanobisScorer()
    left_out = cross_val_difficulty(scorer, X[::5], Y[::5], cv=LeaveOneOut())
    closed = scorer.fit(X[::5], Y[::5]).leave_one_out_difficulty(X[::5], Y[::5])
    np.testing.assert_allclose(left_out, closed, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.* have a single sample:skcalib.utils.SkcalibWarning")
def test_a_label_that_the_other_folds_lack_is_infinitely_hard():
    words = np.array(["a", "b", "c"])[Y].astype(object)
    words[7] = "typo"
    difficulty = cross_val_difficulty(RelativeMahalanobisScorer(), X, words, cv=KFold(15))
    assert np.flatnonzero(np.isinf(difficulty)).tolist() == [7]


def test_samples_left_out_several_times_have_the_mean_difficulty():
    scorer, cv = RelativeMahalanobisScorer(), ShuffleSplit(3, test_size=0.4, random_state=0)
    total, count = np.zeros(len(Y)), np.zeros(len(Y))
    for train, test in cv.split(X):
        total[test] += scorer.fit(X[train], Y[train]).difficulty(X[test], Y[test])
        count[test] += 1
    n = np.count_nonzero(count)
    with pytest.warns(SkcalibWarning, match=f"leave out {n} of {len(Y)} samples, .* times in all"):
        found = cross_val_difficulty(scorer, X, Y, cv=cv)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, total / count)
    assert np.isnan(found).any()


def test_what_is_no_scorer_is_refused():
    with pytest.raises(TypeError, match="must be a difficulty scorer"):
        cross_val_difficulty(LogisticRegression(max_iter=1000), X, Y)


@pytest.mark.parametrize("cv", [60, 200])
def test_more_folds_than_samples_are_named(cv):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="cv must fit the samples, got folds that do not"):
        cross_val_difficulty(RelativeMahalanobisScorer(), X, y, cv=cv)
    with pytest.raises(ValueError, match="cv must fit the samples, got folds that do not"):
        NoveltyDetector(RelativeMahalanobisScorer(), cv=cv).fit(X, y)
