"""Runs of a study: one JSON line each, so that a second call skips what is there."""

from __future__ import annotations

import json
import math
import time
from functools import cache
from pathlib import Path

from .measures import measure
from .students import train

# Candidates are chosen on this seed, which is not reported.
SCREENING_SEED = 100
# Of every method, the first candidates that are tried; None: all.
MAX_CANDIDATES = None


class TimeIsUp(Exception):
    """The next run would not end in time; a second call goes on with it."""


class Records:
    """The runs of one study, kept in a file that only grows; none is begun too late to end.

    With the `settings` of earlier results, methods have the options that were chosen there, and
    only those of `only`, pairs of setting and method, are run.
    """

    def __init__(self, path: Path, minutes: float = math.inf, *, settings=None, only=()):
        self.path, self.end, self.longest = path, time.monotonic() + 60 * minutes, 0.0
        self.settings, self.only = settings, only
        path.parent.mkdir(parents=True, exist_ok=True)
        self.rows = {}
        if path.exists():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                self.rows[_text(row["key"])] = row

    def __contains__(self, key):
        return _text(key) in self.rows

    def get(self, key, compute):
        """Return the row of a run; compute, append and print it if it is not there."""
        if key not in self:
            began, start = time.monotonic(), time.process_time()
            if began + self.longest > self.end:
                raise TimeIsUp(f"The time is up before {key}.")
            row = {"key": key, **compute()}
            row["seconds"] = round(time.process_time() - start, 2)
            self.longest = max(self.longest, time.monotonic() - began)
            with self.path.open("a") as file:
                file.write(json.dumps(row, default=float) + "\n")
            self.rows[_text(key)] = row
            line = ", ".join(f"{value}" for value in key.values() if value != {})
            print(f"{line} ({row['seconds']:.1f} s)", flush=True)
        return self.rows[_text(key)]

    def where(self, **fixed):
        """Yield the rows whose key has these entries."""
        for row in self.rows.values():
            if all(row["key"].get(name) == value for name, value in fixed.items()):
                yield row


def _text(key):
    return json.dumps(key, sort_keys=True)


def found(setting, metric, values):
    """Return the row of a run that measures one number of each of several names."""
    return {"found": {setting: {name: {"last": {metric: v}} for name, v in values.items()}}}


def one_run(task, method, options, settings, seed, stops=True):
    """Train one student; measure it after the last epoch and where validation stops it."""
    trained = train(task, method.plan(task, **options), settings, seed=seed, watch=stops)
    clean, human = task.val_labels["clean"], getattr(task, "human", None)
    rows = {"last": measure(trained.last, task.test_labels, clean, human)}
    for name, logits in trained.stops.items():
        labels = task.val_labels[name]
        rows["stop" if name == "clean" else f"stop, {name}"] = {
            **measure(logits, task.test_labels, labels, human),
            "epoch": trained.epochs[name],
        }
    return {"points": rows}


def compare(
    records, make_task, methods, settings, setting, seeds, *, every=False, stops=True,
    train_one=one_run,
):  # fmt: skip
    """Run a setting: every candidate on the screening seed, the chosen ones on `seeds`.

    With `every`, all candidates run on all seeds: what a sensitivity needs. Without `stops`, only
    the last epoch counts. `train_one` makes one run.
    """

    def run(tasks, method, options, seed):
        key = {"setting": setting, "method": method.name, "options": options, "seed": seed}
        compute = lambda: train_one(tasks(seed), method, options, settings, seed, stops)
        records.get(key, compute)

    if records.settings is not None:
        methods = [method for method in methods if (setting, method.name) in records.only]
    tasks = cache(make_task)
    for method in methods if not (every or records.settings) else ():
        for options in method.candidates[:MAX_CANDIDATES]:
            run(tasks, method, options, SCREENING_SEED)
    for seed in seeds:
        tasks = cache(make_task)
        for method in methods:
            options = method.candidates[:MAX_CANDIDATES]
            if not every:
                options = list(chosen(records, method.name, setting).values())
            for i, one in enumerate(options):
                if one not in options[:i]:
                    run(tasks, method, one, seed)


def chosen(records, method, setting):
    """Return the options chosen for the last epoch and for early stopping."""
    if records.settings is not None:
        points = records.settings.get(setting, {}).get(method, {})
        return {point: values["options"] for point, values in points.items()}
    rows = list(records.where(setting=setting, method=method, seed=SCREENING_SEED))
    criteria = {"last": "val_nll", "stop": "val_nll_scaled"}
    return {
        point: min(rows, key=lambda row: row["points"][point][name])["key"]["options"]
        for point, name in criteria.items()
        if rows and point in rows[0]["points"]
    }
