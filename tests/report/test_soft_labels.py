"""Labels that are opinions: a page on soft labels is that of their rows, by weight."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skcalib.report import CalibrationReport
from skcalib.selection._risk_control import control_risk
from skcalib.utils._proba import expand_soft_labels


def opinions(n=600, seed=0, n_people=5, temperature=1.0):
    """Shares of five people, and what a model says of them."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2.5, (n, 3))
    opinion = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    shares = np.stack([rng.multinomial(n_people, row) for row in opinion]) / n_people
    said = np.exp(temperature * logits)
    return shares, said / said.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def too_sure():
    return opinions(temperature=2.0)


@pytest.fixture(scope="module")
def report(too_sure):
    shares, proba = too_sure
    return CalibrationReport.from_predictions(shares, proba, by=np.arange(600) % 2)


@pytest.mark.slow
def test_a_page_of_shares_is_one_of_weighted_rows(too_sure, report):
    shares, proba = too_sure
    rows = expand_soft_labels(shares)
    weighted = CalibrationReport.from_predictions(
        rows.codes, proba[rows.samples], sample_weight=rows.weight, groups=rows.samples,
        by=rows.samples % 2,
    )  # fmt: skip
    found, expected = report.results_, weighted.results_
    for name in ("accuracy", "largest_class"):
        assert found["overview"][name]["value"] == pytest.approx(
            expected["overview"][name]["value"]
        )
    for of, of_rows in zip(found["classes"], expected["classes"], strict=True):
        assert of["label"] == of_rows["label"]
        for name in ("recall", "precision"):
            assert of[name]["value"] == pytest.approx(of_rows[name]["value"])
        assert of["mean_confidence"] == pytest.approx(of_rows["mean_confidence"])
        assert of["most_confused_with"]["label"] == of_rows["most_confused_with"]["label"]
    view, of_rows = (x["calibration"]["views"]["top_label"] for x in (found, expected))
    error = "expected_calibration_error"
    assert view["errors"][error]["value"] == pytest.approx(of_rows["errors"][error]["value"])
    np.testing.assert_allclose(view["curve"]["prob_true"], of_rows["curve"]["prob_true"])
    before, of_rows = (x["calibrators"]["table"][0] for x in (found, expected))
    for name in ("accuracy", "log_loss", error):
        assert before[name] == pytest.approx(of_rows[name])
    for entry, of_rows in zip(found["group_tests"], expected["group_tests"]):
        for of, other in zip(entry["tests"], of_rows["tests"]):
            if of["proba_range"] is None:
                assert of["predicted"] == pytest.approx(other["predicted"])
                assert of["observed"]["value"] == pytest.approx(other["observed"]["value"])


@pytest.mark.slow
def test_the_summary_and_what_is_advised(too_sure, report):
    shares, proba = too_sure
    found = report.results_
    assert found["summary"]["kind"] == "overconfident"
    assert found["calibrators"]["best"] == "StackedCalibration"
    agree = shares[np.arange(600), proba.argmax(axis=1)]
    for line in found["selective"]["table"]:
        kept = control_risk(proba.max(axis=1), agree, risk=line["risk"], delta=0.01)
        assert line["kept"] == (kept.n_accepted > 0)
        if line["kept"]:
            assert line["threshold"] == pytest.approx(kept.threshold)
            answered = proba.max(axis=1) > kept.threshold
            assert line["error_rate"] == pytest.approx(1 - agree[answered].mean())
    assert any(line["kept"] for line in found["selective"]["table"])


@pytest.mark.slow
def test_what_a_page_of_shares_says_of_samples(too_sure, report):
    shares, proba = too_sure
    losses = -(shares * np.log(proba)).sum(axis=1)
    first = report.results_["hardest"]["table"][0]
    assert first["sample"] == losses.argmax()
    assert first["difficulty"] == pytest.approx(losses.max())
    assert first["label"] == shares[losses.argmax()].argmax()
    assert first["soft_label"] == shares[losses.argmax()].max()
    assert report.results_["issues"]["table"] is None
    text = report.to_markdown()
    assert f"({100 * first['soft_label']:.0f} %), predicted" in text
    assert "these are soft labels" in text
    assert "soft labels vary less, so these tests and ranges are cautious" in text
    assert "<html" in report.to_html()


@pytest.mark.slow
def test_where_all_agree_shares_are_labels(too_sure):
    _, proba = too_sure
    labels = np.random.default_rng(0).integers(0, 3, 600)
    plain, certain = (
        CalibrationReport.from_predictions(y, proba).results_ for y in (labels, np.eye(3)[labels])
    )
    for results in (plain, certain):
        results["method"].pop("created")
    assert certain == plain


@pytest.mark.slow
def test_two_classes_in_either_form(too_sure):
    shares, proba = opinions(400, seed=3)
    shares, proba = (np.column_stack([1 - x[:, 1], x[:, 1]]) for x in (shares, proba))
    both = CalibrationReport.from_predictions(shares, proba).results_
    one = CalibrationReport.from_predictions(shares, proba[:, 1]).results_
    assert one["overview"]["accuracy"] == pytest.approx(both["overview"]["accuracy"])
    positive = one["group_tests"][0]["tests"][0]
    assert positive["of"] == "positive"
    assert positive["observed"]["value"] == pytest.approx(shares[:, 1].mean())


@pytest.mark.slow
def test_calibrated_models_are_not_accused():
    kinds = [
        CalibrationReport.from_predictions(*opinions(200, seed)).results_["summary"]["kind"]
        for seed in range(4)
    ]
    assert set(kinds) <= {"calibrated", "undecided"}


@pytest.mark.slow
def test_a_comparison_by_people(too_sure):
    shares, bold = too_sure
    sober = opinions()[1]
    report = CalibrationReport.compare({"sober": sober, "bold": bold}, shares)
    assert str(report).endswith("bold is worse calibrated than sober.")
    loss = report.results_["comparison"]["differences"]["bold"]["log_loss"]
    expected = -(shares * (np.log(bold) - np.log(sober))).sum(axis=1).mean()
    assert loss["value"] == pytest.approx(expected)
    assert loss["low"] < expected < loss["high"]


@pytest.mark.slow
def test_of_an_estimator_with_groups_and_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    shares = np.clip(0.5 + 0.4 * X[:, :1] + 0.1 * rng.normal(size=(500, 1)), 0, 1)
    shares = np.hstack([1 - shares, shares])
    model = LogisticRegression().fit(X[:200], shares[:200, 1] > 0.5)
    options = {"groups": np.arange(300) // 3, "sample_weight": rng.integers(0, 3, 300)}
    found = CalibrationReport.from_estimator(
        FrozenEstimator(model), X[200:], shares[200:], **options
    ).results_
    agree = shares[200:][np.arange(300), model.predict(X[200:]).astype(int)]
    weight = options["sample_weight"]
    assert found["overview"]["accuracy"]["value"] == pytest.approx(
        np.average(agree, weights=weight)
    )
    assert found["summary"]["kind"] == "overconfident"


@pytest.mark.slow
def test_of_very_many_samples_a_part(monkeypatch):
    monkeypatch.setattr("skcalib.report._data.MANY_SAMPLES", 500)
    monkeypatch.setattr("skcalib.report._data.N_SAMPLED", 400)
    shares, proba = opinions(800, temperature=2.0)
    found = CalibrationReport.from_predictions(shares, proba).results_
    assert found["method"]["n_sampled"] == 400
    agree = shares[np.arange(800), proba.argmax(axis=1)]
    assert found["overview"]["accuracy"]["value"] == pytest.approx(agree.mean())
