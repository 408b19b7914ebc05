from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skcalib.utils._numeric import (
    bin_index,
    bin_sums,
    compute_quantile_edges,
    compute_quantile_sums,
    compute_quantiles,
    compute_uniform_edges,
    round_down,
)


def naive_index(value, edges):
    """The bin of a number among edges of equal width, both rounded to float32."""
    for b in range(1, len(edges) - 1):
        if Fraction(float(np.float32(value))) <= Fraction(float(np.float32(edges[b]))):
            return b - 1
    return len(edges) - 2


@pytest.mark.parametrize("n_bins", [1, 2, 7, 15, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_on_and_beside_the_edges(n_bins, dtype):
    edges = compute_uniform_edges(n_bins)
    on = edges.astype(dtype)
    values = np.concatenate(
        [on, np.nextafter(on, dtype(2)), np.nextafter(on, dtype(-1)), dtype([-1e-5, 1.00001])]
    )
    expected = [naive_index(value, edges) for value in values]
    assert bin_index(values, edges).tolist() == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_find_the_bins_that_a_search_finds(dtype):
    for n_bins in [*range(1, 500), 2**15 + 1, 999_983]:
        edges = compute_uniform_edges(n_bins)
        on = edges[:: max(1, n_bins // 500)].astype(dtype)
        values = np.concatenate([on, np.nextafter(on, dtype(2)), np.nextafter(on, dtype(-1))])
        inner = edges[1:-1].astype(np.float32)
        expected = np.searchsorted(inner, values.astype(np.float32))
        np.testing.assert_array_equal(bin_index(values, edges), expected)


@pytest.mark.parametrize("n_bins", [200_001, 2**20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tolerated_values_beyond_the_ends_of_many_bins(n_bins, dtype):
    values = np.array([-1e-5, 1.00001], dtype=dtype)
    assert bin_index(values, compute_uniform_edges(n_bins)).tolist() == [0, n_bins - 1]


def test_the_ends_belong_to_the_first_and_the_last_bin():
    assert bin_index(np.array([0.0, 1.0]), compute_uniform_edges(15)).tolist() == [0, 14]
    assert bin_index(np.array([0.5]), compute_uniform_edges(2)).tolist() == [0]


@pytest.mark.parametrize("n_bins", [10, 15, 20])
@pytest.mark.parametrize("many", [1, 500])
def test_votes_and_decimals_on_the_edges_have_one_bin_in_any_precision(n_bins, many):
    for n in (10, 15, 20, 30, 100):
        exact = [Fraction(k, n) for k in range(n + 1)]
        # The bin (j / n_bins, (j + 1) / n_bins] of the fraction itself, with 0 in the first.
        expected = [max(0, -(-k * n_bins // 1) - 1) for k in exact]
        votes = np.array([float(k) for k in exact] * many)
        sums = np.array([sum([1 / n] * k) for k in range(n + 1)] * many)  # rounded otherwise
        rest = 1 - votes[::-1].reshape(many, -1).ravel()
        for values in (votes, sums, rest, votes.astype(np.float32), sums.astype(np.float32)):
            assert bin_index(values, compute_uniform_edges(n_bins)).tolist() == expected * many


@pytest.mark.slow
@given(st.floats(0, 1), st.integers(1, 200))
def test_rounding_of_the_edges_changes_no_comparison(value, n_bins):
    edges = compute_uniform_edges(n_bins)
    narrow = np.float32(value)
    np.testing.assert_array_equal(
        narrow > round_down(edges, narrow.dtype), np.float64(narrow) > edges
    )


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), min_size=1, max_size=30),
    st.integers(1, 8),
)
def test_quantile_edges(rows, n_bins):
    values = np.array([value for value, _ in rows]) / 12
    count = np.array([count for _, count in rows])
    if not count.any():
        count[0] = 1
    repeated = np.sort(np.repeat(values, count))
    # The smallest observed value that leaves at least j / n_bins of the rows at or below.
    wanted = []
    for j in range(1, n_bins):
        need = Fraction(j * len(repeated), n_bins)
        wanted.append(next(v for i, v in enumerate(repeated) if i + 1 >= need))
    wanted = [0.0, *sorted(set(wanted) - {1.0}), 1.0]
    assert compute_quantile_edges(repeated, n_bins).tolist() == wanted
    assert compute_quantile_edges(values, n_bins, count.astype(float)).tolist() == wanted
    assert compute_quantile_edges(values, n_bins, 0.1 * count).tolist() == wanted


def test_quantile_bins_hold_equal_weight_where_values_differ():
    values = np.random.default_rng(0).permutation(np.linspace(0.01, 0.99, 60))
    index = bin_index(values, compute_quantile_edges(values, 15))
    assert np.bincount(index).tolist() == [4] * 15


def test_ties_share_a_bin():
    values = np.full(50, 0.9)
    assert compute_quantile_edges(values, 15).tolist() == [0.0, 0.9, 1.0]
    assert set(bin_index(values, compute_quantile_edges(values, 15))) == {0}


def test_mass_at_zero_has_a_bin_of_its_own():
    values = np.array([0.0] * 6 + [0.1, 0.2, 0.3, 0.4])
    edges = compute_quantile_edges(values, 2)
    assert edges.tolist() == [0.0, 0.0, 1.0]
    assert bin_index(values, edges).tolist() == [0] * 6 + [1] * 4


@pytest.mark.parametrize("levels", [[0, 0.25, 0.5, 1], [0.005, 0.995]])
def test_quantiles_leave_at_least_their_level_at_or_below(levels):
    values = np.random.default_rng(0).permutation(80) - 40
    repeated = np.random.default_rng(1).integers(1, 4, 80)
    for count in (np.ones(80, dtype=int), repeated):
        rows = np.sort(values.repeat(count))
        ranks = [max(1, int(np.ceil(level * len(rows) - 1e-9))) for level in levels]
        expected = rows[np.array(ranks) - 1].tolist()
        assert compute_quantiles(values, np.array(levels), count / 7).tolist() == expected
    expected = np.quantile(values, levels, method="inverted_cdf").tolist()
    assert compute_quantiles(values, np.array(levels), None).tolist() == expected


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums(weighted, shares):
    rng = np.random.default_rng(0)
    values, outcomes = rng.random(200).astype(np.float32), rng.random(200) < 0.5
    outcomes = rng.random(200) if shares else outcomes
    weight = rng.uniform(0, 3, 200) if weighted else None
    edges = compute_uniform_edges(7)
    sums = bin_sums(values, outcomes, weight, edges)
    for b in range(7):
        inside = [i for i in range(200) if naive_index(values[i], edges) == b]
        mass = np.ones(200) if weight is None else weight
        expected = [
            sum(mass[i] for i in inside),
            sum(mass[i] * float(values[i]) for i in inside),
            sum(mass[i] * outcomes[i] for i in inside),
        ]
        np.testing.assert_allclose(sums[:, b], expected, rtol=1e-13)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.booleans(), st.integers(0, 3)), min_size=1, max_size=30
    ),
    st.integers(1, 8),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([1.0, 1e-5]),
)
def test_sums_of_ordered_values_are_those_of_values_looked_up(rows, n_bins, dtype, beyond):
    # Up to what validation lets pass beyond 1.
    values = (np.array([value for value, _, _ in rows]) / 12).astype(dtype) * dtype(1 + beyond)
    outcomes = np.array([outcome for _, outcome, _ in rows])
    count = np.array([count for _, _, count in rows], dtype=float)
    for weight in (None, count + (not count.any()), 0.1 + count):
        edges, sums = compute_quantile_sums(values, outcomes, weight, n_bins)
        np.testing.assert_array_equal(edges, compute_quantile_edges(values, n_bins, weight))
        mass = np.ones(len(values)) if weight is None else weight
        expected = np.zeros((3, len(edges) - 1))
        for value, outcome, m in zip(values, outcomes, mass):
            b = sum(float(value) > edge for edge in edges[1:-1])
            expected[:, b] += m, m * float(value), m * outcome
        np.testing.assert_allclose(sums, expected, rtol=1e-12)


def test_sums_of_many_float32_rows_do_not_drift():
    values = np.full(3_000_000, 0.9, dtype=np.float32)
    sums = bin_sums(values, np.ones(len(values), dtype=bool), None, compute_uniform_edges(2))
    assert sums[1, 1] == pytest.approx(3e6 * float(np.float32(0.9)), rel=1e-9)
