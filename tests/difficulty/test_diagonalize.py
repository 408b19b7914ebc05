"""Pseudo-inverses and their joint diagonal form against numpy's."""

import numpy as np
import pytest

from skcalib.difficulty import RMDScorer, _gaussians
from skcalib.difficulty._gaussians import (
    RankTolerance,
    compute_default_tol,
    compute_inverse_factor,
    make_joint_form,
    make_plain_form,
)

TOLERANCE = RankTolerance(np.zeros(6), compute_default_tol(6, np.finfo(np.float64).eps))


def _semidefinite(n_features, rank, seed):
    root = np.random.default_rng(seed).normal(size=(n_features, rank))
    return root @ root.T


def _factor(matrix):
    return compute_inverse_factor(matrix, TOLERANCE)


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_factor_of_the_pseudo_inverse(rank):
    matrix = _semidefinite(6, rank, seed=0)
    factor = _factor(matrix)
    assert factor.shape == (6, rank)
    np.testing.assert_allclose(factor @ factor.T, np.linalg.pinv(matrix, rcond=1e-10), atol=1e-8)


@pytest.mark.parametrize("rank", [3, 6])
def test_units_of_the_features_do_not_decide_the_rank(rank):
    units = np.array([1e-7, 1.0, 1e5, 1e-3, 1.0, 1e2])
    matrix = _semidefinite(6, rank, seed=1) * units * units[:, None]
    factor = _factor(matrix)
    assert factor.shape == (6, rank)
    # A generalized inverse, up to the condition of the units: S S^+ S = S.
    product = matrix @ factor @ factor.T @ matrix
    np.testing.assert_allclose(product / units / units[:, None], matrix / units / units[:, None])


def test_zero_rows_are_left_out():
    matrix = np.zeros((6, 6))
    matrix[1:4, 1:4] = _semidefinite(3, 3, seed=2)
    factor = _factor(matrix)
    assert factor.shape == (6, 3)
    np.testing.assert_allclose(factor @ factor.T, np.linalg.pinv(matrix), atol=1e-9)
    assert _factor(np.zeros((6, 6))).shape == (6, 0)


def test_variance_rounded_below_zero():
    matrix = np.diag([1.0, 2.0, -1e-40])
    tolerance = RankTolerance(np.full(3, 1e-30), TOLERANCE.tol)
    form = make_plain_form(matrix, tolerance)
    np.testing.assert_allclose(form.projection @ form.projection.T, np.diag([1.0, 0.5, 0.0]))
    form = make_joint_form(matrix, np.diag([1.0, 0.0, 0.0]), tolerance)
    np.testing.assert_allclose(np.sort(form.background_weights), [0.5, 1.0])


@pytest.mark.parametrize(
    ("rank", "excess_rank"), [(6, 6), (6, 2), (6, 1), (3, 6), (3, 2), (1, 1), (2, 3)]
)
def test_joint_form(rank, excess_rank):
    covariance = _semidefinite(6, rank, seed=4)
    excess = _semidefinite(6, excess_rank, seed=5)
    form = make_joint_form(covariance, excess, TOLERANCE)
    own = form.projection * form.class_weights @ form.projection.T
    background = form.projection * form.background_weights @ form.projection.T
    np.testing.assert_allclose(own, np.linalg.pinv(covariance, rcond=1e-9), atol=1e-6, rtol=1e-6)
    np.testing.assert_allclose(
        background, np.linalg.pinv(covariance + excess, rcond=1e-9), atol=1e-6, rtol=1e-6
    )


def test_excess_within_the_support():
    root = np.random.default_rng(6).normal(size=(6, 3))
    covariance, excess = root @ root.T, 4.0 * np.outer(root[:, 0], root[:, 0])
    form = make_joint_form(covariance, excess, TOLERANCE)
    assert form.class_weights.sum() == form.projection.shape[1] == 3
    np.testing.assert_allclose(np.sort(form.background_weights), [1 / 5, 1, 1], rtol=1e-9)


def test_common_coordinates_are_left_out():
    covariance = _semidefinite(6, 6, seed=7)
    root = np.random.default_rng(8).normal(size=(3, 6))
    root -= root.mean(axis=0)
    full = make_joint_form(covariance, root.T @ root, TOLERANCE)
    short = make_joint_form(covariance, root, TOLERANCE, rooted=True)
    assert full.projection.shape == (6, 6)
    assert short.projection.shape == (6, 2)

    def difference(form):
        return form.projection * (form.class_weights - form.background_weights) @ form.projection.T

    np.testing.assert_allclose(difference(short), difference(full), atol=1e-9)


@pytest.mark.parametrize(("rank", "n_classes"), [(6, 9), (6, 7), (6, 4), (3, 3), (3, 9)])
def test_root_of_the_excess(rank, n_classes):
    covariance = _semidefinite(6, rank, seed=10)
    root = np.random.default_rng(11).normal(size=(n_classes, 6))
    root -= root.mean(axis=0)
    full = make_joint_form(covariance, root.T @ root, TOLERANCE)
    form = make_joint_form(covariance, root, TOLERANCE, rooted=True)
    for quadratic in [full, form]:
        weights = quadratic.class_weights - quadratic.background_weights
        inverse = quadratic.projection * weights @ quadratic.projection.T
        expected = np.linalg.pinv(covariance, rcond=1e-9)
        expected -= np.linalg.pinv(covariance + root.T @ root, rcond=1e-9)
        np.testing.assert_allclose(inverse, expected, atol=1e-6, rtol=1e-6)


def test_plain_form_has_no_background():
    form = make_plain_form(_semidefinite(6, 4, seed=9), TOLERANCE)
    assert form.class_weights.sum() == 4
    assert not form.background_weights.any()


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_rounding_of_the_input_is_no_variance_in_any_unit(unit):
    rng = np.random.default_rng(12)
    samples = rng.normal(size=(500, 4))
    samples[:, 3] = samples[:, 0] + 1e-4 * samples[:, 3]  # a copy, but for an error
    covariance = np.cov(unit * samples, rowvar=False)
    scale = np.sqrt(np.diag(covariance))
    smallest = np.linalg.eigvalsh(covariance / scale / scale[:, None])[0]
    for fraction, rank in [(0.5, 4), (2.0, 3)]:
        tolerance = RankTolerance(fraction * smallest * scale**2, 1e-12)
        assert compute_inverse_factor(covariance, tolerance).shape[1] == rank


@pytest.mark.parametrize("relative", [True, False])
def test_digits_of_the_input_far_from_the_origin_in_small_units(relative):
    # The copy of a feature differs from it by its last digit: no direction of the data.
    rng = np.random.default_rng(13)
    y = np.arange(2000) % 3
    X = rng.normal(size=(2000, 4)) + y[:, None]
    plain = RMDScorer(relative=relative).fit(X, y)
    shifted = np.column_stack([X, X[:, 0]]) * 1e-3 + np.array([0, 0, 0, 0, 1.0])
    wide = shifted.astype(np.float32)
    scorer = RMDScorer(relative=relative).fit(wide, y)
    assert scorer._distances.form.rank == 4
    np.testing.assert_allclose(
        scorer.difficulty(wide, y), plain.difficulty(X, y), rtol=1e-3, atol=1e-2
    )


@pytest.mark.parametrize("n_features", [20, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_default_tolerance_is_a_few_times_the_rounding_of_the_sums(n_features, dtype):
    rng = np.random.default_rng(14)
    half = rng.normal(size=(4 * n_features, n_features // 2))
    mix = rng.normal(size=(n_features // 2, n_features // 2))
    samples = np.hstack([half, half @ mix]).astype(dtype)  # half of the directions are null
    covariance = (samples.T @ samples).astype(np.float64)
    scale = np.sqrt(np.diag(covariance))
    values = np.linalg.eigvalsh(covariance / scale / scale[:, None])
    rounding = np.abs(values[: n_features // 2]).max()
    tol = compute_default_tol(n_features, float(np.finfo(dtype).eps))
    assert rounding < tol < 300 * rounding


@pytest.mark.parametrize("condition", [1e1, 1e6, 1e12])
def test_both_ways_to_an_inverse_factor_agree(monkeypatch, condition):
    rng = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    covariance = rotation * np.geomspace(1, 1 / condition, 12) @ rotation.T
    tolerance = RankTolerance(noise=np.zeros(12), tol=1e-15)
    quick = compute_inverse_factor(covariance, tolerance)
    monkeypatch.setattr(_gaussians, "_invert_triangle", lambda *_: None)
    slow = compute_inverse_factor(covariance, tolerance)
    np.testing.assert_allclose(
        quick @ quick.T @ covariance, np.eye(12), atol=1e-15 * condition * 100
    )
    np.testing.assert_allclose(quick @ quick.T, slow @ slow.T, rtol=1e-15 * condition * 100)


@pytest.mark.parametrize("smallest", [0.5, 2.0])
def test_directions_below_the_tolerance_are_none(smallest):
    """Correlation r of two features has the eigenvalues 1 + r and 1 - r."""
    tol = 1e-3
    r = 1 - smallest * tol
    factor = compute_inverse_factor(np.array([[1, r], [r, 1]]), RankTolerance(np.zeros(2), tol))
    assert factor.shape[1] == (1 if smallest < 1 else 2)
