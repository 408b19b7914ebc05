"""The choice of a calibrator: the rule, and what the measured table says of it."""

import json

import numpy as np
import pytest

from benchmarks.calibrator_choice import CALIBRATORS, PAGE, RESULTS, page
from skcalib.posthoc import choose_calibrator


@pytest.mark.parametrize(
    ("samples_per_class", "n_classes", "name"),
    [
        (1, 2, "EnsembleTemperatureScaling"),
        (5000, 2, "EnsembleTemperatureScaling"),
        (19.9, 3, "TemperatureScaling"),
        (20, 3, "StructuredMatrixScaling"),
        (0.1, 1000, "TemperatureScaling"),
        (100, 1000, "StructuredMatrixScaling"),
    ],
)
def test_the_rule(samples_per_class, n_classes, name):
    chosen = choose_calibrator(samples_per_class, n_classes)
    assert type(chosen).__name__ == name
    assert not hasattr(chosen, "classes_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 3), "samples_per_class"),
        ((np.nan, 3), "samples_per_class"),
        (("5", 3), "samples_per_class"),
        ((None, 3), "samples_per_class"),
        ((5, 1), "n_classes"),
        ((5, "3"), "n_classes"),
        ((5, 2.5), "n_classes"),
        ((5, np.nan), "n_classes"),
    ],
)
def test_bad_numbers_are_named(arguments, message):
    with pytest.raises(ValueError, match=f"'{message}' parameter .* must be"):
        choose_calibrator(*arguments)


def test_the_tables_of_the_guide_are_those_that_were_measured():
    # "python -m benchmarks.calibrator_choice" writes them anew.
    assert PAGE.read_text() == page(json.loads(RESULTS.read_text()))


def test_the_rule_costs_less_than_any_calibrator_for_all():
    names = {cls.__name__: name for name, cls in CALIBRATORS.items()}
    losses = {}
    for data, k, n, calibrator, loss, *_ in json.loads(RESULTS.read_text()):
        losses.setdefault((data, k, n), {})[calibrator] = loss

    def mean_regret(choice):
        return np.mean([losses[key][choice(*key)] - min(losses[key].values()) for key in losses])

    def rule(data, k, n):
        return names[type(choose_calibrator(n / k, k)).__name__]

    for name in ("none", "temperature", "ensemble", "vector", "structured", "isotonic"):
        assert mean_regret(rule) < mean_regret(lambda data, k, n, name=name: name)
