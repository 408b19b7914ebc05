"""Sections one by one: samples, labels, calibrators, warnings."""

import html
import io
import re
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image
from scipy.special import softmax
from scipy.stats import binom
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from skcalib.datasets import flip_labels, make_predictions
from skcalib.difficulty import RMDScorer
from skcalib.labels import LabelIssueFinder
from skcalib.posthoc import PostHocCalibratedClassifier, StackedCalibration, TemperatureScaling
from skcalib.report import CalibrationReport
from skcalib.utils._output import warn


@pytest.fixture(scope="module")
def digits():
    """Labels of the test samples, a twentieth of them wrong, and what belongs to them."""
    data = load_digits()
    X, y = data.data / 16, data.target
    model = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
    given, flipped = flip_labels(y[1::2], fraction=0.05, random_state=3)
    scorer = RMDScorer().fit(X[::2], y[::2])
    report = CalibrationReport.from_estimator(
        model, X[1::2], given, scorer=scorer, images=data.images[1::2] + 3
    )
    return report.results_, X[1::2], given, flipped, model, scorer, data.images[1::2]


@pytest.mark.slow
def test_hardest_samples_are_those_of_the_scorer(digits):
    results, X, given, _, model, scorer, _ = digits
    difficulty = scorer.difficulty(X, given)
    order = np.argsort(-difficulty)
    table = results["hardest"]["table"]
    assert [entry["sample"] for entry in table] == order[: len(table)].tolist()
    assert table[0]["difficulty"] == pytest.approx(difficulty.max())
    assert table[0]["predicted"] == model.predict(X[order[:1]])[0]
    assert results["hardest"]["source"] == "RelativeMahalanobisScorer"


@pytest.mark.slow
def test_images_of_the_samples_are_shown(digits):
    results, *_, images = digits
    entry = results["hardest"]["table"][0]
    head, data = entry["image"].split(",")
    assert head == "data:image/png;base64"
    picture = np.asarray(Image.open(io.BytesIO(b64decode(data))))
    image = images[entry["sample"]]
    spread = (image - image.min()) / (image.max() - image.min())
    np.testing.assert_allclose(picture / 255, spread, atol=1 / 255)


@pytest.mark.slow
def test_suspected_labels_are_mostly_wrong_and_named_first(digits):
    results, _, given, flipped, *_ = digits
    table = results["issues"]["table"]
    assert np.mean([flipped[entry["sample"]] for entry in table]) > 0.8
    assert results["issues"]["noise_rate"] == pytest.approx(0.05, abs=0.02)
    for entry in table:
        assert entry["label"] == given[entry["sample"]] != entry["suggested_label"]


@pytest.mark.slow
def test_labels_are_not_assessed_by_the_probabilities_alone():
    y, proba, _ = make_predictions(200, n_classes=3, random_state=0)
    report = CalibrationReport.from_predictions(y, proba)
    assert report.results_["issues"]["table"] is None
    text = html.unescape(report.to_markdown())
    assert "Labels were not assessed: that takes features or a scorer" in text


@pytest.mark.slow
def test_labels_are_not_assessed_where_the_finder_warns(digits, monkeypatch):
    _, X, given, _, model, *_ = digits
    fit = LabelIssueFinder.fit

    def doubtful(self, *args, **kwargs):
        warn("The features do not tell the classes apart.")
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(LabelIssueFinder, "fit", doubtful)
    report = CalibrationReport.from_estimator(model, X, given)
    assert report.results_["issues"]["table"] is None
    text = html.unescape(report.to_markdown())
    assert "Labels were not assessed: the features do not tell" in text
    assert "**Labels: not assessed**. The features do not tell" in text


def test_few_samples_leave_calibrators_untried():
    y, proba, _ = make_predictions(20, n_classes=3, random_state=0)
    report = CalibrationReport.from_predictions(y, proba)
    assert "Calibrators were not compared" in report.to_markdown()


@pytest.mark.slow
def test_calibrators_are_judged_on_samples_they_have_not_seen():
    y, proba, _ = make_predictions(300, n_classes=3, temperature=2.0, random_state=0)
    results = CalibrationReport.from_predictions(y, proba).results_["calibrators"]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    calibrated = np.empty_like(proba)
    for train, test in folds.split(proba, y):
        calibrator = TemperatureScaling(input="proba").fit(proba[train], y[train])
        calibrated[test] = calibrator.predict_proba(proba[test])
    before = results["table"][0]
    after = next(line for line in results["table"] if line["name"] == "TemperatureScaling")
    assert before["log_loss"] == pytest.approx(log_loss(y, proba))
    assert after["log_loss"] == pytest.approx(log_loss(y, calibrated))
    each = np.log(proba[np.arange(300), y]) - np.log(calibrated[np.arange(300), y])
    half = 2.575829 * each.std(ddof=1) / np.sqrt(300)
    difference = after["log_loss_difference"]
    assert difference["low"] == pytest.approx(each.mean() - half)
    assert difference["high"] == pytest.approx(each.mean() + half)


@pytest.mark.slow
def test_a_gain_of_rounding_is_no_recommendation(monkeypatch):
    class AsItIs(StackedCalibration):
        """Leaves the probabilities as they are, but for rounding."""

        def _predict_proba(self, scores):
            nearly = scores * (1 + 1e-12 * (scores > 0.5))
            return nearly / nearly.sum(axis=1, keepdims=True)

    monkeypatch.setattr("skcalib.report._recommendation.StackedCalibration", AsItIs)
    rng = np.random.default_rng(783)
    logits = 1.5 * rng.normal(size=(2000, 2)) + [0.8, -0.8]
    proba = softmax(logits, axis=1)
    y = (rng.random(2000) >= proba[:, 0]).astype(int)
    found = CalibrationReport.from_predictions(y, proba).results_["calibrators"]
    assert abs(found["table"][1]["log_loss_difference"]["value"]) < 1e-9
    assert found["best"] is None


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [2.0, 1.0])
def test_what_auto_takes_is_recommended_where_it_helps(temperature):
    y, proba, _ = make_predictions(2000, temperature=temperature, random_state=0)
    report = CalibrationReport.from_predictions(y, proba)
    results = report.results_["calibrators"]
    X, labels = make_blobs(60, random_state=0)
    default = PostHocCalibratedClassifier(GaussianNB()).fit(X, labels).calibrator_
    assert results["auto"] == type(default).__name__
    if temperature == 1.0:
        assert results["best"] is None
        assert results["code"] == ""
        return
    assert results["best"] == results["auto"]
    assert "**Calibrate it**" in report.to_markdown()
    names = {"proba_held_out": proba, "y_held_out": y, "proba_new": proba}
    exec(results["code"], names)
    assert names["proba"].shape == proba.shape


@pytest.mark.slow
def test_code_for_a_model_runs():
    X, y = load_digits(return_X_y=True)
    model = GaussianNB().fit(X[::2], y[::2])
    results = CalibrationReport.from_estimator(model, X[1::2], y[1::2]).results_["calibrators"]
    assert results["best"] is not None
    names = {"model": model, "X_held_out": X[1::2], "y_held_out": y[1::2]}
    exec(results["code"], names)
    assert names["model"].predict_proba(X).shape == (len(X), 10)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_promised_threshold_is_that_of_the_selective_classifier(n_classes):
    y, proba, _ = make_predictions(3000, n_classes=n_classes, scale=4.0, random_state=0)
    promise = CalibrationReport.from_predictions(y[:2000], proba[:2000]).results_["selective"]
    error_rate, promise = promise["error_rate"], promise["promise"]
    assert promise["kept"]
    assert promise["risk"] <= error_rate / 2
    correct = proba.argmax(axis=1) == y
    answered = proba.max(axis=1) > promise["threshold"]
    assert answered[:2000].mean() == pytest.approx(promise["coverage"])
    # An exact bound of the error rate of the answers, at the level of the report.
    wrong, n = (~correct[:2000][answered[:2000]]).sum(), answered[:2000].sum()
    assert binom.cdf(wrong, n, promise["risk"]) <= 0.01
    assert (~correct[2000:][answered[2000:]]).mean() <= promise["risk"]


@pytest.mark.slow
def test_warnings_name_what_is_missing():
    proba = np.repeat([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 30, axis=0)
    y = np.repeat([0, 1], 30)
    y[0] = 1
    report = CalibrationReport.from_predictions(y, proba, labels=[0, 1, 2])
    warnings = " ".join(report.results_["warnings"])
    assert "1 without any sample (2)" in warnings
    assert "100.0 % of the samples say exactly 1, and 1 true labels have probability 0" in warnings
    report._repr_html_()


@pytest.mark.slow
def test_nothing_is_warned_of_without_cause():
    y, proba, _ = make_predictions(1500, n_classes=3, random_state=0)
    assert CalibrationReport.from_predictions(y, proba).results_["warnings"] == []


@pytest.mark.slow
@pytest.mark.parametrize("right", [True, False])
def test_all_right_and_all_wrong_are_reported(right):
    y = np.zeros(40, int)
    proba = np.tile([0.8, 0.2] if right else [0.2, 0.8], (40, 1))
    report = CalibrationReport.from_predictions(y, proba)
    assert report.results_["overview"]["accuracy"]["value"] == right
    report._repr_html_()


@pytest.mark.slow
def test_one_sample_is_reported():
    report = CalibrationReport.from_predictions([1], [[0.2, 0.3, 0.5]])
    report._repr_html_()
    report.to_markdown()


@pytest.mark.slow
def test_many_classes_have_whole_names():
    names = np.array([f"a class whose name is long and ends in {k}" for k in range(25)])
    y, proba, _ = make_predictions(500, n_classes=25, scale=4.0, random_state=0)
    report = CalibrationReport.from_predictions(names[y], proba, labels=names)
    page = report._repr_html_()
    shown = [entry for entry in report.results_["group_tests"] if entry["kind"] == "class"]
    assert len(shown) == 25
    for entry in shown[:12]:
        assert f'<span class="name">{entry["name"]}</span>' in page or entry["name"] in page
    assert "more are in the tables below" in page
    assert re.search(r"\b5 more classes are in results_\.", page)


@pytest.mark.slow
def test_classes_in_another_order_than_the_columns_are_reported():
    y, proba, _ = make_predictions(300, n_classes=3, random_state=0)
    names = np.array(["small", "medium", "large"])
    # Without labels the columns are those of the sorted names.
    sorted_names = CalibrationReport.from_predictions(names[y], proba)
    given = CalibrationReport.from_predictions(names[y], proba, labels=names)
    summary = sorted_names.results_["summary"]
    assert summary["kind"] == "alignment"
    assert "if they were those of ['small', 'medium', 'large']." in summary["explanation"]
    page = sorted_names.to_markdown()
    assert "look at this first" in page
    # No advice for a model that may be a good one.
    assert "Calibrate" not in page.split("## ")[0]
    assert given.results_["summary"]["kind"] != "alignment"


@pytest.mark.slow
def test_the_advice_holds_in_the_order_in_which_it_stands():
    """Calibrate as the page says, decline as it says next: its promises hold on new samples."""
    broken: list[bool] = []
    for seed in (2, 3, 4):
        rng, n = np.random.default_rng(seed), 3000
        scores = rng.normal(size=(43_000, 3)) * 3
        true = softmax(scores, axis=1)
        proba = softmax(0.35 * scores, axis=1)
        y = (rng.random(len(true))[:, None] > np.cumsum(true, axis=1)).sum(axis=1)
        report = CalibrationReport.from_predictions(y[:n], proba[:n])
        found = report.results_["after_calibration"]["selective"]
        text = html.unescape(report.to_markdown())
        assert text.index("**Calibrate it**") < text.index("**Then decline below a calibrated")
        pasted = {
            "proba_held_out": proba[:n],
            "y_held_out": y[:n],
            "proba_new": proba[n:],
        }
        exec(report.results_["calibrators"]["code"], pasted)
        calibrated = pasted["proba"]
        for entry in found["table"]:
            if entry["kept"]:
                answered = calibrated.max(axis=1) > entry["threshold"]
                wrong = (calibrated.argmax(axis=1) != y[n:])[answered]
                broken.append(wrong.mean() > entry["risk"])
    assert len(broken) >= 3
    assert not any(broken)
