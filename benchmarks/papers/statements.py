"""The claims of the four papers, and those of the labels, as comparisons."""

from __future__ import annotations

from .claims import Bootstrapped, Claim, Untested

CE, AWARE = "cross-entropy", "difficulty-aware"
NOISY = ("U20", "I20", "U40")
ALL = ("clean", *NOISY)
LOSSES = (
    "label smoothing", "focal", "L1 of logits", "entropy regularization", "Poly-1",
    "correctness ranking",
)  # fmt: skip
SOFT = "label issues: soft"


def _rmd(text, metric, rivals=(CE,), settings=ALL, method=AWARE, **options):
    return Claim(text, "rmd20", method, rivals, metric, settings, **options)


def _at_size(text, metric, rivals=(CE,), settings=ALL, method=AWARE, **options):
    return Claim(text, "rmd100", method, rivals, metric, settings, **options)


# What the paper claims of texts and of images alike, and in which metric.
OVER_CROSS_ENTROPY = (
    ("Difficulty-aware regularization raises accuracy over cross-entropy.", "accuracy"),
    ("It lowers the calibration error.", "ece"),
    ("It lowers the log-loss.", "nll"),
    ("It ranks its errors better: selective risk.", "aurc"),
    ("Its confidence tells errors from correct predictions better.", "errors_auroc"),
    ("It detects out-of-distribution samples better.", "ood_auroc"),
)
OVER_LOSSES = (
    ("It is more accurate than the six other regularizers.", "accuracy"),
    ("It is better calibrated than the six other regularizers.", "ece"),
    ("It has less selective risk than the six other regularizers.", "aurc"),
)

RMD = (
    *(_rmd(text, metric) for text, metric in OVER_CROSS_ENTROPY),
    *(_rmd(text, metric, LOSSES) for text, metric in OVER_LOSSES),
    _rmd(
        "The difficulty matters: shuffled among samples, the weights give less accuracy.",
        "accuracy",
        ("difficulty-aware, shuffled",),
    ),
    _rmd("The difficulty matters for selective risk.", "aurc", ("difficulty-aware, shuffled",)),
    _rmd(
        "The sign matters: regularizing the easy samples gives less accuracy.",
        "accuracy",
        ("difficulty-aware, inverted",),
    ),
    _rmd(
        "Weights by ranks serve better than the min-max weights: log-loss.",
        "nll",
        ("difficulty-aware, min-max",),
    ),
    _rmd("After temperature scaling it is still better calibrated.", "ece_scaled"),
    _rmd("After temperature scaling its log-loss is still lower.", "nll_scaled"),
    _rmd("With early stopping it is still more accurate.", "accuracy", point="stop"),
    _rmd(
        "With early stopping and temperature scaling its log-loss is still lower.",
        "nll_scaled",
        point="stop",
    ),
    _rmd(
        "It is better than weight decay with as many candidates: log-loss.",
        "nll",
        ("cross-entropy, weight decay",),
    ),
    _at_size(
        "With all samples of the texts it is still more accurate than cross-entropy.", "accuracy"
    ),
    _at_size("With all samples its calibration error is still lower.", "ece"),
    _at_size("With all samples and early stopping it is more accurate.", "accuracy", point="stop"),
    _at_size(
        "With all samples, early stopping and temperature scaling its log-loss is lower.",
        "nll_scaled",
        point="stop",
    ),
    _at_size(
        "With all samples the difficulty matters: shuffled, it gives less accuracy.",
        "accuracy",
        ("difficulty-aware, shuffled",),
    ),
    _at_size(
        "With all samples the sign matters: inverted, it gives less accuracy.",
        "accuracy",
        ("difficulty-aware, inverted",),
    ),
    _at_size(
        "With all samples it is more accurate than cross-entropy with weight decay.",
        "accuracy",
        ("cross-entropy, weight decay",),
    ),
    Claim(
        "It is robust to alpha: its ECE varies less than that of entropy regularization.",
        "sensitivity:ranges",
        AWARE,
        ("entropy regularization",),
        "range of ece",
        ("U20",),
        better=-1,
    ),
    Claim(
        "That robustness is due to the difficulty: with shuffled weights the ECE varies more.",
        "sensitivity:ranges",
        AWARE,
        ("difficulty-aware, shuffled",),
        "range of ece",
        ("U20",),
        better=-1,
    ),
    Claim(
        "RMD is a better source of weights than Mahalanobis and k-means: accuracy.",
        "sources",
        "difficulty-aware by RMD",
        ("difficulty-aware by Mahalanobis", "difficulty-aware by k-means"),
        "accuracy",
        ("U20",),
    ),
    Claim(
        "RMD is a better source of weights than losses: accuracy.",
        "sources",
        "difficulty-aware by RMD",
        (
            "difficulty-aware by loss, out-of-fold",
            "difficulty-aware by own loss, in-sample",
            "difficulty-aware by own loss, out-of-fold",
        ),
        "accuracy",
        ("U20",),
    ),
    Claim(
        "RMD is a better guide to dropping than Mahalanobis and k-means: accuracy.",
        "sources",
        "drop by RMD",
        ("drop by Mahalanobis", "drop by k-means"),
        "accuracy",
        ("U20",),
    ),
    Claim(
        "RMD is a better guide to dropping than losses: accuracy.",
        "sources",
        "drop by RMD",
        (
            "drop by loss, out-of-fold",
            "drop by own loss, in-sample",
            "drop by own loss, out-of-fold",
        ),
        "accuracy",
        ("U20",),
    ),
    Claim(
        "RMD finds flipped labels better than Mahalanobis and k-means.",
        "sources:auroc",
        "RMD",
        ("Mahalanobis", "k-means"),
        "AUROC of flips",
        ("U20", "I20"),
    ),
    Claim(
        "RMD finds flipped labels better than losses, in-sample and out-of-fold.",
        "sources:auroc",
        "RMD",
        (
            "loss, in-sample",
            "loss, out-of-fold",
            "own loss, in-sample",
            "own loss, out-of-fold",
        ),
        "AUROC of flips",
        ("U20", "I20"),
    ),
    Bootstrapped(
        "RMD agrees with human doubt more than Mahalanobis and k-means (CIFAR-10H).",
        ("Mahalanobis", "k-means, 10 centroids", "k-means, 100 centroids"),
    ),
    Bootstrapped(
        "RMD agrees with human doubt more than losses (CIFAR-10H).",
        ("loss of the network", "out-of-fold loss of a strong model"),
    ),
    Untested(
        "The gains hold for ImageNet, ResNet-50 and difficulties from CLIP.",
        "no accelerator and no weights were at hand; `--scale full` has the settings",
    ),
)

LABELS = (
    _rmd("Dropping the hardest samples beats the difficulty-aware loss: accuracy.", "accuracy",
         (AWARE,), NOISY, "drop the hardest"),
    _rmd("It does with early stopping of both.", "accuracy", (AWARE,), NOISY, "drop the hardest",
         point="stop"),
    _rmd("Dropping needs the difficulty: random samples give less.", "accuracy",
         ("drop at random",), NOISY, "drop the hardest"),
    _rmd("Soft labels of the finder beat cross-entropy: accuracy.", "accuracy", (CE,), NOISY,
         SOFT),
    _rmd("They beat cross-entropy with early stopping.", "accuracy", (CE,), NOISY, SOFT,
         point="stop"),
    _rmd("They beat the difficulty-aware loss with early stopping.", "accuracy", (AWARE,), NOISY,
         SOFT, point="stop"),
    _rmd("They beat dropping the hardest.", "accuracy", ("drop the hardest",), NOISY, SOFT),
    _rmd("They beat relabeling: log-loss.", "nll", ("label issues: relabel",), NOISY, SOFT),
    _rmd("They beat weighing down: log-loss.", "nll", ("label issues: weight",), NOISY, SOFT),
    _at_size("They beat cross-entropy with early stopping on all samples of the texts.",
             "accuracy", (CE,), NOISY, SOFT, point="stop"),
    _at_size("There they beat weight decay with early stopping.", "accuracy",
             ("cross-entropy, weight decay",), NOISY, SOFT, point="stop"),
    _at_size("There they beat dropping the hardest.", "accuracy", ("drop the hardest",), NOISY,
             SOFT),
    _rmd("They do no harm on clean labels: accuracy.", "accuracy", (CE,), ("clean",), SOFT,
         expects=0),
    _rmd("They reach the accuracy of true labels.", "accuracy", ("true labels",), NOISY, SOFT,
         expects=0),
)  # fmt: skip


def _validated(text, method, rival, metric, **options):
    return Claim(text, "validation:labels", method, (rival,), metric, ("U20",), **options)


VALIDATION = (
    _validated("Noisy validation labels stop cross-entropy at an epoch that is as good: accuracy.",
               f"{CE}, noisy", f"{CE}, clean", "accuracy", expects=0),
    _validated("They choose a method that is as good: accuracy.", "choice, noisy", "choice, clean",
               "accuracy", expects=0),
    _validated("They spoil the temperature: the log-loss is higher than with clean ones.",
               f"{SOFT}, clean", f"{SOFT}, noisy", "nll_scaled"),
    _validated("Repaired validation labels are as good as clean ones: log-loss.",
               f"{SOFT}, repaired", f"{SOFT}, clean", "nll_scaled", expects=0),
    _validated("Repaired validation labels choose a method that is as good: log-loss.",
               "choice, repaired", "choice, clean", "nll_scaled", expects=0),
)  # fmt: skip

TEXTS = ("clean", "U20")
SPREADS = ("standard deviation 0.3", "standard deviation 0.8")
OTHERS = ("Brier", "MMCE", "focal", "FLSD", "dual focal", "BSCE")


def _gra(text, metric, rivals, method="BSCE-GRA", settings=TEXTS, **options):
    return Claim(text, "gra_texts", method, rivals, metric, settings, **options)


GRA = (
    _gra("BSCE-GRA is better calibrated than cross-entropy.", "ece", (CE,)),
    _gra("It is better calibrated class by class.", "classwise", (CE,)),
    _gra("It is better calibrated than the six other losses.", "ece", OTHERS),
    _gra("It needs no temperature: scaling does not change its ECE.", "ece", ("BSCE-GRA",),
         rival_metric="ece_scaled", expects=0),
    _gra("Unscaled, it is as well calibrated as scaled cross-entropy.", "ece", (CE,),
         rival_metric="ece_scaled", expects=0),
    _gra("With early stopping it is better calibrated than cross-entropy.", "ece", (CE,),
         point="stop"),
    _gra("It costs no accuracy.", "accuracy", (CE,), expects=0),
    _gra("Weighting gradients beats weighting the loss: BSCE.", "ece", ("BSCE",)),
    _gra("Weighting gradients beats weighting the loss: dual focal.", "ece", ("dual focal",),
         "dual focal-GRA"),
    _gra("Weighting gradients beats weighting the loss: FLSD.", "ece", ("FLSD",), "FLSD-GRA"),
    _gra("The Brier weight beats the focal one, both on gradients.", "ece", ("FLSD-GRA",)),
    _gra("The Brier weight beats the dual focal one.", "ece", ("dual focal-GRA",)),
    _gra("It is better than weight decay with as many candidates: log-loss.", "nll",
         ("cross-entropy, weight decay",)),
    _gra("The published exponent of 4 is as good as one that was chosen: ECE.", "ece",
         ("BSCE-GRA",), "BSCE-GRA 4, as published", expects=0),
    Claim("The Brier weight follows the true error closer than the focal one (Sec. 4.3).",
          "gra_toy", "generalized Brier", ("focal",), "correlation", SPREADS),
    Claim("It follows the true error closer than the dual focal one.",
          "gra_toy", "generalized Brier", ("dual focal",), "correlation", SPREADS),
    Untested("The ranking holds for ResNets, WideResNet and DenseNet on CIFAR-100 and Tiny "
             "ImageNet.", "no accelerator was at hand; `--scale full` has the settings"),
)  # fmt: skip

CASES = ("clean", "redundant", "imbalanced", "U20", "redundant, early", "imbalanced, early")


def _prio(text, method, rivals, metric="accuracy", settings=CASES, **options):
    return Claim(text, "prio", method, rivals, metric, settings, **options)


PRIO = (
    _prio("Training on the least certain samples beats random ones at equal steps.", "entropy",
          ("random",)),
    _prio("It does early: after half of the steps.", "entropy", ("random",), point="225"),
    _prio("Its log-loss is lower after temperature scaling.", "entropy", ("random",),
          "nll_scaled"),
    _prio("A draw in proportion to entropy beats random samples.", "in proportion", ("random",)),
    _prio("A draw in proportion beats taking the top.", "in proportion", ("entropy",)),
    _prio("A fixed calibrated target is a better guide than the student.", "fixed target",
          ("entropy",), settings=TEXTS),
    _prio("A calibrated target of the same epoch is a better guide than the student.",
          "target of the epoch", ("entropy",), settings=("clean",)),
    _prio("A target of the epoch is better than a fixed one.", "target of the epoch",
          ("fixed target",), settings=("clean",)),
    _prio("Calibrating the selector helps: temperature.", "entropy, temperature", ("entropy",),
          settings=("clean",)),
    _prio("Calibrating the selector helps: focal loss.", "entropy, focal", ("entropy",),
          settings=("clean",)),
    _prio("Calibrating the selector helps: label smoothing.", "entropy, label smoothing",
          ("entropy",), settings=("clean",)),
    _prio("Entropy does more than balance the classes.", "entropy", ("balanced",),
          settings=("imbalanced", "imbalanced, early")),
    Untested("Prioritization saves wall time on CIFAR-10 and CIFAR-100 with ResNet-34.",
             "no accelerator was at hand; `--scale full` has the settings"),
)  # fmt: skip

SETS = ("digits", "made classes", "queries", "image features")


def _depth(text, name, better):
    return Claim(text, "depth", name, ("zero",), "value", SETS, better=better)


DEPTH = (
    _depth("Deeper predictions are less accurate on held-out samples (Spearman).",
           "depth and correct", -1),
    _depth("Deeper predictions are less consistent across networks (Spearman).",
           "depth and consensus", -1),
    _depth("Deeper predictions are learned later (Spearman).", "depth and iteration learned", 1),
    _depth("Deeper predictions have smaller output margins (Spearman).", "depth and margin", -1),
    _depth("Depths agree between networks of other seeds (Spearman).", "depths of two halves", 1),
    _depth("On samples with a memorized wrong label, early probes know the true one better than "
           "the last (accuracy).", "early minus last, true label", 1),
    _depth("On samples that are ambiguous without their label, the middle of the network is more "
           "often right than its end (accuracy).", "middle minus network, ambiguous", 1),
    Untested("Depths agree between architectures; networks with wide margins learn shallow "
             "predictions first.", "one architecture was trained; `--scale full` has three"),
)  # fmt: skip


def _recalibrated(text, method, rival):
    settings = tuple(f"severity {i}" for i in range(6))
    return Claim(text, "shift:recalibrated", method, (rival,), "ECE", settings, better=-1)


SHIFT = (
    _recalibrated("A temperature from clean images lowers the ECE of cross-entropy.",
                  f"{CE}, clean temperature", f"{CE}, last"),
    _recalibrated("A temperature from images of the same shift lowers it further.",
                  f"{CE}, own temperature", f"{CE}, clean temperature"),
    _recalibrated("BSCE-GRA is better calibrated than cross-entropy.", "BSCE-GRA 4, last",
                  f"{CE}, last"),
    _recalibrated("It is better than cross-entropy with a temperature from clean images.",
                  "BSCE-GRA 4, last", f"{CE}, clean temperature"),
    _recalibrated("Focal loss is better calibrated than cross-entropy.", "focal 3, last",
                  f"{CE}, last"),
)  # fmt: skip
