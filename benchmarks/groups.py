"""Groups that a model is off for: one map for all, GroupwiseCalibration, a map for each group.

    python -m benchmarks.groups [--data DIR] [--draws 20]

Simulated: 2 classes, the last group off by .15 (as far as probabilities go), by a slope of .5 or
not at all; the mean log-loss beyond that of the true probabilities, of the last group and of the
others, and by how much the mean probability of the last group is off. Real: models that do not see
a feature, whose quarters are the groups, and the same samples in random groups. Writes
benchmarks/groups_results.json and the tables of the guide; without --data the simulation alone.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.naive_bayes import GaussianNB

from benchmarks._tables import shown, simple_table
from skcalib.posthoc import GroupwiseCalibration, StructuredVectorScaling

RESULTS = Path(__file__).with_name("groups_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/groups.inc"
SIZES = {
    "100 of 2000": [1900, 100],
    "100 of 2000, 20 groups": [100] * 20,
    "30 of 630, 21 groups": [30] * 21,
    "1000 of 2000": [1000, 1000],
}
FAULTS = ("off by .15", "slope .5", "none")
MODELS = {
    "naive Bayes": GaussianNB(var_smoothing=1e-3),
    "boosting": HistGradientBoostingClassifier(max_iter=40, random_state=0),
}
METHODS = ("one", "groupwise", "each")


def three_ways(scores, y, groups, new, new_groups, form):
    """Return the probabilities of new scores by each of the METHODS, fitted on the others."""
    k = y.max() + 1 if scores.ndim == 1 else scores.shape[1]
    given = {"input": form, "classes": list(range(k))}
    model = GroupwiseCalibration(StructuredVectorScaling(mix_uniform=True), **given).fit(
        scores, y, by=groups
    )
    one = model.predict_proba(new)
    each = one.copy()
    for group in np.unique(groups):
        rows, of_group = groups == group, new_groups == group
        alone = StructuredVectorScaling(mix_uniform=True, **given).fit(scores[rows], y[rows])
        each[of_group] = alone.predict_proba(new[of_group])
    return dict(zip(METHODS, (one, model.predict_proba(new, by=new_groups), each)))


def simulated(sizes, fault, seed, n_new=20_000):
    """Return of every method the excess of the last group, of the others, and the last's gap."""
    rng, n = np.random.default_rng(seed), sum(sizes)
    groups = np.append(np.repeat(np.arange(len(sizes)), sizes), rng.choice(len(sizes), n_new))
    logits, last = 1.5 * rng.normal(size=n + n_new) - 0.5, groups == len(sizes) - 1
    truth = expit(np.where(last & (fault == "slope .5"), logits / 2, logits))
    if fault == "off by .15":
        truth = np.where(last, np.clip(truth - 0.15, 0.01, 0.99), truth)
    y = (rng.random(n + n_new) < truth).astype(int)
    ways = three_ways(logits[:n], y[:n], groups[:n], logits[n:], groups[n:], "logits")
    truth, last, rows = truth[n:], last[n:], {}
    for name, proba in ways.items():
        p = np.clip(proba[:, 1], 1e-9, 1 - 1e-9)
        excess = truth * np.log(truth / p) + (1 - truth) * np.log((1 - truth) / (1 - p))
        gap = abs((p - truth)[last].mean())
        rows[name] = [float(v) for v in (excess[last].mean(), excess[~last].mean(), gap)]
    return rows


def real_sets(folder):
    """Yield name, features, labels and the column that the model does not see."""
    yield "digits", *datasets.load_digits(return_X_y=True), 28
    yield "cancer", *datasets.load_breast_cancer(return_X_y=True), 0
    with np.load(folder / "human_labels.npz") as data:
        for name in ("phoneme", "segment", "music"):
            yield name, data[f"{name}_X"], data[f"{name}_true"], 0


def real(folder, n_draws):
    for name, X, y, hidden in real_sets(folder):
        y = np.unique(y, return_inverse=True)[1]
        quarters = np.searchsorted(np.quantile(X[:, hidden], [0.25, 0.5, 0.75]), X[:, hidden])
        X = np.delete(X, hidden, axis=1)
        for model_name, model in MODELS.items():
            losses = {"quarters": [], "random groups": []}
            for draw in range(n_draws):
                rng = np.random.default_rng(draw)
                order, n_train = rng.permutation(len(y)), min(400, len(y) // 4)
                train, fit, new = np.split(order[:2400], [n_train, 3 * n_train])
                if len(np.unique(y[train])) <= y.max():
                    continue
                proba = model.fit(X[train], y[train]).predict_proba(X)
                for kind, groups in (
                    ("quarters", quarters), ("random groups", rng.integers(0, 4, len(y)))
                ):  # fmt: skip
                    ways = three_ways(
                        proba[fit], y[fit], groups[fit], proba[new], groups[new], "proba"
                    )
                    of_label = [p[np.arange(len(new)), y[new]] for p in ways.values()]
                    losses[kind].append(-np.log(np.maximum(of_label, 1e-12)).mean(axis=1))
            for kind, values in losses.items():
                row = dict(zip(METHODS, np.mean(values, axis=0).tolist()))
                yield {"set": name, "model": model_name, "groups": kind, "n": len(fit), **row}


def page(results):
    rows = [
        (f"{sizes}, {fault}", name, *(shown(value, 4) for value in values[name]))
        for sizes, fault, values in results["simulated"]
        for name in METHODS
    ]
    head = ("last group of, its fault", "map", "excess of the last", "of the others", "gap")
    first = simple_table(head, rows)
    rows = [
        (
            f"{r['set']}, {r['model']}, {r['groups']}",
            shown(r["one"], 3),
            *(shown(r[name] - r["one"], 3, "+") for name in METHODS[1:]),
        )
        for r in results["real"]
    ]
    return f"{first}\n\n.. real\n\n" + simple_table(("data", "one map", *METHODS[1:]), rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=20)
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"real": []}
    results["simulated"] = []
    for sizes, numbers in SIZES.items():
        for fault in FAULTS:
            draws = [simulated(numbers, fault, seed) for seed in range(arguments.draws)]
            means = {name: np.mean([d[name] for d in draws], axis=0).tolist() for name in METHODS}
            results["simulated"].append([sizes, fault, means])
    if arguments.data is not None:
        results["real"] = list(real(arguments.data, arguments.draws))
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
