"""The command line of the package: ``python -m skcalib report predictions.csv`` and others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from . import __version__
from .report import CalibrationReport, add_commands, show_reading
from .utils.meta._warnings import collecting


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status, 2 where the input is refused."""
    options = _parser().parse_args(arguments)
    try:
        with collecting() as notes:
            options.notes = notes
            status = int(options.run(options))
        for note in dict.fromkeys(notes):
            sys.stderr.write(f"Note: {note}\n")
        return status
    except (OSError, ValueError, TypeError, ImportError) as error:
        sys.stderr.write(f"python -m skcalib {options.command}: {_sentence(error)}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write(f"python -m skcalib {options.command}: interrupted.\n")
        return 130  # as a shell has it


def _report(options: argparse.Namespace) -> int:
    if options.output.exists() and options.output.samefile(options.predictions):
        raise ValueError(f"output must be another file than the predictions, {options.output}.")
    with redirect_stdout(sys.stderr):  # for what is printed on the way
        report = CalibrationReport.from_csv(
            options.predictions,
            label=options.label,
            classes=options.classes,
            pos_label=options.pos_label,
            sample_weight=options.weight,
            by=options.by,
            groups=options.groups,
            title=options.title,
            random_state=options.seed,
            verbose=options.verbose,
        )
    report.save(options.output)
    show_reading(report.results_["method"]["source"], options.notes)
    for finding in report.results_["alignment"]:
        sys.stderr.write(f"Note: {finding}\n")
    sys.stdout.write(f"{report.results_['verdict']['headline']}\n{options.output}\n")
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} must be a file that can be opened, got {error.strerror!r}."
    return str(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m skcalib")
    parser.add_argument("--version", action="version", version=f"skcalib {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser(
        "report",
        help="write a report of predictions in a file",
        description="Write a report of predictions in a file with a header, as pandas or a "
        "spreadsheet writes it, or in a JSON, parquet, feather or npz file: a column of labels, "
        "and a column of probabilities for every class, called like its label. For two classes "
        "one column of probabilities is enough. Other columns are not used.",
    )
    add = report.add_argument
    add("predictions", type=Path, help="the file")
    where = "the report, as HTML or, with a name that ends in .md, as Markdown"
    add("-o", "--output", type=Path, default=Path("report.html"), help=where)
    add("--label", help="the column of labels (default: label, y_true, y, target, ...)")
    add(
        "--classes",
        nargs="+",
        help="the columns of probabilities, in the order of the classes, or with the class of "
        "each: prob_0=bus prob_1=car",
    )
    add("--pos-label", help="the positive class of two, where one column has its probability")
    add("--weight", help="a column of sample weights")
    add("--by", action="append", default=[], help="a column to break results down by; repeatable")
    add("--groups", help="a column that says which samples belong together, such as patients")
    add("--title", help="heading of the page (default: the name of the file)")
    add("--seed", type=int, default=0, help="seed of resamples and folds (default: 0)")
    told = "print every part of the page and its seconds, to the standard error"
    add("-v", "--verbose", action="count", default=0, help=told)
    report.set_defaults(run=_report)
    add_commands(commands)
    return parser


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        # A terminal without the letters of a label shows their numbers.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main())
