"""Coverage of the intervals of ``validation_summary`` and of ``decision_curve`` by simulation.

``python -m benchmarks.risk_models [--out FILE]``. Risk models with normal log-odds; the outcomes
of a patient's visits come from correlated normal numbers. A table of how often 95 % intervals
hold the value of 200 000 samples, setting after setting; it takes hours on one core.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from benchmarks._tables import study
from skcalib.metrics import decision_curve, validation_summary

N_TRIALS = 1000
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
    "too high": Setting(600, 1, 0.0, 0.14, shift=-0.5),
    "few events": Setting(300, 1, 0.0, 0.08),
    "two visits": Setting(250, 2, 0.5, 0.14),
    "rare, visits": Setting(400, 3, 0.3, 0.03),
    "weights": Setting(600, 1, 0.0, 0.14, weights=1.0),
}


def trial(setting: Setting, truth: dict, seed: int) -> tuple[list[bool], np.ndarray, bool, float]:
    """Return which intervals hold: of statistics, at thresholds, of the curve; and the events."""
    drawn = setting.draw(np.random.default_rng(seed))
    given = {"groups": drawn["group"], "random_state": seed, "n_resamples": 199}
    if setting.weights:
        given["sample_weight"] = drawn["weight"]
    table = validation_summary(drawn["event"], drawn["p"], **given)
    holds = {
        row["statistic"]: row["low"] <= truth[row["statistic"]] <= row["high"] for row in table
    }
    curve = decision_curve(drawn["event"], drawn["p"], thresholds=THRESHOLDS, **given)
    points = (curve["low"] <= truth["curve"]) & (truth["curve"] <= curve["high"])
    whole = np.all((curve["band_low"] <= truth["curve"]) & (truth["curve"] <= curve["band_high"]))
    return [holds[name] for name in STATISTICS], points, bool(whole), drawn["event"].sum()


def coverage() -> Iterator[dict]:
    """Yield how often the intervals hold in every setting."""
    for name, setting in SETTINGS.items():
        truth = setting.truth()
        trials = [trial(setting, truth, seed) for seed in range(N_TRIALS)]
        holds, points, whole, events = (np.mean(part, axis=0) for part in zip(*trials))
        line = {"model": name, "samples": setting.patients * setting.visits}
        line |= {"events": float(events)}
        line |= dict(zip(STATISTICS.values(), holds.tolist()))
        yield line | {
            "net benefit": float(points.mean()),
            "lowest": float(points.min()),
            "band": float(whole),
        }


if __name__ == "__main__":
    study(__doc__, coverage)
