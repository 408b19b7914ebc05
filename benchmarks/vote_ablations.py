"""The study `votes` for benchmarks.ablations: annotators, on the sets of benchmarks.votes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._ablation import Loss, Rule, Study
from benchmarks.votes import SOURCES, judged
from skcalib.labels import LabelIssueFinder

VOTES = "skcalib.labels._vote_model."
DRAWS = 2
MOST_SAMPLES = 1000


@cache
def sets(folder: Path) -> list[tuple[Any, ...]]:
    """Return name, votes, probabilities of a model, true labels and skills of annotators."""
    found = []
    for seed in range(DRAWS):
        for source in SOURCES:
            for name, n_votes, votes, proba, y, _, skill in source(folder, seed):
                rows = np.random.default_rng(seed).permutation(len(y))[:MOST_SAMPLES]
                found.append((name, n_votes, votes[rows], proba[rows], y[rows], skill))
    return found


def losses(folder: Path) -> Iterator[Loss]:
    """Yield the losses of all sets. The pictures have chosen the constants; the others nothing."""
    for name, _, votes, proba, y, skill in sets(folder):
        finder = LabelIssueFinder("precomputed").fit(proba, votes=votes)
        found = judged(finder.label_proba_, y)
        values = {"wrong": 1 - found["right"], "log_loss": found["log_loss"], "ece": found["ece"]}
        if skill is not None:
            table = finder.annotators_
            held = (table["accuracy_low"] <= skill) & (skill <= table["accuracy_high"])
            values |= {
                "of_annotators": float(np.abs(table["accuracy"] - skill).mean()),
                "missed": float(1 - held.mean()),
            }
        yield Loss(name, not name.startswith("pictures"), values)


RULES = [
    Rule("_OFFSET", "how frequent classes are (here 1)", {VOTES + "_OFFSET": 1.0}),
    Rule("_ON_DIAGONAL", "prior of the rows (here none)", {VOTES + "_ON_DIAGONAL": 1e-3}),
    Rule("_LEAST_CHANGE", "when the search ends (here 1e-5)", {VOTES + "_LEAST_CHANGE": 1e-5}),
    Rule("_POOL_EVERY", "searches for the pool (here each step)", {VOTES + "_POOL_EVERY": 1}),
    Rule("MIN_GAIN_OF_ROWS", "full rows or plain (here rows)", {VOTES + "MIN_GAIN_OF_ROWS": -1e9}),
    Rule(
        "SHARED_ERRORS_WITH_MODELS",
        "errors that people share (here none)",
        {VOTES + "SHARED_ERRORS_WITH_MODELS": 0.0},
    ),
]
STUDY = Study(RULES, losses)
