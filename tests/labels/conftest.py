"""Fewer trees than users get: a forest is half the time of most fits here."""

import pytest


@pytest.fixture(scope="module")
def few_trees():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skcalib.labels._base_models.N_TREES", 40)
        yield
