"""Sections one by one: samples, labels, calibrators, warnings."""

import io
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from skcalib.datasets import flip_labels, make_predictions
from skcalib.difficulty import RMDScorer, error_rate_by_difficulty
from skcalib.posthoc import TemperatureScaling
from skcalib.report import CalibrationReport


@pytest.fixture(scope="module")
def digits():
    """Labels of the test samples, a twentieth of them wrong, and what belongs to them."""
    data = load_digits()
    X, y = data.data / 16, data.target
    model = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
    given, flipped = flip_labels(y[1::2], fraction=0.05, random_state=3)
    scorer = RMDScorer().fit(X[::2], y[::2])
    report = CalibrationReport.from_estimator(
        model, X[1::2], given, scorer=scorer, images=data.images[1::2]
    )
    return report.results_, X[1::2], given, flipped, model, scorer, data.images[1::2]


def test_hardest_samples_are_those_of_the_scorer(digits):
    results, X, given, _, model, scorer, _ = digits
    difficulty = scorer.difficulty(X, given)
    order = np.argsort(-difficulty)
    table = results["hardest"]["table"]
    assert [entry["sample"] for entry in table] == order[: len(table)].tolist()
    assert table[0]["difficulty"] == pytest.approx(difficulty.max())
    assert table[0]["predicted"] == model.predict(X[order[:1]])[0]
    assert results["hardest"]["source"] == "RelativeMahalanobisScorer"
    rates = error_rate_by_difficulty(given, model.predict(X), difficulty)
    assert [group["value"] for group in results["hardest"]["error_rate"]] == rates.tolist()


def test_images_of_the_samples_are_shown(digits):
    results, *_, images = digits
    entry = results["hardest"]["table"][0]
    head, data = entry["image"].split(",")
    assert head == "data:image/png;base64"
    picture = np.asarray(Image.open(io.BytesIO(b64decode(data))))
    image = images[entry["sample"]]
    spread = (image - image.min()) / (image.max() - image.min())
    np.testing.assert_allclose(picture / 255, spread, atol=1 / 255)


def test_suspected_labels_are_mostly_wrong_and_named_first(digits):
    results, _, given, flipped, *_ = digits
    table = results["issues"]["table"]
    assert np.mean([flipped[entry["sample"]] for entry in table]) > 0.8
    assert results["issues"]["noise_rate"] == pytest.approx(0.05, abs=0.02)
    for entry in table:
        assert entry["label"] == given[entry["sample"]] != entry["suggested_label"]


def test_suspected_labels_without_features():
    y, proba, _ = make_predictions(600, n_classes=3, scale=6.0, random_state=0)
    given, flipped = flip_labels(y, fraction=0.1, random_state=1)
    issues = CalibrationReport.from_predictions(given, proba).results_["issues"]
    assert issues["source"] == "the probabilities of the model"
    assert np.mean([flipped[entry["sample"]] for entry in issues["table"]]) > 0.8


def test_rare_classes_leave_labels_unchecked():
    y, proba, _ = make_predictions(20, n_classes=3, random_state=0)
    report = CalibrationReport.from_predictions(y, proba)
    assert report.results_["issues"]["table"] is None
    assert "Labels were not checked" in report.to_markdown()
    assert "Calibrators were not compared" in report.to_markdown()


def test_calibrators_are_judged_on_samples_they_have_not_seen():
    y, proba, _ = make_predictions(300, n_classes=3, temperature=2.0, random_state=0)
    results = CalibrationReport.from_predictions(y, proba).results_["calibrators"]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    calibrated = np.empty_like(proba)
    for train, test in folds.split(proba, y):
        calibrator = TemperatureScaling(input="proba").fit(proba[train], y[train])
        calibrated[test] = calibrator.predict_proba(proba[test])
    before, after = results["table"][:2]
    assert before["log_loss"] == pytest.approx(log_loss(y, proba))
    assert after["log_loss"] == pytest.approx(log_loss(y, calibrated))
    brier = np.mean(np.sum((calibrated - np.eye(3)[y]) ** 2, axis=1))
    assert after["brier"] == pytest.approx(brier)
    each = np.log(proba[np.arange(300), y]) - np.log(calibrated[np.arange(300), y])
    half = 1.959964 * each.std(ddof=1) / np.sqrt(300)
    difference = after["log_loss_difference"]
    assert difference["low"] == pytest.approx(each.mean() - half)
    assert difference["high"] == pytest.approx(each.mean() + half)


@pytest.mark.parametrize(("temperature", "best"), [(2.0, "TemperatureScaling"), (1.0, None)])
def test_simplest_calibrator_that_helps_is_named_with_its_code(temperature, best):
    y, proba, _ = make_predictions(2000, temperature=temperature, random_state=0)
    results = CalibrationReport.from_predictions(y, proba).results_["calibrators"]
    assert results["best"] == best
    if best is None:
        assert results["code"] == ""
        return
    names = {"proba_held_out": proba, "y_held_out": y, "proba_new": proba}
    exec(results["code"], names)
    assert names["proba"].shape == proba.shape


def test_code_for_a_model_runs(digits):
    results, X, given, _, model, *_ = digits
    names = {"model": model, "X_held_out": X, "y_held_out": given}
    assert results["calibrators"]["best"] is not None
    exec(results["calibrators"]["code"], names)
    assert names["model"].predict_proba(X).shape == (len(X), 10)


def test_warnings_name_what_is_missing():
    proba = np.repeat([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 30, axis=0)
    y = np.repeat([0, 1], 30)
    y[0] = 1
    report = CalibrationReport.from_predictions(y, proba, labels=[0, 1, 2])
    warnings = " ".join(report.results_["warnings"])
    assert "Few samples: with 60" in warnings
    assert "1 without any sample (2)" in warnings
    assert "100.0 % of the samples say exactly 1, and 1 true labels have probability 0" in warnings
    assert "60 samples have 1 different confidences" in warnings
    assert "The temperature is at its lower bound" in warnings
    report._repr_html_()


def test_nothing_is_warned_of_without_cause():
    y, proba, _ = make_predictions(1500, n_classes=3, random_state=0)
    assert CalibrationReport.from_predictions(y, proba).results_["warnings"] == []


@pytest.mark.parametrize("right", [True, False])
def test_all_right_and_all_wrong_are_reported(right):
    y = np.zeros(40, int)
    proba = np.tile([0.8, 0.2] if right else [0.2, 0.8], (40, 1))
    report = CalibrationReport.from_predictions(y, proba)
    assert report.results_["overview"]["accuracy"]["value"] == right
    assert report.results_["selective"]["auroc"] is None
    report._repr_html_()


def test_one_sample_is_reported():
    report = CalibrationReport.from_predictions([1], [[0.2, 0.3, 0.5]])
    report._repr_html_()
    report.to_markdown()


def test_calibrators_left_out_for_many_classes_are_named():
    y, proba, _ = make_predictions(500, n_classes=40, scale=4.0, random_state=0)
    report = CalibrationReport.from_predictions(y, proba)
    assert report.results_["calibrators"]["left_out"] == ["DirichletCalibration"]
    assert "Left out for so many samples and classes: DirichletCalibration." in (
        report.to_markdown()
    )
    assert "20 more classes have smaller errors" in report.to_markdown()
