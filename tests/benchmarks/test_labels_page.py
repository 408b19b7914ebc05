"""The guide's tables of wrong labels say what the JSON file says."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from benchmarks.labels import load, out_of_fold
from benchmarks.labels_page import PAGE, RESULTS, gain, page


def test_the_guide_shows_the_results():
    # "python -m benchmarks.labels_page" writes them anew.
    assert PAGE.read_text() == page(load(RESULTS))


def test_differences_are_paired_over_the_seeds_of_both():
    ours = {0: 0.9, 1: 0.8, 2: 0.95, 7: 0.1}
    theirs = {2: 0.9, 0: 0.85, 5: 0.0, 1: 0.79}
    a, b = ({seed: {"right": right} for seed, right in d.items()} for d in (ours, theirs))
    mean, error = gain(a, b)
    expected = ttest_rel([90, 80, 95], [85, 79, 90])
    assert mean == pytest.approx(np.mean([5, 1, 5]))
    assert mean / error == pytest.approx(expected.statistic)


def test_every_run_is_of_one_seed_of_one_method():
    rows = load(RESULTS)
    keys = {(r["set"], r["noise"], r["noise_rate"], r["method"], r["seed"]) for r in rows}
    assert len(keys) == len(rows)


def test_columns_of_probabilities_are_classes_also_where_a_class_has_no_label():
    rng = np.random.default_rng(0)
    given = np.repeat([0, 2, 3], 20)
    X = np.eye(4)[given] + rng.normal(scale=0.1, size=(60, 4))
    proba = out_of_fold(X, given, n_classes=4)
    assert (proba[:, 1] == 0).all()
    assert (proba.argmax(axis=1) == given).all()
