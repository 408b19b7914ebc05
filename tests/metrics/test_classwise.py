import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcalib.metrics import classwise_calibration_error, expected_calibration_error
from skcalib.utils import _numeric


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    n_bins=st.integers(1, 20),
    n_classes=st.integers(2, 40),
    norm=st.sampled_from(["l1", "l2", "max"]),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
)
def test_column_by_column(strategy, weighted, seed, n_bins, n_classes, norm, dtype):
    rng = np.random.default_rng(seed)
    proba = rng.multinomial(1024, rng.dirichlet(np.full(n_classes, 0.3)), size=50) / 1024
    proba = proba.astype(dtype)
    below = proba.cumsum(axis=1, dtype=np.float64) < rng.random((50, 1))
    y = below.sum(axis=1).clip(0, n_classes - 1)
    options = {"n_bins": n_bins, "norm": norm, "strategy": strategy}
    if weighted:
        options["sample_weight"] = rng.uniform(0, 2, size=50)
    expected = [
        expected_calibration_error((y == k).astype(int), proba[:, k], **options)
        for k in range(n_classes)
    ]
    found = classwise_calibration_error(y, proba, average=None, labels=range(n_classes), **options)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    mean = classwise_calibration_error(y, proba, labels=range(n_classes), **options)
    assert isinstance(mean, float)
    assert mean == pytest.approx(np.mean(expected), abs=1e-12)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_several_blocks(monkeypatch, strategy):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(20), size=300)
    y = (proba.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1).clip(0, 19)
    options = {"strategy": strategy, "average": None, "sample_weight": rng.uniform(size=300)}
    whole = classwise_calibration_error(y, proba, **options)
    monkeypatch.setattr(_numeric, "BLOCK_SIZE", 700)
    np.testing.assert_allclose(classwise_calibration_error(y, proba, **options), whole, rtol=1e-12)


def test_positive_class_alone():
    rng = np.random.default_rng(0)
    p, y = rng.random(60), rng.integers(2, size=60)
    expected = expected_calibration_error(y, p)
    assert classwise_calibration_error(y, p) == expected
    assert classwise_calibration_error(y, p, average=None).tolist() == [expected]


def test_perfect_calibration_is_zero():
    proba = np.repeat([[0.5, 0.25, 0.25], [0.0, 0.75, 0.25], [0.25, 0.5, 0.25]], 4, axis=0)
    y = [0, 0, 1, 2, 1, 1, 1, 2, 0, 1, 1, 2]
    for strategy in ("uniform", "quantile"):
        assert classwise_calibration_error(y, proba, strategy=strategy) == pytest.approx(0)


def test_sees_what_the_top_label_does_not():
    # The top label is calibrated; the rest of the mass is on the wrong class.
    proba = np.tile([0.5, 0.5 - 1e-9, 1e-9], (4, 1))
    y = [0, 0, 2, 2]
    assert expected_calibration_error(y, proba) == pytest.approx(0)
    assert classwise_calibration_error(y, proba) == pytest.approx(1 / 3)


@pytest.mark.slow
def test_no_copy_of_the_input():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(100), size=100_000).astype(np.float32)
    y = rng.integers(100, size=len(proba))
    tracemalloc.start()
    classwise_calibration_error(y, proba)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e7 < proba.nbytes / 3


@pytest.mark.parametrize("options", [{"average": "weighted"}, {"norm": 1}, {"strategy": "x"}])
def test_bad_options(options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}' parameter"):
        classwise_calibration_error([0, 1], [[0.5, 0.5]] * 2, **options)
