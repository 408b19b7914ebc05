"""Run the benchmarks of speed and one small table a paper: ``python -m benchmarks [--data DIR]``.

Every benchmark runs in a process of its own; all of them together have twenty minutes, and what is
not done by then is stopped and named. The long studies of this folder run by their names, such as
``python -m benchmarks.labels --data DIR`` and ``python -m benchmarks.papers rmd --data DIR``;
``--all`` runs every script, without a limit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 20 * 60
HERE = Path(__file__).parent
# Ratios to a bound of the same run, quick ones first.
SPEED = (
    "losses", "nets", "selective", "posthoc", "calibration", "difficulty", "prediction_depth",
    "embeddings",
)  # fmt: skip
PAPERS = "papers quick"


def every_script() -> list[str]:
    return [path.stem for path in sorted(HERE.glob("[!_]*.py"))]


def takes_data(name: str) -> bool:
    return name == PAPERS or "--data" in (HERE / f"{name}.py").read_text()


def needs_data(name: str) -> bool:
    return name == PAPERS or "required=True" in (HERE / f"{name}.py").read_text()


def run(name: str, data: Path | None, limit: float | None) -> bool:
    """Run one benchmark; return whether it ended well."""
    if data is None and needs_data(name):
        print(f"\n=== {name}: skipped, it needs --data", flush=True)
        return True
    print(f"\n=== {name}", flush=True)
    module, *arguments = name.split()
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    command += ["--data", str(data)] if data is not None and takes_data(name) else []
    try:
        return not subprocess.run(command, check=False, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        print(f"{name}: stopped, the time is up", flush=True)
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with real data, for those that take it")
    parser.add_argument("--all", action="store_true", help="every script, without a limit of time")
    options = parser.parse_args()
    start, failed = time.monotonic(), []
    for name in (PAPERS, *(every_script() if options.all else SPEED)):
        limit = None if options.all else max(1.0, LIMIT - (time.monotonic() - start))
        if not run(name, options.data, limit):
            failed.append(name)
    if failed:
        print(f"\nfailed or stopped: {', '.join(failed)}", file=sys.stderr)
    print(f"\n{(time.monotonic() - start) / 60:.1f} minutes", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
