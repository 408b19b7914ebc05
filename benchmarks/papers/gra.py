"""[GRA]: nine losses on texts and on images with clean labels, and the toy of Sec. 4.3."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from scipy.special import softmax

from skcalib.losses import functional

from . import figures
from .claims import DIRECTION, METRICS, OWN, about, untested
from .images import IMAGES, Cifar, cifar_task
from .methods import (
    CE,
    DECAY,
    FOCAL,
    GAMMAS,
    IMAGE_GRIDS,
    Method,
    aware,
    by_loss,
    grid,
    with_candidates,
)
from .needs import IMAGES as IMAGE_FILES
from .needs import TEXTS
from .printed import columns as printed
from .results import Part, Study, described
from .rmd import on_texts
from .runner import compare, found
from .students import Settings
from .tables import CALIBRATION, COLUMNS, POINTS, Column, comparisons, values_tables
from .texts import Clinc, text_task

FLSD = grid(gammas=((1.0, 0.5), (2.0, 1.0), (3.0, 2.0), (5.0, 3.0)))
METHODS = (
    CE,
    DECAY,
    Method("Brier", by_loss(functional.brier_loss)),
    Method("MMCE", by_loss(functional.mmce_loss), grid(strength=(1.0, 2.0, 4.0, 8.0))),
    FOCAL,
    Method("FLSD", by_loss(functional.sample_dependent_focal_loss), FLSD),
    Method(
        "FLSD-GRA",
        by_loss(functional.sample_dependent_focal_loss, detach_weight=True),
        FLSD,
    ),
    Method("dual focal", by_loss(functional.dual_focal_loss), grid(gamma=GAMMAS)),
    Method(
        "dual focal-GRA",
        by_loss(functional.dual_focal_loss, detach_weight=True),
        grid(gamma=GAMMAS),
    ),
    Method("BSCE", by_loss(functional.bsce_loss), grid(exponent=GAMMAS)),
    Method("BSCE-GRA", by_loss(functional.bsce_gra_loss), grid(exponent=GAMMAS)),
    Method("FLSD-53, as published", by_loss(functional.sample_dependent_focal_loss)),
    Method("dual focal 5, as published", by_loss(functional.dual_focal_loss)),
    Method("BSCE-GRA 4, as published", by_loss(functional.bsce_gra_loss)),
)

IMAGE_METHODS = with_candidates(METHODS, IMAGE_GRIDS)
# The losses by the names that users know, without a choice: a page of the guide shows them.
NAMED = tuple(
    Method(f"``{name}``", plan)
    for name, plan in {
        "CrossEntropyLoss()": by_loss(functional.cross_entropy_loss),
        "LabelSmoothingLoss(alpha=0.05)": by_loss(functional.label_smoothing_loss, alpha=0.05),
        "EntropyRegularizedLoss(alpha=0.1)": by_loss(
            functional.entropy_regularized_loss, alpha=0.1
        ),
        "DifficultyAwareLoss(alpha=0.3)": partial(aware(), alpha=0.3, temperature=0.3),
        **{f"FocalLoss(gamma={g})": by_loss(functional.focal_loss, gamma=g) for g in (1, 2, 4)},
        **{f"BSCEGRALoss(exponent={g})": by_loss(functional.bsce_gra_loss, exponent=g)
           for g in (1, 2, 4)},
    }.items()
)  # fmt: skip
# Setting -> learning rate and noise: with .005 the students end underconfident.
NAMED_SETTINGS = {
    "wrong labels": (0.02, "U20"), "clean labels": (0.02, "clean"),
    "trained too little": (0.005, "clean"),
}  # fmt: skip


def named(options, records):
    clinc = Clinc(options.data, options.out)
    for setting, (lr, noise) in NAMED_SETTINGS.items():
        make, how = partial(text_task, clinc, 20, noise), Settings(n_epochs=20, lr=lr)
        compare(records, make, NAMED, how, setting, options.seeds, every=True, stops=False)


def images(options, records):
    make = partial(cifar_task, Cifar(options.data, options.out), "clean")
    compare(records, make, IMAGE_METHODS, IMAGES, "clean", options.seeds)


N_CLASSES, N_EACH, N_EPOCHS = 5, 10_000, 5
BOXES = {f"means within {half_side}": half_side for half_side in (3, 5, 10)}
EXPONENTS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)


def weigh(loss, exponent):
    """Return a function of (logits, labels, its exponent): the loss over the cross-entropy."""

    def weights(logits, y, g):
        inputs = {"logits": logits.double(), "target": y, "reduction": "none"}
        return loss(**inputs, **{exponent: g}) / functional.cross_entropy_loss(**inputs)

    return weights


WEIGHTS = {
    "focal": weigh(functional.focal_loss, "gamma"),
    "dual focal": weigh(functional.dual_focal_loss, "gamma"),
    "generalized Brier": weigh(functional.bsce_loss, "exponent"),
}


def toy(options, records):
    """Ask whether the weight of a loss follows the true calibration error: Sec. 4.3.

    Five Gaussian classes in the plane with unit covariance, their means drawn uniformly from a
    square (side 6, 10 or 20), so that the posterior is known; 10 000 samples a class. A perceptron
    is trained by cross-entropy for five epochs. On as many new samples the weights of the losses,
    which see the label, are correlated (Pearson) with the absolute difference of the probability
    of the label from its posterior; every weight has its best exponent of six.
    """
    for seed in options.seeds:
        for setting in options.noise or BOXES:
            compute = partial(correlations, setting, seed)
            records.get({"setting": setting, "seed": seed}, compute)


def toy_sample(means, rng):
    """Return points, labels and the posterior; equal priors, unit covariance."""
    y = np.repeat(np.arange(N_CLASSES), N_EACH)
    X = means[y] + rng.normal(size=(len(y), 2))
    squared = ((X[:, None] - means) ** 2).sum(axis=2)
    return X.astype(np.float32), y, softmax(-squared / 2, axis=1)


def correlations(setting, seed):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    means = rng.uniform(-BOXES[setting], BOXES[setting], (N_CLASSES, 2))
    X, y, _ = map(torch.from_numpy, toy_sample(means, rng))
    net = torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, N_CLASSES)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    for _ in range(N_EPOCHS):
        for batch in torch.randperm(len(y)).split(128):
            optimizer.zero_grad()
            functional.cross_entropy_loss(net(X[batch]), y[batch]).backward()
            optimizer.step()
    X, y, posterior = toy_sample(means, rng)
    with torch.no_grad():
        logits = net(torch.from_numpy(X))
    target, every = torch.from_numpy(y), np.arange(len(y))
    error = np.abs(logits.softmax(1).numpy()[every, y] - posterior[every, y])
    largest = {
        name: max(float(np.corrcoef(weight(logits, target, g).numpy(), error)[0, 1])
                  for g in EXPONENTS)
        for name, weight in WEIGHTS.items()
    }  # fmt: skip
    return found(setting, "correlation", largest)


TOY = [Column("correlation", "Correlation of the weights with the true error", digits=3)]
# Our losses by the names of the paper's columns.
PRINTED = {
    CE.name: "CE", "Brier": "BL", "MMCE": "MMCE", "FLSD": "FLSD", "dual focal": "DFL",
    "BSCE": "BSCE",
}  # fmt: skip
OTHERS = ("Brier", "MMCE", "focal", "FLSD", "dual focal", "BSCE")


def of_resnet50(metric, before="CE", after="BSCE-GRA"):
    """Return what Tables 1, 3, 4 and 5 print for the ResNet-50 on three data sets."""
    table = {"ECE": 1, "accuracy": 3, "AdaECE": 4, "classwise": 5}[metric]
    return printed("GRA", f"Table {table}", metric, after, before, of="ResNet-50")


def on_gradients(before, after, metric="AdaECE"):
    return printed("GRA", "Table 2", metric, after, before)


def of_toy(after, before):
    return printed("GRA", "Section 4.3", "correlation", after, before)


_texts = about("gra_texts", "BSCE-GRA", rivals=CE.name, settings=("clean", "U20"), paper=DIRECTION)
_toy = about("gra_toy", "generalized Brier", "correlation", settings=BOXES)
_gradients = partial(_texts, metric="ece")
CLAIMS = (
    # Bins of equal mass are the AdaECE of the paper's Table 4.
    _texts("BSCE-GRA is better calibrated than cross-entropy.", "ece", headline="clean",
           paper=of_resnet50("AdaECE")),
    _texts("It is better calibrated class by class.", "classwise", paper=of_resnet50("classwise")),
    _texts("It is better calibrated than the six other losses.", "ece", OTHERS,
           paper=of_resnet50("AdaECE", [n for n in PRINTED.values() if n != "CE"])),
    *(_texts(f"It is better calibrated than {loss}.", "ece", loss,
             paper=of_resnet50("AdaECE", PRINTED[loss]) if loss in PRINTED else
             printed("GRA", "Table 7", "ECE", "BSCE-GRA", "FL"))
      for loss in OTHERS),
    _texts("It needs no temperature: scaling does not change its ECE.", "ece", "BSCE-GRA",
           rival_metric="ece_scaled", no_loss=True, paper=of_resnet50("AdaECE", "BSCE-GRA, T")),
    _texts("Unscaled, it is as well calibrated as scaled cross-entropy.", "ece",
           rival_metric="ece_scaled", no_loss=True, paper=of_resnet50("AdaECE", "CE, T")),
    _texts("After temperature scaling of both, it is still better calibrated.", "ece_scaled",
           paper=of_resnet50("AdaECE", "CE, T", "BSCE-GRA, T")),
    _texts("With early stopping it is better calibrated than cross-entropy.", "ece",
           point="stop", paper=OWN),
    _texts("BSCE-GRA costs less than a point of accuracy.", "accuracy", no_loss=True,
           headline="clean", paper=of_resnet50("accuracy")),
    _gradients("Weighting gradients beats weighting the loss: BSCE.", rivals="BSCE",
               paper=of_resnet50("AdaECE", "BSCE")),
    _gradients("Weighting gradients beats weighting the loss: dual focal.", rivals="dual focal",
               method="dual focal-GRA", paper=on_gradients("DFL", "DFL-GRA")),
    _gradients("Weighting gradients beats weighting the loss: FLSD.", rivals="FLSD",
               method="FLSD-GRA", paper=on_gradients("FLSD", "FLSD-GRA")),
    _gradients("The Brier weight beats the focal one, both on gradients.", rivals="FLSD-GRA",
               paper=on_gradients("FLSD-GRA", "BSCE-GRA")),
    _gradients("The Brier weight beats the dual focal one.", rivals="dual focal-GRA",
               paper=on_gradients("DFL-GRA", "BSCE-GRA")),
    _texts("It is better than weight decay with as many candidates: log-loss.", "nll",
           DECAY.name, paper=OWN),
    _toy("In the toy of Sec. 4.3, the Brier weight follows the error closer than the focal one.",
         rivals="focal", headline="means within 3", paper=of_toy("gBS", "FL")),
    _toy("In the toy, the Brier weight follows the error closer than the dual focal one.",
         rivals="dual focal", headline="means within 3", paper=of_toy("gBS", "DFL")),
    _toy("In the toy, the dual focal weight follows it closer than the focal one.",
         rivals="focal", method="dual focal", paper=of_toy("DFL", "FL")),
    untested("The gain holds on ImageNet.", "no accelerator was at hand; `--scale full` has the "
             "settings", printed("GRA", "Table 8", "ECE", "BSCE-GRA", "CE")),
    *figures.GRA_CLAIMS,
)  # fmt: skip


_image = about("gra_images", "BSCE-GRA", rivals=CE.name, settings="clean")
# What is claimed of texts, and what only images can tell.
IMAGE_CLAIMS = (
    *(replace(c, part="gra_images", settings=("clean",)) for c in CLAIMS if c.part == "gra_texts"),
    # Bins of equal width are those of the paper's Table 1.
    _image("By bins of equal width, it is better calibrated than cross-entropy.", "ece_width",
           paper=of_resnet50("ECE")),
    _image("By these, it is better calibrated than the six other losses.", "ece_width", OTHERS,
           paper=of_resnet50("ECE", [n for n in PRINTED.values() if n != "CE"])),
    *(_image(f"By these, weighting gradients beats weighting the loss: {loss}.", "ece_width", loss,
             method=f"{loss}-GRA", paper=paper)
      for loss, paper in (("BSCE", of_resnet50("ECE", "BSCE")),
                          ("dual focal", on_gradients("DFL", "DFL-GRA", "ECE")),
                          ("FLSD", on_gradients("FLSD", "FLSD-GRA", "ECE")))),
    _image("As published, BSCE-GRA 4 is better calibrated than cross-entropy.", "ece",
           method="BSCE-GRA 4, as published", paper=of_resnet50("AdaECE")),
    _image("Its predictions are closer to human labels than those of cross-entropy.", "human_kl"),
    _image("They are after temperature scaling of both.", "human_kl_scaled"),
    _image("After temperature scaling its log-loss is lower than that of cross-entropy.",
           "nll_scaled"),
)  # fmt: skip

TABLE = partial(comparisons, columns=(*COLUMNS, *CALIBRATION))
OF_NAMED = ("accuracy", "temperature", "ece", "ece_scaled", "nll_scaled")
NAMED_TABLE = partial(
    comparisons, columns=[METRICS[metric] for metric in OF_NAMED],
    points={"last": POINTS["last"]}, reference=NAMED[0].name,
)  # fmt: skip
KEPT = ("human_kl", "human_kl_scaled", "ece_width", "classwise")
STUDY = Study(
    "[GRA], texts",
    {
        "gra_texts": Part(
            partial(on_texts, 20, METHODS, ("clean", "U20")),
            kept=("classwise",),
            order=METHODS,
            files=TEXTS,
        ),
        "losses_compared": Part(named, NAMED_TABLE, order=NAMED, shown=OF_NAMED, files=TEXTS),
        **figures.GRA_PARTS,
        "gra_toy": Part(toy, partial(values_tables, columns=TOY), settings=described(toy.__doc__)),
    },
    CLAIMS,
)
IMAGE_STUDY = Study(
    "[GRA], images",
    {"gra_images": Part(images, TABLE, KEPT, IMAGE_METHODS, files=IMAGE_FILES)},
    IMAGE_CLAIMS,
)
