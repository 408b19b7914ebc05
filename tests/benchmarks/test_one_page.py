"""What a page must not get wrong, as the guide says and as it was simulated."""

import json

import numpy as np
import pytest

from benchmarks.one_page import SIMULATIONS, column_off, guide_table, sharpened, true_error, weaker


@pytest.fixture(scope="module")
def lines(repository):
    path = repository / "benchmarks" / "one_page_results.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_guide_shows_every_simulation(lines, repository):
    assert {line["simulation"] for line in lines} == set(SIMULATIONS)
    page = repository / "docs" / "understand" / "report.rst"
    assert guide_table(lines) in page.read_text(encoding="utf-8")


def test_what_was_asked_of_the_page_holds(lines):
    def kept(part):
        found = [line["kept"] for line in lines if part in line["simulation"]]
        assert found
        return np.mean(found)

    assert kept("no all-clear") == 1
    assert kept("not flagged") >= 0.95
    assert kept("not separated") >= 0.95
    assert kept("n = 1500: found") >= 0.5
    assert kept("interval holds") >= 0.9
    assert kept("found alone") >= 0.9


def test_a_fast_simulation_is_what_is_stored(lines):
    name = next(name for name in SIMULATIONS if name.startswith("nearly sure"))
    measure, arguments = SIMULATIONS[name]
    kept, width = measure(np.random.default_rng((0, list(SIMULATIONS).index(name), 0)), *arguments)
    first = next(line for line in lines if line["simulation"] == name)
    assert (kept, round(width, 4)) == (first["kept"], first["value"])


def test_populations_are_what_they_are_called():
    rng = np.random.default_rng(0)
    stated, true = column_off(rng, 20_000)
    gap = stated - true
    assert np.abs(np.abs(gap[:, 1]) - 0.09).max() < 1e-12
    assert np.abs(gap.mean(axis=0)).max() < 0.003
    assert stated.min() > 0
    assert (stated.argmax(axis=1) == 0).mean() > 0.9
    assert true_error(sharpened(3, 1.0)) == pytest.approx(0, abs=1e-12)
    # Calibrated, though it knows less: within each of its values the true mean is what it says.
    z = rng.normal(0, 2, 5000)
    said = 1 / (1 + np.exp(-weaker(z)))
    for value in np.unique(said):
        here = said == value
        assert (1 / (1 + np.exp(-z[here]))).mean() == pytest.approx(value)
