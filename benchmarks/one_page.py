"""What a page must not get wrong, by simulation: python -m benchmarks.one_page [--draws 40].

Populations say what is true, and what a model says. Each simulation yields one row a draw: whether
what it promises was kept, and a number. one_page_results.json holds the table of the user guide.
What the advice of a page promises is measured by `benchmarks.advice`, how often intervals hold by
`benchmarks.coverage`, and how long a page of a million rows takes by `benchmarks.many_rows`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from benchmarks._tables import shown, simple_table, study
from benchmarks.coverage import labels_of
from skcalib.metrics import calibration_error_interval, groupwise_calibration_error
from skcalib.posthoc import PriorShift
from skcalib.report import CalibrationReport
from skcalib.report._compare import _find_signs

Rng = np.random.Generator
# What is stated and what is true, (n, n_classes) or (n,) of the second of two classes.
Draw = Callable[[Rng, int], tuple[NDArray[np.float64], NDArray[np.float64]]]
# True log-odds to those that a model states.
Says = Callable[[NDArray[np.float64]], NDArray[np.float64]]
N_POPULATION, N_BINS = 200_000, 15


def column_off(rng: Rng, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The second of three classes is stated 9 points too high or too low; right on average."""
    first = rng.uniform(0.45, 0.7, n)
    second = (1 - first) * rng.uniform(0.4, 0.6, n)
    moved = second + 0.09 * rng.choice([-1, 1], n)
    stated, true = (np.stack([first, p, 1 - first - p], axis=1) for p in (moved, second))
    return stated, true


def sharpened(n_classes: int, by: float, spread: float = 2.0) -> Draw:
    def draw(rng: Rng, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        logits = rng.normal(0, spread, (n, n_classes))
        return softmax(by * logits, axis=1), softmax(logits, axis=1)

    return draw


def times(by: float) -> Says:
    return lambda z: by * z


def weaker(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """A calibrated model that knows less: the log-odds of the mean probability around each."""
    _, cell = np.unique(np.round(z), return_inverse=True)
    mean = np.bincount(cell, expit(z)) / np.bincount(cell)
    return logit(mean)[cell]


def nearly_sure(rng: Rng, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Stated about 0 or 1, and wrong as often as stated: 1.5 % of the time."""
    stated = np.where(rng.uniform(size=n) < 0.5, 0.985, 0.015)
    return stated, stated


def page(rng: Rng, draw: Draw, n: int) -> dict[str, Any]:
    """Return the results of the page on n samples of a population."""
    stated, true = draw(rng, n)
    labels = np.arange(2 if true.ndim == 1 else true.shape[1])
    report = CalibrationReport.from_predictions(labels_of(true, rng), stated, labels=labels)
    return report.results_


def not_cleared(rng: Rng, draw: Draw, n: int) -> tuple[bool, float]:
    """Return whether the page gives no all-clear, and the p-value of the worst class."""
    results = page(rng, draw, n)
    worst = min(entry["pvalue"] for entry in results["group_tests"])
    return results["summary"]["kind"] != "calibrated", worst


def not_accused(rng: Rng, draw: Draw, n: int) -> tuple[bool, float]:
    """Return whether the page accuses nothing, and the smallest p-value on it."""
    results = page(rng, draw, n)
    smallest = min(entry["pvalue"] for entry in results["group_tests"])
    return results["summary"]["kind"] in ("calibrated", "undecided"), smallest


def find_difference(
    rng: Rng, first: Says, other: Says, n: int, expected: int
) -> tuple[bool, float]:
    """Two models of the same samples: is the other one said to be better (-1), worse (1), or none?

    Each maps the true log-odds of the second of two classes to those that it states.
    """
    z = rng.normal(0, 2, n)
    y = (rng.uniform(size=n) < expit(z)).astype(int)
    models = {"first": expit(first(z)), "other": expit(other(z))}
    found = CalibrationReport.compare(models, y).results_["comparison"]
    change = found["differences"]["other"]["expected_calibration_error"]
    return _find_signs(found)["other"] == expected, change["pvalue"]


def holds_prior(rng: Rng, frequency: float, n: int, apart: float) -> tuple[bool, float]:
    """Return whether the interval of a class's frequency holds it, and its estimate.

    Scores are exact for equal frequencies: normal, with means `apart` standard deviations apart.
    """

    def scores(n: int, frequency: float) -> NDArray[np.float64]:
        y = rng.uniform(size=n) < frequency
        return apart * (rng.normal(size=n) + apart * (y - 0.5))

    shift = PriorShift(training_scores=scores(1000, 0.5), tol=1e-6).fit(scores(n, frequency))
    low, high = shift.priors_interval_[1]
    return bool(low <= frequency <= high), float(shift.priors_[1])


def holds_error(rng: Rng, draw: Draw, n: int) -> tuple[bool, float]:
    """Return whether the interval holds the error of a large population, and its width.

    The error is the expected one of two classes, the classwise one of more.
    """
    stated, true = draw(rng, n)
    metric = f"{'expected' if true.ndim == 1 else 'classwise'}_calibration_error"
    low, high = calibration_error_interval(
        labels_of(true, rng), stated, metric=metric, n_resamples=200, random_state=0
    )
    return low <= true_error(draw) <= high, high - low


@cache
def true_error(draw: Draw) -> float:
    """Return the error of a population in 15 bins, from what is true and not from labels."""
    stated, true = draw(np.random.default_rng(12345), N_POPULATION)
    columns = [(stated, true)] if stated.ndim == 1 else zip(stated.T, true.T)
    errors = []
    for said, is_so in columns:
        place = np.minimum((said * N_BINS).astype(int), N_BINS - 1)
        gaps = np.bincount(place, said - is_so, minlength=N_BINS)
        errors.append(np.abs(gaps).sum() / len(said))
    return float(np.mean(errors))


def found_group(rng: Rng, n_groups: int, size: int) -> tuple[bool, float]:
    """One group of many has reversed probabilities: is it found, and it alone? Its p-value."""
    stated = expit(rng.normal(0, 1.5, n_groups * size))
    group = np.repeat(np.arange(n_groups), size)
    true = np.where(group == 0, 1 - stated, stated)
    y = rng.uniform(size=len(true)) < true
    table = groupwise_calibration_error(y, stated, by=group, random_state=0)
    off = table["pvalue"] < 0.05
    return bool(off[0]) and off.sum() == 1, float(table["pvalue"][0])


# What is promised; what measures one draw of it, and its arguments.
SIMULATIONS: dict[str, tuple[Callable[..., tuple[bool, float]], tuple[Any, ...]]] = {
    "a class off by 9 points at its values, n = 1000: no all-clear": (
        not_cleared, (column_off, 1000),
    ),
    "a class off by 9 points at its values, n = 3000: no all-clear": (
        not_cleared, (column_off, 3000),
    ),
    "calibrated, K = 2, n = 400: not flagged": (not_accused, (sharpened(2, 1.0), 400)),
    "calibrated, K = 3, n = 1500: not flagged": (not_accused, (sharpened(3, 1.0), 1500)),
    "calibrated, K = 8, n = 1000: not flagged": (not_accused, (sharpened(8, 1.0), 1000)),
    "calibrated against log-odds times 1.5, n = 1500: found": (
        find_difference, (times(1.0), times(1.5), 1500, 1),
    ),
    "log-odds times 0.6 against calibrated, n = 1500: found": (
        find_difference, (times(0.6), times(1.0), 1500, -1),
    ),
    "two calibrated models, n = 1500: not separated": (
        find_difference, (times(1.0), weaker, 1500, 0),
    ),
    "frequency .02 of 1000 estimated without labels: interval holds": (
        holds_prior, (0.02, 1000, 2.0),
    ),
    "frequency .3 of 200 estimated without labels: interval holds": (
        holds_prior, (0.3, 200, 2.0),
    ),
    "nearly sure, n = 400: interval holds": (
        holds_error, (nearly_sure, 400),
    ),
    "100 classes, log-odds times 1.4, n = 20 000: interval holds": (
        holds_error, (sharpened(100, 1.4), 20_000),
    ),
    "one reversed group of 100 of 60 samples: found alone": (found_group, (100, 60)),
}  # fmt: skip


def measured(draws: int = 40, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield a row for every draw of every simulation."""
    for k, (name, (measure, arguments)) in enumerate(SIMULATIONS.items()):
        for draw in range(draws):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kept, value = measure(np.random.default_rng((seed, k, draw)), *arguments)
            yield {"simulation": name, "draw": draw, "kept": bool(kept), "value": float(value)}


def guide_table(lines: list[dict[str, Any]]) -> str:
    """Return the table of the user guide: how often each was kept, and the mean number."""
    rows = []
    for name in SIMULATIONS:
        of_one = [line for line in lines if line["simulation"] == name]
        kept, value = (np.mean([line[key] for line in of_one]) for key in ("kept", "value"))
        rows.append((name, str(len(of_one)), shown(kept, 2), shown(value, 3)))
    return simple_table(("simulation", "draws", "kept", "mean number"), rows)


if __name__ == "__main__":
    study(__doc__, measured, draws=40, seed=0)
