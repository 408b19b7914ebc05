"""A type checker knows the results of a user's script, and sees its misspelled arguments."""

import re
import sys
from pathlib import Path

import pytest

import skcalib

# mypy shows the type of what `reveal_type` gets, and errors where a comment says so.
SCRIPT = """
import numpy as np
import skcalib
from sklearn.linear_model import LogisticRegression
from skcalib.difficulty import DifficultyAwareClassifier, LossScorer, RMDScorer
from skcalib.labels import LabelIssueFinder
from skcalib.metrics import calibration_error_interval, expected_calibration_error
from skcalib.plots import ReliabilityDisplay
from skcalib.posthoc import PostHocCalibratedClassifier, TemperatureScaling
from skcalib.report import CalibrationReport
from skcalib.selection import SelectiveClassifier

X = np.zeros((4, 2))
y = np.array([0, 1, 0, 1])
p = np.full((4, 2), 0.5)
model = PostHocCalibratedClassifier(LogisticRegression())

reveal_type(expected_calibration_error(y, p, n_bins=3))  # float
reveal_type(skcalib.expected_calibration_error(y, p))  # float
reveal_type(calibration_error_interval(y, p))  # tuple[float, float]
reveal_type(model.fit(X, y))  # PostHocCalibratedClassifier
reveal_type(model.fit(X, y).predict_proba(X))  # ndarray
reveal_type(TemperatureScaling().fit(p, y))  # TemperatureScaling
reveal_type(TemperatureScaling().fit(p, y).temperature_)  # float
reveal_type(RMDScorer().fit(X, y).difficulty(X))  # ndarray
reveal_type(LossScorer(LogisticRegression()).fit(X, y))  # LossScorer
reveal_type(LabelIssueFinder().fit(X, y).noise_rate_)  # float
reveal_type(SelectiveClassifier(LogisticRegression()).fit(X, y))  # SelectiveClassifier
reveal_type(SelectiveClassifier(LogisticRegression()).fit(X, y).accept(X))  # ndarray
reveal_type(DifficultyAwareClassifier(LogisticRegression()).fit(X, y).predict_proba(X))  # ndarray
reveal_type(ReliabilityDisplay.from_estimator(model, X, y))  # ReliabilityDisplay
reveal_type(CalibrationReport.from_predictions(y, p))  # CalibrationReport
expected_calibration_error(y, p, n_bin=3)  # error: call-arg
expected_calibration_error(y, p, n_bins="3")  # error: arg-type
TemperatureScaling(kriterion="log_loss")  # error: call-arg
TemperatureScaling().fit(p)  # error: call-arg
skcalib.TemperatureScalin()  # error: attr-defined
"""
CONFIGURATION = """
[mypy]
ignore_missing_imports = true
follow_imports = silent
[mypy-torch.*]
follow_imports = skip
"""


@pytest.mark.slow
def test_mypy_on_the_script_of_a_user(tmp_path, monkeypatch):
    mypy = pytest.importorskip("mypy.api")
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "mypy.ini").write_text(CONFIGURATION)
    monkeypatch.chdir(tmp_path)
    source = Path(skcalib.__file__).parents[1]
    if source.name != "site-packages":  # which mypy finds by itself, and refuses to be told
        monkeypatch.setenv("MYPYPATH", str(source))
    output = mypy.run(["script.py", "--python-executable", sys.executable])[0]
    seen = {}
    for line in output.splitlines():
        for number, kind in re.findall(
            r'^script.py:(\d+): (?:note: Revealed type is "(.*)")?', line
        ):
            if kind:
                seen[int(number)] = kind
        for number, code in re.findall(r"^script.py:(\d+): error: .*\[(.*)\]$", line):
            seen[int(number)] = f"error: {code}"
    for number, line in enumerate(SCRIPT.splitlines(), start=1):
        _, _, expected = line.partition("  # ")
        if expected.startswith("error"):
            assert seen.pop(number, None) == expected, line
        elif expected:
            # "numpy.ndarray[tuple[Any, ...], ...]" -> "ndarray"
            kind = seen.pop(number, "nothing").replace("builtins.", "")  # of mypy before 1.18
            kind = re.sub(r"^[\w.]*\.(\w+)(\[.*)?$", r"\1", kind)
            assert kind == expected, line
    assert not seen, output
