"""What every constant of a calibrator is worth: ``python -m benchmarks.calibrator_ablations``.

Every rule is switched off alone, as in `benchmarks.ablations`. --studies measures some of them:

- calibrators: "auto", fitted on 20, 60 and 200 scores of the sets of `benchmarks.kept_sets`. "few"
  is the log-loss with 20 and 60 samples, "many" with 200; "harm" is how much log-loss it costs
  with few where it is worse than no calibration, and "lost" the accuracy lost there. Sets "kept
  out" did not choose the second sample of the prior.
- prior shift: `PriorShift` with 50 and 1000 unlabeled samples, given the frequencies of labels or
  training scores; what it changes in log-loss without a shift and with one, and how much of that
  is harm. The models of `benchmarks.prior_shift` chose the constants, `kept_sets` did not.
- groups: `GroupwiseCalibration` on the simulations of `benchmarks.groups`, the log-loss beyond
  that of the true probabilities, of the last group, which may be off, and of the others.
"""

import argparse
import json
from functools import cache
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np

from benchmarks import ablations, groups, prior_shift
from benchmarks._ablation import Loss, Rule, Study
from benchmarks.ablations import measured
from benchmarks.calibrator_choice import finite, ours, stated
from benchmarks.kept_sets import kept_sets
from benchmarks.papers.tables import csv_table
from skcalib.posthoc import PriorShift, StackedCalibration, StructuredMatrixScaling

RESULTS = Path(__file__).with_name("calibrator_ablations_results.json")
PAGE = Path(__file__).parents[1] / "docs" / "measured" / "calibrator_ablations.inc"
SIZES = {20: 2, 60: 2, 200: 1}
FEW = 100
HERE = "benchmarks.calibrator_ablations."
STACKED = "skcalib.posthoc._stacking."
STRICT = StructuredMatrixScaling


@cache
def sets():
    return list(kept_sets())


# A map that the stack does without.
LEFT_OUT = None


class Stack(StackedCalibration):
    def _candidates(self, scores):
        found = super()._candidates(scores)
        return {name: candidate for name, candidate in found.items() if name != LEFT_OUT}


def losses(folder):
    for found in sets():
        proba, k = stated(found), stated(found).shape[1]
        values = {"few": [], "many": [], "harm": [], "lost": []}
        for n, n_draws in SIZES.items():
            for draw in range(n_draws if k <= n <= 0.7 * len(found.y) else 0):
                order = np.random.default_rng([draw, n, 7]).permutation(len(found.y))
                fit, test = order[:n], order[n:][-1000:]
                if len(np.unique(found.y[fit])) < 2:
                    continue
                y, rows = found.y[test], np.arange(len(test))
                said = finite(ours(Stack, found, fit, test, k))
                loss = -np.log(said[rows, y]).mean()
                values["few" if n < FEW else "many"].append(loss)
                if n < FEW:
                    before = finite(proba[test])
                    values["harm"].append(max(0, loss + np.log(before[rows, y]).mean()))
                    right = np.mean(said.argmax(axis=1) == y)
                    lost = np.mean(before.argmax(axis=1) == y) - right
                    values["lost"].append(max(0, lost))
        if values["few"] and values["many"]:
            base = found.name.split(",")[0]
            means = {name: float(np.mean(some)) for name, some in values.items()}
            yield Loss(base, crc32(base.encode()) % 2 == 1, means)


RULES = [
    Rule("second sample", "prior of the first two", {STACKED + "SAMPLES_OF_FIRST": 0.0}),
    Rule("price", "nats until a change is as likely", {STACKED + "PRICE": 0.0}),
    Rule("least weight", "small weights go to the first", {STACKED + "LEAST_WEIGHT": 0.0}),
    Rule("folds", "five or three", {STACKED + "N_FOLDS": 3}),
    Rule("weak ridge", "a tenth of the ridge", {STACKED + "WeakRidgeMatrixScaling": STRICT}),
    Rule(
        "intercepts",
        "a tenth of the ridge, as off the diagonal",
        {"skcalib.posthoc._linear.INTERCEPTS": 1.0},
    ),
    Rule("vector", "whether there is one", {HERE + "LEFT_OUT": "structured_vector"}),
    Rule("matrix", "whether there is one", {HERE + "LEFT_OUT": "structured_matrix"}),
    Rule("isotonic", "whether there is one", {HERE + "LEFT_OUT": "isotonic"}),
]


# Whether the estimate of priors is drawn back to those of training.
DRAWN_BACK = True
SHIFT, GROUPWISE = "skcalib.posthoc._prior_shift.", "skcalib.posthoc._groupwise."


class Shift(PriorShift):
    def _trust(self, proba, weight, before):
        return super()._trust(proba, weight, before) if DRAWN_BACK else 1.0

    def _interval(self, proba, weight, before, priors):
        return np.stack([priors] * 2, axis=1)


@cache
def shifted_cases():
    """Return (base, whether it chose nothing, case of `benchmarks.prior_shift`)."""
    found = [(str(case), False, prior_shift.calibrated(*case)) for case in prior_shift.CASES]
    for one in sets():
        if len(one.y) >= 3500 and one.y.max() < 30:
            found.append((one.name.split(",")[0], True, prior_shift.calibrated_set(one)))
    return found


def losses_of_shifts(folder):
    for base, kept_out, (frequency, proba, y) in shifted_cases():
        before, proba, y = proba[:1500], proba[1500:], y[1500:]
        values = {}
        for shifted, n, draw in product((False, True), (50, 1000), range(2)):
            rng = np.random.default_rng([shifted, n, draw])
            chance = (
                (rng.dirichlet(np.ones(len(frequency))) / frequency)[y] if shifted else 1 + 0 * y
            )
            new, judged = np.split(rng.choice(len(y), n + 2000, p=chance / chance.sum()), [n])
            for kind, known in (
                ("labels", {"training_priors": frequency}),
                ("scores", {"training_scores": before}),
            ):
                shift = Shift(input="proba", **known).fit(proba[new])
                cost = prior_shift.log_loss(shift.predict_proba(proba[judged]), y[judged])
                cost -= prior_shift.log_loss(proba[judged], y[judged])
                name = f"{kind}, shift" if shifted else f"{kind}, none"
                values.setdefault(name, []).append(cost)
        yield Loss(base, kept_out, {name: float(np.mean(some)) for name, some in values.items()})


SHIFT_RULES = [
    Rule("drawn back", "by what chance explains", {HERE + "DRAWN_BACK": False}),
    Rule("error", "of a model against label frequencies", {SHIFT + "ERROR_OF_FREQUENCIES": 0.0}),
    Rule("5 with scores, too", "pseudo-samples", {SHIFT + "STRENGTH": 5.0}),
    Rule("1 with labels, too", "pseudo-samples", {SHIFT + "STRENGTH_OF_FREQUENCIES": 1.0}),
]


def losses_of_groups(folder):
    for sizes, fault, seed in product(groups.SIZES, groups.FAULTS, range(4)):
        found = groups.simulated(groups.SIZES[sizes], fault, [seed, 1], 4000)["groupwise"]
        last, others, _ = found
        yield Loss(f"{sizes}, {fault}, {seed}", seed > 1, {"last": last, "others": others})


GROUP_RULES = [
    Rule(
        "spreads",
        "how far groups are apart: one, not seven",
        {GROUPWISE + "SPREADS": [(0.5, 0.3)]},
    ),
    Rule("fractions", "of groups that differ: all", {GROUPWISE + "FRACTIONS": np.ones(1)}),
    Rule("none differs", "how likely beforehand: .5", {GROUPWISE + "NONE_DIFFERS": 0.5}),
]
STUDIES = {
    "calibrators": Study(RULES, losses),
    "prior shift": Study(SHIFT_RULES, losses_of_shifts),
    "groups": Study(GROUP_RULES, losses_of_groups),
}


def page(rows):
    others = ablations.page([row for row in rows if row["study"] != "calibrators"])
    stack = of_stack([row for row in rows if row["study"] == "calibrators"])
    return f"{stack}\n.. others\n\n{others}"


def of_stack(rows):
    """Return all figures of the stack; of the other studies the guide has those that stand out."""
    names = ["all_few", "all_many", "all_harm", "all_lost", "kept_out_few", "kept_out_harm"]
    cells = [
        [row["rule"], row["decides"], *("{:+.4f} ± {:.4f}".format(*row[name]) for name in names)]
        for row in rows
        if row["rule"]
    ]
    head = ["Without", "Decides", *(name.replace("_", " ").removeprefix("all ") for name in names)]
    return csv_table("What the loss rises by without it", head, cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", nargs="*", default=list(STUDIES), choices=list(STUDIES))
    studies = {name: STUDIES[name] for name in parser.parse_args().studies}
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    PAGE.write_text(page(measured(Path(), studies, RESULTS, known)))


if __name__ == "__main__":
    main()
