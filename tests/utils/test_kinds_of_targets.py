"""Targets that are no labels of classes: the first error names the kind and what to use."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skcalib.difficulty import RMDScorer
from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder
from skcalib.metrics import expected_calibration_error
from skcalib.posthoc import PostHocCalibratedClassifier, TemperatureScaling
from skcalib.report import CalibrationReport
from skcalib.selection import DifficultySelector, MaxEntropySelector, SelectiveClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
LABEL = RNG.integers(2, size=60)
SEVERAL = RNG.integers(2, size=(60, 3))
PROBA = RNG.random((60, 3))
TREE = DecisionTreeClassifier()
ESTIMATORS = [
    PostHocCalibratedClassifier(TREE),
    SelectiveClassifier(TREE),
    LabelCleaningClassifier(TREE),
    LabelIssueFinder(TREE),
    RMDScorer(),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_several_labels_and_numbers_are_named(estimator):
    with pytest.raises(ValueError, match=r"\(multilabel\)"):
        estimator.fit(X, SEVERAL)
    with pytest.raises(ValueError, match=r"of a regression: make classes of them"):
        estimator.fit(X, X[:, 0])


@pytest.mark.parametrize(
    "function",
    [expected_calibration_error, CalibrationReport.from_predictions],
    ids=lambda function: function.__name__,
)
def test_several_labels_in_metrics_and_reports(function):
    with pytest.raises(ValueError, match=r"\(multilabel\): take multilabel_calibration_error"):
        function(SEVERAL, PROBA)


@pytest.mark.parametrize(
    "transformer",
    [
        RMDScorer(),
        TemperatureScaling(),
        DifficultySelector(RMDScorer()),
        MaxEntropySelector(LogisticRegression()),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_names_of_features_are_compared_with_those_of_fit(transformer):
    columns = X[:, :2] if isinstance(transformer, TemperatureScaling) else X
    fitted = transformer.fit(columns, LABEL)
    names = [f"x{k}" for k in range(columns.shape[1])]
    np.testing.assert_array_equal(
        fitted.get_feature_names_out(names), fitted.get_feature_names_out()
    )
    with pytest.raises(ValueError, match="input_features should have length equal to"):
        fitted.get_feature_names_out(["wrong"] * 9)
