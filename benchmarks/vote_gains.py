"""What one more vote gains: the expected rise of the fraction of right labels, and the real one.

    python -m benchmarks.vote_gains --data ../shared/data [--draws 3]

A part of the votes on every sample of the five public sets is kept, and of simulated votes. The
finder names an eighth or a third of the samples with its expected gain; each of these gets one of
the votes that were hidden, and the finder is fitted again. Writes
benchmarks/vote_gains_results.json and the table of the guide.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._tables import keep, shown, simple_table
from benchmarks.votes import PUBLIC_SETS, judge_public
from skcalib.labels import LabelIssueFinder, votes_from_long

RESULTS = Path(__file__).with_name("vote_gains_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/vote_gains.inc"
KEPT, PARTS = (0.3, 0.5), (1 / 8, 1 / 3)
MOST_SAMPLES = 500
SIMULATED = {"simulated": 0.0, "simulated, hard samples": 0.3}
Long = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # sample, annotator, label; gold


def simulate(hard: float, seed: int) -> Long:
    """Return six votes for each of 400 samples of three classes; some lead people to one error."""
    rng, n = np.random.default_rng([seed, round(10 * hard)]), 400
    y, skill, is_hard = rng.integers(0, 3, n), rng.uniform(0.5, 0.9, 25), rng.random(n) < hard
    who = rng.random((n, 25)).argsort(axis=1)[:, :6]
    right = rng.random((n, 6)) < skill[who] * np.where(is_hard, 0.6, 1.0)[:, np.newaxis]
    slip = np.where(is_hard[:, np.newaxis], 1, rng.integers(1, 3, (n, 6)))
    label = np.where(right, y[:, np.newaxis], (y[:, np.newaxis] + slip) % 3)
    return np.repeat(np.arange(n), 6), who.ravel(), label.ravel(), y


def read_public(data: Path, name: str, seed: int) -> Long:
    """Return the votes on a random part of a public set."""
    table = np.load(data / "votes_public.npz")
    sample, who, label, gold = (
        table[f"{name}_{part}"].astype(int) for part in ("sample", "annotator", "label", "gold")
    )
    rows = np.random.default_rng(seed).permutation(len(gold))[:MOST_SAMPLES]
    new = np.full(len(gold), -1)
    new[rows] = np.arange(len(rows))
    some = new[sample] >= 0
    return new[sample[some]], who[some], label[some], gold[rows]


def fit(long: Long, votes: np.ndarray) -> tuple[LabelIssueFinder, float]:
    """Return the finder of some of the votes, and the fraction of right labels."""
    sample, who, label, gold = long
    table = votes_from_long(sample[votes], who[votes], label[votes], index=range(len(gold)))
    finder = LabelIssueFinder().fit(None, votes=table)
    posterior = np.zeros((len(gold), int(max(label.max(), gold.max())) + 1))
    posterior[:, finder.classes_] = finder.label_proba_
    known = gold >= 0
    return finder, judge_public(posterior[known], gold[known])["right"]


def rows(data: Path, n_draws: int) -> Iterator[dict[str, Any]]:
    """Yield expected and real gain for every set, fraction of votes, draw and part of samples."""
    warnings.simplefilter("ignore")
    for draw, kept in product(range(n_draws), KEPT):
        sets = {title: read_public(data, name, draw) for name, title in PUBLIC_SETS.items()}
        sets |= {name: simulate(hard, draw) for name, hard in SIMULATED.items()}
        for name, long in sets.items():
            sample, n = long[0], len(long[3])
            order = np.random.default_rng(draw).permutation(len(sample))
            order = order[np.argsort(sample[order], kind="stable")]
            number = np.bincount(sample, minlength=n)
            first = np.append(0, number.cumsum()[:-1])
            rank = np.arange(len(order)) - np.repeat(first, number)
            given = np.maximum(np.rint(kept * number), 1).astype(int)
            old = order[rank < np.repeat(given, number)]
            next_vote = np.where(
                number > given, order[np.minimum(first + given, len(order) - 1)], -1
            )
            finder, before = fit(long, old)
            chosen, gain = finder.suggest_votes(n, return_gain=True)
            open_ = next_vote[chosen] >= 0
            chosen, gain = chosen[open_], gain[open_]
            for part in PARTS:
                n_new = round(part * n)
                after = fit(long, np.append(old, next_vote[chosen[:n_new]]))[1]
                yield {
                    "set": name, "draw": draw, "kept": kept, "votes": float(given.mean()),
                    "part": part, "right": before, "expected": float(gain[:n_new].sum() / n),
                    "gain": after - before,
                }  # fmt: skip


def page(results: list[dict[str, Any]]) -> str:
    """Return the table of the guide, means over the draws."""
    cells: dict[tuple, list[dict]] = {}
    for row in results:
        cells.setdefault((row["set"], row["kept"], row["part"]), []).append(row)
    lines, errors = [], []
    for (name, _, part), found in cells.items():
        mean = {key: float(np.mean([row[key] for row in found]))
                for key in ("votes", "right", "expected", "gain")}  # fmt: skip
        errors += [(abs(row["gain"] - row["expected"]), abs(row["gain"])) for row in found]
        lines.append([
            name, f"{mean['votes']:.1f}", f"1/{round(1 / part)}", shown(mean["right"], 3),
            shown(mean["expected"], 3, "+"), shown(mean["gain"], 3, "+"),
        ])  # fmt: skip
    ours, none = np.array(errors).T
    head = ("set", "votes", "one more on", "right", "expected gain", "gain")
    return (
        f"Of {len(errors)} single draws the expected gain is within .02 of the gain in "
        f"{np.count_nonzero(ours <= 0.02)}; no gain would be in {np.count_nonzero(none <= 0.02)}. "
        f"Mean distances are {shown(ours.mean(), 3)} and {shown(none.mean(), 3)}.\n\n"
        f"{simple_table(head, lines)}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the real data")
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    keep(rows(given.data, given.draws), RESULTS)
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
