"""Tables of the guide that are made of JSON files say what these say."""

import json

import numpy as np
import pytest
from scipy.stats import sem, t

from benchmarks import main_example, posthoc_samples


@pytest.mark.parametrize("module", [main_example, posthoc_samples])
def test_the_guide_shows_the_results(module):
    # "python -m benchmarks.<name>" writes them anew.
    assert module.PAGE.read_text() == module.page(json.loads(module.RESULTS.read_text()))


def test_cells_are_means_with_intervals_and_standard_errors():
    values = [0.81, 0.84, 0.9]
    mean, half, error = np.mean(values), t.ppf(0.975, 2) * sem(values), sem(values)
    scores = {
        name: {"accuracy": values, "answered": values}
        for name in ("labels as given", "soft labels")
    }
    scores["true labels"] = {"accuracy": [1.0] * 3, "answered": [1.0] * 3}
    assert f"{100 * mean:.1f} ± {100 * half:.1f}" in main_example.page(scores)
    rows = [
        {"samples": n, "calibrator": "none", "log_loss": values} for n in posthoc_samples.SAMPLES
    ]
    assert f"{mean:.3f} ± {error:.3f}" in posthoc_samples.page(rows)
