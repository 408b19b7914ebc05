"""Groups of any kind: strings, numbers, intervals, categories, missing values."""

import re

import numpy as np
import pandas as pd
import pytest

from skcalib.__main__ import main
from skcalib.datasets import make_predictions
from skcalib.report import CalibrationReport
from skcalib.report._data import read_data
from skcalib.report._tests import run_group_tests


@pytest.fixture(scope="module")
def predictions():
    y, proba, _ = make_predictions(400, n_classes=3, random_state=0)
    return y, proba


def names_and_sizes(predictions, groups):
    found = read_data(*predictions, labels=None, by=groups).by["group"]
    return dict(zip(found.names, np.bincount(found.codes).tolist()))


@pytest.mark.slow
def test_every_group_has_predictions_and_observations(predictions):
    y, proba = predictions
    names = np.repeat(["a", "b", "c"], [150, 150, 100])
    report = CalibrationReport.from_predictions(y, proba, by=names)
    tested = [e for e in report.results_["group_tests"] if e["kind"] == "group"]
    assert [entry["name"] for entry in tested] == ["a", "b", "c"]
    for entry in tested:
        members, view = names == entry["name"], entry["tests"][0]
        assert entry["n_samples"] == members.sum()
        assert view["predicted"] == pytest.approx(proba.max(axis=1)[members].mean())
        correct = proba.argmax(axis=1) == y
        assert view["observed"]["value"] == pytest.approx(correct[members].mean())


@pytest.mark.slow
def test_several_columns_are_all_tested(predictions):
    frame = pd.DataFrame({"site": np.arange(400) % 2, "day": np.arange(400) % 3})
    results = CalibrationReport.from_predictions(*predictions, by=frame).results_
    columns = [e["column"] for e in results["group_tests"] if e["kind"] == "group"]
    assert columns == ["site"] * 2 + ["day"] * 3


@pytest.mark.slow
def test_frames_of_others_are_read_by_name(predictions):
    class Frame:  # as of polars, which has no `items`
        columns = ("site", "day")

        def __getitem__(self, name):
            return np.tile({"site": [1, 2], "day": ["x", "y"]}[name], 200)

    results = CalibrationReport.from_predictions(*predictions, by=Frame()).results_
    columns = [e["column"] for e in results["group_tests"] if e["kind"] == "group"]
    assert columns == ["site"] * 2 + ["day"] * 2


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (np.tile([2, 10], 200), {"2": 200, "10": 200}),
        (np.tile([True, False], 200), {"False": 200, "True": 200}),
        (np.tile([1.0, np.nan], 200), {"1": 200, "(missing)": 200}),
        (pd.Series(np.tile(["x", None], 200)), {"x": 200, "(missing)": 200}),
        (pd.array(np.tile([1, None], 200), dtype="Int64"), {"1": 200, "(missing)": 200}),
    ],
)
def test_groups_of_any_kind(predictions, groups, expected):
    assert names_and_sizes(predictions, groups) == expected


def test_intervals_and_categories_keep_their_order(predictions):
    ages = pd.cut(np.r_[np.arange(399), np.nan], [0, 9, 100, 400])
    assert list(names_and_sizes(predictions, ages)) == [
        "(0, 9]",
        "(9, 100]",
        "(100, 400]",
        "(missing)",
    ]
    sizes = pd.Categorical(np.tile(["small", "large"], 200), ["small", "medium", "large"])
    assert names_and_sizes(predictions, sizes) == {"small": 200, "large": 200}


@pytest.mark.parametrize(
    "groups",
    [
        {1: ["a", "b"], "1": ["c", "d"]},
        pd.DataFrame([["a", "b"], ["c", "d"]], columns=["site", "site"]),
    ],
)
def test_groups_of_one_name_are_refused(groups):
    with pytest.raises(ValueError, match=r"by must have distinct names, got '\w+' twice"):
        CalibrationReport.from_predictions([0, 1], [0.2, 0.7], by=groups)


def patients(n, size, seed, off=0.0):
    """Return labels and probabilities of patients, whose labels agree (correlation 1/2)."""
    rng = np.random.default_rng(seed)
    stated = rng.uniform(0.02, 0.98, n)
    true = np.clip(stated + off, 0.01, 0.99)
    rate = rng.beta(true, 1 - true).repeat(size)
    names = np.array([f"patient {i}" for i in range(n)]).repeat(size)
    return (rng.random(n * size) < rate).astype(int), stated.repeat(size), names


@pytest.mark.slow
def test_samples_that_belong_together_accuse_no_calibrated_model():
    accused = np.zeros(2)
    for seed in range(12):
        y, p, names = patients(60, 8, seed)
        for k, groups in enumerate((None, names)):
            overall, *_ = run_group_tests(read_data(y, p, labels=None, groups=groups))
            accused[k] += overall.significant
    assert accused[0] >= 6  # blind to groups
    assert accused[1] <= 1


@pytest.mark.slow
def test_groups_widen_every_number():
    y, p, names = patients(100, 6, 0, off=0.15)
    blind, grouped = (
        CalibrationReport.from_predictions(y, p, groups=groups).results_
        for groups in (None, names)
    )

    def widths(results):
        error = results["calibration"]["views"]["positive_class"]["errors"]
        error = error["expected_calibration_error"]
        gain = results["calibrators"]["table"][1]["log_loss_difference"]
        mean = results["group_tests"][0]["tests"][0]["observed"]
        return [part["high"] - part["low"] for part in (error, gain, mean)]

    assert (np.array(widths(grouped)) > 1.1 * np.array(widths(blind))).all()
    limits = [
        {entry["risk"]: entry["coverage"] for entry in results["selective"]["table"]}
        for results in (blind, grouped)
    ]
    assert all(limits[1][risk] <= limits[0][risk] for risk in limits[0])
    models = {"one": p, "other": np.clip(p + 0.1, 0, 1)}
    found = [
        CalibrationReport.compare(models, y, groups=groups).results_["comparison"]
        for groups in (None, names)
    ]
    loss = [part["differences"]["other"]["log_loss"] for part in found]
    assert loss[1]["high"] - loss[1]["low"] > loss[0]["high"] - loss[0]["low"]


@pytest.mark.slow
def test_a_column_of_a_file_names_the_groups(tmp_path):
    pd = pytest.importorskip("pandas")
    y, p, names = patients(60, 8, 3)
    pd.DataFrame({"label": y, "1": p, "patient": names}).to_csv(tmp_path / "p.csv", index=False)
    expected = CalibrationReport.from_predictions(y, p, groups=names).results_
    found = CalibrationReport.from_csv(tmp_path / "p.csv", groups="patient").results_
    ends = [
        results["calibration"]["views"]["positive_class"]["errors"]["expected_calibration_error"]
        for results in (found, expected)
    ]
    assert ends[0] == pytest.approx(ends[1])
    main(["report", str(tmp_path / "p.csv"), "-o", str(tmp_path / "r.md"), "--groups", "patient"])
    assert (tmp_path / "r.md").exists()


@pytest.mark.slow
def test_parts_that_are_one_group_each_cannot_be_told(predictions):
    sites = np.arange(400) % 7
    found = CalibrationReport.from_predictions(*predictions, by=sites, groups=sites).results_
    parts = [entry for entry in found["group_tests"] if entry["kind"] == "group"]
    assert not any(entry["significant"] or entry["calibrated"] for entry in parts)


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [1, 2, 4])
def test_few_groups_are_too_few_to_try_calibrators(predictions, n_groups):
    report = CalibrationReport.from_predictions(*predictions, groups=np.arange(400) % n_groups)
    found = report.results_["calibrators"]
    assert (found["table"], found["best"]) == (None, None)
    assert "that takes 50 samples, in 5 groups and two classes among them" in report.to_markdown()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "n_groups"),
    [
        (np.arange(400), 400),
        (np.arange(400) // 2, 200),
        (np.arange(400) % 2, None),
        (np.arange(400) // 390, None),  # one of them is large
    ],
)
def test_values_that_are_too_many_for_groups_are_to_be_joined(by, n_groups):
    y, proba, _ = make_predictions(400, n_classes=2, random_state=1)
    page = CalibrationReport.from_predictions(y, proba, by={"age": by}).to_markdown()
    told = re.search("Join the values of age.*none of its (\\d+) groups has 10 samples", page)
    assert (told and int(told[1])) == n_groups


@pytest.mark.slow
def test_few_samples_cannot_be_joined_into_groups():
    y, proba, _ = make_predictions(18, n_classes=2, random_state=1)
    page = CalibrationReport.from_predictions(y, proba, by={"age": np.arange(18) % 2})
    assert "Join the values" not in page.to_markdown()
