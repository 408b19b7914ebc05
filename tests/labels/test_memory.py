"""A fit to ready probabilities keeps few copies of them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from skcalib.datasets import flip_labels, make_predictions
from skcalib.labels import LabelIssueFinder


@pytest.mark.slow
def test_copies_of_the_probabilities():
    # Two of them are the results: `label_proba_` and the table of issues.
    y, proba, _ = make_predictions(100_000, n_classes=10, scale=6, random_state=0)
    y, proba = flip_labels(y, fraction=0.1, random_state=0)[0], proba.astype(np.float32)
    finder = LabelIssueFinder("precomputed")
    tracemalloc.start()
    try:
        finder.fit(proba, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 7 * proba.nbytes
