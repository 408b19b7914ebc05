"""[GRA]: nine losses on texts, and the toy of Sec. 4.3; images are in ``cifar.py``."""

from __future__ import annotations

from functools import partial

from .compare import compare
from .methods import GRA
from .records import Records
from .students import Settings
from .texts import Clinc, text_task
from .toy import HALF_SIDES, correlations

PARTS = ("toy", "texts")


def run(options):
    for part in PARTS:
        if options.only in ("", part):
            globals()[f"study_{part}"](options)


def study_texts(options):
    clinc = Clinc(options.data, options.out)
    records = Records(options.out / "gra_texts.jsonl")
    for noise in options.noise or ("clean", "U20"):
        make = partial(text_task, clinc, 20, noise)
        compare(records, make, GRA, Settings(n_epochs=20), noise, range(options.seeds))


def study_toy(options):
    records = Records(options.out / "gra_toy.jsonl")
    for seed in range(20):
        for half_side in HALF_SIDES:
            key = {"setting": f"means within {half_side}", "seed": seed}
            records.get(key, lambda h=half_side, s=seed: {"correlation": correlations(h, s)})
