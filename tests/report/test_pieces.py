"""Numbers and small pieces behind the page, one by one, against a computation by hand."""

import io
from base64 import b64decode
from contextlib import redirect_stdout
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.sparse import csr_array
from scipy.stats import beta, norm
from sklearn.linear_model import LogisticRegression

from skcalib import __main__
from skcalib.datasets import make_predictions
from skcalib.metrics import CalibrationAccumulator, calibration_error_interval
from skcalib.metrics._intervals import compute_mean_pvalue
from skcalib.report import (
    CalibrationReport,
    _compare,
    _constants,
    _data,
    _document,
    _files,
    _read,
    _report,
    _samples,
    _sections,
    _summary,
    _tests,
)
from skcalib.report._data import read_data
from skcalib.selection._risk_control import control_risk


def made(n=300, n_classes=3, **options):
    y, proba, _ = make_predictions(n, n_classes=n_classes, random_state=0)
    return read_data(y, proba, labels=range(n_classes), **options)


def test_fractions_and_means_by_hand():
    of, mass = np.array([1.0, 0.0, 1.0]), np.array([3.0, 4.0, 5.0])
    found = _data.estimate_fraction(of, mass)
    assert found["value"] == pytest.approx(8 / 12)
    n = 12**2 / (9 + 16 + 25)  # effective
    assert found["low"] == pytest.approx(beta.ppf(0.005, n * 2 / 3, n / 3 + 1))
    assert found["high"] == pytest.approx(beta.ppf(0.995, n * 2 / 3 + 1, n / 3))
    assert np.isnan(_data.estimate_fraction(of, np.zeros(3))["value"])
    assert np.isnan(_data.compute_mean(of, np.zeros(3)))
    assert _data.estimate_fraction(np.ones(3), np.full(3, 0.1))["value"] == 1
    x = np.array([1.0, 4.0, 7.0])
    center = (3 + 16 + 35) / 12
    variance = mass @ (x - center) ** 2 / 12 * n / (n - 1)
    for least in (0.0, 2 * variance):
        found = _data.compute_mean_interval(x, 10 * mass, level=0.9, least=least)
        half = norm.ppf(0.95) * np.sqrt(max(variance, least) / n)
        assert found["value"] == pytest.approx(center)
        assert (found["low"], found["high"]) == pytest.approx((center - half, center + half))
    one = _data.compute_mean_interval(np.ones(1), np.ones(1))
    assert (one["value"], one["low"], one["high"]) == (1, -np.inf, np.inf)


def test_a_curve_is_thinned_along_itself_and_along_x():
    assert _data.thin_curve(np.arange(300)).tolist() == list(range(300))
    x = np.linspace(0, 1, 10_001) ** 4
    kept = _data.thin_curve(x)
    assert 200 < len(kept) <= 300
    assert (kept[0], kept[-1]) == (0, 10_000)
    # No gap of more than 1 / 149 on either way.
    assert np.diff(kept).max() <= 10_000 / 149 + 1
    assert np.diff(x[kept]).max() <= 1 / 149 + 1e-3


@pytest.mark.parametrize(
    ("group", "name"),
    [(None, "(missing)"), (3.0, "3"), (3.5, "3.5"), (3, "3"), ("3.0", "3.0"), (np.nan, "nan")],
)
def test_names_of_groups(group, name):
    assert _data._name_group(group) == name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["interval", "band"])
def test_weights_count_as_their_effective_number(kind, monkeypatch):
    """Equal weights change nothing, whatever their size."""
    monkeypatch.setattr(_sections, "MANY_SAMPLES", 100)
    y, proba, _ = make_predictions(200, n_classes=3, random_state=0)
    found = []
    for weight in (None, np.full(200, 3.0), np.full(200, 0.5)):
        data = read_data(y, proba, labels=range(3), sample_weight=weight)
        if kind == "interval":
            found.append(_sections._compute_interval(data, data.predictions))
        else:
            curve = _sections._compute_curve(data, data.predictions)
            found.append(np.concatenate([curve["lower"], curve["upper"]]))
    np.testing.assert_allclose(found[1], found[0])
    np.testing.assert_allclose(found[2], found[0])
    uneven = read_data(
        y, proba, labels=range(3), sample_weight=1.0 + 9 * (np.arange(200) % 4 == 0)
    )
    if kind == "interval":
        low, high = _sections._compute_interval(uneven, uneven.predictions)
        assert high - low > 1.05 * (found[0][1] - found[0][0])


@pytest.mark.parametrize(
    ("n_samples", "expected"), [(1, 500), (8000, 500), (8001, 499), (20_000, 200), (10**6, 200)]
)
def test_of_more_samples_fewer_resamples(n_samples, expected):
    assert _sections.count_resamples(n_samples) == expected


def test_the_overview():
    data = made(sample_weight=np.arange(300) % 3 + 0.5)
    found = _sections.compute_overview(data)
    weight = data.weight
    of_class = [weight[data.codes == k].sum() for k in range(3)]
    assert found["largest_class"]["label"] == int(np.argmax(of_class))
    assert found["largest_class"]["value"] == pytest.approx(max(of_class) / weight.sum())
    right = data.proba.argmax(axis=1) == data.codes
    assert found["accuracy"]["value"] == pytest.approx(np.average(right, weights=weight))
    confidence = np.average(data.proba.max(axis=1), weights=weight)
    assert found["mean_confidence"] == pytest.approx(confidence)
    assert found["overconfidence"] == pytest.approx(confidence - np.average(right, weights=weight))
    assert found["total_weight"] == weight.sum()
    assert (found["n_classes"], found["n_samples"]) == (3, 300)


@pytest.mark.parametrize(("value", "told"), [(0.02, False), (0.03, False), (0.031, True)])
def test_an_error_outside_of_its_interval_is_explained(value, told):
    curve = {name: np.array([0.2, 0.8]) for name in ("prob_true", "prob_pred", "lower", "upper")}
    judged = {
        "errors": {"expected_calibration_error": {"value": value, "low": 0.02, "high": 0.03}},
        "curve": curve,
        "histogram": {"count": [1, 1], "edges": [0, 0.5, 1]},
    }
    results = {
        "calibration": {"views": {"positive_class": judged, "top_label": judged}},
        "overview": {"classes": ["no", "yes"], "n_samples": 9},
    }
    section = _sections.make_trust_section(results)
    assert len(section.blocks) == 1 + 2 * told
    names = [row[0] for row in section.blocks[0].rows]
    assert names == ["of the probability of class yes", "of the predicted class"]
    captions = [picture.caption for picture in section.pictures]
    assert "below the diagonal too high, above it too low" in captions[0]
    assert "below the diagonal overconfident, above it underconfident" in captions[1]
    assert _sections.make_diagram(results).caption == captions[0]


def test_the_p_value_of_ranges_is_that_of_the_smallest_of_all():
    rng = np.random.default_rng(0)
    said = rng.uniform(size=90)
    for outcome in (rng.random(90) < said**3, rng.random(90) < said):
        data = read_data(outcome.astype(int), said, labels=[0, 1])
        found = _tests._test_ranges(data, "positive", outcome, said, np.ones(90, bool), 1.0)
        members = []
        for edges in (np.linspace(0, 1, 16), np.quantile(said, np.linspace(0, 1, 16))):
            bins = np.searchsorted(edges[1:-1], said, side="left")
            members += [bins == b for b in np.unique(bins)]
            members += [bins > b for b in np.unique(bins)[:-1]]
        pvalues = [compute_mean_pvalue(outcome[rows], said[rows], None) for rows in members]
        assert found.pvalue == pytest.approx(min(1, len(members) * min(pvalues)))
        worst = members[int(np.argmin(pvalues))]
        assert found.proba_range == [said[worst].min(), said[worst].max()]
        assert found.observed["value"] == pytest.approx(outcome[worst].mean())
    assert found.pvalue == 1


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_p_values_are_probabilities(n_classes):
    for entry in _tests.run_group_tests(made(60, n_classes, by=np.arange(60) % 2)):
        assert 0 <= entry.pvalue <= 1
        assert all(0 <= test.pvalue <= 1 for test in entry.tests)


@pytest.mark.parametrize("tolerance", [0.05, 0.01])
def test_the_number_of_samples_that_find_an_error(tolerance):
    rng = np.random.default_rng(0)
    proba = rng.uniform(0.3, 0.7, 400)
    data = read_data((rng.random(400) < proba).astype(int), proba, labels=[0, 1])
    view = {"errors": {"expected_calibration_error": {"high": 0.1}}}
    trust = {"views": {"positive_class": view}}
    found = _tests.summarize_tests(replace(data, tolerance=tolerance), trust)
    power, test = found["summary"]["power"], found["group_tests"][0]["tests"][0]
    error = min(0.03, tolerance)
    assert power["error"] == error
    spread = np.sqrt(np.mean(proba * (1 - proba)) / 400)
    assert test["standard_error"] == pytest.approx(spread)
    quantile = norm.ppf(1 - test["level"] / 2)
    assert power["probability"] == pytest.approx(norm.cdf(error / spread - quantile))
    # So many samples find it nine times in ten.
    spread *= np.sqrt(400 / power["n_samples_for_most"])
    assert norm.cdf(error / spread - quantile) == pytest.approx(0.9, abs=0.02)
    needed = f"{power['n_samples_for_most']:,.0f}".replace(",", "\xa0")
    text = _tests._describe_power({**power, "where": "overall"})
    assert text.endswith(f"; with {needed} samples, 0.9.")
    # Before, this sentence alone had no-break spaces in a terminal.
    assert text.replace("\xa0", " ") in found["summary"]["explanation"]
    sure = {**power, "probability": 0.9, "where": "for site = a"}
    text = _tests._describe_power(sure).replace("\xa0", " ")
    assert text.endswith("on average for site = a would be found here with probability 0.90.")


def test_which_error_the_power_is_about():
    def entry(name="overall", kind="overall", error=0.1, standard_error=0.1, **more):
        ends = {"value": 0.5, "low": 0.4, "high": 0.6}
        tests = [_tests.MeanTest("positive", 0.5, ends, 0.5, standard_error, 0.01)]
        column = "site" if kind == "group" else None
        found = _tests.GroupTest(kind, name, 10, tests, column)
        return replace(found, max_undetected_error=error, tolerance=0.05, **more)

    calibrated = entry(calibrated=True)
    little, much = entry("little", "group", 0.2), entry("much", "group", 0.1)
    assert _tests._compute_power([entry(), little])["where"] == "overall"
    assert _tests._compute_power([calibrated, much, little])["where"] == "for site = little"
    assert _tests._compute_power([calibrated]) is None
    assert _tests._compute_power([entry(significant=True), little]) is None
    parts = [replace(little, significant=True), much]
    assert _tests._compute_power([calibrated, *parts])["where"] == "for site = much"
    assert _tests._compute_power([entry(standard_error=0.0)]) is None


def test_limits_of_declining():
    rng = np.random.default_rng(0)
    proba = rng.beta(6, 1, 3000)
    data = read_data((rng.random(3000) < proba).astype(int), proba, labels=[0, 1])
    found = _sections.compute_selective(data)
    error_rate = np.mean((proba > 0.5) != data.codes)
    assert found["error_rate"] == pytest.approx(error_rate)
    risks = [risk for risk in (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if risk < error_rate]
    assert [entry["risk"] for entry in found["table"]] == risks[-4:]
    # The promise is of the largest of them that is at most half of the error rate.
    half = [risk for risk in risks[-4:] if risk <= error_rate / 2]
    assert found["promise"]["risk"] == half[-1]
    assert half[-1] != risks[-1]
    right = (proba > 0.5) == data.codes
    confidence = np.maximum(proba, 1 - proba)
    for entry in _sections._compute_thresholds(data, risks):
        kept = control_risk(confidence, right, risk=entry["risk"], delta=0.01)
        answered = confidence > kept.threshold
        assert entry["kept"] == (kept.n_accepted > 0 and answered.any())
        if entry["kept"]:
            assert entry["threshold"] == kept.threshold
            assert entry["coverage"] == pytest.approx(answered.mean())
            assert entry["error_rate"] == pytest.approx(1 - right[answered].mean())
        else:
            values = entry["threshold"], entry["coverage"], entry["error_rate"]
            assert values == (None, 0, None)
    assert any(entry["kept"] for entry in found["table"])
    assert _sections._compute_thresholds(replace(data, weight=np.ones(3000)), risks) == []
    assert (
        _sections._compute_thresholds(replace(data, codes=np.zeros(3000, dtype=int)), risks) == []
    )
    nothing = _sections._compute_thresholds(replace(data, codes=1 - data.codes), [0.01])[0]
    assert (nothing["kept"], nothing["threshold"]) == (False, None)


def test_the_section_on_declining():
    entry = {"risk": 0.05, "kept": True, "threshold": 0.9, "coverage": 0.6, "error_rate": 0.03}
    broken = {"risk": 0.01, "kept": False, "threshold": None, "coverage": 0.0, "error_rate": None}
    curve = {"coverage": [0.5, 1.0], "risk": [0.1, 0.2]}
    selective = {"table": [broken, entry], "curve": curve, "n_samples": 90.0}
    results = {"selective": selective, "after_calibration": None}
    table, note = _sections.make_selective_section(results).blocks
    rows = [[cell.replace("\xa0", " ") for cell in row] for row in table.rows]
    assert rows == [["1.0 %", "not promised", "-", "-"], ["5.0 %", "60.0 %", "0.9000", "3.0 %"]]
    assert "99\xa0% certainty" in note.text
    results |= {
        "after_calibration": {"selective": {"table": [entry]}},
        "calibrators": {"best": "Stacked"},
    }
    first, said, then, _ = _sections.make_selective_section(results).blocks
    assert (first.header[2], then.header[2]) == ("calibrated confidence above", "confidence above")
    assert "confidences after Stacked" in said.text
    empty = {"selective": {**selective, "table": []}, "after_calibration": None}
    assert _sections.make_selective_section(empty).blocks == []


class Finder:
    classes_ = np.arange(3)
    noise_rate_ = 0.02
    noise_rate_interval_ = (0.015, 0.05)

    def __init__(self, label_proba):
        self.label_proba_ = label_proba


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 10.0])
def test_the_interval_is_wider_by_that_of_the_wrong_labels(shift):
    data = made(200)
    finder = Finder(0.9 * np.eye(3)[data.codes] + 0.1 / 3)
    finder.noise_rate_interval_ = (0.015 - shift, 0.05 + shift)
    found = _sections.compute_wrong_labels(replace(data, finder=finder))
    options = {
        "n_bins": 15, "confidence_level": 0.99, "random_state": 0,
        "n_resamples": _constants.N_RESAMPLES_OF_LABELS,
    }  # fmt: skip
    for name, truth, margins in (
        ("as_given", data.codes, (0, 0)),
        ("allowed_for", finder.label_proba_, (0.005 + shift, 0.03 + shift)),
    ):
        low, high = calibration_error_interval(truth, data.proba, **options)
        error = found[name]["error"]
        assert error["low"] == pytest.approx(max(low - margins[0], 0))
        assert error["high"] == pytest.approx(min(high + margins[1], 1))
    assert found["noise_rate"] == 0.02
    assert not found["checked"]
    # A rate outside of its interval moves nothing the wrong way.
    finder.noise_rate_interval_ = (0.03, 0.01)
    again = _sections.compute_wrong_labels(replace(data, finder=finder))
    low, high = calibration_error_interval(finder.label_proba_, data.proba, **options)
    error = again["allowed_for"]["error"]
    assert (error["low"], error["high"]) == pytest.approx((low, high))


def test_rare_classes_are_listed():
    codes = np.repeat(np.arange(3), [29, 30, 100])
    proba = np.full((159, 10), 0.1)
    data = read_data(codes, proba, labels=range(10))
    assert _sections._note_rare_classes(data) == (
        "Classes: 7 without any sample (3, 4, 5, 6, 7, ...); 1 with fewer than 30 samples (0)."
    )
    data = read_data(codes, proba[:, :8] * 1.25, labels=range(8))
    assert "5 without any sample (3, 4, 5, 6, 7);" in _sections._note_rare_classes(data)
    data = read_data(codes[29:], np.full((130, 2), 0.5), labels=[1, 2])
    assert _sections._note_rare_classes(data) is None


@pytest.mark.parametrize(("n_sure", "wrong", "told"), [(4, 0, False), (5, 0, True), (1, 1, True)])
def test_saturated_confidences_are_told_from_five_per_cent_on(n_sure, wrong, told):
    rng = np.random.default_rng(0)
    proba = rng.uniform(0.2, 0.8, 100)
    y = (rng.random(100) < proba).astype(int)
    proba[:n_sure], y[:n_sure] = 1.0, 1
    y[:wrong] = 0
    said = _sections._note_saturated(read_data(y, proba, labels=[0, 1]))
    assert (said is not None) is told
    if told:
        assert f"{n_sure:.1f} % of the samples say exactly 1" in said
        assert ("and 1 true labels have probability 0" in said) == bool(wrong)


def test_weights_of_0_are_counted():
    for weight, said in (
        ([1.0, 2.0, 0.0, 0.0] * 5, " 10 samples of weight 0"),
        ([1.0] * 20, None),
    ):
        data = read_data(
            [0, 1] * 10, np.linspace(0.1, 0.9, 20), labels=[0, 1], sample_weight=weight
        )
        text = _sections._note_weights(data)
        n = round(sum(weight) ** 2 / sum(w * w for w in weight))
        assert f"count as {n} of equal weight" in text
        assert ("left out" in text) == (said is not None)
        assert said is None or said in text
    assert _sections._note_weights(made(20)) is None


@pytest.mark.parametrize(
    ("sample", "shown"),
    [
        ("a" * 160, {"text": "a" * 160}),
        ("a" * 161, {"text": "a" * 157 + "..."}),
        (np.arange(5), {"text": "0, 1, 2, 3, 4"}),
        (np.arange(6), {"text": "0, 1, 2, 3, 4, ..."}),
        ([0.123456, 2], {"text": "0.123, 2"}),
        (np.float64(3), {"text": "3.0"}),
    ],
)
def test_what_is_shown_of_a_sample(sample, shown):
    assert _samples._show_sample([None, sample], 1) == shown
    assert _samples._show_sample(None, 1) == {}


def picture_of(array, **options):
    head, data = _samples.encode_uri(array, **options).split(",")
    return head, np.asarray(Image.open(io.BytesIO(b64decode(data))))


def test_pictures_of_samples():
    gray = np.arange(12).reshape(3, 4)
    for array in (gray, gray[..., None]):
        head, picture = picture_of(array)
        assert head == "data:image/png;base64"
        np.testing.assert_allclose(picture, gray * 255 / 11, atol=1)
    color = np.random.default_rng(0).integers(0, 256, (5, 4, 3)).astype(np.uint8)
    np.testing.assert_array_equal(picture_of(color)[1], color)
    opaque = np.dstack([color, np.full((5, 4), 255, np.uint8)])
    np.testing.assert_array_equal(picture_of(opaque)[1], color)
    np.testing.assert_array_equal(picture_of(np.full((3, 3), 7.0))[1], np.zeros((3, 3)))
    holes = np.array([[0.0, np.nan], [1.0, 2.0]])
    np.testing.assert_array_equal(picture_of(holes)[1], [[0, 0], [127, 255]])
    truths = np.array([[True, False]])
    np.testing.assert_array_equal(picture_of(truths)[1], [[255, 0]])
    # Small ones keep their size, large ones have a longest edge of 96.
    assert picture_of(np.tile(gray, (24, 24)))[1].shape == (72, 96)
    assert picture_of(np.tile(gray, (48, 24)))[1].shape == (96, 64)
    noise = np.random.default_rng(0).integers(0, 256, (96, 96)).astype(np.uint8)
    assert picture_of(noise)[0] == "data:image/jpeg;base64"
    assert picture_of(np.tile(gray, (99, 99)), edge=200)[0] == "data:image/jpeg;base64"
    for wrong in (np.ones((2, 2, 2)), np.ones((2, 2, 5)), np.ones((2, 2, 2, 3)), np.ones(3)):
        with pytest.raises(ValueError, match="images must hold images of shape"):
            _samples._scale_pixels(wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("fewest", "assessed"), [(9, False), (10, True)])
def test_labels_of_ten_samples_in_every_class_are_assessed(fewest, assessed):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [fewest, 40])
    X = rng.normal(size=(len(y), 2)) + 6 * y[:, None]
    data = read_data(y, np.full((len(y), 2), 0.5), labels=[0, 1], features=X)
    found = _samples.find_issues(data)
    assert (found["table"] is not None) is assessed
    if assessed:
        assert found["n_issues"] == len(found["table"]) == 0
    else:
        assert found["reason"] == "every class must have 10 samples or more"


def test_labels_are_assessed_by_numbers_alone():
    data = made(60)
    rows = np.ones((60, 2))
    for features, fits in (
        (rows, True),
        (rows.astype(int), True),
        (np.ones((60, 1000)), True),
        (np.ones((60, 1001)), False),
        (np.ones((60, 2, 2)), False),
        (rows.astype(str), False),
        (np.where(np.arange(60)[:, None] == 3, np.nan, rows), False),
        (None, False),
    ):
        found = _samples._find_numeric_features(replace(data, features=features))
        assert (found is not None) is fits


def test_what_is_shown_of_suspects():
    entry = {
        "sample": 3, "label": "a", "suggested_label": "b", "p_label_correct": 0.0004,
        "text": "x",
    }  # fmt: skip
    found = {
        "table": [entry], "source": "the features", "noise_rate": 0.02, "n_issues": 1,
        "noise_rate_interval": (0.01, 0.035),
    }  # fmt: skip
    samples, rate = _samples._make_issue_blocks(found)
    assert samples.caption == "Suspected labels: 1"
    assert samples.entries[0]["lines"] == [
        "label a, suggested b",
        "probability that the label is right: <0.001",
    ]
    assert "2.0\xa0% of the labels are wrong (1.0 to 3.5)" in rate.text
    none, _ = _samples._make_issue_blocks({**found, "table": []})
    assert none.text == "No label is suspected to be wrong."


def test_independent_intervals_are_taken_apart_by_their_sides():
    first = {"value": 0.2, "low": 0.17, "high": 0.26}
    other = {"value": 0.5, "low": 0.42, "high": 0.54}
    found = _compare._subtract_independent(first, other)
    assert found["value"] == pytest.approx(0.3)
    assert found["low"] == pytest.approx(0.3 - np.hypot(0.08, 0.06))
    assert found["high"] == pytest.approx(0.3 + np.hypot(0.04, 0.03))


@pytest.mark.slow
def test_several_comparisons_share_the_level():
    y, proba, _ = make_predictions(100, n_classes=3, random_state=0)
    models = {name: proba ** (1 + k / 3) for k, name in enumerate("abc")}
    models = {name: p / p.sum(axis=1, keepdims=True) for name, p in models.items()}
    found = CalibrationReport.compare(models, y).results_["comparison"]
    assert found["level"] == pytest.approx(0.995)
    losses = {name: -np.log(p[np.arange(100), y]) for name, p in models.items()}
    loss = losses["b"] - losses["a"]
    half = norm.ppf(1 - 0.005 / 2) * loss.std(ddof=1) / 10
    change = found["differences"]["b"]["log_loss"]
    assert (change["low"], change["high"]) == pytest.approx(
        (loss.mean() - half, loss.mean() + half)
    )
    right = np.mean(proba.argmax(axis=1) == y)
    assert found["models"]["a"]["measures"]["accuracy"]["value"] == pytest.approx(right)


def test_places_of_the_marks_of_a_chart():
    rows = [
        {"predicted": 0.50, "value": 0.55, "low": 0.52, "high": 0.58, "name": "a"},
        {"predicted": 0.61, "value": 0.6, "low": 0.49, "high": 0.66, "name": "b"},
    ]
    placed = _document._place_chart(_document.Chart("", rows, ""))
    # From .45 to .70 in steps of .05: five steps hold .49 to .66.
    assert [text.replace("\xa0", " ") for _, text in placed["ticks"]] == [
        "45 %", "50 %", "55 %", "60 %", "65 %", "70 %",
    ]  # fmt: skip
    assert [place for place, _ in placed["ticks"]] == pytest.approx([0, 20, 40, 60, 80, 100])
    assert [placed["rows"][1][x] for x in ("predicted", "value", "low", "high")] == pytest.approx(
        [64, 60, 16, 84]
    )
    assert placed["rows"][0]["in_words"].replace("\xa0", " ") == (
        "predicted 50 %, observed 55 %, range 52 to 58 %"
    )
    equal = {"predicted": 0.5, "value": 0.5, "low": 0.5, "high": 0.5, "name": "a"}
    assert _document._place_chart(_document.Chart("", [equal], ""))["rows"][0]["predicted"] == 0


@pytest.mark.parametrize("limit", ["0", "1", "1.5"])
def test_limits_of_check_are_between_0_and_1(limit, tmp_path):
    options = type("Options", (), {"max_error": float(limit)})
    with pytest.raises(ValueError, match=r"max-error must be in \(0, 1\)"):
        __main__._check(options)


def test_lists_of_names_are_short():
    names = [f"c{k}" for k in range(13)]
    assert _files.list_names(names[:12]) == ", ".join(names[:12])
    assert _files.list_names(names) == ", ".join(names[:12]) + ", ... (13 in all)"
    assert _files.list_names(["a" * 40, "b" * 41]) == "a" * 40 + ", " + "b" * 37 + "..."
    assert _read._write_example(names) == "--classes c0=CLASS c1=CLASS c2=CLASS"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("label,p\n0,0.2\n1,0.7\n", {"rows": 2}),
        ("label,p\n0,0.2\n\n1,0.7\n,\n", {"rows": 2, "empty lines": 2}),
        ("sep=,\n\nlabel,p\n0,0.2\n\n1,0.7\n", {"rows": 2, "empty lines": 1}),
        ('label,p,"a\nb"\n0,0.2,x\n1,0.7,y\n', {"rows": 2}),
        (
            'label,p,n\n0,0.2,x\n1,0.7,"y\nz"\n\n0,0.1,"u\nv\nw"\n',
            {"rows": 3, "empty lines": 1, "lines within quoted cells": 3},
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*stand within quoted cells")
def test_lines_of_a_file_are_counted(text, source, tmp_path):
    (tmp_path / "p.csv").write_text(text)
    found = _read.read_predictions(tmp_path / "p.csv")["source"]
    counted = ("rows", "empty lines", "lines within quoted cells")
    assert {name: found[name] for name in counted if name in found} == source


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ([0.2, 0.3, 0.9], None),
        ([0.0, 0.3, 0.9], None),
        ([0.2, 0.3, 1.1], "got 1.1 in line 4"),
        ([0.2, -0.1, 0.3], "got -0.1 in line 3"),
        ([0.2, np.nan, 0.3], "got nan in line 3"),
        (["0.2", "x", "0.3"], "got x in line 3"),
        (["0.2", "x", "0.3", "y"], r"in \[0, 1\]: none"),
        ([0.0, 0.0, 0.0], r"in \[0, 1\]: none"),
    ],
)
def test_which_columns_may_be_probabilities(values, refusal, tmp_path):
    path = tmp_path / "p.csv"
    labels = [0, 1, 1, 0][: len(values)]
    pd.DataFrame({"label": labels, "q": values, "note": "x"}).to_csv(path, index=False)
    if refusal is None:
        read = _read.read_predictions(path, pos_label="1")
        np.testing.assert_array_equal(read["y_proba"], values)
    else:
        with pytest.raises(ValueError, match=refusal):
            _read.read_predictions(path, pos_label="1")


def test_parts_of_a_page_do_not_change():
    modules = (_document, _data)
    kinds = [
        kind
        for module in modules
        for kind in vars(module).values()
        if is_dataclass(kind) and isinstance(kind, type)
    ]
    assert len(kinds) >= 10
    for kind in kinds:
        names = [field.name for field in fields(kind)]
        part = kind(**dict.fromkeys(names))
        with pytest.raises(FrozenInstanceError):
            setattr(part, names[0], 1)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page by every way there is, with what is the default."""
    y, proba, _ = make_predictions(60, n_classes=2, random_state=0)
    path = tmp_path_factory.mktemp("pages") / "table.csv"
    pd.DataFrame({"label": y, "prob": proba[:, 1]}).to_csv(path, index=False)
    total = CalibrationAccumulator().update(y, proba[:, 1])
    model = LogisticRegression().fit(proba, y)
    return {
        "predictions": CalibrationReport.from_predictions(y, proba, by=np.arange(60) % 2),
        "estimator": CalibrationReport.from_estimator(model, proba, y),
        "csv": CalibrationReport.from_csv(path),
        "sums": CalibrationReport.from_accumulator(total, y, proba[:, 1]),
        "answers": CalibrationReport.from_accumulator(
            CalibrationAccumulator().update(y, proba), y, proba
        ),
        "models": CalibrationReport.compare({"a": proba, "b": proba}, y),
    }


@pytest.mark.slow
def test_every_way_to_a_page_takes_seed_0_and_prints_nothing(pages):
    for page in pages.values():
        assert page.results_["method"]["random_state"] == 0
        with redirect_stdout(io.StringIO()) as said:
            page.to_markdown()
        assert said.getvalue() == ""
    for way in ("predictions", "estimator", "csv", "accumulator"):
        function = getattr(CalibrationReport, f"from_{way}")
        assert signature(function).parameters["verbose"].default == 0
    assert pages["csv"].results_["overview"]["title"] == "table"
    for way, of in (("sums", "probability of the second class"), ("answers", "answers")):
        assert f"Sums: the calibration error of the {of} and" in pages[way].results_["warnings"][0]


@pytest.mark.slow
def test_sections_and_titles(pages):
    fixed = ["Which samples, which labels?", "What would help?"]
    last = "Method, versions, seed, and what this page does not show"
    of_class = "Level, slope and discrimination of the probability of class 1"
    first = ["Reliability diagram and calibration errors", of_class, "When should it decline?"]
    for way, more in (("predictions", ["Which groups?"]), ("csv", [])):
        results = {**pages[way].results_, "warnings": []}
        document = _summary.make_document(results)
        titles = [section.title for section in document.sections]
        assert titles == [*first, "Which classes?", *more, *fixed, last]
        questions = [tile.question for tile in document.tiles]
        assert questions[1] == ("For every group?" if more else "How often is it right?")
        results["warnings"] = ["careful"]
        titles = [section.title for section in _summary.make_document(results).sections]
        assert titles[-2:] == ["What to be careful about", last]
        assert all(document.advice)
        assert document.tone == "open"
    overview = {**results["overview"], "model": "Forest"}
    for title, shown, subtitle in (("T", "T", "Forest · 60 samples"), (None, "Forest", "60 sam")):
        results["overview"] = {**overview, "title": title}
        document = _summary.make_document(results)
        assert document.title == shown
        assert document.subtitle.startswith(subtitle)
        assert " · 2 classes · 20" in document.subtitle
    results["overview"] = {**overview, "title": None, "model": None}
    results["summary"] = {**results["summary"], "kind": "alignment"}
    document = _summary.make_document(results)
    assert document.title == "Calibration report"
    assert (document.advice, document.tone) == ([], "bad")


@pytest.mark.parametrize(
    ("X", "shown"),
    [
        (pd.DataFrame({"a": [1]}), True),
        (np.ones((1, 2, 2)), True),
        (np.ones((1, 2, 2, 3)), True),
        (["a text"], True),
        (np.ones((1, 2)), False),
        ([[1, 2]], False),
        ([], False),
        (csr_array(np.ones((1, 2))), False),
    ],
)
def test_what_a_reader_may_recognize_is_shown(X, shown):
    assert (_report._choose_shown(X) is X) is shown
    assert (_report._choose_shown(X) is None) is not shown


def test_names_of_models_may_not_change_places():
    y, proba, _ = make_predictions(60, n_classes=2, random_state=0)
    with pytest.raises(ValueError, match=r"of two or more models, got \['a'\]"):
        CalibrationReport.compare({"a": proba}, y)
    with pytest.raises(ValueError, match=r"must have the names of y_probas, \['a', 'b'\]"):
        CalibrationReport.compare({"a": proba, "b": proba}, {"b": y, "a": y})


@pytest.mark.parametrize(
    ("header", "classes", "expected"),
    [
        (["a", "b"], ["a", "b"], {"a": None, "b": None}),
        (["a", "b"], ["a=x", "b=y=z"], {"a": "x", "b=y": "z"}),
        (["P(y=1)"], ["P(y=1)"], {"P(y=1)": None}),
        (["a"], {"a": 3}, {"a": "3"}),
    ],
)
def test_columns_and_their_classes(header, classes, expected):
    assert _read._parse_classes(classes, header) == expected
    with pytest.raises(ValueError, match="classes must name distinct columns, got a=x, a=y"):
        _read._parse_classes(["a=x", "a=y"], ["a"])


@pytest.mark.parametrize(
    ("classes", "labels", "read"),
    [
        # Labels 0, 1, ... stand for the classes in their order, unless a class is called so.
        (["p", "q"], ["0", "1"], ["p", "q"]),
        (["p", "q"], ["1"], ["q"]),
        (["p", "q"], ["p", "q"], ["p", "q"]),
        (["p", "q"], ["0", "2"], None),
        (["p", "q"], ["0", "p"], None),
        (["p=x", "q"], ["0", "1"], None),
        (["p=x", "q=y"], ["0", "1"], None),
        (["p=x", "q=y"], ["y", "x"], ["y", "x"]),
    ],
)
def test_labels_by_position(classes, labels, read, tmp_path):
    path = tmp_path / "p.csv"
    rows = "".join(f"{label},0.25,0.75\n" for label in labels)
    path.write_text(f"label,p,q\n{rows}")
    if read is None:
        with pytest.raises(ValueError, match="must be among the classes"):
            _read.read_predictions(path, classes=classes)
        return
    found = _read.read_predictions(path, classes=classes)
    assert found["y_true"].tolist() == read
    np.testing.assert_array_equal(found["y_proba"], [[0.25, 0.75]] * len(labels))


def test_steps_of_a_chart_leave_at_most_five():
    for low, high, n_ticks in ((0.0, 1.0, 6), (0.5, 0.55, 6), (0.5, 0.56, 4), (0.02, 0.98, 6)):
        row = {"predicted": low, "value": low, "low": low, "high": high, "name": "a"}
        ticks = _document._place_chart(_document.Chart("", [row], ""))["ticks"]
        assert len(ticks) == n_ticks
        assert (ticks[0][0], ticks[-1][0]) == (0, 100)
        shown = [float(text.split("\xa0")[0].split()[0]) for _, text in ticks]
        assert shown[0] <= 100 * low
        assert shown[-1] >= 100 * high - 1e-9
