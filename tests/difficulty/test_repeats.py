from itertools import islice

import numpy as np
import pytest

from skcalib.difficulty._profiler import plan_repeats


@pytest.mark.parametrize(("n_samples", "n_test"), [(10, 1), (10, 3), (7, 4), (20, 20 - 1), (6, 3)])
def test_every_sample_is_held_out_equally_often(n_samples, n_test):
    plans = list(islice(plan_repeats(n_samples, n_test, np.random.RandomState(0)), 30))
    for number in range(1, 31):
        counts = np.sum([plan.held_out for plan in plans[:number]], axis=0)
        assert counts.max() - counts.min() <= 1
    assert all(plan.held_out.sum() == n_test for plan in plans)
    assert len({plan.seed for plan in plans}) == 30


def test_more_repeats_go_on_where_fewer_stopped():
    few = list(islice(plan_repeats(9, 2, np.random.RandomState(1)), 3))
    many = list(islice(plan_repeats(9, 2, np.random.RandomState(1)), 8))
    for one, other in zip(few, many):
        np.testing.assert_array_equal(one.held_out, other.held_out)
        assert one.seed == other.seed


@pytest.mark.slow
def test_any_pair_of_samples_is_held_out_together_as_often_as_any_other():
    rng = np.random.RandomState(2)
    pairs = np.zeros((5, 5))
    for _ in range(3000):
        # Number 2 goes over the end of the first round.
        held_out = list(islice(plan_repeats(5, 2, rng), 3))[2].held_out.astype(float)
        pairs += np.outer(held_out, held_out)
    off_diagonal = pairs[~np.eye(5, dtype=bool)] / 3000
    np.testing.assert_allclose(off_diagonal, 0.1, atol=0.03)
