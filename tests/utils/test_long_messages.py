"""No error of ours is longer than 500 characters, however many classes and letters there are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skcalib.difficulty import RMDScorer
from skcalib.labels import LabelIssueFinder
from skcalib.metrics import (
    CalibrationAccumulator,
    calibration_error_interval,
    expected_calibration_error,
    get_scorer,
)
from skcalib.plots import LossComparisonDisplay
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.report import CalibrationReport
from skcalib.selection import SelectiveClassifier
from skcalib.utils import SkcalibWarning

RNG = np.random.RandomState(0)
NAMES = [f"class_with_a_long_name_{i:05d}_{'x' * 60}" for i in range(300)]
LONG = "z" * 5000
P = RNG.dirichlet(np.ones(300), 900)
Y = np.array(NAMES)[np.arange(900) % 300]
X = RNG.randn(900, 2)
OTHER = np.array(["other " + name for name in Y])


def _frozen():
    model = LogisticRegression()
    model.classes_, model.coef_ = np.array(NAMES), RNG.randn(300, 2)
    model.intercept_, model.n_features_in_ = np.zeros(300), 2
    return FrozenEstimator(model)


def _columns(names):
    return pd.DataFrame(P, columns=names)


CASES = {
    "an unknown label": lambda: expected_calibration_error(np.r_[Y[:-1], [LONG]], P, labels=NAMES),
    "names of columns": lambda: expected_calibration_error(Y, _columns([*NAMES[1:], LONG])),
    "labels for fewer columns": lambda: expected_calibration_error(Y, P, labels=NAMES[:9]),
    "columns without names": lambda: expected_calibration_error(Y, P[:, :9]),
    "one column of many classes": lambda: expected_calibration_error(Y, P[:, 0]),
    "a positive class": lambda: expected_calibration_error(
        np.array(NAMES)[RNG.randint(0, 2, 900)], P[:, 0], pos_label=LONG
    ),
    "a scorer": lambda: get_scorer(LONG),
    "a metric": lambda: calibration_error_interval(Y, P, metric=LONG, labels=NAMES),
    "a metric of sums": lambda: CalibrationAccumulator().result(LONG),
    "metrics with sums": lambda: CalibrationAccumulator(metrics=[LONG]),
    "names of models": lambda: CalibrationReport.compare(
        dict.fromkeys(NAMES, P), dict.fromkeys(NAMES[1:], Y)
    ),
    "a baseline": lambda: LossComparisonDisplay.from_scores(
        {name: [1.0, 2.0] for name in NAMES}, baseline=LONG
    ),
    "classes of a frozen model": lambda: PostHocCalibratedClassifier(_frozen()).fit(X, OTHER),
    "classes of a judge": lambda: LabelIssueFinder(_frozen()).fit(X, OTHER),
    "limits of the classes": lambda: SelectiveClassifier(
        _frozen(), risk=dict.fromkeys([*NAMES[1:], LONG], 0.1)
    ).fit(X, Y),
    "a report": lambda: CalibrationReport.from_estimator(_frozen(), X, OTHER),
    "a new label": lambda: RMDScorer().partial_fit(X, Y, classes=NAMES).partial_fit(X, OTHER),
    "other classes": lambda: (
        RMDScorer().partial_fit(X, Y, classes=NAMES).partial_fit(X, Y, classes=NAMES[1:])
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_a_message_can_be_read(what):
    with pytest.raises((ValueError, TypeError)) as raised:
        CASES[what]()
    assert len(str(raised.value)) <= 500
    assert "zzzz" * 20 not in str(raised.value)


def test_how_many_there_are_is_said():
    with pytest.raises(ValueError, match=r"\['class_.*\.\.\., .* and 298 more\], got 'zzz"):
        expected_calibration_error(np.r_[Y[:-1], [LONG]], P, labels=NAMES)
    with pytest.raises(ValueError, match=r"among \[0, 1, 2\], got 3 in row 1"):
        expected_calibration_error([0, 3], np.full((2, 3), 1 / 3), labels=[0, 1, 2])


def test_a_warning_of_many_limits_can_be_read():
    with pytest.warns(SkcalibWarning, match="^No threshold keeps the error rate") as caught:
        SelectiveClassifier(_frozen(), risk=dict.fromkeys(NAMES[1:], 0.1)).fit(X, Y)
    assert max(len(str(warning.message)) for warning in caught) <= 500
