"""What is every rule worth? ``python -m benchmarks.ablations --data DIR [--rooms labels]``.

Every tuned constant and every rule of a room is switched off alone, and the room is judged again
on many sets. A row says how the loss changes: its mean over the sets, the standard error of that
(sets that share their samples count as one), and the same on the sets that are kept out of all
choices. A rule whose row is within two standard errors of 0 is not worth its place.

A room is a function that yields losses, and rules that say how each is switched off; another one
is added to `all_rooms`. Writes benchmarks/ablations_results.json and the tables of the guide.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.papers.tables import csv_table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "ablations_results.json"
MEASURED = ROOT / "docs" / "measured"
# Tables of the guide and the rooms that they show.
PAGES = {
    MEASURED / "ablations.inc": ("labels", "checks and doubts", "scales", "votes"),
    MEASURED / "selective_ablations.inc": ("selective",),
    MEASURED / "order_ablations.inc": ("order",),
}


class Rule(NamedTuple):
    """What is switched off, and how: values of attributes, as {"module.attribute": value}."""

    name: str
    decides: str
    off: dict[str, Any]


class Loss(NamedTuple):
    """Losses of a set by their names; sets of one base share samples."""

    base: str
    kept_out: bool
    values: dict[str, float]


class Room(NamedTuple):
    """`losses` gets the folder of the data and yields a loss a set, always in one order."""

    rules: list[Rule]
    losses: Callable[[Path], Iterable[Loss]]


@contextmanager
def switched_off(rule: Rule | None) -> Iterator[None]:
    """Set the attributes of a rule, for a while."""
    old = []
    for path, value in ({} if rule is None else rule.off).items():
        module, name = path.rsplit(".", 1)
        owner = import_module(module)
        old.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in old:
            setattr(owner, name, value)


def compared(whole: list[Loss], without: list[Loss]) -> dict[str, Any]:
    """Return what the losses rise by without a rule, with standard errors; > 0: it is worth it."""
    result: dict[str, Any] = {"sets": len(whole)}
    for part in ("all", "kept_out"):
        pairs = [(a, b) for a, b in zip(whole, without) if part == "all" or a.kept_out]
        for name in _names(whole):
            by_base: dict[str, list[float]] = {}
            for a, b in pairs:
                if name not in a.values or name not in b.values:  # such as losses after checks
                    continue
                by_base.setdefault(a.base, []).append(b.values[name] - a.values[name])
            if len(by_base) < 2:
                continue
            means = np.array([np.mean(values) for values in by_base.values()])
            error = means.std(ddof=1) / np.sqrt(len(means))
            result[f"{part}_{name}"] = [round(float(means.mean()), 5), round(float(error), 5)]
    changed = [
        any(a.values[n] != b.values[n] for n in a.values.keys() & b.values.keys())
        for a, b in zip(whole, without)
    ]
    return result | {"changed": int(np.sum(changed))}


def _names(losses: list[Loss]) -> list[str]:
    """Return the names of all losses; a set need not have each."""
    return list(dict.fromkeys(name for of in losses for name in of.values))


def results(folder: Path, rooms: dict[str, Room]) -> Iterator[dict[str, Any]]:
    for room, (rules, losses) in rooms.items():
        whole = list(losses(folder))
        means = {
            name: round(float(np.mean([x.values[name] for x in whole if name in x.values])), 5)
            for name in _names(whole)
        }
        yield {"room": room, "rule": "", "sets": len(whole), **means}
        for rule in rules:
            with switched_off(rule):
                without = list(losses(folder))
            row = {"room": room, "rule": rule.name, "decides": rule.decides}
            yield row | compared(whole, without)


def measured(
    folder: Path, rooms: dict[str, Room], path: Path, known: Iterable[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Write the rows of some rooms, printed as they come, behind those `known` of others."""
    warnings.simplefilter("ignore")
    rows = [row for row in known if row["room"] not in rooms]
    for row in results(folder, rooms):
        print(json.dumps(row), flush=True)
        rows.append(row)
    path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    return rows


def told(row: dict[str, Any], part: str) -> str:
    """Return the losses that change by more than two standard errors, or the one nearest to it."""
    changes = {k.removeprefix(part): v for k, v in row.items() if k.startswith(part)}
    always = {name: np.inf if mean else 0.0 for name, (mean, _) in changes.items()}  # alike in all
    far = {n: abs(mean) / error if error else always[n] for n, (mean, error) in changes.items()}
    names = [name for name in far if far[name] > 2.0] or [max(far, key=lambda name: far[name])]
    if far[names[0]] == 0.0:
        return "\\-"
    cells = [
        "{} {:+.4f} ± {:.4f}".format(name.replace("_", " "), *changes[name]) for name in names
    ]
    text = "; ".join(cells)
    return text if far[names[0]] > 2.0 else f"({text})"


def page(rows: list[dict[str, Any]]) -> str:
    """Return a table for every room."""
    tables = []
    for room in dict.fromkeys(row["room"] for row in rows):
        some = [row for row in rows if row["room"] == room and row["rule"]]
        cells = [
            [
                row["rule"],
                row["decides"],
                row["changed"],
                told(row, "all_"),
                told(row, "kept_out_"),
            ]
            for row in some
        ]
        sets = max(row["sets"] for row in some)
        head = ["Without", "Decides", f"Changed, of {sets}", "All sets", "Sets that chose nothing"]
        tables.append(csv_table(room, head, cells))
    return "\n".join(tables)


def all_rooms() -> dict[str, Room]:
    from benchmarks.label_ablations import AFTER_FIT, SCALES
    from benchmarks.label_ablations import ROOM as LABELS
    from benchmarks.order_ablations import ROOM as ORDER
    from benchmarks.selective_ablations import ROOM as SELECTIVE
    from benchmarks.vote_ablations import ROOM as VOTES

    return {
        "labels": LABELS,
        "checks and doubts": AFTER_FIT,
        "scales": SCALES,
        "votes": VOTES,
        "selective": SELECTIVE,
        "order": ORDER,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rooms", nargs="*")
    options = parser.parse_args()
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    if options.data is not None:
        rooms = {n: r for n, r in all_rooms().items() if not options.rooms or n in options.rooms}
        rows = measured(options.data, rooms, RESULTS, rows)
    for path, shown in PAGES.items():
        path.write_text(page([row for row in rows if row["room"] in shown]))


if __name__ == "__main__":
    main()
