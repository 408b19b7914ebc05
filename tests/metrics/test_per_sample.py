"""Per-sample scores against loops, closed forms and mpmath."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import logsumexp

from skcalib.metrics import (
    confidence_score,
    energy_score,
    max_logit_score,
    predictive_entropy,
    probability_margin,
)

SCORES = [predictive_entropy, confidence_score, probability_margin]


def proba(n=200, k=5, seed=0, concentration=0.5):
    return np.random.default_rng(seed).dirichlet(np.full(k, concentration), n)


# Both sides of the column count and of the block size at which the kernels change.
@pytest.mark.parametrize(
    ("n", "k"), [(1, 2), (300, 3), (150, 32), (150, 33), (40, 9000), (50_000, 4)]
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_agree_with_a_loop(n, k, dtype):
    p = proba(n, k, concentration=1.0).astype(dtype)
    wide = p.astype(np.float64)
    ordered = np.sort(wide, axis=1)
    rtol = 1e-12 if dtype == np.float64 else 1e-5
    terms = np.where(wide > 0, wide * np.log(np.where(wide > 0, wide, 1)), 0)
    np.testing.assert_allclose(predictive_entropy(p), -terms.sum(axis=1), rtol=rtol)
    np.testing.assert_allclose(confidence_score(p), ordered[:, -1], rtol=rtol)
    np.testing.assert_allclose(
        probability_margin(p), ordered[:, -1] - ordered[:, -2], rtol=rtol, atol=1e-7
    )


@pytest.mark.parametrize("score", SCORES)
def test_output_has_the_precision_of_the_input(score):
    assert score(proba()).dtype == np.float64
    assert score(proba().astype(np.float32)).dtype == np.float32
    assert score(proba().astype(np.float16)).dtype == np.float32


@pytest.mark.parametrize("score", SCORES)
def test_positive_class_alone_is_the_two_column_form(score):
    positive = proba(k=2)[:, 1]
    np.testing.assert_allclose(score(positive), score(np.column_stack([1 - positive, positive])))


@pytest.mark.parametrize("score", SCORES)
def test_columns_may_be_permuted_and_rows_are_independent(score):
    p = proba(k=7)
    order = np.random.default_rng(1).permutation(7)
    np.testing.assert_allclose(score(p[:, order]), score(p), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(score(p)[[17]], score(p[[17]]), rtol=1e-14)


@pytest.mark.parametrize("score", SCORES)
def test_the_memory_layout_does_not_matter(score):
    p = proba(k=6)
    np.testing.assert_array_equal(score(np.asfortranarray(p)), score(p))
    np.testing.assert_array_equal(score(np.repeat(p, 2, axis=0)[::2]), score(p))


@pytest.mark.parametrize("k", [2, 10, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_closed_forms(k, dtype):
    certain, uniform = np.eye(k, dtype=dtype)[:3], np.full((3, k), 1 / k, dtype=dtype)
    np.testing.assert_array_equal(predictive_entropy(certain), 0)
    np.testing.assert_allclose(predictive_entropy(uniform), np.log(k), rtol=1e-6)
    np.testing.assert_array_equal(confidence_score(certain), 1)
    np.testing.assert_array_equal(probability_margin(certain), 1)
    np.testing.assert_array_equal(probability_margin(uniform), 0)


def test_entropy_of_tiny_probabilities_against_mpmath():
    tiny = [1e-300, 1e-100, 1e-17, 1e-5]
    p = np.array([[1 - t, t] for t in tiny])
    with mpmath.workdps(50):
        expected = [
            float(-sum(mpmath.mpf(float(v)) * mpmath.log(mpmath.mpf(float(v))) for v in row))
            for row in p
        ]
    np.testing.assert_allclose(predictive_entropy(p), expected, rtol=1e-13)


def test_entropy_of_what_rounding_leaves_outside_the_simplex_is_not_negative():
    p = np.array([[1.000005, 0.0], [1.0, -1e-9], [0.5, 0.5]])
    entropy = predictive_entropy(p)
    np.testing.assert_allclose(entropy, [0, 0, np.log(2)], atol=1e-6)
    assert (entropy >= 0).all()


@pytest.mark.slow
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 20), st.integers(2, 8)),
        elements=st.floats(0, 1, allow_subnormal=False),
    )
)
def test_ranges(raw):
    p = (raw + 1e-12) / (raw + 1e-12).sum(axis=1, keepdims=True)
    k = p.shape[1]
    assert ((predictive_entropy(p) >= 0) & (predictive_entropy(p) <= np.log(k) + 1e-12)).all()
    assert ((confidence_score(p) >= 1 / k - 1e-12) & (confidence_score(p) <= 1)).all()
    assert ((probability_margin(p) >= 0) & (probability_margin(p) <= 1)).all()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[0.5, np.nan]], "NaN"),
        ([[1.5, -0.5]], r"\[0, 1\]"),
        ([[0.5, 0.6]], "sum to 1"),
        ([[1.0]], "at least two"),
        (np.empty((0, 3)), "at least one row"),
        (np.zeros((2, 2, 2)), "shape"),
        ([1.2], r"\[0, 1\]"),
    ],
)
def test_bad_input_is_named(score, bad, message):
    with pytest.raises(ValueError, match=message) as error:
        score(bad)
    assert "y_proba" in str(error.value)


@pytest.mark.parametrize("score", SCORES)
def test_text_is_a_type_error(score):
    with pytest.raises(TypeError, match="y_proba must hold real numbers"):
        score([["a", "b"]])


@pytest.mark.parametrize("score", SCORES)
def test_frames_and_tensors(score):
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    p = proba()
    np.testing.assert_array_equal(score(pandas.DataFrame(p)), score(p))
    np.testing.assert_array_equal(score(torch.from_numpy(p)), score(p))


@pytest.mark.parametrize("k", [3, 10, 47, 48, 49, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("score", SCORES)
def test_equal_rows_have_equal_scores_wherever_they_stand(score, dtype, k):
    p = np.repeat(proba(7, k).astype(dtype), 31, axis=0)
    values = score(p).reshape(7, 31)
    np.testing.assert_array_equal(values, values[:, :1].repeat(31, axis=1))


@pytest.mark.parametrize("k", [2, 10, 60, 1000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_logit_scores_against_scipy(k, dtype):
    logits = (5 * np.random.default_rng(0).normal(size=(300, k))).astype(dtype)
    wide = logits.astype(np.float64)
    tolerance = 1e-13 if dtype == np.float64 else 2e-6
    assert max_logit_score(logits).dtype == (np.float64 if dtype == np.float64 else np.float32)
    np.testing.assert_array_equal(max_logit_score(logits), wide.max(axis=1))
    for temperature in (0.3, 1.0, 7.0):
        expected = temperature * logsumexp(wide / temperature, axis=1)
        score = energy_score(logits, temperature=temperature)
        assert score.dtype == max_logit_score(logits).dtype
        np.testing.assert_allclose(score, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_logits_against_mpmath(dtype):
    logits = np.array([[1000, -1000, 999], [-1000, -1001, -1000], [0, 0, 0]], dtype=dtype)
    with mpmath.workdps(40):
        expected = [float(mpmath.log(sum(mpmath.exp(float(z)) for z in row))) for row in logits]
    np.testing.assert_allclose(energy_score(logits), expected, rtol=2e-7)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("temperature", [1e-50, 1e-310])
def test_energy_at_a_temperature_that_the_dtype_cannot_hold(dtype, temperature):
    logits = np.array([[1, 2, -3], [4, 4, 60000]], dtype=dtype)
    assert energy_score(logits, temperature=temperature).tolist() == [2, 60000]


def test_low_temperature_is_the_largest_logit():
    logits = np.random.default_rng(0).normal(size=(50, 8))
    np.testing.assert_allclose(
        energy_score(logits, temperature=1e-4), max_logit_score(logits), atol=1e-3
    )


def test_a_shift_of_the_row_is_a_shift_of_the_score():
    logits = np.random.default_rng(0).normal(size=(50, 8))
    for score in (max_logit_score, energy_score):
        np.testing.assert_allclose(score(logits + 3), score(logits) + 3)


@pytest.mark.parametrize("score", [max_logit_score, energy_score])
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ([[1.0, np.nan]], ValueError, "logits must be finite, got nan"),
        ([[1.0, np.inf]], ValueError, "logits must be finite, got inf"),
        ([1.0, 2.0], ValueError, r"logits must have shape \(n_samples, n_classes\)"),
        ([[1.0]], ValueError, "at least two"),
        (np.empty((0, 3)), ValueError, "at least one row"),
        ([["a", "b"]], TypeError, "logits must hold real numbers"),
    ],
)
def test_bad_logits(score, bad, error, message):
    with pytest.raises(error, match=message):
        score(bad)


@pytest.mark.parametrize("temperature", [0, -1, "1"])
def test_bad_temperature(temperature):
    with pytest.raises(ValueError, match="'temperature' parameter"):
        energy_score([[1.0, 2.0]], temperature=temperature)
