"""What is every rule worth? ``python -m benchmarks.ablations --data DIR [--studies labels]``.

Every tuned constant and every rule of a study is switched off alone, and the study is judged again
on many sets. A row says how the loss changes: its mean over the sets, the standard error of that
(sets that share their samples count as one), and the same on the sets that are kept out of all
choices. A rule whose row is within two standard errors of 0 is not worth its place.

A study is a function that yields losses, and rules that say how each is switched off; another one
is added to `list_studies`. Writes benchmarks/ablations_results.json and the tables of the guide.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._ablation import Loss, Study, switched_off
from benchmarks.label_ablations import AFTER_FIT, SCALES
from benchmarks.label_ablations import STUDY as LABELS
from benchmarks.order_ablations import STUDY as ORDER
from benchmarks.papers.tables import csv_table
from benchmarks.selective_ablations import STUDY as SELECTIVE
from benchmarks.vote_ablations import FOUR
from benchmarks.vote_ablations import STUDY as VOTES

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "ablations_results.json"
MEASURED = ROOT / "docs" / "measured"
# Tables of the guide and the studies that they show.
PAGES = {
    MEASURED / "ablations.inc": ("labels", "checks and caveats", "scales"),
    MEASURED / "selective_ablations.inc": ("selective",),
    MEASURED / "order_ablations.inc": ("order",),
    MEASURED / "vote_ablations.inc": ("votes", "copies among four"),
}


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


def results(folder: Path, studies: dict[str, Study]) -> Iterator[dict[str, Any]]:
    for study, (rules, losses) in studies.items():
        whole = list(losses(folder))
        means = {
            name: round(float(np.mean([x.values[name] for x in whole if name in x.values])), 5)
            for name in _names(whole)
        }
        yield {"study": study, "rule": "", "sets": len(whole), **means}
        for rule in rules:
            with switched_off(rule):
                without = list(losses(folder))
            row = {"study": study, "rule": rule.name, "decides": rule.decides}
            yield row | compared(whole, without)


def measured(
    folder: Path, studies: dict[str, Study], path: Path, known: Iterable[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Write the rows of some studies, printed as they come, behind those `known` of others."""
    warnings.simplefilter("ignore")
    rows = [row for row in known if row["study"] not in studies]
    for row in results(folder, studies):
        print(json.dumps(row), flush=True)
        rows.append(row)
    path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    return rows


def format_changes(row: dict[str, Any], part: str) -> str:
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
    """Return a table for every study."""
    tables = []
    for study in dict.fromkeys(row["study"] for row in rows):
        some = [row for row in rows if row["study"] == study and row["rule"]]
        cells = [
            [
                row["rule"],
                row["decides"],
                row["changed"],
                format_changes(row, "all_"),
                format_changes(row, "kept_out_"),
            ]
            for row in some
        ]
        sets = max(row["sets"] for row in some)
        head = ["Without", "Decides", f"Changed, of {sets}", "All sets", "Sets that chose nothing"]
        tables.append(csv_table(study, head, cells))
    return "\n".join(tables)


def list_studies() -> dict[str, Study]:
    return {
        "labels": LABELS,
        "checks and caveats": AFTER_FIT,
        "scales": SCALES,
        "votes": VOTES,
        "copies among four": FOUR,
        "selective": SELECTIVE,
        "order": ORDER,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--studies", nargs="*")
    options = parser.parse_args()
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    if options.data is not None:
        studies = {
            n: r for n, r in list_studies().items() if not options.studies or n in options.studies
        }
        rows = measured(options.data, studies, RESULTS, rows)
    for path, shown in PAGES.items():
        path.write_text(page([row for row in rows if row["study"] in shown]))


if __name__ == "__main__":
    main()
