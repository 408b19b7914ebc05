from collections import Counter
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcalib.difficulty.training_dynamics import (
    consensus_class,
    consensus_consistency,
    consistency_score,
    prediction_entropy,
)


def loop(votes, y, mask):
    """Consensus with and without y, consistency, consensus-consistency and entropy of a row."""
    counts = Counter(v for v, m in zip(votes, mask) if m)
    total = sum(counts.values())
    if not total:
        return None
    most = max(counts.values())
    tied = sorted(c for c, n in counts.items() if n == most)
    return (
        tied[0],
        y if y in tied else tied[0],
        counts[y] / total,
        most / total,
        -sum(n / total * log(n / total) for n in counts.values()),
    )


@pytest.mark.slow
@given(st.integers(1, 7), st.integers(1, 6), st.integers(0, 2**16), st.booleans())
@settings(max_examples=80)
def test_equals_counting_row_by_row(n_models, n_samples, seed, masked):
    rng = np.random.default_rng(seed)
    names = np.array(["ant", "bee", "cat", "dog"])
    codes = rng.integers(0, 3, (n_models, n_samples))
    truth = rng.integers(0, 4, n_samples)  # The label may be one that nobody votes for.
    mask = rng.random((n_models, n_samples)) < 0.6 if masked else np.ones(codes.shape, dtype=bool)
    mask[0] |= ~mask.any(axis=0)
    given_mask = mask if masked else None
    for predictions, y in ((codes, truth), (names[codes], names[truth])):
        rows = [loop(predictions[:, i], y[i], mask[:, i]) for i in range(n_samples)]
        without, with_y, consistency, consensus, entropy = zip(*rows)
        np.testing.assert_array_equal(consensus_class(predictions, mask=given_mask), without)
        np.testing.assert_array_equal(consensus_class(predictions, y, mask=given_mask), with_y)
        np.testing.assert_allclose(consistency_score(predictions, y, mask=given_mask), consistency)
        np.testing.assert_allclose(consensus_consistency(predictions, mask=given_mask), consensus)
        np.testing.assert_allclose(
            prediction_entropy(predictions, mask=given_mask), entropy, atol=1e-12
        )


def test_sample_without_a_vote():
    predictions, mask = [[0, 1], [1, 1]], np.array([[True, False], [True, False]])
    for score in (
        consistency_score(predictions, [0, 1], mask=mask),
        consensus_consistency(predictions, mask=mask),
        prediction_entropy(predictions, mask=mask),
    ):
        np.testing.assert_array_equal(np.isnan(score), [False, True])
    with pytest.raises(
        ValueError, match=r"mask must leave every sample .*, got 1 samples without a vote"
    ):
        consensus_class(predictions, mask=mask)


def test_order_of_models_does_not_matter():
    rng = np.random.default_rng(0)
    predictions = rng.integers(0, 3, (9, 20))
    shuffled = rng.permutation(predictions)
    np.testing.assert_array_equal(consensus_class(predictions), consensus_class(shuffled))
    np.testing.assert_array_equal(prediction_entropy(predictions), prediction_entropy(shuffled))


def test_unanimous_entropy_is_plain_zero():
    for predictions in ([[1, 0], [1, 0]], [[1, 1], [1, 1]]):
        entropy = prediction_entropy(predictions)
        assert (entropy == 0).all()
        assert not np.signbit(entropy).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: consensus_class([0, 1]), "predictions must be 2-dimensional"),
        (lambda: consensus_class([[0, 1]], [0]), r"y must have shape \(2,\), got length 1"),
        (
            lambda: consensus_class([[0]], ["a"]),
            "y must hold labels of the same type as the others",
        ),
        (lambda: consistency_score([[0]], [0.5]), "y must hold class labels"),
        (lambda: prediction_entropy([[0]], mask=[[1]]), "mask must be boolean and of shape"),
        (lambda: prediction_entropy([[0]], mask=[True]), "mask must be boolean and of shape"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
