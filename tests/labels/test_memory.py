"""A fit to ready probabilities keeps few copies of them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from skcalib.datasets import flip_labels, make_predictions
from skcalib.labels import LabelIssueFinder


# Two of them are the results: `label_proba_` and the table of issues. All of fewer samples enter
# the likelihood, twenty numbers of each.
@pytest.mark.slow
@pytest.mark.parametrize(("n_samples", "most"), [(10_000, 9.5), (30_000, 7.5), (100_000, 6)])
def test_copies_of_the_probabilities(n_samples, most):
    y, proba, _ = make_predictions(n_samples, n_classes=10, scale=6, random_state=0)
    y, proba = flip_labels(y, fraction=0.1, random_state=0)[0], proba.astype(np.float32)
    finder = LabelIssueFinder("precomputed")
    tracemalloc.start()
    try:
        finder.fit(proba, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most * proba.nbytes
