"""Labels that are opinions: soft labels, wrong test labels, proxy labels with checks.

    python -m benchmarks.opinions --data ../shared/data [--draws 400] [--part proxy]

Writes benchmarks/opinions_results.json, of one part or of all, and the tables of the guide.
"""

import argparse
import json
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import softmax
from scipy.stats import t

from benchmarks._tables import shown, simple_table
from skcalib.labels import LabelIssueFinder
from skcalib.metrics import (
    calibration_error_interval,
    expected_calibration_error,
    prediction_powered_interval,
)
from skcalib.posthoc import TemperatureScaling
from skcalib.selection._risk_control import control_risk

RESULTS = Path(__file__).with_name("opinions_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/opinions.inc"
N_PICTURES, N_CHECKS, DELTA = 4000, 100, 0.1
METRICS = ("accuracy", "overconfidence", "brier", "log_loss")
CHEAP = {"nearly right": 0.005, "good": 0.05, "fair": 0.2, "useless": 1.0, "inverted": None}


def pictures(data):
    """Probabilities of a strong and a small model, one true label, and soft labels."""
    counts = np.load(data / "cifar10h.npz")["counts"]
    strong = np.load(data / "cifar10_test_pred_probs.npz")
    small = np.load(data / "cifar10_resnet20_logits.npz")
    proba = strong["proba"].astype(float)
    return (
        {
            "strong": proba / proba.sum(axis=1, keepdims=True),
            "ResNet-20": softmax(small["logits"].astype(float), axis=1),
        },
        strong["y"],
        counts / counts.sum(axis=1, keepdims=True),
    )


def people(data, n_draws):
    """Yield errors and temperatures against one label and against people."""
    models, y, soft_labels = pictures(data)
    for name, proba in models.items():
        for truth, labels in (("one label", y), ("people", soft_labels)):
            errors, temperatures = [], []
            for seed in range(min(n_draws, 20)):
                rows = np.random.default_rng(seed).permutation(len(y))[:N_PICTURES]
                errors.append(expected_calibration_error(labels[rows], proba[rows]))
                scaling = TemperatureScaling(mix_uniform=True, input="proba").fit(
                    proba[rows], labels[rows]
                )
                temperatures.append(scaling.temperature_)
            yield {
                "model": name, "labels of": truth, "draws": len(errors),
                "error": np.mean(errors), "temperature": np.mean(temperatures),
            }  # fmt: skip


def sets_with_wrong_labels(data, seed):
    """Yield name, true and given labels, evaluated probabilities, and those of base models."""
    models, y, soft_labels = pictures(data)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:N_PICTURES]
    y, soft_labels = y[rows], soft_labels[rows]
    one = (soft_labels.cumsum(axis=1) < rng.uniform(size=(N_PICTURES, 1))).sum(axis=1).clip(max=9)
    flipped = np.where(
        rng.uniform(size=N_PICTURES) < 0.1, (y + rng.integers(1, 10, N_PICTURES)) % 10, y
    )
    base_models = {"strong": models["strong"][rows]}
    for name, proba in models.items():
        base_models[name] = proba[rows]  # what the evaluated model knows counts as well
        yield f"pictures, {name}: one person", y, one, proba[rows], dict(base_models)
        yield f"pictures, {name}: 10 % random", y, flipped, proba[rows], dict(base_models)
    texts = np.load(data / "crowd_texts.npz")
    for k in (1, 4, 9):
        gold = texts[f"texts{k}_gold"]
        known = gold >= 0
        proba = texts[f"texts{k}_proba"][known].astype(float)
        proba /= proba.sum(axis=1, keepdims=True)
        yield f"texts {k}: crowd", gold[known], texts[f"texts{k}_crowd"][known], proba, proba


def error_with_interval(finder, proba):
    """Return the error under the finder's labels, and its interval, widened by the rate's."""
    error = expected_calibration_error(finder.label_proba_, proba)
    low, high = calibration_error_interval(
        finder.label_proba_, proba, n_resamples=200, random_state=0
    )
    least, most = finder.noise_rate_interval_
    rate = finder.noise_rate_
    return error, max(low - max(rate - least, 0), 0), high + max(most - rate, 0)


def without_noise(labels, proba):
    """Return the L2 error without what chance adds: the variance of the mean of labels in a bin.

    Probabilities of labels are no draws, so that they add nothing.
    """
    top, confidence = proba.argmax(axis=1), proba.max(axis=1)
    rows = np.arange(len(proba))
    right = labels[rows, top] if np.ndim(labels) == 2 else 1.0 * (labels == top)
    place, total = np.ceil(15 * confidence).astype(int), 0.0
    for own in (place == k for k in np.unique(place)):
        if own.sum() > 1:
            gap, chance = (right - confidence)[own], 0.0 if np.ndim(labels) == 2 else 1.0
            of_chance = chance * right[own].var(ddof=1) / own.sum()
            total += own.mean() * (gap.mean() ** 2 - of_chance)
    return np.sqrt(max(total, 0.0))


def wrong_labels(data, n_draws):
    """Yield how far the calibration error is off, under given labels and under those of a finder.

    Before and after checks, a draw by design where the finder has one.
    """
    found = {}
    for seed in range(min(n_draws, 10)):
        for name, y, given, proba, base_models in sets_with_wrong_labels(data, seed):
            true = expected_calibration_error(y, proba)
            now = expected_calibration_error(given, proba)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                finder = LabelIssueFinder("precomputed").fit(base_models, given)
                before = expected_calibration_error(finder.label_proba_, proba)
                rows = finder.draw_samples_to_check(
                    N_CHECKS, design="informative", random_state=seed
                )
                after, low, high = error_with_interval(
                    finder.update_with_checks(rows, y[rows]), proba
                )
            row = [
                np.mean(y != given), true, abs(now - true), abs(before - true),
                abs(after - true), low <= true <= high,
                *(abs(without_noise(labels, proba) - without_noise(y, proba))
                  for labels in (given, finder.label_proba_)),
            ]  # fmt: skip
            found.setdefault(name, []).append(row)
            print(name, seed, np.round(row, 4), flush=True)
    names = (
        "wrong", "error", "given", "finder", "checked", "held", "given_alone", "checked_alone"
    )  # fmt: skip
    for name, rows in found.items():
        yield {"set": name, "draws": len(rows)} | dict(zip(names, np.mean(rows, axis=0).tolist()))


def losses(y, proba, metric):
    """What the metrics are means of."""
    correct = proba.argmax(axis=1) == y
    return {
        "accuracy": 1.0 * correct,
        "overconfidence": proba.max(axis=1) - correct,
        "brier": ((proba - np.eye(proba.shape[1])[y]) ** 2).sum(axis=1),
        "log_loss": -np.log(np.maximum(proba[np.arange(len(y)), y], 1e-16)),
    }[metric]


def draw_proxy_labels(kind, y, proba, rng):
    if kind == "inverted":  # wrong exactly where the model is right
        top = proba.argmax(axis=1)
        return np.where(top == y, (top + rng.integers(1, 10, len(y))) % 10, top)
    anew = rng.uniform(size=len(y)) < CHEAP[kind]
    return np.where(anew, rng.integers(0, 10, len(y)), y)


def draw(design, y_proxy, proba, m, rng):
    """Return positions, and how likely every sample was to be drawn, None if all are alike."""
    n = len(proba)
    if design == "uniform":
        return rng.choice(n, m, replace=False), None
    # Three times as often where proxy label and model differ.
    chance = np.where(y_proxy != proba.argmax(axis=1), 3.0, 1.0)
    chance *= m / chance.sum()
    order = rng.permutation(n)
    place = np.searchsorted(chance[order].cumsum(), rng.uniform() + np.arange(m), side="right")
    return order[place.clip(max=n - 1)], chance


def alone(values, chance, groups, n):
    """Return the ends of Student's interval of the checked samples alone."""
    m = len(values)
    fraction = np.full(m, 1 / m) if chance is None else 1 / chance / (1 / chance).sum()
    unseen = np.full(m, 1 - m / n) if chance is None else 1 - chance
    center = fraction @ values
    parts = fraction * (values - center)
    parts = np.sqrt(unseen) * (parts - unseen @ parts / unseen.sum())
    if groups is not None:
        parts = np.bincount(np.unique(groups, return_inverse=True)[1], parts)
    m = len(parts)
    half = t.isf(0.025, m - 1) * np.sqrt(m / (m - 1) * (parts @ parts))
    return center - half, center + half


def proxy(data, n_draws):
    """Yield how often intervals hold, and their width beside that of the checks alone."""
    models, y, _ = pictures(data)
    for design in ("uniform", "by design", "groups"):
        for kind in CHEAP:
            found = {metric: [] for metric in METRICS}
            for seed in range(n_draws):
                rng = np.random.default_rng([seed, 1])
                rows = rng.permutation(len(y))[:3000]
                truth, proba = y[rows], models["ResNet-20"][rows]
                y_proxy, groups = draw_proxy_labels(kind, truth, proba, rng), None
                if design == "groups":  # ten pictures of one class, drawn together
                    order = np.lexsort((rng.uniform(size=3000), truth))
                    truth, proba, y_proxy = truth[order], proba[order], y_proxy[order]
                    groups = np.arange(3000) // 10
                    drawn = rng.choice(300, 30, replace=False)
                    checked, chance = np.flatnonzero(np.isin(groups, drawn)), None
                else:
                    checked, chance = draw(design, y_proxy, proba, 150, rng)
                for metric in METRICS:
                    values = losses(truth, proba, metric)
                    low, high = prediction_powered_interval(
                        truth[checked], proba, y_proxy, checked=checked, metric=metric,
                        inclusion_proba=chance, groups=groups, labels=range(10),
                    )  # fmt: skip
                    of_checked = None if chance is None else chance[checked]
                    together = None if groups is None else groups[checked]
                    ends = alone(values[checked], of_checked, together, 3000)
                    found[metric].append(
                        (holds(low, high, values), high - low, holds(*ends, values),
                         ends[1] - ends[0])
                    )  # fmt: skip
            for metric, values in found.items():
                held, width, held_alone, other = np.mean(values, axis=0)
                yield {
                    "checks": design, "proxy labels": kind, "metric": metric, "draws": n_draws,
                    "held": held, "width": width, "alone held": held_alone,
                    "of alone": width / other,
                }  # fmt: skip


def holds(low, high, values):
    return low - 1e-9 <= values.mean() <= high + 1e-9


def given_labels(data, n_draws):
    """Yield the same with labels that people gave as the proxies, and checks at random."""
    for name, y, given, proba, _ in sets_with_wrong_labels(data, 0):
        if "random" in name:
            continue
        m = 150 if len(y) > 1000 else 100
        for metric in METRICS:
            values, rows = losses(y, proba, metric), []
            for seed in range(n_draws):
                checked = np.random.default_rng([seed, 2]).choice(len(y), m, replace=False)
                low, high = prediction_powered_interval(
                    y[checked],
                    proba,
                    given,
                    checked=checked,
                    metric=metric,
                    labels=range(proba.shape[1]),
                )
                ends = alone(values[checked], None, None, len(y))
                rows.append((holds(low, high, values), high - low, ends[1] - ends[0]))
            held, width, other = np.mean(rows, axis=0)
            yield {
                "set": name, "samples": len(y), "checks": m, "metric": metric, "draws": n_draws,
                "held": held, "width": width, "of alone": width / other,
            }  # fmt: skip


def declining(data, n_draws):
    """Yield how often more people disagree than promised, and how many samples are answered.

    Once by soft labels, and once by a label that is drawn from them.
    """
    models, _, soft_labels = pictures(data)
    for name, proba in models.items():
        confidence = proba.max(axis=1)
        agree = soft_labels[np.arange(len(proba)), proba.argmax(axis=1)]
        for risk, n in product((0.05, 0.1), (200, 500)):
            rng, found = np.random.default_rng(5), []
            for _ in range(min(n_draws, 300)):
                rows = rng.integers(0, len(proba), n)
                one = rng.uniform(size=n) < agree[rows]
                for right in (agree[rows], one):
                    kept = control_risk(confidence[rows], right, risk=risk, delta=DELTA)
                    above = confidence > kept.threshold
                    found += [above.any() and 1 - agree[above].mean() > risk, above.mean()]
            broken, answered, one_broken, one_answered = np.reshape(found, (-1, 4)).mean(axis=0)
            yield {
                "model": name, "risk": risk, "samples": n, "draws": min(n_draws, 300),
                "exceeded": broken, "answered": answered,
                "one label exceeded": one_broken, "one label answered": one_answered,
            }  # fmt: skip


PARTS = {
    "people": people,
    "declining": declining,
    "wrong_labels": wrong_labels,
    "given_labels": given_labels,
    "proxy": proxy,
}


def page(results):
    """Return the tables of the guide."""
    tables = []
    head = ("model", "labels of", "draws", "calibration error", "temperature")
    rows = [
        (row["model"], row["labels of"], str(row["draws"]), shown(row["error"], 3),
         shown(row["temperature"], 2))
        for row in results["people"]
    ]  # fmt: skip
    tables.append((PEOPLE, simple_table(head, rows)))
    head = ("model", "risk", "samples", "draws", "exceeded", "answered", "one label", "answered")
    rows = [
        (row["model"], shown(row["risk"], 2), str(row["samples"]), str(row["draws"]),
         *(shown(row[key], 3) for key in list(row)[4:]))
        for row in results["declining"]
    ]  # fmt: skip
    tables.append((DECLINING, simple_table(head, rows)))
    head = (
        "labels", "draws", "wrong", "true error", "given", "finder", "checked", "holds",
        "given, L2", "checked, L2",
    )  # fmt: skip
    rows = [
        (row["set"], str(row["draws"]), *(shown(row[key], 3) for key in list(row)[2:]))
        for row in results["wrong_labels"]
    ]
    tables.append((WRONG, simple_table(head, rows)))
    head = ("labels", "samples", "checks", "metric", "draws", "holds", "width", "width of theirs")
    rows = [
        (row["set"], str(row["samples"]), str(row["checks"]), row["metric"], str(row["draws"]),
         shown(row["held"], 3), shown(row["width"], 3), shown(row["of alone"], 2))
        for row in results["given_labels"]
    ]  # fmt: skip
    tables.append((GIVEN, simple_table(head, rows)))
    head = (
        "checks", "proxy labels", "metric", "draws", "holds", "width", "checks alone hold",
        "width of theirs",
    )  # fmt: skip
    rows = [
        (row["checks"], row["proxy labels"], row["metric"], str(row["draws"]),
         shown(row["held"], 3), shown(row["width"], 3), shown(row["alone held"], 3),
         shown(row["of alone"], 2))
        for row in results["proxy"]
    ]  # fmt: skip
    tables.append((PROXY, simple_table(head, rows)))
    return "\n".join(f"{text}\n{table}\n" for text, table in tables)


PEOPLE = """\
People against one label
------------------------

Draws of 4000 of the 10 000 pictures of CIFAR-10H, each labeled by about 50 people: the calibration
error of the top label, and the temperature that is fitted.
"""
DECLINING = """\
Declining, by soft labels
-------------------------

A limit on the people who disagree with an answer, kept with probability .9: how often more of them
do, among all 10 000 pictures, and how many pictures are answered. The threshold is found on some
of the pictures, by their soft labels, and by one label a picture that is drawn from them.
"""
WRONG = """\
Wrong test labels
-----------------

How far the calibration error is off, on average: under the labels as given, under the
probabilities of a finder, and under these after 100 checks that the finder drew by its design.
Pictures carry the answer of one person or random errors, and the base models are the strong model
and the evaluated one; texts carry the label of a crowd, with the evaluated model as the only one.
"Holds" is how often the interval after the checks holds the true error, widened by how far the
interval of the rate of wrong labels reaches. The last two columns compare errors without what
chance adds: the root of the mean squared difference in a bin less the variance of the mean of
labels that are drawn.
"""
GIVEN = """\
Labels that people gave, with checks
------------------------------------

The same sets without any finder: intervals of 95 % from the given labels and checks at random.
The last column compares the width with that of the checked samples alone.
"""
PROXY = """\
Proxy labels with checks
------------------------

Intervals of 95 % of a ResNet-20's accuracy, overconfidence, Brier score and log-loss on 3000
pictures, 150 of them checked: drawn at random, three times as often where proxy label and model
differ, or in 30 groups of ten pictures of one class. Of good, fair and useless proxy labels 5, 20
and 100 % are drawn anew; inverted ones are wrong exactly where the model is right. Beside them
stand Student's intervals of the checked samples alone, and the ratio of the widths.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the real data")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--part", choices=list(PARTS), help="one part alone; others stay")
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for part in [given.part] if given.part else PARTS:
        results[part] = []
        for row in PARTS[part](given.data, given.draws):
            row = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
            results[part].append(row)
            print(row, flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if set(results) == set(PARTS):
        PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
