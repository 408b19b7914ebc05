"""The study `votes` for benchmarks.ablations: annotators, on the sets of benchmarks.votes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks._ablation import Loss, Rule, Study
from benchmarks.votes import PUBLIC_SETS, SOURCES, judge_public, judged
from skcalib.labels import LabelIssueFinder, votes_from_long

VOTES, COPYING = "skcalib.labels._vote_model.", "skcalib.labels._copying."
N_VOTES, MOST_SAMPLES = 3, 300
# The first public sets have chosen the fraction of shared errors, pictures other constants of the
# model, and readers those of copies.
CHOSE = ("pictures", "readers", *list(PUBLIC_SETS.values())[:2])
COPIED, DRAWS, N_READ = (0.0, 0.5, 0.8, 1.0), 3, 300
DRAWS_OF_FOUR = 8


class VoteSet(NamedTuple):
    """Votes of one set; probabilities of a model and skills of annotators where there are some."""

    name: str
    votes: Any
    proba: np.ndarray | None
    y: np.ndarray  # -1 where it is not known
    skill: np.ndarray | None
    pairs: set[frozenset[int]] | None  # copier and source; None: the set is not about copies


def draw_readers(copied: float, seed: int, n_readers: int = 5) -> VoteSet:
    """Return votes of up to five readers; the last repeats a part of those of the first."""
    rng = np.random.default_rng([seed, round(10 * copied)])
    y = rng.integers(0, 3, N_READ)
    skill = np.where(
        rng.random(N_READ) < 0.1, 0.45, np.array([[0.83, 0.93, 0.91, 0.83, 0.83]]).T
    ).T
    other = (y[:, np.newaxis] + rng.integers(1, 3, (N_READ, 5))) % 3
    votes = np.where(rng.random((N_READ, 5)) < skill, y[:, np.newaxis], other).astype(float)
    votes, last = votes[:, :n_readers], n_readers - 1
    votes[:, last] = np.where(rng.random(N_READ) < copied, votes[:, 0], votes[:, last])
    pairs = {frozenset((0, last))} if copied else set()
    return VoteSet(f"readers, {copied:g} copied", votes, None, y, None, pairs)


@cache
def sets(folder: Path) -> list[VoteSet]:
    found = []
    for source in SOURCES:
        for name, n_votes, votes, proba, y, _, skill in source(folder, 0):
            if n_votes == N_VOTES:
                rows = np.random.default_rng(0).permutation(len(y))[:MOST_SAMPLES]
                found.append(VoteSet(name, votes[rows], proba[rows], y[rows], skill, None))
    table = np.load(folder / "votes_public.npz")
    for name, title in PUBLIC_SETS.items():
        sample, who, label = (
            table[f"{name}_{part}"].astype(int) for part in ("sample", "annotator", "label")
        )
        y = table[f"{name}_gold"].astype(int)
        kept = sample < MOST_SAMPLES
        votes = votes_from_long(
            sample[kept], who[kept], label[kept], index=range(min(len(y), MOST_SAMPLES))
        )
        found.append(VoteSet(title, votes, None, y[:MOST_SAMPLES], None, None))
    return found + [draw_readers(c, seed) for c in COPIED for seed in range(DRAWS)]


def losses(folder: Path) -> Iterator[Loss]:
    """Yield the losses of all sets."""
    for of in sets(folder):
        estimator = LabelIssueFinder() if of.proba is None else LabelIssueFinder("precomputed")
        finder = estimator.fit(of.proba, votes=of.votes)
        known = of.y >= 0
        proba = np.zeros((len(of.y), int(max(finder.classes_.max(), of.y.max())) + 1))
        proba[:, finder.classes_] = finder.label_proba_
        found = (judge_public if of.proba is None else judged)(proba[known], of.y[known])
        values = {"wrong": 1 - found["right"], "log_loss": found["log_loss"]}
        if of.skill is not None:
            table = finder.annotators_
            held = (table["accuracy_low"] <= of.skill) & (of.skill <= table["accuracy_high"])
            values["missed"] = float(1 - held.mean())
        if of.pairs is not None:
            table = finder.copying_pairs_
            named = {frozenset(map(int, pair)) for pair in zip(table["copier"], table["source"])}
            values["wrong_pairs"] = float(named != of.pairs)
        yield Loss(of.name, not of.name.startswith(CHOSE), values)


RULES = [
    Rule("_OFFSET", "how frequent classes are (here 1)", {VOTES + "_OFFSET": 1.0}),
    Rule("_ON_DIAGONAL", "prior of the rows (here none)", {VOTES + "_ON_DIAGONAL": 1e-3}),
    Rule(
        "_CONCENTRATIONS",
        "how much people may differ (here any)",
        {VOTES + "_CONCENTRATIONS": (1e-2, 1e5)},
    ),
    Rule(
        "_HARD_DEVIATION",
        "how many samples are hard (here free)",
        {VOTES + "_HARD_DEVIATION": 50.0},
    ),
    Rule("_LEAST_CHANGE", "when the search ends (here 1e-5)", {VOTES + "_LEAST_CHANGE": 1e-5}),
    Rule("_POOL_EVERY", "searches for the pool (here each step)", {VOTES + "_POOL_EVERY": 1}),
    Rule("MIN_GAIN_OF_ROWS", "full rows or plain (here rows)", {VOTES + "MIN_GAIN_OF_ROWS": -1e9}),
    Rule("SHARED_ERRORS", "errors that people share (here none)", {VOTES + "SHARED_ERRORS": 0.0}),
    Rule(
        "SHARED_ERRORS_WITH_MODELS",
        "the same with base models (here none)",
        {VOTES + "SHARED_ERRORS_WITH_MODELS": 0.0},
    ),
    Rule("_MOST_COPIERS", "who copies whom (here nobody)", {COPYING + "_MOST_COPIERS": 0}),
    Rule("_CHANCE", "how surely a pair copies (here .5)", {COPYING + "_CHANCE": 0.5}),
    Rule("_FEWEST_COMMON", "pairs that are tried (here from 5)", {COPYING + "_FEWEST_COMMON": 5}),
    Rule("_TRIED", "pairs that are tried (here one)", {COPYING + "_TRIED": 1}),
    Rule("_PRIOR", "rows of a pair (here a tenth of a vote)", {COPYING + "_PRIOR": 0.1}),
]


def losses_of_four(folder: Path) -> Iterator[Loss]:
    """Yield whether the copier among four is not named, and whether somebody else is."""
    for copied, seed in product(COPIED, range(DRAWS_OF_FOUR)):
        of = draw_readers(copied, seed, 4)
        table = LabelIssueFinder().fit(None, votes=of.votes).copying_pairs_
        named = {frozenset(map(int, pair)) for pair in zip(table["copier"], table["source"])}
        missed, accused = of.pairs - named, named - of.pairs
        values = {"missed": float(bool(missed)), "accused": float(bool(accused))}
        yield Loss(f"{of.name}, {seed}", True, values)


def ask_nothing(*given: Any) -> float:
    """Return that a pair need not gain more than others do."""
    return 0.0


RULES_OF_FOUR = [
    Rule(
        "_FEWEST_OTHERS",
        "pairs that are tried (here beside three others)",
        {COPYING + "_FEWEST_OTHERS": 3},
    ),
    Rule(
        "gain of others",
        "who of four copies (here any)",
        {COPYING + "_compute_gain_of_others": ask_nothing},
    ),
]
STUDY, FOUR = Study(RULES, losses), Study(RULES_OF_FOUR, losses_of_four)
