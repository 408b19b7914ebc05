"""How often the evidence of an accumulator raises a false alarm, and how soon a true one.

    python -m benchmarks.daily_looks [--draws 60]

Every stream is looked at after each of 300 batches of 100 samples; an alarm is a p-value of .05 or
less at any look. The grid of maps is compared with one of equal steps. Models that go wrong late
are looked at on 60 days of 200 samples. Writes benchmarks/daily_looks_results.json and the tables
of the guide.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.special import expit, softmax

from benchmarks._tables import shown, simple_table
from skcalib.metrics import CalibrationAccumulator, CalibrationMonitor, _e_values

RESULTS = Path(__file__).with_name("daily_looks_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/daily_looks.inc"
LOOKS, BATCH, ALPHA = 300, 100, 0.05
# (slope of the stated log-odds, shift of those of one class)
MODELS = {
    "calibrated": (1.0, 0.0),
    "too sure by 1.1": (1.1, 0.0),
    "too sure by 1.25": (1.25, 0.0),
    "too sure by 1.5": (1.5, 0.0),
    "one class off by .2": (1.0, 0.2),
    "one class off by .5": (1.0, 0.5),
}


def batches(seed, n_classes, slope, shift):
    """Yield labels and stated probabilities of one stream, batch by batch."""
    rng = np.random.default_rng([seed, n_classes])
    for _ in range(LOOKS):
        if n_classes == 2:
            z = rng.normal(0, 1.5, BATCH)
            yield (rng.random(BATCH) < expit(z)).astype(int), expit(slope * z + shift)
        else:
            z = rng.normal(0, 1.5, (BATCH, n_classes))
            ends = softmax(z, axis=1).cumsum(axis=1)
            y = (ends < rng.random((BATCH, 1))).sum(axis=1).clip(max=n_classes - 1)
            yield y, softmax(slope * z + shift * (np.arange(n_classes) == 0), axis=1)


def pvalues(seed, n_classes, slope, shift, looks=LOOKS):
    """Return the p-value of every look of one stream."""
    stream = CalibrationAccumulator(metrics=["e_value"], labels=range(n_classes))
    found = np.ones(looks)
    for i, (y, proba) in zip(range(looks), batches(seed, n_classes, slope, shift)):
        found[i] = stream.update(y, proba).evidence().pvalue
        if found[i] <= ALPHA and slope != 1:  # the alarm is all that is asked for
            break
    return found


def row(n_classes, name, n_draws, **grid):
    slope, shift = MODELS[name]
    alarms = np.array([pvalues(s, n_classes, slope, shift) <= ALPHA for s in range(n_draws)])
    first = np.where(alarms.any(axis=1), BATCH * (1 + alarms.argmax(axis=1)), np.inf)
    median = float(np.median(first))
    return {
        "classes": n_classes,
        "model": name,
        "draws": n_draws,
        "alarms": round(float(alarms.any(axis=1).mean()), 4),
        "median samples": None if np.isinf(median) else median,
        **grid,
    }


def grids(n_draws):
    """Yield what maps in equal steps find, and those of the package; two classes."""
    ours = _e_values.LOG_SLOPES, _e_values.SHIFTS
    for grid, maps in (
        ("equal steps", [np.linspace(-v, v, 13) for v in (1.2, 1.5)]),
        ("ours", ours),
    ):
        _e_values.LOG_SLOPES, _e_values.SHIFTS = maps
        for name in ("too sure by 1.1", "too sure by 1.25"):
            yield row(2, name, n_draws, grid=grid)


DAYS, DAILY, TOO_SURE = 60, 200, 1.4
METHODS = ("CalibrationMonitor", "evidence from day 1", "CUSUM that knows the error")


def days(seed, first_bad):
    """Yield log-odds, labels and slope of every day; `first_bad` counts from 1."""
    rng = np.random.default_rng([seed, 60])
    for day in range(1, DAYS + 1):
        z = rng.normal(0, 1.5, DAILY)
        slope = TOO_SURE if day >= first_bad else 1.0
        yield (rng.random(DAILY) < expit(z)).astype(int), slope * z


def cusum(seed, first_bad):
    """Return the sums of the log-ratios of the right repair, which restart at 0."""
    total, found = 0.0, []
    for y, z in days(seed, first_bad):
        sign = np.where(y == 1, -1.0, 1.0)
        ratio = np.logaddexp(0, sign * z) - np.logaddexp(0, sign * z / TOO_SURE)
        total = max(0.0, total) + ratio.sum()
        found.append(total)
    return np.array(found)


def alarms_of_days(seed, first_bad, limit):
    """Return for every method the mask of days from its alarm on."""
    monitor, total = CalibrationMonitor(ALPHA), CalibrationAccumulator(metrics=["e_value"])
    found = np.zeros((3, DAYS), bool)
    for day, (y, z) in enumerate(days(seed, first_bad)):
        found[0, day] = monitor.update(y, expit(z)).alarm_ is not None
        found[1, day] = total.update(y, expit(z)).evidence().pvalue <= ALPHA
    found[2] = cusum(seed, first_bad) >= limit
    return np.logical_or.accumulate(found, axis=1)


def drift(n_draws):
    """Yield alarms of every method in 60 good days, and in 40 after the model went wrong."""
    # The limit of the CUSUM is that of as many false alarms, by other calibrated streams.
    limit = np.quantile([cusum(10_000 + s, DAYS + 1).max() for s in range(1000)], 1 - ALPHA)
    for first_bad in (DAYS + 1, 1, 21):
        found = np.array([alarms_of_days(s, first_bad, limit) for s in range(n_draws)])
        for k, method in enumerate(METHODS):
            start = 0 if first_bad > DAYS else first_bad - 1
            within = found[:, k, start : DAYS if first_bad > DAYS else start + 40]
            late = np.where(within[:, -1], 1 + within.argmax(axis=1), np.inf)
            median = float(np.median(late))
            yield {
                "method": method,
                "wrong from day": None if first_bad > DAYS else first_bad,
                "draws": n_draws,
                "alarms before": round(float(found[:, k, start - 1].mean()), 4) if start else 0.0,
                "alarms": round(float(within[:, -1].mean()), 4),
                "median days": None if np.isinf(median) else median,
            }


def page(results):
    return f"{looks_table(results)}\n{DRIFT_TEXT}\n{drift_table(results)}"


DRIFT_TEXT = """\
Models that go wrong
--------------------

Sixty days with 200 samples each, two classes: the log-odds are right, or too large by 1.4 from
some day on. Alarms at .05, within the 60 good days or within 40 bad ones; "before" are false
alarms before the model went wrong. The CUSUM knows which error to look for, and has the limit
that is right for 60 days.
"""


def drift_table(results):
    head = ("method", "wrong from day", "streams", "before", "alarms", "median days to the alarm")
    rows = [
        (
            row["method"],
            str(row["wrong from day"] or "-"),
            str(row["draws"]),
            shown(row["alarms before"], 3),
            shown(row["alarms"], 3),
            "-" if row["median days"] is None else f"{row['median days']:.0f}",
        )
        for row in results["drift"]
    ]
    return simple_table(head, rows) + "\n"


def looks_table(results):
    head = ("model", "classes", "streams", "alarms", "median samples to the alarm")
    rows = [
        (
            found["model"],
            str(found["classes"]),
            str(found["draws"]),
            shown(found["alarms"], 3),
            "-" if found["median samples"] is None else f"{found['median samples']:.0f}",
        )
        for found in results["rows"]
    ]
    return simple_table(head, rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=60)
    n_draws = parser.parse_args().draws
    results = {"rows": [], "grids": [], "drift": []}
    for n_classes in (2, 4):
        for name in MODELS:
            n = 4 * n_draws if name == "calibrated" else n_draws
            results["rows"].append(row(n_classes, name, n))
            print(results["rows"][-1], flush=True)
    for found in grids(n_draws // 2):
        results["grids"].append(found)
        print(found, flush=True)
    for found in drift(n_draws):
        results["drift"].append(found)
        print(found, flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
