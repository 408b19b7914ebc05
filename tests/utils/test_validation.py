import numpy as np
import pytest

from skcalib.difficulty import difficulty_weights
from skcalib.embeddings._pretrained import check_texts
from skcalib.metrics import expected_calibration_error
from skcalib.utils._arrays import check_same_length, check_weights
from skcalib.utils._proba import check_predictions

PROBA = np.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])


def test_predictions_are_encoded():
    predictions = check_predictions(["no", "yes", "no"], PROBA, sample_weight=[1, 2, 0])
    codes, proba, weight, classes, unit = predictions
    assert codes.tolist() == [0, 1, 0]
    assert proba is PROBA
    assert weight.dtype == np.float64
    assert weight.tolist() == [0.5, 1, 0]
    assert unit == 2
    assert predictions.counts.tolist() == [1, 2, 0]
    assert classes.tolist() == ["no", "yes"]


def test_values_may_be_left_to_the_caller():
    check_predictions([0, 1, 0], 2 * PROBA, defer_values=True)
    with pytest.raises(ValueError, match="y_proba must hold probabilities in"):
        check_predictions([0, 1, 0], 2 * PROBA)


@pytest.mark.parametrize(
    ("y_true", "y_proba", "kind"),
    [
        (PROBA, [0, 1, 0], ValueError),
        (PROBA, ["a", "b", "a"], TypeError),
        (PROBA[:, 1], [0, 1, 0], ValueError),
        (PROBA[:, 1].tolist(), ["a", "b", "a"], TypeError),
    ],
)
def test_swapped_arguments_are_told(y_true, y_proba, kind):
    with pytest.raises(kind, match=r", got .*; y_true and y_proba seem swapped\.$"):
        check_predictions(y_true, y_proba)


@pytest.mark.parametrize(
    ("y_true", "y_proba"),
    [
        (2 * PROBA, PROBA),
        (2 * PROBA, PROBA[:, 1]),
        ([0, np.nan, 1], [0, 1, 1]),
        ([0.5, 2, 1], [0, 1, 1]),
        ([[0], [1], [0]], PROBA[:, 1]),
        ([0, 1, 0], ["a", "b", "a"]),
    ],
)
def test_other_faults_are_not_taken_for_a_swap(y_true, y_proba):
    with pytest.raises((ValueError, TypeError)) as caught:
        check_predictions(y_true, y_proba)
    assert "swapped" not in str(caught.value)


def test_predicted_labels_are_told_from_probabilities():
    with pytest.raises(
        ValueError, match=r"y_proba .* the probability of the positive class, got 3"
    ):
        check_predictions([0, 1, 2], [0, 1, 1])


def test_no_weights():
    assert check_weights(None, 3) is None


def test_weights_are_not_copied():
    weight = np.ones(3)
    assert check_weights(weight, 3) is weight


@pytest.mark.parametrize("weight", [["a"] * 3, [1j] * 3])
def test_weights_are_numbers(weight):
    with pytest.raises(TypeError, match="sample_weight must hold real numbers"):
        check_weights(weight, 3)


def test_lengths_are_told_with_the_names():
    with pytest.raises(ValueError, match="a and b must have the same number of rows, got 1 and 2"):
        check_same_length(a=np.zeros(1), b=np.zeros(2), c=None)


@pytest.mark.parametrize(
    ("texts", "error"), [("a cat", TypeError), ([1], TypeError), ([], ValueError)]
)
def test_texts(texts, error):
    with pytest.raises(error, match="prompts must"):
        check_texts(texts, "prompts")
    assert check_texts(("a", "b"), "prompts") == ["a", "b"]


def test_arguments_that_do_not_fit_are_refused_by_the_name_of_the_function():
    with pytest.raises(TypeError, match=r"^difficulty_weights\(\) got .* 'direction'$") as refused:
        difficulty_weights([1.0, 2.0], direction="down", temperature=0.3)
    assert refused.value.__context__ is None
    with pytest.raises(TypeError, match=r"^expected_calibration_error\(\) missing .* 'y_proba'$"):
        expected_calibration_error([0, 1], n_bins=3)
    with pytest.raises(TypeError, match="sample_weight must hold real numbers"):  # from within
        expected_calibration_error([0, 1], [0.2, 0.7], n_bins=3, sample_weight=[1j, 1j])
