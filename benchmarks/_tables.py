"""Rows of results, and simple tables of reStructuredText as they stand in the user guide."""

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path


def keep(rows: Iterable[dict], out: Path | None) -> None:
    """Print rows as they come, rounded, and write all so far to a JSON file, if one is named."""
    kept = []
    for row in rows:
        kept.append({k: round(float(v), 4) if isinstance(v, float) else v for k, v in row.items()})
        print(kept[-1], flush=True)
        if out is not None:
            out.write_text(json.dumps(kept, indent=1) + "\n")


def study(doc: str | None, measure: Callable[..., Iterable[dict]], **options: object) -> None:
    """Keep what `measure` yields in --out; its options: a number, or None or Path for a folder."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--out", type=Path, help="JSON of all rows, written as they come")
    for name, default in options.items():
        kind = int if isinstance(default, int) else Path
        parser.add_argument(f"--{name}", type=kind, default=default, required=default is Path)
    given = vars(parser.parse_args())
    out = given.pop("out")
    keep(measure(**given), out)


def simple_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the table; the first column is text, the others are numbers."""
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    rule = "  ".join("=" * width for width in widths)
    lines = [
        "  ".join(
            cell.ljust(width) if k == 0 or row is head else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in [head, *rows]
    ]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def shown(value: float, digits: int, sign: str = "") -> str:
    """Return a number without the zero before its point."""
    text = f"{value:{sign}.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text
