"""[GRA]: nine losses on texts and small images, and the toy of Sec. 4.3."""

from __future__ import annotations

from functools import partial

from .compare import compare
from .images import image_task
from .methods import GRA
from .records import Records
from .students import Settings
from .texts import Clinc, text_task
from .toy import correlations

PARTS = ("toy", "texts", "images")


def run(options):
    for part in PARTS:
        if options.only in ("", part):
            globals()[f"study_{part}"](options)


def study_texts(options):
    clinc = Clinc(options.data, options.out)
    records = Records(options.out / "gra_texts.jsonl")
    for noise in options.noise or ("clean", "U20"):
        make = partial(text_task, clinc, 20, noise)
        compare(
            records, make, GRA, Settings(n_epochs=20), noise, range(options.seeds), stops=False
        )


def study_images(options):
    """Four thousand images of CIFAR-10, halved, and a small convolutional network."""
    records = Records(options.out / "gra_images.jsonl")
    settings = Settings(n_epochs=12, lr=2e-3, batch_size=64)
    make = partial(image_task, options.data)
    compare(records, make, GRA, settings, "CIFAR-10, small", range(options.seeds), stops=False)


def study_toy(options):
    records = Records(options.out / "gra_toy.jsonl")
    for seed in range(max(options.seeds, 5)):
        for spread in (0.3, 0.8):
            key = {"setting": f"standard deviation {spread}", "seed": seed}
            records.get(key, partial(correlations, spread, seed))
