"""Weights, groups and labels whose index is in another order than that of the samples."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from skcalib.difficulty import DifficultyAwareClassifier, NoveltyDetector, RMDScorer
from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder
from skcalib.posthoc import (
    GroupwiseCalibration,
    PostHocCalibratedClassifier,
    TemperatureScaling,
)
from skcalib.selection import SelectiveClassifier

X, Y = load_iris(return_X_y=True)
RNG = np.random.RandomState(0)
NAMES = [f"patient {i}" for i in range(150)]
LABELS = pd.Series(Y, index=NAMES)
SCORES = 2 * np.eye(3)[Y] + RNG.randn(150, 3)
MODEL = LogisticRegression(max_iter=1000)
AWARE = DifficultyAwareClassifier(MODEL, RMDScorer(), fit_param="sample_weight")
BY_ROW = {
    "sample_weight": pd.Series(RNG.rand(150) + 0.5, index=NAMES),
    "groups": pd.Series(np.arange(150) // 2, index=NAMES),
    "verified": pd.Series(RNG.rand(150) < 0.1, index=NAMES),
    "by": pd.Series(RNG.rand(150) < 0.5, index=NAMES),
}
FITS = {
    "finder": (LabelIssueFinder(MODEL), X, ("sample_weight", "groups", "verified")),
    "cleaning": (LabelCleaningClassifier(MODEL, LabelIssueFinder(RMDScorer())), X, ("verified",)),
    "selective": (SelectiveClassifier(MODEL, risk=0.3), X, ("groups",)),
    "calibrated": (PostHocCalibratedClassifier(MODEL), X, ("sample_weight", "groups")),
    "calibrator": (TemperatureScaling(), SCORES, ("sample_weight", "groups")),
    "by groups": (GroupwiseCalibration("temperature"), SCORES, ("by", "groups")),
    "aware": (AWARE, X, ("sample_weight",)),
    "novelty": (NoveltyDetector(RMDScorer()), X, ("groups",)),
    "distances": (RMDScorer(), X, ("sample_weight",)),
}
CASES = [(name, what) for name, (_, _, known) in FITS.items() for what in known]


@pytest.mark.parametrize(("name", "what"), CASES)
def test_another_order_is_refused_and_the_same_is_not(name, what):
    estimator, samples, _ = FITS[name]
    given = BY_ROW[what]
    order = np.random.RandomState(1).permutation(150)
    sentence = rf"y and {what} must have their rows in the same order, .* {what}\.loc\[y\.index\]"
    with pytest.raises(ValueError, match=sentence):
        estimator.fit(samples, LABELS, **{what: given.iloc[order]})
    if name not in ("finder", "cleaning"):  # a fit takes a second
        estimator.fit(samples, LABELS, **{what: given})
        # A numbering says nothing.
        estimator.fit(samples, LABELS, **{what: given.reset_index(drop=True)})


def test_frames_and_labels_of_a_scorer():
    frame = pd.DataFrame(X, index=NAMES).add_prefix("x")
    with pytest.raises(ValueError, match=r"X and y must have their rows in the same order"):
        RMDScorer().fit(frame.iloc[::-1], LABELS)
    RMDScorer().fit(frame.iloc[::-1], LABELS.iloc[::-1])
