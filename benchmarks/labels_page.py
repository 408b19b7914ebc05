"""Tables of wrong labels for the guide: python -m benchmarks.labels_page.

They are made of benchmarks/labels_results.json, which benchmarks/labels.py writes, and of nothing
else. Differences from cleanlab are paired: over the seeds that both methods have judged.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.labels import NOISE, load
from benchmarks.papers.statistics import mean_and_error
from benchmarks.papers.tables import csv_table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "labels_results.json"
PAGE = ROOT / "docs" / "user_guide" / "labels_results.inc"
FINDER = "LabelIssueFinder, mixed"
RIVAL = "cleanlab"
SAME_PROBABILITIES = "noise model on probabilities"
OPEN_TAB = "CLINC150, 20 a class"


def page(rows):
    """Return one tab for every data set."""
    parts = [".. tab-set::", ""]
    for name in sorted({row["set"] for row in rows}, key=_order):
        parts += [f"   .. tab-item:: {name}", *(["      :selected:"] * (name == OPEN_TAB)), ""]
        text = _tab([row for row in rows if row["set"] == name])
        parts += [f"      {line}".rstrip() for line in text.splitlines()] + [""]
    return "\n".join(parts)


def _order(name):
    """Sort sets by name, and by the number of samples a class."""
    data, _, size = name.partition(", ")
    return data.lower(), int(size.split()[0])


def _tab(rows):
    """Return the tables of one data set."""
    noises = [key for key in NOISE if runs(rows, key, FINDER)]
    rivals = any(runs(rows, key, RIVAL) for key in noises)
    methods = {"LabelIssueFinder": FINDER} | ({"cleanlab 2.9": RIVAL} if rivals else {})
    seeds = [f"{_seeds(rows, noises, method)} of {name}" for name, method in methods.items()]
    found = [
        [_noise(key), *(_found(runs(rows, key, m)) for m in methods.values())] for key in noises
    ]
    title = "Precision / recall; of clean labels, the fraction flagged"
    parts = [f"Seeds: {', '.join(seeds)}.", csv_table(title, ["Noise", *methods], found)]
    if rivals:
        parts.append(_gains(rows, noises))
    estimates = [[_noise(key), *_estimates(runs(rows, key, FINDER))] for key in noises]
    title = "Estimates of LabelIssueFinder, and the fraction of right labels after repair"
    header = ["Noise", "Rate (s.e.)", "Calibration error", "Right"]
    parts += [csv_table(title, header, estimates), _coverage(rows, noises)]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def _gains(rows, noises):
    """Return the table of differences from cleanlab."""
    methods = {"LabelIssueFinder": FINDER}
    if any(runs(rows, key, SAME_PROBABILITIES) for key in noises):
        methods["on the same probabilities"] = SAME_PROBABILITIES
    lines = []
    for key in noises:
        rival = runs(rows, key, RIVAL)
        lines.append([_noise(key), *(_gain(runs(rows, key, m), rival) for m in methods.values())])
    title = "More right labels after repair than with cleanlab, in percentage points (± s.e.)"
    return csv_table(title, ["Noise", *methods], lines)


def runs(rows, noise, method):
    """Return {seed: run}."""
    kind, rate = noise
    return {
        row["seed"]: row
        for row in rows
        if (row["noise"], row["noise_rate"], row["method"]) == (kind, rate, method)
    }


def _noise(key):
    kind, rate = key
    return f"{kind} {100 * rate:.0f} %" if rate else kind


def _seeds(rows, noises, method):
    """Return the smallest and the largest number of seeds, where there are any."""
    numbers = {len(runs(rows, key, method)) for key in noises} - {0}
    return " to ".join(f"{n}" for n in sorted({min(numbers), max(numbers)}))


def _mean(by_seed, name, error=False):
    mean, spread = mean_and_error([row[name] for row in by_seed.values()])
    known = error and len(by_seed) > 1
    return f"{mean:.3f} ({spread:.3f})" if known else f"{mean:.3f}"


def _found(by_seed):
    if not by_seed:
        return "\\-"
    if any("recall" not in row for row in by_seed.values()):
        return _mean(by_seed, "flagged")
    # Where nothing is flagged there is no precision.
    flagging = {seed: row for seed, row in by_seed.items() if "precision" in row}
    precision, _ = mean_and_error(
        [row["precision"] for row in flagging.values()] or [float("nan")]
    )
    recall, _ = mean_and_error([row["recall"] for row in by_seed.values()])
    return f"{precision:.2f}\N{NO-BREAK SPACE}/\N{NO-BREAK SPACE}{recall:.2f}"


def _estimates(by_seed):
    return (
        _mean(by_seed, "rate", error=True),
        _mean(by_seed, "calibration"),
        _mean(by_seed, "right"),
    )


def gain(by_seed, rival):
    """Return mean and standard error of the difference of right labels, in points, paired."""
    shared = sorted(by_seed.keys() & rival.keys())
    return mean_and_error([100 * (by_seed[s]["right"] - rival[s]["right"]) for s in shared])


def _gain(by_seed, rival):
    shared = len(by_seed.keys() & rival.keys())
    if not shared:
        return "\\-"
    mean, error = gain(by_seed, rival)
    return f"{mean:+.1f} ± {error:.1f}" if shared > 1 else f"{mean:+.1f}"


def _coverage(rows, noises):
    """Return how often the interval of the noise rate held the true rate."""
    covered = [
        row["covered"]
        for kind, rate in noises
        if rate
        for row in runs(rows, (kind, rate), FINDER).values()
    ]
    return (
        f"The 95 % interval of the noise rate held the true rate in {sum(covered):.0f} of "
        f"{len(covered)} runs with wrong labels."
    )


def main() -> None:
    PAGE.write_text(page(load(RESULTS)))


if __name__ == "__main__":
    main()
