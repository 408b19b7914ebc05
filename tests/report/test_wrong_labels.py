"""The section of the report that allows for wrong labels."""

import numpy as np
import pytest

from skcalib.datasets import flip_labels, make_predictions
from skcalib.labels import LabelIssueFinder
from skcalib.metrics import expected_calibration_error
from skcalib.report import CalibrationReport


@pytest.fixture(scope="module")
def flipped():
    _, judge, true = make_predictions(1500, n_classes=3, random_state=0)
    sharp = true**4 / (true**4).sum(axis=1, keepdims=True)  # a judge that knows nearly all
    given, _ = flip_labels(sharp.argmax(axis=1), fraction=0.1, random_state=0)
    finder = LabelIssueFinder("precomputed").fit(np.clip(sharp, 1e-4, 1), given)
    return sharp.argmax(axis=1), given, judge, finder


@pytest.mark.slow
def test_errors_under_the_labels_of_the_finder(flipped):
    y, given, proba, finder = flipped
    report = CalibrationReport.from_predictions(given, proba, finder=finder)
    found = report.results_["wrong_labels"]
    for name, truth in (("as_given", given), ("allowed_for", finder.label_proba_)):
        error = expected_calibration_error(truth, proba)
        assert found[name]["error"]["value"] == pytest.approx(error)
        assert found[name]["error"]["low"] <= error
    top = proba.argmax(axis=1)
    accuracy = finder.label_proba_[np.arange(1500), top].mean()
    assert found["allowed_for"]["accuracy"]["value"] == pytest.approx(accuracy)
    off = [
        abs(found[name]["accuracy"]["value"] - (top == y).mean())
        for name in ("as_given", "allowed_for")
    ]
    assert off[1] < 0.5 * off[0]
    text = report.to_markdown()
    assert "After allowing for" in text
    assert "No labels were checked" in text
    assert not found["checked"]


@pytest.mark.slow
def test_checks_are_told_and_names_are_matched(flipped):
    y, given, proba, _ = flipped
    names = np.array(["ant", "bee", "cat"])
    checked = LabelIssueFinder("precomputed").fit(np.clip(proba, 1e-4, 1), names[given])
    rows = checked.draw_samples_to_check(100, random_state=0)
    checked.update_with_checks(rows, names[y[rows]])
    order = [2, 0, 1]
    report = CalibrationReport.from_predictions(
        names[given], proba[:, order], labels=names[order], finder=checked
    )
    found = report.results_["wrong_labels"]
    error = expected_calibration_error(checked.label_proba_, proba)
    assert found["allowed_for"]["error"]["value"] == pytest.approx(error)
    low, high = checked.noise_rate_interval_
    assert found["noise_rate_interval"] == [low, high]
    assert found["checked"]
    assert "No labels were checked" not in report.to_markdown()


@pytest.mark.slow
def test_without_a_finder_there_is_no_section(flipped):
    _, given, proba, finder = flipped
    report = CalibrationReport.from_predictions(given[:300], proba[:300])
    assert report.results_["wrong_labels"] is None
    assert "some labels are wrong?" not in report.to_markdown()
    with pytest.raises(ValueError, match=r"^finder must be fitted to the labels of these 300 sam"):
        CalibrationReport.from_predictions(given[:300], proba[:300], finder=finder)
    with pytest.raises(TypeError, match=r"^finder must be a fitted LabelIssueFinder, got"):
        CalibrationReport.from_predictions(given[:300], proba[:300], finder=LabelIssueFinder())


def test_a_finder_and_shares_are_one_too_many(flipped):
    _, _, proba, finder = flipped
    with pytest.raises(ValueError, match=r"^finder must be None if y_true holds soft label"):
        CalibrationReport.from_predictions(finder.label_proba_, proba, finder=finder)
