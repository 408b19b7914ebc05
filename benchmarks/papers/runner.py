"""Runs of a study: one JSON line each, so that a second call skips what is there."""

from __future__ import annotations

import json
import time
from copy import copy
from pathlib import Path

from .measures import measure
from .students import train

# Candidates are chosen on this seed, which is not reported.
SCREENING_SEED = 100


class Records:
    """The runs of one study, kept in a file that only grows."""

    def __init__(self, path: Path):
        self.path = path
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
            start = time.process_time()
            row = {"key": key, **compute()}
            row["seconds"] = round(time.process_time() - start, 2)
            with self.path.open("a") as file:
                file.write(json.dumps(row, default=float) + "\n")
            self.rows[_text(key)] = row
            shown = " ".join(
                f"{name} {point['accuracy']:.4f} {point.get('ece', 0.0):.4f}"
                for name, point in row.get("points", {}).items()
                if "accuracy" in point
            )
            line = ", ".join(f"{value}" for value in key.values() if value != {})
            print(f"{line}: {shown} ({row['seconds']:.1f} s)", flush=True)
        return self.rows[_text(key)]

    def only(self, keep):
        """Return the runs whose key `keep` is true for, to be read."""
        part = copy(self)
        part.rows = {text: row for text, row in self.rows.items() if keep(row["key"])}
        return part

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
        compute = lambda: train_one(tasks[seed], method, options, settings, seed, stops)
        records.get(key, compute)

    tasks = Tasks(make_task)
    for method in methods if not every else ():
        for options in method.candidates:
            run(tasks, method, options, SCREENING_SEED)
    for seed in seeds:
        tasks = Tasks(make_task)
        for method in methods:
            options = method.candidates
            if not every:
                options = list(chosen(records, method.name, setting).values())
            for i, one in enumerate(options):
                if one not in options[:i]:
                    run(tasks, method, one, seed)


class Tasks:
    """Tasks by seed, made when a run needs them."""

    def __init__(self, make_task):
        self.make_task, self.made = make_task, {}

    def __getitem__(self, seed):
        if seed not in self.made:
            self.made[seed] = self.make_task(seed)
        return self.made[seed]


def chosen(records, method, setting):
    """Return the options chosen for the last epoch and for early stopping."""
    rows = list(records.where(setting=setting, method=method, seed=SCREENING_SEED))
    criteria = {"last": "val_nll", "stop": "val_nll_scaled"}
    return {
        point: min(rows, key=lambda row: row["points"][point][name])["key"]["options"]
        for point, name in criteria.items()
        if rows and point in rows[0]["points"]
    }
