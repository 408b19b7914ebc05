"""Calibrated probabilities of models trained with class weights or on resampled rows.

    python -m benchmarks.rare_classes

A positive class of .5 to 20 % of the samples. Models are trained on 3000 rows, with balanced
weights, on rows of which the rare class was drawn more often or the common one less often, or as
they are; calibrators get 2000 other rows. The probability of every sample is known: the log-loss
is the expected one of 4000 more, and "mean / rate" the mean probability of these over the
frequency among the rows of the calibrator, of which there may be four; "mean / true" is that over
the mean of the true probabilities. "auto" is compared with scikit-learn's sigmoid,
isotonic and temperature scaling, and with itself without a rule.
benchmarks/rare_classes_results.json holds the tables of the user guide.
"""

import json
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

from benchmarks._ablation import Rule, switched_off
from benchmarks._tables import keep, shown, simple_table
from skcalib.posthoc import PostHocCalibratedClassifier

RESULTS = Path(__file__).with_name("rare_classes_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/rare_classes.inc"
RATES, N_TRAIN, N_FIT, N_TEST = (0.005, 0.02, 0.05, 0.2), 3000, 2000, 4000
DRAWS = 2
AUTO, PLAIN = "auto", ("sigmoid", "isotonic", "temperature")
STACKED = "skcalib.posthoc._stacking."
RULES = [
    Rule(
        "INTERCEPT_SPREADS",
        "intercepts at the end (here none)",
        {STACKED + "INTERCEPT_SPREADS": ()},
    ),
    Rule(
        "LEAST_POSTERIOR",
        "spreads that are left out (here none)",
        {STACKED + "LEAST_POSTERIOR": 0.0},
    ),
]


def smooth(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal features, and log-odds that are nearly linear in them."""
    X = rng.normal(size=(n, 8))
    return X, X @ (0.7 * rng.normal(size=8)) + 0.4 * X[:, 0] * X[:, 1]


def clustered(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features of four clusters with heavy tails, and log-odds that are not linear."""
    cluster = rng.integers(0, 4, n)
    X = 1.5 * rng.normal(size=(4, 12))[cluster] + rng.standard_t(4, size=(n, 12))
    z = np.array([-1.0, 0.0, 1.5, 2.5])[cluster] + 0.8 * np.abs(X[:, 3]) - 0.5 * X[:, 5]
    return X, z + np.sin(2 * X[:, 7])


POPULATIONS = {"smooth": smooth, "clustered": clustered}


def draw(
    population: str, rate: float, n: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, labels and probabilities, whose mean is the rate."""
    rng = np.random.default_rng([seed, list(POPULATIONS).index(population), round(1e4 * rate)])
    X, z = POPULATIONS[population](rng, n)
    proba = expit(z + brentq(lambda shift: expit(z + shift).mean() - rate, -40, 40))
    return X, (rng.random(n) < proba).astype(int), proba


def balanced(y: np.ndarray) -> np.ndarray:
    return np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean()))


def under(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows of the rare class, and as many of the other."""
    rare, other = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    rows = np.concatenate([rare, np.random.default_rng(0).permutation(other)[: len(rare)]])
    return X[rows], y[rows]


def over(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows of the common class, and as many of the rare one, drawn again."""
    rare, other = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    rows = np.concatenate([np.random.default_rng(0).choice(rare, len(other)), other])
    return X[rows], y[rows]


def _forest() -> RandomForestClassifier:
    return RandomForestClassifier(40, min_samples_leaf=5, random_state=0)


def _boosting() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(max_iter=40, random_state=0)


MODELS = {
    "regression, as it is": lambda X, y: LogisticRegression().fit(X, y),
    "regression, weights": lambda X, y: LogisticRegression(class_weight="balanced").fit(X, y),
    "regression, undersampled": lambda X, y: LogisticRegression().fit(*under(X, y)),
    "forest, weights": lambda X, y: _forest().set_params(class_weight="balanced").fit(X, y),
    "forest, oversampled": lambda X, y: _forest().fit(*over(X, y)),
    "boosting, weights": lambda X, y: _boosting().fit(X, y, sample_weight=balanced(y)),
    "boosting, undersampled": lambda X, y: _boosting().fit(*under(X, y)),
    "SGDClassifier, weights": lambda X, y: SGDClassifier(
        class_weight="balanced", random_state=0
    ).fit(X, y),
    "LinearSVC, weights": lambda X, y: LinearSVC(class_weight="balanced").fit(X, y),
}


def calibrated(name: str, model: Any) -> Any:
    frozen = FrozenEstimator(model)
    if name in PLAIN:
        return CalibratedClassifierCV(frozen, method=name)
    return PostHocCalibratedClassifier(frozen)


def rows() -> Iterator[dict[str, Any]]:
    """Yield a row for every population, rate, model and calibrator."""
    warnings.simplefilter("ignore")
    versions: dict[str, Rule | None] = dict.fromkeys((AUTO, *PLAIN))
    versions |= {f"without {rule.name}": rule for rule in RULES}
    ends = np.cumsum([N_TRAIN, N_FIT, N_TEST])
    for population, rate, seed in product(POPULATIONS, RATES, range(DRAWS)):
        X, y, proba = draw(population, rate, int(ends[-1]), seed)
        train, fit, test = np.split(np.arange(len(y)), ends[:-1])
        for name, train_model in MODELS.items():
            model = train_model(X[train], y[train])
            row = {"population": population, "rate": rate, "draw": seed, "model": name}
            for version, rule in versions.items():
                with switched_off(rule):
                    fitted = calibrated(version, model).fit(X[fit], y[fit])
                q = np.clip(fitted.predict_proba(X[test])[:, 1].astype(float), 1e-6, 1 - 1e-6)
                p = proba[test]
                loss = -(p * np.log(q) + (1 - p) * np.log1p(-q)).mean()
                yield row | {
                    "calibrator": version,
                    "ratio": float(q.mean() / y[fit].mean()),
                    "of_true": float(q.mean() / p.mean()),
                    "log_loss": float(loss),
                }


def _values(results: list[dict], model: str | None, calibrator: str, of: str) -> np.ndarray:
    return np.array(
        [
            row[of]
            for row in results
            if row["calibrator"] == calibrator and model in (None, row["model"])
        ]
    )


def page(results: list[dict]) -> str:
    """Return the tables of the user guide."""
    names = (AUTO, *PLAIN)
    ratios, trues, losses = [], [], []
    for title, model in [*((model, model) for model in MODELS), ("all", None)]:
        found = {name: _values(results, model, name, "ratio") for name in names}
        ratios.append(
            [title, *(f"{np.median(found[n]):.2f}, {found[n].max():.2f}" for n in names)]
        )
        found = {name: _values(results, model, name, "of_true") for name in names}
        trues.append([title, *(f"{found[n].min():.2f}, {found[n].max():.2f}" for n in names)])
        found = {name: _values(results, model, name, "log_loss") for name in names}
        above = [found[name] - found["sigmoid"] for name in names if name != "sigmoid"]
        losses.append(
            [title, shown(found["sigmoid"].mean(), 4)]
            + [f"{shown(d.mean(), 4, '+')}, {shown(d.max(), 4, '+')}" for d in above]
        )
    rules = []
    for rule in RULES:
        name = f"without {rule.name}"
        rise = _values(results, None, name, "log_loss") - _values(results, None, AUTO, "log_loss")
        ratio = _values(results, None, name, "ratio")
        means = f"{np.median(ratio):.2f}, {ratio.max():.2f}"
        costs = f"{shown(rise.mean(), 4, '+')}, {shown(rise.max(), 4, '+')}"
        rules.append([rule.name, rule.decides, means, costs])
    others = [name for name in names if name != "sigmoid"]
    heads = (
        ("mean / rate: median, largest", *names),
        ("mean / true: least, largest", *names),
        ("log-loss: mean, largest", "sigmoid", *(f"{name} - sigmoid" for name in others)),
        ("without", "decides", "mean / rate", "log-loss - auto's"),
    )
    tables = (
        simple_table(head, cells) for head, cells in zip(heads, (ratios, trues, losses, rules))
    )
    return "\n\n".join(tables) + "\n"


def main() -> None:
    keep(rows(), RESULTS)
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
