"""Shift: five corruptions of CIFAR-10 images at five severities.

Noise, blur, contrast, brightness and JPEG, by torchvision, with the severities of ImageNet-C, blur
in half the pixels; a severity is the mean over corruptions. A network of two convolutions and two
linear layers learns 4000 clean images, 16 x 16 pixels, for 12 epochs (Adam, .002, batches of 64);
the losses have their published parameters. Its probabilities on 2000 test images
are judged as they are, with a temperature fitted on 2000 clean validation images, and with one
fitted on 500 other images of the same corruption and severity.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import torch

from skcalib import losses
from skcalib.metrics import expected_calibration_error
from skcalib.posthoc import TemperatureScaling

from .images import Pictures, as_input, image_task, pictures
from .measures import divergence, nll, proba_of
from .records import Records
from .students import Plan, Settings, logits_of, train

LOSSES = {
    "cross-entropy": losses.cross_entropy_loss,
    "focal 3": partial(losses.focal_loss, gamma=3.0),
    "BSCE-GRA 4": losses.bsce_gra_loss,
}
SETTINGS = Settings(n_epochs=12, lr=2e-3, batch_size=64)
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
    if kind == "noise":
        noisy = F.gaussian_noise(batch.float() / 255, sigma=value)
        batch = (255 * noisy).round().to(torch.uint8)
    elif kind == "blur":
        batch = F.gaussian_blur(batch, kernel_size=13, sigma=value)
    elif kind == "contrast":
        batch = F.adjust_contrast(batch, value)
    elif kind == "brightness":
        batch = F.adjust_brightness(batch, value)
    else:
        batch = torch.stack([F.jpeg(image, quality=value) for image in batch])
    return batch.permute(0, 2, 3, 1).numpy()


@cache
def corrupted_inputs(folder):
    """Return {(kind, severity): inputs}; the same images for every network."""
    images, _ = pictures(folder, "test")
    images = images[: N_TEST + N_FIT]
    inputs = {("none", 0): Pictures(as_input(images, 16))}
    for kind, values in SEVERITIES.items():
        for severity, value in enumerate(values, 1):
            batch = corrupted(images, kind, value)
            inputs[kind, severity] = Pictures(as_input(batch, 16))
    return inputs


def run(options):
    records = Records(options.out / "shift.jsonl")
    for seed in range(options.seeds):
        for name in LOSSES:
            key = {"setting": "CIFAR-10, small", "method": name, "seed": seed}
            new = key not in records
            row = records.get(key, partial(measured, options.data, name, seed))
            if new:
                print(name, seed, row["severities"]["0"], row["severities"]["5"], flush=True)


def measured(folder, name, seed):
    task = image_task(folder, seed)
    plan = Plan(LOSSES[name], task.given)
    net = train(task, plan, SETTINGS, seed=seed, watch=False).net
    clean = TemperatureScaling()
    clean.fit(logits_of(net, task.inputs["val"]).numpy(), task.val_labels["clean"])
    rows = {}
    for (_, severity), inputs in corrupted_inputs(folder).items():
        logits = logits_of(net, inputs).numpy()
        rows.setdefault(str(severity), []).append(_judged(logits, task.test_labels, clean))
    clean_inputs = corrupted_inputs(folder)["none", 0]
    proba = proba_of(logits_of(net, clean_inputs).numpy())[:N_TEST]
    rows["0"][0]["human_kl"] = divergence(task.human[:N_TEST], proba)
    means = {
        severity: {key: float(np.mean([r[key] for r in found])) for key in found[0]}
        for severity, found in rows.items()
    }
    return {"severities": means}


def _judged(logits, y, clean):
    y = y[: len(logits)]
    test, fit = slice(N_TEST), slice(N_TEST, None)
    own = TemperatureScaling().fit(logits[fit], y[fit])
    proba = {
        "": proba_of(logits[test]),
        ", clean temperature": clean.predict_proba(logits[test]),
        ", own temperature": own.predict_proba(logits[test]),
    }
    row = {"accuracy": float((logits[test].argmax(axis=1) == y[test]).mean())}
    for how, p in proba.items():
        row[f"ECE{how}"] = expected_calibration_error(y[test], p, strategy="quantile")
        row[f"log-loss{how}"] = nll(y[test], p)
    return row | {"temperature": float(own.temperature_)}
