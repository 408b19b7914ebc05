"""One small table a paper, in about two minutes: two seeds, parameters that others have chosen."""

from __future__ import annotations

import numpy as np

from skcalib import losses

from . import depth, prio
from .compare import run as run_one
from .methods import CE, Method, aware, by_loss, cleaned
from .students import Settings
from .texts import Clinc, text_task

SEEDS = range(2)
AWARE = {"temperature": 0.1, "alpha": 1.0}
SHOWN = ("temperature", "accuracy", "ece", "nll", "aurc")
METHODS = (
    (CE, {}),
    (Method("focal 2 [RMD, GRA]", by_loss(losses.focal_loss)), {"gamma": 2.0}),
    (Method("BSCE-GRA 1 [GRA]", by_loss(losses.bsce_gra_loss)), {"exponent": 1.0}),
    (Method("difficulty-aware [RMD]", aware()), AWARE),
    (Method("shuffled difficulty", aware(control="shuffled")), AWARE),
    (Method("soft labels of the finder", cleaned("soft")), {}),
)


def run(options):
    clinc = Clinc(options.data, options.out)
    tasks = [text_task(clinc, 20, "U20", seed) for seed in SEEDS]
    print("[RMD], [GRA]: CLINC150, 20 samples a class, 20 % of the labels flipped; last epoch")
    print(f"{'':<28}" + "".join(f"{name:>13}" for name in SHOWN))
    for method, chosen in METHODS:
        rows = [
            run_one(task, method, chosen, Settings(n_epochs=20), task.seed, stops=False)
            for task in tasks
        ]
        _line(method.name, [row["points"]["last"] for row in rows], SHOWN)
    print("\n[PRIO]: all texts, a fifth of the samples after a warm-up, equal steps")
    for guide in prio.EVERYWHERE:
        points = [_prioritized(clinc, guide, seed) for seed in SEEDS]
        _line(guide, points, ("accuracy", "nll", "seconds"))
    print("\n[DEPTH]: digits, one run")
    found = depth.measured(depth.digits, 0)["found"]
    for name in ("depth and correct", "depth and consensus", "depth and iteration learned"):
        print(f"{name:<28}{found[name]:13.3f}")


def _prioritized(clinc, guide, seed):
    task = prio.make_task(clinc, "clean", seed)
    return prio.prioritized(task, "cross-entropy", guide, seed)["points"]["last"]


def _line(name, rows, shown):
    means = (np.mean([row[metric] for row in rows]) for metric in shown)
    print(f"{name:<28}" + "".join(f"{value:13.4f}" for value in means), flush=True)
