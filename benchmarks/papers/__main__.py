"""Run a study: ``python -m benchmarks.papers rmd --data DIR``; or write the page: ``... page``.

``page`` makes the JSON files of the repository from the finished runs in ``--out``, where there
are any, and from these the tables and claims of ``docs/evidence``.
"""

from __future__ import annotations

import argparse
import math
from importlib import import_module
from pathlib import Path

import torch

from . import page
from .results import summarize
from .runner import Records, TimeIsUp

HERE = Path(__file__).parent


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("study", choices=(*page.STUDIES, "replicate", "quick", "page"))
    parser.add_argument("--data", type=Path, help="folder with the real data")
    parser.add_argument("--out", type=Path, default=HERE.parent / "results" / "papers")
    parser.add_argument("--scale", choices=("small", "full"), default="small")
    parser.add_argument("--device", default="cpu", help="for --scale full: cuda")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="one part of the study")
    parser.add_argument("--noise", nargs="+", help="some settings of the study, such as U20")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no run too late")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="for quick: fewer epochs")
    full = parser.add_argument_group("with --scale full")
    sets = ("cifar10", "cifar100", "svhn", "fashion_mnist")
    full.add_argument("--dataset", choices=sets, default="cifar10")
    full.add_argument("--network", help="a ResNet of torchvision in place of the paper's")
    full.add_argument("--target", default="resnet50", help="the target of prio")
    full.add_argument("--networks", type=int, default=250, help="networks of depth, 10 or more")
    full.add_argument("--features", type=Path, help=".npz with features of the training images")
    full.add_argument("--epochs", type=int, help="fewer than in the paper")
    full.add_argument("--images", type=int, help="fewer images, for a trial")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    options.seeds = range(options.seeds)
    if options.study == "page":
        summarize(page.STUDIES.values(), options.out)
        import_module("benchmarks.papers.replicate").summarize(options)
        page.write()
        return
    if options.data is None:
        parser.error("--data is needed by every study")
    try:
        if options.study in ("quick", "replicate"):
            import_module(f"benchmarks.papers.{options.study}").run(options)
            return
        parts = page.STUDIES[options.study].parts
        if options.scale == "full":
            torch.backends.cudnn.benchmark = True  # the same shapes, step after step
            parts = import_module("benchmarks.papers.full").parts(options.study)
        for name, part in parts.items():
            if options.only in ("", name) or options.scale == "full":
                part.run(options, Records(options.out / f"{name}.jsonl", options.minutes))
    except TimeIsUp as stop:
        print(stop)


if __name__ == "__main__":
    main()
