import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import brier_score_loss

from skcalib.metrics import (
    debiased_calibration_error,
    expected_calibration_error,
    generalized_brier_score,
    get_scorer_names,
    ks_calibration_error,
    multilabel_calibration_error,
    smooth_calibration_error,
)

METRICS = [
    expected_calibration_error,
    debiased_calibration_error,
    ks_calibration_error,
    smooth_calibration_error,
    brier_score_loss,
]


@pytest.fixture(params=[np.float32, np.float64])
def data(request):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(200, 4)).astype(request.param)
    return (rng.uniform(size=p.shape) < p**1.5).astype(int), p, rng.integers(0, 3, size=200)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("weighted", [False, True])
def test_averages_of_the_errors_of_the_labels(data, metric, weighted):
    y, p, weight = data
    options = {"sample_weight": weight} if weighted else {}
    each = [metric(y[:, k], p[:, k], **options) for k in range(4)]
    found = multilabel_calibration_error(y, p, metric=metric, average=None, **options)
    np.testing.assert_allclose(found, each)
    macro = multilabel_calibration_error(y, p, metric=metric, **options)
    assert isinstance(macro, float)
    assert macro == pytest.approx(np.mean(each))


@pytest.mark.parametrize("metric", METRICS)
def test_micro_is_the_error_of_all_pairs(data, metric):
    y, p, weight = data
    rows, _ = np.indices(y.shape)
    keep = weight[rows] > 0
    pairs = y[keep], p[keep]
    found = multilabel_calibration_error(
        y, p, metric=metric, average="micro", sample_weight=weight
    )
    expected = metric(*pairs, sample_weight=weight[rows][keep])
    assert found == pytest.approx(expected, abs=1e-8)


def test_options_go_to_the_metric(data):
    y, p, _ = data
    found = multilabel_calibration_error(y, p, n_bins=3, norm="max", average=None)
    assert found[1] == expected_calibration_error(y[:, 1], p[:, 1], n_bins=3, norm="max")
    with pytest.raises(ValueError, match="'n_bins' parameter"):
        multilabel_calibration_error(y, p, n_bins=0)


def test_a_label_that_never_occurs_or_always():
    y = np.column_stack([np.zeros(4, int), np.ones(4, int)])
    found = multilabel_calibration_error(y, np.full((4, 2), 0.3), average=None)
    np.testing.assert_allclose(found, [0.3, 0.7])


def test_frames_booleans_and_lists(data):
    pd = pytest.importorskip("pandas")
    y, p, _ = data
    expected = multilabel_calibration_error(y, p)
    assert multilabel_calibration_error(pd.DataFrame(y == 1), pd.DataFrame(p)) == expected
    assert multilabel_calibration_error(y.tolist(), p) == expected


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        (
            [0, 1],
            [0.2, 0.3],
            r"y_true must hold label indicators of shape \(n_samples",
        ),
        (
            [[0, 2]],
            [[0.2, 0.3]],
            "y_true must hold label indicators, 0 and 1, got 2 in row 0",
        ),
        ([[0, np.nan]], [[0.2, 0.3]], "y_true must hold label indicators, 0 and 1, got nan"),
        ([["a", "b"]], [[0.2, 0.3]], "y_true must hold real numbers, got dtype"),
        ([[0, 1]], [[0.2, 0.3, 0.4]], "y_proba must have the shape of y_true"),
        ([[0, 1]], [[0.2, 1.3]], r"y_proba must hold probabilities in \[0, 1\], got 1.3"),
        ([[0, 1]], [[0.2, np.nan]], "y_proba must not contain NaN"),
        ([[0, 1]], [[[0.2, 0.8], [0.3, 0.7]]], "y_proba must have the shape of y_true"),
    ],
)
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_bad_input(y, p, message, average):
    with pytest.raises((ValueError, TypeError), match=message):
        multilabel_calibration_error(y, p, average=average)


def test_indicators_are_refused_elsewhere(data):
    y, p, _ = data
    with pytest.raises(ValueError, match=r"\(multilabel\): take multilabel_calibration_error"):
        expected_calibration_error(y, p / p.sum(axis=1, keepdims=True))


def test_it_is_no_scorer():
    # A scorer hands classes to its metric, and labels are not classes.
    assert not [name for name in get_scorer_names() if "multilabel" in name]


def test_columns_are_those_of_the_labels_by_name(data):
    y, p, _ = data
    y, p = pd.DataFrame(y, columns=list("abcd")), pd.DataFrame(p, columns=list("abcd"))
    assert multilabel_calibration_error(y, p) > 0
    with pytest.raises(ValueError, match="y_proba must have the columns of y_true"):
        multilabel_calibration_error(y, p[list("dcba")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["a", "b", "c", "d"]}, "labels must not be given"),
        ({"pos_label": 0}, "pos_label must not be given"),
        ({"metric": generalized_brier_score}, "metric must be a function .* no sample_weight"),
        ({"metric": lambda y, p, sample_weight: p}, "metric must return a number, got ndarray"),
        ({"metric": lambda y, p, sample_weight: None}, "metric must return a number, got None"),
    ],
)
def test_what_makes_no_sense_for_labels_is_named(data, options, message):
    y, p, _ = data
    with pytest.raises(TypeError, match=message):
        multilabel_calibration_error(y, p, **options)


def test_sparse_labels_are_told_what_to_do(data):
    y, p, _ = data
    with pytest.raises(TypeError, match="y_true must be dense"):
        multilabel_calibration_error(csr_array(y), p)
