"""A page by the sums over all samples, and by a random part of them."""

import warnings

import numpy as np
import pytest

from skcalib.datasets import make_predictions
from skcalib.metrics import CalibrationAccumulator, expected_calibration_error
from skcalib.report import CalibrationReport
from skcalib.report._data import read_data
from skcalib.report._sections import compute_overview
from skcalib.report._tests import run_group_tests
from skcalib.utils import SkcalibWarning


def summed(y, proba, **options):
    total = CalibrationAccumulator(**options)
    for part in np.array_split(np.arange(len(y)), 7):
        total.update(y[part], proba[part])
    return total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "single"),
    [(4, False), pytest.param(2, False, marks=pytest.mark.long), (2, True)],
)
def test_with_all_samples_as_the_part_the_page_is_that_of_the_samples(n_classes, single):
    y, proba, _ = make_predictions(4000, n_classes=n_classes, temperature=1.4, random_state=0)
    proba = proba[:, 1] if single else proba
    pages = (
        CalibrationReport.from_accumulator(summed(y, proba), y, proba),
        CalibrationReport.from_predictions(y, proba),
    )
    found, expected = (page.results_ for page in pages)
    assert found["summary"]["kind"] == expected["summary"]["kind"]
    assert found["overview"]["n_samples"] == 4000
    for name, view in expected["calibration"]["views"].items():
        error = found["calibration"]["views"][name]["errors"]["expected_calibration_error"]
        of_samples = view["errors"]["expected_calibration_error"]
        assert error["value"] == pytest.approx(of_samples["value"], abs=1e-12)
        for end in ("low", "high"):
            assert error[end] == pytest.approx(of_samples[end], abs=0.006)
        assert found["calibration"]["views"][name]["histogram"]["count"] == pytest.approx(
            view["histogram"]["count"]
        )
    for got, view in zip(*(x["group_tests"][0]["tests"] for x in (found, expected))):
        assert (got["of"], got["proba_range"]) == (view["of"], view["proba_range"])
        assert got["predicted"] == pytest.approx(view["predicted"], abs=1e-12)
        assert got["observed"] == pytest.approx(view["observed"], abs=3e-4)
        # The samples of a bin vary no more than as many of their mean probability.
        assert got["standard_error"] >= view["standard_error"] - 1e-12
        assert got["standard_error"] == pytest.approx(view["standard_error"], rel=0.01)


@pytest.mark.slow
def test_averages_are_those_of_all_and_classes_those_of_the_part():
    y, proba, _ = make_predictions(60_000, temperature=1.1, random_state=0)
    total, part = summed(y, proba), np.random.default_rng(0).choice(60_000, 600, replace=False)
    report = CalibrationReport.from_accumulator(
        total, y[part], proba[part], by={"half": part % 2}, title="Sums"
    )
    results = report.results_
    overall, *parts = results["group_tests"]
    assert overall["n_samples"] == results["overview"]["n_samples"] == 60_000
    assert sum(entry["n_samples"] for entry in parts if entry["kind"] == "group") == 600
    answers = next(view for view in overall["tests"] if view["of"] == "answers")
    assert answers["predicted"] == pytest.approx(proba.max(axis=1).mean())
    assert answers["observed"]["value"] == pytest.approx((proba.argmax(axis=1) == y).mean())
    error = results["calibration"]["views"]["top_label"]["errors"]["expected_calibration_error"]
    assert error["value"] == pytest.approx(expected_calibration_error(y, proba))
    # 600 samples alone are too few, and all of them are not.
    assert overall["significant"]
    alone = CalibrationReport.from_predictions(y[part], proba[part]).results_
    assert not alone["group_tests"][0]["significant"]
    assert "are those of all 60\xa0000 samples, of which 600 were here" in (results["warnings"][0])
    assert "60 000 samples" in report.to_markdown().replace("\xa0", " ")
    assert results["selective"]["n_samples"] == 600


@pytest.mark.slow
def test_of_calibrated_models_few_are_accused():
    accused = 0
    for seed in range(40):
        y, proba, _ = make_predictions(20_000, n_classes=2, random_state=seed)
        sums = {"total": summed(y, proba[:, 1]), "summed": "positive"}
        part = read_data(y[:300], proba[:300, 1], labels=[0, 1], **sums)
        accused += run_group_tests(part)[0].significant
    assert accused <= 3  # at a level of .01, .9991 of the time


@pytest.mark.slow
def test_a_part_that_is_not_random_is_told():
    y, proba, _ = make_predictions(20_000, random_state=0)
    total, order = summed(y, proba), np.argsort(proba.max(axis=1))
    with pytest.warns(SkcalibWarning, match=r"must be a random part .* mean confidence is 0\.9"):
        CalibrationReport.from_accumulator(total, y[order[-500:]], proba[order[-500:]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SkcalibWarning)
        CalibrationReport.from_accumulator(total, y[::40], proba[::40])


def test_sums_of_another_kind_are_refused():
    y, proba, _ = make_predictions(300, n_classes=3, random_state=0)
    page = CalibrationReport.from_accumulator
    with pytest.raises(TypeError, match="accumulator must be a CalibrationAccumulator, got dict"):
        page({}, y, proba)
    with pytest.raises(ValueError, match=r"must have 15 bins of equal width .* got 10 bins"):
        page(summed(y, proba, n_bins=10), y, proba)
    with pytest.raises(ValueError, match=r"the norm 'l1', .* got 15 bins and 'l2'"):
        page(summed(y, proba, norm="l2"), y, proba)
    with pytest.raises(ValueError, match="accumulator must have samples, got none"):
        page(CalibrationAccumulator(), y, proba)
    with pytest.raises(ValueError, match="y_proba must have the columns of the updates before"):
        page(summed(y, proba), y > 0, proba[:, 1])
    with pytest.raises(ValueError, match="y_true must"):
        page(summed(y, proba), y + 1, proba)


def in_survey(seed, n=600):
    """A calibrated model, sampled with unlike probabilities: labels, risks, inverse weights."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(0.8 - 1.5 * rng.normal(size=6 * n)))
    inclusion = 0.02 + 0.4 / (1 + np.exp(1 - 1.5 * rng.normal(size=6 * n)))
    kept = rng.random(6 * n) < inclusion
    return (rng.random(kept.sum()) < p[kept]).astype(int), p[kept], 1 / inclusion[kept]


@pytest.mark.slow
def test_weighted_samples_count_by_their_effective_number_by_sums_and_by_rows():
    truth = 1 / (1 + np.exp(0.8 - 1.5 * np.random.default_rng(0).normal(size=200_000)))
    accuracy, accused, missed = np.maximum(truth, 1 - truth).mean(), 0, 0
    for seed in range(16):
        y, p, weight = in_survey(seed)
        total = CalibrationAccumulator().update(y[::2], p[::2], sample_weight=weight[::2])
        total.update(y[1::2], p[1::2], sample_weight=9 * weight[1::2])
        of_sums = {"total": total, "summed": "positive"}
        weight[1::2] *= 9
        data = read_data(y, p, labels=[0, 1], sample_weight=weight, **of_sums)
        assert data.n_samples == round(weight.sum() ** 2 / (weight @ weight))
        accused += run_group_tests(data)[0].significant
        found = compute_overview(data)["accuracy"]
        missed += not found["low"] <= accuracy <= found["high"]
    assert accused <= 2  # at a level of .01, .9995 of the time
    assert missed <= 2


@pytest.mark.slow
def test_a_weighted_part_of_weighted_sums_is_a_random_one():
    rng = np.random.default_rng(0)
    y, p, _ = in_survey(0, n=6000)
    weight = np.exp(3 * p)
    total = CalibrationAccumulator().update(y, p, sample_weight=weight)
    part = rng.choice(len(y), 900, replace=False)
    with pytest.warns(SkcalibWarning, match="must be a random part"):
        CalibrationReport.from_accumulator(total, y[part], p[part])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SkcalibWarning)
        page = CalibrationReport.from_accumulator(
            total, y[part], p[part], sample_weight=weight[part]
        )
    n = round(weight.sum() ** 2 / (weight @ weight))
    assert page.results_["overview"]["n_samples"] == n
