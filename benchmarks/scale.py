"""Time and memory of the hot paths, limits, and data past memory: python -m benchmarks.scale.

Four parts. Constants: processor seconds of one thread, the least of some repeats, over the number
that they grow with; and the most memory that was allocated, over the bytes of the input. Growth:
such seconds against the number of samples. Limits: many classes, half precision, tight clusters.
Stream: features that lie in zarr, fitted and scored by one process, and by one and two workers of
2 GB.

Writes benchmarks/scale_results.json and, from it, what the page of the guide shows:
docs/measured/scale_results.inc, which a test compares, and docs/_static/scale_growth.png. --draw
makes both from the file there is. --rows sets the length of the stream, --folder where it lies
(2 KB a row).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._timing import least_seconds, peak_bytes, seconds
from benchmarks.papers.tables import csv_table
from skcalib import metrics
from skcalib.difficulty import KNNScorer, RMDScorer
from skcalib.difficulty._neighbors import NeighborSearch, NeighborVote
from skcalib.posthoc import TemperatureScaling
from skcalib.selection import MaxEntropySelector

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks/scale_results.json"
PAGE = ROOT / "docs/measured/scale_results.inc"
PICTURE = ROOT / "docs/_static/scale_growth.png"
# Classes of ImageNet-21k.
MANY = 21_841
FEATURES, CLASSES, STREAM_CHUNK = 512, 100, 50_000
PROBES = 20_000
SIZES = [1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
# Growth: what takes longer than this is not measured at more samples.
LONGEST = 5.0
LAST = 1e9
LABEL_HEIGHT = 5.5  # as a factor on the axis of time
UNITS = {"1 ms": 1e-3, "1 s": 1.0, "1 minute": 60.0, "1 hour": 3600.0, "1 day": 86_400.0,
         "1 year": 31_557_600.0}  # fmt: skip


def labeled(n: int, d: int, n_classes: int, dtype: type = np.float32) -> tuple:
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X[np.arange(n), y % d] += 3
    return X.astype(dtype, copy=False), y


def probabilities(n: int, n_classes: int, spread: float = 1.0) -> tuple:
    """Return probabilities, labels drawn from them, and their logits."""
    rng = np.random.default_rng(0)
    logits = spread * rng.standard_normal((n, n_classes), dtype=np.float32)
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    proba = np.exp(logits)
    return proba / proba.sum(axis=1, keepdims=True), y, logits


def wide_paths(n: int, n_classes: int) -> Iterator[tuple]:
    proba, y, logits = probabilities(n, n_classes)
    size = (f"n K, K = {n_classes}", proba.size, proba.nbytes)
    for name in ("expected_calibration_error", "classwise_calibration_error"):
        yield name, *size, partial(getattr(metrics, name), y, proba)
    selector = MaxEntropySelector(fraction=0.3).fit(proba[:10])
    yield "MaxEntropySelector.select", *size, lambda: selector.select(proba)
    yield (
        "TemperatureScaling.fit",
        *size,
        lambda: TemperatureScaling(mix_uniform=True).fit(logits, y),
    )


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


def paths_of(n: int) -> Iterator[tuple[str, int, Callable]]:
    """Yield (name, power of n that it grows with, call)."""
    X, y = labeled(n, FEATURES, CLASSES)
    neighbors = KNNScorer(n_neighbors=30).fit(X)
    yield "all exact neighbors", 2, lambda: neighbors.difficulty(X)
    few = KNNScorer(n_neighbors=30).fit(labeled(PROBES, FEATURES, CLASSES)[0])
    yield f"neighbors among {PROBES:,}".replace(",", " "), 1, lambda: few.difficulty(X)
    yield "RMDScorer.fit", 1, lambda: RMDScorer().fit(X, y)
    scorer = RMDScorer().fit(X, y).finalize()
    yield "RMDScorer.difficulty", 1, lambda: scorer.difficulty(X)
    proba, y, _ = probabilities(n, CLASSES)
    selector = MaxEntropySelector(fraction=0.3).fit(proba[:10])
    yield "MaxEntropySelector.select", 1, lambda: selector.select(proba)
    yield "expected_calibration_error", 1, lambda: metrics.expected_calibration_error(y, proba)


def growth() -> list[dict]:
    found: dict[str, dict] = {}
    with threadpool_limits(1):
        for n in SIZES:
            for name, power, call in paths_of(n):
                row = found.setdefault(
                    name, {"path": name, "power": power, "samples": [], "seconds": []}
                )
                if row["seconds"] and row["seconds"][-1] > LONGEST:
                    continue
                call()
                row["samples"].append(n)
                row["seconds"].append(float(f"{seconds(call, 5 if n < 10**5 else 2):.3g}"))
                print(f"{n:9,} {name:28} {row['seconds'][-1]:8.4f} s", flush=True)
    return list(found.values())


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
    for n, n_classes in ((1000, 2), (2000, 10)):
        ratio = numpy_ratio(n, n_classes)
        found[f"expected_calibration_error, {n} x {n_classes}"] = f"{ratio:.1f} x bare numpy"
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


def numpy_ratio(n: int, n_classes: int) -> float:
    """Return processor time of an ECE over that of the same in numpy, without any check."""
    proba, y, _ = probabilities(n, n_classes)
    proba = proba.astype(np.float64)

    def bare() -> float:
        label = proba.argmax(axis=1)
        confidence = proba[np.arange(n), label]
        index = np.clip(np.ceil(15 * confidence).astype(np.intp) - 1, 0, 14)
        return float(np.abs(np.bincount(index, confidence - (label == y), 15)).sum() / n)

    def ours() -> float:
        return metrics.expected_calibration_error(y, proba)

    np.testing.assert_allclose(ours(), bare(), rtol=1e-9)
    with threadpool_limits(1):
        times = least_seconds({"ours": ours, "bare": bare}, repeats=3000)
    return times["ours"] / times["bare"]


def write_stream(folder: Path, n_rows: int) -> None:
    import zarr

    options = {"compressors": None, "overwrite": True}
    shape, chunks = (n_rows, FEATURES), (STREAM_CHUNK, FEATURES)
    X = zarr.create_array(folder / "X", shape=shape, chunks=chunks, dtype="f4", **options)
    y = zarr.create_array(folder / "y", shape=shape[:1], chunks=chunks[:1], dtype="i8", **options)
    block, label = labeled(min(n_rows, STREAM_CHUNK), FEATURES, CLASSES)
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


def at_last(row: dict) -> float:
    """Return the time for as many samples as the picture goes to, in proportion."""
    return float(row["seconds"][-1] * (LAST / row["samples"][-1]) ** row["power"])


def time_of(seconds: float) -> str:
    units = {"years": 31_557_600.0, "days": 86_400.0, "hours": 3600.0, "minutes": 60.0}
    for unit, length in units.items():
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def draw(rows: list[dict], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.2, 4.8), layout="constrained")
    height = 0.0  # of the label below
    for row in sorted(rows, key=at_last):
        n, t, end = row["samples"], row["seconds"], at_last(row)
        (line,) = ax.loglog(n, t, "o-", markersize=4)
        ax.loglog([n[-1], LAST], [t[-1], end], "--", color=line.get_color(), linewidth=1)
        height = max(end, LABEL_HEIGHT * height)
        ax.annotate(
            f"{row['path']}: {time_of(end)}", (LAST, height), (6, 0), textcoords="offset points",
            color=line.get_color(), va="center", annotation_clip=False,
        )  # fmt: skip
    ax.set_yticks(list(UNITS.values()), list(UNITS))
    ax.set_xticks(
        10.0 ** np.arange(3, 10), ["1 thousand", "", "", "1 million", "", "", "1 billion"]
    )
    ax.minorticks_off()
    ax.grid(alpha=0.3)
    ax.set(xlabel="samples", ylabel="time of one thread", xlim=(SIZES[0], LAST))
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=144)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path, help="where the stream lies; else a temporary one")
    parser.add_argument("--draw", action="store_true", help="make page and picture alone")
    arguments = parser.parse_args()
    if not arguments.draw:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            streamed = stream(Path(folder), arguments.rows)
        results = {"constants": constants(), "growth": growth(), "limits": list(limits())}
        RESULTS.write_text(json.dumps(results | {"stream": streamed}, indent=1) + "\n")
    results = json.loads(RESULTS.read_text())
    PAGE.write_text(page(results))
    draw(results["growth"], PICTURE)


if __name__ == "__main__":
    main()
