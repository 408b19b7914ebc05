"""Run a study, or write the tables: ``python -m benchmarks.papers rmd --data DIR``."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import torch

STUDIES = ("rmd", "gra", "prio", "depth", "shift")
HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--data", type=Path, required=True, help="folder with the real data")
    parser.add_argument("--out", type=Path, default=HERE.parent / "results" / "papers")
    parser.add_argument("--scale", choices=("small", "full"), default="small")
    parser.add_argument("--device", default="cpu", help="for --scale full: cuda")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="one part of the study")
    parser.add_argument("--noise", nargs="+", help="some settings of the study, such as U20")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    import_module(f"benchmarks.papers.{options.study}").run(options)


if __name__ == "__main__":
    main()
