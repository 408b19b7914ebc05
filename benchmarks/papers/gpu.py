"""Half an hour of an accelerator: ``python -m benchmarks.papers gpu --data DIR --out DIR``.

CIFAR-10 with a ResNet-18, bfloat16, 12 epochs; cross-entropy, focal loss and BSCE-GRA with their
published parameters, three seeds. No run starts that would not end in ``--minutes``; a second call
goes on. ``--out`` has the runs (``gpu.jsonl``) and what was printed (``gpu.log``). From the data
folder it needs ``cifar10_jpeg.npz`` alone, one file of 56 MB.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import torch

from . import full
from .runner import Records, Tasks, one_run
from .tables import COLUMNS, cell

METHODS = ("cross-entropy", "focal", "BSCE-GRA")
N_SEEDS, N_EPOCHS, NETWORK = 3, 12, "resnet18"


def run(options):
    start, longest = time.perf_counter(), 0.0
    if torch.cuda.is_available():
        options.device = "cuda"
    records = Records(options.out / "gpu.jsonl")
    settings = full.image_settings(options, "gra", batch_size=256, milestones=())
    settings = replace(settings, n_epochs=options.epochs or N_EPOCHS)
    setting = full.named_setting(options, NETWORK)
    methods = [method for method in full.gra_methods(options) if method.name in METHODS]
    for seed in range(min(options.seeds, N_SEEDS)):
        tasks = Tasks(partial(full.full_task, options, NETWORK))
        for method in methods:
            key = {"setting": setting, "method": method.name, "seed": seed}
            began = time.perf_counter()
            if key in records or began - start + longest > 60 * options.minutes:
                continue
            (chosen,) = method.candidates
            make = partial(one_run, tasks[seed], method, chosen, settings, seed, stops=False)
            points = records.get(key, make)["points"]
            seconds = time.perf_counter() - began
            longest = max(longest, seconds)
            _say(options, f"{method.name}, seed {seed}, {seconds:.1f} s: {_measured([points])}")
    for method in methods:
        rows = records.where(setting=setting, method=method.name)
        points = [row["points"] for row in rows]
        if points:
            _say(options, f"{method.name}, {len(points)} seeds: {_measured(points)}")


def _measured(points):
    columns = [column for column in COLUMNS if column.metric in points[0]["last"]]
    cells = (cell([p["last"][column.metric] for p in points], column) for column in columns)
    return "; ".join(f"{column.header} {text}" for column, text in zip(columns, cells))


def _say(options, line):
    print(line, flush=True)
    with (options.out / "gpu.log").open("a") as log:
        log.write(line + "\n")
