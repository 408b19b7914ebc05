import numpy as np
import pytest

from skcalib.selection._selectors import choose_top


@pytest.mark.parametrize(
    ("fraction", "n_samples", "count"),
    [
        (0.5, None, 2),
        (0.124, None, 1),
        (0.375, None, 2),
        (1.0, None, 4),
        (0.5, 1, 1),
        (0.5, 4, 4),
    ],
)
def test_as_many_rows_as_asked_for(fraction, n_samples, count):
    scores = np.array([0.1, 0.4, 0.3, 0.2])
    chosen = choose_top(scores, fraction=fraction, n_samples=n_samples)
    assert set(np.flatnonzero(chosen)) == set(np.argsort(-scores)[:count])


def test_ties_at_the_cut_are_broken_by_row_order():
    chosen = choose_top(np.array([1.0, 2.0, 1.0, 1.0]), fraction=0.5, n_samples=None)
    assert chosen.tolist() == [True, True, False, False]


def test_more_rows_than_there_are():
    with pytest.raises(ValueError, match=r"^n_samples must be at most .* rows, 3, got 4\.$"):
        choose_top(np.ones(3), fraction=0.7, n_samples=4)
