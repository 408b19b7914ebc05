"""The advice of a page, followed in order with its own code on other samples."""

import pytest

from benchmarks.advice import POPULATIONS, measured


@pytest.mark.parametrize(
    "name", ["K = 2, n = 2000, logits times 0.5", "K = 3, n = 1500, logits times 2.0"]
)
def test_promises_hold_once_the_advice_is_followed(name):
    rows = list(measured(name, seed=7, n_new=50_000))
    promises = {row["promise"] for row in rows}
    assert {"calibrating lowers the log-loss", "wrong at most"} <= promises
    assert all(row["kept"] for row in rows), rows


def test_there_are_thirty_populations():
    assert len(POPULATIONS) >= 30
