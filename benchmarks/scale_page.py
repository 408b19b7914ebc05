"""The tables of the guide's page on cost, from the results of benchmarks.scale."""

from __future__ import annotations


def table(header: list[str], rows: list[list[str]], widths: str) -> str:
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [header, *rows]:
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines)


def constants_table(rows: list[dict]) -> str:
    cells = [
        [f"``{r['path']}``" if "(K" not in r["path"] else r["path"], r["unit"],
         f"{r['nanoseconds']:.2g} ns", f"{r['memory']:.1f}"]
        for r in rows
    ]  # fmt: skip
    return table(["path", "grows with", "each", "memory / input"], cells, "46 24 15 15")


def limits_table(rows: list[dict]) -> str:
    # What is no number says what has changed since a review, which is nothing to a reader.
    cells = [[row["limit"], row["after"]] for row in rows if any(map(str.isdigit, row["after"]))]
    return table(["at the limits", "takes"], cells, "60 40")


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
