"""[RMD] on CIFAR-10 images.

Students learn images of the test split: the network whose features score their difficulty has seen
none of them, and people have labeled all of them (CIFAR-10H).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from . import rmd
from .claims import claim
from .images import IMAGES, Cifar, cifar_task
from .methods import CE, IMAGE_GRIDS, Method, aware, with_candidates
from .results import Part, Study
from .runner import compare
from .tables import FLIPS

# --- methods -------------------------------------------------------------------------------------

NOISY = ("U20", "I20")
NOISES = ("clean", *NOISY)
CANDIDATES = rmd.pairs((0.1, 1.0), (0.3, 0.6), (0.3, 1.2), (0.3, 2.4))
ROTATION = Method("difficulty-aware by rotation", aware("RMD by rotation"), CANDIDATES)
_AT = rmd.METHODS.index(rmd.AWARE) + 1
IMAGE_METHODS = with_candidates(
    [
        replace(m, candidates=CANDIDATES) if m.name.startswith("difficulty") else m
        for m in (*rmd.METHODS[:_AT], ROTATION, *rmd.METHODS[_AT:])
    ],
    IMAGE_GRIDS,
    (
        "difficulty-aware, min-max", "drop at random", "label issues: drop",
        "label issues: relabel", "label issues: weight",
    ),
)  # fmt: skip
ASKED = (
    "RMD", "RMD by rotation", "RMD without label", "Mahalanobis", "k-means", "loss, out-of-fold",
)  # fmt: skip

# --- runs ----------------------------------------------------------------------------------------


def run(options, records):
    images = Cifar(options.data, options.out)
    for noise in options.noise or NOISES:
        methods = [m for m in IMAGE_METHODS if noise != "clean" or m.name != "true labels"]
        make = partial(cifar_task, images, noise)
        compare(records, make, methods, IMAGES, noise, range(options.seeds))
        if noise != "clean":
            rmd.find_flips(records, make, noise, range(options.seeds), ASKED)


# --- claims --------------------------------------------------------------------------------------


def _image(text, metric, rivals=CE.name, settings=NOISES, method=rmd.AWARE.name, **options):
    return claim("rmd_images", text, method, metric, rivals, settings, **options)


def _noisy(text, rival, method=rmd.SOFT.name, **options):
    return _image(text, "accuracy", rival, NOISY, method, **options)


def _finds(text, rivals):
    return claim("rmd_images", text, "RMD", FLIPS, rivals, ("flips, U20", "flips, I20"))


CLAIMS = (
    *(_image(text, metric, **rmd.STATED.get(metric, {}),
             headline="clean" * (metric in ("accuracy", "ece")))
      for text, metric in rmd.OVER_CROSS_ENTROPY),
    _image("Its predictions are closer to human labels.", "human_kl"),
    _image("They are after temperature scaling of both.", "human_kl_scaled"),
    *(_image(text, metric, rmd.LOSSES) for text, metric in rmd.OVER_LOSSES),
    _image("The difficulty matters: shuffled weights give less accuracy.", "accuracy",
           rmd.SHUFFLED.name),
    _image("The difficulty matters for selective risk.", "aurc", rmd.SHUFFLED.name),
    _image("The difficulty matters for the log-loss.", "nll", rmd.SHUFFLED.name),
    _image("The sign matters: regularizing the easy samples gives less accuracy.", "accuracy",
           rmd.INVERTED.name),
    _image("Difficulty from features of another task, rotation, raises accuracy.", "accuracy",
           method=ROTATION.name),
    _image("It beats shuffled weights: log-loss.", "nll", rmd.SHUFFLED.name, method=ROTATION.name),
    _image("Features of the same classes serve better than those of rotation: accuracy.",
           "accuracy", ROTATION.name),
    _image("After temperature scaling it is still better calibrated.", "ece_scaled"),
    _image("After temperature scaling its log-loss is still lower.", "nll_scaled"),
    _image("With early stopping it is still more accurate.", "accuracy", point="stop"),
    _image("With early stopping and temperature scaling its log-loss is still lower.",
           "nll_scaled", point="stop"),
    _finds("RMD finds flipped labels better than Mahalanobis and k-means.",
           ("Mahalanobis", "k-means")),
    _finds("RMD finds flipped labels better than the loss out-of-fold.", "loss, out-of-fold"),
    _noisy("Dropping the hardest samples beats the difficulty-aware loss: accuracy.",
           rmd.AWARE.name, rmd.DROP.name),
    _noisy("Soft labels of the finder beat cross-entropy: accuracy.", CE.name),
    _noisy("They beat cross-entropy with early stopping.", CE.name, point="stop"),
    _noisy("They beat the difficulty-aware loss with early stopping.", rmd.AWARE.name,
           point="stop"),
    _image("They do no harm on clean labels: accuracy.", "accuracy", CE.name, "clean",
           rmd.SOFT.name, no_loss=True),
    _noisy("They reach the accuracy of true labels.", "true labels", no_loss=True),
)  # fmt: skip

HUMAN = ("human_kl", "human_kl_scaled")
STUDY = Study("[RMD], images", {"rmd_images": Part(run, kept=HUMAN, order=IMAGE_METHODS)}, CLAIMS)
