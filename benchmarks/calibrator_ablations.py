"""What every constant of "auto" is worth: ``python -m benchmarks.calibrator_ablations``.

Every rule is switched off alone, and the stack is fitted again on 20, 60 and 200 scores of the
sets of `benchmarks.kept_sets`, as in `benchmarks.ablations`. "few" is the log-loss with 20 and 60
samples, "many" with 200; "harm" is how much log-loss it costs with few where it is worse than no
calibration, and "lost" the accuracy lost there. Sets "kept out" did not choose the second sample
of the prior.
"""

import json
import warnings
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np

from benchmarks.ablations import Loss, Room, Rule, results
from benchmarks.calibrator_choice import finite, ours, stated
from benchmarks.kept_sets import kept_sets
from benchmarks.papers.tables import csv_table
from skcalib.posthoc import StackedCalibration

RESULTS = Path(__file__).with_name("calibrator_ablations_results.json")
PAGE = Path(__file__).parents[1] / "docs" / "measured" / "calibrator_ablations.inc"
SIZES = {20: 2, 60: 2, 200: 1}
FEW = 100
HERE = "benchmarks.calibrator_ablations."
STACKED, ISOTONIC = "skcalib.posthoc._stacked.", "skcalib.posthoc._isotonic."


@cache
def sets():
    return list(kept_sets())


# A map that the stack does without.
LEFT_OUT = None


class Stack(StackedCalibration):
    def _candidates(self, scores, n_effective):
        found = super()._candidates(scores, n_effective)
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
    Rule("second sample", "prior of the first two", {STACKED + "_SAMPLES_OF_FIRST": 0.0}),
    Rule("price", "nats until a change is as likely", {STACKED + "_PRICE": 0.0}),
    Rule("least weight", "small weights go to the first", {STACKED + "_LEAST_WEIGHT": 0.0}),
    Rule("folds", "five or three", {STACKED + "_N_FOLDS": 3}),
    Rule("loose matrix", "a tenth of the ridge", {STACKED + "_SAMPLES_OF_LOOSE_MATRIX": 10**9}),
    Rule("blocks", "two samples or a half", {ISOTONIC + "_PSEUDO_SAMPLES": 0.5}),
    Rule("intercepts", "a tenth of the ridge", {"skcalib.posthoc._matrix._INTERCEPTS": 1.0}),
    Rule("vector", "whether there is one", {HERE + "LEFT_OUT": "structured_vector"}),
    Rule("matrix", "whether there is one", {HERE + "LEFT_OUT": "structured_matrix"}),
    Rule("isotonic", "whether there is one", {HERE + "LEFT_OUT": "isotonic"}),
]
ROOM = Room(RULES, losses)


def page(rows):
    names = ["all_few", "all_many", "all_harm", "all_lost", "kept_out_few", "kept_out_harm"]
    cells = [
        [row["rule"], row["decides"], *("{:+.4f} ± {:.4f}".format(*row[name]) for name in names)]
        for row in rows
        if row["rule"]
    ]
    head = ["Without", "Decides", *(name.replace("_", " ").removeprefix("all ") for name in names)]
    return csv_table("What the loss rises by without it", head, cells)


def main():
    warnings.simplefilter("ignore")
    rows = []
    for row in results(Path(), {"calibrators": ROOM}):
        print(json.dumps(row), flush=True)
        rows.append(row)
    RESULTS.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
