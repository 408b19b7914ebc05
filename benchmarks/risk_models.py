"""Validation of risk models by simulation: coverage, power, and numbers of samples.

    python -m benchmarks.risk_models [--trials 400] [--studies 200]

Risk models with normal log-odds; the outcomes of a patient's visits come from correlated normal
numbers. How often 95 % intervals of ``validation_summary`` and ``decision_curve`` hold the value
of 200 000 samples, setting after setting, and how often that of the slope ends below 1. Then the
numbers of ``samples_for_validation`` beside the formulas of Riley and others (Statistics in
Medicine 2021), and how often new studies of that size reach the aim. Writes
benchmarks/risk_models_results.json and the tables of the guide; it takes ten minutes on one core.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm

from benchmarks._tables import shown, simple_table
from skcalib.metrics import decision_curve, samples_for_validation, validation_summary

RESULTS = Path(__file__).with_name("risk_models_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/risk_models.inc"
N_TRUTH = 200_000
THRESHOLDS = np.arange(2, 61, 2) / 100
STATISTICS = {
    "O/E ratio": "O/E",
    "calibration in the large": "in the large",
    "slope": "slope",
    "ICI": "ICI",
    "E90": "E90",
    "scaled Brier score": "scaled Brier",
    "AUROC": "AUROC",
}


class Setting(NamedTuple):
    """Patients with `visits` each; a given center and slope of the true log-odds."""

    patients: int
    visits: int
    alike: float
    rate: float
    slope: float = 1.0
    shift: float = 0.0
    weights: float = 0.0

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        group = np.repeat(np.arange(self.patients), self.visits)
        n = len(group)
        score = np.sqrt(0.7) * rng.normal(size=self.patients)[group]
        score += np.sqrt(0.3) * rng.normal(size=n) + logit(self.rate)
        latent = np.sqrt(self.alike) * rng.normal(size=self.patients)[group]
        latent += np.sqrt(1 - self.alike) * rng.normal(size=n)
        risk = expit(self.shift + self.slope * score)
        weight = np.exp(self.weights * rng.normal(size=n))
        event = (norm.cdf(latent) < risk).astype(float)
        return {"risk": risk, "event": event, "p": expit(score), "group": group, "weight": weight}

    def truth(self) -> dict[str, float | np.ndarray]:
        """Return the values of a large sample whose outcomes are the risks themselves."""
        many = self._replace(patients=N_TRUTH, visits=1, weights=0.0)
        drawn = many.draw(np.random.default_rng(99))
        p, risk = drawn["p"], drawn["risk"]
        soft = np.column_stack([1 - risk, risk])
        table = validation_summary(soft, p, n_resamples=1, random_state=0)
        found = dict(zip(table["statistic"].tolist(), table["value"].tolist()))
        gap = np.abs(p - risk)
        found |= {"ICI": float(gap.mean()), "E90": float(np.quantile(gap, 0.9))}
        odds = THRESHOLDS / (1 - THRESHOLDS)
        curve = [np.mean((p >= t) * (risk - (1 - risk) * o)) for t, o in zip(THRESHOLDS, odds)]
        return found | {"curve": np.array(curve)}


SETTINGS = {
    "calibrated": Setting(600, 1, 0.0, 0.14),
    "calibrated, visits": Setting(150, 4, 0.5, 0.14),
    "slope .7": Setting(600, 1, 0.0, 0.14, slope=0.7),
    "slope .7, visits": Setting(150, 4, 0.5, 0.14, slope=0.7),
    "slope .7, common": Setting(600, 1, 0.0, 0.3, slope=0.7),
    "too high": Setting(600, 1, 0.0, 0.14, shift=-0.5),
    "few events": Setting(300, 1, 0.0, 0.08),
    "two visits": Setting(250, 2, 0.5, 0.14),
    "rare, visits": Setting(400, 3, 0.3, 0.03),
    "weights": Setting(600, 1, 0.0, 0.14, weights=1.0),
}


def plain_interval(event: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """Return the slope's interval by a logistic regression of independent samples."""
    x, theta = np.column_stack([np.ones(len(p)), logit(p)]), np.array([0.0, 1.0])
    for _ in range(25):
        q = expit(x @ theta)
        covariance = np.linalg.inv((x * (q * (1 - q))[:, np.newaxis]).T @ x)
        theta = theta + covariance @ (x.T @ (event - q))
    reach = norm.ppf(0.975) * np.sqrt(covariance[1, 1])
    return float(theta[1] - reach), float(theta[1] + reach)


def trial(setting: Setting, truth: dict, seed: int) -> dict[str, float]:
    """Return what holds: intervals of statistics, of the curve at thresholds, and its band."""
    drawn = setting.draw(np.random.default_rng(seed))
    given = {"groups": drawn["group"], "random_state": seed, "n_resamples": 199}
    if setting.weights:
        given["sample_weight"] = drawn["weight"]
    table = validation_summary(drawn["event"], drawn["p"], **given)
    rows = {row["statistic"]: row for row in table}
    found = {
        short: float(rows[name]["low"] <= truth[name] <= rows[name]["high"])
        for name, short in STATISTICS.items()
    }
    low, high = plain_interval(drawn["event"], drawn["p"])
    found["slope, plain"] = float(low <= truth["slope"] <= high)
    curve = decision_curve(drawn["event"], drawn["p"], thresholds=THRESHOLDS, **given)
    points = (curve["low"] <= truth["curve"]) & (truth["curve"] <= curve["high"])
    whole = np.all((curve["band_low"] <= truth["curve"]) & (truth["curve"] <= curve["band_high"]))
    return {"events": drawn["event"].sum(), "slope below 1": float(rows["slope"]["high"] < 1)} | (
        found | {"net benefit": points.mean(), "band": float(whole)}
    )


def coverage(n_trials: int) -> Iterator[dict]:
    """Yield how often the intervals hold in every setting."""
    for name, setting in SETTINGS.items():
        truth = setting.truth()
        trials = [trial(setting, truth, seed) for seed in range(n_trials)]
        line = {"model": name, "samples": setting.patients * setting.visits, "trials": n_trials}
        yield line | {key: float(np.mean([t[key] for t in trials])) for key in trials[0]}


class Study(NamedTuple):
    """A model whose log-odds are normal, and the wanted widths of its intervals."""

    rate: float
    spread: float
    width: float

    def score(self, size: int = 20_000) -> np.ndarray:
        """Return log-odds at equally likely quantiles."""
        normal = norm.ppf((np.arange(size) + 0.5) / size)
        center = brentq(lambda a: expit(a + self.spread * normal).mean() - self.rate, -30, 30)
        return center + self.spread * normal


STUDIES = [
    Study(0.05, 1.0, 0.4),
    Study(0.14, 0.7, 0.4),
    Study(0.14, 1.5, 0.3),
    Study(0.3, 1.0, 0.2),
]


def area_of(score: np.ndarray) -> float:
    """Return the area under the ROC curve of a calibrated model; scores increase."""
    p = expit(score)
    below = np.cumsum(1 - p) - (1 - p) / 2
    return float(p @ below / (p.sum() * (1 - p).sum()))


def samples_by_formula(statistic: str, rate: float, score: np.ndarray, width: float) -> float:
    """Return the number for which the expected 95 % interval has this width, by Riley's formulas.

    `rate` is the outcome's frequency, and `score` the log-odds of the model's predictions. O/E has
    its interval on the logarithmic scale; the error of an area is that of Newcombe 2006.
    """
    reach = norm.ppf(0.975)
    if statistic == "o_e_ratio":
        error = np.arcsinh(width / 2) / reach
        return (1 - rate) / (rate * error**2)
    error = width / (2 * reach)
    if statistic == "slope":
        curvature = expit(score) * expit(-score)
        a, b, c = (np.mean(curvature * score**k) for k in range(3))
        return a / (error**2 * (a * c - b**2))
    area = area_of(score)

    def excess(log_n: float) -> float:
        n = np.exp(log_n)
        parts = 1 + (n / 2 - 1) * (1 - area) / (2 - area) + (n / 2 - 1) * area / (1 + area)
        variance = area * (1 - area) * parts / (n**2 * rate * (1 - rate))
        return float(np.sqrt(variance) - error)

    return float(np.exp(brentq(excess, 1, 20)))


def reached(score: np.ndarray, statistic: int, target: float, n: int, trials: int) -> float:
    """Return how often the interval of a new study is no wider than the target."""
    rng, hits = np.random.default_rng(7), 0
    for _ in range(trials):
        p = expit(rng.choice(score, n))
        table = validation_summary(rng.random(n) < p, p, n_resamples=1, random_state=0)
        hits += table["high"][statistic] - table["low"][statistic] <= target
    return hits / trials


def found(score: np.ndarray, slope: float, n: int, trials: int) -> float:
    """Return how often the interval of the slope of a new study excludes 1."""
    rng, hits = np.random.default_rng(8), 0
    mean = expit(score).mean()
    shift = brentq(lambda a: expit(a + slope * score).mean() - mean, -30, 30)
    for _ in range(trials):
        z = rng.choice(score, n)
        y = rng.random(n) < expit(shift + slope * z)
        row = validation_summary(y, expit(z), n_resamples=1, random_state=0)[2]
        hits += row["high"] < 1
    return hits / trials


PLACES = {"o_e_ratio": 0, "slope": 2, "auroc": 8}


def sizes(trials: int) -> Iterator[dict]:
    """Yield numbers of samples beside those of the formulas, and how often the aim is reached."""
    for study in STUDIES:
        score = study.score()
        area = area_of(score)
        widths = {"o_e_ratio": study.width, "slope": study.width, "auroc": study.width / 4}
        table = samples_for_validation(
            expit(score), width=widths, detect={"slope": 0.7}, random_state=0
        )
        for row in table:
            name, n, target = str(row["statistic"]), int(row["n_samples"]), float(row["target"])
            line = {"rate": study.rate, "area": area, "statistic": name, "aim": str(row["aim"])}
            line |= {"target": target, "samples": n}
            if row["aim"] == "width":
                formula = samples_by_formula(name, study.rate, score, target)
                line |= {"formula": formula, "ratio": n / formula}
                line["reached"] = reached(score, PLACES[name], target, n, trials)
            else:
                line |= {"formula": None, "ratio": None}
                line["reached"] = found(score, target, n, trials)
            yield line


INTRODUCTION = """\
How often 95 % intervals of :func:`~skcalib.metrics.validation_summary` and
:func:`~skcalib.metrics.decision_curve` hold the true value, with standard errors of .011 in 400
draws and .015 in 200 (``python -m benchmarks.risk_models``). The log-odds are normal with
standard deviation 1, and the event rate is 14 %, 30 % ("common"), 8 % ("few events") or 3 %
("rare"). Outcomes of a patient's visits have correlations of .3 ("rare, visits") or .5; "weights"
vary by a factor of 2.7. "Net benefit" is the mean over thresholds of 2 to 60 %, "band" the band
over all of them, and "slope, plain" the interval of a logistic regression that knows neither
patients nor weights. The last column is how often the interval of the slope ends below 1:
"""
SIZES = """\
The numbers of :func:`~skcalib.metrics.samples_for_validation` for a width that is reached with
probability .9, beside those of Riley and others' formulas for the expected width, and how often
{trials} new studies of that size are as narrow. "Finds .7": the interval of the slope excludes 1
where the slope is .7, with probability .9:
"""


def coverage_table(rows: list[dict]) -> str:
    columns = [*STATISTICS.values(), "net benefit", "band"]
    columns.insert(columns.index("slope") + 1, "slope, plain")
    head = ["model", "draws", "samples", "events", *columns, "slope below 1"]
    body = [
        [row["model"], str(row["trials"]), str(row["samples"]), f"{row['events']:.0f}"]
        + [shown(row[name], 3) for name in [*columns, "slope below 1"]]
        for row in rows
    ]
    return simple_table(head, body)


def sizes_table(rows: list[dict]) -> str:
    names = {"o_e_ratio": "O/E", "slope": "slope", "auroc": "AUROC"}
    head = ["aim", "rate", "AUROC", "formula", "samples", "ratio", "reached"]
    body = []
    for row in rows:
        verb = "width" if row["aim"] == "width" else "finds"
        cells = [f"{names[row['statistic']]}, {verb} {shown(row['target'], 3).rstrip('0')}"]
        cells += [shown(row["rate"], 2), shown(row["area"], 2)]
        cells.append("-" if row["formula"] is None else f"{row['formula']:.0f}")
        cells.append(str(row["samples"]))
        cells.append("-" if row["ratio"] is None else f"{row['ratio']:.2f}".lstrip("0"))
        body.append([*cells, shown(row["reached"], 2)])
    return simple_table(head, body)


def page(results: dict) -> str:
    sizes_text = SIZES.format(trials=results["studies"])
    tables = coverage_table(results["coverage"]), sizes_table(results["sizes"])
    return f"{INTRODUCTION}\n{tables[0]}\n\n{sizes_text}\n{tables[1]}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400, help="of every setting")
    parser.add_argument("--studies", type=int, default=200, help="of every number of samples")
    given = parser.parse_args()
    results = {"coverage": [], "studies": given.studies, "sizes": []}
    for key, rows in (("sizes", sizes(given.studies)), ("coverage", coverage(given.trials))):
        for row in rows:
            results[key].append(
                {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
            )
            print(results[key][-1], flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
