"""Time and memory of the hot paths, limits, and data past memory: python -m benchmarks.scale.

Three parts. Constants: processor seconds of one thread, the least of some repeats, over the number
that they grow with; and the most memory that was allocated, over the bytes of the input. Limits:
many classes, half precision, tight clusters. Stream: features that lie in zarr, fitted and scored
by one process, and by one and two workers of 2 GB.

Writes benchmarks/scale_results.json and, from it, docs/measured/scale_results.inc, which is
what the page of the guide shows; a test compares both. --rows sets the length of the stream,
--folder where it lies (2 KB a row).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._timing import peak_bytes, seconds
from benchmarks.papers.tables import csv_table
from skcalib import metrics
from skcalib.difficulty import KNNScorer, RMDScorer
from skcalib.difficulty._neighbors import NeighborSearch, NeighborVote
from skcalib.posthoc import TemperatureScaling
from skcalib.selection import MaxEntropySelector

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks/scale_results.json"
PAGE = ROOT / "docs/measured/scale_results.inc"
# Classes of ImageNet-21k.
MANY = 21_841
STREAM_FEATURES, STREAM_CLASSES, STREAM_CHUNK = 512, 100, 50_000


def labeled(n: int, d: int, n_classes: int, dtype: type = np.float32) -> tuple:
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X[np.arange(n), y % d] += 3
    return X.astype(dtype, copy=False), y


def probabilities(n: int, n_classes: int) -> tuple:
    """Return probabilities, labels drawn from them, and their logits."""
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((n, n_classes), dtype=np.float32)
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    proba = np.exp(logits)
    return proba / proba.sum(axis=1, keepdims=True), y, logits


def wide_paths(n: int, n_classes: int) -> Iterator[tuple]:
    proba, y, logits = probabilities(n, n_classes)
    size = (f"n K, K = {n_classes}", proba.size, proba.nbytes)
    for name in ("expected_calibration_error", "classwise_calibration_error"):
        yield name, *size, partial(getattr(metrics, name), y, proba)
    selector = MaxEntropySelector().fit(proba[:10])
    yield "MaxEntropySelector.select", *size, lambda: selector.select(proba)
    yield "TemperatureScaling.fit", *size, lambda: TemperatureScaling().fit(logits, y)


def paths() -> Iterator[tuple]:
    """Yield (name, what it grows with, that number, bytes of the input, call)."""
    yield from wide_paths(500_000, 10)
    yield from wide_paths(20_000, 1000)
    rng = np.random.default_rng(0)
    p = rng.random(1_000_000, dtype=np.float32)
    hit = (rng.random(len(p)) < p).astype(int)
    size = ("n, two classes", len(p), p.nbytes)
    yield "smooth_calibration_error", *size, lambda: metrics.smooth_calibration_error(hit, p)
    yield "ks_calibration_error", *size, lambda: metrics.ks_calibration_error(hit, p)

    d, n_classes = 512, 100
    X, y = labeled(100_000, d, n_classes)
    scorer = RMDScorer().fit(X, y)
    size = ("n d²", len(X) * d**2, X.nbytes)
    yield "RMDScorer.fit", *size, lambda: RMDScorer().fit(X, y)
    yield "RMDScorer.difficulty(X, y)", *size, lambda: scorer.difficulty(X, y)
    size = ("n d (d + K)", len(X) * d * (d + n_classes), X.nbytes)
    yield "RMDScorer.difficulty(X)", *size, lambda: scorer.difficulty(X)
    few = RMDScorer().partial_fit(X[:2000], y[:2000])

    def finalize() -> None:
        (few + RMDScorer()).finalize()

    yield "RMDScorer.finalize", "d³ + K d²", d**3 + n_classes * d**2, 8 * d**2, finalize
    train, queries = X[:50_000], X[:4000]
    knn = KNNScorer(n_neighbors=30).fit(train)
    size = ("n_train n d", len(train) * len(queries) * d, train.nbytes + queries.nbytes)
    yield "k-NN search (KNNScorer, probes)", *size, lambda: knn.difficulty(queries)


def constants() -> list[dict]:
    rows = []
    with threadpool_limits(1):
        for name, unit, number, n_bytes, call in paths():
            rows.append({
                "path": name, "unit": unit, "number": number,
                "nanoseconds": float(f"{1e9 * seconds(call) / number:.3g}"),
                "memory": round(peak_bytes(call) / n_bytes, 2),
            })  # fmt: skip
            print(rows[-1], flush=True)
    return rows


def many_classes() -> tuple[float, float, float]:
    """Return the seconds of a sum, of finalize, and of the difficulty of one sample."""
    X, y = labeled(3 * MANY, 1024, MANY)
    y[:MANY] = np.arange(MANY)  # a sample of every class
    first = RMDScorer().partial_fit(X, y)
    second = RMDScorer().partial_fit(X[::-1], y[::-1])  # about other references
    added = seconds(lambda: first + second, 1)
    finalized = seconds(first.finalize, 1)
    return added, finalized, seconds(lambda: first.difficulty(X[:1], y[:1]))


def limits() -> Iterator[dict]:
    """Yield what the limits take: many classes, half precision, tight clusters."""
    sizes = f"K = {MANY}, d = 1024"
    added, finalized, one = many_classes()
    found = {
        f"two scorers added, {sizes}": f"{added:.1f} s",
        f"difficulty of one sample, {sizes}": f"{1e3 * one:.1f} ms; finalize, once, "
        f"{finalized:.1f} s",
    }
    X, y = labeled(500_000, 128, 100, np.float16)
    peak = peak_bytes(lambda: RMDScorer().fit(X, y))
    found["memory of a fit on 500 000 x 128 of float16"] = f"{peak / 2**20:.0f} MB in all"
    vote = NeighborVote(NeighborSearch(30, metric="euclidean", algorithm="brute"))
    vote.y_encoded_, vote.n_classes_ = np.arange(MANY), MANY
    neighbors = np.random.default_rng(0).integers(0, MANY, (5000, 30))
    peak = peak_bytes(lambda: vote.winner(neighbors))
    found[f"memory of the votes for 5000 samples, K = {MANY}"] = f"{peak / 2**20:.0f} MB"
    found["k-NN search in tight clusters"] = f"{tight_ratio():.1f} x faiss"
    for name, size in (("classwise_calibration_error", MANY), ("score_decomposition", 1000)):
        proba, y, _ = probabilities(20_000_000 // size, size)
        taken = seconds(partial(getattr(metrics, name), y, proba, labels=np.arange(size)), 1)
        found[f"{name}, 2e7 numbers, K = {size}"] = f"{taken:.2f} s"
    for what, value in found.items():
        print(f"{what}: {value}", flush=True)
        yield {"limit": what, "after": value}


def tight_ratio() -> float:
    """Return processor time of a search in ten tight clusters over that of faiss."""
    import faiss

    rng = np.random.default_rng(0)
    centers = rng.normal(size=(10, 256))
    X = (centers[np.arange(20_000) % 10] + 1e-3 * rng.normal(size=(20_000, 256))).astype("f4")
    search = NeighborSearch(30, metric="euclidean", algorithm="faiss").fit(X)
    with threadpool_limits(1):
        ours = seconds(lambda: search.kneighbors(X[:2000]))
        return ours / seconds(lambda: faiss.knn(X[:2000], X, 30))


def write_stream(folder: Path, n_rows: int) -> None:
    import zarr

    options = {"compressors": None, "overwrite": True}
    shape, chunks = (n_rows, STREAM_FEATURES), (STREAM_CHUNK, STREAM_FEATURES)
    X = zarr.create_array(folder / "X", shape=shape, chunks=chunks, dtype="f4", **options)
    y = zarr.create_array(folder / "y", shape=shape[:1], chunks=chunks[:1], dtype="i8", **options)
    block, label = labeled(min(n_rows, STREAM_CHUNK), STREAM_FEATURES, STREAM_CLASSES)
    for number, start in enumerate(range(0, n_rows, STREAM_CHUNK)):
        rows = slice(start, min(start + STREAM_CHUNK, n_rows))
        # Sums of equal blocks would have no rounding errors to compare.
        scale = np.float32(1 + 1e-3 * number)
        X[rows], y[rows] = scale * block[: rows.stop - start], label[: rows.stop - start]


def peak_memory() -> int:
    """Return the most memory that this process has held, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def stream_alone(folder: Path) -> tuple[float, float, int]:
    """Return seconds of the fit and of the scores, and the memory of one process of one thread."""
    import zarr

    X, y = zarr.open(folder / "X"), zarr.open(folder / "y")
    out = zarr.create_array(folder / "one", shape=y.shape, chunks=y.chunks, dtype="f8")
    blocks = [slice(s, s + STREAM_CHUNK) for s in range(0, y.shape[0], STREAM_CHUNK)]
    with threadpool_limits(1):
        start = time.perf_counter()
        scorer = RMDScorer()
        for rows in blocks:
            scorer.partial_fit(X[rows], y[rows])
        fitted = time.perf_counter()
        for rows in blocks:
            out[rows] = scorer.difficulty(X[rows], y[rows])
        return fitted - start, time.perf_counter() - fitted, peak_memory()


def stream_on_workers(folder: Path, n_workers: int) -> tuple[float, float, int]:
    import dask.array as da
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers, threads_per_worker=1, memory_limit="2GB", host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        X, y = da.from_zarr(str(folder / "X")), da.from_zarr(str(folder / "y"))
        for module in ("skcalib.difficulty", "zarr"):
            client.run(__import__, module)  # not part of the work
        start = time.perf_counter()
        scorer = RMDScorer().fit(X, y)
        fitted = time.perf_counter()
        scorer.difficulty(X, y).to_zarr(str(folder / f"workers{n_workers}"))
        end = time.perf_counter()
        return fitted - start, end - fitted, max(client.run(peak_memory).values())


def stream(folder: Path, n_rows: int) -> dict:
    import zarr

    write_stream(folder, n_rows)
    rows = []
    # A process of its own, whose memory is that of the stream alone.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = {"one process": pool.apply(stream_alone, (folder,))}
    for n_workers in (1, 2):
        name = f"{n_workers} worker{'s' * (n_workers > 1)} of dask"
        found[name] = stream_on_workers(folder, n_workers)
    for name, (fit, score, memory) in found.items():
        rows.append({
            "who": name, "fit_seconds": round(fit, 2), "score_seconds": round(score, 2),
            "megabytes": round(memory / 2**20),
        })  # fmt: skip
        print(rows[-1], flush=True)
    alone = zarr.open(folder / "one")[:]
    apart = [float(abs(zarr.open(folder / f"workers{k}")[:] - alone).max()) for k in (1, 2)]
    spread = float(alone.std())
    return {"rows": n_rows, "processes": rows, "difference": max(apart) / spread}


# --- the page ------------------------------------------------------------------------------------


def constants_table(rows: list[dict]) -> str:
    cells = [
        [f"``{r['path']}``" if "(K" not in r["path"] else r["path"], r["unit"],
         f"{r['nanoseconds']:.2g} ns", f"{r['memory']:.1f}"]
        for r in rows
    ]  # fmt: skip
    header = ["path", "grows with", "each", "memory / input"]
    return csv_table("", header, cells, widths="46 24 15 15")


def limits_table(rows: list[dict]) -> str:
    cells = [[row["limit"], row["after"]] for row in rows]
    return csv_table("", ["at the limits", "takes"], cells, widths="60 40")


def stream_table(stream: dict) -> str:
    cells = [
        [row["who"], f"{row['fit_seconds']:.1f} s", f"{row['score_seconds']:.1f} s",
         f"{row['megabytes']} MB"]
        for row in stream["processes"]
    ]  # fmt: skip
    header = ["who", "``fit``", "``difficulty(X, y)``", "most memory a process"]
    return csv_table("", header, cells, widths="28 20 26 26")


def page(results: dict) -> str:
    stream = results["stream"]
    gigabytes = 4 * 512 * stream["rows"] / 1e9
    rate = gigabytes / stream["processes"][-1]["fit_seconds"]
    parts = [
        constants_table(results["constants"]),
        f"{stream['rows']:,} rows of 512 features in float32 ({gigabytes:.1f} GB), 100 "
        "classes, from zarr, and the scores back to zarr; a thread a process, 2 GB a worker. "
        "The scores of the workers differ from those of the one process by at most "
        f"{1e6 * stream['difference']:.0f} millionths of their standard deviation.",
        stream_table(stream),
        f"Two workers read {rate:.1f} GB a second. Where the disk gives no more, a second one "
        "adds nothing. The one process reads and computes by turns.",
        limits_table(results["limits"]),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path, help="where the stream lies; else a temporary one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        streamed = stream(Path(folder), arguments.rows)
    results = {"constants": constants(), "limits": list(limits()), "stream": streamed}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
