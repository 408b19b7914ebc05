"""Groups: one line a group, as the metric says."""

import numpy as np
import pandas as pd
import pytest

from skcalib.datasets import make_predictions
from skcalib.metrics import groupwise_calibration_error
from skcalib.report import CalibrationReport


@pytest.fixture(scope="module")
def predictions():
    y, proba, _ = make_predictions(400, n_classes=3, random_state=0)
    return y, proba


def test_every_group_has_the_numbers_of_the_metric(predictions):
    names = np.repeat(["a", "b", "c", "d"], [150, 150, 90, 10])
    report = CalibrationReport.from_predictions(*predictions, groups=names)
    entries = report.results_["groups"]["group"]
    table = groupwise_calibration_error(*predictions, groups=names, random_state=0)
    expected = {line["group"]: line for line in table}
    assert {entry["group"] for entry in entries} == set("abcd")
    assert entries[-1]["group"] == "d"  # too small for an error
    for entry in entries[:-1]:
        line = expected[entry["group"]]
        assert entry["expected_calibration_error"]["value"] == line["error"]
        assert entry["expected_calibration_error"]["high"] == line["high"]
        assert entry["pvalue"] == line["pvalue"]
        members = names == entry["group"]
        correct = predictions[1].argmax(axis=1) == predictions[0]
        assert entry["accuracy"]["value"] == pytest.approx(correct[members].mean())
    assert f"{entries[0]['pvalue']:.3f}" in report.to_markdown()


def test_several_columns_are_several_tables(predictions):
    frame = pd.DataFrame({"site": np.arange(400) % 2, "day": np.arange(400) % 3})
    by_frame = CalibrationReport.from_predictions(*predictions, groups=frame).results_["groups"]
    assert list(by_frame) == ["site", "day"]
    assert len(by_frame["day"]) == 3


@pytest.mark.parametrize(
    "groups",
    [
        {1: ["a", "b"], "1": ["c", "d"]},
        pd.DataFrame([["a", "b"], ["c", "d"]], columns=["site", "site"]),
    ],
)
def test_groups_of_one_name_are_refused(groups):
    with pytest.raises(ValueError, match=r"groups must have distinct names, got '\w+' twice"):
        CalibrationReport.from_predictions([0, 1], [0.2, 0.7], groups=groups)
