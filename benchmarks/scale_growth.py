"""Time against the number of samples, and the picture of it: python -m benchmarks.scale_growth.

Processor seconds of one thread, the least of some repeats. Writes benchmarks/scale_growth.json and
draws docs/_static/scale_growth.png from it; --draw draws alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._timing import seconds
from benchmarks.scale import labeled, probabilities
from skcalib.difficulty import KNNScorer, RMDScorer
from skcalib.metrics import expected_calibration_error
from skcalib.selection import MaxEntropySelector

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks/scale_growth.json"
PICTURE = ROOT / "docs/_static/scale_growth.png"
FEATURES, CLASSES, PROBES = 512, 100, 20_000
SIZES = [1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
# What takes longer than this is not measured at more samples.
LONGEST = 5.0
LAST = 1e9
LABEL_HEIGHT = 4.5  # as a factor on the axis of time
UNITS = {"1 ms": 1e-3, "1 s": 1.0, "1 minute": 60.0, "1 hour": 3600.0, "1 day": 86_400.0,
         "1 year": 31_557_600.0}  # fmt: skip


def paths(n: int) -> Iterator[tuple[str, int, Callable]]:
    """Yield (name, power of n that it grows with, call)."""
    X, y = labeled(n, FEATURES, CLASSES)
    neighbors = KNNScorer(n_neighbors=30).fit(X)
    yield "all exact neighbors", 2, lambda: neighbors.difficulty(X)
    few = KNNScorer(n_neighbors=30).fit(labeled(PROBES, FEATURES, CLASSES)[0])
    yield f"neighbors among {PROBES:,}".replace(",", " "), 1, lambda: few.difficulty(X)
    yield "RMDScorer.fit", 1, lambda: RMDScorer().fit(X, y)
    scorer = RMDScorer().fit(X, y).finalize()
    yield "RMDScorer.difficulty", 1, lambda: scorer.difficulty(X)
    proba, y, _ = probabilities(n, CLASSES)
    selector = MaxEntropySelector().fit(proba[:10])
    yield "MaxEntropySelector.select", 1, lambda: selector.select(proba)
    yield "expected_calibration_error", 1, lambda: expected_calibration_error(y, proba)


def measured() -> list[dict]:
    found: dict[str, dict] = {}
    with threadpool_limits(1):
        for n in SIZES:
            for name, power, call in paths(n):
                row = found.setdefault(
                    name, {"path": name, "power": power, "samples": [], "seconds": []}
                )
                if row["seconds"] and row["seconds"][-1] > LONGEST:
                    continue
                call()
                row["samples"].append(n)
                row["seconds"].append(float(f"{seconds(call, 5 if n < 10**5 else 2):.3g}"))
                print(f"{n:9,} {name:28} {row['seconds'][-1]:8.4f} s", flush=True)
    return list(found.values())


def at_last(row: dict) -> float:
    """Return the time for as many samples as the picture goes to, in proportion."""
    return float(row["seconds"][-1] * (LAST / row["samples"][-1]) ** row["power"])


def time_of(seconds: float) -> str:
    units = {"years": 31_557_600.0, "days": 86_400.0, "hours": 3600.0, "minutes": 60.0}
    for unit, length in units.items():
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def draw(rows: list[dict], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    height = 0.0  # of the label below
    for row in sorted(rows, key=at_last):
        n, t, end = row["samples"], row["seconds"], at_last(row)
        (line,) = ax.loglog(n, t, "o-", markersize=4)
        ax.loglog([n[-1], LAST], [t[-1], end], "--", color=line.get_color(), linewidth=1)
        height = max(end, LABEL_HEIGHT * height)
        ax.annotate(
            f"{row['path']}: {time_of(end)}", (LAST, height), (6, 0), textcoords="offset points",
            color=line.get_color(), va="center", annotation_clip=False,
        )  # fmt: skip
    ax.set_yticks(list(UNITS.values()), list(UNITS))
    ax.set_xticks(
        10.0 ** np.arange(3, 10), ["1 thousand", "", "", "1 million", "", "", "1 billion"]
    )
    ax.minorticks_off()
    ax.grid(alpha=0.3)
    ax.set(xlabel="samples", ylabel="time of one thread", xlim=(SIZES[0], LAST))
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=144)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", action="store_true", help="draw the results there are")
    if not parser.parse_args().draw:
        results = {"features": FEATURES, "classes": CLASSES, "paths": measured()}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    draw(json.loads(RESULTS.read_text())["paths"], PICTURE)


if __name__ == "__main__":
    main()
