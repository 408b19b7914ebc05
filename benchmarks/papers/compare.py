"""Compare methods on a task: choose candidates on one seed, report on others."""

from __future__ import annotations

from .measures import measure
from .students import train

SCREENING_SEED = 100


def run(task, method, options, settings, seed, stops=True):
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
        if name != "clean":
            rows[f"last, {name}"] = measure(trained.last, task.test_labels, labels)
    return {"points": rows}


def compare(
    records,
    make_task,
    methods,
    settings,
    setting,
    seeds,
    *,
    every=False,
    stops=True,
    train_one=run,
):
    """Run a setting: every candidate on the screening seed, the chosen ones on `seeds`.

    With `every`, all candidates run on all seeds: what a sensitivity needs. Without `stops`, only
    the last epoch counts. `train_one` makes one run.
    """
    how = (settings, setting, stops, train_one)
    if not every:
        tasks = Tasks(make_task)
        for method in methods:
            for options in method.candidates:
                _run(records, tasks, method, options, SCREENING_SEED, *how)
    for seed in seeds:
        tasks = Tasks(make_task)
        for method in methods:
            options = method.candidates
            if not every:
                options = list(chosen(records, method.name, setting).values())
            for one in _distinct(options):
                _run(records, tasks, method, one, seed, *how)


class Tasks:
    """Tasks by seed, made when a run needs them."""

    def __init__(self, make_task):
        self.make_task, self.made = make_task, {}

    def __getitem__(self, seed):
        if seed not in self.made:
            self.made[seed] = self.make_task(seed)
        return self.made[seed]


def _run(records, tasks, method, options, seed, settings, setting, stops, train_one):
    key = {"setting": setting, "method": method.name, "options": options, "seed": seed}
    new = key not in records
    row = records.get(key, lambda: train_one(tasks[seed], method, options, settings, seed, stops))
    if new:
        shown = " ".join(
            f"{name} {point['accuracy']:.4f} {point['ece']:.4f}"
            for name, point in row["points"].items()
        )
        line = f"{setting:<24} {method.name:<32}{options!s:<44}{seed:4d} {shown}"
        print(f"{line} {row['seconds']:.1f} s", flush=True)


def chosen(records, method, setting):
    """Return the options chosen for the last epoch and for early stopping."""
    rows = list(records.where(setting=setting, method=method, seed=SCREENING_SEED))
    criteria = {"last": "val_nll", "stop": "val_nll_scaled"}
    return {
        point: min(rows, key=lambda row: row["points"][point][name])["key"]["options"]
        for point, name in criteria.items()
        if point in rows[0]["points"]
    }


def _distinct(options):
    return [one for i, one in enumerate(options) if one not in options[:i]]
