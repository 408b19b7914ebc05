"""What takes long prints its progress, if it is asked to."""

import re

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression

from skcalib.difficulty import RMDScorer, cross_val_difficulty
from skcalib.metrics import (
    calibration_error_interval,
    calibration_test,
    compare_calibration,
    groupwise_calibration_error,
)
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.report import CalibrationReport
from skcalib.selection import SelectiveClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
P = 1 / (1 + np.exp(-X[:, 0]))
MODEL = LogisticRegression()
# What a call prints: its own steps to stdout, and the parts of joblib to stderr.
CALLS = {
    "cross_val_difficulty": (
        lambda **v: cross_val_difficulty(RMDScorer(), X, Y, cv=3, **v),
        [],
        [3],
    ),
    "PostHocCalibratedClassifier": (
        lambda **v: PostHocCalibratedClassifier(MODEL, "temperature", cv=3, **v).fit(X, Y),
        ["classifier", "calibrator"],
        [3],
    ),
    "PostHocCalibratedClassifier of folds": (
        lambda **v: PostHocCalibratedClassifier(
            MODEL, "temperature", cv=3, ensemble=True, **v
        ).fit(X, Y),
        ["calibrator"],
        [3],
    ),
    "SelectiveClassifier": (
        lambda **v: SelectiveClassifier(MODEL, risk=0.4, cv=3, **v).fit(X, Y),
        ["classifier"],
        [3],
    ),
    # Samples and labels; larger bins only where chance does not explain the error.
    "calibration_error_interval": (
        lambda **v: calibration_error_interval(Y, P, n_resamples=8, **v),
        [],
        [4, 4],
    ),
    "calibration_test": (lambda **v: calibration_test(Y, P, n_resamples=8, **v), [], [4]),
    "compare_calibration": (
        lambda **v: compare_calibration(Y, {"b": P}, n_resamples=8, **v),
        ["b"],
        [4, 4],
    ),
    "groupwise_calibration_error": (
        lambda **v: groupwise_calibration_error(Y, P, by=Y, n_resamples=8, **v),
        [],
        [2],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_step_is_printed_with_its_seconds_or_none(name, capsys):
    call, steps, parts = CALLS[name]
    Parallel(verbose=1)([delayed(abs)(0)])
    if "Done" not in capsys.readouterr().err:  # earlier versions of joblib show no single process
        parts = []
    call()
    assert capsys.readouterr() == ("", "")
    call(verbose=1)
    out, err = capsys.readouterr()
    source = name.removesuffix(" of folds")
    assert [
        re.fullmatch(rf"\[{source}\] \.* (.*), total= +\d+\.\ds", line)[1]
        for line in out.splitlines()
    ] == steps
    assert [int(n) for n in re.findall(r"Done +(\d+) out of", err)] == parts


def test_folds_in_processes_are_printed_too(capsys):
    cross_val_difficulty(RMDScorer(), X, Y, cv=3, n_jobs=2, verbose=1)
    assert "Done   3 out of   3" in capsys.readouterr().err


@pytest.mark.slow
def test_a_report_and_a_comparison_print_their_steps(capsys):
    CalibrationReport.from_predictions(Y, P, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[CalibrationReport] ") for line in lines)
    assert len(lines) >= 6
    CalibrationReport.compare({"a": P, "b": P**2}, Y, verbose=1)
    shown = capsys.readouterr().out
    assert re.search(r"\[CalibrationReport\] \.* a, total=", shown)
    assert re.search(r"\[CalibrationReport\] \.* differences, total=", shown)


def test_a_step_that_fails_is_not_printed(capsys):
    class Failing(LogisticRegression):
        def fit(self, X, y):
            raise KeyboardInterrupt

    model = PostHocCalibratedClassifier(Failing(), verbose=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert capsys.readouterr().out == ""
