"""Our own question: wrong labels found, and acted on; the students are those of [RMD]."""

from __future__ import annotations

from functools import partial

import numpy as np

from .claims import METRICS, about
from .methods import CE, DECAY
from .needs import TEXTS
from .results import Part, Study
from .rmd import AWARE, DROP, NOISY, SETTINGS, SOFT, about_soft_labels
from .runner import compare
from .tables import Column, comparison
from .texts import Clinc, text_task

# The point of a run by the validation labels that stop it.
STOPS = {"clean": "stop", "noisy": "stop, noisy", "repaired": "stop, repaired"}
COLUMNS = (
    METRICS["temperature"], Column("epoch", "epoch", 1, 1), METRICS["accuracy"],
    METRICS["nll_scaled"],
)  # fmt: skip


def validation(options, records):
    """Choice, stopping and temperature by noisy, by repaired and by clean validation labels."""
    clinc = Clinc(options.data, options.out)
    make = partial(text_task, clinc, 20, "U20", noisy_validation=True)
    how = (SETTINGS[20], "U20", options.seeds)
    compare(records, make, (CE, DROP, SOFT), *how, every=True)


def by_validation(settings):
    """Kinds of validation labels as methods: what each stops at, and what it would choose."""
    found = {}
    for setting, methods in settings.items():
        of_setting = found.setdefault(f"labels, {setting}", {})
        for kind, point in STOPS.items():
            stopped = [points[point] for points in methods.values()]
            best = np.argmin([values["val_nll_scaled"] for values in stopped], axis=0)
            of_setting |= {
                f"{name}, {kind}": {"last": {m: v for m, v in values.items() if m in STORED}}
                for name, values in zip(methods, stopped)
            }
            choice = {
                metric: [stopped[i][metric][seed] for seed, i in enumerate(best)]
                for metric in ("accuracy", "nll_scaled")
            }
            of_setting[f"choice, {kind}"] = {"last": {"options": {}, **choice}}
    return found


def validation_table(settings):
    """Test accuracy and scaled log-loss where each kind of validation label stops and scales."""
    title = "Stopped and scaled by validation labels of three kinds"
    (methods,) = settings.values()
    return comparison(title, methods, "last", COLUMNS, reference="")


_drop = about("rmd20", DROP.name, "accuracy", settings=NOISY)
_soft = about("rmd20", SOFT.name, "accuracy", CE.name, NOISY)
_soft_of_all = about("rmd100", SOFT.name, "accuracy", CE.name, NOISY, point="stop")
_validated = about("validation", settings="labels, U20")
CLAIMS = (
    _drop("Dropping the hardest samples beats the difficulty-aware loss: accuracy.",
          rivals=AWARE.name),
    _drop("It does with early stopping of both.", rivals=AWARE.name, point="stop"),
    _drop("Dropping needs the difficulty: random samples give less.", rivals="drop at random"),
    *about_soft_labels(_soft, headline="U20"),
    _soft("They beat dropping the hardest.", rivals=DROP.name),
    _soft("They beat relabeling: log-loss.", "nll", "label issues: relabel"),
    _soft("They beat weighing down: log-loss.", "nll", "label issues: weight"),
    _soft_of_all("They beat cross-entropy with early stopping on all samples of the texts."),
    _soft_of_all("There they beat weight decay with early stopping.", rivals=DECAY.name),
    _soft_of_all("There they beat dropping the hardest.", rivals=DROP.name, point="last"),
    _validated("Noisy validation labels stop cross-entropy at an epoch that is as good: accuracy.",
               "accuracy", f"{CE.name}, clean", method=f"{CE.name}, noisy", no_loss=True),
    _validated("They choose a method that is as good: accuracy.", "accuracy", "choice, clean",
               method="choice, noisy", no_loss=True),
    _validated("They spoil the temperature: the log-loss is higher than with clean ones.",
               "nll_scaled", f"{SOFT.name}, noisy", method=f"{SOFT.name}, clean"),
    _validated("Repaired validation labels are as good as clean ones: log-loss.", "nll_scaled",
               f"{SOFT.name}, clean", method=f"{SOFT.name}, repaired", no_loss=True),
    _validated("Repaired validation labels choose a method that is as good: log-loss.",
               "nll_scaled", "choice, clean", method="choice, repaired", no_loss=True),
)  # fmt: skip

KEPT = ("epoch", "val_nll_scaled")
STORED = ("options", "accuracy", "nll_scaled", "temperature", "epoch")
STUDY = Study(
    "wrong labels",
    {"validation": Part(validation, validation_table, KEPT, derive=by_validation, files=TEXTS)},
    CLAIMS,
)
