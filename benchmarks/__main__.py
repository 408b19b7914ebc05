"""Run every benchmark of this folder, one process each: ``python -m benchmarks [--data DIR]``."""

import argparse
import subprocess
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with real data, for those that take it")
    data = parser.parse_args().data
    failed = []
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        takes_data = "--data" in path.read_text()
        if takes_data and data is None:
            print(f"\n=== {path.stem}: skipped, it needs --data", flush=True)
            continue
        print(f"\n=== {path.stem}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{path.stem}"]
        command += ["--data", str(data)] if takes_data else []
        if subprocess.run(command, check=False).returncode:
            failed.append(path.stem)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
