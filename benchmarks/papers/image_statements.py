"""The claims of [RMD] and [GRA] on CIFAR-10 images, as comparisons."""

from __future__ import annotations

from dataclasses import replace

from . import statements
from .claims import Claim
from .statements import AWARE, CE, LOSSES, OVER_CROSS_ENTROPY, OVER_LOSSES, SOFT

NOISY = ("U20", "I20")
ALL = ("clean", *NOISY)
ROTATION = "difficulty-aware by rotation"
SHUFFLED = "difficulty-aware, shuffled"
FLIPS = "AUROC of flips"


def _rmd(text, metric, rivals=(CE,), settings=ALL, method=AWARE, **options):
    return Claim(text, "rmd_images", method, rivals, metric, settings, **options)


def _flips(text, rivals, method="RMD"):
    return Claim(text, "rmd_images:auroc", method, rivals, FLIPS, NOISY)


RMD = (
    *(_rmd(text, metric) for text, metric in OVER_CROSS_ENTROPY),
    _rmd("Its predictions are closer to human labels.", "human_kl"),
    _rmd("They are after temperature scaling of both.", "human_kl_scaled"),
    *(_rmd(text, metric, LOSSES) for text, metric in OVER_LOSSES),
    _rmd("The difficulty matters: shuffled weights give less accuracy.", "accuracy", (SHUFFLED,)),
    _rmd("The difficulty matters for selective risk.", "aurc", (SHUFFLED,)),
    _rmd("The difficulty matters for the log-loss.", "nll", (SHUFFLED,)),
    _rmd("The sign matters: regularizing the easy samples gives less accuracy.", "accuracy",
         ("difficulty-aware, inverted",)),
    _rmd("Difficulty from features of another task, rotation, raises accuracy.", "accuracy",
         method=ROTATION),
    _rmd("It beats shuffled weights: log-loss.", "nll", (SHUFFLED,), method=ROTATION),
    _rmd("Features of the same classes serve better than those of rotation: accuracy.",
         "accuracy", (ROTATION,)),
    _rmd("After temperature scaling it is still better calibrated.", "ece_scaled"),
    _rmd("After temperature scaling its log-loss is still lower.", "nll_scaled"),
    _rmd("With early stopping it is still more accurate.", "accuracy", point="stop"),
    _rmd("With early stopping and temperature scaling its log-loss is still lower.",
         "nll_scaled", point="stop"),
    _rmd("It is better than weight decay with as many candidates: log-loss.", "nll",
         ("cross-entropy, weight decay",)),
    _rmd("It is more accurate than weight decay.", "accuracy", ("cross-entropy, weight decay",)),
    _flips("RMD finds flipped labels better than Mahalanobis and k-means.",
           ("Mahalanobis", "k-means")),
    _flips("RMD finds flipped labels better than the loss out-of-fold.", ("loss, out-of-fold",)),
    _rmd("Dropping the hardest samples beats the difficulty-aware loss: accuracy.", "accuracy",
         (AWARE,), NOISY, "drop the hardest"),
    _rmd("Soft labels of the finder beat cross-entropy: accuracy.", "accuracy", (CE,), NOISY,
         SOFT),
    _rmd("They beat cross-entropy with early stopping.", "accuracy", (CE,), NOISY, SOFT,
         point="stop"),
    _rmd("They beat the difficulty-aware loss with early stopping.", "accuracy", (AWARE,), NOISY,
         SOFT, point="stop"),
    _rmd("They do no harm on clean labels: accuracy.", "accuracy", (CE,), ("clean",), SOFT,
         expects=0),
    _rmd("They reach the accuracy of true labels.", "accuracy", ("true labels",), NOISY, SOFT,
         expects=0),
)  # fmt: skip


def _gra(text, metric, method="BSCE-GRA", **options):
    return Claim(text, "gra_images", method, (CE,), metric, ("clean",), **options)


# What is claimed of texts, and what only images can tell.
GRA = (
    *(
        replace(claim, study="gra_images", settings=("clean",))
        for claim in statements.GRA
        if getattr(claim, "study", "") == "gra_texts"
    ),
    _gra("As published, BSCE-GRA 4 is better calibrated than cross-entropy.", "ece",
         "BSCE-GRA 4, as published"),
    _gra("Its predictions are closer to human labels than those of cross-entropy.", "human_kl"),
    _gra("They are after temperature scaling of both.", "human_kl_scaled"),
    _gra("After temperature scaling its log-loss is lower than that of cross-entropy.",
         "nll_scaled"),
)  # fmt: skip
