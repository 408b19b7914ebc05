"""Run a study: ``python -m benchmarks.papers rmd --data DIR``; or write the page: ``... page``.

``--list`` says what each study needs, and where it comes from; ``--scale quick`` runs a study, or
all, on data that come with scikit-learn. ``page`` makes the JSON files of the repository from the
finished runs in ``--out``, where there are any, and from these the tables and claims of
``docs/evidence``.
"""

from __future__ import annotations

import argparse
import math
from importlib import import_module
from pathlib import Path

import torch

from . import needs, page
from .results import Part, summarize
from .runner import Records, TimeIsUp

HERE = Path(__file__).parent
# Beside the studies: the main claims on fresh seeds, a small table a paper, the pages.
OTHERS = ("replicate", "glance", "page")


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("study", nargs="?", choices=(*page.STUDIES, *OTHERS))
    parser.add_argument("--list", action="store_true", help="what each study needs")
    parser.add_argument("--data", type=Path, help="folder with the real data, see --list")
    parser.add_argument("--out", type=Path, default=HERE.parent / "results" / "papers")
    parser.add_argument("--scale", choices=("quick", "small", "full"), default="small")
    parser.add_argument("--device", default="cpu", help="for --scale full: cuda")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="one part of the study")
    parser.add_argument("--noise", nargs="+", help="some settings of the study, such as U20")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no run too late")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="for glance: fewer epochs")
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
    if options.list:
        print(needs.describe(page.STUDIES))
        return
    if options.study is None and options.scale != "quick":
        parser.error(f"name a study ({', '.join(page.STUDIES)}), or --list, or --scale quick")
    try:
        run(options)
    except needs.Missing as missing:
        parser.exit(2, f"{parser.prog}: {missing}\n")
    except TimeIsUp as stop:
        print(stop)


def run(options):
    torch.set_num_threads(options.threads)
    if options.scale == "quick":
        chosen = {n: s for n, s in page.STUDIES.items() if options.study in (None, n)}
        import_module("benchmarks.papers.quick").run(chosen, options.only)
        return
    options.seeds = range(options.seeds)
    if options.study == "page":
        summarize(page.STUDIES.values(), options.out)
        import_module("benchmarks.papers.replicate").summarize(options)
        page.write()
        return
    if options.scale == "full":
        parts = import_module("benchmarks.papers.full").parts(options.study)
        torch.backends.cudnn.benchmark = True  # the same shapes, step after step
        files = [{"cifar10": "cifar10_jpeg.npz"}.get(options.dataset, f"{options.dataset}.npz")]
    else:
        parts = parts_of(options.study, options.only)
        files = needs.files_of(parts.values())
    needs.check_packages(parts.values())
    needs.check_data(options.data, files)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.study in OTHERS:
        import_module(f"benchmarks.papers.{options.study}").run(options)
        return
    for name, part in parts.items():
        part.run(options, Records(options.out / f"{name}.jsonl", options.minutes))


def parts_of(study, only):
    """Return the parts of a study that are asked for, by name; `only` is one of them, or ""."""
    if study == "replicate":
        names = {claim.part for _, claim, _ in page.repeated()}
        known = {n: part for s in page.STUDIES.values() for n, part in s.parts.items()}
        parts = {name: known[name] for name in names}
    elif study == "glance":
        return {"glance": Part(run=None, files=needs.TEXTS)}
    else:
        parts = page.STUDIES[study].parts
    if only and only not in parts:
        raise needs.Missing(f"--only must be one of {', '.join(parts)}, got {only}.")
    return {name: part for name, part in parts.items() if only in ("", name)}


if __name__ == "__main__":
    main()
