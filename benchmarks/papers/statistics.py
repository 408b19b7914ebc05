"""Means, standard errors, paired differences and their intervals."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm, t, ttest_1samp


def mean_and_error(values):
    """Return the mean and its standard error (NaN for one value)."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return float(values.mean()), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def paired(values, reference):
    """Return mean, standard error and p-value of the differences, paired by seed."""
    n = min(len(values), len(reference))
    difference = np.asarray(values[:n], dtype=float) - np.asarray(reference[:n], dtype=float)
    mean, error = mean_and_error(difference)
    if n < 2:
        return mean, error, 1.0
    if not error:  # all differences alike: equal methods, or a constant shift
        return mean, error, 1.0 if mean == 0 else 0.0
    return mean, error, float(ttest_1samp(difference, 0.0).pvalue)


def interval(differences, *, mean_and_error=None):
    """Return mean, ends of the 95 % interval and p-value of differences, or of a bootstrap."""
    if mean_and_error is not None:
        mean, error = mean_and_error
        half, p = norm.ppf(0.975) * error, float(2 * norm.sf(abs(mean) / error))
        return mean, mean - half, mean + half, p
    known = differences[~np.isnan(differences)]
    mean, error, p = paired(known, np.zeros(len(known)))
    if len(known) < 2:
        return mean, -np.inf, np.inf, 1.0
    half = float(t.ppf(0.975, len(known) - 1)) * error
    return mean, mean - half, mean + half, p


def ratio_interval(values, reference):
    """Return mean, ends of the 95 % interval and p-value of a relative change, paired by seed.

    The ratio of the means minus 1, its error linearized: that of (a - r b) / mean(b).
    """
    values, reference = (np.asarray(part, dtype=float) for part in (values, reference))
    ratio = values.mean() / reference.mean()
    mean, low, high, p = interval((values - reference * ratio) / reference.mean() + ratio - 1)
    return mean, low, high, p
