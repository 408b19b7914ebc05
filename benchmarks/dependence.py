"""What becomes of every promise where samples repeat, belong together or have weights.

    python -m benchmarks.dependence [--draws 60] [--out FILE]

Two classes in three features; the probability of the second is known, so that every promise can be
checked on 20 000 fresh samples. Samples of a group have nearly equal features and labels of
correlation 1/2. `told` says whether `groups` were passed; equal rows of X need not be told where X
is at hand. benchmarks/dependence_results.json holds the table of the user guide.
"""

import warnings
from collections.abc import Iterator
from itertools import product

import numpy as np
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from benchmarks._tables import shown, simple_table, study
from skcalib.difficulty import KNNScorer, NoveltyDetector
from skcalib.metrics import (
    calibration_error_interval,
    calibration_test,
    expected_calibration_error,
)
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
}
# The largest share of draws, or of samples, in which a promise may be broken.
LIMITS = {
    "answers, frozen": DELTA,
    "answers": DELTA,
    "test": 0.05,
    "interval": 0.05,
    "false alarms": 0.05,
}

Sample = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]


def draw(rng: np.random.Generator, layout: str) -> Sample:
    """Return X, y, the group of every sample, and weights or None."""
    n_groups, n_each = LAYOUTS[layout]
    groups = np.repeat(np.arange(n_groups), n_each)
    center = rng.normal(size=(n_groups, 3))
    own, of_group = rng.uniform(size=len(groups)), rng.uniform(size=n_groups)[groups]
    if layout == "300 rows, twice":
        X, u = center[groups], of_group
    else:
        X = center[groups] + 0.05 * rng.normal(size=(len(groups), 3)) * (n_each > 1)
        u = np.where(rng.uniform(size=len(groups)) < np.sqrt(0.5), of_group, own)
    weight = rng.lognormal(sigma=1.0, size=len(groups)) if layout.endswith("weights") else None
    return X, (u < expit(3 * X[:, 0])).astype(int), groups, weight


class Promises:
    """Every promise: a sample in, how often it was broken out."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        X, y, _, _ = draw(rng, "600 alone")
        self.model = LogisticRegression().fit(X, y)
        self.fresh = rng.normal(size=(20_000, 3))
        self.truth = expit(3 * self.fresh[:, 0])
        stated = self.overconfident(self.fresh)
        labels = rng.uniform(size=(50, 20_000)) < self.truth
        self.error = expected_calibration_error(labels.ravel(), np.tile(stated, 50))

    @staticmethod
    def overconfident(X: np.ndarray) -> np.ndarray:
        return expit(5 * X[:, 0])

    def broken(self, promise: str, sample: Sample, told: bool, seed: int) -> tuple[float, float]:
        """Return how far the promise was broken, and the share of samples that are answered."""
        X, y, groups, weight = sample
        given = groups if told else None
        if promise.startswith("answers"):
            return self.answers(promise, X, y, given)
        if promise == "false alarms":
            detector = NoveltyDetector(KNNScorer()).fit(X, groups=given)
            return float((detector.predict(self.fresh) < 0).mean()), np.nan
        options = {"groups": given, "sample_weight": weight, "random_state": seed}
        if promise == "test":
            stated = expit(3 * X[:, 0])
            return float(calibration_test(y, stated, n_resamples=99, **options).pvalue <= 0.05), 1
        stated = self.overconfident(X)
        low, high = calibration_error_interval(y, stated, n_resamples=200, **options)
        return float(not low <= self.error <= high), np.nan

    def answers(
        self, promise: str, X: np.ndarray, y: np.ndarray, groups: np.ndarray | None
    ) -> tuple[float, float]:
        model = LogisticRegression() if promise == "answers" else FrozenEstimator(self.model)
        fitted = SelectiveClassifier(model, risk=RISK, confidence_level=1 - DELTA)
        fitted.fit(X, y, groups=groups)
        accepted = fitted.accept(self.fresh)
        says = fitted.estimator_.predict(self.fresh)
        error = np.where(says == 1, 1 - self.truth, self.truth)
        exceeded = accepted.any() and error[accepted].mean() > RISK
        return float(exceeded), float(accepted.mean())


def records(draws: int) -> Iterator[dict]:
    """Yield a row for every promise, layout, and whether the groups were told."""
    warnings.simplefilter("ignore", SkcalibWarning)
    promises = Promises()
    for promise, layout, told in product(LIMITS, LAYOUTS, (False, True)):
        if told and LAYOUTS[layout][1] == 1:
            continue
        if layout.endswith("weights") and promise not in ("test", "interval"):
            continue  # refused: by the binomial test, and by the scorer
        rng = np.random.default_rng(1)
        found = [promises.broken(promise, draw(rng, layout), told, seed) for seed in range(draws)]
        broken, answered = np.array(found, dtype=float).T
        yield {
            "promise": promise, "layout": layout, "told": told, "limit": LIMITS[promise],
            "broken": float(broken.mean()), "se": float(broken.std() / np.sqrt(draws)),
            "coverage": float(answered.mean()) if promise.startswith("answers") else None,
            "draws": draws,
        }  # fmt: skip


def guide_table(results: list[dict]) -> str:
    """Return the table of the user guide: how often every promise was broken, groups told."""
    rows = []
    for promise, limit in LIMITS.items():
        of_promise = [row for row in results if row["promise"] == promise]
        cells = [promise, shown(limit, 2)]
        for layout in LAYOUTS:
            found = {row["told"]: row["broken"] for row in of_promise if row["layout"] == layout}
            cells.append(" / ".join(shown(found[told], 2) for told in sorted(found)) or "refused")
        rows.append(cells)
    return simple_table(("promise", "limit", *LAYOUTS), rows)


if __name__ == "__main__":
    study(__doc__, records, draws=60)
