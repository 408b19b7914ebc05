"""What becomes of every promise where samples repeat, belong together, have weights or were used.

    python -m benchmarks.dependence [--draws 60] [--out FILE]

Two classes in three features; the probability of the second is known, so that every promise can be
checked on 20 000 fresh samples. Samples of a group have nearly equal features and labels of
correlation 1/2. `told` says whether `groups` were passed; equal rows of X need not be told where X
is at hand. Weights are those of a survey, which do not depend on the samples, or inverse
probabilities to be sampled, which are larger for certain samples. "Sums" are those of a
:class:`~skcalib.metrics.CalibrationAccumulator` for each third of the samples, merged, where
weights have another unit in each. benchmarks/dependence_results.json holds the table of the user
guide.
"""

import warnings
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from benchmarks._tables import shown, simple_table, study
from skcalib.difficulty import KNNScorer, NoveltyDetector
from skcalib.metrics import (
    CalibrationAccumulator,
    CalibrationMonitor,
    calibration_error_interval,
    calibration_test,
    expected_calibration_error,
)
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.selection import SelectiveClassifier
from skcalib.utils import SkcalibWarning

RISK = DELTA = 0.1
# Number of groups and of samples in each; copies are equal rows with equal labels.
LAYOUTS = {
    "600 alone": (600, 1),
    "60 groups of 10": (60, 10),
    "200 groups of 5": (200, 5),
    "300 rows, twice": (300, 2),
    "600 with weights": (600, 1),
    "600, inverse probabilities": (600, 1),
    "600, two decimals": (600, 1),
    "600, seen by the model": (600, 1),
    "600, seen by its calibrator": (600, 1),
}
# The largest share of draws, or of samples, in which a promise may be broken.
LIMITS = {
    "answers, frozen": DELTA,
    "answers": DELTA,
    "test": 0.05,
    "interval": 0.05,
    "sums": 0.05,
    "monitor": 0.05,
    "false alarms": 0.05,
}
# Promises that take weights, and those that probabilities of a given model can be made for.
WEIGHTED = ("test", "interval", "sums")
OF_SEEN = ("answers, frozen", "interval", "sums")
# Those that can be passed groups.
GROUPED = ("answers, frozen", "answers", "test", "interval", "false alarms")


class Sample(NamedTuple):
    """Features, labels, the group of every sample, and weights or None."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    weight: np.ndarray | None


def draw(rng: np.random.Generator, layout: str) -> Sample:
    n_groups, n_each = LAYOUTS[layout]
    groups = np.repeat(np.arange(n_groups), n_each)
    center = rng.normal(size=(n_groups, 3))
    weight = None
    if layout.endswith("inverse probabilities"):
        # Uncertain samples are drawn up to 20 times as often, as where experts look at them.
        many = rng.normal(size=(20 * n_groups, 3))
        rate = 1 / (1 + 19 * np.abs(2 * expit(3 * many[:, 0]) - 1))
        rows = rng.choice(len(many), n_groups, p=rate / rate.sum())
        center, weight = many[rows], 1 / rate[rows]
    own, of_group = rng.uniform(size=len(groups)), rng.uniform(size=n_groups)[groups]
    if layout == "300 rows, twice":
        X, u = center[groups], of_group
    else:
        X = center[groups] + 0.05 * rng.normal(size=(len(groups), 3)) * (n_each > 1)
        u = np.where(rng.uniform(size=len(groups)) < np.sqrt(0.5), of_group, own)
    if layout.endswith("with weights"):
        weight = rng.lognormal(sigma=1.0, size=len(groups))
    return Sample(X, (u < expit(3 * X[:, 0])).astype(int), groups, weight)


class WithDecimals(LogisticRegression):
    """A model whose probabilities are written with two decimals."""

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.round(super().predict_proba(X), 2)


class Overconfident(LogisticRegression):
    """A fitted model whose log-odds are 5 in the first feature, where 3 are right."""

    slope = 5.0

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        proba = expit(self.slope * X[:, 0])
        return np.column_stack([1 - proba, proba])


class Promises:
    """Every promise: a sample in, how often it was broken out."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        X, y, _, _ = draw(rng, "600 alone")
        self.models = {kind: kind().fit(X, y) for kind in (LogisticRegression, WithDecimals)}
        self.overconfident = Overconfident().fit(X, y)
        self.fresh = rng.normal(size=(20_000, 3))
        self.truth = expit(3 * self.fresh[:, 0])
        self.labels = rng.uniform(size=(50, 20_000)) < self.truth
        predicted = self.overconfident.predict_proba(self.fresh)[:, 1]
        self.errors = {
            decimals: self.error_of(predicted if decimals is None else predicted.round(decimals))
            for decimals in (None, 2)
        }

    def error_of(self, predicted: np.ndarray) -> float:
        """Return the true error of probabilities of the fresh samples."""
        return expected_calibration_error(
            self.labels.ravel(), np.tile(predicted, len(self.labels))
        )

    def broken(
        self, promise: str, layout: str, sample: Sample, told: bool, seed: int
    ) -> tuple[float, float]:
        """Return how far the promise was broken, and the share of samples that are answered."""
        given = sample.groups if told else None
        kind = WithDecimals if layout.endswith("decimals") else LogisticRegression
        model = self.models[kind]
        if "seen" in layout:
            model = self.model_that_saw(sample, layout)
        if promise.startswith("answers"):
            return self.answers(kind() if promise == "answers" else FrozenEstimator(model),
                                sample, given)  # fmt: skip
        if promise == "false alarms":
            detector = NoveltyDetector(KNNScorer()).fit(sample.X, groups=given)
            return float((detector.predict(self.fresh) < 0).mean()), np.nan
        decimals = 2 if layout.endswith("decimals") else None
        if promise in ("test", "monitor"):
            predicted = expit(3 * sample.X[:, 0])
            predicted = predicted if decimals is None else predicted.round(decimals)
            return self.rejects(promise, sample, predicted, given, seed), np.nan
        if "seen" in layout:
            predicted = model.predict_proba(sample.X)[:, 1]
            error = self.error_of(model.predict_proba(self.fresh)[:, 1])
        else:
            predicted = self.overconfident.predict_proba(sample.X)[:, 1]
            predicted = predicted if decimals is None else predicted.round(decimals)
            error = self.errors[decimals]
        low, high = self.ends(promise, sample, predicted, given, seed)
        return float(not low <= error <= high), np.nan

    def model_that_saw(self, sample: Sample, layout: str) -> object:
        """Return a model that was fitted, or calibrated, on the samples themselves."""
        if layout.endswith("its calibrator"):
            frozen = FrozenEstimator(self.overconfident)
            return PostHocCalibratedClassifier(frozen, "isotonic").fit(sample.X, sample.y)
        return KNeighborsClassifier(5).fit(sample.X, sample.y)

    def rejects(
        self, promise: str, sample: Sample, predicted: np.ndarray, groups: object, seed: int
    ) -> float:
        """Return whether a calibrated model is rejected."""
        if promise == "test":
            options = {"groups": groups, "sample_weight": sample.weight, "random_state": seed}
            found = calibration_test(sample.y, predicted, n_resamples=99, **options)
            return float(found.pvalue <= 0.05)
        monitor = CalibrationMonitor(0.05, labels=[0, 1])
        for rows in np.array_split(np.arange(len(predicted)), 6):
            monitor.update(sample.y[rows], predicted[rows])
        return float(monitor.alarm_ is not None)

    def ends(
        self, promise: str, sample: Sample, predicted: np.ndarray, groups: object, seed: int
    ) -> tuple[float, float]:
        """Return the interval of the error, of the samples or of merged sums."""
        options = {"n_resamples": 200, "random_state": seed}
        if promise == "interval":
            return calibration_error_interval(
                sample.y, predicted, groups=groups, sample_weight=sample.weight, **options
            )
        total = CalibrationAccumulator()
        for part, rows in enumerate(np.array_split(np.arange(len(predicted)), 3)):
            weight = None if sample.weight is None else (1 + part) * sample.weight[rows]
            total += CalibrationAccumulator().update(
                sample.y[rows], predicted[rows], sample_weight=weight
            )
        return total.interval(**options)

    def answers(self, model: object, sample: Sample, groups: object) -> tuple[float, float]:
        fitted = SelectiveClassifier(model, risk=RISK, confidence_level=1 - DELTA)
        fitted.fit(sample.X, sample.y, groups=groups)
        accepted = fitted.accept(self.fresh)
        says = fitted.estimator_.predict(self.fresh)
        error = np.where(says == 1, 1 - self.truth, self.truth)
        exceeded = accepted.any() and error[accepted].mean() > RISK
        return float(exceeded), float(accepted.mean())


def cases() -> Iterator[tuple[str, str, bool]]:
    """Yield every promise, layout, and whether the groups are passed on."""
    for promise, layout, told in product(LIMITS, LAYOUTS, (False, True)):
        if told and (LAYOUTS[layout][1] == 1 or promise not in GROUPED):
            continue
        if ("weights" in layout or "inverse" in layout) and promise not in WEIGHTED:
            continue  # refused: by the binomial test, by the scorer, and by the e-value
        if "seen" in layout and promise not in OF_SEEN:
            continue  # models of folds, and a calibrated model, have seen nothing
        if "decimals" in layout and promise == "false alarms":
            continue  # of novel inputs: there are no probabilities
        yield promise, layout, told


def records(draws: int) -> Iterator[dict]:
    """Yield a row for every promise, layout, and whether the groups were told."""
    warnings.simplefilter("ignore", SkcalibWarning)
    promises = Promises()
    for promise, layout, told in cases():
        rng = np.random.default_rng(1)
        found = [
            promises.broken(promise, layout, draw(rng, layout), told, seed)
            for seed in range(draws)
        ]
        broken, answered = np.array(found, dtype=float).T
        yield {
            "promise": promise, "layout": layout, "told": told, "limit": LIMITS[promise],
            "broken": float(broken.mean()), "se": float(broken.std() / np.sqrt(draws)),
            "coverage": float(answered.mean()) if promise.startswith("answers") else None,
            "draws": draws,
        }  # fmt: skip


def guide_table(results: list[dict]) -> str:
    """Return the table of the user guide: how often every promise was broken, groups told."""
    rows = [["limit", *(shown(limit, 2) for limit in LIMITS.values())]]
    for layout in LAYOUTS:
        cells = [layout]
        for promise in LIMITS:
            found = {
                row["told"]: row["broken"]
                for row in results
                if (row["promise"], row["layout"]) == (promise, layout)
            }
            texts = [shown(found[told], 2) for told in sorted(found)]
            cells.append(" / ".join(texts) or _why_not(promise, layout))
        rows.append(cells)
    return simple_table(("samples", *LIMITS), rows)


def _why_not(promise: str, layout: str) -> str:
    return "refused" if "weights" in layout or "inverse" in layout else "-"


if __name__ == "__main__":
    study(__doc__, records, draws=60)
