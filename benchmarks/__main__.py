"""Run the benchmarks of speed and one small table a paper: ``python -m benchmarks [--data DIR]``.

Every benchmark runs in a process of its own; all of them together have twenty minutes, and what is
not done by then is stopped and named. The long studies of this folder run by their names, such as
``python -m benchmarks.labels --data DIR`` and ``python -m benchmarks.papers rmd --data DIR``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 20 * 60
# Ratios to a bound of the same run, quick ones first.
SPEED = (
    "losses", "nets", "selective", "posthoc", "calibration", "difficulty", "embeddings",
)  # fmt: skip
PAPERS = "papers glance"


def main(arguments: list[str] | None = None) -> int:
    """Run every entry; return 1 if one failed or was stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with the real data, also for the papers")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the scripts")
    options = parser.parse_args(arguments)
    more = ["--data", str(options.data)] if options.data else []
    more += ["--small"] if options.small else []
    start, failed = time.monotonic(), []
    for name in (PAPERS, *SPEED) if options.data else SPEED:
        print(f"\n=== {name}", flush=True)
        module, *study = name.split()
        command = [sys.executable, "-m", f"benchmarks.{module}", *study, *more]
        limit = max(1.0, LIMIT - (time.monotonic() - start))
        try:
            failed += (
                [name] if subprocess.run(command, check=False, timeout=limit).returncode else []
            )
        except subprocess.TimeoutExpired:
            failed.append(f"{name} (the time is up)")
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    print(f"\n{(time.monotonic() - start) / 60:.1f} minutes", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
