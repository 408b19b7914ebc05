"""Two models on the same samples, and one model on two samples."""

import html

import numpy as np
import pytest
from sklearn.metrics import log_loss

from skcalib.datasets import make_predictions
from skcalib.metrics import compare_calibration
from skcalib.report import CalibrationReport
from skcalib.report._compare import _find_signs

from ._page import read_page


@pytest.fixture(scope="module")
def models():
    y, sober, _ = make_predictions(800, n_classes=3, random_state=0)
    bold = sober**2 / (sober**2).sum(axis=1, keepdims=True)
    return y, {"sober": sober, "bold": bold}


@pytest.mark.slow
def test_models_on_the_same_samples_are_compared_sample_by_sample(models):
    y, probas = models
    report = CalibrationReport.compare(probas, y, title="A & B")
    assert repr(report) == "CalibrationReport: bold is worse calibrated than sober."
    found = report.results_["comparison"]
    line = compare_calibration(
        y, probas, n_bins=15, confidence_level=0.99, n_resamples=500, random_state=0
    )[1]
    change = found["differences"]["bold"]
    assert change["expected_calibration_error"] == {
        "value": line["difference"],
        "low": line["difference_low"],
        "high": line["difference_high"],
        "pvalue": line["pvalue"],
        "sign": 1,
    }
    losses = {name: -np.log(proba[np.arange(800), y]) for name, proba in probas.items()}
    difference = losses["bold"] - losses["sober"]
    half = 2.575829 * difference.std(ddof=1) / np.sqrt(800)
    assert change["log_loss"]["high"] == pytest.approx(difference.mean() + half)
    for name, proba in probas.items():
        measures = found["models"][name]["measures"]
        assert measures["log_loss"]["value"] == pytest.approx(log_loss(y, proba))


@pytest.mark.slow
def test_every_model_stands_on_the_page_with_its_headline(models, tmp_path):
    y, probas = models
    report = CalibrationReport.compare(probas, y, title="A & B")
    report.save(tmp_path / "r.html")
    page = read_page((tmp_path / "r.html").read_text(encoding="utf-8"))
    for text in (page.text, html.unescape(report.to_markdown())):
        assert "A & B" in text
        for entry in report.results_["comparison"]["models"].values():
            assert entry["summary"]["headline"].replace("\xa0", " ") in text


@pytest.mark.slow
def test_equal_models_do_not_differ(models):
    y, probas = models
    report = CalibrationReport.compare({"a": probas["sober"], "b": probas["sober"]}, y)
    assert repr(report) == "CalibrationReport: No difference in calibration shows between a and b."


@pytest.mark.parametrize(
    ("pvalue", "n_others", "sign"), [(0.03, 1, 1), (0.03, 2, 0), (0.05, 1, 0)]
)
def test_a_page_calls_equal_models_different_in_5_of_100_cases_at_most(pvalue, n_others, sign):
    """One of the five is left to the intervals, the others are shared among the models."""
    error = {"value": 0.01, "low": -0.01, "high": 0.03, "pvalue": pvalue, "sign": 1}
    differences = {f"model {i}": {"expected_calibration_error": error} for i in range(n_others)}
    assert set(_find_signs({"differences": differences}).values()) == {sign}


@pytest.mark.slow
def test_two_months_have_wider_intervals_than_two_models():
    first, second = (make_predictions(500, n_classes=3, random_state=seed) for seed in (0, 1))
    apart = CalibrationReport.compare(
        {"May": first[1], "June": second[1]}, {"May": first[0], "June": second[0]}
    ).results_["comparison"]
    loss = {name: apart["models"][name]["measures"]["log_loss"] for name in apart["models"]}
    change = apart["differences"]["June"]["log_loss"]
    assert change["value"] == pytest.approx(loss["June"]["value"] - loss["May"]["value"])
    # Variances of independent means add up.
    half = [(x["high"] - x["low"]) / 2 for x in loss.values()]
    assert (change["high"] - change["low"]) / 2 == pytest.approx(np.hypot(*half))
    assert not apart["paired"]


@pytest.mark.slow
def test_a_lower_risk_is_not_better_because_no_case_was_among_the_samples():
    y, risk = np.zeros(50, dtype=int), np.linspace(0.01, 0.05, 50)
    report = CalibrationReport.compare({"right": risk, "half": risk / 2}, y, labels=[0, 1])
    found = report.results_["comparison"]
    change = found["differences"]["half"]["log_loss"]
    assert change["low"] < change["value"] < 0 < change["high"]
    assert "The log-loss of half differs by no more than chance." in report.to_markdown()
    # The variance of labels drawn from the mean of both, computed one label at a time.
    p = (50 * 0.75 * risk + 2) / 54  # four more samples, two of them positive
    if_positive, if_negative = (
        np.log(risk) - np.log(risk / 2),
        np.log(1 - risk) - np.log(1 - risk / 2),
    )
    second = (p * if_positive**2 + (1 - p) * if_negative**2).mean()
    variance = second - (p * if_positive + (1 - p) * if_negative).mean() ** 2
    assert change["high"] - change["value"] == pytest.approx(2.575829 * np.sqrt(variance / 50))
    # So do the intervals of one model.
    loss = found["models"]["right"]["measures"]["log_loss"]
    p = (50 * risk + 2) / 54
    second = (p * np.log(risk) ** 2 + (1 - p) * np.log(1 - risk) ** 2).mean()
    variance = second - (p * np.log(risk) + (1 - p) * np.log(1 - risk)).mean() ** 2
    assert loss["high"] - loss["value"] == pytest.approx(2.575829 * np.sqrt(variance / 50))


def test_names_have_to_fit(models):
    y, probas = models
    with pytest.raises(ValueError, match="must be a dict of two or more models"):
        CalibrationReport.compare({"sober": probas["sober"]}, y)
    with pytest.raises(ValueError, match="y_true must have the names of y_probas"):
        CalibrationReport.compare(probas, {"sober": y, "brave": y})
