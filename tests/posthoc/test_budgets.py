"""Searches end: over many seeds, none comes near the most steps that it may take.

The searches are private, as no public name counts their steps.
"""

import numpy as np
import pytest

from skcalib.metrics._temperature_fit import TemperatureProblem
from skcalib.posthoc import (
    BetaCalibration,
    EnsembleTemperatureScaling,
    TemperatureScaling,
    _one_vs_rest,
)
from skcalib.posthoc._temperature import _Mixture

pytestmark = pytest.mark.filterwarnings("ignore:The temperature is at its lower bound")


def counted(owner, name, fit, seeds=40):
    """Return how often a function is called in the fits, one for every seed."""
    counts, function = [], getattr(owner, name)

    def count(*args):
        counts[-1] += 1
        return function(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, count)
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            logits = (0.5 + seed % 4) * rng.normal(size=(300, 3))
            y = (logits / rng.uniform(0.5, 3) + rng.gumbel(size=logits.shape)).argmax(axis=1)
            if seed % 5 == 4:  # all right
                y = logits.argmax(axis=1)
            counts.append(0)
            fit(logits, y)
    return counts


@pytest.mark.slow
def test_temperatures_end():
    counts = counted(
        TemperatureProblem,
        "slope_and_curvature",
        lambda logits, y: TemperatureScaling(bounds=(0.01, 100)).fit(logits, y),
    )
    assert max(counts) <= 20


@pytest.mark.slow
def test_mixtures_end():
    counts = counted(
        _Mixture, "slope_and_curvature", lambda *data: EnsembleTemperatureScaling().fit(*data)
    )
    assert np.median(counts) <= 4
    assert max(counts) <= 30


@pytest.mark.slow
@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
def test_beta_maps_end(parameters):
    counts = counted(
        _one_vs_rest,
        "_find_steps_within_bounds",
        lambda *data: BetaCalibration(parameters=parameters).fit(*data),
    )
    # Of three classes at once, with 100 steps at most; where all are right slopes have no end.
    assert np.median(counts) <= 10
    assert max(counts) <= 60
