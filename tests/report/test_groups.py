"""Groups of any kind: strings, numbers, intervals, categories, missing values."""

import numpy as np
import pandas as pd
import pytest

from skcalib.datasets import make_predictions
from skcalib.report import CalibrationReport
from skcalib.report._data import read_data


@pytest.fixture(scope="module")
def predictions():
    y, proba, _ = make_predictions(400, n_classes=3, random_state=0)
    return y, proba


def names_and_sizes(predictions, groups):
    found = read_data(*predictions, labels=None, by=groups).groups["group"]
    return dict(zip(found.names, np.bincount(found.codes).tolist()))


def test_every_group_has_what_was_said_and_what_was_observed(predictions):
    y, proba = predictions
    names = np.repeat(["a", "b", "c"], [150, 150, 100])
    report = CalibrationReport.from_predictions(y, proba, by=names)
    tested = [e for e in report.results_["verdict"]["tested"] if e["kind"] == "group"]
    assert [entry["name"] for entry in tested] == ["a", "b", "c"]
    for entry in tested:
        members, view = names == entry["name"], entry["views"][0]
        assert entry["n_samples"] == members.sum()
        assert view["says"] == pytest.approx(proba.max(axis=1)[members].mean())
        correct = proba.argmax(axis=1) == y
        assert view["is"]["value"] == pytest.approx(correct[members].mean())


def test_several_columns_are_all_judged(predictions):
    frame = pd.DataFrame({"site": np.arange(400) % 2, "day": np.arange(400) % 3})
    results = CalibrationReport.from_predictions(*predictions, by=frame).results_
    columns = [e["column"] for e in results["verdict"]["tested"] if e["kind"] == "group"]
    assert columns == ["site"] * 2 + ["day"] * 3


def test_frames_of_others_are_read_by_name(predictions):
    class Frame:  # as of polars, which has no `items`
        columns = ("site", "day")

        def __getitem__(self, name):
            return np.tile({"site": [1, 2], "day": ["x", "y"]}[name], 200)

    results = CalibrationReport.from_predictions(*predictions, by=Frame()).results_
    columns = [e["column"] for e in results["verdict"]["tested"] if e["kind"] == "group"]
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
