"""The command line of the package: ``python -m skcalib report predictions.csv`` and others."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from . import __version__
from .metrics import CalibrationMonitor, calibration_error_interval
from .metrics._registry import choose_metric, list_metrics_to_minimize
from .metrics._states import get_field, read_count, read_labels, read_state, read_text
from .report import CalibrationReport
from .report._data import OF_FILES, find_alignment
from .report._models import read_models
from .report._read import describe, read_predictions
from .utils._labels import encode_groups
from .utils._output import collecting, write_atomically
from .utils._proba import check_predictions

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# The commands ``monitor`` and ``check``: predictions from a file, the result as exit status.

_FORMAT = "skcalib monitor 2"
_PERCENT = "probabilities are percentages, from 0 to 100"
# What the state keeps of every file: name of the step, exit status, what was printed.
_OF_FILE = ("name", "status", "result")


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of a command line; ``options.run`` runs one."""
    monitor = commands.add_parser(
        "monitor",
        aliases=["watch"],
        help="add the labels of a day and raise an alarm if the probabilities have gone wrong",
        description="Add predictions whose labels have arrived to the state, and raise an alarm "
        "if the probabilities have gone wrong. It may be called every day: if they are right, "
        "there is ever an alarm with probability false-alarm-rate at most. Exit status: 0 no "
        "alarm, 1 alarm, 2 the input is refused; the state file then stays as it was. A file that "
        "was added before changes nothing, and gives the result that it gave then. Commands that "
        "share a state wait for each other.",
    )
    _add_columns(monitor)
    add = monitor.add_argument
    add("--state", type=Path, required=True, help="JSON file of what came before; may be missing")
    rate = "probability of a false alarm, ever (default: 0.01)"
    add("--false-alarm-rate", type=float, help=rate)
    add("--by", action="append", default=[], help="a column of groups to monitor; repeatable")
    add("--name", help="name of this step (default: date and time)")
    monitor.set_defaults(run=_run_monitor)
    check = commands.add_parser(
        "check",
        help="test whether the calibration error is small enough",
        description="Test whether the calibration error is small enough, by its 95 % interval. "
        "Exit status: 0 it is, 1 it is not, 3 there are too few samples to decide, 2 the input is "
        "refused.",
    )
    _add_columns(check)
    add = check.add_argument
    add("--max-error", type=float, required=True, help="largest error that passes, in (0, 1)")
    which = (
        f"which error, smaller = better: {', '.join(list_metrics_to_minimize())} (default: ece)"
    )
    add("--metric", default="ece", help=which)
    add("--weight", help="a column of sample weights")
    add("--groups", help="a column that says which samples belong together, such as patients")
    add("--seed", type=int, default=0, help="seed of resamples (default: 0)")
    check.set_defaults(run=_check)


def show_reading(source: Any, notes: list[str]) -> None:
    """Write what was read, and then the notes so far, to the standard error."""
    _write(sys.stderr, describe(source))
    for note in dict.fromkeys(notes):
        _write(sys.stderr, f"Note: {note}\n")
    notes.clear()


def _write(stream: IO[str] | None, text: str) -> None:
    """Write to a standard stream; one that is full or closed leaves the result as it is."""
    if stream is None:  # closed before the start
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        with suppress(OSError):  # a stream without a file
            # What is left in the buffer must not fail again when Python ends.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
        if stream is not sys.stderr:
            _write(sys.stderr, f"Note: the result could not be written: {error.strerror}.\n")


def _add_columns(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "predictions", type=Path, help="a file with a header, a column of labels and probabilities"
    )
    add("--label", help="the column of labels (default: label, y_true, y, target, ...)")
    add(
        "--classes",
        nargs="+",
        help="the columns of probabilities, in the order of the classes, or with the class of "
        "each: prob_0=bus prob_1=car",
    )
    add("--pos-label", help="the positive class of two, where one column has its probability")
    add("--percent", action="store_true", help=_PERCENT)
    _add_answers(parser)


def _add_answers(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--prediction",
        help="the column of the model's answers, right where they equal the labels; without it, "
        "--confidence needs labels that say which are right (0 and 1, yes and no, correct and "
        "incorrect)",
    )
    add("--confidence", help="the column of the confidence in the answers, from 0 to 1")


def _check(options: argparse.Namespace) -> int:
    limit = options.max_error
    if not 0 < limit < 1:
        raise ValueError(f"max-error must be in (0, 1), got {limit}.")
    metric = choose_metric(options.metric, list_metrics_to_minimize())
    table = read_predictions(
        options.predictions,
        options.label,
        options.classes,
        options.pos_label,
        options.weight,
        (),
        options.groups,
        options.prediction,
        options.confidence,
        percent=options.percent,
    )
    _write_alignment(table)
    low, high = calibration_error_interval(
        table["y_true"],
        table["y_proba"],
        metric=metric.function,
        labels=table["labels"],
        pos_label=table.get("pos_label"),
        sample_weight=table["sample_weight"],
        groups=table["groups"],
        random_state=options.seed,
    )
    show_reading(table["source"], options.notes)
    result, status = "Undecided", 3
    if high <= limit:
        result, status = "Passes", 0
    elif low > limit:
        result, status = "Fails", 1
    _write(
        sys.stdout,
        f"{result}: the {metric.full_name.replace('_', ' ')} is {low:.4f} to {high:.4f} (95 % "
        f"interval, {len(table['y_true'])} samples); the limit is {limit:g}.\n",
    )
    return status


def _write_alignment(table: dict[str, Any]) -> None:
    """Write what the table shows to be in another order to the standard error."""
    checked = check_predictions(
        table["y_true"],
        table["y_proba"],
        table["sample_weight"],
        labels=table["labels"],
        pos_label=table.get("pos_label"),
    )
    groups = table["groups"]
    codes = None if groups is None else encode_groups(groups, len(checked.truth))[1]
    for finding in find_alignment(
        checked, table["y_true"], table["y_proba"], groups=codes, remedies=OF_FILES
    ):
        _write(sys.stderr, f"Note: {finding}\n")


def _run_monitor(options: argparse.Namespace) -> int:
    with _hold_lock(options.state):
        state = _read_state(options.state, options.false_alarm_rate)
        with options.predictions.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest in state.files:
            name, status, result = (state.files[digest][key] for key in _OF_FILE)
            _write(
                sys.stderr,
                f"Note: {options.predictions} was added before, as {name}: nothing is added, and "
                "the result is that of then.\n",
            )
        else:
            status, result = _add_step(options, state, digest)
    _write(sys.stdout, result)
    return status


def _add_step(options: argparse.Namespace, state: _State, digest: str) -> tuple[int, str]:
    """Add a file to the state; return the exit status and what to print."""
    y_true, y_proba, by, source = _read_step(options, state)
    monitor = state.monitor or CalibrationMonitor(state.false_alarm_rate, labels=state.classes)
    name = options.name or f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    monitor.update(y_true, y_proba, by=by, name=name)
    status = 0 if monitor.alarm_ is None else 1
    result = f"Alarm. {monitor.alarm_}\n"
    if monitor.alarm_ is None:
        result = (
            f"No alarm: the e-value is {monitor.evidence().e_value:.3g} after step "
            f"{len(monitor.steps_)}, with {len(y_true)} samples; an alarm takes "
            f"{1 / monitor.false_alarm_rate:g} or more.\n"
        )
    result += "".join(f"{caveat}\n" for caveat in monitor.caveats_)
    kept = {
        "format": _FORMAT,
        "classes": state.classes,
        "single": state.single,
        "files": state.files | {digest: dict(zip(_OF_FILE, (name, status, result)))},
        "monitor": json.loads(monitor.to_json()),
    }
    with write_atomically(options.state) as file:
        file.write(json.dumps(kept).encode() + b"\n")
    show_reading(source, options.notes)
    return status, result


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Wait until no other command reads and replaces the file; keep others out until the end.

    The system frees the lock of a process that is killed.
    """
    target = Path(os.path.realpath(path))
    lock = target.with_name(f".{target.name}.lock")
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            error.filename = str(path)  # the name that the user has passed
            raise
        try:
            if sys.platform == "win32":
                with suppress(OSError):  # it gives up after ten seconds
                    msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
                    break
            else:
                fcntl.flock(handle, fcntl.LOCK_EX)
                # The command that had the lock may have removed its file.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(handle), lock.stat()):
                        break
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
    with os.fdopen(handle):
        try:
            yield
        finally:
            if sys.platform != "win32":  # where an open file cannot be removed
                lock.unlink(missing_ok=True)


@dataclass
class _State:
    """State of the monitor; `single` if there is only the positive class's column."""

    false_alarm_rate: float
    monitor: CalibrationMonitor | None = None
    classes: list[str] | None = None
    single: bool = False
    files: dict[str, dict[str, Any]] = field(default_factory=dict)


def _read_state(path: Path, rate: float | None) -> _State:
    if not path.exists():
        return _State(0.01 if rate is None else rate)
    try:
        if not path.is_file():
            raise ValueError("it is no file")
        kept = read_state(path.read_text(encoding="utf-8"), [_FORMAT])
        monitor = CalibrationMonitor.from_json(json.dumps(get_field(kept, "monitor")))
        classes = read_labels(get_field(kept, "classes"), "classes")
        files, single = get_field(kept, "files"), get_field(kept, "single")
        if not isinstance(files, dict) or len(files) != len(monitor.steps_) or not files:
            raise ValueError("'files' must have an entry for every step")
        for entry in files.values():
            read_text(get_field(entry, "name"), "name")
            read_count(get_field(entry, "status"), "status", 0, 1)
            read_text(get_field(entry, "result"), "result")
        if not isinstance(single, bool) or classes != np.array(monitor.classes_).tolist():
            raise ValueError("'classes' must be those of the monitor")
        if single and len(classes or ()) != 2:
            raise ValueError("'single' must be false for several classes")
        state = _State(monitor.false_alarm_rate, monitor, classes, single, files)
    except ValueError as error:
        raise ValueError(
            f"{path} must be a state that this command has written: {str(error)[:300]}."
        ) from None
    if rate not in (None, state.false_alarm_rate):
        raise ValueError(
            f"false-alarm-rate must be that of the state, {state.false_alarm_rate:g}, got "
            f"{rate:g}."
        )
    return state


def _read_step(options: argparse.Namespace, state: _State) -> tuple[Any, Any, Any, Any]:
    """Return labels, probabilities, groups, what was read; the first file fixes the classes."""
    positive = state.classes[1] if state.classes is not None and state.single else None
    table = read_predictions(
        options.predictions,
        options.label,
        options.classes,
        options.pos_label or positive,
        None,
        options.by,
        None,
        options.prediction,
        options.confidence,
        percent=options.percent,
    )
    _write_alignment(table)
    y_true, y_proba, labels = table["y_true"], table["y_proba"], list(table["labels"])
    single = y_proba.ndim == 1
    if single:
        # A file may lack the other class, whose name is then unknown.
        positive = table["pos_label"]
        negative = "wrong" if table.get("of_answers") else f"not {positive}"
        y_true = np.where(y_true == positive, positive, negative)
        labels = [negative, positive]
    if state.classes is None:
        state.classes, state.single = labels, single
    if single != state.single or sorted(labels) != sorted(state.classes):
        raise ValueError(
            f"{options.predictions} must have the classes of the steps before, "
            f"{', '.join(state.classes)}, got {', '.join(labels)}; the option classes names the "
            "columns."
        )
    if not single:
        y_proba = y_proba[:, [labels.index(name) for name in state.classes]]
    return y_true, y_proba, _name_groups(table["by"]), table["source"]


def _name_groups(by: dict[str, NDArray[Any]] | None) -> NDArray[Any] | None:
    """Return the name of every sample's group, such as "site=A, age=old"."""
    if by is None:
        return None
    rows = zip(*([f"{name}={value}" for value in values] for name, values in by.items()))
    return np.array([", ".join(row) for row in rows])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status, 2 where the input is refused."""
    options = _make_parser().parse_args(arguments)
    try:
        with collecting() as notes:
            options.notes = notes
            status = int(options.run(options))
        for note in dict.fromkeys(notes):
            _write(sys.stderr, f"Note: {note}\n")
        return status
    except (OSError, ValueError, TypeError, ImportError) as error:
        _write(sys.stderr, f"python -m skcalib {options.command}: {_write_sentence(error)}\n")
        return 2
    except KeyboardInterrupt:
        _write(sys.stderr, f"python -m skcalib {options.command}: interrupted.\n")
        return 130  # as a shell has it


def _run_report(options: argparse.Namespace) -> int:
    if options.output.exists() and options.output.samefile(options.predictions):
        raise ValueError(f"output must be another file than the predictions, {options.output}.")
    with redirect_stdout(sys.stderr):  # for what is printed on the way
        report = CalibrationReport.from_csv(
            options.predictions,
            label=options.label,
            classes=options.classes,
            pos_label=options.pos_label,
            prediction=options.prediction,
            confidence=options.confidence,
            percent=options.percent,
            costs=None if options.costs is None else _parse_costs(options.costs),
            act_above=options.act_above,
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
        _write(sys.stderr, f"Note: {finding}\n")
    _write(sys.stdout, f"{report.results_['summary']['headline']}\n{options.output}\n")
    return 0


def _add_compare(commands: Any) -> None:
    compare = commands.add_parser(
        "compare",
        help="write a page that compares models, or one model on different samples",
        description="Write a page that compares the first model with the others: from a file of "
        "predictions for each, of the same samples in the same order, or from one file whose "
        "columns --models names.",
    )
    add = compare.add_argument
    add("predictions", type=Path, nargs="+", help="two files or more, or one with --models")
    where = "the page, as HTML or, with a name that ends in .md, as Markdown"
    add("-o", "--output", type=Path, default=Path("comparison.html"), help=where)
    what = (
        "the columns of probabilities of the positive class, one a model; of several classes, "
        "what the names of a model's columns begin or end with: old for old_cat, old_dog"
    )
    add("--models", nargs="+", help=what)
    add("--different-samples", action="store_true", help="files of two months, not of two models")
    add("--label", help="the column of labels (default: label, y_true, y, target, ...)")
    add("--classes", nargs="+", help="the columns of probabilities, the same in every file")
    add("--pos-label", help="the positive class of two, where one column has its probability")
    add("--percent", action="store_true", help=_PERCENT)
    add("--weight", help="a column of sample weights")
    add("--groups", help="a column that says which samples belong together, such as patients")
    add("--title", help="heading of the page")
    add("--seed", type=int, default=0, help="seed of resamples (default: 0)")
    compare.set_defaults(run=_run_compare)


def _run_compare(options: argparse.Namespace) -> int:
    for path in options.predictions:
        if options.output.exists() and options.output.samefile(path):
            raise ValueError(f"output must be another file than the predictions, {path}.")
    probas, y_true, about = read_models(
        options.predictions,
        options.models,
        paired=not options.different_samples,
        label=options.label,
        classes=options.classes,
        pos_label=options.pos_label,
        sample_weight=options.weight,
        groups=options.groups,
        percent=options.percent,
    )
    sources = about.pop("source")
    report = CalibrationReport.compare(
        probas, y_true, **about, title=options.title, random_state=options.seed
    )
    report.save(options.output)
    for name, source in sources.items():
        _write(sys.stderr, f"{name}: ")
        show_reading(source, options.notes)
    _write(sys.stdout, f"{report.results_['summary']['headline']}\n{options.output}\n")
    return 0


def _parse_costs(text: str) -> list[list[float]]:
    """Return the table of costs from text such as "0 200; 5 5"."""
    try:
        rows = [[float(cell) for cell in row.replace(",", " ").split()] for row in text.split(";")]
        if len({len(row) for row in rows}) == 1:
            return rows
    except ValueError:
        pass
    raise ValueError(
        f'costs must be a number for every class and decision, such as "0 200; 5 5", got {text!r}.'
    )


def _write_sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} must be a file that can be opened, got {error.strerror!r}."
    return str(error)


def _make_parser() -> argparse.ArgumentParser:
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
    add("--percent", action="store_true", help=_PERCENT)
    _add_answers(report)
    add("--weight", help="a column of sample weights")
    add("--by", action="append", default=[], help="a column to break results down by; repeatable")
    add("--groups", help="a column that says which samples belong together, such as patients")
    what = "act on a sample from this probability of the positive class on: what that is worth"
    add("--act-above", type=float, help=what)
    what = (
        "what each decision costs for each class, in the order of the classes: decisions are "
        'separated by semicolons, as in "0 200; 5 5" for wait and act'
    )
    add("--costs", help=what)
    add("--title", help="heading of the page (default: the name of the file)")
    add("--seed", type=int, default=0, help="seed of resamples and folds (default: 0)")
    what = "print every part of the page and its seconds, to the standard error"
    add("-v", "--verbose", action="count", default=0, help=what)
    report.set_defaults(run=_run_report)
    _add_compare(commands)
    add_commands(commands)
    return parser


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        # A terminal without the letters of a label shows their numbers.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main())
