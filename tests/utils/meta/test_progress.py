"""What takes long tells meanwhile, if it is asked to."""

import re

import numpy as np
import pytest
from joblib import parallel_config
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
from skcalib.utils.meta._progress import telling

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
P = 1 / (1 + np.exp(-X[:, 0]))
MODEL = LogisticRegression()
FOLDS = ["fold 1 of 3", "fold 2 of 3", "fold 3 of 3"]
DRAWN = ("samples", "labels", "larger bins")  # the last as 15 bins of 120 samples are small
PARTS = [f"{what} drawn, part {k} of 4" for what in DRAWN for k in (1, 2, 3, 4)]
CALLS = {
    "cross_val_difficulty": (
        lambda **v: cross_val_difficulty(RMDScorer(), X, Y, cv=3, **v),
        FOLDS,
    ),
    "PostHocCalibratedClassifier": (
        lambda **v: PostHocCalibratedClassifier(MODEL, "temperature", cv=3, **v).fit(X, Y),
        ["classifier", *FOLDS, "calibrator"],
    ),
    "PostHocCalibratedClassifier of folds": (
        lambda **v: PostHocCalibratedClassifier(
            MODEL, "temperature", cv=3, ensemble=True, **v
        ).fit(X, Y),
        [*FOLDS, "calibrator"],
    ),
    "SelectiveClassifier": (
        lambda **v: SelectiveClassifier(MODEL, risk=0.4, cv=3, **v).fit(X, Y),
        ["classifier", *FOLDS],
    ),
    "calibration_error_interval": (
        lambda **v: calibration_error_interval(Y, P, n_resamples=8, **v),
        PARTS,
    ),
    "calibration_test": (lambda **v: calibration_test(Y, P, n_resamples=8, **v), PARTS[4:8]),
    "compare_calibration, b": (
        lambda **v: compare_calibration(Y, {"b": P}, n_resamples=8, **v),
        PARTS,
    ),
    "groupwise_calibration_error": (
        lambda **v: groupwise_calibration_error(Y, P, by=Y, n_resamples=8, **v),
        ["group 1 of 2", "group 2 of 2"],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_step_is_told_with_its_seconds_or_none(name, capsys):
    call, steps = CALLS[name]
    call()
    assert capsys.readouterr().out == ""
    call(verbose=1)
    lines = capsys.readouterr().out.splitlines()
    source = name.removesuffix(" of folds")
    assert [re.fullmatch(rf"\[{source}\] (.*), \d+\.\d s", line)[1] for line in lines] == steps


def test_folds_in_processes_are_told_too(capsys):
    cross_val_difficulty(RMDScorer(), X, Y, cv=3, n_jobs=2, verbose=1)
    assert capsys.readouterr().out.count("[cross_val_difficulty] fold ") == 3


def test_a_backend_that_returns_all_at_once_is_told_once(capsys):
    with parallel_config(backend="multiprocessing", n_jobs=2):
        cross_val_difficulty(RMDScorer(), X, Y, cv=3, verbose=1)
    assert "[cross_val_difficulty] fold 1 to 3, " in capsys.readouterr().out


def test_a_report_and_a_comparison_tell_their_parts(capsys):
    CalibrationReport.from_predictions(Y, P, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[CalibrationReport] ") for line in lines)
    assert len(lines) >= 6
    CalibrationReport.compare({"a": P, "b": P**2}, Y, verbose=1)
    told = capsys.readouterr().out
    assert "[CalibrationReport] a, " in told
    assert "[CalibrationReport] differences, " in told


def test_a_step_that_fails_is_not_told(capsys):
    with pytest.raises(KeyboardInterrupt), telling("fit", 1)("fold 1 of 2"):
        raise KeyboardInterrupt
    assert capsys.readouterr().out == ""
