"""Twenty million rows of ten classes: seconds and memory of what adds up.

    python -m benchmarks.many_rows --folder FOLDER [--rows 20000000] [--out FILE]

Labels and probabilities lie in FOLDER (41 bytes a row), and every part runs in a process of its
own. Seconds are those of the processor, of all processes of the part together. Memory is the most
that a process held beyond what it held before, pages of the files that it reads included.
many_rows_results.json holds the table of the user guide.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from benchmarks._tables import simple_table, study
from skcalib.labels import LabelIssueFinder
from skcalib.metrics import (
    CalibrationAccumulator,
    calibration_error_interval,
    classwise_calibration_error,
)
from skcalib.report import CalibrationReport

N_CLASSES, BLOCK, N_SAMPLED = 10, 500_000, 50_000
MILLION = 1_000_000


def write(folder: Path, rows: int) -> None:
    """Write logits that are too large by a fifth, and labels drawn from those that are not."""
    make: Any = np.lib.format.open_memmap
    y = make(folder / "y.npy", "w+", np.int8, (rows,))
    proba = make(folder / "proba.npy", "w+", np.float32, (rows, N_CLASSES))
    rng = np.random.default_rng(0)
    for start in range(0, rows, BLOCK):
        part = slice(start, min(start + BLOCK, rows))
        logits = rng.normal(0, 2, (part.stop - start, N_CLASSES)).astype(np.float32)
        below = softmax(logits, axis=1).cumsum(axis=1)[:, :-1]
        y[part] = (rng.random((len(logits), 1), dtype=np.float32) > below).sum(axis=1)
        proba[part] = softmax(1.2 * logits, axis=1)


def read(folder: Path, rows: int | None = None) -> tuple[Any, Any]:
    y, proba = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("y", "proba"))
    return y[:rows], proba[:rows]


def block(folder: Path, name: str, start: int) -> np.ndarray:
    """Return some rows, and close the file."""
    return np.array(np.load(folder / f"{name}.npy", mmap_mode="r")[start : start + BLOCK])


def sums(folder: Path) -> CalibrationAccumulator:
    total = CalibrationAccumulator()
    for start in range(0, len(read(folder)[0]), BLOCK):
        total.update(block(folder, "y", start), block(folder, "proba", start))
    return total


def report_of_sums(folder: Path) -> None:
    y, proba = read(folder)
    part = np.sort(np.random.default_rng(0).choice(len(y), N_SAMPLED, replace=False))
    CalibrationReport.from_accumulator(sums(folder), y[part], proba[part])


def report_of_a_million(folder: Path) -> None:
    CalibrationReport.from_predictions(*read(folder, MILLION))


def interval(folder: Path) -> None:
    y, proba = read(folder, MILLION)
    calibration_error_interval(y, proba, n_resamples=200, random_state=0)


def interval_of_sums(folder: Path) -> None:
    y, proba = read(folder, MILLION)
    CalibrationAccumulator().update(y, proba).interval(random_state=0)


def interval_of_classes(folder: Path) -> None:
    y, proba = read(folder, MILLION // 10)
    given: dict[str, Any] = {"metric": classwise_calibration_error, "n_resamples": 200}
    calibration_error_interval(y, proba, random_state=0, **given)


def finder_of_a_million(folder: Path) -> None:
    y, proba = read(folder, MILLION)
    LabelIssueFinder("precomputed").fit(proba, y)


def error_of_chunks(y: Any, proba: Any) -> float:
    """Return the expected calibration error by the sums of all chunks."""
    return CalibrationAccumulator().update(y, proba).result()


def finder_of_chunks(y: Any, proba: Any) -> None:
    """Fit, and judge every label where it is."""
    finder = LabelIssueFinder("precomputed").fit(proba, y)
    finder.issues_["p_label_correct"].mean().compute()


def in_chunks(call: Callable[[Any, Any], Any]) -> Callable[[Path], dict[str, float]]:
    """Return the part that runs on two workers of dask; memory is the largest of a process."""

    def run(folder: Path) -> dict[str, float]:
        from distributed import Client, LocalCluster

        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            before = {"here": used(), **client.run(used)}
            y, proba = (in_blocks(folder, name) for name in ("y", "proba"))
            call(y, proba)
            after = {"here": used(), **client.run(used)}
        spent = [
            {name: after[key][name] - before[key][name] for name in after[key]} for key in after
        ]
        return {
            "seconds": sum(process["seconds"] for process in spent),
            "megabytes": max(process["megabytes"] for process in spent),
        }

    return run


def in_blocks(folder: Path, name: str) -> Any:
    """Return a dask array whose chunks the workers read."""
    import dask
    import dask.array as da

    whole = np.load(folder / f"{name}.npy", mmap_mode="r")
    return da.concatenate(
        [
            da.from_delayed(
                dask.delayed(block)(folder, name, start),
                (min(BLOCK, len(whole) - start), *whole.shape[1:]),
                whole.dtype,
            )
            for start in range(0, len(whole), BLOCK)
        ]
    )


def used() -> dict[str, float]:
    """Return the processor time of this process and the most memory that it has held."""
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": time.process_time(), "megabytes": megabytes}


# Name, rows (None: all), where it runs, and what runs.
PARTS: list[tuple[str, int | None, str, Callable[[Path], Any]]] = [
    ("CalibrationAccumulator.update", None, "blocks from a disk", sums),
    ("CalibrationReport.from_accumulator", None, "sums, and 50 000 of them", report_of_sums),
    ("CalibrationReport.from_predictions", MILLION, "memory", report_of_a_million),
    ("calibration_error_interval, 200 resamples", MILLION, "memory", interval),
    ("CalibrationAccumulator.interval", MILLION, "sums", interval_of_sums),
    ("calibration_error_interval, classwise", MILLION // 10, "memory", interval_of_classes),
    (
        "expected_calibration_error", None, "2 workers of dask",
        in_chunks(error_of_chunks),
    ),
    ("LabelIssueFinder, ready probabilities", MILLION, "memory", finder_of_a_million),
    (
        "LabelIssueFinder, ready probabilities", None, "2 workers of dask",
        in_chunks(finder_of_chunks),
    ),
]  # fmt: skip


def _run(k: int, folder: Path, sent: Any) -> None:
    before = used()
    found = PARTS[k][3](folder)
    if not isinstance(found, dict):
        after = used()
        found = {name: after[name] - before[name] for name in after}
    sent.send(found)


def measured(folder: Path, rows: int = 20 * MILLION) -> Iterator[dict[str, Any]]:
    if not (folder / "proba.npy").exists():
        write(folder, rows)
    for k, (name, n, where, _) in enumerate(PARTS):
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=_run, args=(k, folder, there)
        )
        process.start()
        found = here.recv()
        process.join()
        yield {"path": name, "rows": n or rows, "where": where, **found}


def guide_table(lines: list[dict[str, Any]]) -> str:
    """Return the table of the user guide."""
    rows = [
        (
            line["path"],
            line["where"],
            f"{line['rows'] / MILLION:g}",
            f"{line['seconds']:.2g}" if line["seconds"] < 10 else f"{line['seconds']:.0f}",
            f"{line['megabytes']:.0f}",
        )
        for line in lines
    ]
    return simple_table(("what", "where", "million rows", "seconds", "MB"), rows)


if __name__ == "__main__":
    study(__doc__, measured, folder=Path, rows=20 * MILLION)
