from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skcalib.difficulty.training_dynamics import (
    area_under_margin,
    confidence_variability,
    consistency_score,
    el2n,
    forgetting_events,
    iteration_learned,
    prediction_depth,
)

histories = st.tuples(st.integers(1, 6), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 2))
)


def loop_iteration_learned(history, final):
    steps = []
    for row in range(history.shape[1]):
        held = [t for t in range(len(history)) if (history[t:, row] == final[row]).all()]
        steps.append(min(held) if held else np.nan)
    return np.array(steps, dtype=float)


def loop_forgetting(history, y):
    events = []
    for row in range(history.shape[1]):
        right = [history[t, row] == y[row] for t in range(len(history))]
        count = sum(a and not b for a, b in pairwise(right))
        events.append(count if any(right) else np.inf)
    return np.array(events, dtype=float)


@pytest.mark.slow
@given(histories, st.integers(0, 2**16))
@settings(max_examples=60)
def test_functions_of_predictions_equal_loops(history, seed):
    y = np.random.default_rng(seed).integers(0, 3, history.shape[1])
    names = np.array(["ant", "bee", "cat"])
    for relabel in (lambda a: a, lambda a: names[a]):
        predictions, truth = relabel(history), relabel(y)
        np.testing.assert_array_equal(
            iteration_learned(predictions), loop_iteration_learned(history, history[-1])
        )
        np.testing.assert_array_equal(
            iteration_learned(predictions, final=truth), loop_iteration_learned(history, y)
        )
        np.testing.assert_array_equal(
            forgetting_events(predictions, truth), loop_forgetting(history, y)
        )
        np.testing.assert_allclose(
            consistency_score(predictions, truth),
            [np.mean([step[i] == y[i] for step in history]) for i in range(len(y))],
        )


def test_learned_from_the_start_is_zero_and_never_learned_is_nan():
    np.testing.assert_array_equal(iteration_learned([[1, 0], [1, 1]], final=[1, 0]), [0.0, np.nan])


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_functions_of_scores_equal_loops():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4, 7, 3))
    proba = _softmax(logits)
    y = rng.integers(0, 3, 7)
    spread, area, error = [], [], []
    for i, c in enumerate(y):
        p = [proba[t, i, c] for t in range(4)]
        spread.append(np.sqrt(sum((v - sum(p) / 4) ** 2 for v in p) / 4))
        margins = [
            logits[t, i, c] - max(logits[t, i, k] for k in range(3) if k != c) for t in range(4)
        ]
        area.append(sum(margins) / 4)
        lengths = [
            np.sqrt(sum((proba[t, i, k] - (k == c)) ** 2 for k in range(3))) for t in range(4)
        ]
        error.append(sum(lengths) / 4)
    np.testing.assert_allclose(confidence_variability(proba, y), spread)
    np.testing.assert_allclose(area_under_margin(logits, y), area)
    np.testing.assert_allclose(el2n(proba, y), error)
    np.testing.assert_allclose(el2n(proba[0], y), el2n(proba[:1], y))
    # What a recorder keeps of the same training: one number a sample and step.
    own = proba[:, np.arange(7), y]
    np.testing.assert_allclose(confidence_variability(own), spread)


def test_margins_of_a_recorder_are_averaged():
    np.testing.assert_allclose(area_under_margin([[1.0, -2.0], [3.0, 0.0]]), [2.0, -1.0])


@pytest.mark.parametrize("function", [confidence_variability, area_under_margin, el2n])
def test_labels_name_the_columns(function):
    proba = _softmax(np.random.default_rng(1).normal(size=(2, 4, 3)))
    codes = np.array([0, 2, 1, 1])
    expected = function(proba, codes)
    names = np.array(["b", "a", "c"])
    np.testing.assert_array_equal(function(proba, names[codes], labels=names), expected)
    sorted_names = np.array(["a", "b", "c"])
    np.testing.assert_array_equal(function(proba, sorted_names[codes]), expected)
    np.testing.assert_array_equal(function(proba, codes + 5, labels=[5, 6, 7]), expected)


def test_extremes():
    one_hot = np.eye(2)
    np.testing.assert_allclose(el2n(one_hot, [1, 1]), [np.sqrt(2), 0.0])
    np.testing.assert_allclose(confidence_variability([[0.0], [1.0]]), [0.5])
    far = np.array([[[1000.0, -1000.0]]], dtype=np.float32)
    assert area_under_margin(far, [0]) == 2000.0


@pytest.mark.parametrize("function", [iteration_learned, consistency_score, forgetting_events])
@pytest.mark.parametrize(
    ("predictions", "error", "message"),
    [
        ([0, 1], ValueError, "predictions must be 2-dimensional"),
        (np.zeros((0, 3)), ValueError, "predictions must be 2-dimensional and not empty"),
        ([[0.0, np.nan]], ValueError, r"predictions\[0\] must hold class labels"),
        ([[0.5, 1.0]], ValueError, r"predictions\[0\] must hold class labels"),
        ([["a", "b"]], ValueError, "of the same type as the others"),
    ],
)
def test_bad_predictions(function, predictions, error, message):
    second = {"final": [0, 1]} if function is iteration_learned else {"y": [0, 1]}
    with pytest.raises(error, match=message):
        function(predictions, **second)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: consistency_score([[0, 1]], [0]), ValueError, r"y must have shape \(2,\)"),
        (lambda: iteration_learned([[0, 1]], final=[0]), ValueError, "final must have shape"),
        (
            lambda: confidence_variability([[1.2]]),
            ValueError,
            r"y_proba\[0\] must hold probabilities in \[0, 1\], got 1.2 in row 0",
        ),
        (
            lambda: confidence_variability([[np.nan]]),
            ValueError,
            r"y_proba\[0\] must not contain NaN",
        ),
        (lambda: confidence_variability([0.5]), ValueError, "2- or 3-dimensional"),
        (lambda: confidence_variability([[[0.5, 0.5]]]), ValueError, "y must be given if, and"),
        (lambda: confidence_variability([[0.5]], [0]), ValueError, "y must be given if, and"),
        (lambda: area_under_margin([["a"]]), TypeError, "logits must hold real numbers"),
        (
            lambda: area_under_margin([[[1.0]]], [0]),
            ValueError,
            r"logits must have at least 2 columns, got shape \(1, 1, 1\)",
        ),
        (lambda: el2n([[0.5, 0.5]], [0, 1]), ValueError, r"y must have shape \(1,\)"),
        (
            lambda: el2n([[0.5, 0.5]], [7]),
            ValueError,
            "labels must name the columns of y_proba where y lacks a class",
        ),
        (
            lambda: el2n([[0.5, 0.5]], [7], labels=[0, 1, 2]),
            ValueError,
            "labels must hold 2 distinct classes, one for every column of y_proba, got",
        ),
        (lambda: el2n([[0.5, 0.5]], [7], labels=[0, 1]), ValueError, "y must hold labels among"),
    ],
)
def test_bad_scores(call, error, message):
    with pytest.raises(error, match=message):
        call()


ROW_SUM = r"The rows of y_proba(\[\d\])? must sum to 1, got a sum of 1.8 in row 0"


@pytest.mark.parametrize(
    "call",
    [
        lambda: el2n([[0.9, 0.9]], [0]),
        lambda: el2n([[[0.5, 0.5]], [[0.9, 0.9]]], [0]),
        lambda: confidence_variability([[[0.5, 0.5]], [[0.9, 0.9]]], [0]),
    ],
)
def test_probabilities_of_all_classes_sum_to_one(call):
    with pytest.raises(ValueError, match=ROW_SUM):
        call()


def test_probabilities_of_the_label_alone_need_not_sum_to_anything():
    np.testing.assert_allclose(confidence_variability([[0.9, 0.9], [0.1, 0.9]]), [0.4, 0.0])


@pytest.mark.parametrize("function", [forgetting_events, consistency_score])
def test_labels_beyond_64_bits_are_an_error(function):
    with pytest.raises(ValueError, match="within the range of 64-bit integers"):
        function([[1e19, 1e20]], [1e20, 1e19])
    with pytest.raises(ValueError, match="within the range of 64-bit integers"):
        iteration_learned([[1e19, 1e20]])
    with pytest.raises(ValueError, match="within the range of 64-bit integers"):
        prediction_depth([[1e19], [1e20]], [1e20, 1e19])


@pytest.mark.parametrize("predictions", [[["a", 1]], [["a", "b"], [1, 2]]])
def test_labels_of_two_types_do_not_become_text(predictions):
    with pytest.raises(TypeError, match="must hold class labels of one type"):
        consistency_score(predictions, ["a", "b"])


@pytest.mark.parametrize("function", [confidence_variability, area_under_margin])
def test_labels_without_classes_are_refused(function):
    with pytest.raises(ValueError, match=r"labels must be None where .* has no classes, got"):
        function([[0.5]], labels=[0, 1])
