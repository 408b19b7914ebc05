"""What a reader should be warned of, and how the report was computed."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy
import sklearn

from .. import __version__
from ._data import ReportData
from ._results_calibration import N_BINS, n_resamples
from ._results_calibrators import N_FOLDS
from ._statistics import LEVEL

FEW_SAMPLES = 1000
FEW_OF_A_CLASS = 30
# Fractions of the samples.
MANY_SATURATED, MANY_TIED = 0.05, 0.5


def notes(data: ReportData) -> list[str]:
    """Return a sentence for everything in the data that limits what the report can say."""
    found = [_few(data), _rare_classes(data), _saturated(data), _ties(data), _weights(data)]
    return [sentence for sentence in found if sentence]


def _few(data: ReportData) -> str | None:
    n = len(data.codes)
    if n >= FEW_SAMPLES:
        return None
    return f"Few samples: with {n} of them intervals are wide, and bins hold a handful each."


def _rare_classes(data: ReportData) -> str | None:
    count = np.bincount(data.codes, minlength=len(data.classes))
    parts = []
    for what, codes in (
        ("without any sample", np.flatnonzero(count == 0)),
        (
            f"with fewer than {FEW_OF_A_CLASS} samples",
            np.flatnonzero((count > 0) & (count < FEW_OF_A_CLASS)),
        ),
    ):
        if len(codes):
            names = ", ".join(str(data.label(k)) for k in codes[:5])
            parts.append(f"{len(codes)} {what} ({names}{', ...' if len(codes) > 5 else ''})")
    return f"Classes: {'; '.join(parts)}." if parts else None


def _saturated(data: ReportData) -> str | None:
    saturated = (data.confidence >= 1).mean()
    impossible = int((data.proba[np.arange(len(data.codes)), data.codes] <= 0).sum())
    if saturated < MANY_SATURATED and not impossible:
        return None
    sentence = f"Saturated confidences: {100 * saturated:.1f} % of the samples say exactly 1"
    if impossible:
        sentence += f", and {impossible} true labels have probability 0"
    return sentence + "; no temperature can repair these."


def _ties(data: ReportData) -> str | None:
    n, distinct = len(data.codes), len(np.unique(data.confidence))
    if 1 - distinct / n < MANY_TIED:
        return None
    return (
        f"Ties: {n} samples have {distinct} different confidences. Samples of equal confidence "
        "are answered or declined together."
    )


def _weights(data: ReportData) -> str | None:
    if data.weight is None:
        return None
    left_out = data.n_given - len(data.codes)
    sentence = (
        f"Weights: a weight of k counts as k samples, {data.weight.sum():.6g} in all. The test "
        "draws one label for a sample whatever its weight, the hardest samples and the counts of "
        "this report do not depend on weights."
    )
    return sentence + (f" {left_out} samples of weight 0 are left out." if left_out else "")


def method(data: ReportData) -> dict[str, Any]:
    """Return versions, options and the seed."""
    return {
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": {
            "skcalib": __version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "Python": platform.python_version(),
        },
        "n_bins": N_BINS,
        "confidence_level": LEVEL,
        "n_resamples": n_resamples(len(data.codes)),
        "n_folds": N_FOLDS,
        "random_state": data.seed,
    }
