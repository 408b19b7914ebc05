"""A temperature is fitted on the host: everything goes there once."""

import numpy as np
import pytest
import torch

from skcalib.posthoc import TemperatureScaling

N, K = 300, 7


@pytest.mark.parametrize("n", [N, 4 * N])
def test_transfers_of_a_temperature(device, trips, n):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(K), size=n)
    y = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, K - 1)
    there = torch.tensor(proba, device=device)
    scaling = TemperatureScaling(input="proba").fit(there, torch.tensor(y, device=device))
    assert sorted(trips) == [n, n * K]
    assert scaling.temperature_ == TemperatureScaling(input="proba").fit(proba, y).temperature_
    del trips[:]
    scaling.predict_proba(there)
    assert trips == [n * K]
