"""One small table a paper, in about two minutes: two seeds, parameters that others have chosen."""

from __future__ import annotations

import numpy as np

from skcalib import losses

from . import depth, prio
from .methods import CE, Method, aware, by_loss, cleaned
from .runner import one_run
from .students import Settings
from .texts import Clinc, text_task

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
    seeds = range(1 if options.small else 2)
    settings = Settings(n_epochs=2 if options.small else 20)
    n_steps = 2 * prio.LATE[1] if options.small else prio.N_STEPS
    print("[RMD], [GRA]: CLINC150, 20 samples a class, 20 % of the labels flipped; last epoch")
    print(f"{'':<28}" + "".join(f"{name:>13}" for name in SHOWN))
    tasks = [text_task(clinc, 20, "U20", seed) for seed in seeds]
    for method, chosen in METHODS:
        runs = [one_run(task, method, chosen, settings, task.seed, stops=False) for task in tasks]
        _line(method.name, runs, SHOWN)
    print("\n[PRIO]: all texts, a fifth of the samples after a warm-up, equal steps")
    tasks = [prio.make_task(clinc, "clean", seed) for seed in seeds]
    for guide in prio.EVERYWHERE:
        runs = [
            prio.prioritized(task, CE.plan(task), guide, task.seed, n_steps=n_steps)
            for task in tasks
        ]
        _line(guide, runs, ("accuracy", "nll", "seconds"))
    print("\n[DEPTH]: digits, one run")
    (values,) = depth.measured("digits", depth.digits, 0, 4 if options.small else depth.N_REPEATS)[
        "found"
    ].values()
    for name in ("depth and correct", "depth and consensus", "depth and iteration learned"):
        print(f"{name:<28}{values[name]['last']['value']:13.3f}")


def _line(name, runs, shown):
    rows = [run["points"]["last"] for run in runs]
    means = (np.mean([row[metric] for row in rows]) for metric in shown)
    print(f"{name:<28}" + "".join(f"{value:13.4f}" for value in means), flush=True)
