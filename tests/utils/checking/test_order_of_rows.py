"""Weights, groups and labels whose index is in another order than that of the samples."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from skcalib.difficulty import (
    DifficultyAwareClassifier,
    KMeansPrototypeScorer,
    LossScorer,
    NoveltyDetector,
    PredictionDepthScorer,
    RMDScorer,
    cross_val_difficulty,
    error_rate_by_difficulty,
)
from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder
from skcalib.metrics import CalibrationWatch, area_under_risk_coverage, misclassification_report
from skcalib.posthoc import (
    GroupwiseCalibration,
    PostHocCalibratedClassifier,
    TemperatureScaling,
)
from skcalib.selection import MaxEntropySelector, SelectiveClassifier

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
    "prototypes": (KMeansPrototypeScorer(n_init=1, random_state=0), X, ("sample_weight",)),
    "loss": (LossScorer(MODEL), X, ("sample_weight",)),
    "selector": (MaxEntropySelector(MODEL), X, ("sample_weight",)),
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


ORDER = np.random.RandomState(1).permutation(150)
FRAME = pd.DataFrame(X, index=NAMES).add_prefix("x")
PROBA = pd.DataFrame(np.full((150, 3), 1 / 3), index=NAMES)
VALUES = pd.Series(RNG.rand(150), index=NAMES)
GROUPS = BY_ROW["groups"]
CALLS = {
    "folds": lambda o: cross_val_difficulty(RMDScorer(), FRAME, LABELS, groups=GROUPS.iloc[o]),
    "labels of a network": lambda o: PredictionDepthScorer().fit(FRAME, LABELS.iloc[o]),
    "weights of a network": lambda o: PredictionDepthScorer().fit(
        FRAME, LABELS, sample_weight=BY_ROW["sample_weight"].iloc[o]
    ),
    "labels of a selector": lambda o: MaxEntropySelector(MODEL).fit(FRAME, LABELS.iloc[o]),
    "groups without labels": lambda o: NoveltyDetector(KMeansPrototypeScorer(3)).fit(
        FRAME, groups=GROUPS.iloc[o]
    ),
    "groups of a loss": lambda o: LossScorer(MODEL, cv=3).fit_difficulty(
        FRAME, LABELS, groups=GROUPS.iloc[o]
    ),
    "confidence": lambda o: area_under_risk_coverage(LABELS, PROBA, confidence=VALUES.iloc[o]),
    "named confidence": lambda o: misclassification_report(
        LABELS, PROBA, confidence={"own": VALUES.iloc[o]}
    ),
    "watch": lambda o: CalibrationWatch().update(LABELS, PROBA, by=BY_ROW["by"].iloc[o]),
    "difficulty": lambda o: error_rate_by_difficulty(LABELS, LABELS, VALUES.iloc[o]),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CALLS)
def test_calls_with_another_order(name):
    with pytest.raises(ValueError, match="must have their rows in the same order"):
        CALLS[name](ORDER)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["folds", "confidence", "watch", "difficulty"])
def test_calls_in_the_same_order(name):
    CALLS[name](np.arange(150))


def test_a_net_and_what_is_shown():
    nets = pytest.importorskip("skcalib.nets")
    plots = pytest.importorskip("skcalib.plots")
    for given in ({"y": LABELS.iloc[ORDER]}, {"sample_weight": VALUES.iloc[ORDER]}):
        with pytest.raises(ValueError, match="must have their rows in the same order"):
            nets.CalibratedNetClassifier(nets.MLP).fit(**{"X": FRAME, "y": LABELS, **given})
    with pytest.raises(ValueError, match="must have their rows in the same order"):
        plots.HardestSamplesDisplay.from_predictions(FRAME, VALUES.iloc[ORDER])


def test_answers_in_another_order_than_the_positions():
    finder = LabelIssueFinder(RMDScorer()).fit(X, Y)
    rows = finder.draw_samples_to_check(60, random_state=0)
    answers = pd.Series(Y[rows], index=rows)
    before = finder.noise_rate_
    with pytest.raises(ValueError, match=r"true_labels.loc\[positions\] puts them in order"):
        finder.recalibrate(rows, answers.sample(frac=1, random_state=0))
    assert finder.noise_rate_ == before
    expected = finder.recalibrate(rows, Y[rows]).noise_rate_
    for right in (answers, answers.reset_index(drop=True), answers.set_axis(range(1000, 1060))):
        assert finder.recalibrate(rows, right).noise_rate_ == expected
