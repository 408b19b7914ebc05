"""[GRA] on CIFAR-10 images, clean labels."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from . import gra
from .claims import claim
from .images import IMAGES, Cifar, cifar_task
from .methods import CE, IMAGE_GRIDS, with_candidates
from .results import Part, Study
from .rmd_images import HUMAN
from .runner import compare
from .tables import CALIBRATION, COLUMNS, comparisons

METHODS = with_candidates(gra.METHODS, IMAGE_GRIDS)


def run(options, records):
    make = partial(cifar_task, Cifar(options.data, options.out), "clean")
    compare(records, make, METHODS, IMAGES, "clean", range(options.seeds))


def _image(text, metric, method="BSCE-GRA"):
    return claim("gra_images", text, method, metric, CE.name, "clean")


# What is claimed of texts, and what only images can tell.
CLAIMS = (
    *(replace(c, part="gra_images", settings=("clean",))
      for c in gra.CLAIMS if c.part == "gra_texts"),
    _image("As published, BSCE-GRA 4 is better calibrated than cross-entropy.", "ece",
           "BSCE-GRA 4, as published"),
    _image("Its predictions are closer to human labels than those of cross-entropy.", "human_kl"),
    _image("They are after temperature scaling of both.", "human_kl_scaled"),
    _image("After temperature scaling its log-loss is lower than that of cross-entropy.",
           "nll_scaled"),
)  # fmt: skip

KEPT = (*HUMAN, "ece_width", "classwise")
TABLE = partial(comparisons, columns=(*COLUMNS, *CALIBRATION))
STUDY = Study("[GRA], images", {"gra_images": Part(run, TABLE, KEPT, METHODS)}, CLAIMS)
