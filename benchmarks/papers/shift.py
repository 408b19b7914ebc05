"""Shift: five corruptions of CIFAR-10 images at five severities.

Noise, blur, contrast, brightness and JPEG, by torchvision, with the severities of ImageNet-C, blur
in half the pixels; a severity is the mean over corruptions. Students are those of the other
studies of images, and the losses have their published parameters. Their probabilities on 2000 test
images are judged as they are, with a temperature fitted on 2000 clean validation images, and with
one fitted on 500 other test images of the same corruption and severity.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from skcalib.losses import functional
from skcalib.metrics import expected_calibration_error
from skcalib.posthoc import TemperatureScaling

from . import images as cifar
from .claims import about
from .measures import divergence, proba_of
from .methods import CE
from .needs import IMAGES
from .results import Part, Study, described
from .students import Plan, logits_of, train
from .tables import Column, values_tables

LOSSES = {
    "cross-entropy": functional.cross_entropy_loss,
    "focal 3": partial(functional.focal_loss, gamma=3.0),
    "BSCE-GRA 4": functional.bsce_gra_loss,
}
N_TEST, N_FIT = 2000, 500
SEVERITIES = {
    "noise": (0.08, 0.12, 0.18, 0.26, 0.38),
    "blur": (0.5, 1.0, 1.5, 2.0, 3.0),
    "contrast": (0.4, 0.3, 0.2, 0.1, 0.05),
    "brightness": (1.2, 1.4, 1.6, 1.8, 2.0),
    "jpeg": (25, 18, 15, 10, 7),
}


def corrupted(images, kind, value):
    """Return corrupted bytes (n, 32, 32, 3)."""
    from torchvision.transforms.v2 import functional as F

    torch.manual_seed(0)
    batch = torch.from_numpy(images).permute(0, 3, 1, 2)
    corrupt = {
        "noise": lambda: F.gaussian_noise(batch / 255, sigma=value).mul(255).round().byte(),
        "blur": lambda: F.gaussian_blur(batch, kernel_size=13, sigma=value),
        "contrast": lambda: F.adjust_contrast(batch, value),
        "brightness": lambda: F.adjust_brightness(batch, value),
        "jpeg": lambda: torch.stack([F.jpeg(image, quality=value) for image in batch]),
    }
    return corrupt[kind]().permute(0, 2, 3, 1).numpy()


def corrupted_inputs(folder):
    """Return {(kind, severity): inputs} of the first images that all students are tested on."""
    images, _ = cifar.pictures(folder, "test")
    test, _ = cifar.test_and_other_rows(len(images))
    images = images[test[: N_TEST + N_FIT]]
    inputs = {("none", 0): cifar.Pictures(cifar.as_input(images, cifar.SIZE))}
    for kind, values in SEVERITIES.items():
        for severity, value in enumerate(values, 1):
            batch = corrupted(images, kind, value)
            inputs[kind, severity] = cifar.Pictures(cifar.as_input(batch, cifar.SIZE))
    return inputs


def run(options, records):
    images = cifar.Cifar(options.data, options.out)
    inputs = corrupted_inputs(options.data)
    for seed in options.seeds:
        task = cifar.cifar_task(images, "clean", seed)
        for name in LOSSES:
            key = {"setting": "clean", "method": name, "seed": seed}
            records.get(key, partial(measured, task, inputs, name))


def measured(task, every_input, name):
    """Return severities as settings, and what was done to the probabilities as methods."""
    plan = Plan(LOSSES[name], task.given)
    net = train(task, plan, cifar.IMAGES, seed=task.seed, watch=False).net
    clean = TemperatureScaling(mix_uniform=True)
    clean.fit(logits_of(net, task.inputs["val"]).numpy(), task.val_labels["clean"])
    rows = {}
    for (_, severity), inputs in every_input.items():
        logits = logits_of(net, inputs).numpy()
        judged = _judged(logits, task.test_labels, clean)
        if not severity:
            human = divergence(task.human[:N_TEST], proba_of(logits)[:N_TEST])
            judged["last"]["human_kl"] = human
        rows.setdefault(f"severity {severity}", []).append(judged)
    return {
        "found": {
            severity: {
                f"{name}, {how}": {
                    "last": {m: float(np.mean([r[how][m] for r in found])) for m in values}
                }
                for how, values in found[0].items()
            }
            for severity, found in rows.items()
        }
    }


def _judged(logits, y, clean):
    y = y[: len(logits)]
    test, fit = slice(N_TEST), slice(N_TEST, None)
    own = TemperatureScaling(mix_uniform=True).fit(logits[fit], y[fit])
    proba = {
        "last": proba_of(logits[test]),
        "clean temperature": clean.predict_proba(logits[test]),
        "own temperature": own.predict_proba(logits[test]),
    }
    rows = {
        how: {"ECE": expected_calibration_error(y[test], p, strategy="quantile")}
        for how, p in proba.items()
    }
    rows["last"]["accuracy"] = float((logits[test].argmax(axis=1) == y[test]).mean())
    return rows


COLUMNS = (
    Column("accuracy", "Accuracy, %", 100),
    Column(
        "ECE", "ECE as trained and with a temperature from clean images or the same shift, %", 100
    ),
    Column("human_kl", "Divergence from human labels, CIFAR-10H", digits=3),
)


_lower = about("shift", metric="ECE", settings=[f"severity {i}" for i in range(6)])
AS_TRAINED, CLEAN = f"{CE.name}, last", f"{CE.name}, clean temperature"
CLAIMS = (
    *(_lower(text, method=method, rivals=rival) for text, method, rival in (
        ("A temperature from clean images lowers the ECE of cross-entropy.", CLEAN, AS_TRAINED),
        ("A temperature from images of the same shift lowers it further.",
         f"{CE.name}, own temperature", CLEAN),
        ("BSCE-GRA is better calibrated than cross-entropy.", "BSCE-GRA 4, last", AS_TRAINED),
        ("It is better than cross-entropy with a temperature from clean images.",
         "BSCE-GRA 4, last", CLEAN),
        ("Focal loss is better calibrated than cross-entropy.", "focal 3, last", AS_TRAINED),
    )),
)  # fmt: skip

STUDY = Study(
    "shift",
    {"shift": Part(run, partial(values_tables, columns=COLUMNS), files=IMAGES)},
    CLAIMS,
    described(__doc__),
)
