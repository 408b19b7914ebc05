"""scikit-learn's array API dispatch breaks nothing that works without it."""

import os
import subprocess
import sys

import pytest
import scipy
from sklearn.utils.fixes import parse_version


@pytest.mark.slow
@pytest.mark.skipif(
    parse_version(scipy.__version__) < parse_version("1.14"),
    reason="scikit-learn dispatches from scipy 1.14 on",
)
def test_results_are_those_without_dispatch(repository):
    # scikit-learn asks for the variable before scipy is imported: a process of its own.
    result = subprocess.run(
        [sys.executable, "-m", "tests.array_api"],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "calls give the same" in result.stdout
