"""The command line of the package: ``python -m skcalib report predictions.csv``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .report import CalibrationReport


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 where the input is refused."""
    options = _parser().parse_args(arguments)
    try:
        report = CalibrationReport.from_csv(
            options.predictions,
            label=options.label,
            pos_label=options.pos_label,
            sample_weight=options.weight,
            groups=options.group,
            random_state=options.seed,
        )
        report.save(options.output)
    except (OSError, ValueError, TypeError, ImportError) as error:
        sys.stderr.write(f"python -m skcalib report: {_sentence(error)}\n")
        return 2
    sys.stdout.write(f"{report.results_['verdict']['sentence']}\n{options.output}\n")
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} must be a file that can be opened, got {error.strerror!r}."
    return str(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m skcalib")
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser(
        "report",
        help="write a report of predictions in a CSV file",
        description="Write a report of predictions in a CSV file with a header: one column holds "
        "the label, and one column a class, named by it, holds probabilities. For two classes "
        "the column of one of them, the positive class, is enough.",
    )
    add = report.add_argument
    add("predictions", type=Path, help="the CSV file")
    add(
        "-o",
        "--output",
        type=Path,
        default=Path("report.html"),
        help="the report, as HTML or, with a name that ends in .md, as Markdown",
    )
    add("--label", default="label", help="name of the column of labels (default: label)")
    add("--pos-label", help="the column to take for the positive class, the others left out")
    add("--weight", help="name of a column of sample weights")
    add("--group", action="append", default=[], help="name of a column of groups; repeatable")
    add("--seed", type=int, default=0, help="seed of resamples and folds (default: 0)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
