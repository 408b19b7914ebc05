"""How often the intervals of calibration errors hold the true error, by simulation.

    python -m benchmarks.coverage [--draws 300] [--metrics ECE KS ...] [--out FILE]

The truth is the error of a large population, from its probabilities and not from labels: of the
gaps in the bins, in the sums up to every confidence, under the kernel. The regimes are not those
with which the method was built. coverage_results.json holds the table of the user guide, and
coverage_differences_results.json that of --differences.
"""

import argparse
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, softmax

from benchmarks._tables import keep, shown, simple_table
from skcalib.metrics import (
    calibration_error_interval,
    classwise_calibration_error,
    compare_calibration,
    debiased_calibration_error,
    expected_calibration_error,
    ks_calibration_error,
    maximum_calibration_error,
    smooth_calibration_error,
)
from skcalib.metrics._smooth import GridPlaces, compute_error_of_excess, count_grid_steps

N_BINS = 15
N_RESAMPLES = 200
N_POPULATION = 400_000
FLOOR = 2e-16
# What a width should be at most, as a multiple of an oracle's.
AIM = 1.2
METRICS = {
    "ECE": (expected_calibration_error, {}),
    "equal mass": (expected_calibration_error, {"strategy": "quantile"}),
    "MCE": (maximum_calibration_error, {}),
    "debiased": (debiased_calibration_error, {}),
    "KS": (ks_calibration_error, {}),
    "smooth": (smooth_calibration_error, {}),
    "classwise": (classwise_calibration_error, {}),
}


class Samples(NamedTuple):
    """What a model says, and what is true: (n,) of the positive class, or (n, n_classes)."""

    stated: np.ndarray
    true: np.ndarray
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None


def one_column(
    confidence: Callable, truth: Callable[[np.ndarray], np.ndarray]
) -> Callable[[np.random.Generator, int], Samples]:
    def draw(rng: np.random.Generator, n: int) -> Samples:
        stated = confidence(rng, n)
        return Samples(stated, np.clip(truth(stated), 0, 1))

    return draw


def classes(
    n_classes: int, spread: float, temperature: float, *, lead: float = 0.0, weighted: bool = False
) -> Callable[[np.random.Generator, int], Samples]:
    """Return a model whose logits are divided by a temperature: below 1 overconfident."""

    def draw(rng: np.random.Generator, n: int) -> Samples:
        logits = rng.normal(0, spread, (n, n_classes))
        logits[np.arange(n), rng.integers(n_classes, size=n)] += lead
        # Weights that go with the confidence, as those of importance sampling do.
        weight = rng.exponential(0.5 + softmax(logits, axis=1).max(axis=1)) if weighted else None
        return Samples(softmax(logits / temperature, axis=1), softmax(logits, axis=1), weight)

    return draw


def one_bad_class(rng: np.random.Generator, n: int) -> Samples:
    """Fifty classes, of which the most frequent gets 4.5 times its odds."""
    logits = rng.normal(0, 3, (n, 50)) + np.linspace(2, -2, 50)
    return Samples(softmax(logits + 1.5 * np.eye(50)[0], axis=1), softmax(logits, axis=1))


def patients(rng: np.random.Generator, n: int) -> Samples:
    """Ten samples a patient, who is above or below what the model says as a whole."""
    stated = np.clip(rng.beta(2, 3, n), 0.01, 0.99)
    own = np.repeat(rng.normal(0.25, 0.7, n // 10), 10)
    return Samples(stated, expit(logit(stated) + own), None, np.repeat(np.arange(n // 10), 10))


def nearly_sure(rng: np.random.Generator, n: int) -> Samples:
    """Says about 0 or 1, and is wrong somewhat more often than it says."""
    sure = expit(rng.choice([-1.0, 1.0], n) * rng.normal(5.5, 1.0, n))
    return Samples(sure, np.clip(sure, 0.015, 0.985))


def skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    return 0.05 + 0.95 * rng.beta(4, 1.5, n)


REGIMES: dict[str, tuple[int, Callable[[np.random.Generator, int], Samples]]] = {
    "calibrated, 2 classes": (200, one_column(lambda rng, n: rng.beta(1, 2, n), lambda p: p)),
    "nearly sure, 2 classes": (400, nearly_sure),
    "overconfident by .03": (400, one_column(skewed, lambda p: p - 0.03)),
    "wavy": (1500, one_column(skewed, lambda p: p + 0.06 * np.sin(14 * p))),
    "underconfident": (
        500, one_column(lambda rng, n: rng.beta(2, 2, n), lambda p: expit(1.4 * logit(p)))
    ),
    "one bad region": (
        1000, one_column(lambda rng, n: rng.random(n), lambda p: p - 0.25 * (abs(p - 0.75) < 0.05))
    ),
    "calibrated, 5 classes": (2000, classes(5, 1.5, 1.0)),
    "slightly overconfident, 4 classes": (600, classes(4, 1.2, 0.9)),
    "overconfident, 10 classes": (1000, classes(10, 1.5, 0.6)),
    "nearly perfect, 20 classes": (3000, classes(20, 1.0, 0.8, lead=7.0)),
    "100 classes": (10_000, classes(100, 1.8, 0.93)),
    "one bad class of 50": (500, one_bad_class),
    "weights, 6 classes": (1200, classes(6, 1.5, 0.8, weighted=True)),
    "groups of 10": (1500, patients),
}  # fmt: skip


def labels_of(true: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    u = rng.random(len(true))
    if true.ndim == 1:
        return (u < true).astype(int)
    return (u[:, np.newaxis] > np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)


def true_errors(samples: Samples) -> dict[str, float]:
    """Return the errors of a population, from gaps in place of labels."""
    stated, true, weight, _ = samples
    weight = np.ones(len(stated)) if weight is None else weight
    columns, gaps = stated.reshape(len(stated), -1), (stated - true).reshape(len(stated), -1)
    if stated.ndim == 2:
        top = np.arange(len(stated)), stated.argmax(axis=1)
        confidence, gap = stated[top], (stated - true)[top]
    else:
        confidence, gap = stated, stated - true
    equal_width = in_bins(confidence, gap, weight, np.arange(1, N_BINS) / N_BINS)
    order = np.argsort(confidence)
    mass = np.cumsum(weight[order])
    edges = confidence[order][np.searchsorted(mass, np.arange(1, N_BINS) / N_BINS * mass[-1])]
    places = GridPlaces.of(confidence, count_grid_steps(None))
    by_class = [
        in_bins(column, gap_k, weight, np.arange(1, N_BINS) / N_BINS)
        for column, gap_k in zip(columns.T, gaps.T)
    ]
    return {
        "ECE": equal_width[0],
        "equal mass": in_bins(confidence, gap, weight, edges)[0],
        "MCE": equal_width[2],
        "debiased": equal_width[1],
        "KS": float(np.abs(np.cumsum((gap * weight)[order])).max() / mass[-1]),
        "smooth": compute_error_of_excess(places.spread(gap * weight) / mass[-1], None),
        "classwise": float(np.mean([error[0] for error in by_class])),
    }


def in_bins(
    confidence: np.ndarray, gap: np.ndarray, weight: np.ndarray, edges: np.ndarray
) -> tuple[float, float, float]:
    """Return the mean, the root of the mean square and the largest gap of the bins."""
    index = np.searchsorted(edges, confidence)
    mass = np.bincount(index, weight, N_BINS)
    # Cells that hold less than one sample in 10 000 are not seen in any draw.
    mean = np.bincount(index, gap * weight, N_BINS) / np.maximum(mass, 1e-300)
    part = mass / mass.sum()
    largest = float(np.abs(mean[part > 1e-4]).max())
    return float(part @ np.abs(mean)), float(np.sqrt(part @ mean**2)), largest


def coverage(regime: str, names: list[str], n_draws: int) -> list[dict[str, object]]:
    n_samples, draw = REGIMES[regime]
    # The population in parts that fit in memory, whose errors differ by far less than an interval.
    population = draw(np.random.default_rng(12345), N_POPULATION)
    truth = true_errors(population)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in names}
    for trial in range(n_draws):
        rng = np.random.default_rng([trial, n_samples])
        samples = draw(rng, n_samples)
        y = labels_of(samples.true, rng)
        given = {"sample_weight": samples.weight}
        given["labels"] = range(2 if samples.stated.ndim == 1 else samples.stated.shape[1])
        for name in names:
            metric, options = METRICS[name]
            ends = calibration_error_interval(
                y, samples.stated, metric=metric, n_resamples=N_RESAMPLES, random_state=trial,
                groups=samples.groups, **given, **options,
            )  # fmt: skip
            found[name].append((metric(y, samples.stated, **given, **options), *ends))
    lines = []
    for name, rows in found.items():
        estimate, low, high = np.array(rows).T
        below, above = truth[name] < low - 1e-9, truth[name] > high + 1e-9
        lines.append({
            "regime": regime, "n": n_samples, "metric": name, "draws": n_draws,
            "truth": truth[name], "mean_error": estimate.mean(),
            "coverage": 1 - (below | above).mean(), "truth_below": below.mean(),
            "truth_above": above.mean(), "width": (high - low).mean(),
            "oracle": float(np.diff(np.quantile(estimate, [0.025, 0.975]))[0]),
            "estimate_outside": ((estimate < low) | (estimate > high)).mean(),
        })  # fmt: skip
    return lines


def mean_log_loss(
    y_true: np.ndarray, y_proba: np.ndarray, *, sample_weight=None, labels=None
) -> float:
    """Return the log-loss of two classes: scikit-learn's, without its checks."""
    of_label = np.where(y_true == 1, y_proba, 1 - y_proba)
    return float(np.average(-np.log(np.maximum(of_label, FLOOR)), weights=sample_weight))


OF_DIFFERENCES = {name: METRICS[name] for name in ("ECE", "debiased", "smooth", "KS")} | {
    "log-loss": (mean_log_loss, {})
}


def by_log_odds(factor: float, plus: float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
    return lambda true: expit(factor * logit(true) + plus)


def anything(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(0.01, 0.99, n)


def rare(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return probabilities of which the mean is .03."""
    return expit(rng.normal(-4.5, 1.5, n))


# Two models of the same samples, whose labels have the probabilities that the third draws. Of the
# two that are as good in log-loss, the shift of the second is found from that of the first.
PAIRS: dict[str, tuple[int, Callable, Callable, Callable]] = {
    "calibrated and overconfident": (500, lambda t: t, lambda t: t**1.3, anything),
    "both off, one by more": (1000, lambda t: t**1.4, lambda t: t**1.8, anything),
    "opposite": (800, by_log_odds(1.3), by_log_odds(1 / 1.5), anything),
    "both slightly overconfident": (2000, by_log_odds(1.1), by_log_odds(1.25), anything),
    "equally off, other samples": (
        1000, lambda t: np.clip(t + 0.06, 0, 1), lambda t: np.clip(t - 0.06, 0, 1), anything
    ),
    "both calibrated": (600, lambda t: t, lambda t: np.full_like(t, 0.5), anything),
    **{
        f"rare, {what}, {n}": (n, first, second, rare)
        for n in (50, 200)
        for what, first, second in [
            ("calibrated and overconfident", by_log_odds(1.0), by_log_odds(1.5)),
            ("calibrated and twice the odds", by_log_odds(1.0), by_log_odds(1.0, np.log(2))),
            ("as good in log-loss", by_log_odds(1.0, 0.8), by_log_odds(1.0, -1.013)),
        ]
    },
}  # fmt: skip


def expected_log_loss(stated: np.ndarray, true: np.ndarray) -> float:
    loss = [-np.log(np.maximum(p, FLOOR)) for p in (stated, 1 - stated)]
    return float(np.mean(true * loss[0] + (1 - true) * loss[1]))


def difference_coverage(pair: str, n_draws: int) -> list[dict[str, object]]:
    """Return how often `compare_calibration` holds the true difference of two models."""
    n_samples, *stated, population = PAIRS[pair]
    many = population(np.random.default_rng(1), N_POPULATION)
    truth = [
        true_errors(Samples(model(many), many))
        | {"log-loss": expected_log_loss(model(many), many)}
        for model in stated
    ]
    held: dict[str, list[tuple[float, float]]] = {name: [] for name in OF_DIFFERENCES}
    for trial in range(n_draws):
        rng = np.random.default_rng([trial, n_samples])
        true = population(rng, n_samples)
        y = (rng.random(n_samples) < true).astype(int)
        models = {str(k): model(true) for k, model in enumerate(stated)}
        for name in OF_DIFFERENCES:
            metric, options = OF_DIFFERENCES[name]
            table = compare_calibration(
                y, models, metric=metric, n_resamples=N_RESAMPLES, random_state=trial,
                labels=[0, 1], **options,
            )  # fmt: skip
            held[name].append((table["difference_low"][1], table["difference_high"][1]))
    lines = []
    for name, rows in held.items():
        low, high = np.array(rows).T
        difference = truth[1][name] - truth[0][name]
        inside = (low - 1e-9 <= difference) & (difference <= high + 1e-9)
        lines.append({
            "regime": pair, "n": n_samples, "metric": name, "draws": n_draws,
            "truth": difference, "coverage": inside.mean(), "width": (high - low).mean(),
            "found": ((low > 0) | (high < 0)).mean(),
        })  # fmt: skip
    return lines


def table_of_differences(lines: list[dict]) -> str:
    """Return the table of the user guide: how often intervals hold the true difference."""
    metrics = [name for name in OF_DIFFERENCES if name != "log-loss"]
    by_key = {(r["regime"], r["metric"]): r for r in lines}
    rows = [
        (
            _without_size(pair),
            str(PAIRS[pair][0]),
            *(shown(by_key[pair, m]["coverage"], 2) for m in metrics),
            shown(by_key[pair, "ECE"]["truth"] + 0.0, 3),
            shown(by_key[pair, "ECE"]["width"], 3),
        )
        for pair in PAIRS
    ]
    return simple_table(("models", "samples", *metrics, "true difference", "width"), rows)


def _without_size(pair: str) -> str:
    return pair.removesuffix(f", {PAIRS[pair][0]}")


def table_of_log_losses(lines: list[dict]) -> str:
    """Return the table of the user guide of differences of two log-losses."""
    keys = ("coverage", 2), ("width", 3), ("truth", 3), ("found", 2)
    rows = [
        (
            _without_size(line["regime"]),
            str(line["n"]),
            *(shown(line[key] + 0.0, n) for key, n in keys),
        )
        for line in lines
        if line["metric"] == "log-loss"
    ]
    head = "models", "samples", "held", "width", "true difference", "found"
    return simple_table(head, rows)


def table_of_widths(lines: list[dict]) -> str:
    """Return the table of the user guide: how wide the intervals are beside those of an oracle."""
    by_key = {(r["regime"], r["metric"]): r for r in lines}
    rows = []
    for regime in REGIMES:
        ece, *_ = of_regime = [by_key[regime, metric] for metric in METRICS]
        ratios = (shown(r["width"] / r["oracle"], 1) for r in of_regime)
        rows.append((regime, str(ece["n"]), *ratios, shown(ece["width"], 3)))
    return simple_table(("model", "samples", *METRICS, "width, ECE"), rows)


def text_of_widths(lines: list[dict]) -> str:
    """Return what the user guide says of these widths: where the aim is met, and where not."""
    ratios: dict[str, dict[str, float]] = {metric: {} for metric in METRICS}
    for line in lines:
        # As the table shows it.
        ratios[line["metric"]][line["regime"]] = round(line["width"] / line["oracle"], 1)
    met = {metric: [r for r, ratio in of.items() if ratio <= AIM] for metric, of in ratios.items()}
    counts = [f"{len(names)} ({metric})" for metric, names in met.items()]
    ece = sorted(ratios["ECE"].items(), key=lambda pair: -pair[1])
    quoted, least = [f'"{name}"' for name in met["ECE"]], ece[-len(met["ECE"]) - 1][1]
    largest, which = max((r, (m, of)) for m, each in ratios.items() for of, r in each.items())
    return (
        f"The aim is at most {AIM} times the oracle's width. Of the {len(REGIMES)} regimes it is "
        f"met in {', '.join(counts[:-1])} and {counts[-1]}. For the ECE these are "
        f"{', '.join(quoted[:-1])} and {quoted[-1]}; elsewhere it takes {least} "
        f'to {ece[0][1]} times, most for "{ece[0][0]}". Farthest from the aim is the {which[0]} '
        f'error for "{which[1]}", {largest} times.'
    )


def guide_table(lines: list[dict]) -> str:
    """Return the table of the user guide: how often the intervals hold the truth."""
    by_key = {(r["regime"], r["metric"]): r for r in lines}
    rows = []
    for regime in REGIMES:
        of_regime = [by_key[regime, metric] for metric in METRICS]
        ece = of_regime[0]
        ends = shown(ece["truth"], 3), shown(ece["mean_error"], 3)
        rows.append((regime, str(ece["n"]), *(shown(r["coverage"], 2) for r in of_regime), *ends))
    return simple_table(("model", "samples", *METRICS, "true ECE", "mean ECE"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--metrics", nargs="+", default=list(METRICS), choices=list(METRICS))
    parser.add_argument("--regimes", nargs="+", default=list(REGIMES))
    parser.add_argument("--out", type=Path, help="JSON of all lines, written as they come")
    parser.add_argument("--differences", action="store_true", help="of compare_calibration")
    arguments = parser.parse_args()
    lines: Any = (coverage(name, arguments.metrics, arguments.draws) for name in arguments.regimes)
    if arguments.differences:
        lines = (difference_coverage(pair, arguments.draws) for pair in PAIRS)
    keep(chain.from_iterable(lines), arguments.out)


if __name__ == "__main__":
    main()
