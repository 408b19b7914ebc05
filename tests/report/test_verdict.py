"""The verdict follows the intervals."""

import numpy as np
import pytest

from skcalib.datasets import make_predictions
from skcalib.report import CalibrationReport


def verdict(y, proba):
    return CalibrationReport.from_predictions(y, proba).results_["verdict"]


@pytest.mark.parametrize(
    ("temperature", "kind", "word"),
    [
        (1.0, "calibrated", "No miscalibration found at n = 2000"),
        (2.0, "overconfident", "Overconfident: says "),
        (0.5, "underconfident", "Underconfident: says "),
    ],
)
def test_made_predictions_get_their_verdict(temperature, kind, word):
    y, proba, _ = make_predictions(2000, temperature=temperature, random_state=1)
    found = verdict(y, proba)
    assert found["kind"] == kind
    assert found["sentence"].startswith(word)


def test_sentence_holds_confidence_accuracy_and_interval():
    # 80 of 100 are right, and all say .9. Wilson's interval of .8 of 100, from a table.
    y = np.repeat([0, 1], [80, 20])
    proba = np.tile([0.9, 0.1], (100, 1))
    assert verdict(y, proba)["sentence"] == (
        "Overconfident: says 90.0 %, is right 80.0 % (71.1-86.7)."
    )


def test_errors_that_cancel_are_found():
    # As often right as said on the whole; .6 is right always, .9 in half of the cases.
    n = 400
    proba = np.repeat([[0.6, 0.4], [0.9, 0.1]], n, axis=0)
    y = np.concatenate([np.zeros(n, int), np.tile([0, 1], n // 2)])
    found = verdict(y, proba)
    assert found["kind"] == "uneven"
    assert "not at every confidence" in found["sentence"]


def test_few_right_answers_are_no_proof_of_underconfidence():
    assert verdict(np.zeros(20, int), np.tile([0.99, 0.01], (20, 1)))["kind"] == "calibrated"
