"""The report as a whole: numbers, forms of the input, notebook, files."""

import html
import json
import re
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from skcalib import metrics
from skcalib.datasets import make_predictions
from skcalib.posthoc import StackedCalibration
from skcalib.report import CalibrationReport
from skcalib.selection import SelectiveClassifier

from ._page import read_page


def shown(x, digits=3):
    return f"{x:.{digits}f}"


@pytest.fixture(scope="module")
def predictions():
    y, proba, _ = make_predictions(600, n_classes=3, temperature=1.5, random_state=0)
    return y, proba


@pytest.fixture(scope="module")
def report(predictions):
    return CalibrationReport.from_predictions(*predictions)


@pytest.mark.slow
def test_results_are_those_of_the_metrics(predictions, report):
    results = report.results_
    view = results["calibration"]["views"]["top_label"]
    n_resamples = results["method"]["n_resamples"]
    low, high = metrics.calibration_error_interval(
        *predictions, n_resamples=n_resamples, confidence_level=0.99, random_state=0
    )
    error = metrics.expected_calibration_error(*predictions)
    expected = {"value": error, "low": low, "high": high}
    assert view["errors"] == {"expected_calibration_error": pytest.approx(expected)}
    y, proba = predictions
    wrong, confidence = proba.argmax(axis=1) != y, proba.max(axis=1)
    for entry in results["selective"]["table"]:
        answered = confidence > (entry["threshold"] if entry["kept"] else np.inf)
        assert entry["coverage"] == pytest.approx(answered.mean())
        assert not entry["kept"] or entry["error_rate"] == pytest.approx(wrong[answered].mean())


@pytest.mark.slow
def test_page_and_markdown_show_the_results(report):
    page = read_page(report._repr_html_()).text
    markdown = html.unescape(report.to_markdown()).replace("\xa0", " ")
    results = report.results_
    view = results["calibration"]["views"]["top_label"]
    for text in (page, markdown):
        for error in view["errors"].values():
            assert shown(error["value"]) in text
            assert f"{shown(error['low'])} to {shown(error['high'])}" in text
        for entry in results["calibrators"]["table"]:
            assert entry["name"] in text
            assert shown(entry["log_loss"]) in text
        for entry in results["classes"]:
            assert f"{100 * entry['recall']['value']:.1f} %" in text
        for entry in results["hardest"]["table"]:
            assert f"difficulty {shown(entry['difficulty'], 2)}" in text
        for sentence in ("headline", "explanation"):
            assert results["summary"][sentence].replace("\xa0", " ") in text


@pytest.mark.slow
def test_one_log_loss_stands_on_the_page(report):
    # Two numbers of one name, one of them a sum over classes, were taken for a contradiction.
    assert report.to_markdown().count("| log-loss |") == 1


@pytest.mark.slow
def test_an_estimate_outside_its_interval_is_explained(report):
    results = deepcopy(report.results_)
    assert "lies outside its interval" not in report.to_markdown()
    errors = results["calibration"]["views"]["top_label"]["errors"]
    errors["expected_calibration_error"]["high"] = (
        0.9 * (errors["expected_calibration_error"]["value"])
    )
    text = CalibrationReport(results).to_markdown()
    assert "of the predicted class lies outside its interval, which" in text


@pytest.mark.slow
def test_results_can_be_written_as_json(report):
    again = json.loads(json.dumps(report.results_))
    assert CalibrationReport(again)._repr_html_() == report._repr_html_()


@pytest.mark.slow
def test_notebook_finds_a_page_and_a_line_of_text(report):
    # What IPython shows as text/html and, beside it, as text/plain.
    assert report._repr_html_().startswith('<article class="skcalib-report">')
    assert repr(report) == f"CalibrationReport: {report.results_['summary']['headline']}"


@pytest.mark.slow
def test_same_input_gives_the_same_report(predictions, report):
    again = CalibrationReport.from_predictions(*predictions).results_
    of_time = {"method"}
    assert {k: v for k, v in again.items() if k not in of_time} == {
        k: v for k, v in report.results_.items() if k not in of_time
    }


@pytest.fixture(scope="module")
def binary():
    X, y = load_breast_cancer(return_X_y=True)
    proba = GaussianNB().fit(X[::2], y[::2]).predict_proba(X[1::2])
    return y[1::2], proba


def without_method(report):
    return {name: value for name, value in report.results_.items() if name != "method"}


@pytest.mark.slow
def test_two_columns_and_one_give_the_same_report(binary):
    y, proba = binary
    both = CalibrationReport.from_predictions(y, proba)
    one = CalibrationReport.from_predictions(y, proba[:, 1])
    errors = [
        report.results_["calibration"]["views"]["positive_class"]["errors"]
        for report in (both, one)
    ]
    assert errors[0] == errors[1]
    expected = metrics.expected_calibration_error(y, proba[:, 1])
    assert errors[0]["expected_calibration_error"]["value"] == expected
    top = both.results_["calibration"]["views"]["top_label"]["errors"]
    assert top["expected_calibration_error"]["value"] == pytest.approx(
        metrics.expected_calibration_error(y, proba)
    )


@pytest.mark.slow
def test_names_of_labels_change_no_number(binary):
    y, proba = binary
    numbers = CalibrationReport.from_predictions(y, proba).results_
    names = np.array(["benign", "malignant"])
    texts = CalibrationReport.from_predictions(names[y], proba).results_
    assert numbers["calibration"] == texts["calibration"]
    assert numbers["calibrators"] == texts["calibrators"]
    assert texts["overview"]["classes"] == ["benign", "malignant"]


@pytest.mark.slow
def test_positive_class_by_name(binary):
    y, proba = binary
    names = np.array(["benign", "malignant"])[y]
    report = CalibrationReport.from_predictions(names, proba[:, 0], pos_label="benign")
    assert report.results_["overview"]["classes"] == ["malignant", "benign"]
    assert "probability of class benign" in report.to_markdown()


@pytest.mark.slow
def test_weighted_values_are_those_of_repeated_samples(predictions):
    y, proba = predictions
    y, proba = y[:200], proba[:200]
    weight = np.tile([0, 1, 2, 3], 50)
    weighted = CalibrationReport.from_predictions(y, proba, sample_weight=weight).results_
    repeated = CalibrationReport.from_predictions(
        np.repeat(y, weight), np.repeat(proba, weight, axis=0)
    ).results_
    for section in ("overview", "selective", "classes"):
        for result in (weighted[section], repeated[section]):
            _forget_sizes(result)
    # No exact test counts weighted samples.
    assert weighted["selective"]["table"] == []
    assert repeated["selective"]["table"] != []
    repeated["selective"] |= {"promise": None, "table": []}
    for section in ("overview", "selective", "classes"):
        assert _flat(weighted[section]) == pytest.approx(_flat(repeated[section]), nan_ok=True)
    assert any("50 samples of weight 0 are left out" in text for text in weighted["warnings"])


def _forget_sizes(result):
    for entry in result if isinstance(result, list) else [result]:
        # Repeated samples are more than weighted ones: intervals are narrower.
        for name in ("n_samples", "n_predicted", "total_weight"):
            entry.pop(name, None)
        for name in ("accuracy", "recall", "precision"):
            if name in entry:
                entry[name] = entry[name]["value"]


def _flat(value):
    if isinstance(value, dict):
        return [x for item in value.values() for x in _flat(item)]
    if isinstance(value, list):
        return [x for item in value for x in _flat(item)]
    return [value] if isinstance(value, int | float) else []


@pytest.mark.slow
def test_samples_of_weight_0_do_not_count(predictions):
    y, proba = predictions
    kept = np.arange(len(y)) % 3 > 0
    weighted = CalibrationReport.from_predictions(y, proba, sample_weight=kept.astype(float))
    removed = CalibrationReport.from_predictions(y[kept], proba[kept])
    # No exact test counts weighted samples.
    removed.results_["selective"] |= {"promise": None, "table": []}
    for section in ("summary", "group_tests", "selective", "classes", "calibrators"):
        assert _flat(weighted.results_[section]) == pytest.approx(_flat(removed.results_[section]))
    numbers = [entry["sample"] for entry in weighted.results_["hardest"]["table"]]
    expected = [entry["sample"] for entry in removed.results_["hardest"]["table"]]
    assert numbers == np.flatnonzero(kept)[expected].tolist()


@pytest.mark.slow
def test_estimator_and_its_predictions_give_the_same_numbers():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = LogisticRegression(max_iter=1000).fit(X[::2], names[::2])
    frame = pd.DataFrame(X[1::2], columns=["a", "b", "c", "d"])
    by_model = CalibrationReport.from_estimator(
        LogisticRegression(max_iter=1000).fit(frame, names[1::2]), frame, names[1::2]
    )
    assert "a = " in by_model.results_["hardest"]["table"][0]["text"]
    given = CalibrationReport.from_estimator(model, X[1::2], names[1::2]).results_
    proba = model.predict_proba(X[1::2])
    alone = CalibrationReport.from_predictions(names[1::2], proba).results_
    for section in ("calibration", "selective", "classes"):
        assert given[section] == alone[section]
    assert given["overview"]["model"] == "LogisticRegression"
    assert "FrozenEstimator" in given["calibrators"]["code"] or not given["calibrators"]["best"]


def test_classifier_without_probabilities_is_refused():
    from sklearn.svm import LinearSVC

    with pytest.raises(TypeError, match=r"estimator must be a fitted .* has no predict_proba"):
        CalibrationReport.from_estimator(LinearSVC(), [[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("argument", "value"),
    [("images", [[1]]), ("by", ["a"]), ("sample_weight", [1.0])],
)
def test_wrong_length_is_named(predictions, argument, value):
    with pytest.raises(ValueError, match=argument):
        CalibrationReport.from_predictions(*predictions, **{argument: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"images": {"a": 1}}, "images must be a sequence"),
        ({"images": iter("ab")}, "images must be a sequence"),
        ({"images": np.zeros((2, 0, 4))}, "images must hold images of numbers"),
        ({"images": np.zeros((2, 4, 4), dtype=complex)}, "images must hold images of numbers"),
        ({"random_state": "a"}, "random_state must be an int in .*, got 'a'"),
        ({"random_state": -1}, "random_state must be an int in .*, got -1"),
        ({"random_state": True}, "random_state must be an int in .*, got True"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        CalibrationReport.from_predictions([0, 1], [0.2, 0.7], **options)


@pytest.mark.parametrize("name", ["r.pdf", "r.csv", "r"])
def test_a_report_is_written_as_html_or_markdown_alone(report, tmp_path, name):
    with pytest.raises(ValueError, match=r"path must end in \.html, \.htm or \.md"):
        report.save(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_words_of_markdown_stand_apart(report):
    what = report.to_markdown().partition("## What to do")[2].partition("##")[0]
    assert "1. **" in what
    assert not re.search(r"\*\*[^*\n]+\*\*\w", what)


def test_endings_may_be_capital(report, tmp_path):
    report.save(tmp_path / "r.MD")
    assert (tmp_path / "r.MD").read_text(encoding="utf-8").startswith("# ")


@pytest.mark.slow
def test_sparse_features_are_those_of_the_classifier():
    rng = np.random.default_rng(0)
    X, y = rng.poisson(1.0, size=(60, 5)).astype(float), np.tile([0, 1], 30)
    model = MultinomialNB().fit(X, y)
    expected = CalibrationReport.from_estimator(model, X, y).results_
    found = CalibrationReport.from_estimator(model, csr_array(X), y).results_
    confidence = expected["overview"]["mean_confidence"]
    assert found["overview"]["mean_confidence"] == pytest.approx(confidence)
    assert [e["sample"] for e in found["hardest"]["table"]] == [
        e["sample"] for e in expected["hardest"]["table"]
    ]


def test_errors_of_from_estimator_speak_of_y():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match=r"^y must hold labels among \[0, 1, 2\], got 3"):
        CalibrationReport.from_estimator(model, X, y + 1)


@pytest.mark.slow
def test_the_page_is_returned_as_text_or_written(report, tmp_path):
    page = report.to_html()
    assert page.startswith("<!DOCTYPE html>")
    assert report._repr_html_() in page
    for name, write in (("a.html", report.save), ("b.page", report.to_html)):
        assert write(tmp_path / name) is None
        assert (tmp_path / name).read_bytes() == page.encode()
    text = report.to_markdown()
    assert text.startswith("# ")
    for name, write in (("a.md", report.save), ("b.text", report.to_markdown)):
        assert write(tmp_path / name) is None
        assert (tmp_path / name).read_bytes() == text.encode()


def predicted_labels(n, n_classes, seed=0):
    """Return predictions as labels, and probabilities that expect errors."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.7), n)
    return proba.argmax(axis=1), proba


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("form", ["plain", "named", "one column", "groups", "weights"])
def test_labels_that_are_predictions_lead_the_page(n_classes, form):
    y, proba = predicted_labels(300, n_classes)
    names = np.array(["ant", "bee", "cat", "dog"])[:n_classes]
    expected = (1 - proba.max(axis=1)).sum()
    given = {
        "plain": {},
        "named": {"labels": names},
        "one column": {},
        "groups": {"groups": np.arange(300) // 3},
        "weights": {"sample_weight": np.where(np.arange(300) % 2, 0.0, 1.0)},
    }[form]
    n = 300
    if form == "named":
        y = names[y]
    elif form == "one column" and n_classes == 2:
        proba = proba[:, 1]
    elif form == "weights":
        # Rows of weight 0 do not count.
        y[::2], y[1::2] = y[::2], 0
        n, expected = 150, (1 - proba.max(axis=1))[::2].sum()
    found = CalibrationReport.from_predictions(y, proba, **given)
    assert repr(found) == (
        "CalibrationReport: The labels are predictions and no true labels, or the model is never "
        "wrong."
    )
    sentence = (
        f"The labels are the most probable class in all {n} rows, where the probabilities expect "
        f"{expected:.0f} errors: they are predictions and no true labels, unless the model is "
        "never wrong; pass the true labels."
    )
    assert found.results_["alignment"] == [sentence]
    assert found.results_["summary"]["kind"] == "predictions"
    assert found.results_["summary"]["explanation"].startswith(sentence)
    assert "## What to do" not in found.to_markdown()


@pytest.mark.slow
def test_a_model_that_may_be_right_in_all_rows_is_no_source_of_its_labels():
    y, proba = predicted_labels(300, 3)
    # Chance allows it: of so sure a model, .6 errors are expected.
    sure = np.full((300, 3), 0.001)
    sure[np.arange(300), y] = 0.998
    one_wrong = y.copy()
    one_wrong[7] = np.argsort(proba[7])[-2]
    for labels, p in ((y, sure), (y[:3], proba[:3]), (one_wrong, proba)):
        found = CalibrationReport.from_predictions(labels, p).results_
        assert found["summary"]["kind"] not in ("predictions", "alignment")
        assert not found["alignment"]


@pytest.mark.slow
def test_a_classifier_that_gets_its_own_answers_is_named():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB(var_smoothing=1.0).fit(X, y)
    found = CalibrationReport.from_estimator(model, X, model.predict(X))
    assert "The labels are predictions" in repr(found)


@pytest.mark.slow
def test_the_promise_after_calibration_is_that_of_the_class_it_names():
    y, proba, _ = make_predictions(2400, n_classes=4, temperature=3.0, random_state=0)
    page = CalibrationReport.from_predictions(y, proba).results_
    half, other = next(StratifiedKFold(2, shuffle=True, random_state=0).split(proba, y))
    calibrator = StackedCalibration(input="proba").fit(proba[half], y[half])
    found = page["after_calibration"]["selective"]
    kept = [entry for entry in found["table"] if entry["kept"]]
    assert kept
    for entry in kept:
        selective = SelectiveClassifier(
            FrozenEstimator(calibrator), risk=entry["risk"], confidence_level=0.99
        ).fit(proba[other], y[other])
        assert entry["threshold"] == pytest.approx(selective.threshold_)
        assert entry["coverage"] == pytest.approx(selective.coverage_)
        assert entry["error_rate"] == pytest.approx(selective.error_rate_)
