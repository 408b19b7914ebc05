"""One small table a paper, in about two minutes: two seeds, parameters that others have chosen."""

from __future__ import annotations

import numpy as np

from skcalib.losses import functional

from . import depth, prio
from .methods import CE, Method, aware, by_loss, cleaned
from .runner import one_run
from .students import Settings
from .texts import Clinc, text_task

AWARE = {"temperature": 0.1, "alpha": 1.0}
SHOWN = ("temperature", "accuracy", "ece", "nll", "aurc")
METHODS = (
    (CE, {}),
    (Method("focal 2 [RMD, GRA]", by_loss(functional.focal_loss)), {"gamma": 2.0}),
    (Method("BSCE-GRA 1 [GRA]", by_loss(functional.bsce_gra_loss)), {"exponent": 1.0}),
    (Method("difficulty-aware [RMD]", aware()), AWARE),
    (Method("shuffled difficulty", aware(control="shuffled")), AWARE),
    (Method("soft labels of the finder", cleaned("soft")), {}),
)


def run(options):
    clinc = Clinc(options.data, options.out)
    seeds, settings, n_steps = range(2), Settings(n_epochs=20), prio.N_STEPS
    if options.small:
        seeds, settings, n_steps = range(1), Settings(n_epochs=2), 2 * prio.LATE[1]
    print("[RMD], [GRA]: CLINC150, 20 samples a class, 20 % of the labels flipped; last epoch")
    print(f"{'':<28}" + "".join(f"{name:>13}" for name in SHOWN))
    tasks = [text_task(clinc, 20, "U20", seed) for seed in seeds]
    for method, chosen in METHODS:
        how = (method, chosen, settings)
        _line(method.name, SHOWN, [one_run(task, *how, task.seed, stops=False) for task in tasks])
    print("\n[PRIO]: all texts, a fifth of the samples after a warm-up, equal steps")
    tasks = [prio.make_task(clinc, "clean", seed) for seed in seeds]
    for guide in prio.EVERYWHERE:
        train = lambda t, g=guide: prio.prioritized(t, CE.plan(t), g, t.seed, n_steps=n_steps)
        _line(guide, ("accuracy", "nll", "seconds"), list(map(train, tasks)))
    print("\n[DEPTH]: digits, one run")
    n_repeats = 4 if options.small else depth.N_REPEATS
    n_digits = 400 if options.small else None
    load = lambda: tuple(part[:n_digits] for part in depth.digits(None))
    values = depth.measured("digits", load, 0, n_repeats)["found"]["digits"]
    for name in ("depth and correct", "depth and consensus", "depth and iteration learned"):
        print(f"{name:<28}{values[name]['last']['value']:13.3f}")


def _line(name, shown, runs):
    means = (np.mean([run["points"]["last"][metric] for run in runs]) for metric in shown)
    print(f"{name:<28}" + "".join(f"{value:13.4f}" for value in means), flush=True)
