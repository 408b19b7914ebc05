"""Verdicts of the report: no all-clear for a model that is off, no accusation of a calibrated one.

``python -m benchmarks.report_verdicts`` prints how often every verdict is given, by regime, and
writes report_verdicts_results.json. The level of the report is Holm's over everything on the page;
nothing in it was chosen on these draws.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from benchmarks.coverage import labels_of, one_column
from skcalib.report._data import read_data
from skcalib.report._sections import compute_trust as trust
from skcalib.report._tests import summarize_tests as test

RESULTS = Path(__file__).with_name("report_verdicts_results.json")
N_DRAWS, N_CALIBRATED = 20, 100
Draw = tuple[Any, Any, dict[str, Any]]


def predictions(rng: Any, n: int, n_classes: int, scale: float = 2.0) -> tuple[Any, Any]:
    """Return labels drawn from the probabilities, and the probabilities."""
    proba = softmax(scale * rng.normal(size=(n, n_classes)), axis=1)
    return labels_of(proba, rng), proba


def of_two_classes(confidence: Callable, truth: Callable) -> Callable[[Any, int], Draw]:
    draw = one_column(confidence, truth)

    def drawn(rng: Any, n: int) -> Draw:
        samples = draw(rng, n)
        return labels_of(samples.true, rng), samples.stated, {}

    return drawn


def risks(rng: Any, n: int) -> Any:
    return np.clip(rng.gamma(1, 0.04, size=n), 0, 0.49)


off_by_a_tenth = of_two_classes(lambda rng, n: rng.uniform(0.1, 1, size=n), lambda p: p - 0.1)
power_of_said = of_two_classes(lambda rng, n: rng.uniform(size=n), lambda p: p**1.5)
risk_twice_too_high = of_two_classes(risks, lambda p: p / 2)
# Errors of 12 points that cancel on average.
wavy = of_two_classes(
    lambda rng, n: rng.uniform(0.15, 0.85, size=n), lambda p: p + 0.12 * np.sign(np.sin(12 * p))
)


def one_bad_group(rng: Any, n: int, n_classes: int = 2) -> Draw:
    """One group of three is right 12 points less often than it says."""
    y, proba = predictions(rng, n, n_classes)
    groups = rng.integers(3, size=n)
    right = proba.argmax(axis=1) == y
    spoiled = right & (groups == 1) & (rng.uniform(size=n) < 0.12 / right.mean())
    y = np.where(spoiled, (y + rng.integers(1, n_classes, size=n)) % n_classes, y)
    return y, proba, {"groups": {"site": np.array(["a", "b", "c"])[groups]}}


def one_bad_class(rng: Any, n: int) -> Draw:
    """The odds of one class of ten are stated three times too high."""
    y, proba = predictions(rng, n, 10, 3.0)
    proba[:, 3] *= 3
    return y, proba / proba.sum(axis=1, keepdims=True), {}


def one_bad_answer(rng: Any, n: int) -> Draw:
    """Answers of one class of ten are right 15 points less often than they say."""
    y, proba = predictions(rng, n, 10, 3.0)
    answers = proba.argmax(axis=1)
    right = (answers == y) & (answers == 3)
    spoiled = right & (rng.uniform(size=n) < 0.15 / max(right[answers == 3].mean(), 0.2))
    return np.where(spoiled, rng.integers(4, 10, size=n), y), proba, {}


def overconfident(rng: Any, n: int) -> Draw:
    logits = 2 * rng.normal(size=(n, 3))
    return labels_of(softmax(logits, axis=1), rng), softmax(1.5 * logits, axis=1), {}


def forest_of_biopsies(rng: Any, n: int) -> Draw:
    """A real model: three features, 285 samples, groups by the size of the tumor."""
    data = load_breast_cancer()
    X, seed = data.data[:, [1, 4, 8]], int(rng.integers(1000))
    split = train_test_split(X, data.target, data.data[:, 3], test_size=n, random_state=seed)
    X_train, X_test, y_train, y_test, _, area = split
    model = RandomForestClassifier(random_state=seed).fit(X_train, y_train)
    size = np.array(["small", "medium", "large"])[
        np.searchsorted(np.quantile(area, [1 / 3, 2 / 3]), area)
    ]
    return y_test, model.predict_proba(X_test), {"groups": {"size": size}}


def calibrated(rng: Any, n: int, n_classes: int, groups: int = 0, scale: float = 2.0) -> Draw:
    y, proba = predictions(rng, n, n_classes, scale)
    return y, proba, {"groups": {"site": rng.integers(groups, size=n)}} if groups else {}


def calibrated_risk(rng: Any, n: int) -> Draw:
    said = np.clip(rng.gamma(1, 0.02, size=n), 0, 0.9)
    return labels_of(said, rng), said, {"groups": rng.integers(4, size=n)}


FAULTS: dict[str, tuple[Callable[..., Draw], tuple[Any, ...]]] = {
    "off by .1, n = 300": (off_by_a_tenth, (300,)),
    "off by .1, n = 1000": (off_by_a_tenth, (1000,)),
    "says p, is p^1.5, n = 500": (power_of_said, (500,)),
    "risk twice too high, n = 300": (risk_twice_too_high, (300,)),
    "risk twice too high, n = 1000": (risk_twice_too_high, (1000,)),
    "risk twice too high, n = 3000": (risk_twice_too_high, (3000,)),
    "one bad group of three, K = 2, n = 285": (one_bad_group, (285,)),
    "one bad group of three, K = 2, n = 900": (one_bad_group, (900,)),
    "one bad group of three, K = 3, n = 900": (one_bad_group, (900, 3)),
    "one bad group of three, K = 3, n = 3000": (one_bad_group, (3000, 3)),
    "one bad class of ten, n = 1000": (one_bad_class, (1000,)),
    "one bad class of ten, n = 3000": (one_bad_class, (3000,)),
    "one bad answer of ten, n = 1000": (one_bad_answer, (1000,)),
    "one bad answer of ten, n = 3000": (one_bad_answer, (3000,)),
    "overconfident, K = 3, n = 500": (overconfident, (500,)),
    "errors of 12 points that cancel, n = 1000": (wavy, (1000,)),
    "forest of biopsies, n = 285": (forest_of_biopsies, (285,)),
    "n = 2": (calibrated, (2, 2)),
}
CALIBRATED: dict[str, tuple[Callable[..., Draw], tuple[Any, ...]]] = {
    f"calibrated, K = {k}, n = {n}" + (f", {g} groups" if g else ""): (calibrated, (n, k, g))
    for k, n, g in [
        (2, 200, 0),
        (2, 1000, 5),
        (2, 3000, 0),
        (3, 200, 3),
        (3, 1000, 0),
        (3, 3000, 5),
        (10, 300, 0),
        (10, 1000, 3),
        (10, 3000, 0),
    ]
} | {
    "calibrated, unsure, K = 5, n = 500": (calibrated, (500, 5, 0, 0.5)),
    "calibrated, nearly certain, K = 10, n = 1000": (calibrated, (1000, 10, 0, 8.0)),
    "calibrated risk of 2 %, n = 2000, 4 groups": (calibrated_risk, (2000,)),
}


def verdicts(draw: Callable[..., Draw], arguments: tuple[Any, ...], seeds: Any) -> Iterator[str]:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        y, proba, options = draw(rng, *arguments)
        if len(np.shape(proba)) == 2:
            options = {"labels": np.arange(proba.shape[1]), **options}
        # The group tests of the report, without the rest of its page.
        data = read_data(y, proba, labels=options.pop("labels", None), **options)
        yield test(data, trust(data))["summary"]["kind"]


def main(offset: int = 0) -> None:
    """Print and store how often every verdict is given; an offset draws other samples."""
    results = {}
    share = -(-N_CALIBRATED // len(CALIBRATED))
    for regimes, n_draws in ((FAULTS, N_DRAWS), (CALIBRATED, share)):
        for name, (draw, arguments) in regimes.items():
            seeds = np.arange(n_draws) + offset
            results[name] = dict(Counter(verdicts(draw, arguments, seeds)))
            print(f"{name:48} {results[name]}", flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    fine = Counter()
    for name in CALIBRATED:
        fine.update(results[name])
    accused = sum(n for kind, n in fine.items() if kind not in ("calibrated", "undecided"))
    of = f"{accused} of {sum(fine.values())} accused"
    print(f"calibrated models: {of}; all-clear {fine['calibrated']}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
