"""How often the intervals of annotators hold their accuracy, on simulated votes.

    python -m benchmarks.annotators [--draws 6]

Writes benchmarks/annotators_results.json and the table of the guide. Of 600 samples a quarter is
hard for the model that judges them. "Alike": every annotator is right as often on all samples,
with an accuracy from a Beta(6, 2.5) distribution, errors fall on all other classes, and all
annotators vote as often. "Unlike": they are right less often on the hard samples, confuse classes
of their own, differ more, and some vote far more often than others.
"""

import argparse
import json
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import expit, logit, softmax

from benchmarks._tables import shown, simple_table
from skcalib.labels import LabelIssueFinder

RESULTS = Path(__file__).with_name("annotators_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/annotators.inc"
N_SAMPLES, HARD = 600, 0.25


def model(y, hard, n_classes, rng):
    """Probabilities of a model, which knows less of hard samples."""
    scores = rng.normal(size=(len(y), n_classes))
    scores[np.arange(len(y)), y] += np.where(hard, 1.0, 3.0)
    return softmax(1.5 * scores, axis=1)


def crowd(kind, n_classes, n_annotators, n_votes, rng):
    """Return votes, probabilities of a model, and how often every annotator is right."""
    y, hard = rng.integers(0, n_classes, N_SAMPLES), rng.random(N_SAMPLES) < HARD
    proba, often = model(y, hard, n_classes, rng), np.ones(n_annotators)
    skill = np.tile(rng.beta(6, 2.5, n_annotators), (2, 1)).T
    errors = np.full((n_annotators, n_classes, n_classes - 1), 1 / (n_classes - 1))
    if kind == "unlike":
        skill = expit(logit(rng.beta(4, 1.5, n_annotators))[:, None] + [0.3, -1.2])
        errors = rng.dirichlet(np.full(n_classes - 1, 0.5), (n_annotators, n_classes))
        often = rng.gamma(2, 1, n_annotators)
    votes = np.full((N_SAMPLES, n_annotators), np.nan)
    for i, label in enumerate(y):
        for who in rng.choice(n_annotators, n_votes, replace=False, p=often / often.sum()):
            other = rng.choice(n_classes - 1, p=errors[who, label])
            right = rng.random() < skill[who, int(hard[i])]
            votes[i, who] = label if right else other + (other >= label)
    return votes, proba, skill @ [1 - HARD, HARD]


def measure(n_draws):
    """Yield how often intervals hold, by population, judge, votes a sample and annotators."""
    for kind, judged, n_votes, n_annotators in product(
        ("alike", "unlike"), (True, False), (2, 3, 5), (20, 60, 200)
    ):
        found = []
        # Votes alone hardly tell two classes from their errors.
        for seed, n_classes in product(range(n_draws), (2, 4, 10) if judged else (4, 10)):
            rng = np.random.default_rng([seed, n_classes, n_votes, n_annotators])
            votes, proba, skill = crowd(kind, n_classes, n_annotators, n_votes, rng)
            finder = LabelIssueFinder("precomputed" if judged else None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                table = finder.fit(proba if judged else None, votes=votes).annotators_
            low, high = table["accuracy_low"], table["accuracy_high"]
            holds = (low <= skill) & (skill <= high)
            found += list(zip(holds[table["n_votes"] > 0], (high - low)[table["n_votes"] > 0]))
        held, width = np.mean(found, axis=0)
        yield {
            "annotators differ": kind, "model": "yes" if judged else "no", "votes": n_votes,
            "annotators": n_annotators, "intervals": len(found), "held": held, "width": width,
        }  # fmt: skip


def page(rows):
    head = ("errors", "model", "votes", "annotators", "intervals", "hold", "width")
    lines = [
        (row["annotators differ"], row["model"], str(row["votes"]), str(row["annotators"]),
         str(row["intervals"]), shown(row["held"], 3), shown(row["width"], 2))
        for row in rows
    ]  # fmt: skip
    return f"{simple_table(head, lines)}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=6)
    rows = []
    for row in measure(parser.parse_args().draws):
        rows.append({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
        print(rows[-1], flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
