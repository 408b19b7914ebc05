"""The long examples: what their texts and pictures say is what comes out."""

import runpy

import matplotlib.pyplot as plt
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def run_story(repository, tmp_path, monkeypatch):
    """Return a function that runs an example in an empty folder and returns its names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    yield lambda path: runpy.run_path(str(repository / "examples" / path))
    plt.close("all")


def test_an_ai_judge(run_story):
    names = run_story("whole/plot_ai_judge.py")
    # "far too sure": the whole interval of the error is far from zero.
    assert names["confidence"].mean() > names["right"].mean() + 0.15
    low, high = names["calibration_error"]
    assert 0.15 < low < high < 0.25
    # "At most 10 % of the answers that customers see may be wrong."
    assert names["error_rate"] <= 0.1 < names["error_rate_of_all"] / 3
    assert 0.35 < names["shown"].mean() < 0.5
    # "The judge alone is off by more than ten points; the interval is narrower."
    truth, judge = names["good"].mean(), names["verdict"].mean()
    assert judge - truth > 0.1
    widths = []
    for low, high in names["intervals"].values():
        assert low < truth < high
        widths.append(high - low)
    assert widths[1] < 0.85 * widths[0]
