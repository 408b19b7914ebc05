"""FPR at TPR against scikit-learn's ROC curve and a loop over thresholds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_curve

from skcalib.metrics import fpr_at_tpr


def sample(seed=0, n=300, levels=25):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    return y, rng.integers(0, levels, n) + 3 * y, rng.uniform(0.1, 2, n)


@pytest.mark.parametrize("tpr", [0.01, 0.5, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_against_the_roc_curve(tpr, weighted):
    y, score, weight = sample()
    weight = weight if weighted else None
    false, true, _ = roc_curve(y, score, sample_weight=weight, drop_intermediate=False)
    expected = false[true >= tpr - 1e-12].min()
    assert fpr_at_tpr(y, score, tpr=tpr, sample_weight=weight) == pytest.approx(expected)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=12),
    st.floats(0.05, 1),
)
def test_against_a_loop_over_thresholds(rows, tpr):
    y, score = (np.array(column) for column in zip(*rows))
    if y.all() or not y.any():
        return
    expected = min(
        np.mean(score[~y] >= threshold)
        for threshold in score
        if np.mean(score[y] >= threshold) >= tpr
    )
    assert fpr_at_tpr(y, score, tpr=tpr) == pytest.approx(expected)


def test_weight_is_repetition_and_its_scale_does_not_matter():
    y, score, _ = sample()
    count = np.random.default_rng(1).integers(0, 4, len(y))
    expected = fpr_at_tpr(np.repeat(y, count), np.repeat(score, count))
    for scale in (1, 0.1, 1e6):
        assert fpr_at_tpr(y, score, sample_weight=scale * count) == pytest.approx(expected)


def test_a_rate_of_exactly_the_limit_reaches_it():
    # 57 of 60 positives reach the threshold above the negative; 57 times 0.07 is rounded down.
    y = [1] * 60 + [0]
    score = [*range(1, 61), 3.5]
    for scale in (1, 0.1, 0.07, 1 / 3):
        assert fpr_at_tpr(y, score, sample_weight=np.full(61, scale)) == 0


def test_closed_forms():
    assert fpr_at_tpr([0, 0, 1, 1], [0, 1, 2, 3]) == 0
    assert fpr_at_tpr([0, 0, 1, 1], [2, 3, 0, 1]) == 1
    assert fpr_at_tpr([0, 0, 1, 1], [7, 7, 7, 7]) == 1
    assert fpr_at_tpr([0, 0, 1, 1], [-np.inf, np.inf, 1, 2]) == 0.5


def test_labels():
    y, score, _ = sample()
    expected = fpr_at_tpr(y, score)
    names = np.array(["in", "out"])[1 - y]
    assert fpr_at_tpr(names, score, pos_label="in") == expected
    assert fpr_at_tpr(names, score, labels=["out", "in"]) == expected
    assert fpr_at_tpr(2 * y - 1, score) == expected
    assert fpr_at_tpr(y.astype(bool).tolist(), score.tolist()) == expected


@pytest.mark.parametrize(
    ("y", "score", "options", "message"),
    [
        ([1, 1], [0.1, 0.2], {}, "y_true must hold both classes, got only positive ones"),
        ([0, 0], [0.1, 0.2], {}, "y_true must hold both classes, got only negative ones"),
        ([0, 1, 1], [1, 2, 3], {"sample_weight": [0, 1, 1]}, "got only positive ones"),
        ([0, 1], [0.1, np.nan], {}, "y_score must not contain NaN, got NaN in row 1"),
        ([0, 1], [0.1, 0.2, 0.3], {}, "y_true and y_score must have the same number of rows"),
        ([0, 1], [[0.1], [0.2]], {}, r"y_score must have shape \(n,\)"),
        ([0, 1, 2], [1, 2, 3], {}, "y_true must hold two classes"),
        (["a", "b"], [1, 2], {}, "pos_label must name the positive class"),
        ([0, 1], [1, 2], {"sample_weight": [1, -1]}, "sample_weight must be finite"),
        ([0, 1], [1, 2], {"tpr": 0}, "'tpr' parameter"),
        ([0, 1], [1, 2], {"tpr": 95}, "'tpr' parameter"),
    ],
)
def test_bad_input(y, score, options, message):
    with pytest.raises(ValueError, match=message):
        fpr_at_tpr(y, score, **options)


def test_text_scores():
    with pytest.raises(TypeError, match="y_score must hold real numbers"):
        fpr_at_tpr([0, 1], ["low", "high"])
