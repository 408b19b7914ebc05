"""The tables of the guide's page on cost, from the results of benchmarks.scale."""

from __future__ import annotations

# On paper: a billion embeddings, and the probabilities of a model over them.
ROWS, FEATURES, CLASSES, PROBES = 10**9, 768, 1000, 20_000


def table(header: list[str], rows: list[list[str]], widths: str) -> str:
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [header, *rows]:
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines)


def time_of(seconds: float) -> str:
    units = {"years": 31_557_600.0, "days": 86_400.0, "hours": 3600.0, "minutes": 60.0}
    for unit, length in units.items():
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def constants_table(rows: list[dict]) -> str:
    cells = [
        [f"``{r['path']}``" if "(K" not in r["path"] else r["path"], r["unit"],
         f"{r['nanoseconds']:.2g} ns", f"{r['memory']:.1f}"]
        for r in rows
    ]  # fmt: skip
    return table(["path", "grows with", "each", "memory / input"], cells, "46 24 15 15")


def paper_table(rows: list[dict]) -> str:
    each = {(r["path"], r["unit"]): 1e-9 * r["nanoseconds"] for r in rows}
    by_path = {r["path"]: 1e-9 * r["nanoseconds"] for r in rows}
    n, d, n_classes = ROWS, FEATURES, CLASSES
    wide = f"n K, K = {CLASSES}"
    work = [
        ("RMDScorer.fit", by_path["RMDScorer.fit"] * n * d**2),
        ("RMDScorer.difficulty(X, y)", by_path["RMDScorer.difficulty(X, y)"] * n * d**2),
        (
            f"RMDScorer.difficulty(X), {CLASSES} classes",
            by_path["RMDScorer.difficulty(X)"] * n * d * (d + n_classes),
        ),
        (
            f"expected_calibration_error, {CLASSES} classes",
            each["expected_calibration_error", wide] * n * n_classes,
        ),
        (
            f"MaxEntropySelector.select, {CLASSES} classes",
            each["MaxEntropySelector.select", wide] * n * n_classes,
        ),
        ("k-NN search, a layer, all samples", _search(by_path) * n * n * d),
        (f"k-NN search, a layer, {PROBES} probe samples", _search(by_path) * n * PROBES * d),
    ]
    cells = [[name, time_of(value)] for name, value in work]
    cells.append(["reading 3.1 TB of float32 at 1 GB/s", time_of(4.0 * n * d / 1e9)])
    return table([f"10⁹ rows of {FEATURES} features", "one core"], cells, "65 35")


def _search(by_path: dict[str, float]) -> float:
    return by_path["k-NN search (KNNScorer, probes)"]


def limits_table(rows: list[dict]) -> str:
    cells = [[row["limit"], row["before"], row["after"]] for row in rows]
    return table(["limit", "before", "now"], cells, "44 28 28")


def stream_table(stream: dict) -> str:
    cells = [
        [row["who"], f"{row['fit_seconds']:.1f} s", f"{row['score_seconds']:.1f} s",
         f"{row['megabytes']} MB"]
        for row in stream["processes"]
    ]  # fmt: skip
    header = ["who", "``fit``", "``difficulty(X, y)``", "most memory a process"]
    return table(header, cells, "28 20 26 26")


def page(results: dict) -> str:
    stream = results["stream"]
    gigabytes = 4 * 512 * stream["rows"] / 1e9
    parts = [
        constants_table(results["constants"]),
        "A billion rows, by multiplication:",
        paper_table(results["constants"]),
        f"{stream['rows']:,} rows of 512 features in float32 ({gigabytes:.1f} GB), 100 "
        "classes, from zarr, and the scores back to zarr; a thread a process, 2 GB a worker. "
        "The scores of the workers differ from those of the one process by at most "
        f"{stream['difference']:.0e} of their standard deviation.",
        stream_table(stream),
        "What a review of an earlier state measured, and what is left of it:",
        limits_table(results["limits"]),
    ]
    return "\n\n".join(parts) + "\n"
