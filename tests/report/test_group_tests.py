"""The group tests: what is off is named, what is not is not, and the rest is left open."""

import html
import re

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit, softmax
from scipy.stats import binom

from skcalib.datasets import make_predictions
from skcalib.metrics._intervals import compute_mean_pvalue
from skcalib.report import CalibrationReport
from skcalib.report._data import read_data
from skcalib.report._sections import compute_trust as trust
from skcalib.report._tests import summarize_tests


def summarize(y, proba, *, high=None, **options):
    """Summary and tests; `high` is the upper end of the calibration error, which takes time."""
    data = read_data(y, proba, labels=None, **options)
    view = {"errors": {"expected_calibration_error": {"high": high}}}
    found = summarize_tests(
        data, trust(data) if high is None else {"views": {"positive_class": view}}
    )
    return {**found["summary"], "group_tests": found["group_tests"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("temperature", "kind", "headline"),
    [
        (1.0, "calibrated", "No error shows, and none above "),
        (2.0, "overconfident", "The model is overconfident: it says "),
        (0.5, "underconfident", "The model is underconfident: it says "),
    ],
)
def test_made_predictions_get_their_summary(temperature, kind, headline):
    y, proba, _ = make_predictions(8000, temperature=temperature, random_state=1)
    found = summarize(y, proba, high=0.03)
    assert found["kind"] == kind
    assert found["headline"].startswith(headline)


def test_two_classes_are_tested_by_the_second():
    # max(p, 1 - p) is right: 53 % of the confidence is of each side.
    rng = np.random.default_rng(0)
    proba = rng.random(500)
    found = summarize((rng.random(500) < proba**1.5).astype(int), proba, high=0.1)
    assert found["kind"] == "overstated"
    assert (
        found["headline"]
        == "The model overstates class 1: it says 53 % on average, and 43 % belong to it."
    )


@pytest.mark.slow
def test_a_risk_twice_too_high_is_overstated_and_not_underconfident():
    rng = np.random.default_rng(0)
    risk = np.clip(rng.gamma(1, 0.04, size=3000), 0, 0.49)
    found = summarize(
        np.where(rng.random(3000) < risk / 2, "ill", "well"), risk, high=0.03, pos_label="ill"
    )
    assert (
        found["headline"]
        == "The model overstates class ill: it says 4 % on average, and 2 % belong to it."
    )


def test_a_rare_risk_gets_no_all_clear_from_few_samples():
    rng = np.random.default_rng(0)
    risk = rng.uniform(0, 0.08, size=400)
    found = summarize((rng.random(400) < risk).astype(int), risk, high=0.04)
    assert found["kind"] == "undecided"
    overall = found["group_tests"][0]
    assert overall["max_undetected_error"] < 0.05  # in points it would pass
    assert overall["tolerance"] == pytest.approx(risk.mean() / 4)


def group_of_three(n, gap, seed=0):
    rng = np.random.default_rng(seed)
    proba, groups = rng.uniform(0.2, 0.8, size=n), np.array(["a", "b", "c"])[np.arange(n) % 3]
    true = proba - gap * (groups == "b")
    return (rng.random(n) < true).astype(int), proba, {"by": {"site": groups}}


@pytest.mark.slow
def test_a_bad_group_is_in_the_headline():
    y, proba, groups = group_of_three(900, 0.15, seed=1)
    found = summarize(y, proba, high=0.09, **groups)
    assert found["kind"] == "parts"
    assert re.fullmatch(
        r"Overall no error shows, but do not trust the model for site = b \(off by 1\d points\)\.",
        found["headline"],
    )
    assert "For site = b it says 51 % for class 1 on average, and " in found["explanation"]
    assert [entry["name"] for entry in found["group_tests"] if entry["significant"]] == ["b"]


@pytest.mark.slow
def test_small_groups_leave_it_open():
    y, proba, groups = group_of_three(90, 0.0)
    found = summarize(y, proba, high=0.09, **groups)
    assert found["kind"] == "undecided"
    assert found["headline"].startswith("Too few samples to decide: an error of ")


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2])
def test_hardly_any_samples_tell_nothing(n):
    found = summarize(np.ones(n, int), np.full(n, 0.9))
    assert found["kind"] == "undecided"
    assert found["group_tests"][0]["max_undetected_error"] > 0.5


@pytest.mark.slow
def test_a_bad_class_of_ten_is_in_the_headline():
    y, proba, _ = make_predictions(4000, n_classes=10, scale=4.0, random_state=0)
    proba[:, 3] *= 4
    found = summarize(y, proba / proba.sum(axis=1, keepdims=True), high=0.03)
    off = [entry["name"] for entry in found["group_tests"] if entry["significant"]]
    assert "3" in off
    assert found["kind"] != "calibrated"


@pytest.mark.slow
def test_errors_that_cancel_are_found():
    # As often right as said on the whole; .6 is right always, .9 in half of the cases.
    n = 400
    proba = np.repeat([[0.6, 0.4], [0.9, 0.1]], n, axis=0)
    y = np.concatenate([np.zeros(n, int), np.tile([0, 1], n // 2)])
    found = summarize(y, proba)
    assert found["kind"] == "uneven"
    assert (
        found["headline"]
        == "Right on average, but where it says 10 % for class 1, 50 % belong to it."
    )
    assert (
        "Where it says 10 % for class 1, 10 % on average, 50 % belong to it ("
        in found["explanation"]
    )


@pytest.mark.slow
def test_a_few_large_risks_that_are_twice_too_high_are_found():
    # Two of a hundred are off, by more than ten points; the average of all is not.
    rng = np.random.default_rng(0)
    for _ in range(5):
        risk = np.clip(rng.gamma(0.5, 0.06, 20_000), 0, 0.9)
        true = np.where(risk > np.quantile(risk, 0.98), risk / 2, risk)
        found = summarize((rng.random(len(risk)) < true).astype(int), risk)
        assert found["kind"] in ("uneven", "overstated")


@pytest.mark.slow
def test_errors_that_cancel_within_the_answers_of_a_class_are_found():
    rng = np.random.default_rng(0)
    n, says = 30_000, np.tile([0.6, 0.9], 15_000)
    answer = np.arange(n) // 2 % 5
    # Class 2 alone is right in .75 of the cases, whatever it says.
    right = np.where(answer == 2, 0.75, says)
    proba = np.full((n, 5), (1 - says[:, None]) / 4)
    proba[np.arange(n), answer] = says
    wrong = (answer + rng.integers(1, 5, size=n)) % 5
    y = np.where(rng.random(n) < right, answer, wrong)
    entry = next(e for e in summarize(y, proba)["group_tests"] if e["name"] == "2")
    assert entry["significant"]
    assert any(test["of"] == "answers" and test["proba_range"] for test in entry["tests"])


@pytest.mark.slow
def test_ranges_and_p_values_agree():
    for gap in (0, 0.1, 0.2):
        y, proba, groups = group_of_three(900, gap)
        found = summarize(y, proba, high=0.09, **groups)
        for entry in found["group_tests"]:
            view = entry["tests"][0]
            inside = view["observed"]["low"] < view["predicted"] < view["observed"]["high"]
            # Holm rejects whatever Bonferroni does, whose level the ranges have.
            assert inside or entry["significant"]


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [1, 2, 8])
def test_half_of_the_level_is_for_all_samples_and_the_other_half_for_the_groups(n_groups):
    rng = np.random.default_rng(2)
    proba = rng.uniform(0.1, 0.9, 400)
    y = (rng.random(400) < proba - 0.06).astype(int)
    found = summarize(y, proba, high=0.1, by=np.arange(400) % n_groups)["group_tests"]
    assert len(found) == 1 + n_groups
    least = [len(t["tests"]) * min(view["pvalue"] for view in t["tests"]) for t in found]
    shares = [0.5, *[0.5 / n_groups] * n_groups]
    # Holm by weights, by hand: the smallest p-value over its share is multiplied by 1 / share.
    first = int(np.argmin(np.divide(least, shares)))
    assert found[first]["pvalue"] == pytest.approx(min(1, least[first] / shares[first]))


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [12, pytest.param(60, marks=pytest.mark.long)])
def test_few_calibrated_models_are_accused(n_draws):
    accused = 0
    for seed in range(n_draws):
        y, proba, _ = make_predictions(100, n_classes=2 + seed % 3, random_state=seed)
        kind = summarize(y, proba, high=0.1, by=np.arange(100) % 4)["kind"]
        accused += kind not in ("calibrated", "undecided")
    assert accused <= binom.isf(0.004, n_draws, 0.01)  # .6 of 60 are expected


@pytest.mark.slow
def test_the_page_shows_the_summary():
    y, proba, groups = group_of_three(900, 0.15, seed=1)
    report = CalibrationReport.from_predictions(y, proba, **groups)
    found = report.results_["summary"]
    text = report.to_markdown()
    assert found["headline"] in text
    assert "Do not rely on the probabilities of site = b" in text
    rows = [line for line in text.splitlines() if line.startswith("| site = b")]
    assert any("| off: for site = b it says" in html.unescape(line) for line in rows)


@pytest.mark.slow
def test_where_all_samples_are_off_the_groups_come_second():
    y, proba, _ = make_predictions(1200, n_classes=3, temperature=2.0, random_state=0)
    report = CalibrationReport.from_predictions(y, proba, by=np.arange(1200) % 2)
    text = html.unescape(report.to_markdown())
    assert "Do not rely on" not in text
    assert "1. **Calibrate it**" in text
    # What was off only as all samples were is not off any more, on calibrated samples left out.
    assert "1. **Then look at" not in text


@pytest.mark.slow
def test_a_group_that_calibration_leaves_off_comes_after_it():
    y, proba, groups = group_of_three(3000, 0.25, seed=1)
    sharp = proba**3 / (proba**3 + (1 - proba) ** 3)
    report = CalibrationReport.from_predictions(y, sharp, **groups)
    text = html.unescape(report.to_markdown()).replace("\xa0", " ")
    assert text.index("1. **Calibrate it**") < text.index("2. **Then look at")
    after = report.results_["after_calibration"]["group_tests"]
    assert "b" in [entry["name"] for entry in after if entry["significant"]]
    assert ": after calibration, on samples left out, " in text


def column_off_at_its_values(n, rng):
    """The third class is said to be .25 or .03 and is .14 of either; the answers are right."""
    first, high = rng.integers(2, size=n), rng.integers(2, size=n)
    says, true = np.zeros((2, n, 3))
    rows = np.arange(n)
    says[rows, first] = true[rows, first] = rng.uniform(0.55, 0.7, size=n)
    says[rows, 2], true[rows, 2] = np.where(high, 0.25, 0.03), 0.14
    for proba in (says, true):
        proba[rows, 1 - first] = 1 - proba.sum(axis=1)
    return (rng.random(n)[:, None] > np.cumsum(true, axis=1)).sum(axis=1), says


@pytest.mark.slow
def test_a_column_that_is_wrong_at_its_values_is_named():
    y, proba = column_off_at_its_values(3000, np.random.default_rng(0))
    found = summarize(y, proba, high=0.03)
    assert found["kind"] == "parts"
    assert found["headline"].startswith(
        "Overall no error shows, but do not trust the model for class"
    )
    assert "2" in [entry["name"] for entry in found["group_tests"] if entry["significant"]]


@pytest.mark.slow
@pytest.mark.parametrize(("tolerance", "kind"), [(0.05, "negligible"), (0.005, "understated")])
def test_off_by_more_than_chance_is_not_off_enough_to_matter(tolerance, kind):
    rng = np.random.default_rng(0)
    proba = rng.uniform(size=60_000)
    y = (rng.random(60_000) < np.clip(proba + 0.012, 0, 1)).astype(int)
    found = summarize(y, proba, high=0.018, tolerance=tolerance)
    assert found["group_tests"][0]["significant"]
    assert found["kind"] == kind
    if kind == "negligible":
        expected = "The probabilities are off by more than chance, but by no more than 1.9 points"
        assert found["headline"] == f"{expected} on average."


def test_a_tolerance_outside_its_range_is_refused():
    with pytest.raises(ValueError, match=r"^tolerance must be in \(0, 1\), got 5\.$"):
        CalibrationReport.from_predictions([0, 1], [0.2, 0.8], tolerance=5)


@pytest.mark.slow
def test_the_largest_story_leads():
    # Off by few points on average; the log-loss is several times what calibration leaves of it.
    rng = np.random.default_rng(0)
    true = np.where(rng.random(1000) < 0.6, 0.97, 0.03)
    proba = np.where(rng.random(1000) < 0.5, 0.999999, 1 - 1e-9) * (true > 0.5)
    y = (rng.random(1000) < true).astype(int)
    report = CalibrationReport.from_predictions(y, proba)
    assert report.results_["summary"]["kind"] == "costly"
    headline = report.results_["summary"]["headline"]
    assert headline.startswith("Calibration takes away most of the log-loss: from")


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 5])
def test_rows_in_another_order_are_no_case_for_a_calibrator(n_classes):
    rng = np.random.default_rng(n_classes)
    y = rng.integers(n_classes, size=600)
    proba = softmax(4 * np.eye(n_classes)[y] + rng.normal(size=(600, n_classes)), axis=1)
    in_order, shuffled = (
        CalibrationReport.from_predictions(y, rows) for rows in (proba, rng.permutation(proba))
    )
    assert in_order.results_["summary"]["kind"] not in ("alignment", "ignorant")
    assert shuffled.results_["summary"]["kind"] == "alignment"
    found = shuffled.results_["calibrators"]
    assert (found["best"], found["code"]) == (None, "")
    text = shuffled.to_markdown()
    assert "rows in another order, or to a model without skill" in text
    assert "Calibrate it" not in text


@pytest.mark.slow
def test_a_weak_model_that_is_too_sure_is_still_a_case_for_a_calibrator():
    rng = np.random.default_rng(0)
    true = rng.beta(4, 4, size=1500)
    y = (rng.random(1500) < true).astype(int)
    found = CalibrationReport.from_predictions(y, expit(4 * logit(true))).results_
    assert found["summary"]["kind"] != "ignorant"
    assert found["calibrators"]["best"] == "StackedCalibration"


@pytest.mark.slow
def test_a_page_that_advises_to_calibrate_gives_no_all_clear():
    # Right wherever the page looks by itself is made up here: only the calibrator gains.
    y, proba, _ = make_predictions(8000, random_state=1)
    data = read_data(y, proba, labels=None)
    table = [{"log_loss": 0.62}, {"log_loss": 0.61}]
    recommendation = {"best": "StackedCalibration", "table": table, "ignorant": False}
    view = {"errors": {"expected_calibration_error": {"high": 0.03}}}
    found = summarize_tests(data, {"views": {"top_label": view}}, recommendation)["summary"]
    assert found["kind"] == "gain"
    assert "from 0.620 to 0.610" in found["headline"]


@pytest.mark.slow
def test_an_undecided_page_says_what_it_would_have_found():
    y, proba, _ = make_predictions(500, n_classes=2, random_state=3)
    report = CalibrationReport.from_predictions(y, proba)
    found = report.results_["summary"]
    power = found["power"]
    assert found["kind"] == "undecided"
    sentence = "An error of 3.0 points on average would be found here with probability"
    assert f"{sentence} {power['probability']:.2f}; with" in found["explanation"]
    overall = report.results_["group_tests"][0]["tests"][0]
    # Models that say 3 points too much, tested at the level of the page.
    rng, said = np.random.default_rng(0), proba[:, 1]
    shifted = brentq(lambda x: np.mean(expit(logit(said) - x)) - said.mean() + 0.03, 0, 2)
    true = expit(logit(said) - shifted)
    pvalues = [compute_mean_pvalue(rng.uniform(size=500) < true, said, None) for _ in range(1000)]
    rejected = np.mean(np.array(pvalues) <= overall["level"])
    # Three standard errors of the frequency, and a normal distribution for a binomial one.
    assert power["probability"] == pytest.approx(rejected, abs=0.05)


@pytest.mark.slow
def test_a_page_that_is_decided_says_nothing_of_power():
    y, proba, _ = make_predictions(2000, temperature=2.0, random_state=0)
    assert CalibrationReport.from_predictions(y, proba).results_["summary"]["power"] is None
