import numpy as np
import pytest

from skcalib.metrics._binned_draws import OneSeed


@pytest.mark.parametrize("n_draws", [1, 5])
def test_there_are_as_many_draws_as_asked_for_in_any_blocks(n_draws):
    n = 2**19  # of which four fit in a block
    sizes = [len(count) for count in OneSeed(0, n_draws).labels(np.full(n, 0.3, np.float32))]
    assert sum(sizes) == n_draws
    assert max(sizes) <= 4
