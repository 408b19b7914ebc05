"""The room `labels` for benchmarks.ablations: the finder on sets with known wrong labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ablations import Loss, Room, Rule
from benchmarks.label_sets import NOISES, LabelSet, label_sets
from skcalib.labels import LabelIssueFinder, _issues
from skcalib.labels._judges import judges_of

ROUNDS, MODEL = "skcalib.labels._rounds.", "skcalib.labels._noise_model."
# Of every table, so many ways in which labels are wrong, in turn: a row takes half a minute.
N_NOISES = 1
SMALLEST = 1e-3


@cache
def sets(folder: Path) -> list[LabelSet]:
    chosen: list[LabelSet] = []
    tables: dict[str, int] = {}
    for of in label_sets(folder):
        place = tables.setdefault(of.name, len(tables))
        turn = (NOISES.index(of.noise) - 2 * place) % len(NOISES) if of.noise in NOISES else 0
        chosen += [of] if turn < N_NOISES else []
    return chosen


class _Remembered:
    """A judge that remembers what it said of the same labels: no rule changes that."""

    def __init__(self, judge: Any, said: dict[bytes, Any]) -> None:
        self.judge, self.said = judge, said

    def __getattr__(self, name: str) -> Any:
        return getattr(self.judge, name)

    def distances(self, labels: Any, classes: Any) -> Any:
        key = labels.tobytes()
        if key not in self.said:
            found = self.judge.distances(labels, classes)
            self.said[key] = found.filled() if hasattr(found, "filled") else found
        return self.said[key].copy()


_SAID: dict[Any, dict[str, dict[bytes, Any]]] = {}


def loss(number: int, of: LabelSet) -> Loss:
    """Return the log-loss of "the label is wrong", and the labels wrong after repair."""
    said = _SAID.setdefault(number, {})

    def remembered(*args: Any, **options: Any) -> dict[str, Any]:
        judges = judges_of(*args, **options)
        return {n: _Remembered(judge, said.setdefault(n, {})) for n, judge in judges.items()}

    _issues.judges_of, original = remembered, _issues.judges_of
    try:
        finder = LabelIssueFinder(of.estimator).fit(of.X, of.given)
    finally:
        _issues.judges_of = original
    issues, known = finder.issues_, of.known
    wrong = of.wrong[known]
    p = np.clip(1.0 - issues["p_label_correct"][known], SMALLEST, 1.0 - SMALLEST)
    repaired = np.where(issues["is_issue"], issues["suggested_label"], of.given)[known]
    low, high = finder.noise_rate_interval_
    values = {
        "log_loss": float(-np.where(wrong, np.log(p), np.log(1.0 - p)).mean()),
        "wrong_after": float(np.mean(repaired != of.true[known])),
        "rate_error": abs(finder.noise_rate_ - float(wrong.mean())),
        "missed": float(not low - 1e-9 <= wrong.mean() <= high + 1e-9),
    }
    return Loss(of.name.split(",")[0], of.kept_out, values)


def losses(folder: Path) -> Iterator[Loss]:
    for number, of in enumerate(sets(folder)):
        yield loss(number, of)


def _rule(name: str, decides: str, value: Any, constant: str) -> Rule:
    return Rule(name, decides, {constant: value})


def _nothing(train: Any, test: Any, common: Any) -> np.ndarray:
    return np.full(len(test.codes), -np.inf)


RULES = [
    _rule("WEIGHT_OF_FIRST", "mean with the first round", 0.0, ROUNDS + "WEIGHT_OF_FIRST"),
    _rule("LEAST_OF_RATE", "refits that find less", 0.0, ROUNDS + "LEAST_OF_RATE"),
    _rule("AHEAD", "by how much flips have to be ahead", 0.0, ROUNDS + "AHEAD"),
    _rule("WEAK", "flips where judges are weak", 0.0, ROUNDS + "WEAK"),
    _rule("near flips", "whether there are any", ("flips",), ROUNDS + "_KINDS"),
    _rule("matrix", "whether flips are between classes", ("near",), ROUNDS + "_KINDS"),
    _rule("confusions", "whether they explain labels", _nothing, MODEL + "_doubt"),
    _rule("SHRINKAGE", "how far a matrix is shrunk (here 20)", 20.0, MODEL + "SHRINKAGE"),
    _rule("LOG_ODDS", "how sure judges may be", 1e6, MODEL + "LOG_ODDS"),
]
ROOM = Room(RULES, losses)
