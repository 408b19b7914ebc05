"""How often and how soon a monitor finds errors of probabilities that are written with decimals.

    python -m benchmarks.written_decimals [--streams 40] [--out FILE]

Every stream has 60 days of 200 samples, `false_alarm_rate` is .01. Log-odds are right, too large
by 1.5, or the odds of one class are doubled, before probabilities are rounded. The oracle knows
the error and the rate of positives of every written value; it compares that with the nearest rate
that rounds to the value, the fastest growing of all valid e-values, and needs no weight for other
errors. benchmarks/written_decimals_results.json holds the table of the user guide.
"""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from scipy.special import expit, logit, softmax

from benchmarks._tables import simple_table, study
from skcalib.metrics import CalibrationMonitor

DAYS, DAILY, RATE = 60, 200, 0.01
Draw = Callable[[np.random.Generator, int], np.ndarray]


def _log_odds(a: float, b: float) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        return logit(np.clip(rng.beta(a, b, n), 1e-12, 1 - 1e-12))

    return draw


def _three_classes(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=(n, 3)) * 1.5 - [0, 2, 0]


# Log-odds of the second of two classes, or scores of three.
POPULATIONS: dict[str, Draw] = {
    "1 %": _log_odds(0.3, 29.7),
    "10 %": _log_odds(1, 9),
    "near 0 or 1": _log_odds(0.25, 0.6),
    "three classes": _three_classes,
}
# Slope and shift of the predicted log-odds.
ERRORS = {
    "none": (1.0, 0.0),
    "log-odds times 1.5": (1.5, 0.0),
    "odds doubled": (1.0, np.log(2)),
    "odds halved": (1.0, -np.log(2)),
}


def predicted(z: np.ndarray, error: str, decimals: int) -> np.ndarray:
    """Return the written probabilities."""
    slope, shift = ERRORS[error]
    proba = expit(slope * z + shift) if z.ndim == 1 else softmax(slope * z + [0, 0, shift], axis=1)
    return np.round(proba, decimals)


def labels_of(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    if z.ndim == 1:
        return (rng.random(len(z)) < expit(z)).astype(int)
    ends = softmax(z, axis=1).cumsum(axis=1)
    return (ends < rng.random((len(z), 1))).sum(axis=1).clip(max=2)


def samples_to_the_alarm(population: str, error: str, decimals: int, seed: int) -> float:
    """Return the number of samples of a stream before its alarm; infinite without one."""
    rng = np.random.default_rng(seed)
    n_classes = 3 if population == "three classes" else 2
    monitor = CalibrationMonitor(RATE, labels=range(n_classes))
    for day in range(1, DAYS + 1):
        z = POPULATIONS[population](rng, DAILY)
        monitor.update(labels_of(rng, z), predicted(z, error, decimals))
        if monitor.alarm_ is not None:
            return day * DAILY
    return np.inf


def samples_of_the_oracle(population: str, error: str, decimals: int, streams: int) -> list[float]:
    """Return the number of samples that an oracle needs in every stream, two classes."""
    draw, unit = POPULATIONS[population], 10**decimals
    z = draw(np.random.default_rng(2**31), 2_000_000)
    value = np.rint(predicted(z, error, decimals) * unit).astype(int)
    n = np.bincount(value, minlength=unit + 1)
    written = np.arange(unit + 1) / unit
    rate = np.divide(np.bincount(value, expit(z), unit + 1), n, out=written.copy(), where=n > 0)
    rate = np.clip(rate, 1e-12, 1 - 1e-12)
    nearest = np.clip(rate, written - 0.5 / unit, written + 0.5 / unit)
    ratios = np.log1p(-rate) - np.log1p(-nearest), np.log(rate) - np.log(nearest)
    found = []
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        z = draw(rng, DAYS * DAILY)
        y = labels_of(rng, z)
        value = np.rint(predicted(z, error, decimals) * unit).astype(int)
        log_e = np.where(y == 1, ratios[1][value], ratios[0][value]).cumsum()[DAILY - 1 :: DAILY]
        days = np.flatnonzero(log_e >= -np.log(RATE))
        found.append(float((days[0] + 1) * DAILY) if len(days) else np.inf)
    return found


def records(streams: int) -> Iterator[dict]:
    """Yield a row for every population, number of decimals and error."""
    for population, decimals, error in product(POPULATIONS, (2, 3), ERRORS):
        needed = np.array(
            [samples_to_the_alarm(population, error, decimals, seed) for seed in range(streams)]
        )
        row = {"population": population, "decimals": decimals, "error": error, "streams": streams}
        row |= {"alarms": int(np.isfinite(needed).sum()), "median": _median(needed)}
        if error != "none" and population != "three classes":
            oracle = np.array(samples_of_the_oracle(population, error, decimals, streams))
            row |= {"oracle": int(np.isfinite(oracle).sum()), "median of oracle": _median(oracle)}
        yield row


def _median(needed: np.ndarray) -> int | None:
    """Return the median over all streams, those without an alarm as the longest."""
    middle = np.sort(needed)[len(needed) // 2]
    return int(middle) if np.isfinite(middle) else None


def guide_table(results: list[dict]) -> str:
    """Return the table of the user guide."""
    streams = {row["streams"] for row in results}
    head = (
        "probabilities", "decimals", *(f"{error}, of {max(streams)}" for error in ERRORS),
    )  # fmt: skip
    rows = []
    for population, decimals in product(POPULATIONS, (2, 3)):
        cells = [population, str(decimals)]
        for error in ERRORS:
            row = next(
                row
                for row in results
                if (row["population"], row["decimals"], row["error"])
                == (population, decimals, error)
            )
            cells.append(_cell(row))
        rows.append(cells)
    return simple_table(head, rows)


def _cell(row: dict) -> str:
    text = str(row["alarms"])
    if row["error"] == "none":
        return text
    text += f", {row['median'] or 'over 12000'}"
    if "oracle" in row:
        text += f" ({row['oracle']}, {row['median of oracle'] or 'over 12000'})"
    return text


if __name__ == "__main__":
    study(__doc__, records, streams=40)
